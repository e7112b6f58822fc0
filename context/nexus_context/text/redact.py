"""Finds literal secrets in configuration texts, and covers them wherever such a text is printed.

A literal counts as a secret when

1. it has the shape of a known token (GitHub, GitLab, OpenAI, Anthropic, Slack, AWS, Google, JWT, PEM keys);
2. it follows `Bearer` or `Basic` where a header is written (`Authorization:`, `-H`, the value of a key), or
   elsewhere if it cannot be a word (`opaque`);
3. it is a URL's password, or the value of a query parameter with a secret name;
4. its name is secret (TOKEN, KEY, SECRET, PASSWORD) and it is long, without spaces, and looks random.

References such as `${TOKEN}` and placeholders such as `<your key>` are not secrets.

Whatever it looks like, a value may also be secret by its *place*: `is_secret_place` decides this for a path
of keys. No part of such a value is printed.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.errors import Span
from nexus_context.text.opaque import is_example, is_opaque, is_published_example, user_and_password

TOKEN = re.compile(
    r"""(?<![A-Za-z0-9_-])(?:
      gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
    | sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{16,} | xox[abeoprs]-[A-Za-z0-9-]{10,} | (?:AKIA|ASIA)[A-Z0-9]{16}\b
    | AIza[A-Za-z0-9_-]{30,} | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{30,} | pypi-[A-Za-z0-9_-]{30,}
    | eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]* | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----[^"]*
    )""",
    re.VERBOSE,
)
# one of these is in every match of `TOKEN`; searching them takes a fraction of the time
_TOKEN_MARKS = (
    *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "AKIA", "ASIA", "AIza"),
    *("hf_", "npm_", "pypi-", "eyJ", "-----BEGIN"),
)
_SCHEME_MARKS = ("bearer", "basic")
_OTHER_CASES = ("\u017f", "\u0130", "\u0131")  # letters that (?i) takes for s and i, and lower() does not
SCHEME = re.compile(r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{8,})")
# what stands before a scheme in a header: `Authorization: `, `X-Auth: `, `-H 'Auth: `, `auth_header = f"`
_HEADER = (
    r"(?i)(?:authorization\\?[\"'`*\]]{0,4}[ \t]{0,4}(?:[:=|]|=>){1,2}\*{0,2}[ \t]{0,4}[a-z]?\\?[\"'`]?"
    r"|(?:(?:-H|--header)[ =]?[\"']?|\bX-)[\w-]{1,60}[\"']?:[ \t]{0,4}[\"']?"
    r"|(?:auth|token)[\w-]{0,20}\\?[\"'\]]{0,2}[ \t]{0,4}(?:[:=,]|=>)[ \t]{0,4}[a-z]?\\?[\"'])\Z"
)
_NEAR = 100  # characters beside a match that say what it is
# how documentation shows secrets
_KEY_BODY = (
    r"-----[ A-Z]+-----(?:\s|\\[nr]|[\"'`+,])*(?:[A-Za-z-]{1,40}: [^\n]{0,200}\s+){0,3}[A-Za-z0-9+/]{40}"
)
_NEXT_WORD = r"[ \t]+[A-Za-z(]"
_AFTER_VALUE = r"[/)\]'`>,;|\\^§]|%[2-7]"
_PUBLIC = r"\.svg\S*\Z|[?&]alt=media\\?(?:&(?:amp|#x26))?\Z"  # before a public token
_AFTER_HOST = r"[/?#:\s\"'`)>\]]"
_OWN_HOST = (  # of a machine, a network or an example
    r"(?i)[^.]*|(?:127|10|192\.168)\.[0-9.]+|.*\.(?:local|localhost|test|internal|example|invalid)"
    r"|(?:.*\.)?(?:example|company|domain|my-?host|(?:my-?)?server|host|proxy|acme|site)\.[a-z]+"
)
_LEAST_PASSWORD = 6  # characters
_ADDRESS_BEGIN = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{0,30}\Z")
_LONGEST_BEGIN = 31
PASSWORD = re.compile(r"://[^/?#\s:@\"]{0,200}:([^/?#\s@\"$]{1,200})@")  # behind such a beginning
_NAME = r"(?:[a-z0-9]{1,40}[_-]){0,8}(?:token|secret|passw(?:or)?d|passphrase|apikey|key)"
QUERY = re.compile(rf"(?i)[?&;]{_NAME}=([^&#\s\"$]{{8,}})")
# Patterns that few texts need are strings: re compiles and keeps them on first use, not at import.
_MEMBER = rf"(?i)\"(?:{_NAME}|[^\"]{{0,80}}secret[^\"]{{0,80}}|authorization)\"\s*:\s*\"((?:[^\"\\]|\\.)*)\"?"
_SECRET_NAME = re.compile(r"(?i)(?:token|key|passw(?:or)?d|passphrase|credentials?)\Z|secret")
_PLACEHOLDER = re.compile(
    r"(?i)[<>{}$]|\byour|your[_-]|xxx|\*\*\*|\.\.\.|example|placeholder|change.?me|^(?:[~./]|[a-z]:\\)"
)

SECRET_KEYS = frozenset(
    {"command", "args", "arguments", "env", "environment", "headers", "headershelper", "httpheaders"}
    | {"inputs", "url", "serverurl", "baseurl", "uri", "endpoint", "oauth", "provider", "ledger"}
)
"""Keys whose values are secret, with all that is below them; in lower case, without `_` and `-`."""
_SERVERS = ("servers", "mcpservers")

_SAYS_SECRET = re.compile(
    r"(?i)(?:token|key|passw(?:or)?d|passwd|pwd|passphrase|credentials?|cookies?|auth|authorization|bearer|dsn"
    r"|private|signature|(?:\A|[_-])(?:pat|sid|sig|pass|session))\Z|secret|password|credential"
)
_WORDS_END = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_HEADERS = ("provider", "headers")
_URLS = (("ledger", "url"), ("provider", "base_url"))
# user and password of a URL: up to the last @, as a password may hold any character
_USER = re.compile(r"(?s)(?:(?<=://)|\A(?!.*://)).*(?=@)")
_AFTER_PATH = re.compile(r"(?s)(?<=[?#]).+")
_COVER = "********"

# secrets that a line of prose marks as such: `token: …`, `export PGPASSWORD=…`, `--token …`, a default
_OPTION = r"(?<!\S)['\"`]?--?([A-Za-z][\w-]{0,60})['\"`]?[ \t]+(?!-)(\"[^\"]*\"?|'[^']*'?|\S+)"
_ASSIGNED = r"([A-Za-z][\w.-]{0,60})['\"`*]{0,3}[ \t]{0,9}(?:[?:+]?=>?|[:|])['\"`*]{0,3}[ \t]{0,9}(\S.*)"
_ADDRESS = (
    r"(?i)\b[a-z][a-z0-9+.-]{0,30}://(?:([^\s\"'`)>]{1,400})@)?[^?#\s\"'`)>]{0,2000}([?#][^\s\"'`)>]+)?"
)
_OPEN_USER = r"(?i)\b[a-z][a-z0-9+.-]{0,30}://[^/?#\s:@]{0,200}:(?![0-9]{1,5}(?![^/?#\s]))(\S+)"
_REFERENCE = re.compile(r"\$\{(?:env:|input:)?[\w.-]{1,80}\}")
_DEFAULT = r"\$\{[^}:\s]{0,80}:-([^}\r\n]+)"
_HEX = r"(?i)(?<![0-9a-z])(?=[0-9]{0,99}[a-f])(?=[a-f]{0,99}[0-9])[0-9a-f]{16,}(?![0-9a-z])"
_MIXED = (
    r"(?<![\w+/-])(?=[^\s]{0,99}?[0-9])(?=[^\s]{0,99}?[A-Z])(?=[^\s]{0,99}?[a-z])"
    r"[A-Za-z0-9+_-]{20,}={0,2}(?![\w+/-])"
)

# what a text of a conversation assigns to a secret name
_NAME_MARKS = (
    *("token", "secret", "password", "passwd", "passphrase", "api_key", "apikey", "api-key"),
    *("access_key", "access-key", "accesskey", "private_key", "credential"),
)
_VALUE_BEHIND = (
    r"""[\w-]{0,30}((?:\\?["'`])?[ ]{0,3}(?:(?:is[ ]?)?(?:[:=]|=>|:=)|is)?[ ]{0,3})(?:\\?["'`])?"""
    r"""([^\s"'`\\,;&|<>(){}\[\]:=]{6,400})"""
)
_IN_OPTION = r"(?<!\S)--?[\w-]{0,30}\Z"
_ONE_WORD = r"[^\s${}<>]{6,400}"
_CODE_VALUE = r"^[\w$]+(?:\.[A-Za-z_$][\w$]*)+$|/.*\.[A-Za-z]\w{0,4}$"
_LEAST_VALUE = 8  # characters of a value that can be a token or a key
_PRIVATE_KEY = r"-----BEGIN[ A-Z]{0,40}PRIVATE KEY-----[^\"]{0,20000}?-----END[ A-Z]{0,40}PRIVATE KEY-----"

_LONG = 16
_MOST = 65_536  # characters of a value that are searched
_RANDOM_BITS = (
    3.2  # Shannon entropy per character; words and paths stay below 3.2 at these lengths or have no digit
)


def secrets_in(value: str, name: str = "") -> tuple[Span, ...]:
    """Return the ranges of a value that are literal secrets. `name` is the key of the value (rule 4)."""
    spans = [Span(*match.span(match.lastindex or 0)) for match in _matches(value[:_MOST], name)]
    if not spans and _SECRET_NAME.search(name) and _looks_random(value):
        spans = [Span(0, len(value))]
    return tuple(_apart(spans))


def secrets_in_text(text: str) -> tuple[Span, ...]:
    """Return the ranges of a text of any length that are literal secrets by their shape (rules 1 to 3).

    What documentation writes in place of secrets is left out: `https://user:password@host`, a token that
    counts, the first line of a key. To cover secrets, use `cover_literals`, which covers these, too.
    """
    matches = (match for match in _matches(text) if not _is_documentation(match))
    return tuple(_apart([Span(*match.span(match.lastindex or 0)) for match in matches]))


def cover_literals(text: str) -> str:
    """Return the text with every literal secret (rules 1 to 3) replaced by as many `*`."""
    return _covered(text, [Span(*match.span(match.lastindex or 0)) for match in _matches(text)])


def without_secrets(value: Any, name: str = "") -> Any:
    """Return a JSON value with every literal secret replaced by as many `*`.

    `name` is the key of the value.
    """
    if isinstance(value, dict):
        return {key: without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [without_secrets(item, name) for item in value]
    if not isinstance(value, str):
        return value
    for span in secrets_in(value, name):
        value = value[: span.start] + "*" * (span.end - span.start) + value[span.end :]
    return value


def says_secret(name: str) -> bool:
    """Whether a name says that its value is secret: `PGPASSWORD`, `accessToken`, `Cookie`."""
    return _SAYS_SECRET.search(_WORDS_END.sub("_", name)) is not None


def is_secret_place(pointer: Sequence[str | int]) -> bool:
    """Whether a path of keys leads to a value that is secret whatever it looks like."""
    return _stands_for_server(pointer) or any(
        _bare(step) in SECRET_KEYS or says_secret(step) for step in pointer if isinstance(step, str)
    )


def _stands_for_server(pointer: Sequence[str | int]) -> bool:
    """Whether a value stands in place of a server or of all servers: it may be a command line."""
    for index, step in enumerate(pointer):
        if isinstance(step, str) and _bare(step) in _SERVERS:
            return not any(isinstance(member, str) for member in pointer[index + 2 : index + 3])
    return False


def _bare(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def printable_setting(value: Any, pointer: Sequence[str | int] = ()) -> Any:
    """Return a value of config.json as it may be printed, with secrets covered.

    Covered are the provider's headers, all of an address but its host and path, values with a secret name,
    and literal secrets. `pointer` is the value's place in config.json, () for the whole file.
    """
    if isinstance(value, dict):
        return {key: printable_setting(item, (*pointer, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [printable_setting(item, (*pointer, index)) for index, item in enumerate(value)]
    setting_pointer = tuple(pointer)
    if setting_pointer[: len(_HEADERS)] == _HEADERS and value is not None:
        return _COVER
    if setting_pointer in _URLS and isinstance(value, str):
        value = _AFTER_PATH.sub(_COVER, _USER.sub(_COVER, value))
    name = next((step for step in reversed(setting_pointer) if isinstance(step, str)), "")
    if isinstance(value, str) and says_secret(name):
        return _COVER
    return without_secrets(value, name)


def redact(text: str) -> str:
    """Return the text with secrets replaced by as many `*`.

    Secrets are literal secrets and JSON values with a secret name.
    """
    matches = [*_matches(text), *re.finditer(_MEMBER, text)]
    return _covered(text, [Span(*match.span(match.lastindex or 0)) for match in matches])


def redact_message(text: str) -> str:
    """Cover secrets in a text of a conversation: those of `redact`, and values assigned to a secret name.

    Such a value is covered only if it can be a secret: `DB_PASSWORD=harbour9` and `--token …` are covered,
    `password: str` is not. If a private key has an end, nothing after the end is covered.
    """
    keys = re.finditer(_PRIVATE_KEY, text) if "-----BEGIN" in text else ()
    spans = [*(Span(*match.span()) for match in keys), *_assigned(text)]
    return redact(_covered(text, spans) if spans else text)


def redact_arguments(value: Any, name: str = "") -> Any:
    """Return the arguments of a tool call with every text in them covered as by `redact_message`.

    `name` is the key of the value. A value of one word under a secret name is covered completely.
    """
    if isinstance(value, dict):
        return {key: redact_arguments(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        return [redact_arguments(item, name) for item in value]
    if not isinstance(value, str):
        return value
    if any(mark in name.lower() for mark in _NAME_MARKS) and re.fullmatch(_ONE_WORD, value):
        return _COVER
    return redact_message(value)


def _assigned(text: str) -> Iterator[Span]:
    """The values that follow a secret name."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose lower case is longer
        lowered = text
    for mark in _NAME_MARKS:
        mark_start = lowered.find(mark)
        while mark_start >= 0:
            end = mark_start + len(mark)
            match = re.compile(_VALUE_BEHIND).match(text, end)
            if match is not None and _can_be_secret(
                match, mark, text[max(mark_start - _LONGEST_BEGIN, 0) : mark_start]
            ):
                yield Span(*match.span(2))
            mark_start = lowered.find(mark, end)


def _can_be_secret(match: re.Match[str], mark: str, text_before: str) -> bool:
    """Whether a value behind a name that contains `mark` is a literal."""
    value = match[2]
    if match[1].isspace() and not re.search(_IN_OPTION, text_before):
        return False
    if value.isdigit() or not any(char.isdigit() for char in value):
        return False
    if _PLACEHOLDER.search(value) or re.search(_CODE_VALUE, value):
        return False
    return mark.startswith("pass") or len(value) >= _LEAST_VALUE


def redact_prose(line: str) -> str:
    """Cover secrets in a line of prose or of a script: those of `redact`, and more.

    It also covers what follows a secret name, all of an address but its host and path, the default of a
    reference, and long keys.
    """
    spans = [Span(*match.span(1)) for match in re.finditer(_DEFAULT, line)]
    spans += [Span(*match.span(2)) for match in re.finditer(_OPTION, line) if says_secret(match[1])]
    addresses = list(re.finditer(_ADDRESS, line))
    spans += [Span(*match.span(1)) for match in re.finditer(_OPEN_USER, line)]
    spans += [Span(*match.span(group)) for match in addresses for group in (1, 2) if match[group]]
    spans += [Span(*match.span()) for pattern in (_HEX, _MIXED) for match in re.finditer(pattern, line)]
    at = 0
    while match := re.compile(_ASSIGNED).search(line, at):
        if says_secret(match[1]):
            spans.append(Span(*match.span(2)))
            break
        at = match.end(1)
    return redact(_covered(line, spans))


def _covered(text: str, spans: list[Span]) -> str:
    """The text with spans covered by as many `*`; a reference is not a secret."""
    parts, end = [], 0
    for span in _apart(spans):
        covered = text[span.start : span.end]
        parts += [text[end : span.start], covered if _REFERENCE.fullmatch(covered) else "*" * len(covered)]
        end = span.end
    return "".join([*parts, text[end:]])


def _matches(text: str, name: str = "") -> list[re.Match[str]]:
    """The secrets among the matches of the patterns; `name` is the key of the text."""
    return [
        match
        for match in find_candidates(text)
        if not _PLACEHOLDER.search(match[match.lastindex or 0])
        and (match.re is not SCHEME or _is_credential(match, name))
    ]


def _is_credential(match: re.Match[str], name: str) -> bool:
    """Whether what follows a scheme is a credential (rule 2)."""
    value = match[1].rstrip(".,-")
    if is_example(value):
        return False
    return is_opaque(value) or user_and_password(value) is not None or _is_header(match, name)


def _is_header(match: re.Match[str], name: str) -> bool:
    start = match.start()
    if name and not start:
        return says_secret(name) or not _is_basic(match)
    return re.search(_HEADER, match.string[max(start - _NEAR, 0) : start]) is not None


def _is_basic(match: re.Match[str]) -> bool:
    return match[0].lower().startswith("bas")


def _is_documentation(match: re.Match[str]) -> bool:
    """Whether a match shows people how a secret is written, and is none itself."""
    text, value = match.string, match[match.lastindex or 0]
    if match.re is TOKEN:
        if value.startswith("-----"):
            return re.compile(_KEY_BODY).match(text, match.start()) is None
        return is_published_example(value) or (value.startswith("sk-") and not is_opaque(value))
    if match.re is SCHEME:
        pair = user_and_password(value)
        if is_example(value) or is_published_example(value):
            return True
        if pair is None and not is_opaque(value):
            is_code = re.search(_CODE_VALUE, value) or re.compile(_NEXT_WORD).match(text, match.end())
            return is_code is not None or _is_basic(match)
        return pair is not None and is_example(pair[1])
    if match.re is QUERY:
        value = re.split(_AFTER_VALUE, value)[0]
        is_public = re.search(_PUBLIC, text[max(match.start() - _NEAR, 0) : match.start()])
        return not is_opaque(value) or is_published_example(value) or is_public is not None
    host = re.split(_AFTER_HOST, text[match.end() : match.end() + _NEAR])[0]
    if len(value) < _LEAST_PASSWORD or is_example(value) or match[0].startswith(f"://{value}:"):
        return True
    return re.fullmatch(_OWN_HOST, host) is not None and not _looks_random(value)


def find_candidates(text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of the four patterns.

    A long text is searched only for patterns whose mark it contains.
    """
    if _has_one(_TOKEN_MARKS, text):
        yield from TOKEN.finditer(text)
    if _has_one(_SCHEME_MARKS, text.lower()) or _has_one(_OTHER_CASES, text):
        yield from SCHEME.finditer(text)
    yield from _passwords(text)
    yield from QUERY.finditer(text)


def _has_one(marks: Sequence[str], text: str) -> bool:
    for mark in marks:  # noqa: SIM110 - a generator takes three times as long for short texts
        if mark in text:
            return True
    return False


def _passwords(text: str) -> Iterator[re.Match[str]]:
    """Passwords of addresses; most addresses have none and are skipped at once."""
    end = 0  # of the last match
    separator = text.find("://")
    while separator >= 0:
        match = PASSWORD.match(text, separator)
        if match is None or not _ADDRESS_BEGIN.search(text, max(end, separator - _LONGEST_BEGIN), separator):
            separator = text.find("://", separator + 3)
            continue
        yield match
        end = match.end()
        separator = text.find("://", end)


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
