"""Reads one SKILL.md: its fields, its body, and what is wrong with it.

1. Serious faults are errors, and such a skill is not used: no readable front matter, no name, no description.
2. Other faults are warnings, and the skill is used as it is. A name is 1 to 64 lowercase letters, digits and
   single hyphens, and equals the name of the skill's directory; a description has at most 1024 characters,
   and the model gets no more of it; a compatibility note has at most 500.
3. Fields that are not in the specification get a hint. `allowed-tools` is a text; a list is read, too.
4. `priority` in `metadata` is an integer: skills with a higher one come first in the prompt. The default is
   0, also for a value that is not an integer.
5. `tools` in `metadata` are tool definitions as JSON: an array of objects with a name. The tools of an active
   skill are offered with a request; without a readable definition there are none.
6. `examples` in `metadata` are sample requests, one per line; MAX_EXAMPLES of them are used.
7. A file in `.claude/skills` or `.agents/skills` is another program's, which is not as strict: it needs no
   name, since its directory has one, and no description, since the first line of its text stands for it. What
   the specification minds there is a hint, and its own fields are left alone.
"""

import os
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from nexus_context.config import fixes
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.folder.skills.allowed_tools import allowed_tools
from nexus_context.folder.skills.front_matter import (
    FrontMatter,
    Member,
    Node,
    front_matter,
    lenient_front_matter,
)

SKILL_FILE = "SKILL.md"
PROGRAMS = (".agents", ".claude")
"""The directories of other programs that have `skills`."""
MAX_NAME = 64  # characters, as the next two
MAX_DESCRIPTION = 1024
MAX_COMPATIBILITY = 500
MAX_EXAMPLES = 20
MAX_TOOLS = 50

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_PRIORITY = re.compile(r"[+-]?[0-9]{1,6}\Z")
_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


class Skill(msgspec.Struct, frozen=True):
    """A skill that can be used. The spans and `body` are ranges of the text of `path`.

    `name`, `description` and each of `examples` are on one line. `tools_span` and `examples_span` are the
    ranges of `allowed_tools` and `examples`, and empty if there are none.
    """

    path: str
    name: str
    description: str
    name_span: Span
    description_span: Span
    body: Span
    license: str | None = None
    compatibility: str | None = None
    metadata: dict[str, str] = {}
    allowed_tools: tuple[str, ...] = ()
    tools_span: Span = Span(0, 0)
    examples: tuple[str, ...] = ()
    examples_span: Span = Span(0, 0)
    priority: int = 0
    tools: tuple[dict[str, Any], ...] = ()


class ReadSkill(msgspec.Struct, frozen=True):
    """The result of reading a SKILL.md. `skill` is None if it is not used.

    `name` is that of the directory if the text has none.
    """

    text: str
    name: str
    name_span: Span
    skill: Skill | None
    problems: tuple[Problem, ...]


