"""Words and times as people read them; nothing in them steers a terminal."""

import re
from datetime import datetime

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str) -> str:
    """A line without what could steer a terminal."""
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def harmless_page(text: str) -> str:
    """As `harmless` for text of several lines: line ends and tabs stay."""
    return _CONTROL.sub(" ", text)


def harmless_json(text: str) -> str:
    """JSON that says the same, with escapes for what could steer a terminal."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def local(stamp: str) -> str:
    """A time as people here read it; what is no time as it is."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return harmless(stamp)
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
