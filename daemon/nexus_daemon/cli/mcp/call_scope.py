"""Says what a call of a tool is about."""

from collections.abc import Mapping
from typing import Any

import msgspec


class CallScope(msgspec.Struct, frozen=True):
    """What a call is about. `folder` is the workspace, `path` the file or directory that the call names.

    Both are absolute and resolved. `assistant` is the one that called, or None if it has no profile.
    """

    folder: str
    path: str
    assistant: str | None
    arguments: Mapping[str, Any]
