"""Front matter as opencode reads it: YAML, and once more with its lines as quoted texts if it is none.

gray-matter and `ConfigMarkdown.sanitize` of opencode 1.18.33: of a front matter that is not valid, a field
with a colon in its value, such as `description: Use this: it helps`, counts as text.
"""

import re
from typing import Any, NamedTuple

from nexus_context.config.fixes import as_json
from nexus_context.errors import Span
from nexus_context.folder.skills.front_matter import Node, front_matter

_FIELD = re.compile(
    r"^([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*:[ \t]*([^\s\"'][^\r\n]*:[^\r\n]*?)[ \t]*$", re.MULTILINE
)
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?|[-+]?\.[0-9]+")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}


class MarkdownFile(NamedTuple):
    """The fields of a file, None if it is left out; the places of their names; and its text, trimmed."""

    fields: dict[str, Any] | None
    places: dict[str, Span]
    body: str


def read_markdown(path: str, text: str) -> MarkdownFile:
    """A file of a skill or an agent."""
    if not text.startswith("---") or text.startswith("----"):
        return MarkdownFile({}, {}, text.strip())
    matter = front_matter(path, text)
    if matter.fields is None and matter.span.end > matter.span.start:
        quoted = _FIELD.sub(lambda match: f"{match[1]}: {as_json(match[2])}", text[slice(*matter.span)])
        sanitized = text[: matter.span.start] + quoted + text[matter.span.end :]
        if sanitized == text:  # the second parse finds the first one, unfinished, in a cache
            return MarkdownFile({}, {}, text.strip())
        matter, text = front_matter(path, sanitized), sanitized
    body = text[slice(*matter.body)].strip()
    if matter.fields is None:
        return MarkdownFile(None, {}, body)
    fields = {name: _value(member.value, text) for name, member in matter.fields.items()}
    return MarkdownFile(fields, {name: member.span for name, member in matter.fields.items()}, body)


def _value(node: Node, text: str) -> Any:
    if node.items is not None:
        return [_value(each, text) for each in node.items]
    if node.members is not None:
        return {each.name: _value(each.value, text) for each in node.members}
    plain = node.text or ""
    if text[node.span.start : node.span.start + 1] in ("'", '"', "|", ">"):
        return plain
    if plain.lower() in _WORDS:
        return _WORDS[plain.lower()]
    if _NUMBER.fullmatch(plain):
        return float(plain) if "." in plain else int(plain)
    return plain