def read_skill(path: str, text: str) -> ReadSkill:
    """Read the skill of a file, by its absolute path and its text. Never raises for any text."""
    directory = os.path.basename(os.path.dirname(path))
    is_foreign = is_of_program(path)
    front = lenient_front_matter(path, text) if is_foreign else front_matter(path, text)
    if front.fields is None:
        return ReadSkill(text, directory, front.span, None, problems=front.problems)
    name, description = _text(front, "name"), _text(front, "description")
    problems = [*front.problems, *_doubtful(path, front.fields)]
    tools_field = front.fields.get("allowed-tools")
    tools: tuple[str, ...] = ()
    if tools_field is not None:
        tools, doubtful = allowed_tools(path, text, tools_field.value)
        problems.extend(doubtful)
    if name:
        problems.extend(_name_problems(path, name, front.fields["name"].value.span, directory))
    if not text[front.body.start :].strip():
        message = (
            "The skill has no text: activating it tells the model nothing. Write it below the front matter."
        )
        problem_span = Span(front.body.start, front.body.start)
        problems.append(Problem(path, problem_span, "skill.empty", Severity.WARNING, message=message))
    metadata = _metadata(front.fields.get("metadata"))
    offered_tools, wrong = _tools(metadata.get("tools", ""))
    if wrong:
        problem_span = _value_span(front.fields.get("metadata"), "tools")
        problems.append(Problem(path, problem_span, "skill.tools", Severity.WARNING, message=wrong))
    name_span = front.fields["name"].value.span if name else front.span
    described = front.fields["description"].value.span if description else front.span
    if is_foreign:
        first_line = _first_line(text, front.body)
        name, described = name or directory, described if description else first_line
        description = description or text[first_line.start : first_line.end].lstrip("# ").strip()
        problems = [
            msgspec.structs.replace(problem, severity=Severity.HINT)
            for problem in problems
            if problem.code != "skill.unknown-field"
        ]
    else:
        problems.extend(_missing(path, front))
    ordered = tuple(sorted(problems, key=lambda problem: problem.span))
    if not name or not description:
        return ReadSkill(text, name or directory, name_span, None, problems=ordered)
    priority = metadata.get("priority", "")
    skill = Skill(
        path,
        name,
        description[:MAX_DESCRIPTION],
        name_span,
        description_span=described,
        body=front.body,
        license=_text(front, "license") or None,
        compatibility=_text(front, "compatibility") or None,
        metadata=metadata,
        allowed_tools=tools,
        tools_span=_value_span(tools_field),
        examples=_examples(metadata.get("examples", "")),
        examples_span=_value_span(front.fields.get("metadata"), "examples"),
        priority=int(priority) if _PRIORITY.match(priority) else 0,
        tools=offered_tools,
    )
    return ReadSkill(text, name, name_span, skill, problems=ordered)


def is_of_program(path: str) -> bool:
    """Whether a SKILL.md lies in the skill directory of another program."""
    skills_directory = os.path.dirname(os.path.dirname(path))
    return (
        os.path.basename(skills_directory) == "skills"
        and os.path.basename(os.path.dirname(skills_directory)) in PROGRAMS
    )


def _first_line(text: str, body: Span) -> Span:
    """The first line of a text that is not empty."""
    start = body.start + len(text[body.start :]) - len(text[body.start :].lstrip())
    return Span(start, start + len(text[start:].partition("\n")[0].rstrip()))


def _text(front: FrontMatter, field: str) -> str:
    """A field's text on one line; empty if it is missing or not a text."""
    member = (front.fields or {}).get(field)
    return " ".join(member.value.text.split()) if member is not None and member.value.text else ""


def _missing(path: str, front: FrontMatter) -> Iterator[Problem]:
    for field, purpose in (("name", "the skill's name"), ("description", "what it does and when to use it")):
        if _text(front, field):
            continue
        member = (front.fields or {}).get(field)
        if member is None:
            span, why = front.span, f"The front matter has no `{field}`"
        elif member.value.text is None:
            span, why = member.value.span, f"`{field}` must be a text"
        else:
            span, why = member.span, f"`{field}` is empty"
        message = f"{why}: the skill is not used. Write {purpose}: `{field}: …`."
        yield Problem(path, span, f"skill.{field}", Severity.ERROR, message=message)


def is_skill_name(name: str) -> bool:
    """Whether a skill may have this name: lowercase letters, digits and single hyphens between them."""
    return _NAME.match(name) is not None and len(name) <= MAX_NAME


def _name_problems(path: str, name: str, span: Span, directory: str) -> Iterator[Problem]:
    fix = None
    if is_skill_name(directory):
        fix = Fix(f"Name it {directory}", (Edit(span, directory),))
    if not _NAME.match(name):
        message = "A skill's name is lowercase letters, digits and single hyphens between them. Rename it."
    elif len(name) > MAX_NAME:
        message = f"The name has {len(name)} characters, and {MAX_NAME} are allowed. Shorten it."
    elif name != directory:
        message = f"The name is not that of the skill's directory, {directory}. Rename one of them."
    else:
        return
    yield Problem(path, span, "skill.name", Severity.WARNING, message=message, fix=fix)


