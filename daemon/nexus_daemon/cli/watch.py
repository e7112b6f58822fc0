"""Watch the session that another assistant has in a folder now: its window, cache, compactions and cost."""

import argparse
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import apsw
import msgspec

from nexus_context.assistants.programs import WITH_SESSIONS
from nexus_context.assistants.sessions.report import SessionReport
from nexus_context.assistants.sessions.session_types import Place
from nexus_context.assistants.tracking import AssistantSession, find_sessions
from nexus_context.assistants.tracking.followers import SessionFollowers
from nexus_context.disk import files
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, load_inputs, place_of, read

if TYPE_CHECKING:
    from nexus_daemon.workspace.assistant_watch import SessionNews

EPILOG = """\
examples:
  nexus watch                      the session here that changed last, until Ctrl-C
  nexus watch --once               print it as it is now
  nexus watch --format json        a JSON object for each change: the result of nexus/assistant/session

Sessions of Claude Code, Codex, opencode and Gemini CLI are read from where these programs write them; nothing
is written.
Without a terminal, each change is a line.
"""
FIND_REST = 20  # rest after looking for sessions, as a multiple of the time that it took
LEAST_REST_S, LONGEST_REST_S = 0.25, 60.0
TICK_S = 1.0  # between two pictures: a clock runs


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", nargs="?", default=".", help="default: the current directory")
    command.add_argument("--assistant", choices=tuple(WITH_SESSIONS), help="only sessions of this one")
    command.add_argument("--session", metavar="ID", help="this session, or the one whose id begins so")
    command.add_argument("--once", action="store_true", help="print the session as it is now, and end")
    command.add_argument("--format", choices=("text", "json"), default="text", help="default: %(default)s")


def run(options: argparse.Namespace) -> int:
    """Print one report, or follow the session until it is interrupted. Returns the exit code."""
    if not files.is_dir(str(absolute(options.folder))):
        output.complain("watch", f"{options.folder} is not a folder.")
        return 2
    try:
        return _watch(options)
    except _NotReadError as error:
        output.complain("watch", str(error))
        return 1


class _NotReadError(Exception):
    """A setting forbids to read the sessions; its text is for people."""


def _watch(options: argparse.Namespace) -> int:
    watch = _Watch(options)
    report = watch.look()
    if report is None and (options.once or options.session is not None):
        output.complain("watch", watch.nothing())
        return 1
    if options.once:
        _print(options, report)
        return 0
    with contextlib.suppress(KeyboardInterrupt):
        out = output.console()
        if out.is_terminal and options.format == "text":
            _show_live(watch, report)
        else:
            if report is None:
                output.complain("watch", f"{watch.nothing()} Waiting for one.")
                output.flush()
            for changed in watch.changes(report):
                _print(options, changed, is_event=True)
                output.flush()
    return 0


