"""What a question about a folder is about: a call, an MCP server, a line of a file, or a setting.

1. `mcp:NAME` is a server, `FILE:LINE` a line of a file that exists, a Markdown file alone all of it.
2. `TOOL(…)` and `mcp__SERVER__TOOL` are calls.
3. A word that is a setting of an assistant is that setting. Everything else is a command of Bash.
"""

import os
import re

import msgspec

from nexus_context.assistants.permissions.decision import ExplainedCall
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import Surroundings
from nexus_context.assistants.views.permissions import read_call

_SERVER = "mcp:"
_LINE = re.compile(r"(.+?):([1-9][0-9]{0,8})(?::[0-9]+)?")
_WHOLE = (".md", ".mdc", ".markdown")


class NamedServer(msgspec.Struct, frozen=True):
    """An MCP server by its name."""

    name: str


class FileLine(msgspec.Struct, frozen=True):
    """A line of a file, from 1, or with None all of it."""

    path: str
    line: int | None


Subject = ExplainedCall | NamedServer | FileLine


def read_subject(text: str, where: Surroundings, disk: Disk) -> Subject:
    """What a text stands for, if it is no setting; paths are of the folder. RequestError if it is blank."""
    text = text.strip()
    if text.startswith(_SERVER) and not text[len(_SERVER) :].isspace() and text != _SERVER:
        return NamedServer(text[len(_SERVER) :].strip())
    match = _LINE.fullmatch(text)
    name, line = (match[1], int(match[2])) if match is not None else (text, None)
    from_home = os.path.join(where.user_home, name[2:]) if name.startswith("~/") else name
    path = disk.real(os.path.normpath(os.path.join(where.folder, from_home)))
    if (match is not None or name.endswith(_WHOLE)) and disk.text(path) is not None:
        return FileLine(path, line)
    return read_call(text)
