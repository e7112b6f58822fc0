"""Rename of a skill or an agent: every file after the edit that an editor gets, and why there is none."""

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.desk import Desk, tell_story, write
from support.fixture import parse_fixture

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
"""Position encoding → the codec and its bytes for a unit."""
EDITS = {"documentChanges": True, "resourceOperations": ["create", "rename"]}
SKILL = """
    //- /a/.claude/skills/tidy/SKILL.md
    ---
    name: tidy
    description: Tidy up.
    ---
    //- /a/.claude/settings.json
    {"😀": 1, "permissions": {"allow": ["Skill(tidy)", "Skill(tidy-up)"], "deny": ["Skill(/tidy)"]},
     "skillOverrides": {"tidy": "off"}}
    //- /a/opencode.json
    {"permission": {"skill": {"tidy": "ask"}}}
    //- /a/CLAUDE.md
    @.claude/skills/tidy/more.md
    //- /a/.claude/agents/a.md
    ---
    name: a
    skills: [😀, tidy]
    ---
    """
AGENT = """
    //- /a/.claude/agents/reader.md
    ---
    name: reader
    description: Reads.
    ---
    //- /a/.claude/settings.json
    {"agent": "reader", "permissions": {"deny": ["Agent(reader)", "Agent(reader2)"]}}
    //- /a/.claude/skills/s/SKILL.md
    ---
    name: s
    agent: reader
    ---
    """


def edited(files: Mapping[str, str], edit: dict[str, Any], encoding: str) -> dict[str, str]:
    """The files (URI → text) after an edit, in the order of its changes."""
    codec, unit = CODECS[encoding]
    result = dict(files)
    changes = edit.get("documentChanges") or [
        {"textDocument": {"uri": uri}, "edits": edits} for uri, edits in edit["changes"].items()
    ]
    for change in changes:
        if change.get("kind") == "rename":
            old, new = change["oldUri"], change["newUri"]
            result = {uri.replace(old, new) if uri.startswith(old) else uri: result[uri] for uri in result}
            continue
        uri = change["textDocument"]["uri"]
        lines = result[uri].split("\n")
        for text_edit in sorted(change["edits"], key=lambda each: str(each["range"]), reverse=True):
            start, end = text_edit["range"]["start"], text_edit["range"]["end"]
            line = lines[start["line"]].encode(codec)
            before, after = line[: start["character"] * unit], line[end["character"] * unit :]
            lines[start["line"]] = before.decode(codec) + text_edit["newText"] + after.decode(codec)
        result[uri] = "\n".join(lines)
    return result


