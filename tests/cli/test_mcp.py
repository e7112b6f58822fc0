"""`nexus mcp --tool`: what each tool answers, and that nothing but the workspace is told."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.tokens import counter_for
from nexus_daemon.cli import main
from nexus_daemon.cli.mcp import cost
from nexus_daemon.cli.mcp.local_call import run_here
from nexus_daemon.shared.mcp_server import definitions
from support import hostile
from support.fixture import Fixture, write_fixture
from support.json_lines import json_lines

FIXTURE = """
//- /home/work/CLAUDE.md
# Rules
Be brief. @docs/style.md @none.md
//- /home/work/AGENTS.md
Agents.
//- /home/work/docs/style.md
Short words.
//- /home/work/docs/gate.md
# Gates
## The north gate
The north gate closes at nine.
//- /home/work/sub/CLAUDE.md
Of sub.
//- /home/work/.nexus3/config.json
{"memory": {"knowledge": {"paths": ["docs"]}}}
//- /home/work/broken/.nexus3/config.json
{"tools": 1}
//- /home/work-next/AGENTS.md
Beside.
//- /home/other/secret.md
Outside.
//- /home/.claude/CLAUDE.md
Of the user.
"""
TOKENS = re.compile(r"(?m)^≈?[\d,]+(?= )|≈[\d,]*\d|\b[\d,]*\d(?= tokens|, |$)(?<!\.\d)")
SECRET = "ghp_" + "a1B2" * 9
TURNS: list[list[dict[str, Any]]] = [
    [
        {"role": "user", "content": f"Where is the gate? token: {SECRET}"},
        {"role": "assistant", "content": "The gate is in the north. \x1b[2J"},
    ],
    [
        {"role": "user", "content": "No, use the south gate from now on."},
        {"role": "assistant", "content": "The south gate, then."},
    ],
]


class Shell:
    """Calls tools as the command line does."""

    def __init__(self, tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
        self.tree, self._capsys = tree, capsys

    def call(self, tool: str, *options: str, code: int = 0, **arguments: Any) -> str:
        """The text of an answer, without the root's path."""
        words = ("--tool", tool, "--arguments", json.dumps(arguments), *options)
        assert main(["mcp", *words]) == code
        return self._capsys.readouterr().out.replace(self.tree.root, "")

    def show(self, *options: str, **arguments: Any) -> str:
        """What `show_context` answers. Tokens of texts with paths depend on the root: they become N."""
        return TOKENS.sub("N", self.call("show_context", *options, **arguments))

    def import_turns(self, name: str) -> None:
        path = Path(self.tree.path(f"/{name}.jsonl"))
        path.write_text(json_lines(message for turn in TURNS for message in turn))
        assert main(["sessions", "import", str(path), "--folder", self.tree.path("/home/work")]) == 0
        self._capsys.readouterr()


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    tree = write_fixture(FIXTURE, tmp_path)
    for name, value in {"HOME": "/home", "NEXUS_HOME": "/home/.nexus3", "NEXUS_STATE": "/state"}.items():
        monkeypatch.setenv(name, tree.path(value))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tree.path("/home/work"))
    return Shell(tree, capsys)


# ---------------------------------------------------------------- show_context


def test_what_an_assistant_reads(shell: Shell) -> None:
    assert shell.show("--for", "claude-code") == snapshot("""\
You read N tokens of files with every request in /home/work (rules of Claude Code 2.1.330):
N ~/.claude/CLAUDE.md (user)
N CLAUDE.md (project)
N docs/style.md (import, imported by CLAUDE.md)
N words around instructions, in the first user message
later: sub/CLAUDE.md (N tokens), sent after a file in or below its directory is read
not read: AGENTS.md: CLAUDE.md is read instead. Import this file there: `@AGENTS.md`.
N problem: check_configuration lists them.
""")
    assert shell.show("--for", "codex", assistant="gemini") == snapshot("""\
Gemini CLI reads N tokens of files with every request in /home/work (rules of Gemini CLI 0.61.0):
not read: ~/.claude/CLAUDE.md: Gemini CLI reads GEMINI.md, not CLAUDE.md.
not read: AGENTS.md: Gemini CLI reads GEMINI.md, not AGENTS.md.
not read: CLAUDE.md: Gemini CLI reads GEMINI.md, not CLAUDE.md.
not read: sub/CLAUDE.md: Gemini CLI reads GEMINI.md, not CLAUDE.md.
""")
    assert shell.show("--for", "codex", path="sub") == snapshot("""\
You read N tokens of files with every request in /home/work/sub (rules of Codex 0.169.0):
not read: ~/.claude/CLAUDE.md: Codex reads AGENTS.md, not CLAUDE.md.
not read: AGENTS.md: Codex does not read AGENTS.md in this place.
not read: CLAUDE.md: Codex reads AGENTS.md, not CLAUDE.md.
not read: sub/CLAUDE.md: Codex reads AGENTS.md, not CLAUDE.md.
N problem: check_configuration lists them.
""")


