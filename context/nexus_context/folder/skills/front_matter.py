"""Reads the front matter of a Markdown file: YAML between two lines `---`, strictly and within bounds.

1. The YAML library only produces events: no value is ever constructed, every scalar is its text.
2. Anchors, aliases and tags are rejected: no skill needs them, and they turn a short text into a huge value.
   More than MAX_CHARACTERS, MAX_NODES or MAX_DEPTH is rejected, too.
3. Of two fields with one name the last counts, as with most readers; that is reported.
4. Front matter that cannot be read is one problem, at the place where reading ended.
5. `lenient_front_matter` is for files of other programs. Like Claude Code 2.1.330, it reads a text that is
   not YAML once more, with the values of its lines in quotes. Values may be nested deeper, and the front
   matter may be missing.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any, NamedTuple

from nexus_context.errors import Edit, Fix, Problem, Severity, Span

MAX_CHARACTERS = 16_384
MAX_NODES = 500
MAX_DEPTH = 4
MAX_LENIENT_DEPTH = 16

_OPEN = re.compile(r"---[ \t]*(?:\r\n|\r|\n|\Z)")
_CLOSE = re.compile(r"(?:(?<=\n)|(?<=\r))---[ \t]*(?:\r\n|\r|\n|\Z)")
_NO_YAML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")
_PLAIN_FIELD = re.compile(r"[\w-]+:[ \t]+(?![\"'|>\[{&*!#%@`])(\S[^\r\n]*?)[ \t]*(?=\r|\n|\Z)")
_LINE = re.compile(r"^([a-zA-Z_-]+:[^\S\n]+)(\S[^\r\n\u2028\u2029]*)$", re.MULTILINE)
_SPECIAL = re.compile(r"[{}[\]*&#!|>%@`]|: ")
_CODE = "skill.front-matter"


class Node(NamedTuple):
    """One value: a text, a list (`items`) or an object (`members`)."""

    span: Span
    text: str | None = None
    items: "tuple[Node, ...] | None" = None
    members: "tuple[Member, ...] | None" = None


class Member(NamedTuple):
    """A field and its value. `span` is the range of the field's name."""

    name: str
    span: Span
    value: Node


class FrontMatter(NamedTuple):
    """The front matter of a file. `fields` is None if it cannot be read; `body` is everything that follows.

    `span` is the range of the fields, or where they should be.
    """

    fields: dict[str, Member] | None
    span: Span
    body: Span
    problems: tuple[Problem, ...]


class _UnreadableError(Exception):
    def __init__(self, span: Span, why: str, fix: Fix | None = None) -> None:
        super().__init__(why)
        self.span = span
        self.why = why
        self.fix = fix


def front_matter(path: str, text: str, *, deepest: int = MAX_DEPTH) -> FrontMatter:
    """Read the front matter of a file. Never raises for any text."""
    opened = _OPEN.match(text)
    if opened is None:
        error_span = Span(0, len(text.partition("\n")[0].rstrip("\r")))
        why = "it must begin with a line `---`, then `name:` and `description:`, then a line `---`"
        return FrontMatter(
            None, error_span, Span(0, len(text)), (_problem(path, error_span, f"No front matter: {why}."),)
        )
    closed = _CLOSE.search(text, opened.end())
    if closed is None:
        error_span = Span(0, 3)
        message = "The front matter does not end: write a line `---` after its last field."
        return FrontMatter(
            None, error_span, Span(len(text), len(text)), (_problem(path, error_span, message),)
        )
    inside, body = Span(opened.end(), closed.start()), Span(closed.end(), len(text))
    try:
        members = _members(text, inside, deepest)
    except _UnreadableError as error:
        return FrontMatter(None, inside, body, (_unreadable(path, error),))
    fields, problems = _fields(path, members)
    return FrontMatter(fields, inside, body, problems)


def lenient_front_matter(path: str, text: str) -> FrontMatter:
    """Read front matter by rule 5. Its `fields` are empty if there is none or it cannot be read."""
    opened = _OPEN.match(text)
    closed = None if opened is None else _CLOSE.search(text, opened.end())
    if opened is None or closed is None:
        return FrontMatter({}, Span(0, 0), Span(0, len(text)), ())
    inside, body = Span(opened.end(), closed.start()), Span(closed.end(), len(text))
    try:
        fields, problems = _fields(path, _members(text, inside, MAX_LENIENT_DEPTH))
    except _UnreadableError as error:
        quoted, added = quote_values(text[inside.start : inside.end])
        try:
            members = _members(quoted, Span(0, len(quoted)), MAX_LENIENT_DEPTH)
        except _UnreadableError:
            return FrontMatter({}, inside, body, (_unreadable(path, error),))
        moved = (_moved(member, inside.start, added) for member in members)
        fields, problems = _fields(path, tuple(moved))
    return FrontMatter(fields, inside, body, problems)


