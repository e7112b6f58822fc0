"""Find literal secrets in configuration texts, and cover them wherever such a text is shown.

A literal counts as a secret when

1. it has the shape of a known token (GitHub, GitLab, OpenAI, Anthropic, Slack, AWS, Google, JWT, PEM keys);
2. it follows `Bearer` or `Basic`;
3. it is a URL's password, or the value of a query parameter whose name says secret;
4. its name says secret (TOKEN, KEY, SECRET, PASSWORD) and it is long, without spaces, and looks random.

References such as `${TOKEN}` and placeholders such as `<your key>` are no secrets.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

from nexus_context.errors import Span

_TOKEN = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
      gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
    | sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,} | xox[abeoprs]-[A-Za-z0-9-]{10,} | (?:AKIA|ASIA)[A-Z0-9]{16}\b
    | AIza[A-Za-z0-9_-]{30,} | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,}
    | eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]* | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----[^"]*
    )""",
    re.VERBOSE,
)
_SCHEME = re.compile(r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})")
_PASSWORD = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{0,30}://[^/?#\s:@\"]{0,200}:([^/?#\s@\"$]{1,200})@")
_NAME = r"(?:[a-z0-9]{1,40}[_-]){0,8}(?:token|secret|passw(?:or)?d|passphrase|apikey|key)"
_QUERY = re.compile(rf"(?i)[?&;]{_NAME}=([^&#\s\"$]{{8,}})")
_MEMBER = re.compile(
    rf"(?i)\"(?:{_NAME}|[^\"]{{0,80}}secret[^\"]{{0,80}}|authorization)\"\s*:\s*\"((?:[^\"\\]|\\.)*)\"?"
)
_SECRET_NAME = re.compile(r"(?i)(?:token|key|passw(?:or)?d|passphrase|credentials?)\Z|secret")
_PLACEHOLDER = re.compile(
    r"(?i)[<>{}$]|\byour|your[_-]|xxx|\*\*\*|\.\.\.|example|placeholder|change.?me|^(?:[~./]|[a-z]:\\)"
)

_HEADERS = ("provider", "headers")
_LEDGER = ("ledger", "url")
# user and password of a URL: up to the last @, as a password may hold any character
_USER = re.compile(r"(?s)(?:(?<=://)|\A(?!.*://)).*(?=@)")
_COVER = "********"

_LONG = 16
_MOST = 65_536  # characters of a value that are looked at
_RANDOM_BITS = (
    3.2  # Shannon entropy per character; words and paths stay below 3.2 at these lengths or have no digit
)


def secrets_in(value: str, name: str = "") -> tuple[Span, ...]:
    """Where a value holds literal secrets, as ranges of the value; `name` is the key it stands under."""
    spans = [Span(*match.span(match.lastindex or 0)) for match in _matches(value[:_MOST])]
    if not spans and _SECRET_NAME.search(name) and _looks_random(value):
        spans = [Span(0, len(value))]
    return tuple(_apart(spans))


def secrets_in_text(text: str) -> tuple[Span, ...]:
    """Where a text of any length holds literal secrets, by their own shape (rules 1 to 3)."""
    return tuple(_apart([Span(*match.span(match.lastindex or 0)) for match in _matches(text)]))


def without_secrets(value: Any, name: str = "") -> Any:
    """A JSON value with every literal secret covered by `*`; `name` is the key it stands under."""
    if isinstance(value, dict):
        return {key: without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item, name) for item in value]
    if not isinstance(value, str):
        return value
    for span in secrets_in(value, name):
        value = value[: span.start] + "*" * (span.end - span.start) + value[span.end :]
    return value


def shown_setting(value: Any, pointer: Sequence[str | int] = ()) -> Any:
    """A value of config.json for people to see: no header of the provider, no password, no literal secret.

    `pointer` is where the value stands in config.json, () for the whole of it.
    """
    if isinstance(value, dict):
        return {key: shown_setting(item, (*pointer, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [shown_setting(item, (*pointer, index)) for index, item in enumerate(value)]
    place = tuple(pointer)
    if place[: len(_HEADERS)] == _HEADERS and value is not None:
        return _COVER
    if place == _LEDGER and isinstance(value, str):
        value = _USER.sub(_COVER, value)
    return without_secrets(value, next((step for step in reversed(place) if isinstance(step, str)), ""))


def redact(text: str) -> str:
    """The text with every secret, and every JSON value whose name says secret, covered by as many `*`."""
    spans = [Span(*match.span(match.lastindex or 0)) for match in [*_matches(text), *_MEMBER.finditer(text)]]
    parts, end = [], 0
    for span in _apart(spans):
        covered = text[span.start : span.end]
        parts += [text[end : span.start], covered if covered.startswith("${") else "*" * len(covered)]
        end = span.end
    return "".join([*parts, text[end:]])


def _matches(text: str) -> list[re.Match[str]]:
    return [
        match
        for pattern in (_TOKEN, _SCHEME, _PASSWORD, _QUERY)
        for match in pattern.finditer(text)
        if not _PLACEHOLDER.search(match[match.lastindex or 0])
    ]


def _apart(spans: list[Span]) -> list[Span]:
    """The spans in order, overlapping ones joined."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start < joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def _looks_random(value: str) -> bool:
    if len(value) < _LONG or len(value) > 4096 or any(char.isspace() for char in value) or "://" in value:
        return False
    if _PLACEHOLDER.search(value) or not any(char.isdigit() for char in value):
        return False
    shares = [value.count(char) / len(value) for char in set(value)]
    return -sum(share * math.log2(share) for share in shares) >= _RANDOM_BITS
