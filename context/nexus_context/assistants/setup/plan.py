"""Plans the change of one settings file: what setup adds, what undo takes away.

1. Setup begins with undo: entries of an earlier setup are taken out first, so that they are updated and never
   doubled.
2. What the user has of the same kind stays: a status line, a server named like ours, a hook that runs Nexus.
   `notes` say so.
3. Undo takes away what the record says. Without a record it takes away what runs Nexus, and `notes` say so.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from nexus_context.assistants.setup import json_edits, toml_edits
from nexus_context.assistants.setup.entries import is_ours
from nexus_context.assistants.setup.json_edits import value_at
from nexus_context.assistants.setup.setup_types import (
    EditedText,
    FileRecord,
    SettingsEntry,
    SettingsError,
    SettingsFile,
)

LARGEST = 16 << 20  # bytes of a settings file


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change of a file from the bytes `before` to the bytes `after`; None means that there is no file.
    `record` is what undo will need, None if there is nothing to undo.

    `path` is absolute, as the program names it. `real` is the file that it leads to through links.
    """

    path: str
    real: str
    before: bytes | None
    after: bytes | None
    record: FileRecord | None = None
    notes: tuple[str, ...] = ()

    @property
    def changes_file(self) -> bool:
        return self.before != self.after


class PresentFile(msgspec.Struct, frozen=True):
    """A settings file as it is on the disk, and what an earlier setup recorded about it. `data` is None if
    there is no file.
    """

    file: SettingsFile
    real: str
    data: bytes | None
    record: FileRecord | None = None

    def change(
        self, after: bytes | None, record: FileRecord | None = None, notes: Sequence[str] = ()
    ) -> SettingsChange:
        """Make the change to other bytes, or with None the removal of the file."""
        return SettingsChange(
            path=self.file.path,
            real=self.real,
            before=self.data,
            after=after,
            record=record,
            notes=tuple(notes),
        )


def plan_setup(present: PresentFile, *, comment: str) -> SettingsChange:
    """Plan the change that gives a file its entries. Raise SettingsError if it cannot have them."""
    file, record = present.file, present.record
    text = _text(file.path, present.data)
    if file.syntax == "text":
        return _plan_whole(present, text)
    base = text if record is None else _removed(file, text, record)
    entries, notes = _missing(file, _value(file, base))
    edited = _added(file, base, entries, comment) if entries else EditedText(base, (), ())
    refusal = json_edits.first_leniency(file.path, text, file.syntax)
    if refusal is not None:
        notes.append(f"{refusal}: remove it, or nothing in the file has an effect.")
    if record is not None and entries and _value(file, edited.text) == _value(file, text):
        return present.change(present.data, record, notes)  # its program has only moved what is there
    new_record = FileRecord(
        file.path,
        file.syntax,
        entries=tuple(entries),
        insertions=edited.insertions,
        containers=edited.containers,
        is_new=present.data is None if record is None else record.is_new,
        directories=() if record is None else record.directories,
    )
    after = edited.text.encode() if present.data is not None or edited.text else None
    return present.change(after, new_record if entries else None, notes)


def plan_undo(present: PresentFile) -> SettingsChange:
    """Plan the change that takes the entries out of a file again. Raise SettingsError if that is not
    possible.
    """
    file, record = present.file, present.record
    if present.data is None:
        return present.change(None)
    text = _text(file.path, present.data)
    if file.syntax == "text":
        return _undo_whole(present, text)
    notes = []
    if record is None:
        entries = _ours(file, _value(file, text))
        record = FileRecord(file.path, file.syntax, tuple(entries), ())
        if entries:
            notes.append(f"{file.path}: no record of a setup; what runs Nexus is removed by its command.")
    if not record.entries:
        return present.change(present.data)
    remaining_text = _removed(file, text, record)
    is_empty = remaining_text.removeprefix(json_edits.BOM).strip() in ("", "{}")
    return present.change(None if record.is_new and is_empty else remaining_text.encode(), record, notes)


# ---------------------------------------------------------------- by syntax


def _value(file: SettingsFile, text: str) -> Any:
    if file.syntax == "toml":
        return toml_edits.parse_tables(file.path, text)
    return json_edits.parse_settings(file.path, text.removeprefix(json_edits.BOM)).value or {}


def _added(file: SettingsFile, text: str, entries: Sequence[SettingsEntry], comment: str) -> EditedText:
    if file.syntax == "toml":
        return toml_edits.add_entries(file.path, text, entries, comment)
    return json_edits.add_entries(file.path, text, entries)


def _removed(file: SettingsFile, text: str, record: FileRecord) -> str:
    if file.syntax == "toml":
        return toml_edits.remove_entries(file.path, text, record)
    return json_edits.remove_entries(file.path, text, record)


def _text(path: str, data: bytes | None) -> str:
    """The text of a file; empty if there is none."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError as error:
        line = (data or b"")[: error.start].count(b"\n") + 1
        raise SettingsError(
            f"{path}:{line}: This is not UTF-8. Nothing was written: fix the file first."
        ) from error


# ---------------------------------------------------------------- entries


def _missing(file: SettingsFile, value: Any) -> tuple[list[SettingsEntry], list[str]]:
    """The entries that the settings lack, and a note for each entry of the user's that stays."""
    missing, notes = [], []
    for entry in file.entries:
        existing_entries = _same_kind(entry, value)
        if not existing_entries:
            missing.append(entry)
        elif not is_ours(entry, existing_entries[0]):
            subject = "your status line" if entry.key == "statusLine" else f"`{entry.title}`"
            notes.append(f"{file.path}: {subject} stays as it is. {_advice(entry)}")
    return missing, notes


def _advice(entry: SettingsEntry) -> str:
    if entry.key == "statusLine":
        command = entry.value["command"]
        return f"To have that of Nexus, set its command to `{command}`, or remove it and run this again."
    return "To have that of Nexus, rename or remove it and run this again."


def _same_kind(entry: SettingsEntry, value: Any) -> list[Any]:
    """What settings have in an entry's place: the member, or hooks that run Nexus."""
    container = value_at(value, entry.container)
    if entry.key is not None:
        return [container[entry.key]] if isinstance(container, dict) and entry.key in container else []
    items = container if isinstance(container, list) else []
    return [item for item in items if is_ours(entry, item)]


def _ours(file: SettingsFile, value: Any) -> list[SettingsEntry]:
    """The entries of setup that settings have, with the values that are written there."""
    return [
        SettingsEntry(entry.container, entry.key, item)
        for entry in file.entries
        for item in _same_kind(entry, value)
        if is_ours(entry, item)
    ]


# ---------------------------------------------------------------- files of our own


def _plan_whole(present: PresentFile, text: str) -> SettingsChange:
    file, record = present.file, present.record
    entry = file.entries[0]
    is_recorded = record is not None and text == record.entries[0].value
    if present.data is not None and text != entry.value and not is_recorded:
        note = f"{file.path}: a file of this name is there, and stays. Without ours there are no hooks."
        return present.change(present.data, notes=(note,))
    directories = () if record is None else record.directories
    new_record = FileRecord(file.path, "text", file.entries, (), is_new=True, directories=directories)
    return present.change(str(entry.value).encode(), new_record)


def _undo_whole(present: PresentFile, text: str) -> SettingsChange:
    file, record = present.file, present.record
    texts = [file.entries[0].value, *(() if record is None else (record.entries[0].value,))]
    if text in texts:
        return present.change(None, record)
    note = f"{file.path} was changed since, and stays: remove it by hand."
    return present.change(present.data, notes=() if record is None else (note,))
