"""Reads front matter as Claude Code does, for rules, skills, agents and output styles.

1. A text that is not YAML is read once more with its values in quotes: in each line `name: value`, if the
   value has one of `{}[]*&#!|>%@` or a colon, and is neither quoted nor a list. Each tab that indents counts
   as two blanks then. A text that is still not YAML has no fields.
2. `paths` is a text or a list, also a list of lists. Commas outside of braces separate globs, and braces
   stand for each of their choices. `/**` at the end does not count; a rule with only `**` counts as one
   without `paths`.
3. `paths` are read like lines of a .gitignore in the directory that has `.claude`, so case does not count. A
   path with `./` or `../`, a `!` without another line, and lines that the library `ignore` skips match
   nothing.

Source: the answers of Claude Code 2.1.330 in `tests/assistants/spellings.jsonl`.
"""

import re
from collections.abc import Iterator
from typing import Any

from nexus_context.assistants.reading.yaml_fields import Fields, UnreadableError, read_fields
from nexus_context.errors import Span
from nexus_context.folder.skills.front_matter import quote_values

MOST_PATTERNS = 1_000
"""Patterns that the braces of one stand for."""
MOST_CHARACTERS = 4 << 20
NO_FIELDS = Fields({}, {})

_ENDS = {'"': '"', "'": "'", "[": "]", "{": "}"}
_BRACES = re.compile(r"([^{]*)\{([^}]+)\}(.*)")
_TABS = re.compile(r"^\t+", re.MULTILINE)
_TRUE = ("1", "true", "yes", "on")
_TOOL = re.compile(r"(?:[^\s,(]|\([^)]*\)?)+")


def read_matter(matter: str | None) -> Fields | None:
    """Read the fields of front matter. They are empty if `matter` is None; the result is None if the text
    cannot be read.

    The fields have places only if the text was YAML as it stands, without the quotes of rule 1.
    """
    try:
        return NO_FIELDS if matter is None else read_fields(matter)
    except UnreadableError:
        pass
    try:
        quoted, _ = quote_values(matter or "")
        return Fields(read_fields(_TABS.sub(lambda tabs: "  " * len(tabs[0]), quoted)).values, {})
    except UnreadableError:
        return None


def open_values(matter: str) -> Iterator[tuple[str, Span, str]]:
    """Yield each field that counts as text only because its first quote or bracket is not closed (rule 1).

    An item is the field's name, the place of its value, and the character that is missing.
    """
    read = read_matter(matter)
    for name, value in () if read is None or read.places else read.values.items():
        begin = value[:1] if isinstance(value, str) else ""
        end = _ENDS.get(begin)
        if end is None or value.count(begin) != (1 if begin == end else value.count(end) + 1):
            continue
        match = re.search(rf"^{re.escape(name)}:[ \t]+([^\r\n]*)", matter, re.MULTILINE)
        if match is not None:
            yield name, Span(*match.span(1)), end


def fields_of(matter: str | None) -> dict[str, Any]:
    """Read the fields of front matter, by name. Empty if there is none or it cannot be read."""
    return (read_matter(matter) or NO_FIELDS).values


def text_of(value: Any) -> str | None:
    """Return a field's value as the text that is shown: numbers and booleans become text. None for a blank
    text, a list or an object.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return None if value is None or isinstance(value, (list, dict)) else str(value)


def is_true(value: Any) -> bool:
    """Whether Claude Code takes a value for true."""
    return not isinstance(value, (list, dict)) and str(value).strip().lower() in _TRUE


def tool_names(value: Any) -> list[str]:
    """List the tools that a text or a list names; parentheses belong to the name before them. Empty if `*` is
    among them.
    """
    texts = [item for item in value if isinstance(item, str)] if isinstance(value, list) else [value]
    names = [name for text in texts if isinstance(text, str) for name in _TOOL.findall(text)]
    return [] if "*" in names else names


def path_patterns(value: Any) -> tuple[str, ...]:
    """List the globs of a rule's `paths`. Empty if the rule has none, or only `**`: it is then sent with
    every request.
    """
    patterns = [pattern.removesuffix("/**") for pattern in _patterns(value)]
    patterns = [pattern for pattern in patterns if pattern]
    return () if all(pattern == "**" for pattern in patterns) else tuple(patterns)


def matches_nothing(pattern: str) -> bool:
    """Whether a line of a .gitignore cannot match any file."""
    steps = pattern.removeprefix("/").split("/")
    is_odd = (len(pattern) - len(pattern.rstrip("\\"))) % 2 == 1
    is_list = pattern.startswith("[") and pattern.endswith("]") and "*" in pattern
    is_skipped = pattern.startswith(("!", "#")) or "\n" in pattern or is_odd or is_list
    return is_skipped or steps == [""] or not {".", ".."}.isdisjoint(steps)


def _patterns(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _patterns(item)
    elif isinstance(value, str):
        for pattern in _split(value):
            yield from _alternatives(pattern)


def _split(text: str) -> Iterator[str]:
    """The parts between commas outside of braces, without white space around; empty ones are left out."""
    depth, piece = 0, ""
    for character in text:
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield from filter(None, (piece.strip(),))
            piece = ""
        else:
            piece += character
    yield from filter(None, (piece.strip(),))


def _alternatives(pattern: str) -> list[str]:
    """What the braces of a pattern stand for; the pattern itself if that is too much."""
    done_patterns, waiting_patterns, characters = [], [pattern], 0
    while waiting_patterns:
        candidate = waiting_patterns.pop()
        match = _BRACES.fullmatch(candidate)
        if match is None:
            done_patterns.append(candidate)
            continue
        choices = [f"{match[1]}{choice.strip()}{match[3]}" for choice in match[2].split(",")]
        characters += sum(map(len, choices))
        if (
            len(done_patterns) + len(waiting_patterns) + len(choices) > MOST_PATTERNS
            or characters > MOST_CHARACTERS
        ):
            return [pattern]
        waiting_patterns.extend(reversed(choices))
    return done_patterns
