"""Answers `check_configuration`: what `nexus check` finds, or what `nexus explain` says of one thing."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.working_tree import is_within
from nexus_context.assistants.views.profile import read_profile
from nexus_context.assistants.views.subjects import FileLine, read_subject
from nexus_context.config.silenced import SETTING, without_silenced
from nexus_context.disk.files import is_dir
from nexus_context.errors import Problem, RequestError, Severity
from nexus_daemon.api.explain import Scene, build
from nexus_daemon.cli.check_agents import check_agents
from nexus_daemon.cli.explain import answer_lines
from nexus_daemon.cli.folder import load_inputs, read
from nexus_daemon.cli.mcp.call_scope import CallScope
from nexus_daemon.cli.mcp.pages import ToolAnswer
from nexus_daemon.cli.mcp.places import describe_problem, surroundings_at
from nexus_daemon.shared.mcp_server.definitions import ALL, NEXUS


def check_configuration(scope: CallScope) -> ToolAnswer:
    """Return the problems of a folder that are at least warnings, errors first.

    If the call asks to explain one thing, explain that instead.
    """
    if not is_dir(scope.path):
        raise RequestError("`path` must be a directory. Name the one that has the file.", code="bad-argument")
    name = scope.arguments.get("assistant")
    if what := scope.arguments.get("explain"):
        return _explain(scope, what, name)
    problems = dict[Problem, str]()
    readers = []
    for reader, checked, texts in _checks(scope, name):
        readers.append(reader)
        for problem in checked:
            if problem.severity <= Severity.WARNING:
                problems.setdefault(problem, describe_problem(problem, texts, scope.folder))
    ordered = sorted(problems, key=lambda problem: (problem.severity, problem.path, problem.span))
    count = "1 problem" if len(ordered) == 1 else f"{len(ordered) or 'No'} problems"
    title = f"{count} in {scope.path} in what {' and '.join(readers)} read"
    return ToolAnswer(f"{title}{':' if ordered else '.'}", tuple(problems[problem] for problem in ordered))


def _explain(scope: CallScope, what: str, name: str | None) -> ToolAnswer:
    """Explain what views do with a subject. A model asks, so only files of the folder are explained."""
    here = surroundings_at(scope.path)
    subject = read_subject(what, here, Disk())
    if isinstance(subject, FileLine) and not is_within(subject.path, scope.folder):
        raise RequestError(f"{what} is not in this folder.", code="bad-argument")
    scene = Scene(here, Disk(), read(Path(scope.path)), encoding="utf-16", now=datetime.now(UTC))
    requested_views = (*PROGRAMS, NEXUS) if name == ALL else None if name is None else (name,)
    answers = build(what, scene, requested_views).answers
    return ToolAnswer(
        f"{what} in {scope.path}:", tuple("\n".join(answer_lines(answer)) for answer in answers)
    )


def _checks(
    scope: CallScope, name: str | None
) -> Iterator[tuple[str, tuple[Problem, ...], Mapping[str, str]]]:
    """Check as Nexus and as assistants: yields the reader, its problems, and the texts with the problems."""
    folder = read(Path(scope.path))
    ignore = folder.effective.get(SETTING) or ()
    if name in (None, NEXUS):
        checked = check_agents(folder, load_inputs()).snapshot
        texts = checked.layers.texts
        yield "Nexus", without_silenced(checked.problems, texts, ignore, scope.path).problems, texts
    names: tuple[str, ...] = ()
    if name == ALL:
        names = tuple(PROGRAMS)
    elif name != NEXUS:
        names = tuple(program_name for program_name in (name or scope.assistant,) if program_name is not None)
    for program_name in names:
        profile = read_profile(program_name, surroundings_at(scope.path), counted=False)
        heard = without_silenced(profile.problems, profile.texts, ignore, profile.folder)
        yield profile.assistant.title, heard.problems, profile.texts
