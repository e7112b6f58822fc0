"""`nexus agents`, `memory`, `skill`, `status` and `sessions append, compact, undo`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.ledger import open_ledger
from nexus_daemon.cli import main
from nexus_daemon.cli.memory import BEGINS_MEMORY
from support.commands import output_of, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/a/NEXUS.md
Rules.
//- /home/a/api/NEXUS.md
Rules of the API.
//- /home/a/.nexus3/skills/pdf/SKILL.md
---
name: pdf
description: Fills forms.
---
Text of pdf.
//- /home/a/.nexus3/skills/broken/SKILL.md
---
name: broken
---
Text.
//- /home/.nexus3/skills/pdf/SKILL.md
---
name: pdf
description: The user's own.
---
Another text.
//- /home/lone/NEXUS.md
Lone.
"""
NO_SESSIONS = "Nexus keeps none of that folder; nexus sessions list --all lists those of all folders."
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")


class Shell:
    """The command line of a user, and what it prints, without the root's path and times."""

    def __init__(self, tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
        self.tree, self._capsys = tree, capsys

    def run(self, *arguments: str, code: int = 0) -> str:
        return TIME.sub("<time>", output_of(self.tree, self._capsys, *arguments, code=code))

    def json(self, *arguments: str) -> Any:
        assert main([*arguments, "--json"]) == 0
        return json.loads(self._capsys.readouterr().out)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    tree = write_fixture(FIXTURE, tmp_path)
    use_home(monkeypatch, tmp_path)
    monkeypatch.chdir(tree.path("/home/a"))
    return Shell(tree, capsys)


def agents_of(shell: Shell) -> list[tuple[str, str | None]]:
    """The running agents in the ledger, each with its parent."""
    ledger = open_ledger(shell.tree.path("/state/ledger.db"), environ={})
    try:
        return [(one.name, one.parent) for one in ledger.agents.running(shell.tree.path("/home/a"))]
    finally:
        ledger.close()


# ---------------------------------------------------------------- agents


def test_agents_live_in_the_ledger_from_spawn_to_dispose(shell: Shell) -> None:
    assert re.sub(
        r"\d+ tokens", "<n> tokens", shell.run("agents", "spawn", "api", "--cwd", "api")
    ) == snapshot("'api' is running as worker in /home/a/api: <n> tokens, session 'agent:api'.\n")
    shell.run("agents", "spawn", "tests", "--parent", "api", "--task", "Test it.")
    assert agents_of(shell) == [("api", None), ("tests", "api")]
    rows = [line.split() for line in shell.run("agents", "list").splitlines() if line.strip(" ─")]
    assert [[*row[:3], *row[4:]] for row in rows] == [
        ["agent", "role", "below", "directory", "task"],
        ["api", "worker", "main", "~/a/api"],
        ["tests", "worker", "api", "~/a/api", "Test", "it."],
    ]
    assert shell.run("agents", "dispose", "api") == "'tests' has ended.\n'api' has ended.\n"
    assert agents_of(shell) == []
    assert (
        shell.run("agents", "list")
        == "nexus agents: /home/a has no running agents; nexus agents spawn NAME starts one.\n"
    )


def test_agents_get_what_the_command_line_grants(shell: Shell) -> None:
    options = (
        "--role",
        "manager",
        "--level",
        "worker",
        "--deny",
        "Bash",
        "--tool",
        "Read",
        "--model",
        "gpt-4o",
    )
    shell.run("agents", "spawn", "boss", *options)
    ledger = open_ledger(shell.tree.path("/state/ledger.db"), environ={})
    (boss,) = ledger.agents.running(shell.tree.path("/home/a"))
    ledger.close()
    assert {name: boss.wanted[name] for name in ("role", "permissions", "tools", "model")} == {
        "role": "manager",
        "permissions": {"level": "worker", "deny": ["Bash"]},
        "tools": ["Read"],
        "model": "gpt-4o",
    }


def test_a_message_waits_for_its_agent(shell: Shell) -> None:
    shell.run("agents", "spawn", "api")
    assert (
        shell.run("agents", "message", "api", "Hello.") == "The message waits for the next turn of 'api'.\n"
    )
    ledger = open_ledger(shell.tree.path("/state/ledger.db"), environ={})
    (waiting,) = ledger.messages.inbox(shell.tree.path("/home/a"), "api", now=0.0)
    ledger.close()
    assert (waiting.source, waiting.content, waiting.priority) == ("main", "Hello.", 0.5)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("dispose", "nobody"), 1, "There is no agent 'nobody' in /home/a. Agents: main."),
        (("spawn", "a b"), 1, None),
        (("message", "api", "x", "--priority", "2"), 1, None),
        (("message", "api", "x", "--ttl", "-1"), 1, None),
        (("list", "--folder", "/nowhere"), 2, "/nowhere is not a folder."),
    ],
)
def test_mistakes_are_one_line(
    shell: Shell, arguments: tuple[str, ...], code: int, message: str | None
) -> None:
    printed = shell.run("agents", *arguments, code=code)
    assert printed.startswith("nexus agents: ")
    assert printed.count("\n") == 1
    if message is not None:
        assert printed == f"nexus agents: {message}\n"


