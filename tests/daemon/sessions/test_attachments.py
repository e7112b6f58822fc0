"""Instruction files that an editor attaches by itself: sent once, as rows of their own, never kept."""

from pathlib import Path
from typing import Any

import pytest

from nexus_context.turn.memory_text import LEAST
from support.desk import Desk, tell_story, write
from support.talk import Talk, tell

NEXUS = "/a/NEXUS.md"
COPILOT = "/a/.github/copilot-instructions.md"
COPILOT_LABEL = ".github/copilot-instructions.md"


async def check(
    desk: Desk, talk: Talk, number: int, attachments: list[dict[str, Any]], statuses: dict[str, str]
) -> Any:
    """Assemble a turn: what became of each attachment by its label."""
    context = await desk.assemble(talk, number, message="hi", attachments=attachments)
    reports = context["metadata"].get("attachments", [])
    assert {report["label"]: report["status"] for report in reports} == statuses
    return context


def labels(context: Any) -> list[str]:
    return [row["label"] for row in context["usage"]["rows"] if row["category"] == "memory"]


def test_a_file_that_the_prompt_has_is_not_sent_again(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, NEXUS, "Be brief.\n")
        write(desk, "/a/copy.md", "Be brief.\n")
        Path(desk.tree.path("/a/CLAUDE.md")).symlink_to("NEXUS.md")
        talk = await desk.client()
        attached = [{"uri": desk.uri(path)} for path in (NEXUS, "/a/CLAUDE.md", "/a/copy.md")]
        statuses = {"NEXUS.md": "in-prompt", "CLAUDE.md": "in-prompt", "copy.md": "in-prompt"}
        context = await check(desk, talk, 1, attached, statuses)
        assert labels(context) == []
        bare = await check(desk, talk, 2, [], {})
        assert context["usage"]["total"] == bare["usage"]["total"]

    tell_story(tmp_path, story)


def test_another_file_has_a_row_and_is_in_no_conversation(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, COPILOT, "Use tabs.\n")
        talk = await desk.client()
        statuses = {COPILOT_LABEL: "sent"}
        for number in (1, 2):  # each request has it once
            context = await check(desk, talk, number, [{"uri": desk.uri(COPILOT)}], statuses)
            assert labels(context) == [f"Attached by the editor: {COPILOT_LABEL}"]
            (row,) = [row for row in context["usage"]["rows"] if row["category"] == "memory"]
            assert row["source"]["uri"] == desk.uri(COPILOT)
            assert str(context["currentMessage"]["content"]).count("Use tabs.") == 1
            assert "Use tabs." not in str([context["history"], context["systemPrompt"]])
        said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}]
        await desk.ask(talk, 3, "nexus/session/append", messages=said)
        kept = await desk.ask(talk, 4, "nexus/session/messages")
        assert "Use tabs." not in str(kept)

    tell_story(tmp_path, story)


def test_unsaved_text_and_files_of_other_schemes(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, COPILOT, "Saved.\n")
        talk = await desk.client()
        unsaved = {"uri": desk.uri(COPILOT), "text": "Unsaved."}
        statuses = {COPILOT_LABEL: "sent"}
        context = await check(desk, talk, 1, [unsaved], statuses)
        assert "Unsaved." in str(context["currentMessage"])
        assert "Saved." not in str(context["currentMessage"])
        uri = "vscode-userdata:/User/mine.instructions.md"
        await check(desk, talk, 2, [{"uri": uri, "text": "Mine."}], {uri: "sent"})
        await check(desk, talk, 3, [{"uri": uri}], {uri: "unreadable"})

    tell_story(tmp_path, story)


