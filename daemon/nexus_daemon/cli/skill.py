"""List a folder's skills, show one with its problems, or print what a model gets when it is activated."""

import argparse
from collections.abc import Iterator
from typing import Any

import msgspec

from nexus_context.config.frames import format_frame
from nexus_context.errors import Problem, RequestError, Severity
from nexus_context.folder.layers.layer_types import LayerSkill
from nexus_context.folder.prompt.sections import skill_bodies
from nexus_context.folder.request_prompt import active_skills
from nexus_context.folder.skills import read_skill
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.visible import visible_line
from nexus_context.tokens import TokenCounter
from nexus_context.turn.models import model_of
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, folder_of, read
from nexus_daemon.cli.tables import LEAST_PATH, Column, print_columns

EPILOG = """\
examples:
  nexus skill list
  nexus skill show pdf-forms
  nexus skill use pdf-forms

A model that can run commands may run `nexus skill use NAME`: it prints the text that `skills: ["NAME"]` of a
request adds to the system prompt.

exit codes: 0 success; 1 the skill does not exist, has no text or has an error; 2 wrong usage
"""


class ListedSkill(msgspec.Struct, frozen=True):
    """A SKILL.md of a folder. `tokens` are those of its text, or None if it is not used."""

    name: str
    layer: str
    path: str
    readiness: str
    description: str | None = None
    category: str | None = None
    tokens: int | None = None
    exact: bool = False
    errors: int = 0
    warnings: int = 0


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _common(_action(actions, "list", "list the skills with layer, tokens, problems and readiness"))
    _named(_action(actions, "show", "show a SKILL.md with its source and its problems"))
    _named(_action(actions, "use", "print the text that a model gets when the skill is activated"))


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=f"{text[:1].upper()}{text[1:]}."
    )
    return command


def _named(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="NAME", help="the name of the skill")
    _common(command)


def _common(command: argparse.ArgumentParser) -> None:
    command.add_argument("--folder", default=".", metavar="PATH", help="the folder (default: .)")
    command.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.folder))
    if folder is None:
        output.complain("skill", f"{options.folder} does not exist.")
        return 2
    snapshot = read(folder)
    try:
        code: int = {"list": _list, "show": _show, "use": _use}[options.action](snapshot, options)
    except RequestError as error:
        output.complain("skill", str(error))
        return 1
    return code


def listed_skills(snapshot: Snapshot) -> Iterator[ListedSkill]:
    """Yield every SKILL.md of a folder, those in use first."""
    _, counter = model_of(snapshot, None)
    used_skills = {layer_skill.skill.path: layer_skill for layer_skill in snapshot.layers.skills}
    for layer_skill in snapshot.layers.skills:
        problems = _problems(snapshot, layer_skill.skill.path)
        yield ListedSkill(
            layer_skill.skill.name,
            layer_skill.layer,
            layer_skill.skill.path,
            _readiness(snapshot, layer_skill),
            description=layer_skill.skill.description,
            category=layer_skill.skill.metadata.get("category"),
            tokens=_tokens(snapshot, layer_skill.skill.name, counter),
            exact=counter.exact,
            errors=_count(problems, Severity.ERROR),
            warnings=_count(problems, Severity.WARNING),
        )
    for layer in snapshot.layers.layers:
        for file in layer.files:
            if file.kind != "skill" or file.path in used_skills or file.status == "missing":
                continue
            problems = _problems(snapshot, file.path)
            errors = _count(problems, Severity.ERROR)
            yield ListedSkill(
                read_skill(file.path, file.text or "").name,
                layer.name,
                file.path,
                "broken" if errors else file.status,
                errors=errors,
                warnings=_count(problems, Severity.WARNING),
            )


def _readiness(snapshot: Snapshot, layer_skill: LayerSkill) -> str:
    if not _text(snapshot, layer_skill.skill.name):
        return "has no text"
    return snapshot.contents.lacks(layer_skill.skill) or "ready"


