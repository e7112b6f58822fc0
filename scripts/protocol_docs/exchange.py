"""Recorded exchanges: a line of each for docs/protocol.md, all of each for a page that is not committed."""

import json
import re
from collections.abc import Iterator

from protocol_docs.examples import Examples, Json

# how much of an example is shown, from much to little: keys of an object, items of a list, characters
LEVELS = (
    (30, 3, 120),
    (12, 3, 80),
    (10, 2, 60),
    (8, 2, 40),
    (6, 1, 40),
    (5, 1, 32),
    (4, 1, 28),
    (3, 1, 24),
    (2, 1, 20),
)
UNSAID = "workspaceFolder"  # all examples are about two folders
NUMBER = re.compile(r"\d+(?:\.\d+)?")
CUT = "…"


def one_line(value: Json, room: int, *, depth: int = 2) -> str:
    """JSON of at most `room` characters, cut where there is a `…`: also all that lies below `depth`."""
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key != UNSAID}
    text = ""
    for keys, items, characters in LEVELS:
        text = _text(value, keys, items, characters, depth)
        if len(without_figures(text)) <= room:
            break
    return text


def without_figures(text: str) -> str:
    """The text with the same figure for each number: their sizes differ between machines."""
    return NUMBER.sub("0", text)


def exchanges_page(examples: Examples) -> str:
    """Every exchange in full."""
    return "\n".join(["# Exchanges with a daemon\n", *_sections(examples)])


def _sections(examples: Examples) -> Iterator[str]:
    yield _section("initialize", examples["initialize"])
    yield _section("workspace/executeCommand", examples["command"])
    for part in ("requests", "questions"):
        for method, example in examples[part].items():
            yield _section(method, example)
    for method, params in examples["notifications"].items():
        yield _section(method, {"params": params})
    for name, example in examples["errors"].items():
        yield _section(name, example)


def _section(heading: str, example: Json) -> str:
    blocks = [
        f"{part}:\n\n```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```\n"
        for part, value in example.items()
    ]
    return "\n".join([f"## {heading}\n", *blocks])


def _text(value: Json, keys: int, items: int, characters: int, depth: int) -> str:
    def inner(item: Json) -> str:
        return _text(item, keys, items, characters, depth - 1)

    if isinstance(value, dict):
        if value and depth < 0:
            return f"{{{CUT}}}"
        shown = [f"{json.dumps(key)}: {inner(item)}" for key, item in list(value.items())[:keys]]
        return f"{{{', '.join([*shown, *[CUT] * (len(value) > keys)])}}}"
    if isinstance(value, list):
        if value and depth < 0:
            return f"[{CUT}]"
        return f"[{', '.join([*map(inner, value[:items]), *[CUT] * (len(value) > items)])}]"
    if isinstance(value, str) and len(value) > characters + len(CUT):
        is_path = value.startswith(("/", "file:///"))
        value = CUT + value[-characters:] if is_path else value[:characters] + CUT
    return json.dumps(value, ensure_ascii=False)
