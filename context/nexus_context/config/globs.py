"""Matches paths with globs such as `src/**/*.{ts,tsx}, docs/*`, for `applyTo` of instruction files.

The globs are those of VS Code.

1. Commas separate patterns, except within braces or sets. `{a,b}` matches either; braces may be nested.
2. `*` is any text within a name, `?` one character, `[…]` one of a set; `**` alone between slashes is any
   number of directories. Upper and lower case are the same.
3. A pattern may match from any directory on, unless it begins with `/`.
4. A name is compared with a component by an automaton (`patterns`), and a path with all steps of a pattern at
   once, so nothing is tried twice. MOST_PATTERNS, MOST_CHARACTERS and MOST_BRACES bound the work.
"""

import functools
from collections.abc import Iterable, Iterator, Sequence

from nexus_context.config.patterns import Patterns

EVERYTHING = frozenset({"**", "**/*", "*"})
"""Patterns that match all files, and a turn without files."""
MOST_PATTERNS = 256
"""Patterns of one list, after its braces are expanded."""
MOST_CHARACTERS = 16_384
"""Characters of all these together."""
MOST_BRACES = 64
"""Opening braces in one list."""

_ANYWHERE = "**"


class GlobsError(ValueError):
    """Raised for a list of globs that is too long. The message continues a sentence."""


class Globs:
    """A comma-separated list of globs. Raises GlobsError for one that is too long.

    `has_case` is true if upper and lower case differ.
    """

    def __init__(self, text: str, *, has_case: bool = False) -> None:
        listed = [pattern for piece in _split(text) if (pattern := piece.strip())]
        self.everything = not EVERYTHING.isdisjoint(listed)
        patterns: dict[str, None] = {}
        characters = 0
        if text.count("{") > MOST_BRACES:
            raise GlobsError(f"opens more than {MOST_BRACES} braces")
        for pattern in listed:
            for single in _alternatives(pattern):
                patterns[single] = None
                characters += len(single)
                if len(patterns) > MOST_PATTERNS or characters > MOST_CHARACTERS:
                    raise GlobsError(
                        f"has more than {MOST_PATTERNS} patterns or {MOST_CHARACTERS:,} characters with its "
                        "braces expanded"
                    )
        self._has_case = has_case
        self._steps = [_steps(pattern if has_case else pattern.lower()) for pattern in patterns]

    def matching(self, paths: Iterable[str]) -> str | None:
        """Return the first of these absolute paths that a glob matches, or None.

        Paths are written with `/`.
        """
        return next((path for path in paths if self.matches(path)), None)

    def matches(self, path: str) -> bool:
        """Whether one of the globs matches an absolute path, which is written with `/`."""
        if self.everything:
            return True
        names = (path if self._has_case else path.lower()).strip("/").split("/")
        return any(_fits(names, steps) for steps in self._steps)


def _split(text: str, separator: str = ",") -> Iterator[str]:
    """The parts of a text between separators outside braces and sets."""
    depth, start, in_set = 0, 0, False
    for at, character in enumerate(text):
        if character == "[":
            in_set = "]" in text[at + 1 :]
        elif character == "]":
            in_set = False
        elif in_set:
            continue
        elif character in "{}":
            depth = max(0, depth + (1 if character == "{" else -1))
        elif character == separator and not depth:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _alternatives(pattern: str) -> Iterator[str]:
    """Expand the braces of a pattern; a brace that is not closed is an ordinary character."""
    opening = pattern.find("{")
    closing = _closing(pattern, opening)
    if closing < 0:
        yield pattern
        return
    prefix, suffix = pattern[:opening], pattern[closing + 1 :]
    for choice in _split(pattern[opening + 1 : closing]):
        yield from _alternatives(f"{prefix}{choice}{suffix}")


def _closing(pattern: str, opening: int) -> int:
    depth = 0
    for at in range(opening, len(pattern) if opening >= 0 else -1):
        depth += (pattern[at] == "{") - (pattern[at] == "}")
        if not depth:
            return at
    return -1


_Step = Patterns | None
"""What one name of a path must match; None: `**`, any number of names."""


def _steps(pattern: str) -> tuple[_Step, ...]:
    rooted = pattern.startswith("/")
    components = [component for component in pattern.split("/") if component]
    if not rooted and components[:1] != [_ANYWHERE]:
        components.insert(0, _ANYWHERE)
    return tuple(None if component == _ANYWHERE else _name(component) for component in components)


@functools.lru_cache(maxsize=1024)
def _name(component: str) -> Patterns:
    return Patterns((component.replace("[^", "[!"),))


def _fits(names: Sequence[str], steps: tuple[_Step, ...]) -> bool:
    next_steps = set(_next_steps(steps, 0))
    for name in names:
        current, next_steps = next_steps, set()
        for at in current:
            step = steps[at] if at < len(steps) else _name("")
            if step is None:
                next_steps.update(_next_steps(steps, at))
            elif step.matches(name):
                next_steps.update(_next_steps(steps, at + 1))
        if not next_steps:
            return False
    return len(steps) in next_steps


def _next_steps(steps: tuple[_Step, ...], at: int) -> Iterator[int]:
    """The steps that may come next: `**` may match nothing."""
    yield at
    while at < len(steps) and steps[at] is None:
        at += 1
        yield at