# ---------------------------------------------------------------- actions


def _list(snapshot: Snapshot, options: argparse.Namespace) -> int:
    skills = list(listed_skills(snapshot))
    if options.json:
        output.json_value({"skills": [msgspec.to_builtins(skill) for skill in skills]})
        return 0
    if not skills:
        output.complain(
            "skill",
            f"{snapshot.folder} has no skills; write one to .nexus3/skills/NAME/SKILL.md (docs/skills.md).",
        )
        return 0
    tokens = [
        "" if skill.tokens is None else f"{'' if skill.exact else '≈'}{skill.tokens:,}" for skill in skills
    ]
    columns = [
        Column("skill", [visible_line(skill.name) for skill in skills]),
        Column("layer", [visible_line(skill.layer) for skill in skills], worth=0, least=LEAST_PATH),
        Column("tokens", tokens, worth=1, justify="right"),
        Column("readiness", [skill.readiness for skill in skills], least=LEAST_PATH),
    ]
    if any(skill.errors or skill.warnings for skill in skills):
        columns.insert(3, Column("problems", [_problem_counts(skill) for skill in skills], worth=2))
    print_columns(columns)
    return 0


def _problem_counts(skill: ListedSkill) -> str:
    counts = ((skill.errors, "error"), (skill.warnings, "warning"))
    return ", ".join(output.counted(count, noun) for count, noun in counts if count)


def _show(snapshot: Snapshot, options: argparse.Namespace) -> int:
    """Print the SKILL.md that counts, else the unused ones of this name with the reasons."""
    skills = [skill for skill in listed_skills(snapshot) if skill.name == options.name]
    if not skills:
        active_skills(snapshot, [options.name])  # raises, with a similar name
    shown_skill = skills[0]
    text = next(
        file.text or ""
        for layer in snapshot.layers.layers
        for file in layer.files
        if file.kind == "skill" and file.path == shown_skill.path
    )
    problems = _problems(snapshot, shown_skill.path)
    if options.json:
        output.json_value(
            {
                **msgspec.to_builtins(shown_skill),
                "text": text,
                "problems": [{"code": problem.code, "message": problem.message} for problem in problems],
            }
        )
        return 1 if shown_skill.errors else 0
    output.line(f"── {shown_skill.path} ({shown_skill.layer}, {shown_skill.readiness})")
    output.data(text if text.endswith("\n") else text + "\n")
    for problem in problems:
        output.page(f"\n{format_frame(problem, text, is_private=output.is_read_by_person())}\n")
    for unused_skill in skills[1:]:
        output.line(f"── not used: {unused_skill.path} ({unused_skill.layer}, {unused_skill.readiness})")
    return 1 if shown_skill.errors else 0


def _use(snapshot: Snapshot, options: argparse.Namespace) -> int:
    text = _text(snapshot, options.name)
    if not text:
        output.complain("skill", f"the skill {options.name!r} has no text.")
        return 1
    if options.json:
        _, counter = model_of(snapshot, None)
        output.json_value({"name": options.name, "text": text, "tokens": counter.count(text)})
    else:
        output.data(text + "\n")
    return 0


def _text(snapshot: Snapshot, name: str) -> str:
    """The text of an activated skill; empty if it has none. RequestError, code unknown-skill."""
    parts = skill_bodies(snapshot.layers, active_skills(snapshot, [name]))
    return "".join(piece.text for block in parts for piece in block.pieces)


def _tokens(snapshot: Snapshot, name: str, counter: TokenCounter) -> int:
    text = _text(snapshot, name)
    return counter.count(text) if text else 0


def _problems(snapshot: Snapshot, path: str) -> list[Problem]:
    problems = (problem for problem in snapshot.problems if problem.path == path)
    return sorted(problems, key=lambda problem: problem.span)


def _count(problems: list[Problem], severity: Severity) -> int:
    return sum(problem.severity == severity for problem in problems)
