"""Explains what assistants let a model do in a folder: one call, or each command of a script.

A call is written as in a rule, `Bash(npm test)`, `Read(.env)`, `WebFetch(https://example.com)`,
`mcp__notes__write`; anything else is a command of Bash.
"""

import re
from collections.abc import Collection

import msgspec

from nexus_context.assistants.permissions.decision import NOT_STARTED, Decision, ExplainedCall
from nexus_context.assistants.permissions.shell import read_script
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, Surroundings
from nexus_context.errors import RequestError

SUBJECTS = {
    "Agent": "subagent_type",
    "Bash": "command",
    "Edit": "file_path",
    "NotebookEdit": "notebook_path",
    "Read": "file_path",
    "Skill": "skill",
    "WebFetch": "url",
    "WebSearch": "query",
    "Write": "file_path",
}
"""The argument of each tool that rules are about."""
_CALL = re.compile(r"(\w+)\((.*)\)", re.DOTALL)
_TOOL_OF_SERVER = re.compile(r"mcp__[^\s()]+")


class Explanation(msgspec.Struct, frozen=True):
    """What one assistant does with each call, in the order of the calls.

    `settings` are the settings that decide.
    """

    assistant: str
    title: str
    version: str
    settings: AssistantSettings
    decisions: tuple[tuple[ExplainedCall, Decision], ...]

    @property
    def stops(self) -> str | None:
        """Why the program does not start with these settings, None if it does."""
        return None if self.settings.stop is None else self.settings.stop.message


def read_call(text: str) -> ExplainedCall:
    """Parse the text of a call. What has no other form is a command of Bash; raise RequestError if the text
    is blank.
    """
    text = text.strip()
    if not text:
        raise RequestError("Name a call, such as 'Bash(npm test)' or 'Read(.env)'.", code="no-call")
    if text in SUBJECTS or _TOOL_OF_SERVER.fullmatch(text):
        return ExplainedCall(text)
    match = _CALL.fullmatch(text)
    if match is not None and match[1] in SUBJECTS:
        return ExplainedCall(match[1], {SUBJECTS[match[1]]: match[2]})
    return ExplainedCall("Bash", {"command": text})


def calls_of_script(text: str) -> list[ExplainedCall]:
    """Return a call of Bash for each statement at the top of a script. Raise RequestError if the script
    cannot be read.
    """
    script = read_script(text, {})
    if script.is_broken:
        raise RequestError("The script is no Bash that can be read, or too long.", code="unreadable-script")
    return [ExplainedCall("Bash", {"command": statement}) for statement in script.statements]


def explain_calls(
    calls: list[ExplainedCall], disk: Disk, surroundings: Surroundings, *, assistants: Collection[str]
) -> list[Explanation]:
    """Decide on calls in a folder as each of these assistants would, if its permissions are known.

    Raise RequestError if none of them is known.
    """
    known_programs = [program for program in PROGRAMS.values() if program.has_permissions]
    chosen_programs = [program for program in known_programs if program.name in assistants]
    if not chosen_programs:
        names = ", ".join(program.name for program in known_programs)
        requested_names = " and ".join(assistants)
        raise RequestError(
            f"What {requested_names} allows is not known. Known: {names}.", code="unknown-permissions"
        )
    explanations = []
    for program in chosen_programs:
        refused_before = len(disk.refused)
        settings, reader = program.settings(disk, surroundings), program.permissions
        permissions = reader.read(settings, disk) if settings.stop is None else None
        decisions = tuple(
            (call, NOT_STARTED if permissions is None else reader.decide(permissions, call)) for call in calls
        )
        paths = {file.path for file in settings.files}
        refused_paths = [path for path in disk.refused[:refused_before] if path in paths]
        if unread := [*refused_paths, *disk.refused[refused_before:]]:
            raise RequestError(
                f"{unread[0]} is too large to be read, so what it allows is not known.",
                code="unreadable-settings",
            )
        explanations.append(
            Explanation(
                assistant=program.name,
                title=program.title,
                version=reader.version,
                settings=settings,
                decisions=decisions,
            )
        )
    return explanations
