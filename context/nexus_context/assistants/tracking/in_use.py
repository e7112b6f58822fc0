"""Tells which views of a folder are in use, and why; the first of them is shown.

1. A view is Nexus's own chat or a program. Programs that run here come first, then views that were used here,
   the latest first, then those that have files here, the installed ones first.
2. A program runs here while a session of the folder, or of one inside it, grows. It was used here if a
   session there is at most RECENT_S old. Sessions of directories above the folder, such as the root of a
   monorepo, count, too.
3. Nexus is in use if somebody talked with it lately, if the project has files of its own for it (`.nexus3`,
   NEXUS.md), or if no other view is in use.
4. The view that the setting `views.show` names is in use, and comes first.
5. If the setting `views.conversations` is off, files alone decide, and no session is looked for.
"""

import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import structs

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.reading.record_values import seconds
from nexus_context.assistants.reading.working_tree import is_within, parents
from nexus_context.assistants.sessions.session_types import AssistantSession, FolderScope, Place
from nexus_context.assistants.tracking.find import find_sessions
from nexus_context.assistants.tracking.followers import is_live
from nexus_context.assistants.views.set_up import find_mark, project_of
from nexus_context.config.conversations import explain_not_read, reads_conversations
from nexus_context.config.merge import Effective
from nexus_context.disk.files import which
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_context.ledger.nexus_chats import last_nexus_turn

NEXUS = "nexus"
AUTO = "auto"
"""The value of the setting `views.show` where it names no view."""
INSTRUCTIONS = "NEXUS.md"
PICKED = "the setting `views.show` names it"
RECENT_S = 30 * 86_400.0


def view_title(name: str) -> str:
    """Return the name of a view as people write it."""
    return "Nexus" if name == NEXUS else PROGRAMS[name].title


class FolderView(msgspec.Struct, frozen=True):
    """A view of a folder: Nexus's own chat, or a program.

    `reason` says why the view is in use or not; it can follow the title and a colon. `model` is the model of
    its last session in the folder.
    """

    name: str
    title: str
    reason: str
    in_use: bool
    model: str | None = None


_Ranked = tuple[int, float, FolderView]  # its level, and the seconds that passed: the smallest is the first


class FolderViews(NamedTuple):
    """All views of a folder, the one to show first, and the sessions there, the latest first.

    `notice` says why there are no sessions, if a setting forbids reading them.
    """

    views: tuple[FolderView, ...]
    sessions: tuple[AssistantSession, ...]
    notice: str | None = None

    @property
    def in_use(self) -> tuple[FolderView, ...]:
        """The views that are in use, in their order."""
        return tuple(view for view in self.views if view.in_use)


def read_views(surroundings: Surroundings, disk: Disk, settings: Effective) -> FolderViews:
    """Find the views of a folder now, by its sessions and files. `settings` are the settings of Nexus for the
    folder.
    """
    place = Place(
        surroundings.user_home,
        surroundings.environ,
        reads_conversations(settings),
        explain_not_read(settings),
    )
    folder = surroundings.folder
    project = project_of(surroundings, disk)
    parent_folders = tuple(parent for parent in parents(folder)[1:] if project.contains(parent))
    assistant_sessions = find_sessions(place, FolderScope(folder, parent_folders))
    own_turn = last_nexus_turn(settings.get("/ledger/path"), surroundings.environ, surroundings.folder)
    views = find_views(
        surroundings,
        disk,
        assistant_sessions.sessions,
        time.time(),
        picked=settings.get("/views/show"),
        own_turn=own_turn,
    )
    folder_sessions = tuple(
        session for session in assistant_sessions.sessions if session.folder not in parent_folders
    )
    return FolderViews(views, folder_sessions, assistant_sessions.notice)


