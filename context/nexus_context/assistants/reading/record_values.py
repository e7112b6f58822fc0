"""Reads JSON values that another program wrote, and that may be anything."""

import re
from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

LARGEST_COUNT = 1 << 53
"""Tokens; a larger number cannot be JSON of JavaScript, and no column of a ledger holds one of 400 digits."""
COUNTED = ("_tokens", "_requests")
"""How the names of counts end."""
_HALF_PAIR = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u([dD][89a-fA-F])\w\w|.)", re.DOTALL)


def decode_value(text: str) -> tuple[Any, str]:
    """Decode a JSON text. Return its value and an empty text, or None and the error.

    Half a surrogate pair, which JavaScript writes if it cuts an emoji in two, becomes U+FFFD.
    """
    try:
        return msgspec.json.decode(text), ""
    except (msgspec.DecodeError, UnicodeEncodeError) as failure:
        error = str(failure)
    except RecursionError:
        return None, "its values are nested too deeply"
    if "\\ud" not in text and "\\uD" not in text:
        return None, error
    try:
        return msgspec.json.decode(_HALF_PAIR.sub(_replace_surrogate, text)), ""
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None, error
    except RecursionError:
        return None, "its values are nested too deeply"


def decode_object(data: object) -> dict[str, Any]:
    """Decode a JSON object. Return an empty one for anything else."""
    try:
        value = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def field(value: Any, *path: str) -> Any:
    """Return the value that keys lead to inside objects, else None."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_in(value: Any, *path: str) -> str | None:
    """Return the text that keys lead to inside objects, else None. An empty text counts as none."""
    inner_value = field(value, *path)
    return inner_value if isinstance(inner_value, str) and inner_value else None


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list. Return an empty list for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """Return a value that is a text and not blank, else None."""
    return value if isinstance(value, str) and value.strip() else None


def count(values: Any, name: str) -> int:
    """Return the number of tokens under a name, else 0. A number that no provider can have counted is
    0, too.
    """
    return count_of(values.get(name)) if isinstance(values, dict) else 0


def count_of(value: Any) -> int:
    """Return a value as a number of tokens, else 0, as `count` does. JSON may write it with a fraction of
    zero.
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value <= LARGEST_COUNT and value == int(value) else 0


def unread_counts(values: dict[str, Any], known: Collection[str]) -> list[str]:
    """Return the keys of a usage that are not known, and those of numbers that `count_of` does not accept."""
    return [
        key
        for key, value in values.items()
        if key not in known
        or (key.endswith(COUNTED) and value is not None and value != 0 and not count_of(value))
    ]


def seconds(time: Any) -> float:
    """Return a record's time (ISO 8601) as seconds since 1970, 0 if it is no time."""
    try:
        return datetime.fromisoformat(time).timestamp() if isinstance(time, str) else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def _replace_surrogate(escape: re.Match[str]) -> str:
    return r"\ufffd" if escape[1] else escape[0]
