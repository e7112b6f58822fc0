"""Finds where a skill or an agent of `.claude` is named: in its file, in settings of Claude Code and
opencode, and in the front matter of other skills, agents and commands.

1. Claude Code names a skill after its directory, in rules (`Skill(name)`) and as a key of `skillOverrides`;
   an agent by the `name` of its front matter, in rules (`Agent(name)`) and in the setting `agent`.
2. opencode names a skill by the `name` of its front matter, as a key of `permission.skill`. It is followed
   only if that is the name of the directory.
3. If several files have the name, a setting may mean any of them, and nothing is found.
"""

import os
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from nexus_context.assistants.claude_code.definition_checks import find_field_uses
from nexus_context.assistants.claude_code.directories import definition_directories, markdown_files
from nexus_context.assistants.claude_code.permission_rules import KINDS as RULE_KINDS
from nexus_context.assistants.claude_code.rule_syntax import parse_rule
from nexus_context.assistants.opencode.settings import config_directories
from nexus_context.assistants.opencode.skills import OWN_DIRECTORIES, SKILL
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.server_uses import NameUse, span_in
from nexus_context.errors import Span
from nexus_context.text.json import JsonDocument, Pointer
from nexus_context.text.json.spans import texts_in

DefinitionKind = Literal["skill", "agent"]
KINDS: tuple[DefinitionKind, ...] = ("skill", "agent")
_RULES: dict[DefinitionKind, str] = {
    "skill": r"Skill\(/?(?P<name>{})[) :]",
    "agent": r"(?:Agent|Task)\((?P<name>{})\)\Z",
}
"""The beginning of a rule for a name."""
_NAME = re.compile(r"""^name:[ \t]*(["']?)(?P<name>[^\s"'#]+)\1[ \t]*$""", re.MULTILINE)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?^---", re.DOTALL | re.MULTILINE)


class NamedDefinition(NamedTuple):
    """A skill or an agent. `path` is the directory of the skill, or the file of the agent. `uses` are the
    places that name it, that of its own file first.
    """

    kind: DefinitionKind
    name: str
    path: str
    uses: list[NameUse]

    def renamed_path(self, new_name: str) -> str:
        """Return the path of the same definition with another name. It is `path` if the name is not in it."""
        directory, step = os.path.split(self.path)
        suffix = "" if self.kind == "skill" else ".md"
        return os.path.join(directory, new_name + suffix) if step == self.name + suffix else self.path


def find_definition(
    kind: DefinitionKind, name: str, disk: Disk, surroundings: Surroundings
) -> NamedDefinition | None:
    """Find the skill or agent of a name, with all places that name it. None if no file defines it, or several
    do.
    """
    paths = definition_paths(kind, name, disk, surroundings)
    own_path = os.path.join(paths[0], SKILL) if paths and kind == "skill" else "".join(paths[:1])
    if len(paths) != 1 or not disk.is_file(own_path):
        return None
    name_span = _name_span(disk.text(own_path) or "", name)
    uses = [] if name_span is None else [NameUse(own_path, name_span, defines=True)]
    fields = find_field_uses(kind, name, disk, surroundings)
    uses += [NameUse(path, span, defines=False) for path, span in fields]
    opencode_namesakes = (
        os.path.join(path, own_directory, name, SKILL)
        for path in config_directories(disk, surroundings)
        for own_directory in OWN_DIRECTORIES
    )
    programs = ["claude-code"]
    if kind == "skill" and name_span is not None and not any(map(disk.exists, opencode_namesakes)):
        programs.append("opencode")
    for program in programs:
        for file in PROGRAMS[program].settings(disk, surroundings).files:
            if file.document is not None:
                if program == "opencode":
                    spans = _key_spans(file.document, ("permission", "skill", name))
                else:
                    spans = _spans_in(kind, name, file.document)
                uses += [NameUse(file.path, span, defines=False) for span in spans]
    return NamedDefinition(kind, name, paths[0], list(dict.fromkeys(uses)))


def definition_paths(kind: DefinitionKind, name: str, disk: Disk, surroundings: Surroundings) -> list[str]:
    """List the paths that define a name: directories of skills and files of commands, or files of agents."""
    if kind == "agent":
        files = markdown_files(disk, definition_directories(disk, surroundings, "agents"), [])
        return [file.path for file in files if file.fields.get("name") == name]
    skills, commands = (
        [os.path.join(place.path, name) for place in definition_directories(disk, surroundings, definitions)]
        for definitions in ("skills", "commands")
    )
    paths = [path for path in skills if disk.exists(os.path.join(path, SKILL))]
    return paths + [f"{path}.md" for path in commands if disk.exists(f"{path}.md")]


def _name_span(text: str, name: str) -> Span | None:
    """The place of the `name` in front matter, None if it is another one."""
    matter = _FRONT_MATTER.match(text)
    match = None if matter is None else _NAME.search(text, 0, matter.end())
    return Span(*match.span("name")) if match is not None and match["name"] == name else None


def _spans_in(kind: DefinitionKind, name: str, document: JsonDocument) -> Iterator[Span]:
    rule = re.compile(_RULES[kind].format(re.escape(name)))
    if kind == "skill":
        yield from _key_spans(document, ("skillOverrides", name))
    for pointer, text in texts_in(document.value):
        start = None
        match pointer:
            case ("permissions", str(list_name), int()) if list_name in RULE_KINDS:
                match = rule.match(text)
                if match is not None and parse_rule(text, list_name) is not None:
                    start = match.start("name")
            case ("agent",) if kind == "agent" and text == name:
                start = 0
        span = None if start is None else span_in(document, pointer, text, start=start, length=len(name))
        yield from [] if span is None else [span]


def _key_spans(document: JsonDocument, pointer: Pointer) -> Iterator[Span]:
    """The place of a key without its quotes; none if it is not there, or written with escapes."""
    value = document.value
    for step in pointer:
        value = value.get(step) if isinstance(value, dict) else None
    key = None if value is None else document.key_span(pointer)
    if key is not None and document.text[key.start + 1 : key.end - 1] == pointer[-1]:
        yield Span(key.start + 1, key.end - 1)
