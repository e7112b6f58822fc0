"""What hooks of other assistants do in the daemon, by the payloads that the real programs sent."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

from nexus_context.ledger import open_ledger
from nexus_daemon.assistants.hooks import handler as handlers
from nexus_daemon.assistants.hooks import hook_folders, loaded_files, running
from nexus_daemon.assistants.hooks.handler import HookHandler
from nexus_daemon.assistants.hooks.hook_event import HookCall, read_payload
from nexus_daemon.assistants.hooks.hook_folders import HookClient, HookFolders
from nexus_daemon.assistants.hooks.loaded_files import LoadedFile, compare, find_session, read_sessions
from nexus_daemon.assistants.hooks.running import RunningSessions
from nexus_daemon.windows.daemon import Daemon
from nexus_daemon.windows.live_folder import LiveFolder
from nexus_daemon.workspace.inputs import load_inputs
from support.json_lines import json_lines
from support.opens import file_opens

T = TypeVar("T")

PAYLOADS: dict[str, list[dict[str, Any]]] = json.loads(
    (Path(__file__).parents[3] / "assistants" / "hook_payloads.json").read_text()
)
SUMMARY = "<analysis>ABC-123</analysis><summary>The user asked about the gate.</summary>"


class Desk:
    """A handler with a state directory of its own and a transcript."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.environ = {"NEXUS_STATE": str(directory / "state"), "HOME": str(directory)}
        self.folder = directory / "company"
        self.folder.mkdir()
        self.transcript = directory / "s.jsonl"
        self.running = RunningSessions()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._daemon: Daemon | None = None
        self.folders = HookFolders(self.start, self._loop)
        self.handler = HookHandler(self.folders, self.running)
        monkeypatch.setattr(handlers, "GATHER_S", 0.0)

    def start(self) -> Daemon:
        """The daemon, on its loop."""
        self._daemon = self._daemon or Daemon(load_inputs(self.environ))
        return self._daemon

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work on the daemon's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    def close(self) -> None:
        self.handler.close()
        if self._daemon is not None:
            self.run(self._daemon.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def clients(self) -> list[str]:
        """Whose folders the daemon has."""
        return [folder.client.name for folder in self.start().windows.folders]

    async def client_of(self, _: Daemon, folder: LiveFolder) -> str:
        return folder.client.name

    @property
    def kept(self) -> dict[str, int]:
        """The turns that the ledger has of each session."""
        with closing(open_ledger(environ=self.environ)) as ledger:
            return {one.name: len(list(ledger.turns(one.workspace, one.name))) for one in ledger.sessions()}

    def write(self, *texts: str) -> None:
        """A transcript with messages of the user."""
        records = [
            {
                "type": "user",
                "uuid": str(at),
                "parentUuid": str(at - 1) if at else None,
                "sessionId": "s",
                "cwd": str(self.folder),
                "message": {"role": "user", "content": text},
            }
            for at, text in enumerate(texts)
        ]
        self.transcript.write_text(json_lines(records))

    def call(self, event: str, *options: str, assistant: str = "claude-code", **fields: Any) -> str | None:
        """The answer to an event; None without one."""
        recorded = next((one for one in PAYLOADS[assistant] if one["hook_event_name"] == event), {})
        payload = {
            **recorded,
            "session_id": "s",
            "cwd": str(self.folder),
            "transcript_path": str(self.transcript),
            **fields,
        }
        call = HookCall(assistant, event, options, json.dumps(payload).encode(), self.environ)
        answer = self.handler.take(call)
        return None if answer is None else answer()

    def keep(self) -> None:
        """Have the transcript kept in the ledger."""
        self.call("PreCompact")
        self.handler.flush()

    def compact(self, *options: str, summary: str = SUMMARY) -> str | None:
        self.call("PreCompact")
        self.call("SubagentStop", last_assistant_message=summary)
        return self.call("SessionStart", *options, source="compact")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    desk = Desk(tmp_path, monkeypatch)
    yield desk
    desk.close()


def test_a_session_after_its_compaction_gets_what_the_summary_dropped(desk: Desk) -> None:
    desk.write("Never use spaces for indentation. My ticket is ABC-123.", "/compact")
    answer = desk.compact()
    assert answer is not None
    output = json.loads(answer)["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    assert output["additionalContext"].splitlines()[1:] == [
        "",
        "Instructions from the user:",
        "- Never use spaces for indentation.",
        "",
        "Names and values:",
        "Ids: ABC-123",
    ]


def test_nothing_is_given_back_that_the_summary_has(desk: Desk) -> None:
    desk.write("Never use spaces for indentation. My ticket is ABC-123.")
    assert desk.compact(summary="Never use spaces for indentation, ABC-123") == ""


@pytest.mark.parametrize("tokens", ["0", "1", "20"])
def test_nothing_is_given_back_that_does_not_fit(desk: Desk, tokens: str) -> None:
    desk.write("Never use spaces for indentation. My ticket is ABC-123.")
    assert desk.compact("--tokens", tokens) == ""


def test_the_summary_of_another_agent_is_not_that_of_the_compaction(desk: Desk) -> None:
    desk.write("Never use spaces for indentation.")
    desk.call("PreCompact")
    desk.call(
        "SubagentStop", agent_type="Explore", last_assistant_message="Never use spaces for indentation."
    )
    assert desk.call("SessionStart", source="compact") is None
    assert desk.compact() is not None


def test_codex_says_in_its_transcript_what_is_left(desk: Desk) -> None:
    def message(role: str, text: str) -> dict[str, Any]:
        content = [{"type": "input_text" if role == "user" else "output_text", "text": text}]
        return {"type": "message", "role": role, "content": content}

    def write(*payloads: tuple[str, dict[str, Any]]) -> None:
        meta = {"id": "s", "cwd": str(desk.folder)}
        records = [
            {"type": kind, "payload": payload} for kind, payload in (("session_meta", meta), *payloads)
        ]
        desk.transcript.write_text(json_lines(records))

    words, report = (
        message("user", "Never use tabs."),
        message("assistant", "I still have to run tests/test_a.py."),
    )
    before = (("response_item", words), ("response_item", report))
    write(*before)
    desk.call("PreCompact", assistant="codex")
    desk.handler.flush()
    write(*before, ("compacted", {"message": "Summary.", "replacement_history": [words]}))
    desk.call("PostCompact", assistant="codex")
    answer = desk.call("SessionStart", assistant="codex", source="compact")
    assert answer is not None
    text = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    assert text.splitlines()[1:] == ["", "Open tasks:", "- I still have to run tests/test_a.py."]


def test_a_second_compaction_needs_a_summary_of_its_own(desk: Desk) -> None:
    desk.write("Never use tabs.")
    desk.call("PreCompact")
    desk.call("SubagentStop", last_assistant_message=SUMMARY)
    desk.call("PreCompact")
    assert desk.call("SessionStart", source="compact") is None


def test_what_an_earlier_compaction_dropped_is_not_given_back(desk: Desk) -> None:
    desk.write("Never use tabs.")
    old = desk.transcript.read_text()
    desk.write("Never use spaces.")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "sessionId": "s"}
    desk.transcript.write_text(old + json.dumps(boundary) + "\n" + desk.transcript.read_text())
    answer = desk.compact()
    assert answer is not None
    assert "Never use spaces." in answer
    assert "Never use tabs." not in answer