@pytest.mark.parametrize("assistant", ["claude-code", "codex", "opencode", "copilot"])
def test_the_tokens_are_those_of_the_profile(shell: Shell, assistant: str) -> None:
    surroundings = Surroundings(shell.tree.path("/home/work"), shell.tree.path("/home"), os.environ)
    title, *lines = shell.call("show_context", assistant=assistant).splitlines()
    counts = [int(match[1].replace(",", "")) for line in lines if (match := re.match(r"≈?([\d,]+) ", line))]
    total = read_profile(assistant, surroundings).total
    assert sum(counts[: -1 if "problem" in lines[-1] else None]) == total > 0
    assert f"{total:,} tokens" in title


def test_the_servers_of_an_assistant(shell: Shell) -> None:
    Path(shell.tree.path("/home/work/.mcp.json")).write_text('{"mcpServers": {"gate": {"command": "x"}}}')
    text = shell.call("show_context", assistant="claude-code")
    assert [line for line in text.splitlines() if line.startswith("MCP")] == [
        (
            "MCP server gate (project, .mcp.json) waits for approval: Claude Code asks the user first; "
            "`claude -p` starts it without asking."
        )
    ]


def test_what_nexus_itself_sends(shell: Shell) -> None:
    unknown = shell.show()
    assert unknown == shell.show(assistant="nexus")
    assert unknown == snapshot("""\
The system prompt of the user's own chats with Nexus has N tokens here:
N text of Nexus
N AGENTS.md
not read: ~: is the home directory
not read: CLAUDE.md: has no effect beside AGENTS.md: of NEXUS.md, AGENTS.md, CLAUDE.md the first that exists is read. Write @CLAUDE.md in AGENTS.md to read it, too
""")  # noqa: E501


def test_who_reads_a_file(shell: Shell) -> None:
    assert shell.show(path="AGENTS.md") == snapshot("""\
Who reads AGENTS.md:
Claude Code: not read. CLAUDE.md is read instead. Import this file there: `@AGENTS.md`.
Codex: N tokens in every request
opencode: N tokens in every request
Gemini CLI: not read. Gemini CLI reads GEMINI.md, not AGENTS.md.
GitHub Copilot: N tokens in every request
Cursor: N tokens in every request
""")
    assert shell.show(path="docs/gate.md") == snapshot(
        "No assistant loads docs/gate.md as instructions in /home/work.\n"
    )
    assert shell.show(assistant="all") == snapshot("""\
Tokens of files in every request: Claude Code N, Codex N, opencode N, Gemini CLI N, \
GitHub Copilot N, Cursor N.
~/.claude/CLAUDE.md: claude-code sent N, opencode sent N, copilot sent N
AGENTS.md: codex sent N, opencode sent N, copilot sent N, cursor sent N
CLAUDE.md: claude-code sent N, copilot sent N, cursor later
docs/style.md: claude-code sent N
sub/CLAUDE.md: claude-code later, opencode later
""")


# ---------------------------------------------------------------- check_configuration


def test_problems(shell: Shell) -> None:
    assert shell.call("check_configuration", "--for", "claude-code") == snapshot("""\
1 problem in /home/work in what Nexus and Claude Code read:
warning CLAUDE.md:2:26: none.md does not exist. Correct the path, or add the file. (assistant.import)
""")
    assert shell.call("check_configuration", assistant="nexus", path="broken") == snapshot("""\
1 problem in /home/work/broken in what Nexus read:
error broken/.nexus3/config.json:1:11: "tools" must be an object, not a whole number. (config.type)
""")
    assert "Codex" in shell.call("check_configuration", assistant="all")


def test_one_thing_is_explained(shell: Shell) -> None:
    line = shell.call("check_configuration", explain="CLAUDE.md:1", assistant="claude-code")
    assert "Claude Code" in line and "Sent with every request: line " in line
    setting = shell.call("check_configuration", explain="/context/max_tokens", assistant="nexus")
    assert "The default of Nexus." in setting
    assert "asks" in shell.call("check_configuration", explain="Bash(git push)", assistant="claude-code")
    outside = shell.call("check_configuration", explain="/etc/passwd:1", code=1)
    assert "/etc/passwd:1 is not in this folder." in outside


