"""Entries are put into JSON settings and taken out again; nothing else changes by a byte."""

import json
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from nexus_context.assistants.setup.json_edits import BOM, add_entries, parse_settings, remove_entries
from nexus_context.assistants.setup.setup_types import EditedText, FileRecord, SettingsEntry, SettingsError
from nexus_context.text import json as jsontext

PATH = "/home/ana/.claude/settings.json"
STOP = SettingsEntry(("hooks", "Stop"), None, {"hooks": [{"command": "nexus hook claude-code Stop"}]})
START = SettingsEntry(
    ("hooks", "SessionStart"), None, {"hooks": [{"command": "nexus hook claude-code SessionStart"}]}
)
LINE = SettingsEntry((), "statusLine", {"command": "nexus statusline"})
ALL = (STOP, START, LINE)


def record_of(edited: EditedText, entries: tuple[SettingsEntry, ...]) -> FileRecord:
    return FileRecord(PATH, "jsonc", entries, edited.insertions, edited.containers)


def check(before: str, after: str, *entries: SettingsEntry) -> None:
    edited = add_entries(PATH, before, entries)
    assert edited.text == after
    assert remove_entries(PATH, after, record_of(edited, entries)) == before


def test_members_follow_the_last_one() -> None:
    check(
        '{\n    "model": "opus" // mine\n}\n',
        '{\n    "model": "opus",\n    "statusLine": {\n        "command": "nexus statusline"\n    }'
        " // mine\n}\n",
        LINE,
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "statusLine": {\n    "command": "nexus statusline"\n  }\n}'),
        ("{\n}", '{\n  "statusLine": {\n    "command": "nexus statusline"\n  }\n}'),
        ("", '{\n  "statusLine": {\n    "command": "nexus statusline"\n  }\n}\n'),
        ("// mine", '// mine\n{\n  "statusLine": {\n    "command": "nexus statusline"\n  }\n}\n'),
        ('{"a": 1}', '{"a": 1, "statusLine": {"command": "nexus statusline"}}'),
        ('{"a": 1,}', '{"a": 1, "statusLine": {"command": "nexus statusline"},}'),
        ("{ // mine\n}", '{\n  "statusLine": {\n    "command": "nexus statusline"\n  } // mine\n}'),
        (
            BOM + '{\r\n\t"a": 1\r\n}\r\n',
            BOM + '{\r\n\t"a": 1,\r\n\t"statusLine": {\r\n\t\t"command": "nexus statusline"\r\n\t}\r\n}\r\n',
        ),
    ],
)
def test_the_layout_of_the_file_is_kept(before: str, after: str) -> None:
    check(before, after, LINE)


