"""The `nexus/*` requests: find the folder, wait for its snapshot, do the work in a thread.

1. The handlers of a method group are in the module of its name: `nexus/session/append` is `session.append`.
2. A session's lock is taken before anything is waited for: requests about it are answered in the order in
   which they came. It is released when the thread that works on the session has ended (`Workers.run`),
   cancelled or not.
3. A session is followed before it is used (`sessions.sync`), so that it has what other windows wrote.
"""

from typing import TYPE_CHECKING

from nexus_daemon.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.api import agent as agent
    from nexus_daemon.api import config as config
    from nexus_daemon.api import context as context
    from nexus_daemon.api import memory as memory
    from nexus_daemon.api import model as model
    from nexus_daemon.api import session as session
    from nexus_daemon.api import status as status
    from nexus_daemon.api import tokens as tokens
    from nexus_daemon.api import workspace as workspace
else:  # 100 ms that the reply to `initialize` must not wait for
    __getattr__ = submodules(
        __name__,
        *("agent", "config", "context", "memory", "model", "session", "status", "tokens", "workspace"),
    )
