"""JSON values that another program wrote, and that may be anything."""

import re
from datetime import datetime
from typing import Any

import msgspec

LARGEST_COUNT = 1 << 53
"""Tokens; a larger number cannot be JSON of JavaScript, and no column of a ledger holds one of 400 digits."""
_HALF_PAIR = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u[dD][c-fC-F]\w\w|u([dD][89a-fA-F])\w\w|.)", re.DOTALL)


def decode_value(text: str) -> tuple[Any, str]:
    """The value of a JSON text; or None and the error.

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
    """A JSON object; empty for anything else."""
    try:
        value = msgspec.json.decode(data) if isinstance(data, str | bytes) else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def field(value: Any, *path: str) -> Any:
    """A value inside objects; None if there is none."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_in(value: Any, *path: str) -> str | None:
    """A text inside objects; None if there is none, or it is empty."""
    inner_value = field(value, *path)
    return inner_value if isinstance(inner_value, str) and inner_value else None


def objects_in(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """A text that is not blank."""
    return value if isinstance(value, str) and value.strip() else None


def count(values: Any, name: str) -> int:
    """A number of tokens; 0 for anything else, also for one that no provider can have counted."""
    value = values.get(name) if isinstance(values, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return 0
    return value if 0 <= value <= LARGEST_COUNT else 0


def seconds(time: Any) -> float:
    """The seconds since 1970 of a record's time; 0 if it has none."""
    try:
        return datetime.fromisoformat(time).timestamp() if isinstance(time, str) else 0.0
    except (ValueError, OverflowError, OSError):
        return 0.0


def _replace_surrogate(escape: re.Match[str]) -> str:
    return r"\ufffd" if escape[1] else escape[0]
