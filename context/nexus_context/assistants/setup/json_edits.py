"""Puts entries into a JSON text and takes them out again; every other character stays.

1. Setup only inserts: a member or an item behind the last one of its container, or behind the opening bracket
   of an empty one. Comments, trailing commas, line ends and indentation stay as they are.
2. Entries whose containers are missing are inserted together, as the first container that is missing.
3. An object or list on one line stays on one line, but an empty one is spread over several.
4. Undo removes the inserted texts where they still stand. What was moved or formatted anew meanwhile is found
   by its value, and removed with its comma and with containers that are empty then.
5. The meaning of the result is checked: it must be the settings without the entries, and nothing else.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from nexus_context.assistants.setup.setup_types import (
    EditedText,
    FileRecord,
    Insertion,
    Path,
    SettingsEntry,
    SettingsError,
    Syntax,
)
from nexus_context.errors import Severity
from nexus_context.text import json as jsontext
from nexus_context.text.json import JsonDocument
from nexus_context.text.lines import LineIndex

LENIENT = ("json.comment", "json.trailing-comma", "json.empty")
"""Problems of a text that JSON with comments does not have."""
BOM = "\ufeff"
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*(?:[^*]|\*(?!/))*\*/)*+")
_INDENT = re.compile(r"[ \t]*")
_STEP = "  "


def parse_settings(path: str, text: str) -> JsonDocument:
    """Parse a settings file. Raise SettingsError if it is broken or not an object."""
    document = jsontext.parse(path, text)
    for problem in document.problems:
        if problem.severity is Severity.ERROR and problem.code not in LENIENT:
            line, column = LineIndex(text).position(problem.span.start)
            raise SettingsError(
                f"{path}:{line + 1}:{column + 1}: {problem.message} Nothing was written: fix the file first."
            )
    if document.value is not None and not isinstance(document.value, dict):
        raise SettingsError(
            f"{path}:1: The settings are not an object. Nothing was written: fix the file first."
        )
    return document


def first_leniency(path: str, text: str, syntax: Syntax) -> str | None:
    """Return why the program refuses a file that setup can edit: its first comment or trailing comma. Return
    None if it accepts the file.
    """
    body = text.removeprefix(BOM)
    if syntax not in ("json", "commented") or not body.strip():
        return None
    refused_codes = LENIENT if syntax == "json" else ("json.trailing-comma",)
    problems = [problem for problem in jsontext.parse(path, body).problems if problem.code in refused_codes]
    if not problems:
        return None
    line, _ = LineIndex(body).position(problems[0].span.start)
    noun = "trailing comma" if problems[0].code == "json.trailing-comma" else "comment"
    return f"{path}:{line + 1}: the program does not load a file with a {noun}"


def add_entries(path: str, text: str, entries: Sequence[SettingsEntry]) -> EditedText:
    """Add entries to the text of a settings file, which must not have them yet. Raise SettingsError if they
    cannot be added.
    """
    mark = BOM if text.startswith(BOM) else ""
    edit = _Edit(path, text[len(mark) :])
    for base, group in _groups(edit.document.value or {}, path, entries).items():
        edit.insert(base, group)
    insertions = tuple(
        Insertion(insertion.offset + len(mark), insertion.text) for insertion in edit.insertions
    )
    return EditedText(mark + edit.text, insertions, missing_containers(edit.before, entries))


def remove_entries(path: str, text: str, record: FileRecord) -> str:
    """Return the text without what setup put into it, as `record` has it. Raise SettingsError if the text is
    broken.
    """
    mark = BOM if text.startswith(BOM) else ""
    body = text[len(mark) :]
    remaining_settings = settings_without(parse_settings(path, body).value or {}, record)
    exact = cut_insertions(text, record.insertions)
    if exact is not None and _has_value(path, exact.removeprefix(BOM), remaining_settings, body):
        return exact
    for entry in record.entries:
        body = _cut_entry(path, body, entry)
    for container in record.containers:
        body = _cut_if_empty(path, body, container)
    return mark + body


def has_entry(value: Any, entry: SettingsEntry) -> bool:
    """Whether settings have exactly this entry."""
    container = value_at(value, entry.container)
    if entry.key is None:
        return isinstance(container, list) and entry.value in container
    return isinstance(container, dict) and container.get(entry.key) == entry.value


def missing_containers(value: Any, entries: Iterable[SettingsEntry]) -> tuple[Path, ...]:
    """List the containers of entries that settings do not have, the innermost first."""
    steps = ((entry.container, range(1, len(entry.container) + 1)) for entry in entries)
    paths = {container[:length] for container, lengths in steps for length in lengths}
    missing = (path for path in paths if not _has(value, path))
    return tuple(sorted(missing, key=lambda path: (-len(path), path)))


# ---------------------------------------------------------------- inserting


class _Edit:
    """A text that gets entries, one insertion after the other."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self.before = parse_settings(path, text).value or {}
        self.text = text
        self.insertions: list[Insertion] = []

    @property
    def document(self) -> JsonDocument:
        return parse_settings(self._path, self.text)

    def insert(self, base: Path, entries: Sequence[SettingsEntry]) -> None:
        """Insert what entries lack into the container at `base`, behind its last member or item."""
        document = self.document
        newline = "\r\n" if "\r\n" in self.text else "\n"
        if document.value is None:  # an empty file, or one with comments only
            lead = "" if not self.text or self.text.endswith("\n") else newline
            value = dict(_members_of(entries, 0))
            self._put(len(self.text), lead + _written(value, newline, _STEP, "") + newline)
            return
        span = document.span(base)
        ends = [document.span((*base, name)).end for name in _names(value_at(document.value, base))]
        members = _members_of(entries, len(base))
        inside = self.text[span.start : span.end]
        if ends and "\n" not in inside:
            texts = (_member(key, json.dumps(value, ensure_ascii=False)) for key, value in members)
            self._put(max(ends), "".join(f", {text}" for text in texts))
            return
        outer = _line_indent(self.text, span.start)
        step = self._step(document, base, outer)
        lead = f"{newline}{outer}{step}"
        lines = f",{lead}".join(
            _member(key, _written(value, newline, step, outer + step)) for key, value in members
        )
        if ends:
            self._put(max(ends), f",{lead}{lines}")
        else:
            close = "" if "\n" in inside else newline + outer
            self._put(span.start + 1, f"{lead}{lines}{close}")

    def _put(self, offset: int, text: str) -> None:
        moved = (
            Insertion(insertion.offset + len(text), insertion.text)
            if insertion.offset >= offset
            else insertion
            for insertion in self.insertions
        )
        self.insertions = [*moved, Insertion(offset, text)]
        self.text = self.text[:offset] + text + self.text[offset:]

    def _step(self, document: JsonDocument, base: Path, indent: str) -> str:
        """The indent of one level, taken from the members of this container, else from those of the file."""
        for container, outer in ((base, indent), ((), "")):
            for name in _names(value_at(document.value, container)):
                span = document.key_span((*container, name)) or document.span((*container, name))
                inner = _line_indent(self.text, span.start)
                starts_line = self.text[: span.start].endswith(("\n" + inner, "\r" + inner))
                if starts_line and inner.startswith(outer) and inner != outer:
                    return inner[len(outer) :]
        return _STEP


