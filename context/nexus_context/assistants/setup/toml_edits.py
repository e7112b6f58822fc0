"""Puts entries into a TOML text and takes them out again; every other character stays.

1. Setup appends tables, because a table may follow any text. If the file already has a value that a table
   cannot extend (an inline table), setup says so and changes nothing.
2. No comment marks the end of what was appended. Programs that write the file keep comments with the table
   below them, and so would put their own tables in front of such a mark.
3. Undo removes the appended text where it still stands, else each of its tables. An entry that the settings
   have but undo cannot find in the text is reported.
"""

import json
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from nexus_context.assistants.setup.json_edits import (
    BOM,
    cut_insertions,
    has_entry,
    missing_containers,
    settings_without,
    value_at,
)
from nexus_context.assistants.setup.setup_types import (
    EditedText,
    FileRecord,
    Insertion,
    SettingsEntry,
    SettingsError,
)


def parse_tables(path: str, text: str) -> dict[str, Any]:
    """Parse a TOML text. Raise SettingsError if it is broken."""
    try:
        return tomllib.loads(text.removeprefix(BOM))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(
            f"{_locate_error(path, str(error))} Nothing was written: fix the file first."
        ) from error


def add_entries(path: str, text: str, entries: Sequence[SettingsEntry], comment: str) -> EditedText:
    """Append tables for entries, below a comment, to a text that does not have them yet. Raise SettingsError
    if a value there cannot become a table.
    """
    tables_before = parse_tables(path, text)
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = "" if not text.removeprefix(BOM) else newline if text.endswith("\n") else newline * 2
    lines = [f"# {comment}", *_joined(_tables(entry) for entry in entries)]
    added = lead + "".join(line + newline for line in lines)
    try:
        tables_after = tomllib.loads((text + added).removeprefix(BOM))
    except tomllib.TOMLDecodeError:
        tables_after = {}
    if not all(has_entry(tables_after, entry) for entry in entries):
        names = ", ".join(
            f"`{'.'.join(entry.container)}`" for entry in entries if value_at(tables_before, entry.container)
        )
        raise SettingsError(
            f"{path}: {names or 'a value'} is written in one line, so no table can be added to it. "
            "Nothing was written: write it as tables first."
        )
    return EditedText(
        text + added, (Insertion(len(text), added),), missing_containers(tables_before, entries)
    )


def remove_entries(path: str, text: str, record: FileRecord) -> str:
    """Return the text without what setup put into it, as `record` has it. Raise SettingsError if the text is
    broken, or an entry cannot be found in it.
    """
    remaining_settings = settings_without(parse_tables(path, text), record)
    exact = cut_insertions(text, record.insertions)
    if exact is not None and parse_tables(path, exact) == remaining_settings:
        return exact
    present_entries = [entry for entry in record.entries if has_entry(parse_tables(path, text), entry)]
    remaining_text = text
    for entry in present_entries:
        remaining_text = _cut_tables(remaining_text, entry)
    try:
        is_right = parse_tables(path, remaining_text) == remaining_settings
    except SettingsError:
        is_right = False
    if not is_right:
        names = ", ".join(entry.title for entry in present_entries)
        raise SettingsError(f"{path}: {names} was changed since. Remove it by hand; nothing was written.")
    return remaining_text


def _cut_tables(text: str, entry: SettingsEntry) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    block = "".join(line + newline for line in _tables(entry))
    block_with_newline = newline + block
    return (
        text.replace(block_with_newline, "", 1) if block_with_newline in text else text.replace(block, "", 1)
    )


def _tables(entry: SettingsEntry) -> list[str]:
    """The lines of an entry: a table, or an item of a list of tables."""
    path = (*entry.container, *(() if entry.key is None else (entry.key,)))
    name = ".".join(_key(step) for step in path)
    head = f"[{name}]" if entry.key is not None else f"[[{name}]]"
    return [head, *_members(entry.value, name)]


def _members(value: dict[str, Any], name: str) -> Iterator[str]:
    inner = {key: item for key, item in value.items() if _is_tables(item)}
    for key, item in value.items():
        if key not in inner:
            yield f"{_key(key)} = {_inline(item)}"
    for key, items in inner.items():
        for item in items:
            yield f"[[{name}.{_key(key)}]]"
            yield from _members(item, f"{name}.{_key(key)}")


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _inline(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    is_bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if is_bare else json.dumps(name, ensure_ascii=False)


def _joined(blocks: Iterator[list[str]]) -> Iterator[str]:
    """The lines of blocks with an empty one between two of them."""
    for number, block in enumerate(blocks):
        if number:
            yield ""
        yield from block


def _locate_error(path: str, message: str) -> str:
    """What tomllib says, with the place in front: `path:3:7: Expected …`."""
    text, _, location = message.rpartition(" (at ")
    words = location.rstrip(")").replace(",", "").split()
    if text and len(words) == 4 and words[0] == "line":
        return f"{path}:{words[1]}:{words[3]}: {text}."
    return f"{path}: {text or message}."