def test_a_session_that_was_not_seen_before_its_compaction_gets_nothing(desk: Desk) -> None:
    assert desk.call("SessionStart", source="compact") is None
    assert desk.call("SessionStart", source="startup") is None


@pytest.mark.parametrize("text", [b"", b"\xff\x00\n", b"{}\n[]\n", b'{"type":"user"}\n' * 3, b"x" * 200_000])
def test_a_transcript_that_cannot_be_read_gives_nothing(desk: Desk, text: bytes) -> None:
    desk.transcript.write_bytes(text)
    assert desk.compact() == ""


def test_a_session_is_mirrored_before_its_compaction(desk: Desk) -> None:
    desk.write("Where is the gate?")
    desk.keep()
    assert list(desk.kept.values()) == [1]


def test_what_a_session_loads_is_kept_by_folder(desk: Desk) -> None:
    for name, reason in (
        ("CLAUDE.md", "session_start"),
        ("style.md", "include"),
        ("CLAUDE.md", "session_start"),
    ):
        (desk.folder / name).write_text("x")
        desk.call("InstructionsLoaded", file_path=str(desk.folder / name), load_reason=reason)
        desk.handler.flush()
    session = find_session(desk.environ, "claude-code", str(desk.folder))
    assert session is not None
    assert [(Path(file.path).name, file.reason) for file in session.files] == [
        ("style.md", "include"),
        ("CLAUDE.md", "session_start"),
    ]
    desk.call("InstructionsLoaded", session_id="t", file_path=str(desk.folder / "CLAUDE.md"))
    desk.handler.flush()
    assert [(one.session, len(one.files)) for one in read_sessions(desk.environ)] == [("t", 1)]


