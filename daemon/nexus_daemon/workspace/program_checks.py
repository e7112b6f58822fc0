"""Find the problems of the assistants in use in one folder, and again when the files that they read change.

1. The first check begins once the folder has a snapshot.
2. A check depends on three kinds of paths: each path that it consulted, whether a file exists or not;
   everything in hidden directories that it listed; and files that appear in the folder with a name that it
   looked for.
3. While somebody types a text and it is checked, the folder's diagnostics wait, since they would flicker.
   Before the first check, a folder without files of Nexus has no diagnostics, since perhaps nobody uses Nexus
   there.
4. Programs write their settings in the user's home all the time. So changes outside of the folder are checked
   after OUTSIDE_S, together with all other changes until then.
5. That a program does not read a file is not a diagnostic: the lenses of the file say it.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from nexus_context.config.merge import Effective
from nexus_context.config.overridden import overridden_settings
from nexus_context.config.silenced import SETTING
from nexus_context.errors import Edit, Fix, Severity, Span
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY, within
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_daemon.process import tracing
from nexus_daemon.workspace.publish import Findings, without_programs
from nexus_daemon.workspace.queue import TaskQueue

if TYPE_CHECKING:  # its imports take longer than the loop may wait
    from nexus_context.assistants.views.problems import AssistantCheck

logger = logging.getLogger(__name__)

MOST_WATCHED = 1_000
OUTSIDE_S = 5.0
SETTINGS = ("/views/show", "/views/conversations")
"""The settings that say which assistants are in use."""
INSTRUCTIONS = "NEXUS.md"
UNREAD = "assistant.unread"
MARK = "\ufeff"


class _Checked(NamedTuple):
    """A check with the paths that it depends on: those that it looked at, those it read, the names of all.

    `overlays` are the unsaved texts that it read, `unsaved` those with problems, as the editor spells them.
    """

    check: "AssistantCheck"
    overlays: Mapping[str, str]
    unsaved: Mapping[str, str]
    consulted: frozenset[str]
    read: frozenset[str]
    names: frozenset[str]

    def depends_on(self, path: str, folder: str) -> bool:
        """Whether a change of a path can change the check of the folder."""
        directory, name = os.path.split(path)
        is_consulted = path in self.consulted or directory + os.sep in self.consulted
        return is_consulted or (name in self.names and within(path, folder))


class ProgramChecks:
    """The checks of the folder at an absolute path. Use it on the event loop; it works in `executor`.

    `overlays` are the unsaved texts of the client, which change while this lives. `on_checked` is called
    after each check, with whether the check depends on other paths than the one before.
    """

    def __init__(
        self,
        folder: str,
        executor: Executor,
        load_inputs: LoadInputs,
        *,
        overlays: Mapping[str, str],
        on_checked: Callable[[bool], None],
    ) -> None:
        self._folder = folder
        self._executor = executor
        self._load_inputs = load_inputs
        self._overlays = overlays
        self._on_checked = on_checked
        self._settings: Effective | None = None
        self._checked: _Checked | None = None
        self._queue: TaskQueue[None] = TaskQueue(self._check, lambda _, later: later)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def watched(self) -> Iterable[str]:
        """Return the paths to watch. If there are too many, return those nearest to the root of the disk."""
        consulted = () if self._checked is None else self._checked.consulted
        return sorted(consulted, key=lambda path: path.count(os.sep))[:MOST_WATCHED]

    def configure(self, snapshot: Snapshot) -> None:
        """Use the settings of a snapshot.

        The first snapshot begins the checks; changed settings of views cause a check.
        """
        previous_settings, self._settings = self._settings, snapshot.effective
        if previous_settings is None or any(
            previous_settings.get(name) != self._settings.get(name) for name in SETTINGS
        ):
            self.request()

    def edited(self, path: str) -> None:
        """Check again if the last check read the text of this file, which was edited."""
        if self._settings is not None and (self._checked is None or path in self._checked.read):
            self.request()

    def changed(self, paths: Collection[str] | None) -> None:
        """Check again if these paths may matter to the checks. None means that any file may have changed."""
        checked = self._checked
        if self._settings is None:
            return
        if paths is None or checked is None:
            self.request()
            return
        relevant = [path for path in paths if checked.depends_on(path, self._folder)]
        if any(within(path, self._folder) for path in relevant):
            self.request()
        elif relevant and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(OUTSIDE_S, self.request)

    def request(self) -> None:
        """Request a check, for example because another program may be in use."""
        self._stop_timer()
        self._queue.request(None)

    async def check_of(self, path: str) -> "AssistantCheck | None":
        """Return the last check if it has read a file's current text. Waits for a check that is under way.

        None if the file is not read, or if its text has changed since.
        """
        if not self.reads(path) or self._queue.is_cancelled:
            return None
        await self._queue.settled()
        checked = self._checked
        text = None if checked is None else checked.check.layers.texts.get(path)
        if checked is None or text is None or text != self._overlays.get(path, text).removeprefix(MARK):
            return None
        return checked.check

    def reads(self, path: str) -> bool:
        """Whether the last check has read a path."""
        return self._checked is not None and path in self._checked.read

    async def settled(self) -> None:
        """Wait until everything is checked and `on_checked` was called."""
        with contextlib.suppress(asyncio.InvalidStateError):  # the folder is removed
            while self._queue.is_busy:
                await self._queue.settled()
        await asyncio.sleep(0)  # `on_checked` is called at the loop's next turn

    async def close(self) -> None:
        """End the check under way."""
        self._stop_timer()
        await self._queue.close()

    def findings(self, snapshot: Snapshot, overlays: Mapping[str, str]) -> Findings | None:
        """Return the findings to publish with a snapshot and its `overlays`. None if a check is pending."""
        checked, layers = self._checked, snapshot.layers
        if checked is None:
            is_ready = not self._queue.is_busy or any(map(self._is_own, layers.texts))
            return without_programs(snapshot, overlays) if is_ready else None
        if self._queue.is_busy and self._is_outdated(checked):
            return None
        # the check has imported it
        from nexus_context.assistants.views.problems import join_problems

        check, unsaved = checked.check, checked.unsaved
        if not layers.links.keys().isdisjoint(check.layers.texts):  # Nexus's problems are at the link
            check = _spell(check, lambda path: path if path in layers.texts else layers.links.get(path, path))
        texts = {**check.layers.texts, **layers.texts}
        heard = join_problems(snapshot.problems, check, texts, snapshot.effective.get(SETTING) or ())
        return Findings(
            msgspec.structs.replace(layers, texts=texts),
            (*heard.problems, *overridden_settings(snapshot.effective)),
            {**overlays, **{path: text for path, text in unsaved.items() if path not in layers.texts}},
            check.minders,
        )

    def _is_outdated(self, checked: _Checked) -> bool:
        """Whether an unsaved text that a check has read is another one by now."""
        paths = checked.read.intersection((*self._overlays, *checked.overlays))
        return any(self._overlays.get(path) != checked.overlays.get(path) for path in paths)

    def _is_own(self, path: str) -> bool:
        """Whether a file is one of Nexus in the folder, or above it and not in the user's home."""
        is_named = CONFIG_DIRECTORY in path.split(os.sep) or os.path.basename(path) == INSTRUCTIONS
        parent_folder = path.partition(f"{os.sep}{CONFIG_DIRECTORY}{os.sep}")[0]
        is_above = parent_folder != str(self._load_inputs.user_home) and within(self._folder, parent_folder)
        return is_named and (is_above or within(path, self._folder))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _check(self, _: None) -> None:
        overlays, previous_check = dict(self._overlays), self._checked
        assert self._settings is not None  # noqa: S101 - checks begin with the first ones
        job = partial(
            _check_folder, self._folder, self._load_inputs, overlays=overlays, settings=self._settings
        )
        try:
            submitted = self._executor.submit(tracing.carry(job, "check"))
            self._checked = await asyncio.wrap_future(submitted)
            if self._is_outdated(self._checked):  # edited meanwhile: perhaps the check before did not read it
                self.request()
        except Exception:  # a bug in one check must not keep what Nexus finds from the editor
            self._checked = None
            logger.exception("what the assistants in %s read was not checked", self._folder)
        moves = (
            previous_check is None
            or self._checked is None
            or previous_check.consulted != self._checked.consulted
        )
        asyncio.get_running_loop().call_soon(self._on_checked, moves)  # once the queue has ended this run