# ---------------------------------------------------------------- sessions


def test_a_conversation_is_appended_to_compacted_and_restored(shell: Shell) -> None:
    for number in range(12):
        shell.run("sessions", "append", "main", f"Question {number}. " + "Please explain it at length. " * 40)
        answer = f"Answer {number}. " + "It is as it is, at length. " * 60
        shell.run("sessions", "append", "main", answer, "--role", "assistant")
    before = shell.json("sessions", "list")
    printed = shell.run("sessions", "compact", "main", "--pin", "Never touch prod.")
    assert re.match(r"\d+ messages of 'main' replaced: [\d,]+ tokens before, [\d,]+ after\. ", printed)
    assert printed.endswith("nexus sessions undo main restores them.\n")
    compacted = shell.json("sessions", "list")
    assert compacted["sessions"][0]["tokens"] < before["sessions"][0]["tokens"]
    assert shell.run("sessions", "undo", "main").startswith("The messages of 'main' are restored: ")
    restored = shell.json("sessions", "list")
    assert restored["sessions"][0]["tokens"] == before["sessions"][0]["tokens"]
    assert (
        shell.run("sessions", "undo", "main", code=1) == "nexus sessions: There is no compaction to undo.\n"
    )


def test_a_key_appends_once(shell: Shell) -> None:
    first = shell.json("sessions", "append", "main", "Hi", "--key", "k")
    again = shell.json("sessions", "append", "main", "Hi", "--key", "k")
    assert first["turn"] == again["turn"]
    assert first["count"] == again["count"]


