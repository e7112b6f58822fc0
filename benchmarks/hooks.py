"""How long an assistant waits for `nexus hook`, beside an interpreter that does nothing."""

import json
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.promises import ROOT, Measured, Promise, Run, Step, milliseconds, promises, take_turns
from benchmarks.servers import CONFIG

PAYLOADS = ROOT / "tests" / "assistants" / "hook_payloads.json"
MESSAGES = 400
SETTLED_S = 30.0
BARE = "python -c pass"


@promises(
    Promise("a hook, no daemon", 1.7, BARE),
    Promise("an event that only tells something", 1.8, BARE),
    Promise("what was dropped of 400 messages is given back", 2.5, BARE),
    Promise("a prompt gets memory and knowledge", 3.0, BARE),
)
def hooks(run: Run) -> Iterator[Measured]:
    """The payloads that Claude Code sent, one process at a time, from its start to its end."""
    desk = _Desk(run)
    rounds = run.pick(full=60, quick=8)
    bare = partial(milliseconds, partial(run.execute, [sys.executable, "-c", "pass"]))
    turns = take_turns({BARE: bare, "hook": lambda: desk.call("Stop")}, rounds)
    yield "a hook, no daemon", turns["hook"], turns[BARE]
    desk.start_daemon()
    steps: dict[str, Step] = {
        BARE: bare,
        "tells": lambda: desk.call("Stop"),
        "gives back": desk.compact,
        "remembers": desk.ask,
    }
    turns = take_turns(steps, rounds)
    yield "an event that only tells something", turns["tells"], turns[BARE]
    yield "what was dropped of 400 messages is given back", turns["gives back"], turns[BARE]
    yield "a prompt gets memory and knowledge", turns["remembers"], turns[BARE]
    run.note_turns("Hooks, ms", turns)


class _Desk:
    """A folder with knowledge and a transcript, and the daemon of its user."""

    def __init__(self, run: Run) -> None:
        knowledge = '{"memory": {"knowledge": {"paths": ["docs"]}}}'
        gate = "# Gate\n\nThe gate of the harbour is closed at night.\n"
        self._run = run
        self._folder = run.folder("company", {CONFIG: knowledge, "docs/gate.md": gate})
        self._transcript = run.root / "session.jsonl"
        self._transcript.write_text("".join(json.dumps(record) + "\n" for record in _records()))
        recorded = json.loads(PAYLOADS.read_text())["claude-code"]
        self._payloads = {payload["hook_event_name"]: payload for payload in recorded}
        self._output = b""

    def start_daemon(self) -> None:
        """Have the start of a session start a daemon, and wait until it has read the knowledge."""
        self.call("SessionStart", source="startup")
        until = time.monotonic() + SETTLED_S
        while b"process" not in self._run.execute([*self._run.nexus, "status"]):
            assert time.monotonic() < until, "no daemon"
            time.sleep(0.2)
        while not self._ask():
            assert time.monotonic() < until, "the daemon remembers nothing"
            time.sleep(0.2)

    def ask(self) -> float:
        """Milliseconds of a prompt with memory, which must come."""
        elapsed = milliseconds(self._ask)
        assert self._output, "a prompt got no memory"
        return elapsed

    def compact(self) -> float:
        """Milliseconds of the start after a compaction, whose model takes a second."""
        self.call("PreCompact")
        summary = "<summary>The user asked about the gate.</summary>"
        self.call("SubagentStop", agent_type="", last_assistant_message=summary)
        time.sleep(1.0)
        elapsed = self.call("SessionStart", source="compact")
        assert self._output, "nothing was given back"
        return elapsed

    def call(self, event: str, *options: str, **fields: Any) -> float:
        """Milliseconds of a hook."""
        about = {"session_id": "s", "cwd": str(self._folder), "transcript_path": str(self._transcript)}
        payload = json.dumps({**self._payloads[event], **about, **fields}).encode()
        command = [*self._run.nexus, "hook", "claude-code", event, *options]

        def execute() -> None:
            self._output = self._run.execute(command, data=payload)

        return milliseconds(execute)

    def _ask(self) -> bytes:
        self.call("UserPromptSubmit", "--memory", prompt="When is the gate of the harbour closed?")
        return self._output


def _records() -> list[dict[str, Any]]:
    """A session of Claude Code."""
    records: list[dict[str, Any]] = []
    for at in range(MESSAGES):
        role = "assistant" if at % 2 else "user"
        rule = f"Never change src/app/module{at}.py; the ticket is ABC-{at}."
        text = rule if at % 20 == 0 else f"Step {at} is done."
        parent = str(at - 1) if at else None
        message = {"role": role, "content": text}
        records.append(
            {"type": role, "uuid": str(at), "parentUuid": parent, "sessionId": "s", "message": message}
        )
    return records
