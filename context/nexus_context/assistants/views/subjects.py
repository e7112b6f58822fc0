"""Parses what a question about a folder is about: a call, an MCP server, a line of a file, or a setting.

1. `mcp:NAME` is a server, and `FILE:LINE` a line of a file. The name of a Markdown file, or of a file of the
   folder that cannot be executed, stands for the whole file.
2. `TOOL(…)` and `mcp__SERVER__TOOL` are calls.
3. A word that is a setting of an assistant is that setting. Everything else is a command of Bash.
"""

import os
import re

import msgspec

from nexus_context.assistants.permissions.decision import ExplainedCall
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.permissions import read_call
from nexus_context.errors import RequestError

SERVER = "mcp:"
_LINE = re.compile(r"(\S*[^\s:]):([0-9]{1,9})(?::[0-9]+)?")
_BLANK = re.compile(r"\s")
_MARKDOWN_ENDINGS = (".md", ".mdc", ".markdown")


class NamedServer(msgspec.Struct, frozen=True):
    """A question is about the MCP server with this name."""

    name: str


class FileLine(msgspec.Struct, frozen=True):
    """A line of a file, from 1, or the whole file if `line` is None."""

    path: str
    line: int | None


Subject = ExplainedCall | NamedServer | FileLine


def read_subject(text: str, where: Surroundings, disk: Disk) -> Subject:
    """Parse the subject that a text names, unless it is a setting. Paths are relative to the folder.

    Raise RequestError if the text is blank, or names a file that does not exist.
    """
    text = text.strip()
    if text.startswith(SERVER):
        name = text.removeprefix(SERVER).strip()
        if not name:
            raise RequestError("Name an MCP server, such as mcp:github.", code="no-such-server")
        return NamedServer(name)
    match = _LINE.fullmatch(text)
    if match is None and (_BLANK.search(text) or not _is_file_name(text, where, disk)):
        return read_call(text)
    name, line = (text, None) if match is None else (match[1], int(match[2]))
    from_home = os.path.join(where.user_home, name[2:]) if name.startswith("~/") else name
    path = disk.real(os.path.normpath(os.path.join(where.folder, from_home)))
    if disk.text(path) is None:
        raise RequestError(f"{name} is not a file in {where.folder} that can be read.", code="no-such-file")
    if line == 0:
        raise RequestError("Lines count from 1.", code="no-such-line")
    return FileLine(path, line)


def _is_file_name(text: str, where: Surroundings, disk: Disk) -> bool:
    path = os.path.join(where.folder, text)
    is_data = "." in text and disk.is_file(path) and not os.access(path, os.X_OK)
    return text.endswith(_MARKDOWN_ENDINGS) or is_data
