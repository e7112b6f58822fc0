"""Links and definitions of open documents, asked by an editor."""

import re
from pathlib import Path
from typing import Any

import pytest

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
        assert 'In force from one file: "opus"' in text
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


def test_the_settings_of_vs_code_know_the_keys_of_copilot(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        settings = '{"chat.useAgentsMdFile": false, "chat"}'
        desk.open(talk, "/a/.vscode/settings.json", settings)
        shown = await ask(desk, talk, 1, "hover", "/a/.vscode/settings.json", position=at(settings, "useA"))
        assert "In force from one file: false" in shown["contents"]["value"]
        where = at(settings, '"chat"}', 5)
        offers = await ask(desk, talk, 2, "completion", "/a/.vscode/settings.json", position=where)
        assert "chat.mcp.access" in str(offers)
        desk.open(talk, "/a/.vscode/mcp.json", '{"chat"}')
        where = {"line": 0, "character": 6}
        offers = await ask(desk, talk, 3, "completion", "/a/.vscode/mcp.json", position=where)
        assert "servers" in str(offers) and "chat.mcp.access" not in str(offers)

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


async def labels(desk: Desk, talk: Talk, number: int, path: str, text: str) -> list[str]:
    """The labels of the items at `$0` of a document that is opened with this text."""
    before, _, after = text.partition("$0")
    desk.open(talk, path, before + after)
    line = before.count("\n")
    where = {"line": line, "character": len(before) - before.rfind("\n") - 1}
    items: Any = await ask(desk, talk, number, "completion", path, position=where)
    desk.close(talk, path)
    assert isinstance(items, list), items
    return [each["label"] for each in items]


def test_what_may_be_written_in_settings(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/.mcp.json", '{"mcpServers": {"github": {"command": "gh"}}}')
        talk = await desk.client()
        path = "/a/.claude/settings.json"
        asked = [
            ('{"permissions": {"allow": [], $0}}', "defaultMode", "allow"),
            ('{"hooks": {"$0', "PreToolUse", "model"),
            ('{"permissions": {"allow": ["$0', "Bash", "default"),
            ('{"permissions": {"deny": ["$0', "mcp__github", "github"),
            ('{"enabledMcpjsonServers": ["$0"]}', "github", "Bash"),
            ('{"model": "$0"}', "claude-sonnet-5", "gpt-5"),
        ]
        for number, (text, is_there, is_not) in enumerate(asked, start=1):
            found = await labels(desk, talk, number, path, text)
            assert is_there in found, text
            assert is_not not in found, text
        assert "provider" in await labels(desk, talk, 10, "/a/.nexus3/config.json", "{$0}")
        assert "args" in await labels(desk, talk, 11, "/a/.mcp.json", '{"mcpServers": {"a": {$0}}}')
        env = '{"mcpServers": {"a": {"env": {"T": "${NEX$0}"}}}}'
        assert "NEXUS_STATE" in await labels(desk, talk, 12, "/a/.mcp.json", env)
        assert "model_provider" in await labels(desk, talk, 13, "/a/.codex/config.toml", "mo$0")
        assert await labels(desk, talk, 14, "/a/package.json", "{$0}") == []

    tell_story(tmp_path, story)


def test_fields_of_front_matter(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        skill = "/a/.claude/skills/x/SKILL.md"
        found = await labels(desk, talk, 1, skill, "---\nname: x\n$0\n---\n")
        assert found[:2] == ["description", "allowed-tools"]
        assert await labels(desk, talk, 2, "/a/.cursor/rules/a.mdc", "---\nalwaysApply: $0") == [
            "true",
            "false",
        ]
        assert await labels(desk, talk, 3, "/a/CLAUDE.md", "---\n$0\n---\n") == []

    tell_story(tmp_path, story)


def test_paths_of_imports_leave_out_what_git_ignores(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        for name in ("HEAD", "objects/x", "refs/x"):
            write(desk, f"/a/.git/{name}", "ref: refs/heads/main")
        write(desk, "/a/.gitignore", "secret.md\nbuild/\n")
        for name in ("docs/style.md", "secret.md", "build/x.md", "b c.md", ".hidden.md"):
            write(desk, f"/a/{name}", "Be brief.\n")
        talk = await desk.client()
        found = await labels(desk, talk, 1, "/a/CLAUDE.md", "See @$0")
        assert found == ["NEXUS.md", "b\\ c.md", "docs/"]
        assert await labels(desk, talk, 2, "/a/CLAUDE.md", "See @docs/st$0 now") == ["style.md"]
        assert await labels(desk, talk, 3, "/a/CLAUDE.md", "me@docs/$0") == []

    tell_story(tmp_path, story)


def test_sections_and_imports_show_their_tokens(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/docs/style.md", "Use four blanks.\n")
        write(desk, "/b/CLAUDE.md", "x")
        talk = await desk.client("/b")
        text = "# Rules\nBe brief.\nSee @docs/style.md\n## More\n"
        desk.open(talk, "/b/CLAUDE.md", text)
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 9, "character": 0}}
        hints = await ask(desk, talk, 1, "inlayHint", "/b/CLAUDE.md", range=whole)
        assert [each["position"]["line"] for each in hints] == [0, 3, 2]
        assert all("token" in each["label"] for each in hints)
        top = {"start": whole["start"], "end": {"line": 1, "character": 0}}
        assert len(await ask(desk, talk, 2, "inlayHint", "/b/CLAUDE.md", range=top)) == 1
        (section,) = await ask(desk, talk, 3, "documentSymbol", "/b/CLAUDE.md")
        assert (section["name"], [each["name"] for each in section["children"]]) == ("Rules", ["More"])
        assert len(await ask(desk, talk, 4, "foldingRange", "/b/CLAUDE.md")) == 1
        at = [{"line": 1, "character": 0}]
        assert len(await ask(desk, talk, 5, "selectionRange", "/b/CLAUDE.md", positions=at)) == 1

    tell_story(tmp_path, story)


LOCAL = (
    '{"enabledMcpjsonServers": ["github"], "permissions": {"allow": ["mcp__github__search", "mcp__githubx"]}}'
)
SERVERS = '{"mcpServers": {"github": {"command": "gh"}, "other": {"command": "x"}}}'


def edited(desk: Desk, edit: dict[str, Any], texts: dict[str, str]) -> dict[str, str]:
    """The texts after a workspace edit of one-line files."""
    for path, text in texts.items():
        changes = edit["changes"].get(desk.uri(path), [])
        for each in sorted(changes, key=lambda each: each["range"]["start"]["character"], reverse=True):
            start, end = (each["range"][side]["character"] for side in ("start", "end"))
            text = text[:start] + each["newText"] + text[end:]
        texts = {**texts, path: text}
    return texts


def test_a_server_is_renamed_wherever_settings_name_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        files = {"/a/.mcp.json": SERVERS, "/a/.claude/settings.json": LOCAL}
        for path, text in files.items():
            write(desk, path, text)
        write(desk, "/home/.claude/settings.json", LOCAL)  # of the user: only after a question
        talk = await desk.client()
        desk.open(talk, "/a/.mcp.json", SERVERS)
        name = {"position": at(SERVERS, "github", 3)}
        prepared = await ask(desk, talk, 1, "prepareRename", "/a/.mcp.json", **name)
        assert prepared["placeholder"] == "github"
        edit = await ask(desk, talk, 2, "rename", "/a/.mcp.json", **name, newName="hub")
        assert edited(desk, edit, files) == {
            "/a/.mcp.json": SERVERS.replace("github", "hub"),
            "/a/.claude/settings.json": LOCAL.replace('"github"', '"hub"').replace("github__", "hub__"),
        }
        assert set(edit["changes"]) == {desk.uri(path) for path in files}
        context = {"context": {"includeDeclaration": True}}
        places = await ask(desk, talk, 3, "references", "/a/.mcp.json", **name, **context)
        assert len(places) == 5
        desk.open(talk, "/a/.claude/settings.json", LOCAL)
        rule = {"position": at(LOCAL, "mcp__github__", 8)}
        (place,) = await ask(desk, talk, 4, "definition", "/a/.claude/settings.json", **rule)
        assert place["uri"] == desk.uri("/a/.mcp.json")
        code, message = await desk.refusal(
            talk,
            5,
            "textDocument/rename",
            textDocument={"uri": desk.uri("/a/.mcp.json")},
            **name,
            newName="a b",
        )
        assert (code, "a b" in message) == ("bad-rename", True)

    tell_story(tmp_path, story)


def test_imports_follow_a_file_that_is_renamed(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/CLAUDE.md", "@docs/style.md")
        write(desk, "/a/docs/style.md", "@more.md")
        write(desk, "/a/docs/more.md", "More.")
        talk = await desk.client()
        files = [{"oldUri": desk.uri("/a/docs/more.md"), "newUri": desk.uri("/a/docs/b/less.md")}]
        edit = await desk.ask(talk, 1, "workspace/willRenameFiles", files=files)
        assert edited(desk, edit, {"/a/docs/style.md": "@more.md"}) == {"/a/docs/style.md": "@b/less.md"}
        files = [{"oldUri": desk.uri("/a/x.md"), "newUri": desk.uri("/a/y.md")}]
        assert await desk.ask(talk, 2, "workspace/willRenameFiles", files=files) is None

    tell_story(tmp_path, story)


RULES = '{"permissions": {"allow": ["Skill(tidy)", "Skill(tidy-up)", "Bash(tidy)"], "deny": ["Skill(tidy)"]}}'
MANIFEST = "---\nname: tidy\ndescription: Tidy up.\n---\n"


def test_rules_follow_a_skill_whose_directory_is_renamed(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        files = {
            "/a/.claude/settings.json": RULES,
            "/a/opencode.json": '{"permission": {"skill": {"tidy": "ask"}}}',
        }
        for path, text in files.items():
            write(desk, path, text)
        write(desk, "/a/.claude/skills/tidy/SKILL.md", MANIFEST)
        talk = await desk.client()
        uris = [desk.uri(f"/a/.claude/skills/{name}") for name in ("tidy", "clean")]
        moved = [{"oldUri": uris[0], "newUri": uris[1]}]
        edit = await desk.ask(talk, 1, "workspace/willRenameFiles", files=moved)
        assert edited(desk, edit, files) == {
            "/a/.claude/settings.json": RULES.replace('(tidy)"', '(clean)"').replace(
                "Bash(clean", "Bash(tidy"
            ),
            "/a/opencode.json": files["/a/opencode.json"].replace("tidy", "clean"),
        }
        (name_edit,) = edit["changes"][desk.uri("/a/.claude/skills/tidy/SKILL.md")]
        assert (name_edit["range"]["start"], name_edit["newText"]) == ({"line": 1, "character": 6}, "clean")
        away = [{"oldUri": uris[0], "newUri": desk.uri("/a/old/tidy")}]
        assert await desk.ask(talk, 2, "workspace/willRenameFiles", files=away) is None
        write(desk, "/home/.claude/skills/tidy/SKILL.md", MANIFEST)  # the rules may mean this one
        assert await desk.ask(talk, 3, "workspace/willRenameFiles", files=moved) is None

    tell_story(tmp_path, story)


def test_imports_of_a_file_are_found_and_marked(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/AGENTS.md", "@docs/style.md")
        write(desk, "/a/docs/style.md", "Use four blanks.")
        talk = await desk.client()
        text = "😀 @docs/style.md\n@docs/style.md @docs/gone.md\n"
        desk.open(talk, "/a/CLAUDE.md", text)
        where = {"position": at(text, "@docs/style.md\n@", 4), "context": {"includeDeclaration": True}}
        places = await ask(desk, talk, 1, "references", "/a/CLAUDE.md", **where)
        assert sorted(each["uri"].rpartition("/")[2] for each in places) == [
            "AGENTS.md",
            "CLAUDE.md",
            "CLAUDE.md",
        ]
        del where["context"]
        marked = await ask(desk, talk, 2, "documentHighlight", "/a/CLAUDE.md", **where)
        assert [each["range"]["start"]["line"] for each in marked] == [0, 1]
        tokens = await ask(desk, talk, 3, "semanticTokens/full", "/a/CLAUDE.md")
        assert tokens["data"] == [0, 3, 14, 0, 0, 1, 0, 14, 0, 0]
        desk.open(talk, "/a/docs/style.md", "Use four blanks.")
        top = {"position": {"line": 0, "character": 0}, "context": {"includeDeclaration": True}}
        assert len(await ask(desk, talk, 4, "references", "/a/docs/style.md", **top)) == 3
        assert await ask(desk, talk, 5, "documentHighlight", "/a/docs/style.md", **where) == []

    tell_story(tmp_path, story)


@pytest.mark.parametrize(
    ("query", "names"),
    [("", ["Rules", "More", "github", "release", "reviewer"]), ("rls", ["Rules", "release"]), ("zzz", [])],
)
def test_symbols_of_the_workspace(tmp_path: Path, query: str, names: list[str]) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/CLAUDE.md", "# Rules\n## More\n")
        write(desk, "/b/.mcp.json", SERVERS.replace(', "other": {"command": "x"}', ""))
        matter = "---\nname: x\ndescription: Does it.\n---\n"
        write(desk, "/b/.claude/skills/release/SKILL.md", matter)
        write(desk, "/b/.claude/agents/reviewer.md", matter)
        talk = await desk.client("/b")
        found = await desk.ask(talk, 1, "workspace/symbol", query=query)
        assert sorted(each["name"] for each in found) == sorted(names)
        assert all(each["location"]["uri"].startswith(desk.uri("/b")) for each in found)

    tell_story(tmp_path, story)


def test_a_lens_says_what_the_unsaved_text_adds(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/CLAUDE.md", "Be brief.\n")
        talk = await desk.client("/b")
        desk.open(talk, "/b/CLAUDE.md", "Be brief.\n")
        (lens,) = await ask(desk, talk, 1, "codeLens", "/b/CLAUDE.md")
        assert "unsaved" not in lens["command"]["title"]
        desk.close(talk, "/b/CLAUDE.md")
        desk.open(talk, "/b/CLAUDE.md", "Be brief.\nAnd use four blanks.\n")
        (lens,) = await ask(desk, talk, 2, "codeLens", "/b/CLAUDE.md")
        assert re.search(r" · \+[1-9] unsaved$", lens["command"]["title"])

    tell_story(tmp_path, story)


CREATES = {"workspace": {"workspaceEdit": {"documentChanges": True, "resourceOperations": ["create"]}}}


async def actions_at(desk: Desk, talk: Talk, number: int, path: str, **params: Any) -> dict[str, Any]:
    """The edits of the actions at a position, by their titles."""
    position, only = params["position"], params.get("only")
    found = await ask(
        desk,
        talk,
        number,
        "codeAction",
        path,
        range={"start": position, "end": position},
        context={"diagnostics": [], **({"only": only} if only else {})},
    )
    return {each["title"]: each["edit"] for each in found}


def test_a_section_moves_into_a_skill(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        text = "# Rules\nBe brief.\n## Release notes\n" + "Name every change.\n" * 20 + "## End\n"
        write(desk, "/b/CLAUDE.md", text)
        talk = await desk.client("/b", capabilities=CREATES)
        desk.open(talk, "/b/CLAUDE.md", text)
        found = await actions_at(
            desk, talk, 1, "/b/CLAUDE.md", position={"line": 2, "character": 4}, only=["refactor"]
        )
        ((title, edit),) = found.items()
        assert re.fullmatch(r"Move “Release notes” into a skill: ≈ \d+ tokens less in every request", title)
        create, cut, skill = edit["documentChanges"]
        path = desk.uri("/b/.claude/skills/release-notes/SKILL.md")
        assert (create["kind"], create["uri"], skill["textDocument"]["uri"]) == ("create", path, path)
        assert skill["edits"][0]["newText"].startswith(
            '---\nname: release-notes\ndescription: "Release notes"\n---\n'
        )
        (removed,) = cut["edits"]
        assert (removed["range"]["start"]["line"], removed["range"]["end"]["line"], removed["newText"]) == (
            2,
            23,
            "",
        )
        assert await actions_at(desk, talk, 2, "/b/CLAUDE.md", position={"line": 0, "character": 4}) == {}
        assert (
            await actions_at(
                desk, talk, 3, "/b/CLAUDE.md", position={"line": 2, "character": 4}, only=["source"]
            )
            == {}
        )

    tell_story(tmp_path, story)


def test_an_import_without_a_file_names_the_nearest_or_creates_one(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/docs/style.md", "Use four blanks.")
        text = "See @docs/stlye.md\n"
        write(desk, "/b/CLAUDE.md", text)
        talk = await desk.client("/b", capabilities=CREATES)
        desk.open(talk, "/b/CLAUDE.md", text)
        found = await actions_at(desk, talk, 1, "/b/CLAUDE.md", position=at(text, "@docs"))
        assert list(found)[-2:] == ["Import docs/style.md instead", "Create docs/stlye.md"]
        (change,) = found["Import docs/style.md instead"]["documentChanges"]
        assert change["edits"][0]["newText"] == "@docs/style.md"
        create, _ = found["Create docs/stlye.md"]["documentChanges"]
        assert create["uri"] == desk.uri("/b/docs/stlye.md")

    tell_story(tmp_path, story)


def test_a_server_says_what_each_program_in_use_does_with_it(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/b/CLAUDE.md", "Be brief.\n")
        write(desk, "/b/.mcp.json", SERVERS)
        write(desk, "/b/.gemini/settings.json", '{"mcpServers": {"shop": {"command": "s"}}}')
        talk = await desk.client("/b")
        desk.open(talk, "/b/.mcp.json", SERVERS)
        lenses = await ask(desk, talk, 1, "codeLens", "/b/.mcp.json")
        assert [each["command"]["title"] for each in lenses] == ["Claude Code: waits for approval"] * 2
        desk.open(talk, "/b/.gemini/settings.json", '{"mcpServers": {"shop": {"command": "s"}}}')
        (lens,) = await ask(desk, talk, 2, "codeLens", "/b/.gemini/settings.json")
        assert lens["command"]["title"].startswith("Gemini CLI: ")

    tell_story(tmp_path, story)


CODEX = """[mcp_servers.tickets]
command = "t"
[mcp_servers.tickets.env]
A = "1"
[mcp_servers."tickets".tools.find]
approval_mode = "approve"
"""


def test_every_header_of_a_server_is_renamed_and_no_name_is_taken_twice(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        path = "/home/.codex/config.toml"
        both = CODEX + '[mcp_servers.other]\ncommand = "o"\n'
        write(desk, path, both)
        write(desk, "/home/a/AGENTS.md", "x")
        talk = await desk.client("/home")
        desk.open(talk, path, both)
        name = {"position": at(both, "tickets", 3)}
        edit = await ask(desk, talk, 1, "rename", path, **name, newName="issues")
        (changes,) = edit["changes"].values()
        assert [each["range"]["start"]["line"] for each in changes] == [0, 2, 4]
        wrong = {"textDocument": {"uri": desk.uri(path)}, "newName": "other", **name}
        code, message = await desk.refusal(talk, 2, "textDocument/rename", **wrong)
        assert (code, "already" in message) == ("bad-rename", True)

    tell_story(tmp_path, story)


def test_settings_of_a_package_are_those_of_a_program_that_runs_there(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        path = "/a/packages/api/.claude/settings.json"
        desk.open(talk, path, SETTINGS)
        shown = await ask(desk, talk, 1, "hover", path, position=at(SETTINGS, "model"))
        assert 'In force from one file: "opus"' in shown["contents"]["value"]
        assert "packages/api/.claude/settings.json:2" in shown["contents"]["value"]

    tell_story(tmp_path, story)


def test_a_folder_may_be_opened_over_a_link(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/real/CLAUDE.md", "# Rules\nBe brief.\n")
        Path(desk.tree.path("/link")).symlink_to(desk.tree.path("/real"))
        talk = await desk.client("/link")
        desk.open(talk, "/link/CLAUDE.md", "# Rules\nBe brief.\n")
        shown = await ask(desk, talk, 1, "hover", "/link/CLAUDE.md", position={"line": 0, "character": 3})
        assert "Claude Code: ≈ " in shown["contents"]["value"]
        settings = '{"env": {"API_TOKEN": "sk-1"}}'
        desk.open(talk, "/link/.claude/settings.json", settings)
        where = {"position": at(settings, "API_TOKEN")}
        shown = await ask(desk, talk, 2, "hover", "/link/.claude/settings.json", **where)
        assert 'In force from one file: "***"' in shown["contents"]["value"]

    tell_story(tmp_path, story)


USER_RULES = '{"permissions": {\n"deny": ["Bash(rm:*)"]}}'
SHADOWED = """Claude Code: Allows the command rm -f, alone or with more arguments. It allows a script only \
if each other command of the script is allowed, too.

- ~/.claude/settings.json:2 Bash(rm:*) in deny of ~/.claude/settings.json

This rule never decides: Bash(rm:*) in deny of ~/.claude/settings.json covers it, and counts first."""
DENIED = """opencode: Denies the command rm, alone or with more arguments. It counts wherever the command is \
in a script. The last rule that matches decides.

A deny of a command does not stop what runs it by itself, such as a script."""
REPLACED = """opencode: Denies the command rm, alone or with more arguments. It counts wherever the command \
is in a script. The last rule that matches decides.

- opencode.json:2 bash

This rule never decides: bash covers it, and comes later: the last one counts. A deny of a command does not \
stop what runs it by itself, such as a script."""
EXCLUDED = "Gemini CLI: Denies each call of the tool web_fetch. The model is not told of the tool."
IGNORED = """Claude Code: Claude Code ignores this rule. The name of a tool begins with a capital letter. \
Write Bash."""
HIDDEN = """Claude Code: Denies reads and edits of files that match .env as a line of .gitignore does, at \
each depth of the folder.

A deny of reading stops the commands that are known to read files. It does not stop programs and scripts, \
grep -r in a directory above, or a name that a pattern of the shell stands for."""


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("/a/.claude/settings.json", '{"permissions": {"allow": ["Bash(rm -f$0 *)"]}}', SHADOWED),
        ("/a/.claude/settings.json", '{"permissions": {"deny": ["Read(.env)$0", "bash"]}}', HIDDEN),
        ("/a/.claude/settings.json", '{"permissions": {"deny": ["b$0ash"]}}', IGNORED),
        ("/a/opencode.json", '{"permission": {"bash": {"rm *": "de$0ny"}}}', DENIED),
        ("/a/opencode.json", '{"permission": {"bash": {"r$0m *": "deny",\n"*": "ask"}}}', REPLACED),
        ("/a/.gemini/settings.json", '{"tools": {"exclude": ["web$0_fetch"]}}', EXCLUDED),
    ],
)
def test_a_permission_rule_says_what_it_covers(tmp_path: Path, path: str, text: str, shown: str) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/home/.claude/settings.json", USER_RULES)
        talk, (before, _, after) = await desk.client(), text.partition("$0")
        desk.open(talk, path, before + after)
        answer = await ask(desk, talk, 1, "hover", path, position=at(before + after, after, 0))
        assert answer["contents"]["value"] == shown

    tell_story(tmp_path, story)


def test_a_rule_that_another_file_replaces_is_told_as_its_setting(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/.gemini/settings.json", '{"tools": {"allowed": ["read_file"]}}')
        talk, path = await desk.client(), "/home/.gemini/settings.json"
        text = '{"tools": {"allowed": ["write_file"]}}'
        desk.open(talk, path, text)
        shown = await ask(desk, talk, 1, "hover", path, position=at(text, "write_file"))
        assert 'settings.json:1 ["write_file"] (does not count)' in shown["contents"]["value"]

    tell_story(tmp_path, story)
