"""What Nexus says of the sessions of real programs, beside what the provider was asked.

1. Each program runs the steps of `STEPS`: turns, a resumed session, forks, a compaction; Claude Code also
   with a name for the session, an agent of its own, a cache of an hour, in another folder, moved to one in
   the middle (`/cd`, which only a terminal has), and in a renamed one.
2. Each answer of the provider states other figures. Their sum over all requests is that of the sessions that
   Nexus lists, and that of their reports: none is missing, and none is counted twice.
3. Requests that a program makes for itself (`ASIDE`, a title) stand in no record of it, so they don't count.
"""

import json
import re
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from assistants.programs import LONGEST_S, Program, install, search_path
from assistants.provider_stand_in import ProviderStandIn, answer, answer_tool_use
from assistants.terminal_runs import Terminal
from nexus_context.assistants.sessions.cache_misses import HOUR_S
from nexus_context.assistants.sessions.report import SessionReport
from nexus_context.assistants.sessions.session_types import AssistantSession, Place
from nexus_context.assistants.tracking import find_sessions
from nexus_context.assistants.tracking.follow import SessionFollower

ASIDE = ("title generator", "Generate a title")
STEP = 1_000  # tokens by which one answer states more than the one before
_FIGURE = re.compile(rb'"(?:input_tokens|prompt_tokens|promptTokenCount)": \d+')
_SUM = re.compile(rb'"total(?:_tokens|TokenCount)": \d+')
_ID = re.compile(rb'"(msg|resp)_1"')
DELEGATE, HOUR, NAME = "Delegate.", "An hour.", "Release notes"
TO_YES = "\x1b[B"
"""The key that leads from No to Yes where Claude Code asks whether the other folder is trusted."""
Arguments = Callable[[Sequence[AssistantSession]], tuple[str, ...]]


class Step(NamedTuple):
    """A run of a program in a folder; `arguments` are made from its sessions so far, the latest first.

    With `renames` the folder has the files of the folder `work`, which is no more. With `typed` the run is
    at a terminal, and these are the lines that its user types once the program has come to rest.
    """

    arguments: Arguments
    folder: str = "work"
    variables: dict[str, str] = {}  # noqa: RUF012 - of a tuple, never changed
    renames: bool = False
    typed: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """Tokens sent: as the provider stated, as the list of sessions sums up, and as the reports do.

    `forks` are the sessions that Nexus takes for forks, `expected_forks` those that are. `facts` are what the
    sessions say else: names, folders, caches of an hour.
    """

    stated: int
    listed: int
    reported: int
    forks: int
    expected_forks: int
    facts: tuple[str, ...] = ()
    expected_facts: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether all say the same."""
        return (
            self.stated == self.reported
            and self.stated == self.listed
            and self.forks == self.expected_forks
            and self.facts == self.expected_facts
        )


def _latest(sessions: Sequence[AssistantSession]) -> str:
    return sessions[0].id


STEPS: dict[str, tuple[Step, ...]] = {
    "claude-code": (
        Step(lambda _: ("-p", "One.")),
        Step(lambda _: ("-c", "-p", "Two.")),
        Step(lambda found: ("-r", _latest(found), "--fork-session", "-p", "Three.")),
        Step(lambda found: ("-r", found[-1].id, "-p", "Four.")),
        Step(lambda _: ("-p", "Five.", "--model", "claude-sonnet-4-5[1m]")),
        Step(lambda _: ("-c", "-p", "/compact")),
        Step(lambda found: ("-r", _latest(found), "--fork-session", "-p", "Six.")),
        Step(lambda _: ("-n", NAME, "-p", "Seven.")),
        Step(lambda _: ("-p", DELEGATE)),
        Step(lambda found: ("-r", _latest(found), "-p", "Eight."), folder="other"),
        Step(lambda _: ("-p", HOUR), variables={"ENABLE_PROMPT_CACHING_1H": "1"}),
        Step(lambda _: ("Ten.",), typed=("/cd ../other", TO_YES, "Eleven.")),
        Step(lambda _: ("-p", "Nine."), folder="renamed", renames=True),
    ),
    "codex": (
        Step(lambda _: ("exec", "One.")),
        Step(lambda _: ("exec", "resume", "--last", "Two.")),
        Step(lambda found: ("exec", "fork", _latest(found), "Three.")),
        Step(lambda found: ("exec", "resume", found[-1].id, "Four.")),
    ),
    "opencode": (
        Step(lambda _: ("run", "One.")),
        Step(lambda _: ("run", "-c", "Two.")),
        Step(lambda _: ("run", "-c", "--fork", "Three.")),
        Step(lambda found: ("run", "-s", found[-1].id, "Four.")),
    ),
}
EXPECTED_FACTS = {
    "claude-code": (
        f"{DELEGATE} in work: 1 agent",
        f"{HOUR} in work: a cache of 1 h",
        f"{NAME} in work",
        "Nine. in renamed",
        "Ten. in other",
    )
}
"""What the sessions of a program say besides their figures."""


class _Provider:
    """Answers that state figures of their own, and their sum."""

    def __init__(self) -> None:
        self.stated = 0
        self._answers = 0

    def __call__(self, path: str, body: dict[str, Any]) -> bytes:
        said = _delegate(body) or answer(path, body)
        if b"tokens" not in said.lower() or path.endswith("/count_tokens"):
            return said
        self._answers += 1
        sent = STEP * self._answers
        if not any(words in json.dumps(body) for words in ASIDE):
            self.stated += sent
        said = _FIGURE.sub(lambda found: b"%s: %d" % (found[0].partition(b":")[0], sent), said)
        said = _SUM.sub(lambda found: b"%s: %d" % (found[0].partition(b":")[0], sent + 1), said)
        return _ID.sub(rb'"\1_%d"' % self._answers, said)


def _delegate(body: dict[str, Any]) -> bytes | None:
    """The call of an agent of Claude Code's, once for the message that wants it."""
    messages = json.dumps(body.get("messages"))
    if f'"{DELEGATE}"' not in messages or "tool_result" in messages:
        return None
    arguments = {"description": "Help", "prompt": "Help.", "subagent_type": "general-purpose"}
    return answer_tool_use(body, "toolu_agent", "Agent", arguments)


