"""Describes files and problems in the text of an answer: where they are, in few tokens."""

from collections.abc import Mapping

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.errors import Problem
from nexus_context.folder.layers.walk import user_home
from nexus_context.text.lines import LineIndex
from nexus_daemon.cli import invocation
from nexus_daemon.cli.folder import short_path


def surroundings_at(directory: str) -> Surroundings:
    """Return where an assistant runs, with the variables of the client's process."""
    environ = invocation.current().environ
    return Surroundings(directory, user_home(environ), environ)


def describe_problem(problem: Problem, texts: Mapping[str, str], folder: str) -> str:
    """Return a problem as a line: severity, file, line and column from 1, what is wrong, how to fix it."""
    location = short_path(problem.path, folder)
    text = texts.get(problem.path)
    if text is not None:
        line, column = LineIndex(text).position(problem.span.start)
        location += f":{line + 1}:{column + 1}"
    fix = f" Fix: {problem.fix.title}." if problem.fix is not None else ""
    return f"{problem.severity.name.lower()} {location}: {problem.message} ({problem.code}){fix}"
