"""Fills in the sentences that the model sees, files under `texts/`. Every character keeps its source.

1. `{name}` is a placeholder; a value is a list of pieces or None.
2. A line with a placeholder whose value is None is left out, with its line end.
3. Values are never searched for placeholders.
4. A line made from a setting, a table row or a path is traced as a whole to the place of that value.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.disk.files import PROMPT_LIMIT, read_text
from nexus_context.errors import Span

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

DIRECTORY = Path(__file__).parent / "texts"
DEFAULT_TIME_FORMAT = "YYYY-MM-DD HH:mm"
NOWHERE = Span(0, 0)

_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_TIME_PART = re.compile(r"YYYY|YY|MMMM|MMM|MM|DD|dddd|ddd|HH|hh|mm|ss|A")
_DIRECTIVES = {
    "YYYY": "%Y",
    "YY": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "DD": "%d",
    "dddd": "%A",
    "ddd": "%a",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
    "A": "%p",
}


class Piece(NamedTuple):
    """A part of the prompt and where it came from.

    If `verbatim`, `text` is that file's `source` range with its line ends as `\\n`. Otherwise `text` is
    derived from what stands there (a setting's value, a table row, a heading for the file).
    """

    text: str
    path: str | None = None
    source: Span = NOWHERE
    verbatim: bool = False


Values = Mapping[str, Iterable[Piece] | None]


class _Line(NamedTuple):
    """A line of a text: its literal parts and placeholders, in order, each with its range."""

    parts: tuple[tuple[Span, str | None], ...]
    start: int


class _Text(NamedTuple):
    path: str
    text: str
    lines: tuple[_Line, ...]


def text(name: str) -> str:
    """Return the text `texts/<name>.md` as it stands, without its last line end."""
    return _load(name).text


def table(name: str) -> dict[str, str]:
    """Return the lines `key: text` of `texts/<name>.md` as key → text."""
    return dict(line.split(": ", 1) for line in text(name).splitlines())


def fill(name: str, values: Values) -> list[Piece]:
    """Return the text `texts/<name>.md` with its placeholders filled in, without its last line end."""
    loaded = _load(name)
    pieces: list[Piece] = []
    for line in loaded.lines:
        if any(slot is not None and values[slot] is None for _, slot in line.parts):
            continue
        if pieces:
            pieces.append(Piece("\n", loaded.path, Span(line.start - 1, line.start), True))
        pieces.extend(_fill_line(loaded, line, values))
    return pieces


def retraced(pieces: Iterable[Piece], name: str, path: str, source: Span = NOWHERE) -> list[Piece]:
    """Trace the text of `texts/<name>.md` in the pieces to a place in the user's own file instead."""
    text_path = _load(name).path
    return [Piece(piece.text, path, source) if piece.path == text_path else piece for piece in pieces]


def cut(path: str, content: str, span: Span) -> Piece:
    """Return the verbatim piece of a file's text, with its line ends as `\\n`."""
    return Piece(unix_lines(content[span.start : span.end]), path, span, True)


def unix_lines(content: str) -> str:
    """Return the text with `\\r\\n` and `\\r` as `\\n`."""
    return content.replace("\r\n", "\n").replace("\r", "\n") if "\r" in content else content


def trimmed(content: str, span: Span) -> Span:
    """Return the span without white space at both ends. If nothing remains, it is empty, at its start."""
    span_text = content[span.start : span.end]
    start = span.start + len(span_text) - len(span_text.lstrip())
    end = span.end - (len(span_text) - len(span_text.rstrip()))
    return Span(start, end) if start < end else Span(span.start, span.start)


def moment(now: datetime, settings: Mapping[str, Any], *, zone: str | None = None) -> dict[str, str]:
    """Return a time as texts: `moment` (date and time), `date` and `zone`.

    `now` has a zone. `settings` are those of `context.datetime`; `zone` replaces their time zone. If the zone
    is unknown, `now` stays in its own.
    """
    name: str = zone or settings.get("timezone") or "local"
    time_zone = None if name == "local" else _zone(name)
    local = now if time_zone is None else now.astimezone(time_zone)
    pattern = settings.get("format") or DEFAULT_TIME_FORMAT
    offset = local.strftime("%z")
    name = f"UTC{offset[:3]}:{offset[3:5]}" if name == "local" and offset else name
    formatted = _TIME_PART.sub(lambda directive: local.strftime(_DIRECTIVES[directive[0]]), pattern)
    return {"moment": formatted, "date": f"{local:%Y-%m-%d}", "zone": name}


def is_zone(name: str) -> bool:
    """Whether a name is `local` or the IANA name of a time zone."""
    return name == "local" or _zone(name) is not None


def _zone(name: str) -> "ZoneInfo | None":
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # rarely needed

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _fill_line(loaded: _Text, line: _Line, values: Values) -> list[Piece]:
    pieces: list[Piece] = []
    traced_piece: Piece | None = None
    for span, slot in line.parts:
        if slot is None:
            pieces.append(Piece(loaded.text[span.start : span.end], loaded.path, span, True))
            continue
        value = list(values[slot] or ())
        if traced_piece is None and len(value) == 1 and value[0].path and not value[0].verbatim:
            traced_piece = value[0]
        # text without a file (a host name) is traced to its place in the sentence
        pieces.extend(piece if piece.path else Piece(piece.text, loaded.path, span) for piece in value)
    if traced_piece is None:
        return pieces
    return [Piece("".join(piece.text for piece in pieces), traced_piece.path, traced_piece.source)]


@functools.cache
def _load(name: str) -> _Text:
    path = str(DIRECTORY / f"{name}.md")
    content = read_text(path, limit=PROMPT_LIMIT).text
    if content is None:
        raise FileNotFoundError(
            f"the installation is incomplete: {path} cannot be read; install nexusd again"
        )
    content = content.removesuffix("\n")
    lines: list[_Line] = []
    start = 0
    for line in content.split("\n"):
        lines.append(_Line(tuple(_parts(line, start)), start))
        start += len(line) + 1
    return _Text(path, content, tuple(lines))


def _parts(line: str, start: int) -> Iterator[tuple[Span, str | None]]:
    position = 0
    for match in _PLACEHOLDER.finditer(line):
        if match.start() > position:
            yield Span(start + position, start + match.start()), None
        yield Span(start + match.start(), start + match.end()), match[1]
        position = match.end()
    if position < len(line):
        yield Span(start + position, start + len(line)), None