def _groups(value: Any, path: str, entries: Sequence[SettingsEntry]) -> dict[Path, list[SettingsEntry]]:
    """Entries by the innermost of their containers that is there."""
    groups: dict[Path, list[SettingsEntry]] = {}
    for entry in entries:
        length = 0
        while length < len(entry.container) and _has(value, entry.container[: length + 1]):
            length += 1
        base = entry.container[:length]
        _check_container(value, path, entry, base)
        groups.setdefault(base, []).append(entry)
    return groups


def _check_container(value: Any, path: str, entry: SettingsEntry, base: Path) -> None:
    container = value_at(value, base)
    is_list = entry.key is None and base == entry.container
    if not isinstance(container, list if is_list else dict):
        noun = "a list" if is_list else "an object"
        raise SettingsError(
            f"{path}: `{'.'.join(base)}` is not {noun}. Nothing was written: fix the file first."
        )
    if entry.key is not None and base == entry.container and entry.key in container:
        raise SettingsError(f"{path}: `{entry.title}` is there already. Nothing was written.")


def _members_of(entries: Sequence[SettingsEntry], depth: int) -> list[tuple[str | None, Any]]:
    """The members, or items without a key, that entries add to a container `depth` steps deep."""
    members: list[tuple[str | None, Any]] = []
    inner: dict[str, list[SettingsEntry]] = {}
    for entry in entries:
        if len(entry.container) == depth:
            members.append((entry.key, entry.value))
        else:
            inner.setdefault(entry.container[depth], []).append(entry)
    for name, group in inner.items():
        nested = _members_of(group, depth + 1)
        is_list = any(key is None for key, _ in nested)
        members.append((name, [value for _, value in nested] if is_list else dict(nested)))
    return members


def _member(key: str | None, text: str) -> str:
    return text if key is None else f"{json.dumps(key, ensure_ascii=False)}: {text}"


def _written(value: Any, newline: str, step: str, indent: str) -> str:
    """A value as indented text, whose first line is not indented."""
    lines = json.dumps(value, ensure_ascii=False, indent=step).split("\n")
    return (newline + indent).join(lines)