def _check_folder(
    folder: str, load_inputs: LoadInputs, overlays: Mapping[str, str], settings: Effective
) -> _Checked:
    """Check a folder. Reads the disk."""
    from nexus_context.assistants.reading.disk import Disk
    from nexus_context.assistants.reading.profile_types import Surroundings
    from nexus_context.assistants.tracking.problems_in_use import check_in_use

    disk = Disk(overlays)
    root = disk.real(folder)
    surroundings = Surroundings(root, load_inputs.user_home, load_inputs.environ)
    _, check = check_in_use(surroundings, disk, settings, counted=False)

    def spell(path: str) -> str:
        """A path as the editor spells it, where the folder is a link."""
        return folder + path.removeprefix(root) if within(path, root) else path

    heard = {
        problem: titles
        for problem, titles in check.minders.items()
        if problem.code != UNREAD or problem.severity < Severity.INFORMATION
    }
    # what else was read would only take memory
    check = _spell(check._replace(problems=tuple(heard), minders=heard, profiles=()), spell)
    unsaved = {path: text for path, text in overlays.items() if path in disk.read}
    return _Checked(
        check=check,
        overlays=unsaved,
        unsaved={spell(path): text for path, text in unsaved.items() if spell(path) in check.layers.texts},
        consulted=disk.consulted.union(path for path in disk.listed if _is_hidden(path, root)),
        read=disk.read,
        names=frozenset(map(os.path.basename, disk.consulted)),
    )