def test_a_profile_beside_a_session(desk: Desk) -> None:
    paths = {name: str(desk.folder / name) for name in ("a.md", "b.md", "later.md", "new.md", "gone.md")}
    for name in ("a.md", "b.md", "later.md"):
        Path(paths[name]).write_text(name)
        os.utime(paths[name], (1, 1))
        reason = "path_glob_match" if name == "later.md" else "session_start"
        desk.call("InstructionsLoaded", file_path=paths[name], load_reason=reason)
    desk.handler.flush()
    session = find_session(desk.environ, "claude-code", str(desk.folder))
    assert session is not None
    assert compare(session, [paths["a.md"], paths["b.md"]]).agrees
    assert [file.path for file in compare(session, [paths["a.md"]]).unexpected] == [paths["b.md"]]
    assert compare(session, [paths["a.md"], paths["b.md"], paths["later.md"]]).absent == (paths["later.md"],)
    Path(paths["new.md"]).write_text("written since")
    assert compare(session, [paths["a.md"], paths["b.md"], paths["new.md"], paths["gone.md"]]).agrees
    assert session.files[0] == LoadedFile(
        paths["a.md"], "session_start", "Project", "/home/ana/company/CLAUDE.md"
    )


@pytest.mark.parametrize("assistant", sorted(PAYLOADS))
def test_sessions_run_until_they_end(desk: Desk, assistant: str) -> None:
    desk.call("SessionStart", assistant=assistant, source="startup")
    assert [one.state for one in desk.running.all()] == ["waiting"]
    desk.call("UserPromptSubmit", assistant=assistant)
    assert [one.state for one in desk.running.all()] == ["working"]
    desk.call("Stop", assistant=assistant)
    assert [(one.assistant, one.folder) for one in desk.running.all()] == [(assistant, str(desk.folder))]
    desk.call("SessionEnd", assistant=assistant)
    assert desk.running.all() == []


def test_a_program_that_was_killed_does_not_run_for_ever() -> None:
    clock = [0.0]
    running = RunningSessions(lambda: clock[0])
    running.note("codex", "s", folder="/", transcript=None, state="working")
    clock[0] = 13 * 3_600.0
    assert running.all() == []


def test_a_session_ends_with_its_program(desk: Desk) -> None:
    desk.call("session.created", assistant="codex", session_id="a", pid=os.getpid())
    desk.call("session.created", assistant="codex", session_id="b", pid=_ended_process())
    desk.call("session.created", assistant="codex", session_id="c", pid=-1)
    assert [one.session for one in desk.running.all()] == ["c", "a"]


def _ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""])
    process.wait()
    return process.pid


def test_what_is_kept_has_limits(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_files, "MOST_FILES", 3)
    monkeypatch.setattr(loaded_files, "MOST_FOLDERS", 2)
    monkeypatch.setattr(running, "MOST_SESSIONS", 2)
    for number in range(4):
        desk.call("InstructionsLoaded", file_path=f"/{number}")
        folder = desk.folder / str(number)
        folder.mkdir()
        desk.call("InstructionsLoaded", session_id=str(number), cwd=str(folder), file_path="/a")
        desk.handler.flush()
    sessions = read_sessions(desk.environ)
    assert [Path(one.folder).name for one in sessions] == ["company", "3"]
    assert [file.path for file in sessions[0].files] == ["/1", "/2", "/3"]
    assert [one.session for one in desk.running.all()] == ["3", "s"]


@pytest.mark.parametrize("payload", [one for each in PAYLOADS.values() for one in each], ids=str)
def test_every_recorded_payload_is_read(payload: dict[str, Any]) -> None:
    read = read_payload(json.dumps(payload).encode())
    assert read is not None
    assert read.folder == "/home/ana/company"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"session_id": 1}',
        b'{"session_id": ""}',
        b'{"session_id": "s", "cwd": null}',
        b"\xff",
        b"[" * 100_000,
        b'{"session_id": "' + b"s" * 5_000 + b'"}',
    ],
)
def test_anything_else_is_ignored(desk: Desk, data: bytes) -> None:
    assert read_payload(data) is None
    assert desk.handler.take(HookCall("claude-code", "Stop", (), data, desk.environ)) is None
    assert desk.running.all() == []