def find_views(
    surroundings: Surroundings,
    disk: Disk,
    sessions: Sequence[AssistantSession],
    now: float,
    *,
    picked: str = AUTO,
    own_turn: str | None = None,
) -> tuple[FolderView, ...]:
    """Return all views, the one to show first. `sessions` are those of the folder or above it, the latest
    first.

    `now` is in seconds since 1970; `picked` is the setting `views.show`. `own_turn` is the time (ISO 8601) of
    the last turn of a chat with Nexus, None if there is none.
    """
    ranked = list(_programs(surroundings, disk, sessions, now))
    is_alone = picked == AUTO and not any(view.in_use for *_, view in ranked)
    own_idle = None if own_turn is None else now - seconds(own_turn)
    ranked.append(_nexus(surroundings, disk, own_idle, is_alone=is_alone))
    views = [view for *_, view in sorted(ranked, key=lambda ranked_view: ranked_view[:2])]
    picked_views = [
        structs.replace(view, in_use=True, reason=PICKED) for view in views if view.name == picked
    ]
    return *picked_views, *(view for view in views if view.name != picked)


def _programs(
    surroundings: Surroundings, disk: Disk, sessions: Sequence[AssistantSession], now: float
) -> Iterator[_Ranked]:
    latest_sessions = {session.assistant: session for session in reversed(sessions)}
    project = project_of(surroundings, disk)
    for name, program in PROGRAMS.items():
        session = latest_sessions.get(name)
        mark = find_mark(program.marks, surroundings.folder, disk, project, inherited=program.inherited)
        where = _describe_folder(session, surroundings)
        idle = 0.0 if session is None else now - seconds(session.changed)
        model = None if session is None else session.model
        last_used = f"last used {where} {_ago(idle)}"
        if session is not None and is_live(session, now):
            yield 0, idle, FolderView(name, program.title, f"it runs {where}", in_use=True, model=model)
        elif session is not None and idle <= RECENT_S:
            yield 1, idle, FolderView(name, program.title, last_used, in_use=True, model=model)
        elif mark is not None:
            path = surroundings.environ.get("PATH", "")
            is_installed = session is not None or which(program.command, search=path) is not None
            reason = f"{mark} is here"
            reason = reason if is_installed else f"`{program.command}` is not on the PATH, but {reason}"
            yield 3, not is_installed, FolderView(name, program.title, reason, in_use=True, model=model)
        else:
            reason = "nothing of it is here" if session is None else last_used
            yield 5, idle, FolderView(name, program.title, reason, in_use=False, model=model)


def _describe_folder(session: AssistantSession | None, surroundings: Surroundings) -> str:
    """Say where a session works, as seen from the folder: "here", or "in PATH"."""
    directory, folder = None if session is None else session.folder, surroundings.folder
    if directory is None or directory == folder or not is_within(folder, directory):
        return "here"
    return f"in {os.path.relpath(directory, folder)}"


def _nexus(surroundings: Surroundings, disk: Disk, own_idle: float | None, *, is_alone: bool) -> _Ranked:
    if own_idle is not None and own_idle <= RECENT_S:
        reason = f"last used here {_ago(max(own_idle, 0.0))}"
        return 1, own_idle, FolderView(NEXUS, "Nexus", reason, in_use=True)
    project = project_of(surroundings, disk)
    mark = find_mark((CONFIG_DIRECTORY, INSTRUCTIONS), surroundings.folder, disk, project)
    if mark is not None:
        return 2, 0.0, FolderView(NEXUS, "Nexus", f"{mark} is here", in_use=True)
    reason = "no assistant is in use here" if is_alone else "nothing of it is here"
    return 4, 0.0, FolderView(NEXUS, "Nexus", reason, in_use=is_alone)


def _ago(idle: float) -> str:
    """Seconds that passed, for people."""
    days, hours = int(idle // 86_400), int(idle // 3_600)
    if days:
        return "yesterday" if days == 1 else f"{days} days ago"
    return f"{hours} h ago" if hours else f"{max(int(idle // 60), 1)} min ago"