def test_a_file_is_appended_as_one_turn(shell: Shell) -> None:
    file = Path(shell.tree.path("/home/chat.jsonl"))
    file.write_text('{"role": "user", "content": "Q"}\n{"role": "assistant", "content": "A"}\n')
    shell.run("sessions", "append", "main", "--messages", str(file))
    (session,) = shell.json("sessions", "list")["sessions"]
    assert (session["turns"], session["messages"]) == (1, 3)  # Nexus opens a session with a message


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("append", "main"), 2, "append takes either TEXT or --messages FILE."),
        (("append", "main", "--messages", "/nowhere"), 1, "/nowhere does not exist."),
        (
            ("append", "main", "--messages", "x", "--role", "user"),
            2,
            "--role is the role of TEXT; messages of a file have their own.",
        ),
        (
            ("compact", "nope"),
            1,
            f"There is no session 'nope' in /home/a. {NO_SESSIONS}",
        ),
    ],
)
def test_a_wrong_session_command_says_why(
    shell: Shell, arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert shell.run("sessions", *arguments, code=code) == f"nexus sessions: {message}\n"


# ---------------------------------------------------------------- memory


def test_a_note_is_remembered(shell: Shell) -> None:
    assert shell.run("memory", "add", "Staging is read-only.") == "Added to the session 'notes'.\n"
    assert shell.run("memory", "query", "--level", "2", "--session", "notes") == snapshot("""\
[session notes, turn 1, <time>]
user: Staging is read-only.
""")
    assert shell.run("memory", "query", "staging") == snapshot("""\
[session notes, turn 1, <time>]
user: «Staging» is read-only.
""")
    assert shell.run("memory", "list") == snapshot("""\
Exchanges that matter (L2)

[session notes, turn 1, <time>]
user: Staging is read-only.

""")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("query", "x", "--level", "2"),
            2,
            "only a query of level 4 takes words; leave out --level, or the words.",
        ),
        (
            ("query", "--limit", "99"),
            2,
            "query_l4_memory: limit is 99; it must be a whole number from 1 to 50.",
        ),
        (
            ("list",),
            0,
            f"nothing is remembered of /home/a yet. {BEGINS_MEMORY}",
        ),
        (("add", " "), 2, "the note is empty."),
    ],
)
def test_a_wrong_memory_command_says_why(
    shell: Shell, arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert shell.run("memory", *arguments, code=code) == f"nexus memory: {message}\n"


# ---------------------------------------------------------------- skill


def test_skills_are_listed_with_their_readiness(shell: Shell) -> None:
    skills = shell.json("skill", "list")["skills"]
    assert [(one["name"], one["layer"], one["readiness"], one["errors"]) for one in skills] == [
        ("pdf", "local", "ready", 0),
        ("pdf", "global", "shadowed", 0),
        ("broken", "local", "broken", 1),
    ]
    rows = [line.split() for line in shell.run("skill", "list").splitlines() if line.strip(" ─")]
    assert rows[1][:2] == ["pdf", "local"]
    assert rows[1][-1] == "ready"


def test_use_prints_what_a_model_gets(shell: Shell) -> None:
    text = shell.run("skill", "use", "pdf")
    assert text == "## Skill: pdf\nSource: /home/a/.nexus3/skills/pdf/SKILL.md\n\nText of pdf.\n"
    assert text.rstrip() in shell.run("show", "--skill", "pdf")
    assert (
        shell.run("skill", "use", "pd", code=1) == 'nexus skill: There is no skill "pd"; did you mean pdf?\n'
    )


def test_show_prints_the_file_and_its_problems(shell: Shell) -> None:
    assert shell.run("skill", "show", "pdf") == snapshot("""\
── /home/a/.nexus3/skills/pdf/SKILL.md (local, ready)
---
name: pdf
description: Fills forms.
---
Text of pdf.
── not used: /home/.nexus3/skills/pdf/SKILL.md (global, shadowed)
""")
    lines = shell.run("skill", "show", "broken", code=1).splitlines()
    assert lines[0] == "── /home/a/.nexus3/skills/broken/SKILL.md (local, broken)"
    assert lines[8].partition(". ")[0] == (
        "  Line 2, Column 1: The front matter has no `description`: the skill is not used"
    )


# ---------------------------------------------------------------- status


def test_status_needs_no_ledger_and_creates_none(shell: Shell) -> None:
    state = shell.json("status")
    assert state["ledger"] == {
        "path": shell.tree.path("/state/ledger.db"),
        "bytes": None,
        "sessions": 0,
        "allSessions": 0,
        "agents": 0,
        "error": None,
    }
    assert not Path(shell.tree.path("/state")).exists()
    assert (state["errors"], state["skills"], state["layers"]) == (1, 1, ["defaults", "global", "local"])


def test_a_brief_status_in_json_has_what_the_folder_offers(shell: Shell) -> None:
    skill = Path(shell.tree.path("/home/a/.nexus3/skills/mail/SKILL.md"))
    skill.parent.mkdir()
    needs = "metadata:\n  category: communication\n  programs: no-such-program\n"
    skill.write_text(f"---\nname: mail\ndescription: Sends mail.\n{needs}---\nSend it.\n")
    state = shell.json("status", "--brief")
    assert state["skills"] == {
        "communication": {"mail": "untrusted folder, program no-such-program is missing"},
        "": {"pdf": "ready"},
    }
    assert (state["servers"], state["credentials"]) == ({}, {"configured": [], "broken": []})
    assert (state["errors"], state["sessions"], "daemons" in state) == (1, 0, False)
    listed = {one["name"]: one for one in shell.json("skill", "list")["skills"]}
    assert listed["mail"]["readiness"] == "untrusted folder, program no-such-program is missing"
    assert listed["mail"]["category"] == "communication"


def test_status_counts_sessions_and_agents(shell: Shell) -> None:
    shell.run("sessions", "append", "main", "Hi")
    shell.run("sessions", "append", "main", "Hi", "--folder", shell.tree.path("/home/lone"))
    shell.run("agents", "spawn", "api")
    ledger = shell.json("status")["ledger"]
    assert (ledger["sessions"], ledger["allSessions"], ledger["agents"]) == (1, 2, 1)
    assert ledger["bytes"] > 0
    brief = shell.run("status", "--brief")
    assert re.fullmatch(r"nexus \S+: ≈?\d+ of [\d,]+ tokens, 1 error, 0 warnings, 1 session\n", brief)
    assert [line[:13].strip() for line in shell.run("status").splitlines()] == [
        "nexus", "daemon", "folder", "layers", "problems", "tokens", "provider", "ledger", "sessions",
        "agents", "vocabularies",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ({}, "editor"),
        ({"name": "openai"}, "openai at https://api.openai.com/v1: no key named"),
        (
            {"name": "openai-compatible", "api_key_env": "GATE_KEY"},
            "openai-compatible at no address: key in GATE_KEY, which is not set",
        ),
        (
            {
                "name": "openai-compatible",
                "base_url": "http://localhost:1234",
                "api_key_env": "HOME",
                "headers": {"X-A": "secret"},
            },
            "openai-compatible at http://localhost:1234: key in HOME; headers X-A",
        ),
    ],
)
def test_status_says_where_requests_go(shell: Shell, provider: dict[str, Any], expected: str) -> None:
    config = Path(shell.tree.path("/home/.nexus3/config.json"))
    config.write_text(json.dumps({"provider": provider}))
    assert f"provider     {expected}\n" in shell.run("status")
    assert "secret" not in json.dumps(shell.json("status"))