def test_an_unknown_event_is_ignored(desk: Desk) -> None:
    assert desk.call("Tea") is None


# ---------------------------------------------------------------- memory and knowledge


def test_a_prompt_gets_memory_only_where_that_is_switched_on(desk: Desk) -> None:
    assert desk.call("UserPromptSubmit", prompt="When is the gate of the harbour closed?") is None


def test_a_prompt_gets_knowledge_and_conversations_of_the_folder(desk: Desk) -> None:
    prompt = "When is the gate of the harbour closed?"
    (desk.folder / ".nexus3").mkdir()
    settings = {"memory": {"knowledge": {"paths": ["docs"]}}}
    (desk.folder / ".nexus3" / "config.json").write_text(json.dumps(settings))
    (desk.folder / "docs").mkdir()
    (desk.folder / "docs" / "gate.md").write_text("# Gate\n\nThe gate of the harbour is closed at night.\n")
    desk.write("The harbour gate has the code name Alder.")
    desk.keep()
    answer = desk.call("UserPromptSubmit", "--memory", session_id="other", prompt=prompt)
    assert answer is not None
    text = json.loads(answer)["hookSpecificOutput"]["additionalContext"]
    assert "The gate of the harbour is closed at night." in text
    assert "code name Alder" in text
    assert desk.call("UserPromptSubmit", "--memory", prompt="Paint some zebra stripes") == ""
    assert desk.call("UserPromptSubmit", "--memory", "--tokens", "10", prompt=prompt) == ""


def test_a_conversation_is_not_its_own_memory(desk: Desk) -> None:
    desk.write("The harbour gate has the code name Alder.")
    desk.keep()
    prompt = "What is the code name of the harbour gate?"
    assert desk.call("UserPromptSubmit", "--memory", prompt=prompt) == ""
    assert "Alder" in (desk.call("UserPromptSubmit", "--memory", session_id="other", prompt=prompt) or "")


def test_a_folder_that_a_window_has_is_not_loaded_again(desk: Desk) -> None:
    """A hook uses the snapshot of the window, with the texts that are not saved yet."""
    prompt = "When is the gate of the harbour closed?"

    class Window(HookClient):
        name = "window"

    async def open_window() -> None:
        daemon, client = desk.start(), Window()
        daemon.join(client)
        daemon.add_folder(client, desk.folder.as_uri(), name="", listed=True)

    desk.call("UserPromptSubmit", "--memory", prompt=prompt)
    assert desk.clients == ["hooks"]
    desk.run(open_window())
    desk.call("UserPromptSubmit", "--memory", prompt=prompt)
    assert desk.clients == ["window"]
    assert desk.folders.ask(str(desk.folder), desk.environ, desk.client_of) == "window"


def test_folders_that_hooks_named_long_ago_are_not_watched_any_more(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_folders, "MOST_FOLDERS", 2)
    for number in range(4):
        folder = desk.folder / str(number)
        folder.mkdir()
        desk.call("UserPromptSubmit", "--memory", cwd=str(folder), prompt="When is the gate closed?")
    assert desk.clients == ["hooks", "hooks"]
    assert desk.call("UserPromptSubmit", "--memory", cwd="/no/such", prompt="When is the gate closed?") == ""


def test_windows_hear_of_what_is_kept_at_once(desk: Desk) -> None:
    """A conversation that a hook mirrors shows in a window without a look at the ledger."""
    desk.write("Where is the gate?")
    desk.keep()
    heads = desk.start().ledgers.writer.heads
    assert [head.messages for names in heads.values() for head in names.values()] == [1]


def test_no_transcript_is_opened_where_conversations_are_off(desk: Desk) -> None:
    desk.write("Never use spaces for indentation.")
    (desk.folder / ".nexus3").mkdir()
    (desk.folder / ".nexus3" / "config.json").write_text('{"views": {"conversations": false}}')
    with file_opens(desk.transcript) as opened:
        assert desk.compact() == ""
        desk.call("PostCompact", assistant="codex")
        desk.keep()
    assert (opened, desk.kept) == ([], {})
