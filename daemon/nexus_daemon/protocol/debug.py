"""`nexus/debug/*`: for those who work on Nexus or report a bug."""

from typing import Any

from nexus_daemon.protocol.shapes import Params, Wire


class TraceParams(Params, frozen=True):
    """How long to record."""

    seconds: float = 10.0  # at most 600; cancelling the request ends the recording without a result


class TraceResult(Wire, frozen=True):
    """What the daemon did meanwhile, for all its clients."""

    trace: dict[str, Any]  # an object in Chrome trace format, as https://ui.perfetto.dev opens it
