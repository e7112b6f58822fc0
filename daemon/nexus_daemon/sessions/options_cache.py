"""Cache in memory the models that the user picked, and what is sent beside messages, for all open
workspaces.
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
    """The options of all open workspaces. Any thread may use it.

    `on_change` is called with a workspace, in the thread that made the change.
    """

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._on_change = on_change
        self._options: dict[str, dict[str | None, SessionOptions]] = {}
        self._unsaved: dict[tuple[str, str], SessionOptions] = {}
        self._lock = threading.Lock()

    def get(self, workspace: str, session: str | None) -> "SessionOptions | None":
        """Return the options of a session, else of its workspace. None if nothing was ever picked."""
        options = self._options.get(workspace, {})
        return options.get(session) or options.get(None)

    def get_exact(self, workspace: str, session: str | None) -> "SessionOptions | None":
        """Return a session's own options. For the name None, return the options of the workspace."""
        return self._options.get(workspace, {}).get(session)

    def put(self, workspace: str, session: str, options: "SessionOptions", *, exists: bool) -> None:
        """Store what the user picked, before it is written. `exists` says that the ledger has the session."""
        names = (session, None) if exists else (None,)
        with self._lock:
            self._unsaved[workspace, session] = options
            self._options[workspace] = self._options.get(workspace, {}) | dict.fromkeys(names, options)
        self._on_change(workspace)

    def read(self, ledger: "Ledger", workspace: str) -> None:
        """Read the options from the ledger. Call it in the writer's thread only."""
        stored_options = ledger.options.of(workspace)
        names = (
            {stored_session.name for stored_session in ledger.sessions(workspace)} if self._unsaved else set()
        )
        with self._lock:
            for (owner, session), options in self._unsaved.items():
                if owner == workspace:
                    stored_options |= {None: options} | ({session: options} if session in names else {})
            is_unchanged = self._options.get(workspace) == stored_options
            self._options[workspace] = stored_options
        if not is_unchanged:
            self._on_change(workspace)

    def save(self, ledger: "Ledger", workspace: str, session: str) -> None:
        """Write the options that were put last for a session. Call it in the writer's thread only.

        LedgerError if that fails; `save_again` then repeats it.
        """
        options = self._unsaved.get((workspace, session))
        if options is None:  # the write of an earlier pick included this one
            return
        ledger.options.keep(workspace, session, options)
        with self._lock:
            if self._unsaved.get((workspace, session)) is options:
                del self._unsaved[workspace, session]

    def save_again(self, ledger: "Ledger") -> None:
        """Repeat the writes that failed. Call it in the writer's thread only."""
        for workspace, session in tuple(self._unsaved):
            try:
                self.save(ledger, workspace, session)
            except RequestError as error:
                logger.debug("the model picked for %s is not written yet: %s", session, error)
                return
