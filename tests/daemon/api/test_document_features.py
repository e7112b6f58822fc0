"""Links and definitions of open documents, asked by an editor."""

from pathlib import Path
from typing import Any

from support.desk import Desk, tell_story, write
from support.talk import Talk

TEXT = "Read @docs/rules.md first.\n"


async def ask(desk: Desk, talk: Talk, number: int, what: str, path: str, **params: Any) -> Any:
    return await desk.ask(
        talk, number, f"textDocument/{what}", textDocument={"uri": desk.uri(path)}, **params
    )


def test_an_import_leads_to_its_file_in_any_instruction_file(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/docs/rules.md", "Be brief.\n")
        talk = await desk.client()
        at = {"position": {"line": 0, "character": 8}}
        assert await ask(desk, talk, 1, "definition", "/a/CLAUDE.md", **at) is None  # not open
        desk.open(talk, "/a/CLAUDE.md", TEXT)  # which Nexus does not read beside NEXUS.md
        (place,) = await ask(desk, talk, 2, "definition", "/a/CLAUDE.md", **at)
        assert place["uri"] == desk.uri("/a/docs/rules.md")
        (link,) = await ask(desk, talk, 3, "documentLink", "/a/CLAUDE.md")
        assert (link["target"], link["range"]["start"]["character"]) == (place["uri"], 5)
        assert await ask(desk, talk, 4, "documentLink", "/a/.nexus3/config.json") is None

    tell_story(tmp_path, story)


def test_a_file_that_is_not_saved_yet_is_there(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        desk.open(talk, "/a/NEXUS.md", TEXT)
        assert await ask(desk, talk, 1, "documentLink", "/a/NEXUS.md") == []
        desk.open(talk, "/a/docs/rules.md", "Be brief.\n")
        assert len(await ask(desk, talk, 2, "documentLink", "/a/NEXUS.md")) == 1
        desk.close(talk, "/a/NEXUS.md")
        assert await ask(desk, talk, 3, "documentLink", "/a/NEXUS.md") is None

    tell_story(tmp_path, story)


SETTINGS = '{\n "model": "opus",\n "permissions": {"allow": ["Bash(ls)"]}\n}'


def at(text: str, words: str, offset: int = 1) -> dict[str, int]:
    before = text[: text.index(words)]
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1 + offset}


def test_a_key_of_another_program_says_its_value_and_where_it_is_from(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/home/.claude/settings.json", '{"model": "sonnet"}')
        talk = await desk.client()
        path = "/a/.claude/settings.json"
        desk.open(talk, path, SETTINGS)
        model = {"position": at(SETTINGS, "model")}
        shown = await ask(desk, talk, 1, "hover", path, **model)
        text = shown["contents"]["value"]
        assert shown["contents"]["kind"] == "plaintext"
        assert 'In force: "opus"' in text
        assert '- .claude/settings.json:2 "opus"' in text
        assert '.claude/settings.json:1 "sonnet" (does not count)' in text
        (place,) = await ask(desk, talk, 2, "definition", path, **model)
        assert (place["uri"], place["range"]["start"]["line"]) == (desk.uri(path), 1)
        context = {"context": {"includeDeclaration": True}}
        places = await ask(desk, talk, 3, "references", path, **model, **context)
        assert [each["uri"] for each in places] == [desk.uri(path), desk.uri("/home/.claude/settings.json")]
        assert await ask(desk, talk, 4, "hover", path, position={"line": 0, "character": 0}) is None

    tell_story(tmp_path, story)


def test_a_key_of_nexus_and_of_a_server(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        config = '{"compaction": {"max_turns": 3}, "mcpServers": 1}'
        desk.open(talk, "/a/.nexus3/config.json", config)
        where = at(config, "compaction")
        shown = await ask(desk, talk, 1, "hover", "/a/.nexus3/config.json", position=where)
        assert shown["contents"]["value"].startswith("Nexus: ")
        servers = '{"mcpServers": {"github": {"command": "gh", "args": []}}}'
        desk.open(talk, "/a/.mcp.json", servers)
        shown = await ask(desk, talk, 2, "hover", "/a/.mcp.json", position=at(servers, "github"))
        assert "Claude Code: " in shown["contents"]["value"]
        shown = await ask(desk, talk, 3, "hover", "/a/.mcp.json", position=at(servers, "args"))
        assert shown["contents"]["value"] == "args (list): Arguments of the program."
        (place,) = await ask(desk, talk, 4, "definition", "/a/.mcp.json", position=at(servers, "github"))
        assert place["uri"] == desk.uri("/a/.mcp.json")

    tell_story(tmp_path, story)


def test_a_heading_says_what_its_section_costs(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/CLAUDE.md", "# Rules\nBe brief.\n")
        write(desk, "/a/docs/style.md", "Use four blanks.\n")
        talk = await desk.client()
        text = "# Rules\nBe brief.\n\nSee @docs/style.md\n"
        desk.open(talk, "/a/CLAUDE.md", text)
        shown = await ask(desk, talk, 1, "hover", "/a/CLAUDE.md", position={"line": 0, "character": 3})
        assert "Rules" in shown["contents"]["value"]
        shown = await ask(desk, talk, 2, "hover", "/a/CLAUDE.md", position=at(text, "@docs"))
        assert shown["contents"]["value"].startswith("docs/style.md")
        assert await ask(desk, talk, 3, "hover", "/a/CLAUDE.md", position=at(text, "brief")) is None

    tell_story(tmp_path, story)
