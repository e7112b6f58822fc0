"""Tables are put into TOML settings and taken out again; nothing else changes by a byte."""

import tomllib

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nexus_context.assistants.setup.json_edits import has_entry
from nexus_context.assistants.setup.setup_types import EditedText, FileRecord, SettingsEntry, SettingsError
from nexus_context.assistants.setup.toml_edits import add_entries, remove_entries

PATH = "/home/ana/.codex/config.toml"
SERVER = SettingsEntry(("mcp_servers",), "nexus", {"command": "nexus", "args": ["mcp"]})
STOP = SettingsEntry(
    ("hooks", "Stop"), None, {"hooks": [{"type": "command", "command": 'a "b" \\ ü', "timeout": 3}]}
)
ALL = (SERVER, STOP)
COMMENT = "by nexus"


def record_of(edited: EditedText, entries: tuple[SettingsEntry, ...]) -> FileRecord:
    return FileRecord(PATH, "toml", entries, edited.insertions, edited.containers)


def check(before: str, after: str, *entries: SettingsEntry) -> None:
    edited = add_entries(PATH, before, entries, COMMENT)
    assert edited.text == after
    assert remove_entries(PATH, after, record_of(edited, entries)) == before


TABLES = """\
# by nexus
[mcp_servers.nexus]
command = "nexus"
args = ["mcp"]

[[hooks.Stop]]
[[hooks.Stop.hooks]]
type = "command"
command = "a \\"b\\" \\\\ ü"
timeout = 3
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", TABLES),
        ("a = 1\n", "a = 1\n\n" + TABLES),
        ("a = 1 # mine", "a = 1 # mine\n\n" + TABLES),
        ("a = 1\r\n", "a = 1\r\n\r\n" + TABLES.replace("\n", "\r\n")),
        ("\ufeff", "\ufeff" + TABLES),
        ("[mcp_servers]\nx = {}\n[[hooks.Stop]]\n", "[mcp_servers]\nx = {}\n[[hooks.Stop]]\n\n" + TABLES),
    ],
)
def test_tables_are_appended(before: str, after: str) -> None:
    check(before, after, *ALL)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = \n", "config.toml:1:5: Invalid value. Nothing was written: fix the file first."),
        ("mcp_servers = {a = {}}\n", "`mcp_servers` is written in one line"),
        ("[[hooks.Stop]]\na = 1\na = 2\n", "config.toml:3:6: Cannot overwrite a value."),
        ("hooks = 1", "a value is written in one line"),
    ],
)
def test_settings_that_cannot_have_the_tables(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        add_entries(PATH, text, ALL, COMMENT)
    assert message in str(caught.value)


def test_tables_that_were_taken_apart_are_removed_one_by_one() -> None:
    edited = add_entries(PATH, "a = 1\n", ALL, COMMENT)
    apart = edited.text.replace("# by nexus\n", "").replace(
        "\n[[hooks.Stop]]", "[tui]\nx = 1\n\n[[hooks.Stop]]"
    )
    assert remove_entries(PATH, apart, record_of(edited, ALL)) == "a = 1\n[tui]\nx = 1\n"


def test_a_table_that_was_written_otherwise_is_reported() -> None:
    edited = add_entries(PATH, "", (SERVER,), COMMENT)
    changed = edited.text.replace('["mcp"]', '["mcp", "x"]')
    assert remove_entries(PATH, changed, record_of(edited, (SERVER,))) == changed  # it is the user's now


def test_a_table_that_was_formatted_anew_is_reported() -> None:
    edited = add_entries(PATH, "", (SERVER,), COMMENT)
    changed = edited.text.replace('["mcp"]', '[ "mcp" ]')
    with pytest.raises(SettingsError) as caught:
        remove_entries(PATH, changed, record_of(edited, (SERVER,)))
    assert "mcp_servers.nexus was changed since" in str(caught.value)


line = st.sampled_from(
    [
        "",
        "# note",
        "a = 1",
        "b = 'x'",
        "[tui]",
        "[a.b]",
        'c = """',
        '"""',
        "[[hooks.Stop]]",
        "[mcp_servers.x]",
        "d = [",
        "]",
    ]
)
ends = st.sampled_from(["\n", "\r\n"])


@given(st.lists(line, max_size=7), ends, st.booleans(), st.permutations(ALL))
def test_undo_gives_back_every_byte(
    lines: list[str], end: str, is_ended: bool, entries: list[SettingsEntry]
) -> None:
    before = end.join(lines) + (end if is_ended else "")
    assume(_is_valid(before))
    check(before, add_entries(PATH, before, entries, COMMENT).text, *entries)


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # three lists of lines are seldom TOML
@given(st.lists(line, max_size=5), st.lists(line, max_size=3), st.lists(line, max_size=3))
def test_what_the_user_adds_meanwhile_stays(before: list[str], above: list[str], below: list[str]) -> None:
    below = ["[below]", *below] if below else []  # what follows directly would belong to the last table
    text, head, tail = ("".join(f"{each}\n" for each in lines) for lines in (before, above, below))
    expected = head + text + tail
    assume(all(map(_is_valid, (text, expected))))
    edited = add_entries(PATH, text, ALL, COMMENT)
    changed = head + edited.text + tail
    assume(_is_valid(changed) and all(has_entry(tomllib.loads(changed), entry) for entry in ALL))
    assert remove_entries(PATH, changed, record_of(edited, ALL)) == expected


def _is_valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True
