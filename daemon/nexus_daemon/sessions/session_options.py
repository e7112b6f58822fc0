"""What the conversations of each workspace are used with, as the ledger had it last: the picked model above
all.

1. Who asks reads no disk. The ledger is read when it is opened, after what this process wrote, and when
   another process has written.
2. What a user picks holds in this process at once. It is written by the writer's thread; what could not be
   written is tried again at each look at the ledger, until then it holds in this process alone.
3. Whatever changes is told, by workspace.
"""

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError

if TYPE_CHECKING:  # the first diagnostics need not wait for it
    from nexus_context.ledger.records import SessionOptions
    from nexus_context.ledger.store import Ledger

logger = logging.getLogger(__name__)


class OptionsCache:
    """The options of all workspaces that somebody asked for. Safe for several threads.

    `changed` is called with a workspace, in whichever thread the change was made.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._known: dict[str, dict[str | None, SessionOptions]] = {}
        self._unsaved: dict[tuple[str, str], SessionOptions] = {}
        self._lock = threading.Lock()

    def get(self, workspace: str, session: str | None) -> "SessionOptions | None":
        """What a session is used with: its own options, else the workspace's. None: nothing was ever
        picked.
        """
        known = self._known.get(workspace, {})
        return known.get(session) or known.get(None)

    def own(self, workspace: str, session: str | None) -> "SessionOptions | None":
        """The options of a session itself; under None the workspace's."""
        return self._known.get(workspace, {}).get(session)

    def put(self, workspace: str, session: str, options: "SessionOptions", *, exists: bool) -> None:
        """Take over what the user picked, before it is written. `exists`: the ledger has the session."""
        names = (session, None) if exists else (None,)
        with self._lock:
            self._unsaved[workspace, session] = options
            self._known[workspace] = self._known.get(workspace, {}) | dict.fromkeys(names, options)
        self._changed(workspace)

    def read(self, ledger: "Ledger", workspace: str) -> None:
        """Take over what the ledger has. In the writer's thread only."""
        now = ledger.options(workspace)
        names = {one.name for one in ledger.sessions(workspace)} if self._unsaved else set()
        with self._lock:
            for (owner, session), options in self._unsaved.items():
                if owner == workspace:
                    now |= {None: options} | ({session: options} if session in names else {})
            same = self._known.get(workspace) == now
            self._known[workspace] = now
        if not same:
            self._changed(workspace)

    def save(self, ledger: "Ledger", workspace: str, session: str) -> None:
        """Write what was put last for a session. LedgerError; it is tried again. In the writer's thread
        only.
        """
        options = self._unsaved.get((workspace, session))
        if options is None:  # another pick came first, and brought this one along
            return
        ledger.keep_options(workspace, session, options)
        with self._lock:
            if self._unsaved.get((workspace, session)) is options:
                del self._unsaved[workspace, session]

    def save_again(self, ledger: "Ledger") -> None:
        """Try again to write what could not be written. In the writer's thread only."""
        for workspace, session in tuple(self._unsaved):
            try:
                self.save(ledger, workspace, session)
            except RequestError as error:
                logger.debug("the model picked for %s is not written yet: %s", session, error)
                return
