"""`nexus show --session`, `--event`, `--tools` and `--memory`: the next turn of a stored conversation."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.config.picked_model import ModelChoice
from nexus_context.conversation.message import Message
from nexus_context.ledger import open_ledger
from nexus_context.ledger.location import workspace_of
from nexus_context.ledger.records import Counted, DirectMessage, NewTurn, SessionOptions
from nexus_context.tokens.correction import UsageReport
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Request
from nexus_daemon.cli import main
from nexus_daemon.cli.folder import read
from support.commands import run_nexus, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/a/.nexus3/config.json
{"provider": {"name": "openai", "model": "gpt-4o"}, "memory": {"knowledge": {"paths": ["./docs"]}}}
//- /home/a/docs/deploy.md
# Rollback

Run make rollback within an hour.
//- /tools.json
[{"name": "deploy", "description": "Deploys.", "inputSchema": {"type": "object"}}]
//- /nameless.json
[{"description": "Deploys."}]
//- /object.json
{"name": "deploy"}
"""
CHAT = [("user", "Is the disk full?"), ("assistant", "Yes."), ("user", "Empty it."), ("assistant", "Done.")]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


@pytest.fixture
def chat(tree: Fixture) -> Fixture:
    """With one session, `chat`, and a message that waits for `main`."""
    ledger, workspace = open_ledger(), workspace_of(tree.path("/home/a"))
    for start in (0, 2):
        messages = tuple(
            Counted(Message("user" if role == "user" else "assistant", text), 5)
            for role, text in CHAT[start : start + 2]
        )
        ledger.append(workspace, "chat", NewTurn(messages=messages, counter="o200k_base"))
    ledger.options.keep(workspace, "chat", SessionOptions(ModelChoice("house-model", 60_000)))
    ledger.messages.send(
        DirectMessage(
            id="1", workspace=workspace, source="auth", target="main", content="The tests pass.", created=0.0
        )
    )
    ledger.close()
    return tree


def check(
    tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0
) -> tuple[str, str]:
    """Standard output and error of `nexus show /home/a`, the root's path left out."""
    output = run_nexus(capsys, "show", tree.path("/home/a"), *arguments, root=tree.root)
    assert output.code == code
    return output.out, output.err