def test_items_follow_hooks_of_the_user() -> None:
    check(
        '{"hooks": {\n  "Stop": [\n    {"hooks": []} /* mine */,\n  ]\n}}',
        '{"hooks": {\n  "Stop": [\n    {"hooks": []},\n    {\n      "hooks": [\n        {\n'
        '          "command": "nexus hook claude-code Stop"\n        }\n      ]\n    } /* mine */,\n  ]\n}}',
        STOP,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1', "settings.json:1:1: "),
        ("[]", "settings.json:1: The settings are not an object."),
        ('{"hooks": []}', "`hooks` is not an object."),
        ('{"hooks": null}', "`hooks` is not an object."),
        ('{"hooks": {"Stop": {}}}', "`hooks.Stop` is not a list."),
        ('{"a": 1 "b": 2}', "settings.json:1:9: "),
        ('{"statusLine": 1}', "`statusLine` is there already."),
    ],
)
def test_settings_that_cannot_have_the_entries(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        add_entries(PATH, text, ALL)
    assert message in str(caught.value)


# ---------------------------------------------------------------- for any document

names = st.sampled_from(["a", "model", "hooks", "Stop", "SessionStart", "x y", "ü", "permissions"])
blank = st.sampled_from(["", " ", "\n", "\r\n  ", "\t", " /* a, } */ ", "// b ]\n", "\n\n    "])
scalar = st.sampled_from(["1", "true", "null", '"text"', '"a\\"b"', "-1.5e3"])


@st.composite
def values(draw: st.DrawFn, depth: int = 0) -> str:
    kind = draw(st.sampled_from(["scalar", "object", "list"])) if depth < 3 else "scalar"
    if kind == "scalar":
        return draw(scalar)
    return draw(objects(depth) if kind == "object" else lists(depth))


@st.composite
def lists(draw: st.DrawFn, depth: int) -> str:
    items = [draw(blank) + draw(values(depth + 1)) + draw(blank) for _ in range(draw(st.integers(0, 3)))]
    return "[" + _joined(draw, items) + "]"


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    members = []
    for name in draw(st.lists(names, max_size=4, unique=True)):
        value: st.SearchStrategy[str] = values(depth + 1)
        if name == "hooks" and depth == 0:
            value = objects(depth + 1)
        if name in ("Stop", "SessionStart"):
            value = lists(depth + 1)
        key = json.dumps(name)
        members.append(draw(blank) + key + draw(blank) + ":" + draw(blank) + draw(value) + draw(blank))
    return "{" + _joined(draw, members) + "}"


def _joined(draw: st.DrawFn, parts: list[str]) -> str:
    comma = draw(st.sampled_from(["", ","])) if parts else ""
    return ",".join(parts) + comma + draw(blank)


@st.composite
def documents(draw: st.DrawFn) -> str:
    mark = draw(st.sampled_from(["", BOM]))
    return mark + draw(blank) + draw(st.one_of(objects(), st.just(""))) + draw(blank)


chosen = st.permutations(ALL).flatmap(lambda all_: st.integers(1, 3).map(lambda count: tuple(all_[:count])))


def value_of(text: str) -> Any:
    return jsontext.parse(PATH, text.removeprefix(BOM)).value


def is_sound(text: str) -> bool:
    try:
        parse_settings(PATH, text.removeprefix(BOM))
    except SettingsError:
        return False
    return True


def merged(value: Any, entries: tuple[SettingsEntry, ...]) -> Any:
    value = json.loads(json.dumps(value or {}))
    for entry in entries:
        place = value
        for step in entry.container[:-1] if entry.key is None else entry.container:
            place = place.setdefault(step, {})
        if entry.key is None:
            place.setdefault(entry.container[-1], []).append(entry.value)
        else:
            place[entry.key] = entry.value
    return value


@given(documents(), chosen)
def test_undo_gives_back_every_byte(before: str, entries: tuple[SettingsEntry, ...]) -> None:
    edited = add_entries(PATH, before, entries)
    assert value_of(edited.text) == merged(value_of(before), entries)
    assert remove_entries(PATH, edited.text, record_of(edited, entries)) == before


@given(documents(), chosen, st.sampled_from([" ", "\n\n", "/* note, } */", "// note\n"]), st.data())
def test_what_the_user_adds_meanwhile_stays(
    before: str, entries: tuple[SettingsEntry, ...], note: str, data: st.DataObject
) -> None:
    edited = add_entries(PATH, before, entries)
    at = data.draw(st.integers(0, len(before)))
    moved = at
    for one in sorted(edited.insertions, key=lambda one: one.offset):
        assume(one.offset != moved)
        moved += len(one.text) if one.offset < moved else 0
    expected = before[:at] + note + before[at:]
    changed = edited.text[:moved] + note + edited.text[moved:]
    assume(is_sound(expected) and is_sound(changed))
    assume(value_of(expected) == value_of(before) and value_of(changed) == value_of(edited.text))
    assume(expected.startswith(BOM) == before.startswith(BOM))
    assert remove_entries(PATH, changed, record_of(edited, entries)) == expected


@given(documents(), chosen, st.sampled_from([None, 2, "\t"]), st.booleans())
@example("{}", (LINE,), 2, True)
def test_a_file_that_a_program_wrote_anew_loses_the_entries_only(
    before: str, entries: tuple[SettingsEntry, ...], indent: Any, is_sorted: bool
) -> None:
    edited = add_entries(PATH, before, entries)
    value = {"new": 1, **value_of(edited.text), "last": []}
    anew = json.dumps(value, indent=indent, sort_keys=is_sorted)
    undone = remove_entries(PATH, anew, record_of(edited, entries))
    expected = {"new": 1, **(value_of(before) or {}), "last": []}
    assert json.loads(undone) == expected
