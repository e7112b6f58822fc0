"""Define what daemon and forwarder tell each other within the protocol; editors never see it.

The last notification of a connection says whether to connect again. The ids of the forwarder's own requests
begin with `OWN_ID`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

METHOD = "$/nexus/goodbye"
OWN_ID = "nexus-forwarder-"
CLOSED = "closed"  # the daemon ended this connection alone: the forwarder ends, too
REPLACED = "replaced"  # connect to the next daemon at once
STOPPED = "stopped"  # connect, and so start one, when the editor sends something


def goodbye(reason: str, running: "Iterable[Any]" = ()) -> "dict[str, Any]":
    """Build the goodbye notification.

    `running` are the ids of all requests that were begun and will get no reply.
    """
    return {"jsonrpc": "2.0", "method": METHOD, "params": {"reason": reason, "running": list(running)}}