def test_a_path_that_is_no_directory_is_refused(shell: Shell) -> None:
    assert shell.call("check_configuration", path="CLAUDE.md", code=1) == snapshot(
        "`path` must be a directory. Name the one that has the file.\n"
    )


# ---------------------------------------------------------------- conversations and memory


def test_a_folder_without_conversations(shell: Shell) -> None:
    assert shell.call("search_conversations", query="gate") == snapshot(
        "This folder has no conversations yet.\n"
    )
    assert shell.call("search_conversations") == snapshot("This folder has no conversations yet.\n")
    assert shell.call("query_memory") == snapshot("Nothing of the kind `important` is remembered here yet.\n")
    assert shell.call("search_conversations", session="none", code=1) == snapshot(
        "This folder has no conversation 'none'. It has: none.\n"
    )


def test_searching_and_reading_conversations(shell: Shell) -> None:
    shell.import_turns("talk")
    found = shell.call("search_conversations", query="gate north")
    assert "session 'talk', turn 1" in found
    assert "[turn 2] user: No, use the south gate" in shell.call(
        "search_conversations", session="talk", turn=2
    )
    whole = shell.call("search_conversations", session="talk")
    assert SECRET not in whole + found
    assert "\x1b" not in whole
    assert "talk" in shell.call("search_conversations")
    assert shell.call("search_conversations", session="talk", turn=9, code=1) == snapshot(
        "The conversation 'talk' has 2 turns.\n"
    )
    assert shell.call("search_conversations", query="?!", code=1) == snapshot(
        "`query` '?!' has no word to search for.\n"
    )


def test_conversations_of_other_folders_are_not_told(shell: Shell) -> None:
    shell.import_turns("talk")
    other = ("--folder", shell.tree.path("/home/other"))
    assert "no conversations" in shell.call("search_conversations", *other, query="gate")
    assert shell.call("search_conversations", *other, session="talk", code=1) == snapshot(
        "This folder has no conversation 'talk'. It has: none.\n"
    )
    above = ("--folder", shell.tree.path("/home"))
    assert ", work]" in shell.call("search_conversations", *above, query="gate")


def test_notes(shell: Shell) -> None:
    assert shell.call("add_memory", text="The gate opens at six.", code=2) == ""
    assert shell.call("add_memory", "--write", text="The gate opens at six.") == snapshot(
        "The note is kept in the session 'notes' of this folder.\n"
    )
    assert "The gate opens at six." in shell.call("query_memory", kind="notes")
    assert "The gate «opens» at six." in shell.call("search_conversations", query="opens")
    assert shell.call("add_memory", "--write", text="  ", code=1) == snapshot("add_memory needs `text`.\n")


# ---------------------------------------------------------------- knowledge


def test_passages(shell: Shell) -> None:
    assert shell.call("search_knowledge", query="When does the north gate close?") == snapshot("""\
Passages of the knowledge base, best first:

docs/gate.md:1 › Gates › The north gate
# Gates
## The north gate
The north gate closes at nine.
""")
    assert shell.call("search_knowledge", query="zebra") == snapshot(
        "No passage of the knowledge base matches. Try fewer or other words.\n"
    )
    other = ("--folder", shell.tree.path("/home/other"))
    assert shell.call("search_knowledge", *other, query="gate", code=1) == snapshot(
        "This folder has no knowledge base. The user can name its files in `memory.knowledge.paths` of "
        ".nexus3/config.json.\n"
    )


# ---------------------------------------------------------------- bounds


def test_pages_hold_every_line_once(shell: Shell) -> None:
    for number in range(60):
        Path(shell.tree.path(f"/home/work/docs/{number}.md")).write_text(f"Page {number} of the gate.\n" * 9)
    whole = shell.call("search_knowledge", "--max-tokens", "20000", query="gate")
    assert "Page 2 of" not in whole.splitlines()[-1]
    pages: list[str] = []
    text = ""
    while not pages or f"Call again with page {len(pages) + 1}" in text:
        text = shell.call("search_knowledge", "--max-tokens", "500", query="gate", page=len(pages) + 1)
        pages.append(text)
        assert counter_for("gpt-5").count(text) <= 500
    assert len(pages) > 5
    title = whole.splitlines()[0]
    lines = [line for page in pages for line in page.splitlines()[1:-1]]
    assert [line for line in lines if line] == [
        line for line in whole.splitlines() if line not in ("", title)
    ]
    last = shell.call("search_knowledge", "--max-tokens", "500", query="gate", page=len(pages) + 1, code=1)
    assert last == f"There is no page {len(pages) + 1}. The last one is {len(pages)}.\n"


