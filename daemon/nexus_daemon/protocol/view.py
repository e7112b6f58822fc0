"""`nexus/view/*`: Nexus's own chat and other assistants, as views of a folder."""

from typing import Annotated

from nexus_daemon.protocol.shapes import OneOf, Sparse, Wire

VIEWS = OneOf("nexus", "claude-code", "codex", "opencode", "gemini", "copilot", "cursor", open=True)


class ViewInfo(Sparse, frozen=True):
    """Nexus's own chat, or an assistant, in a folder."""

    # `nexus`, `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    name: Annotated[str, VIEWS]
    title: str  # its name for people
    reason: str  # why it is in use here or not; it continues the title after a colon
    in_use: bool  # it runs here, was used here in the last 30 days, or the folder has files for it
    model: str | None = None  # that of its last session here, else the usual one; absent: none is set
    limit: int | None = None  # the tokens that a request to the model may take


class ViewListResult(Wire, frozen=True):
    """The views of a folder."""

    views: list[ViewInfo]  # all; those in use first, in the order in which they are shown
    # the one to show where there is room for one, `nexus`, `claude-code`, `codex`, `opencode`, `gemini`,
    # `copilot` or `cursor`: that of the setting `views.show`, else the first
    chosen: Annotated[str, VIEWS]
