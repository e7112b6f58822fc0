"""Paths into a JSON value, and their text form, the JSON pointer of RFC 6901."""

import re

Pointer = tuple[str | int, ...]
"""Member names (str) and array indices (int, from 0) from the root to a value."""

_INDEX = re.compile(r"0|[1-9][0-9]{0,17}")


def pointer_text(path: Pointer) -> str:
    """Text of a path: `("a", 0, "b/c")` is `/a/0/b~1c`; the root is the empty string."""
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)


def parse_pointer(text: str) -> Pointer:
    """Path of a pointer's text; ValueError if it neither is empty nor begins with a slash.

    The text does not say whether `0` is an index or a name: it becomes an int, and every look-up of
    `JsonDocument` takes either for the other.
    """
    if not text:
        return ()
    if text[0] != "/":
        raise ValueError(f"a JSON pointer is empty or begins with '/': {text!r}")
    steps = [step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/")]
    return tuple(step if (index := as_index(step)) is None else index for step in steps)


def as_index(step: str | int) -> int | None:
    """The array index that a step of a path can stand for, or None: `"0"` and 0, but not `"00"`."""
    if isinstance(step, int):
        return step
    return int(step) if _INDEX.fullmatch(step) else None
