"""Contains a bug to the file that triggers it: it becomes a problem of that file, and the rest goes on.

1. A user's mistake is a value. So an exception while one file is read, parsed or checked is a bug of Nexus,
   and the other files must not suffer from it.
2. `contained` wraps the work on one file, and the few steps that process all files. Nothing else catches
   exceptions blindly.
3. The stack is logged once for each place in the code: the next keystroke or the next file may trigger the
   same bug. The exception's message is left out: it may quote the file.
4. A failure is not cached: the next load tries again.
5. What Nexus raises on purpose (`NexusError`) passes through.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from nexus_context.errors import NexusError, Problem, Severity, Span

INTERNAL = "internal"
"""The code of these problems."""

MOST_PLACES = 1024
"""Places in the code whose bugs count as logged."""

INNERMOST = 40
"""Calls of a stack that are logged: a recursion error has thousands."""

_Result = TypeVar("_Result")


def contained(path: str, work: Callable[[], _Result], otherwise: Callable[[Problem], _Result]) -> _Result:
    """Return the result of `work` on the file at `path`.

    If it raises, return what `otherwise` makes of the problem.
    """
    try:
        return work()
    except NexusError:
        raise
    except Exception as error:  # noqa: BLE001 - a bug met in one file must not hide all others
        global _bugs_met
        _bugs_met += 1
        _log(path, error)
        return otherwise(_problem(path, error))


def reported(problems: list[Problem], path: str, work: Callable[[], _Result], otherwise: _Result) -> _Result:
    """Like `contained`, but a failure adds its problem to `problems` and returns `otherwise`."""

    def report(problem: Problem) -> _Result:
        if problem not in problems:
            problems.append(problem)
        return otherwise

    return contained(path, work, report)


def met_bug(problems: Iterable[Problem]) -> bool:
    """Whether one of the problems is a bug of Nexus.

    The work is then incomplete, and is tried again next time.
    """
    return any(problem.code == INTERNAL for problem in problems)


def bugs_met() -> int:
    """Return how many bugs this process has met, including repeated ones, which are logged only once."""
    return _bugs_met


def _problem(path: str, error: Exception) -> Problem:
    message = (
        f"Nexus failed on this file ({type(error).__name__}). This is a bug in Nexus, not your mistake. All "
        "other files are in force; of this one, its last good content, if there was one. Undo the last "
        "change to work around it, and report it with the stack in the log (`nexus logs`)."
    )
    return Problem(path, Span(0, 0), INTERNAL, Severity.ERROR, message=message)


def _log(path: str, error: Exception) -> None:
    import logging  # bugs are rare, and a command that meets none does not wait for this import
    import traceback

    stack = traceback.extract_tb(error.__traceback__, limit=-INNERMOST)
    bug_location = (type(error).__name__, stack[-1].filename, stack[-1].lineno)
    if bug_location in logged_places:
        return
    if len(logged_places) >= MOST_PLACES:
        logged_places.clear()
    logged_places.add(bug_location)
    logging.getLogger(__name__).error(
        "a bug met in %s: %s\n%s", path, bug_location[0], "".join(stack.format()).rstrip()
    )


_bugs_met = 0
logged_places: set[tuple[str, str, int | None]] = set()