def renamed(
    root: Path, text: str, new_name: str, *, edits: Mapping[str, Any] = EDITS, encoding: str = "utf-16"
) -> dict[str, str] | str:
    """The files after a rename at `$0`, by their paths in the fixture; the message if it is refused."""
    answers: list[dict[str, str] | str] = []
    fixture = parse_fixture(textwrap.dedent(text))

    async def story(desk: Desk) -> None:
        for path, content in fixture.files.items():
            write(desk, path, content)
        general = {"positionEncodings": [encoding]}
        capabilities = {"general": general, "workspace": {"workspaceEdit": edits}}
        talk = await desk.client(capabilities=capabilities)
        path, cursor = fixture.cursor_path or "", fixture.cursor or 0
        content = fixture.files[path]
        desk.open(talk, path, content)
        before = content[:cursor].rpartition("\n")
        codec, unit = CODECS[encoding]
        position = {"line": content.count("\n", 0, cursor), "character": len(before[2].encode(codec)) // unit}
        params = {"textDocument": {"uri": desk.uri(path)}, "position": position}
        edit = await desk.ask(talk, 1, "textDocument/rename", **params, newName=new_name)
        prepared = await desk.ask(talk, 2, "textDocument/prepareRename", **params)
        if edit is None:
            error = (await desk.reply(talk, 1))["error"]
            assert error["data"]["code"] == "bad-rename"
            answers.append(error["message"])
            return
        start, end = (prepared["range"][side] for side in ("start", "end"))
        assert start["line"] == end["line"] == position["line"]
        assert start["character"] <= position["character"] <= end["character"]
        uris = {desk.uri(path): content for path, content in fixture.files.items()}
        result = edited(uris, edit, encoding)
        answers.append({uri.removeprefix(desk.uri("/")): content for uri, content in result.items()})

    tell_story(root, story)
    return answers[0]


def files_of(text: str) -> dict[str, str]:
    files = parse_fixture(textwrap.dedent(text)).files
    return {path.removeprefix("/"): content for path, content in files.items()}


@pytest.mark.parametrize("encoding", CODECS)
@pytest.mark.parametrize(
    "cursor", ["name: $0tidy", "Skill(ti$0dy)", '{"tidy$0": "off"', '{"ti$0dy": "ask"', ", $0tidy]"]
)
def test_a_skill_is_renamed_with_its_directory(tmp_path: Path, cursor: str, encoding: str) -> None:
    text = SKILL.replace(cursor.replace("$0", ""), cursor)
    expected = SKILL.replace("tidy", "clean").replace("Skill(clean-up)", "Skill(tidy-up)")
    assert renamed(tmp_path, text, "clean", encoding=encoding) == files_of(expected)


@pytest.mark.parametrize("cursor", ["name: $0reader", '"reader$0",', "Agent(rea$0der)", "agent: re$0ader"])
def test_an_agent_is_renamed_with_its_file(tmp_path: Path, cursor: str) -> None:
    text = AGENT.replace(cursor.replace("$0", ""), cursor)
    expected = AGENT.replace("reader", "editor").replace("editor2", "reader2")
    assert renamed(tmp_path, text, "editor") == files_of(expected)


def test_an_agent_whose_file_has_another_name_keeps_its_file(tmp_path: Path) -> None:
    text = AGENT.replace("reader.md", "one.md").replace("name: reader", "name: $0reader")
    expected = AGENT.replace("reader", "editor").replace("editor2", "reader2").replace("editor.md", "one.md")
    assert renamed(tmp_path, text, "editor", edits={}) == files_of(expected)


AT_SKILL, AT_AGENT = SKILL.replace("name: tidy", "name: ti$0dy"), AGENT.replace("(reader)", "($0reader)")
BY_HAND = "together with the name. Rename both by hand."


@pytest.mark.parametrize(
    ("text", "new_name", "edits", "message"),
    [
        (AT_SKILL, "Tidy Up", EDITS, "'Tidy Up' is not a valid name for a skill. Use at most 64 lowercase"),
        (AT_SKILL, "x" * 65, EDITS, "is not a valid name for a skill."),
        (AT_AGENT, "a--b", EDITS, "'a--b' is not a valid name for an agent. Use at most 64 lowercase"),
        (f"{AT_SKILL}//- /a/.claude/skills/b/SKILL.md\n", "b", EDITS, "There is a skill 'b' already. Choose"),
        (f"{AT_SKILL}//- /a/.claude/commands/b.md\n", "b", EDITS, "There is a skill 'b' already."),
        (f"{AT_AGENT}//- /a/.claude/agents/b.md\n", "b", EDITS, "There is an agent 'b' already."),
        (
            f"{AT_AGENT}//- /home/.claude/agents/c.md\n    ---\n    name: b\n    ---\n",
            "b",
            EDITS,
            "agent 'b' already.",
        ),
        (AT_SKILL, "b", {"documentChanges": True}, f"cannot rename .claude/skills/tidy {BY_HAND}"),
        (AT_AGENT, "b", {"resourceOperations": ["create"]}, f".claude/agents/reader.md {BY_HAND}"),
        (AT_SKILL.replace("/a/.claude/skills", "/home/.claude/skills"), "b", EDITS, "outside of this folder"),
        (AT_SKILL.replace("skills/tidy/SKILL", "skills/other/SKILL"), "b", EDITS, "There is no name here"),
        (f"{AT_SKILL}//- /home/.claude/skills/tidy/SKILL.md\n", "b", EDITS, "No other file may define"),
        (SKILL.replace("Skill(tidy-up)", "Skill(tidy-u$0p)"), "b", EDITS, "There is no name here"),
        ("//- /a/CLAUDE.md\nBe $0brief.\n", "b", EDITS, "There is no name here"),
    ],
)
def test_a_rename_that_is_refused_says_why(
    tmp_path: Path, text: str, new_name: str, edits: Mapping[str, Any], message: str
) -> None:
    assert message in renamed(tmp_path, text, new_name, edits=edits)


def test_the_user_is_asked_before_a_skill_outside_of_the_folder_moves(tmp_path: Path) -> None:
    text = AT_SKILL.replace("/a/.claude/skills", "/home/.claude/skills")
    edits = {**EDITS, "changeAnnotationSupport": {}}
    answer = renamed(tmp_path, text, "clean", edits=edits)
    assert "home/.claude/skills/clean/SKILL.md" in answer


def test_preparation_says_why_there_is_no_rename(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        desk.open(talk, "/a/CLAUDE.md", "Be brief.\n")
        params = {"textDocument": {"uri": desk.uri("/a/CLAUDE.md")}, "position": {"line": 0, "character": 4}}
        code, message = await desk.refusal(talk, 1, "textDocument/prepareRename", **params)
        assert code == "bad-rename"
        assert message.startswith("There is no name here that can be renamed. Put the cursor on the name of")

    tell_story(tmp_path, story)


def test_rules_follow_an_agent_whose_file_is_renamed(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        files = files_of(AGENT)
        for path, content in files.items():
            write(desk, f"/{path}", content)
        talk = await desk.client()
        uris = [desk.uri(f"/a/.claude/agents/{name}") for name in ("reader.md", "editor.md", "editor.txt")]
        edit = await desk.ask(
            talk, 1, "workspace/willRenameFiles", files=[{"oldUri": uris[0], "newUri": uris[1]}]
        )
        texts = {desk.uri(f"/{path}"): content for path, content in files.items()}
        expected = files_of(AGENT.replace("reader", "editor").replace("editor2", "reader2"))
        assert list(edited(texts, edit, "utf-16").values()) == list(expected.values())
        away = [{"oldUri": uris[0], "newUri": uris[2]}]
        assert await desk.ask(talk, 2, "workspace/willRenameFiles", files=away) is None

    tell_story(tmp_path, story)
