"""Makes characters visible that could steer a terminal: control and bidirectional characters.

A C0 control character becomes its picture (`␛`), DEL becomes `␡`, all others become `�`. Each is replaced by
one character, so that columns stay the same. Tabs and line ends stay, a carriage return only in a line end.
Characters that only join or separate letters (U+200D in an emoji) are text, and stay.
"""

import re

_STEERING = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb]|\r(?!\n)"
)
_STEERING_LINE = re.compile("[\r\n]|" + _STEERING.pattern)
_PICTURES = 0x2400
_DELETE = "\x7f"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"


def visible(text: str) -> str:
    """Return a text of several lines in which nothing steers a terminal. Line ends stay."""
    return _STEERING.sub(_picture, text)


def visible_line(text: str) -> str:
    """Like `visible`, but line ends are made visible, too: a file name cannot start a new line."""
    return _STEERING_LINE.sub(_picture, text)


def visible_json(text: str) -> str:
    """Return JSON of the same value in which every character that could steer a terminal is escaped."""
    return _STEERING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _picture(match: re.Match[str]) -> str:
    char = match[0]
    if char < " ":
        return chr(_PICTURES + ord(char))
    return "\N{SYMBOL FOR DELETE}" if char == _DELETE else _UNKNOWN
