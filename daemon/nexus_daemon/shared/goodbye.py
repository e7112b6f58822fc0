"""The last notification of a connection to a forwarder: whether to connect again. Editors never see it."""

from collections.abc import Iterable
from typing import Any

METHOD = "$/nexus/goodbye"
CLOSED = "closed"  # the daemon ended this connection alone: the forwarder ends, too
REPLACED = "replaced"  # connect to the next daemon at once
STOPPED = "stopped"  # connect, and so start one, when the editor sends something


def goodbye(reason: str, running: Iterable[Any] = ()) -> dict[str, Any]:
    """The notification. `running` are the ids of requests that were begun and get no reply.

    No other request without a reply was begun.
    """
    return {"jsonrpc": "2.0", "method": METHOD, "params": {"reason": reason, "running": list(running)}}