def run_sessions(program: Program) -> Outcome:
    """What the sessions of a program say after its steps."""
    command, provider = install(program), _Provider()
    with tempfile.TemporaryDirectory(prefix="sessions-", ignore_cleanup_errors=True) as directory:
        home, work = Path(directory).resolve() / "home", Path(directory).resolve() / "work"
        for each in (home, work / ".git", work.with_name("other")):
            each.mkdir(parents=True)
        for name, text in program.terminal.files.items():
            file = home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{folder}", str(work)))
        forks = 0
        with ProviderStandIn(answers=provider) as stand_in:
            for step in STEPS[program.name]:
                found = find_sessions(Place(str(home), {}), assistants=[program.name]).sessions
                arguments = (*step.arguments(found), *_options(program, stand_in.address))
                forks += any("fork" in word for word in arguments)
                if step.renames:
                    work.rename(work.with_name(step.folder))
                variables = {"PATH": search_path(), "HOME": str(home)}
                environ = {**variables, **program.environ(stand_in.address), **step.variables}
                folder = work.with_name(step.folder)
                if step.typed:
                    _run_at_terminal(command, arguments, folder=folder, environ=environ, typed=step.typed)
                else:
                    _run(command, arguments, folder=folder, environ=environ)
        sessions = find_sessions(Place(str(home), {}), assistants=[program.name]).sessions
        reports = [_report(session) for session in sessions]
        listed = sum(
            (session.total or report.total).sent  # a program that was killed has summed up nothing
            for session, report in zip(sessions, reports, strict=True)
        )
        expected_facts = EXPECTED_FACTS.get(program.name, ())
        named = {fact.partition(" in ")[0] for fact in expected_facts}
        facts = (
            _facts(session, report)
            for session, report in zip(sessions, reports, strict=True)
            if session.prompt in named
        )
        return Outcome(
            stated=provider.stated,
            listed=listed,
            reported=sum(report.total.sent for report in reports),
            forks=sum(session.fork_of is not None for session in sessions),
            expected_forks=forks,
            facts=tuple(sorted(facts)),
            expected_facts=tuple(sorted(expected_facts)),
        )


def _options(program: Program, address: str) -> tuple[str, ...]:
    """The options of a program for any run: all of its usual arguments but those that name the turn."""
    if program.name == "codex":
        _, *options, _ = program.arguments(address)
        return tuple(options)
    return ()


def _run_at_terminal(
    command: Path, arguments: Sequence[str], *, folder: Path, environ: dict[str, str], typed: Sequence[str]
) -> None:
    with Terminal(command, arguments, folder=folder, environ=environ) as terminal:
        terminal.wait_until_quiet()
        for keys in typed:
            terminal.type(keys)
            terminal.wait_until_quiet()  # what is pasted together with Enter is not sent
            terminal.type("\r")
            terminal.wait_until_quiet()


def _run(command: Path, arguments: Sequence[str], *, folder: Path, environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["nice", str(command), *arguments],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST_S,
    )
    if done.returncode:
        raise RuntimeError(f"{command.name} {arguments}: {done.stdout[-500:]}{done.stderr[-500:]}")


def _report(session: AssistantSession) -> SessionReport:
    follower = SessionFollower(session)
    follower.advance()
    return follower.report()


def _facts(session: AssistantSession, report: SessionReport) -> str:
    """The name of a session, its folder, and what else is to be known of it."""
    facts = [f"{len(report.agents)} agent"] if report.agents else []
    facts += ["a cache of 1 h"] if report.cache is not None and report.cache.lifetime_s == HOUR_S else []
    place = f"{session.prompt} in {Path(session.folder or '').name}"
    return f"{place}: {', '.join(facts)}" if facts else place