def unreadable_place(text: str) -> tuple[Span, str, Fix | None]:
    """Return where the front matter of a file stops being YAML, why, and a fix or None.

    If it is valid YAML, or missing, the place is in the first line.
    """
    opened = _OPEN.match(text)
    closed = None if opened is None else _CLOSE.search(text, opened.end())
    if opened is not None and closed is not None:
        try:
            _members(text, Span(opened.end(), closed.start()), MAX_LENIENT_DEPTH)
        except _UnreadableError as error:
            return error.span, error.why, error.fix
    return Span(0, min(3, len(text))), "it is not valid YAML", None


def quote_values(matter: str) -> tuple[str, list[int]]:
    """Put quotes around values of front matter that YAML could misread.

    Returns the text, and the offsets of the characters that were added.
    """
    added: list[int] = []
    parts: list[str] = []
    end = size = 0

    def put(text: str, *, is_new: bool = False) -> None:
        nonlocal size
        added.extend(range(size, size + len(text)) if is_new else ())
        parts.append(text)
        size += len(text)

    for line in _LINE.finditer(matter):
        value = line[2]
        is_quoted = value[0] in "\"'" and value[-1] == value[0]
        if is_quoted or not _SPECIAL.search(value) or _is_list(value):
            continue
        put(matter[end : line.start(2)])
        put('"', is_new=True)
        for character in value:
            put("\\", is_new=True) if character in '"\\' else None
            put(character)
        put('"', is_new=True)
        end = line.end()
    put(matter[end:])
    return "".join(parts), added


def _is_list(value: str) -> bool:
    text = f"x: {value}"
    try:
        return value[0] + value[-1] == "[]" and bool(_members(text, Span(0, len(text)), MAX_LENIENT_DEPTH))
    except _UnreadableError:
        return False


def _moved(member: Member, start: int, added: list[int]) -> Member:
    """A member whose places are those before `quote_values`; the text begins at `start` of its file."""

    def back(span: Span) -> Span:
        return Span(*(start + at - bisect_left(added, at) for at in span))

    def node(value: Node) -> Node:
        items = None if value.items is None else tuple(map(node, value.items))
        members = None if value.members is None else tuple(map(moved, value.members))
        return Node(back(value.span), value.text, items, members)

    def moved(member: Member) -> Member:
        return Member(member.name, back(member.span), node(member.value))

    return moved(member)


def _unreadable(path: str, error: "_UnreadableError") -> Problem:
    message = f"The front matter cannot be read: {error.why}."
    return Problem(path, error.span, _CODE, Severity.ERROR, message=message, fix=error.fix)


def _fields(path: str, members: tuple[Member, ...]) -> tuple[dict[str, Member], tuple[Problem, ...]]:
    """Index the fields by name, the last of a name counts; repeated fields are reported."""
    fields: dict[str, Member] = {}
    problems = []
    for member in members:
        if member.name in fields:
            message = f"`{member.name}` is set twice, and only this one counts. Remove one of them."
            problems.append(
                Problem(path, member.span, "skill.duplicate-field", Severity.WARNING, message=message)
            )
        fields[member.name] = member
    return fields, tuple(problems)


def _problem(path: str, span: Span, message: str) -> Problem:
    return Problem(path, span, _CODE, Severity.ERROR, message=message)


def _members(text: str, inside: Span, deepest: int) -> tuple[Member, ...]:
    length = inside.end - inside.start
    if length > MAX_CHARACTERS:
        why = f"it is {length:,} characters long, at most {MAX_CHARACTERS:,} are read. Move text to the body"
        raise _UnreadableError(Span(inside.start, inside.start), why)
    foreign = _NO_YAML.search(text, inside.start, inside.end)
    if foreign is not None:
        why = f"YAML does not allow the character U+{ord(foreign[0]):04X}. Remove it"
        raise _UnreadableError(Span(*foreign.span()), why)
    root = _Builder(text, inside, deepest).root()
    if root is None:
        return ()
    if root.members is None:
        raise _UnreadableError(root.span, "it must be fields, one per line: `name: …`, `description: …`")
    return root.members


