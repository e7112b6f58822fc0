"""What Nexus says of the sessions of real programs, beside what the provider was asked.

1. Each program runs the steps of `STEPS` in one folder: turns, a resumed session, forks, a compaction.
2. Each answer of the provider states other figures. Their sum over all requests is that of the sessions that
   Nexus lists, and that of their reports: none is missing, and none is counted twice.
3. Requests that a program makes for itself (`ASIDE`, a title) stand in no record of it, so they don't count.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assistants.programs import LONGEST_S, Program, install, search_path
from assistants.provider_stand_in import ProviderStandIn, answer
from nexus_context.assistants.sessions.model import AssistantSession
from nexus_context.assistants.tracking import find_sessions
from nexus_context.assistants.tracking.follow import SessionFollower

ASIDE = ("title generator", "Generate a title")
STEP = 1_000  # tokens by which one answer states more than the one before
_FIGURE = re.compile(rb'"(?:input_tokens|prompt_tokens|promptTokenCount)": \d+')
_SUM = re.compile(rb'"total(?:_tokens|TokenCount)": \d+')
_ID = re.compile(rb'"(msg|resp)_1"')
Steps = Callable[[Sequence[AssistantSession]], tuple[str, ...]]


class Outcome(NamedTuple):
    """Tokens sent: as the provider stated, as the list of sessions sums up, and as the reports do.

    `forks` are the sessions that Nexus takes for forks, `expected_forks` those that are.
    """

    stated: int
    listed: int
    reported: int
    forks: int
    expected_forks: int

    @property
    def agrees(self) -> bool:
        """Whether all say the same."""
        return (
            self.stated == self.reported
            and self.listed in (0, self.stated)  # Claude Code sums up nothing
            and self.forks == self.expected_forks
        )


def _latest(sessions: Sequence[AssistantSession]) -> str:
    return sessions[0].id


STEPS: dict[str, tuple[Steps, ...]] = {
    "claude-code": (
        lambda _: ("-p", "One."),
        lambda _: ("-c", "-p", "Two."),
        lambda found: ("-r", _latest(found), "--fork-session", "-p", "Three."),
        lambda found: ("-r", found[-1].id, "-p", "Four."),
        lambda _: ("-p", "Five.", "--model", "claude-sonnet-4-5[1m]"),
        lambda _: ("-c", "-p", "/compact"),
        lambda found: ("-r", _latest(found), "--fork-session", "-p", "Six."),
    ),
    "codex": (
        lambda _: ("exec", "One."),
        lambda _: ("exec", "resume", "--last", "Two."),
        lambda found: ("exec", "fork", _latest(found), "Three."),
        lambda found: ("exec", "resume", found[-1].id, "Four."),
    ),
    "opencode": (
        lambda _: ("run", "One."),
        lambda _: ("run", "-c", "Two."),
        lambda _: ("run", "-c", "--fork", "Three."),
        lambda found: ("run", "-s", found[-1].id, "Four."),
    ),
}
"""The arguments of each run of a program; `found` are its sessions so far, the latest first."""


class _Provider:
    """Answers that state figures of their own, and their sum."""

    def __init__(self) -> None:
        self.stated = 0
        self._answers = 0

    def __call__(self, path: str, body: dict[str, Any]) -> bytes:
        said = answer(path, body)
        if b"tokens" not in said.lower() or path.endswith("/count_tokens"):
            return said
        self._answers += 1
        sent = STEP * self._answers
        if not any(words in json.dumps(body) for words in ASIDE):
            self.stated += sent
        said = _FIGURE.sub(lambda found: b"%s: %d" % (found[0].partition(b":")[0], sent), said)
        said = _SUM.sub(lambda found: b"%s: %d" % (found[0].partition(b":")[0], sent + 1), said)
        return _ID.sub(rb'"\1_%d"' % self._answers, said)


def run_sessions(program: Program) -> Outcome:
    """What the sessions of a program say after its steps."""
    command, provider = install(program), _Provider()
    with tempfile.TemporaryDirectory(prefix="sessions-", ignore_cleanup_errors=True) as directory:
        home, work = Path(directory).resolve() / "home", Path(directory).resolve() / "work"
        for each in (home, work / ".git"):
            each.mkdir(parents=True)
        forks = 0
        with ProviderStandIn(answers=provider) as stand_in:
            for step in STEPS[program.name]:
                found = find_sessions(str(home), {}, assistants=[program.name]).sessions
                arguments = (*step(found), *_options(program, stand_in.address))
                forks += any("fork" in word for word in arguments)
                _run(program, command, arguments, home=home, address=stand_in.address)
        sessions = find_sessions(str(home), {}, assistants=[program.name]).sessions
        totals = [session.total.sent for session in sessions if session.total is not None]
        return Outcome(
            stated=provider.stated,
            listed=sum(totals),
            reported=sum(_reported(sessions)),
            forks=sum(session.fork_of is not None for session in sessions),
            expected_forks=forks,
        )


def _options(program: Program, address: str) -> tuple[str, ...]:
    """The options of a program for any run: all of its usual arguments but those that name the turn."""
    if program.name == "codex":
        _, *options, _ = program.arguments(address)
        return tuple(options)
    return ()


def _run(program: Program, command: Path, arguments: Sequence[str], *, home: Path, address: str) -> None:
    variables = {"PATH": search_path(), "HOME": str(home), **program.environ(address)}
    done = subprocess.run(
        ["nice", str(command), *arguments],
        cwd=home.with_name("work"),
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    if done.returncode:
        raise RuntimeError(f"{program.name} {arguments}: {done.stdout[-500:]}{done.stderr[-500:]}")


def _reported(sessions: Sequence[AssistantSession]) -> Iterator[int]:
    for session in sessions:
        follower = SessionFollower(session)
        follower.advance()
        yield follower.report().total.sent