def _line_indent(text: str, offset: int) -> str:
    """The blanks at the beginning of the line of an offset."""
    start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    match = _INDENT.match(text, start, offset)
    return "" if match is None else match[0]


# ---------------------------------------------------------------- removing


def cut_insertions(text: str, insertions: Sequence[Insertion]) -> str | None:
    """Cut insertions out of a text, each where it was made or as near as possible. Return None if one is
    missing.
    """
    for insertion in sorted(insertions, key=lambda insertion: -insertion.offset):
        at = _nearest(text, insertion)
        if at is None:
            return None
        text = text[:at] + text[at + len(insertion.text) :]
    return text


def _nearest(text: str, insertion: Insertion) -> int | None:
    if text.startswith(insertion.text, insertion.offset):
        return insertion.offset
    offset_before = text.rfind(insertion.text, 0, insertion.offset + len(insertion.text))
    offset_after = text.find(insertion.text, insertion.offset)
    offsets = [offset for offset in (offset_before, offset_after) if offset >= 0]
    return min(offsets, key=lambda offset: abs(offset - insertion.offset), default=None)


def _cut_entry(path: str, text: str, entry: SettingsEntry) -> str:
    """The text without an entry that has the recorded value; unchanged if there is none."""
    document = parse_settings(path, text)
    if not has_entry(document.value, entry):
        return text
    if entry.key is not None:
        return _cut(document, (*entry.container, entry.key))
    items = value_at(document.value, entry.container)
    return _cut(document, (*entry.container, len(items) - 1 - items[::-1].index(entry.value)))


def _cut_if_empty(path: str, text: str, container: Path) -> str:
    document = parse_settings(path, text)
    if value_at(document.value, container) not in ({}, []):
        return text
    span = document.span(container)
    is_blank = not document.text[span.start + 1 : span.end - 1].strip()  # there is not even a comment
    return _cut(document, container) if is_blank else text


def _cut(document: JsonDocument, pointer: tuple[str | int, ...]) -> str:
    """The text without a member or item, its line and one comma."""
    text, value = document.text, document.span(pointer)
    key = document.key_span(pointer)
    start, end = (value if key is None else key).start, value.end
    after_value = _skip(text, end)
    if text[after_value : after_value + 1] == ",":
        return text[: _blank_start(text, start)] + text[after_value + 1 :]
    siblings = [
        document.span((*pointer[:-1], name)).end
        for name in _names(value_at(document.value, pointer[:-1]))
        if name != pointer[-1]
    ]
    ends_before = [sibling for sibling in siblings if sibling <= start]
    if not ends_before:
        close = _blank_end(text, end)
        return text[: _blank_start(text, start)] + text[close if text[close : close + 1] in "}]" else end :]
    comma = _skip(text, max(ends_before))
    return text[:comma] + text[comma + 1 : _blank_start(text, start)] + text[end:]


def _skip(text: str, offset: int) -> int:
    """The offset behind blanks and comments."""
    match = _TRIVIA.match(text, offset)
    return offset if match is None else match.end()


def _blank_start(text: str, offset: int) -> int:
    while offset and text[offset - 1] in " \t\r\n":
        offset -= 1
    return offset


def _blank_end(text: str, offset: int) -> int:
    while offset < len(text) and text[offset] in " \t\r\n":
        offset += 1
    return offset


# ---------------------------------------------------------------- values


def _has_value(path: str, text: str, value: Any, original: str) -> bool:
    """Whether a text has this value and only comments and trailing commas that `original` has, too."""
    try:
        document = parse_settings(path, text)
    except SettingsError:
        return False
    commas = [
        sum(problem.code == "json.trailing-comma" for problem in problems)
        for problems in (document.problems, jsontext.parse(path, original).problems)
    ]
    return commas[0] <= commas[1] and (document.value == value or (document.value is None and value == {}))


def settings_without(value: Any, record: FileRecord) -> Any:
    """Return a copy of settings without the entries of a record, and without the containers that are empty
    then.
    """
    value = json.loads(json.dumps(value))
    for entry in record.entries:
        container = value_at(value, entry.container)
        if not has_entry(value, entry):
            continue
        if entry.key is None:
            del container[len(container) - 1 - container[::-1].index(entry.value)]
        else:
            del container[entry.key]
    for path in record.containers:
        if value_at(value, path) in ({}, []):
            del value_at(value, path[:-1])[path[-1]]
    return value


def _has(value: Any, path: Path) -> bool:
    container = value_at(value, path[:-1])
    return isinstance(container, dict) and path[-1] in container


def value_at(value: Any, path: Sequence[str | int]) -> Any:
    """Return the value that keys and indices lead to, else None."""
    for step in path:
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _names(container: Any) -> Sequence[str | int]:
    if isinstance(container, dict):
        return list(container)
    return range(len(container)) if isinstance(container, list) else ()