def test_a_long_item_is_cut(shell: Shell) -> None:
    shell.call("add_memory", "--write", text="gate " * 1_900)
    text = shell.call("query_memory", "--max-tokens", "300", kind="notes")
    assert text.endswith("… (cut)\n")
    assert counter_for("gpt-5").count(text) <= 300


# ---------------------------------------------------------------- wrong and hostile calls


@pytest.mark.parametrize(
    ("tool", "arguments", "text"),
    [
        (
            "show_context",
            {"path": "../other"},
            snapshot("`path` leads out of the workspace, /home/work. Name a path in it.\n"),
        ),
        (
            "show_context",
            {"path": "../work-next"},
            snapshot("`path` leads out of the workspace, /home/work. Name a path in it.\n"),
        ),
        (
            "show_context",
            {"path": "../../../../../etc"},
            snapshot("`path` leads out of the workspace, /home/work. Name a path in it.\n"),
        ),
        (
            "show_context",
            {"path": "/home/work/../other/secret.md"},
            snapshot("`path` leads out of the workspace, /home/work. Name a path in it.\n"),
        ),
        (
            "show_context",
            {"path": "link"},
            snapshot("`path` leads out of the workspace, /home/work. Name a path in it.\n"),
        ),
        (
            "show_context",
            {"path": "~/other"},
            snapshot("`path` leads out of the workspace, /home/work. Name a path in it.\n"),
        ),
        (
            "show_context",
            {"path": "none\x1b[2J.md"},
            snapshot("`path` 'none\\x1b[2J.md' does not exist in /home/work.\n"),
        ),
        ("show_context", {"path": "a\0b"}, snapshot("`path` has a NUL character, which no path can have.\n")),
        (
            "show_context",
            {"path": "x" * 300},
            f"`path` {'x' * 200!r} does not exist in /home/work.\n",
        ),
        (
            "show_context",
            {"assistant": "aider"},
            snapshot("""\
`assistant` of show_context is 'aider'. It must be one of: claude-code, codex, opencode, gemini, copilot, \
cursor, nexus, all.
"""),
        ),
        ("show_context", {"page": 0}, snapshot("`page` of show_context must be from 1 to 1,000,000.\n")),
        ("show_context", {"page": True}, snapshot("`page` of show_context must be a whole number.\n")),
        ("show_context", {"page": 1.5}, snapshot("`page` of show_context must be a whole number.\n")),
        ("show_context", {"page": 10**30}, snapshot("`page` of show_context must be from 1 to 1,000,000.\n")),
        (
            "show_context",
            {"file": "x"},
            snapshot("show_context has no argument 'file'. It has: assistant, path, page.\n"),
        ),
        ("show_context", {"path": ["x"]}, snapshot("`path` of show_context must be a string.\n")),
        (
            "query_memory",
            {"kind": "all"},
            snapshot("`kind` of query_memory is 'all'. It must be one of: important, summaries, notes.\n"),
        ),
        ("search_knowledge", {}, snapshot("search_knowledge needs `query`.\n")),
        (
            "search_knowledge",
            {"query": "x" * 20_000},
            snapshot("`query` of search_knowledge has 20,000 characters. It may have 10,000 characters.\n"),
        ),
        (
            "search_conversations",
            {"query": "\ud800"},
            snapshot("`query` '\\ud800' has no word to search for.\n"),
        ),
        (
            "search_conversations",
            {"session": "a\0b"},
            snapshot("This folder has no conversation 'a\\x00b'. It has: none.\n"),
        ),
        (
            "check_configuration",
            {"assistant": {}},
            snapshot("`assistant` of check_configuration must be a string.\n"),
        ),
    ],
)
def test_a_wrong_call_says_what_to_do(shell: Shell, tool: str, arguments: dict[str, Any], text: str) -> None:
    os.symlink(shell.tree.path("/home/other"), shell.tree.path("/home/work/link"))
    assert shell.call(tool, code=1, **arguments) == text


def test_a_secret_in_an_error_is_covered(shell: Shell) -> None:
    assert SECRET not in shell.call("show_context", path=f"file {SECRET}", code=1)
    assert SECRET not in shell.call("search_conversations", session=SECRET, code=1)