def _spell(check: "AssistantCheck", spell: Callable[[str], str]) -> "AssistantCheck":
    """A check whose paths are spelled otherwise, with the texts of its problems alone.

    Places do not count a byte order mark, as in the texts of layers.
    """
    from nexus_context.assistants.views.problems import CheckedTexts

    marks = {path: int(text.startswith(MARK)) for path, text in check.layers.texts.items()}

    def moved(path: str, span: Span) -> Span:
        mark = marks.get(path, 0)
        return Span(max(span.start - mark, 0), max(span.end - mark, 0))

    def moved_fix(path: str, fix: Fix | None) -> Fix | None:
        return fix and Fix(fix.title, tuple(Edit(moved(path, edit.span), edit.text) for edit in fix.edits))

    minders = {}
    for problem, titles in check.minders.items():
        path = problem.path
        spelled = msgspec.structs.replace(
            problem,
            path=spell(path),
            span=moved(path, problem.span),
            fix=moved_fix(path, problem.fix),
            related=tuple(
                msgspec.structs.replace(
                    related_problem,
                    path=spell(related_problem.path),
                    span=moved(related_problem.path, related_problem.span),
                )
                for related_problem in problem.related
            ),
        )
        minders[spelled] = titles
    places = {problem.path for problem in minders}
    places.update(related.path for problem in minders for related in problem.related)
    texts = {spell(path): text.removeprefix(MARK) for path, text in check.layers.texts.items()}
    texts = {path: text for path, text in texts.items() if path in places}
    real_paths = {spell(path): spell(real) for path, real in check.real_paths.items()}
    return check._replace(
        layers=CheckedTexts(texts), problems=tuple(minders), minders=minders, real_paths=real_paths
    )


def _is_hidden(directory: str, root: str) -> bool:
    """Whether a directory is outside the project or hidden in it. Any file there may change at any time."""
    return not within(directory, root) or f"{os.sep}." in directory.removeprefix(root)