@pytest.mark.parametrize("path", ["/a/gone.md", "/a/.github"])
def test_what_cannot_be_read_is_reported(tmp_path: Path, path: str) -> None:
    async def story(desk: Desk) -> None:
        write(desk, COPILOT, "Use tabs.\n")
        talk = await desk.client()
        label = path.removeprefix("/a/")
        context = await check(desk, talk, 1, [{"uri": desk.uri(path)}], {label: "unreadable"})
        assert labels(context) == []

    tell_story(tmp_path, story)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("/a/AGENTS.md", "../secret.md"),
        ("/a/deep/AGENTS.md", "../../secret.md"),
        ("/a/.github/copilot-instructions.md", "../.env"),
        ("/a/CLAUDE.md", ".git/config"),
    ],
)
@pytest.mark.parametrize("brought", ["", "by the editor", "by the client"])
def test_what_the_folder_must_not_read_is_not_sent(
    tmp_path: Path, link: str, target: str, brought: str
) -> None:
    async def story(desk: Desk) -> None:
        for path in ("/secret.md", "/a/.env", "/a/.git/config"):
            write(desk, path, "Secret.\n")
        at = Path(desk.tree.path(link))
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(target)
        talk = await desk.client()
        if brought == "by the editor":
            opened = {"uri": desk.uri(link), "languageId": "markdown", "version": 1, "text": "Secret.\n"}
            talk.send(tell("textDocument/didOpen", {"textDocument": opened}))
        attachment = {"uri": desk.uri(link)} | ({"text": "Secret."} if brought == "by the client" else {})
        label = link.removeprefix("/a/")
        context = await check(desk, talk, 1, [attachment], {label: "unreadable"})
        assert "Secret." not in str(context)

    tell_story(tmp_path, story)


def test_one_that_is_too_long_gives_way(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, COPILOT, "Use tabs. " * 30_000)
        talk = await desk.client()
        attachments = [{"uri": desk.uri(COPILOT)}]
        bare = (await check(desk, talk, 1, [], {}))["usage"]
        full = bare["total"] + bare["reserved"] + LEAST // 2
        for number, (window, status) in enumerate(((20_000, "shortened"), (full, "no-room")), start=2):
            params = {"message": "hi", "attachments": attachments, "options": {"maxContextTokens": window}}
            context = await desk.assemble(talk, number, **params)
            assert [report["status"] for report in context["metadata"]["attachments"]] == [status]
            assert not context["usage"]["over"]

    tell_story(tmp_path, story)


PYTHON = "/a/.github/instructions/python.instructions.md"
PYTHON_LABEL = ".github/instructions/python.instructions.md"
COPILOT_ON = '{"context": {"instruction_files": [".github/instructions/*.instructions.md"]}}'


def outcomes(context: Any) -> list[tuple[str, str, str | None]]:
    """What became of the files for some files only: label, status, and the file that fits."""
    return [
        (one["label"], one["status"], one.get("file")) for one in context["metadata"].get("instructions", [])
    ]


@pytest.mark.parametrize(
    ("files", "status", "file"),
    [
        ([], "not-applied", None),
        (["/a/x.md"], "not-applied", None),
        (["/a/x.md", "/a/src/y.PY"], "sent", "src/y.PY"),
    ],
)
def test_a_file_for_some_files_is_sent_with_turns_about_them(
    tmp_path: Path, files: list[str], status: str, file: str | None
) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/.nexus3/config.json", COPILOT_ON)
        write(desk, PYTHON, "---\napplyTo: 'src/**/*.py'\n---\nType everything.\n")
        talk = await desk.client()
        about = [desk.uri(path) for path in files]
        turn = {"message": "hi", "files": about, "attachments": []}
        context = await desk.assemble(talk, 1, **turn)
        assert outcomes(context) == [(PYTHON_LABEL, status, file)]
        assert context["metadata"]["instructions"][0]["appliesTo"] == "src/**/*.py"
        expected = [f"For these files: {PYTHON_LABEL}"] if status == "sent" else []
        assert labels(context) == expected
        assert str(context["currentMessage"]).count("Type everything.") == len(expected)
        assert "applyTo" not in str(context["currentMessage"])
        # the editor attaches it, too: it is there once; where its globs do not fit, the editor knows better
        attached = turn | {"attachments": [{"uri": desk.uri(PYTHON)}]}
        context = await desk.assemble(talk, 2, **attached)
        (report,) = context["metadata"]["attachments"]
        assert report["status"] == ("in-prompt" if expected else "sent")
        assert str(context["currentMessage"]).count("Type everything.") == 1

    tell_story(tmp_path, story)