def test_an_error_does_not_steer_a_terminal(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["mcp", "--tool", "show_context", "--json", "--folder", f"/gone{hostile.CLEAR}"]
    assert main(words) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["isError"]
    assert hostile.steered(result["content"][0]["text"]) == []


def test_what_mattered_in_one_conversation(shell: Shell) -> None:
    for name in ("talk", "walk"):
        shell.import_turns(name)
    assert "'walk'" in shell.call("query_memory")
    one = shell.call("query_memory", session="talk")
    assert "'talk'" in one
    assert "'walk'" not in one
    assert "has no conversation" in shell.call("query_memory", session="chalk", code=1)
    assert shell.call("query_memory", session="talk") == one  # from what the first call has read
    assert shell.call("query_memory", kind="summaries")


def test_a_call_that_nobody_waits_for_ends(shell: Shell) -> None:
    words = ["mcp", "--tool", "search_knowledge", "--arguments", '{"query": "gate"}', "--json"]
    folder = shell.tree.path("/home/work")
    assert run_here(words, folder, lambda: True) is None
    printed = run_here(words, folder, lambda: False)
    assert printed is not None
    assert b"closes at nine" in printed[0]
    words[2:5] = ["add_memory", "--write", "--arguments", '{"text": "x"}']
    assert run_here(words, folder, lambda: True) is not None  # what writes is never interrupted


@pytest.mark.parametrize("text", ["", "[]", "nul", "[" * 100_000, '{"page": 1' + "0" * 5_000 + "}"])
def test_arguments_that_are_no_object(shell: Shell, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--tool", "show_context", "--arguments", text]) == 1
    assert "JSON" in capsys.readouterr().out


def test_a_folder_that_is_gone(shell: Shell) -> None:
    gone = ("--folder", shell.tree.path("/home/gone"))
    assert shell.call("show_context", *gone, code=1) == snapshot(
        "The workspace /home/gone is not a directory any more.\n"
    )


@pytest.mark.parametrize("tool", definitions.READING)
def test_nothing_steers_a_terminal(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = hostile.folder(tmp_path)
    for name, value in hostile.environ(tmp_path).items():
        monkeypatch.setenv(name, value)
    main(["sessions", "import", str(work / f"{hostile.NAME}.jsonl"), "--folder", str(work)])
    capsys.readouterr()
    query = {"query": "why"} if tool.startswith("search") else {}
    main(["mcp", "--tool", tool, "--folder", str(work), "--json", "--arguments", json.dumps(query)])
    printed = capsys.readouterr()
    text = json.loads(printed.out)["content"][0]["text"]
    assert hostile.steered(text + printed.err) == []


# ---------------------------------------------------------------- definitions


@pytest.mark.parametrize("model", ["gpt-5", "gpt-4", "claude-sonnet-4-5", "gemini-2.5-pro", "unknown"])
def test_the_definitions_cost_less_than_promised(model: str) -> None:
    tools = definitions.definitions(writes=True)
    assert len(tools) <= 6
    whole = json.dumps({"instructions": definitions.instructions(), "tools": tools})
    assert counter_for(model).count(whole) < 1_500
    sent = "".join(cost.model_text(tool) for tool in tools)
    assert counter_for(model).count(sent) < 1_300


def test_reading_is_the_default() -> None:
    tools = {tool["name"]: tool for tool in definitions.definitions(writes=True)}
    assert [tool["name"] for tool in definitions.definitions(writes=False)] == [
        name for name, tool in tools.items() if tool["annotations"]["readOnlyHint"]
    ]
    assert not tools["add_memory"]["annotations"]["readOnlyHint"]


def test_every_argument_is_described() -> None:
    for tool in definitions.definitions(writes=True):
        assert tool["description"]
        for name, schema in tool["inputSchema"]["properties"].items():
            assert "description" in schema or "enum" in schema, name


def test_what_the_tools_cost(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--tokens"]) == 0
    assert capsys.readouterr().out == snapshot("""\
    ≈29       19  instructions
   ≈295      199  show_context
   ≈251      169  check_configuration
   ≈252      170  search_conversations
   ≈184      124  query_memory
   ≈147       99  search_knowledge
   ≈111       75  add_memory
 ≈1,158      780  total
 ≈1,269      855  total with --write
tokens in every request of: Claude Code (o200k_base × 1.48 (Claude))  Codex (o200k_base (gpt-5))
""")
