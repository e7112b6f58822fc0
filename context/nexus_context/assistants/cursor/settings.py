"""The settings of Cursor that Nexus knows: the user's and the folder's `mcp.json`, by its documentation."""

import os

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.model import (
    AssistantSettings,
    AssistantSettingsFile,
    Surroundings,
)
from nexus_context.assistants.reading.server_checks import ServerFile, check_server_file, judge_variable
from nexus_context.assistants.reading.servers import settings_places
from nexus_context.assistants.reading.settings import read_document
from nexus_context.errors import Problem

KNOWN = frozenset(("userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator", "/"))
"""What Cursor replaces besides `${env:NAME}`: https://cursor.com/docs/context/mcp."""


def read_settings(disk: Disk, surroundings: Surroundings) -> AssistantSettings:
    """The settings in a folder."""
    form = ServerFile(
        "Cursor",
        "mcpServers",
        ("servers", "mcp_servers"),
        lambda name: judge_variable("Cursor", name, surroundings.environ, KNOWN),
    )
    files: list[AssistantSettingsFile] = []
    problems: list[Problem] = []
    texts: dict[str, str] = {}
    for directory, scope in reversed(settings_places(surroundings.folder, surroundings.user_home)):
        document = read_document(disk, os.path.join(directory, ".cursor", "mcp.json"))
        if document is not None:
            values = document.value if isinstance(document.value, dict) else {}
            files.append(AssistantSettingsFile(document.path, scope, values, document))
            found = list(check_server_file(document, form))
            problems.extend(found)
            if found:
                texts[document.path] = document.text
    return AssistantSettings(surroundings, tuple(files), tuple(problems), texts=texts)