def _doubtful(path: str, fields: dict[str, Member]) -> Iterator[Problem]:
    def warn(span: Span, field: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
        return Problem(path, span, f"skill.{field}", severity, message=message)

    for field, member in fields.items():
        value = member.value
        if field not in _FIELDS:
            message = (
                f"The specification has no field `{field}`, and it has no effect here. Under `metadata` any "
                "name is allowed."
            )
            yield warn(member.span, "unknown-field", message, Severity.HINT)
        elif field == "metadata":
            yield from _metadata_problems(path, value)
        elif field == "allowed-tools" and value.items is not None:
            message = (
                "The specification requires one text, with spaces between the tools. The list is read, too."
            )
            yield warn(value.span, field, message, Severity.HINT)
        elif field not in ("name", "description") and value.text is None:
            yield warn(value.span, field, f"`{field}` must be a text; it is left out.")
    for field, limit, consequence in (
        ("description", MAX_DESCRIPTION, "the model is shown only as many"),
        ("compatibility", MAX_COMPATIBILITY, "other programs may refuse it"),
    ):
        length = len(" ".join((fields[field].value.text or "").split())) if field in fields else 0
        if length > limit:
            message = (
                f"`{field}` has {length:,} characters, and {limit:,} are allowed: {consequence}. Shorten it."
            )
            yield warn(fields[field].value.span, field, message)


def _metadata_problems(path: str, value: Node) -> Iterator[Problem]:
    wrong = [member.value.span for member in value.members or () if member.value.text is None]
    if value.members is None and value.text != "":
        wrong = [value.span]
    for span in wrong:
        message = "`metadata` must be names with texts, one per line; this is left out."
        yield Problem(path, span, "skill.metadata", Severity.WARNING, message=message)
    # the last of several members with one name counts
    priority = {member.name: member.value for member in value.members or ()}.get("priority")
    if priority is not None and priority.text and not _PRIORITY.match(priority.text):
        message = (
            f"{fixes.quoted(priority.text)} is not a valid priority, and counts as 0. Write a whole number "
            "of at most six digits, such as 10."
        )
        yield Problem(path, priority.span, "skill.metadata", Severity.WARNING, message=message)


def _metadata(member: Member | None) -> dict[str, str]:
    members = (member.value.members or ()) if member is not None else ()
    return {entry.name: entry.value.text for entry in members if entry.value.text is not None}


def _value_span(member: Member | None, inner: str | None = None) -> Span:
    """The range of a field's value, or of its member `inner`; empty without one."""
    if member is None or inner is None:
        return Span(0, 0) if member is None else member.value.span
    return _value_span(next((entry for entry in member.value.members or () if entry.name == inner), None))


def _tools(text: str) -> tuple[tuple[dict[str, Any], ...], str]:
    """The tool definitions of a text, and what is wrong with it."""
    if not text.strip():
        return (), ""
    remedy = 'Write a JSON array of definitions: [{"name": "…", "inputSchema": {…}}].'
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        return (), f"The tools of the skill are not valid JSON ({error}) and are left out. {remedy}"
    if not isinstance(value, list):
        return (), f"The tools of the skill are not an array and are left out. {remedy}"
    good = tuple(
        tool for tool in value[:MAX_TOOLS] if isinstance(tool, dict) and str(tool.get("name") or "").strip()
    )
    if len(good) < len(value):
        return good, f"{len(value) - len(good)} tools of the skill have no name, or are too many. {remedy}"
    return good, ""


def _examples(text: str) -> tuple[str, ...]:
    lines = (" ".join(line.split()).removeprefix("- ") for line in text.splitlines())
    return tuple(line for line in lines if line)[:MAX_EXAMPLES]
