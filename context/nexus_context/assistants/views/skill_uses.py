"""Finds where a skill of `.claude/skills` is named: in its SKILL.md, and in settings of Claude Code and
opencode.

1. Claude Code names a skill after its directory, in rules (`Skill(name)`) and as a key of `skillOverrides`.
2. opencode names it by the `name` of its front matter, as a key of `permission.skill`. It is followed only if
   that is the name of the directory.
3. If another directory has a skill of the same name, settings may mean that one, and nothing is found.
"""

import os
import re
from collections.abc import Iterator

from nexus_context.assistants.claude_code.directories import definition_directories
from nexus_context.assistants.claude_code.permission_rules import KINDS
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

_RULE = "Skill("
_ENDS = (")", " ", ":")
"""The characters that may follow the name in a rule."""
_NAME = re.compile(r"""^name:[ \t]*(["']?)(?P<name>[^\s"'#]+)\1[ \t]*$""", re.MULTILINE)
_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?^---", re.DOTALL | re.MULTILINE)


def find_skill_uses(directory: str, disk: Disk, surroundings: Surroundings) -> list[NameUse]:
    """List the places that name the skill in a directory, that of its own SKILL.md first.

    Empty if Claude Code has no skill there, or another one of the same name.
    """
    parent, name = os.path.split(directory)
    skill_directories = [place.path for place in definition_directories(disk, surroundings, "skills")]
    commands = [place.path for place in definition_directories(disk, surroundings, "commands")]
    namesakes = [os.path.join(path, name, SKILL) for path in skill_directories if path != parent]
    namesakes += [os.path.join(path, f"{name}.md") for path in commands]
    own_path = os.path.join(directory, SKILL)
    text = disk.text(own_path)
    if parent not in skill_directories or text is None or any(map(disk.exists, namesakes)):
        return []
    span = _name_span(text, name)
    opencode_namesakes = (
        os.path.join(path, own_directory, name, SKILL)
        for path in config_directories(disk, surroundings)
        for own_directory in OWN_DIRECTORIES
    )
    programs = ["claude-code"]
    if span is not None and not any(map(disk.exists, opencode_namesakes)):
        programs.append("opencode")
    uses = [] if span is None else [NameUse(own_path, span, defines=True)]
    for program in programs:
        for file in PROGRAMS[program].settings(disk, surroundings).files:
            if file.document is not None:
                spans = _spans_in(program, file.document, name)
                uses += [NameUse(file.path, use_span, defines=False) for use_span in spans]
    return list(dict.fromkeys(uses))


def _name_span(text: str, name: str) -> Span | None:
    """The place of the `name` in front matter, None if it is another one."""
    matter = _FRONT_MATTER.match(text)
    match = None if matter is None else _NAME.search(text, 0, matter.end())
    return Span(*match.span("name")) if match is not None and match["name"] == name else None


def _spans_in(program: str, document: JsonDocument, name: str) -> Iterator[Span]:
    if program == "opencode":
        yield from _key_spans(document, ("permission", "skill", name))
        return
    yield from _key_spans(document, ("skillOverrides", name))
    for pointer, text in texts_in(document.value):
        match pointer:
            case ("permissions", str(kind), int()) if kind in KINDS and text.startswith(f"{_RULE}{name}"):
                if text.startswith(_ENDS, len(_RULE) + len(name)) and parse_rule(text, kind) is not None:
                    span = span_in(document, pointer, text, start=len(_RULE), length=len(name))
                    yield from [] if span is None else [span]


def _key_spans(document: JsonDocument, pointer: Pointer) -> Iterator[Span]:
    """The place of a key without its quotes; none if it is not there, or written with escapes."""
    value = document.value
    for step in pointer:
        value = value.get(step) if isinstance(value, dict) else None
    key = None if value is None else document.key_span(pointer)
    if key is not None and document.text[key.start + 1 : key.end - 1] == pointer[-1]:
        yield Span(key.start + 1, key.end - 1)