class _Builder:
    """Builds nodes from the events of one front matter."""

    def __init__(self, text: str, inside: Span, deepest: int) -> None:
        self._text = text
        self._deepest = deepest
        self._inside = inside
        self._nodes = 0
        self._events = self._parsed()

    def root(self) -> Node | None:
        """The value of the only document; None if there are only white space and comments."""
        import yaml  # not at import: most folders have no skills

        root: Node | None = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise _UnreadableError(self._span(event), "it contains two documents. Remove the second")
                root = self._node(next(self._events), 0)
        return root

    def _parsed(self) -> Iterator[Any]:
        import yaml

        try:
            from yaml import CSafeLoader as Loader
        except ImportError:  # installed without libyaml
            from yaml import SafeLoader as Loader  # type: ignore[assignment]

        try:
            yield from yaml.parse(self._text[self._inside.start : self._inside.end], Loader=Loader)
        except yaml.MarkedYAMLError as error:
            raise self._marked(error) from error
        # bad escapes and directives that the library does not check
        except (yaml.YAMLError, ValueError, OverflowError, IndexError) as error:
            raise _UnreadableError(self._inside, "it is not valid YAML") from error

    def _node(self, event: Any, depth: int) -> Node:
        import yaml

        self._nodes += 1
        span = self._span(event)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _UnreadableError(
                span, "anchors and aliases (`&`, `*`) are not read. Write the value itself"
            )
        if event.tag is not None:
            raise _UnreadableError(
                span, "tags (`!`) are not read. Put the value in quotes, or remove the tag"
            )
        if self._nodes > MAX_NODES:
            raise _UnreadableError(span, f"it contains more than {MAX_NODES} values. Move them to the body")
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(span, event.value, plain=not event.style)
        if depth == self._deepest:
            raise _UnreadableError(span, f"its values are nested more than {self._deepest} deep")
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(event, depth + 1))
            return Node(self._to(span, event), items=tuple(items))
        members = []
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if key.text is None:
                raise _UnreadableError(key.span, "the name of a field must be a text")
            members.append(Member(key.text, key.span, self._node(next(self._events), depth + 1)))
        return Node(self._to(span, event), members=tuple(members))

    def _scalar(self, span: Span, value: str, *, plain: bool) -> Node:
        if not value.isprintable():
            source = self._text[span.start : span.end]
            invisible = [
                character for character in value if not character.isprintable() and not character.isspace()
            ]
            if any(character not in source for character in invisible):
                raise _UnreadableError(span, "an escape produces an invisible character. Remove it")
        return Node(span, "" if plain and value in ("~", "null") else value)

    def _span(self, event: Any) -> Span:
        start = self._inside.start + event.start_mark.index
        end = self._inside.start + event.end_mark.index
        return self._trimmed(start, end)

    def _to(self, span: Span, last_event: Any) -> Span:
        return self._trimmed(span.start, self._inside.start + last_event.end_mark.index)

    def _trimmed(self, start: int, end: int) -> Span:
        start = min(start, self._inside.end)
        source = self._text[start : min(end, self._inside.end)].rstrip()
        return Span(start, start + len(source))

    def _marked(self, error: Any) -> _UnreadableError:
        context = str(error.context or "")
        problem = str(error.problem or "it is not valid YAML").rstrip(".")
        is_quote = "quoted scalar" in context and "unexpected" in problem
        is_open = error.context_mark is not None and (is_quote or "flow" in context)
        mark = error.context_mark if is_open else error.problem_mark or error.context_mark
        at = self._inside.start + min(mark.index, self._inside.end - self._inside.start) if mark else None
        if at is None:
            return _UnreadableError(self._inside, problem)
        span = Span(at, min(at + 1, self._inside.end))
        if is_open:
            opening = "quote" if is_quote else "bracket"
            return _UnreadableError(span, f"the {opening} that begins here does not end")
        if "mapping values are not allowed" in problem:
            return _UnreadableError(span, "a value with a colon must be in quotes", self._quoted(at))
        if self._text[at : at + 1] == "\t":
            return _UnreadableError(span, "YAML is indented with spaces. Replace the tab")
        return _UnreadableError(span, problem)

    def _quoted(self, at: int) -> Fix | None:
        """Quotes for the one-line value around an offset."""
        start = max(self._text.rfind("\n", 0, at), self._text.rfind("\r", 0, at)) + 1
        field = _PLAIN_FIELD.match(self._text, start, self._inside.end)
        if field is None or not field.start(1) <= at < field.end(1):
            return None
        # the edits contain only quotes: the value may be a secret
        start, end = field.span(1)
        quotes = [at for at in range(start, end) if self._text[at] == "'"]
        places = (start, *quotes, end)
        return Fix("Put the value in quotes", tuple(Edit(Span(at, at), "'") for at in places))
