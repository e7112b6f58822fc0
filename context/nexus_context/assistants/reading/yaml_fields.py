"""Reads front matter as the assistants' programs do: YAML, of which each of them takes another part.

1. The values are those of YAML 1.2's core schema (`plain_value`). A program with other ideas of a plain
   scalar passes its own function. Anchors, aliases and tags are read; a tag changes nothing.
2. If a field is there twice, the last one counts; with `may_repeat=False` the text cannot be read. With
   `has_own_tags=False` it cannot be read either if it has a tag that is not YAML's own.
3. A text cannot be read if it has more than LONGEST characters, more than MOST_VALUES values, or is nested
   more than DEEPEST. An alias counts as all that it stands for.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from nexus_context.errors import Span

LONGEST = 65_536  # characters
MOST_VALUES = 10_000
DEEPEST = 64

_STANDARD = "tag:yaml.org,2002:"
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_SIMPLE = re.compile(
    r"([a-zA-Z_][a-zA-Z0-9_-]*): +([a-zA-Z](?:[ -\"$-9;-~\u00a1-\u1fff]|:(?=[^ ])|(?<! )#)*?) *"
)
"""A field whose value is words: nothing in it means anything in YAML."""
_INTEGER = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


class UnreadableError(ValueError):
    """The text is not YAML, or has more than rule 3 allows."""


class Fields(NamedTuple):
    """The fields of front matter by name, and the places of the names. Both are empty if there are no
    fields.
    """

    values: dict[str, Any]
    places: dict[str, Span]


class _Read(NamedTuple):
    """A value and how many values it consists of."""

    value: Any
    size: int


def plain_value(text: str) -> Any:
    """Return the value of a plain scalar by YAML's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in ("0x", "0o") else int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


def read_fields(
    text: str,
    *,
    plain: Callable[[str], Any] = plain_value,
    may_repeat: bool = True,
    has_own_tags: bool = True,
) -> Fields:
    """Read the fields of a text. Raise UnreadableError if it is not YAML, or too large."""
    simple = _simple_fields(text, plain)
    if simple is not None:
        return simple
    builder = _Builder(text, plain, may_repeat=may_repeat, has_own_tags=has_own_tags)
    value = builder.value
    return Fields(value if isinstance(value, dict) else {}, builder.places)


def _simple_fields(text: str, plain: Callable[[str], Any]) -> Fields | None:
    """The fields of lines `name: words`, which most texts are: the YAML library takes ten times as long.

    None for a text with anything else.
    """
    lines = text.split("\n") if len(text) <= LONGEST else [":"]
    values: dict[str, Any] = {}
    places: dict[str, Span] = {}
    start = 0
    for line in lines:
        match = _SIMPLE.fullmatch(line) if line else None
        if line and (match is None or match[1] in values or match[1] in _WORDS):
            return None
        if match is not None:
            values[match[1]] = plain(match[2])
            places[match[1]] = Span(start, start + len(match[1]))
        start += len(line) + 1
    return Fields(values, places)


class _Builder:
    """Builds the value of a text from the events of the YAML library, which constructs none."""

    def __init__(
        self, text: str, plain: Callable[[str], Any], *, may_repeat: bool, has_own_tags: bool
    ) -> None:
        self._plain = plain
        self._has_own_tags = has_own_tags
        self._may_repeat = may_repeat
        self._anchors: dict[str, _Read] = {}
        self._size = 0
        self.places: dict[str, Span] = {}
        if len(text) > LONGEST:
            raise UnreadableError
        self._events = _events(text)
        self.value = next((self._value(event, 0) for event in self._events), None)
        if next(self._events, None) is not None:
            raise UnreadableError  # a second document

    def _value(self, event: Any, depth: int) -> Any:
        import yaml  # not at import: most folders have no front matter

        start = self._size
        self._size += 1
        if isinstance(event, yaml.AliasEvent):
            read = self._anchors.get(event.anchor or "")
            if read is None:
                raise UnreadableError
            self._size += read.size
            value = read.value
        elif isinstance(event, yaml.ScalarEvent):
            value = event.value if event.style else self._plain(event.value)
        elif depth == DEEPEST:
            raise UnreadableError
        elif isinstance(event, yaml.SequenceStartEvent):
            value = []
            while not isinstance(event_ := next(self._events), yaml.SequenceEndEvent):
                value.append(self._value(event_, depth + 1))
        else:
            value = self._members(depth)
        if self._size > MOST_VALUES:
            raise UnreadableError
        tag = getattr(event, "tag", None)
        if tag is not None and not self._has_own_tags and not tag.startswith(_STANDARD):
            raise UnreadableError
        if event.anchor is not None and not isinstance(event, yaml.AliasEvent):
            self._anchors[event.anchor] = _Read(value, self._size - start)
        return value

    def _members(self, depth: int) -> dict[str, Any]:
        import yaml

        members: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            name = key if isinstance(key, str) else str(key)
            if name in members and not self._may_repeat:
                raise UnreadableError
            if depth == 0:
                self.places[name] = Span(event.start_mark.index, event.end_mark.index)
            members[name] = self._value(next(self._events), depth + 1)
        return members


def _events(text: str) -> Iterator[Any]:
    """The events of values. Raises UnreadableError."""
    import yaml

    try:
        from yaml import CSafeLoader as Loader
    except ImportError:  # installed without libyaml
        from yaml import SafeLoader as Loader  # type: ignore[assignment]
    marks = (
        yaml.StreamStartEvent,
        yaml.StreamEndEvent,
        yaml.DocumentStartEvent,
        yaml.DocumentEndEvent,
    )
    try:
        yield from (event for event in yaml.parse(text, Loader=Loader) if not isinstance(event, marks))
    except (yaml.YAMLError, ValueError, OverflowError, IndexError) as error:
        raise UnreadableError from error
