"""`nexus/assistant/*`: what other assistants read in a folder."""

from pathlib import Path
from typing import Any

from support.asking import Asking, check
from support.desk import Desk, write


def read(result: Any) -> list[tuple[str, str, bool]]:
    """Name, role and whether it is in every request, of each file of a result."""
    return [(file["uri"].rpartition("/")[2], file["role"], file["loaded"]) for file in result["files"]]


def test_unsaved_text_counts_as_saved(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/AGENTS.md", "On disk.\n")
        write(desk, "/a/CLAUDE.md", "Not for Codex.\n")
        before = await ask("assistant/context", assistant="codex")
        assert read(before) == [
            ("AGENTS.md", "user", True),
            ("CLAUDE.md", "none", False),
            ("AGENTS.md", "none", False),
            ("AGENTS.md", "none", False),
        ]
        desk.open(ask.talk, "/a/AGENTS.md", "Much longer text that is not saved.\n")
        after = await ask("assistant/context", assistant="codex")
        assert read(after) == read(before)
        assert after["total"] - before["total"] == 5
        assert after["problems"] == before["problems"]

    check(tmp_path, story)


def test_all_assistants_are_listed_with_the_client_s_own(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        listed = (await ask("assistant/list"))["assistants"]
        assert [(each["name"], each["verified"]) for each in listed] == [
            ("claude-code", "run"),
            ("codex", "run"),
            ("opencode", "run"),
            ("gemini", "run"),
            ("copilot", "documentation"),
            ("cursor", "documentation"),
        ]

    check(tmp_path, story)


FOR_CLAUDE = {
    "/home/.claude/CLAUDE.md": "Always be brief.\n",
    "/a/CLAUDE.md": "---\nnote: x\n---\nThe gate is closed. 🧪\n@docs/style.md\n",
    "/a/docs/style.md": "Tabs.\n",
    "/a/AGENTS.md": "Not read.\n",
    "/a/.claude/skills/rotate/SKILL.md": "---\nname: rotate\ndescription: Rotate a key.\n---\nRotate it.\n",
}


def slice_of(text: str, range_: Any) -> str:
    """The text of a range in UTF-16 units."""
    lines = text.split("\n")

    def at(position: Any) -> int:
        line = lines[position["line"]].encode("utf-16-le")[: 2 * position["character"]]
        before = sum(len(one) + 1 for one in lines[: position["line"]])
        return before + len(line.decode("utf-16-le"))

    return text[at(range_["start"]) : at(range_["end"])]


def test_a_preview_has_the_source_of_every_character(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        for path, text in FOR_CLAUDE.items():
            write(desk, path, text)
        shown = await ask("context/preview", assistant="claude-code")
        pieces = [slice_of(shown["text"], one["range"]) for one in shown["fragments"]]
        assert "".join(pieces) == shown["text"]
        assert sum(one["tokens"] for one in shown["fragments"]) == shown["tokens"]
        total = (await ask("assistant/context", assistant="claude-code"))["total"]
        assert shown["tokens"] == total
        by_title = {
            one["title"]: piece
            for one, piece in zip(shown["fragments"], pieces, strict=True)
            if one["source"] is not None
        }
        assert by_title["docs/style.md"].rstrip() == "Tabs."
        assert by_title["~/.claude/CLAUDE.md"].rstrip() == "Always be brief."
        headings = [one["title"] for one in shown["fragments"] if one["section"] == "heading"]
        assert headings[0] == "Claude Code: instructions, in the first user message"
        assert all(one["tokens"] == 0 for one in shown["fragments"] if one["section"] == "heading")
        for one, piece in zip(shown["fragments"], pieces, strict=True):
            if one["verbatim"]:
                path = one["source"]["uri"].removeprefix("file://")
                assert slice_of(Path(path).read_text(), one["source"]["range"]) == piece

    check(tmp_path, story)


def test_the_usage_has_a_row_for_each_file(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        for path, text in FOR_CLAUDE.items():
            write(desk, path, text)
        spent = await ask("context/usage", assistant="claude-code")
        assert sum(row["tokens"] for row in spent["rows"]) == spent["total"]
        assert sum(part["tokens"] for part in spent["parts"]) == spent["total"]
        context = await ask("assistant/context", assistant="claude-code")
        assert spent["total"] == context["total"] + context["ownTokens"]
        assert [row["label"] for row in spent["rows"]] == [
            "~/.claude/CLAUDE.md",
            "CLAUDE.md",
            "CLAUDE.md: docs/style.md",
            ".claude/skills/rotate/SKILL.md",
            "text of Claude Code around the files",
            f"prompt and tools of Claude Code {context['version']}",
        ]
        assert spent["limit"] > 100_000
        assert [part["part"] for part in spent["parts"]] == ["instructions", "skills", "program"]

    check(tmp_path, story)


def test_the_layers_are_the_scopes(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        for path, text in FOR_CLAUDE.items():
            write(desk, path, text)
        write(desk, "/a/.claude/rules/src.md", "---\npaths: src/**\n---\nOnly there.\n")
        write(desk, "/a/.mcp.json", '{"mcpServers": {"gate": {"command": "gate-mcp"}}}')
        result = await ask("context/layers", assistant="claude-code")
        spent = await ask("context/usage", assistant="claude-code")
        own = sum(row["tokens"] for row in spent["rows"] if "source" not in row)
        listed = sum(row["tokens"] for row in spent["rows"] if row["label"].endswith("SKILL.md"))
        assert sum(layer["tokens"] for layer in result["layers"]) == spent["total"] - own - listed
        files = [
            (layer["name"], file["uri"].rpartition("/")[2], file["status"], file.get("reason"))
            for layer in result["layers"]
            for file in layer["files"]
        ]
        called = "Sent when the model calls it; until then only its name and description."
        assert files == [
            ("user", "CLAUDE.md", "loaded", None),
            ("project", "CLAUDE.md", "loaded", None),
            ("rule", "src.md", "conditional", "Sent after a file that matches src is read."),
            ("import", "style.md", "loaded", "Imported by CLAUDE.md."),
            ("skill", "SKILL.md", "conditional", called),
        ]
        assert "AGENTS.md" in {one["path"].rpartition("/")[2] for one in result["skipped"]}
        assert [(one["name"], one["start"]) for one in result["servers"]] == [("gate", "asks")]
        assert result["servers"] == (await ask("assistant/context", assistant="claude-code"))["servers"]
        assert "servers" not in await ask("context/layers")

    check(tmp_path, story)


def test_who_reads_what(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        for path, text in FOR_CLAUDE.items():
            write(desk, path, text)
        desk.open(ask.talk, "/a/AGENTS.md", "Unsaved, and so much longer than it was before.\n")
        table = await ask("assistant/readers")
        names = [column["name"] for column in table["assistants"]]
        uses = {
            row["uri"].rpartition("/a/")[2]: {one["assistant"]: one["use"] for one in row["readers"]}
            for row in table["files"]
        }
        assert all(list(each) == names for each in uses.values())
        assert uses["AGENTS.md"] == {
            "claude-code": "unread",
            "codex": "sent",
            "opencode": "sent",
            "gemini": "unread",
            "copilot": "sent",
            "cursor": "sent",
        }
        codex = next(column for column in table["assistants"] if column["name"] == "codex")
        assert codex["tokens"] == (await ask("assistant/context", assistant="codex"))["total"]

    check(tmp_path, story)


def test_an_agent_is_not_an_assistant(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        del desk
        for method in ("preview", "usage", "layers"):
            code, message = await ask.refused(f"context/{method}", assistant="codex", agent="main")
            assert (code, "Set only one" in message) == ("bad-option", True)
            code, message = await ask.refused(f"context/{method}", assistant="codecs")
            assert (code, "claude-code" in message) == ("unknown-assistant", True)

    check(tmp_path, story)
