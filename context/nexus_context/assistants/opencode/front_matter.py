"""Reads front matter as opencode does: as YAML, and if it is none, once more with its lines as quoted texts.

gray-matter, js-yaml 3 and `ConfigMarkdown.sanitize` of opencode 1.18.33:

1. Front matter begins with `---`, not followed by a fourth `-`, and ends before the next line that begins
   with `---`.
2. Dates, times and numbers to other bases are not texts. Front matter cannot be read if it sets a field twice
   or has a tag of its own. Tabs before a field are ignored.
3. If front matter cannot be read, fields with a colon in their value, such as `description: Use this: it
   helps`, are read as texts.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from nexus_context.assistants.reading.yaml_fields import Fields, UnreadableError, plain_value, read_fields
from nexus_context.config.fixes import as_json
from nexus_context.errors import Span

_FIELD = re.compile(
    r"^([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*:[ \t]*([^\s\"'][^\r\n]*:[^\r\n]*?)[ \t]*$", re.MULTILINE
)
_TABS = re.compile(r"^\t+", re.MULTILINE)
_NUMBER = re.compile(r"[-+]?(?:0b[01_]+|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?)")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d.*)?")
_NAME = re.compile(r"^[ \t]*[\"']?([^\s:\"'#-][^:\r\n\"']*?)[\"']?[ \t]*:", re.MULTILINE)


class MarkdownFile(NamedTuple):
    """A file of a skill or an agent: its fields, the places of their names, and its text, trimmed. `fields`
    is None if opencode leaves the file out.
    """

    fields: dict[str, Any] | None
    places: Mapping[str, Span]
    body: str


def read_markdown(text: str) -> MarkdownFile:
    """Parse a file of a skill or an agent."""
    if not text.startswith("---") or text.startswith("----"):
        return MarkdownFile({}, {}, text.strip())
    start = text.find("\n") + 1 or len(text)
    end = text.find("\n---", start - 1)
    matter, body = (text[start:], "") if end < 0 else (text[start:end], text[end + 4 :].strip())
    fields = _fields(matter)
    if fields is None:
        quoted = _FIELD.sub(lambda match: f"{match[1]}: {as_json(match[2])}", matter)
        if quoted == matter:  # the second parse finds the first one, unfinished, in a cache
            return MarkdownFile({}, {}, text.strip())
        fields = _fields(quoted)
    if fields is None:
        return MarkdownFile(None, {}, body)
    places = {
        match[1]: Span(start + match.start(1), start + match.end(1)) for match in _NAME.finditer(matter)
    }
    default_places = dict.fromkeys(fields.values, Span(0, 3))
    return MarkdownFile(fields.values, {**default_places, **places}, body)


def _fields(matter: str) -> Fields | None:
    for text in (matter, _TABS.sub("", matter)):
        try:
            return read_fields(f"{text}\n", plain=_plain, may_repeat=False, has_own_tags=False)
        except UnreadableError:
            pass
    return None


def _plain(text: str) -> Any:
    """The value of a plain scalar by js-yaml 3; {} for a date, which is an object there."""
    if _DATE.fullmatch(text):
        return {}
    return 0 if _NUMBER.fullmatch(text) else plain_value(text)