def assembled(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """The turn as `nexus/context/assemble` has it."""
    return json.loads(check(tree, capsys, *arguments, "--format", "json")[0])


def test_a_session_is_sent(chat: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    turn = assembled(chat, capsys, "--session", "chat")
    assert [(one["role"], one["content"]) for one in turn["history"]] == CHAT
    assert turn["session"] == "chat"
    out, _ = check(chat, capsys, "--session", "chat", "--message", "Why?")
    _, _, rest = out.partition("── session chat: 4 messages since the last compaction\n")
    listed, _, last = rest.partition("── last user message (")
    numbers = [line.split()[0:2] for line in listed.splitlines() if line.strip()]
    assert numbers == [
        ["–", "system"],
        ["1", "user"],
        ["2", "assistant"],
        ["3", "user"],
        ["4", "assistant"],
        ["–", "user"],
    ]
    assert last.endswith("Why?\n")


def test_a_session_is_cut_as_the_budget_asks(chat: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    whole = assembled(chat, capsys, "--session", "chat")["usage"]
    budget = whole["total"] + whole["reserved"] - 1
    turn = assembled(chat, capsys, "--session", "chat", "--budget", str(budget))
    assert [(one["role"], one["content"]) for one in turn["history"]] == CHAT[2:]


def test_the_model_is_the_session_s_own(chat: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    Path(chat.path("/home/a/.nexus3/config.json")).write_text("{}")
    out, err = check(chat, capsys, "--session", "chat", "--tokens")
    assert "of 58,000 tokens for house-model" in out
    assert err == "nexus show: for the model house-model, as session 'chat' is; --model names another.\n"


def test_event_and_tools(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    tools = tree.path("/tools.json")
    event = '{"platform": "slack", "channel": "ops"}'
    turn = assembled(tree, capsys, "--event", event, "--tools", tools)
    assert turn["currentMessage"]["content"].splitlines()[1:] == ["Platform: slack", "channel: ops"]
    assert [tool["name"] for tool in turn["tools"]] == ["deploy"]
    assert not Path(tree.path("/state/ledger.db")).exists()


def test_memory(chat: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--session", "chat", "--message", "Is a rollback possible?")
    bare = assembled(chat, capsys, *arguments)["currentMessage"]["content"]
    assert "rollback within" not in bare
    for _ in range(2):  # the message that waits is not delivered
        content = assembled(chat, capsys, *arguments, "--memory")["currentMessage"]["content"]
        assert "The tests pass." in content
        assert "Run make rollback within an hour." in content
        assert "Empty it." not in content  # the history has it
        assert content.endswith("Is a rollback possible?")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--session", "chatt"), 1, "There is no session 'chatt' in /home/a. Did you mean 'chat'?"),
        (("--event", "[1]"), 2, "--event is of type list; an event is a JSON object."),
        (("--event", "{"), 2, "--event is not valid JSON: Input data was truncated."),
        (
            ("--event", '{"timezone": "Mars"}'),
            1,
            (
                "event.timezone is 'Mars', which is not a known time zone. Use an IANA name such as "
                "`Europe/Berlin`, `UTC` or `local`."
            ),
        ),
        (("--tools", "/none.json"), 2, "/none.json does not exist."),
        (("--tools", "/object.json"), 2, "/object.json is of type dict; it must be a JSON list of tools."),
        (
            ("--tools", "/nameless.json"),
            1,
            '/nameless.json: tool 1 has no name. Give it one: {"name": "…", …}.',
        ),
        (("--memory",), 2, "--memory goes with --message TEXT or --event JSON: only a turn has memory."),
        (
            ("--session", "agent:auth"),
            2,
            "agent:auth is the conversation of an agent: add --agent auth.",
        ),
        (
            ("--session", "chat", "--messages", "-"),
            2,
            "--session is about a stored session, and --messages about a file: leave out one of them.",
        ),
        (("--diff", "main", "--session", "chat"), 2, "--diff compares two prompts: leave out --session."),
    ],
)
def test_mistakes(
    chat: Fixture, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    paths = [chat.path(each) if each.endswith(".json") else each for each in arguments]
    assert check(chat, capsys, *paths, code=code) == ("", f"nexus show: {message}\n")


def test_without_a_ledger_none_is_created(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    _, err = check(tree, capsys, "--session", "chat", code=1)
    assert err == (
        "nexus show: There is no session 'chat' in /home/a. Nexus keeps none of that folder; nexus sessions "
        "list --all lists those of all folders.\n"
    )
    assert not Path(tree.path("/state/ledger.db")).exists()


def test_a_session_that_began_with_other_files(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree.path("/home/a")
    ledger = open_ledger()
    conversation = ContextManager(ledger=ledger, folder=folder, session="kept")
    request = Request(Message("user", "Is the disk full?"))
    context = assemble(read(Path(folder)), conversation, request, now=datetime.now().astimezone())
    assert context.turn_message is not None
    conversation.add([context.turn_message, Message("assistant", "Yes, it is. " * 500)])
    ledger.close()
    Path(folder, "NEXUS.md").write_text("Answer in one sentence.\n")

    out, _ = check(tree, capsys, "--session", "kept", "--message", "Why?")
    prompt, _, rest = out.partition("── session kept")
    assert "Answer in one sentence." not in prompt
    assert "pending: /home/a/NEXUS.md was added since it was sent: the next message tells it." in rest
    assert "written again" in rest
    assert "nexus sessions rebase kept" in " ".join(rest.split())
    note = (
        "## Project Configuration\nSource: /home/a/NEXUS.md\n\nAnswer in one sentence.\n</changes>\n\nWhy?\n"
    )
    assert out.endswith(f"is new and applies from now on:\n{note}")

    assert main(["sessions", "rebase", "kept", "--folder", folder]) == 0
    said = capsys.readouterr().out
    assert said.startswith("The next request of 'kept' begins with the present system prompt and tools: ")
    out, _ = check(tree, capsys, "--session", "kept", "--message", "Why?")
    assert "Answer in one sentence." in out.partition("── session kept")[0]
    assert "pending" not in out


def test_the_total_is_corrected_by_what_the_provider_counted(
    chat: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    estimated = assembled(chat, capsys, "--session", "chat")["usage"]["total"]
    report = UsageReport("gpt-4o", reported=estimated * 3 // 2, estimated=estimated, shown=estimated)
    ledger, workspace = open_ledger(), workspace_of(chat.path("/home/a"))
    for number in range(8):
        new = NewTurn(messages=(Counted(Message("user", "Hi."), 5),), counter="o200k_base", report=report)
        ledger.append(workspace, f"other {number}", new)
    messages = (Counted(Message("user", "And now?"), 7),)
    ledger.append(workspace, "chat", NewTurn(messages=messages, counter="o200k_base", report=report))
    ledger.close()
    usage = assembled(chat, capsys, "--session", "chat")["usage"]
    later = usage["total"] - estimated
    assert usage["corrected"] == {
        "total": estimated * 3 // 2 + later * report.ratio // 1000,
        "percent": usage["wantedPercent"],
        "errorPercent": round(report.deviation / 10, 1),
    }
    out, _ = check(chat, capsys, "--session", "chat", "--tokens")
    assert out.splitlines()[-1] == (
        f"≈{usage['corrected']['total']:,} tokens ({usage['wantedPercent']} %), corrected by what the "
        "provider counted, lately ±33.3 %."
    )