class _Watch:
    """The session to watch and where it is."""

    def __init__(self, options: argparse.Namespace) -> None:
        inputs = load_inputs()
        self.folder = str(absolute(options.folder))
        self._place = Place(str(inputs.user_home), inputs.environ)
        self._assistants = tuple(WITH_SESSIONS) if options.assistant is None else (options.assistant,)
        self._name: str | None = options.session
        self._followers = SessionFollowers()
        self._session: AssistantSession | None = None
        self._sessions: tuple[AssistantSession, ...] = ()
        self._find_at = 0.0
        self._is_stale = True  # whether another session may have changed since they were listed
        self._news: SessionNews | None = None
        self.failure: str | None = None

    def look(self) -> SessionReport | None:
        """The report now; the same object if nothing changed; None without a session.

        _NotReadError while the setting `views.conversations` of the folder is off.
        """
        if self._is_stale and time.monotonic() >= self._find_at:
            self._is_stale = False
            self._find()
        if self._session is None:
            return None
        try:
            report = self._followers.report(self._session, self._place, self._sessions)
        except apsw.Error as error:
            self.failure = f"{self._session.path} cannot be read: {error}"
            return None
        self.failure = None
        return report

    def changes(self, report: SessionReport | None) -> Iterator[SessionReport]:
        """The first report, and each that differs."""
        last_report = None
        while True:
            if report is not None and report != last_report:
                yield report
                last_report = report
            self.wait(LONGEST_REST_S)
            report = self.look()

    def wait(self, most_s: float) -> None:
        """Wait until something may have changed, for a limited time."""
        if self._news is None:
            from nexus_daemon.workspace.assistant_watch import SessionNews, WatchedFolder  # not for `--once`

            environ = tuple(self._place.environ.items())
            self._news = SessionNews(WatchedFolder("", self.folder, self._place.home, environ))
            self._is_stale = True  # it may have changed before the watch began
        if self._session is not None:
            self._news.follow(self._followers.paths(self._session, self._place))
        rest_s = max(self._find_at - time.monotonic(), 0.0) if self._is_stale else most_s
        if output.pause(min(rest_s, most_s), self._news.fileno()):
            self._news.clear()
            self._is_stale = True

    def nothing(self) -> str:
        """Say why there is no report."""
        if self.failure is not None:
            return self.failure
        session_label = " ".join(filter(None, ("session", self._name))) if self._name else "session"
        titles = [WITH_SESSIONS[name].title for name in self._assistants]
        names = f"{', '.join(titles[:-1])} and {titles[-1]} have" if len(titles) > 1 else f"{titles[0]} has"
        return (
            f"{names} no {session_label} in {self.folder}; nexus sessions list --assistants --all lists all."
        )

    def _find(self) -> None:
        began = time.monotonic()
        place = place_of(read(Path(self.folder)))  # the setting may have changed
        found_sessions = find_sessions(place, self.folder, assistants=self._assistants)
        if found_sessions.notice is not None:
            raise _NotReadError(found_sessions.notice)
        self._sessions = found_sessions.sessions
        self.failure = next(
            (f"{path} cannot be read: {reason}" for path, reason in found_sessions.failures), None
        )
        name = self._name
        matches = [
            session
            for session in found_sessions.sessions
            if (session.id.startswith(name) if name is not None else session.parent is None)
        ]
        self._session = next(
            (session for session in matches if session.id == name), next(iter(matches), None)
        )
        if name is not None and len(matches) > 1 and self._session is matches[0] and matches[0].id != name:
            ids = ", ".join(session.id for session in matches)
            self.failure, self._session = f"{len(matches):,} sessions begin with {name}: {ids}", None
        took = time.monotonic() - began
        self._find_at = began + max(LEAST_REST_S, FIND_REST * took)


def _print(options: argparse.Namespace, report: SessionReport | None, *, is_event: bool = False) -> None:
    if report is None:
        return
    if options.format == "json":
        from nexus_daemon.api.assistant_session import build_session  # only for JSON

        value = build_session(report, time.time())
        if is_event:
            output.json_lines(msgspec.json.encode(value).decode() + "\n")
        else:
            output.json_value(value)
        return
    from nexus_daemon.cli import assistant_report  # 40 ms for rich

    if is_event:
        output.line(assistant_report.event_line(report))
    else:
        output.console().print(assistant_report.screen(report, time.time()))


def _show_live(watch: _Watch, report: SessionReport | None) -> None:
    """A picture that changes in place; drawn again only when it differs."""
    from rich.live import Live
    from rich.text import Text

    from nexus_daemon.cli.assistant_report import screen

    waiting_text = Text(f"No session in {watch.folder} yet; waiting for one. Ctrl-C ends.", "dim")
    with Live(console=output.console(), auto_refresh=False, vertical_overflow="crop") as live:
        drawn: object = None
        while True:
            now = time.time()
            state = report, int(now / TICK_S) if report is not None and _has_clock(report, now) else 0
            if state != drawn:
                live.update(waiting_text if report is None else screen(report, now), refresh=True)
                drawn = state
            watch.wait(TICK_S if state[1] else LONGEST_REST_S)
            report = watch.look()


def _has_clock(report: SessionReport, now: float) -> bool:
    """Whether the picture has a time that runs down."""
    cache = report.cache
    return cache is not None and cache.cold_at is not None and cache.cold_at > now - TICK_S
