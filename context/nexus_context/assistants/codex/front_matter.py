"""Reads the front matter of a skill as Codex does.

1. Front matter stands between a first line `---` and the next one; blanks around these do not count. A byte
   order mark must not precede it.
2. A scalar is its text as written. Codex ignores the whole skill if a field is set twice, if `name` or
   `description` is not a scalar, or if the text is not YAML.
3. A text that cannot be read is read once more with some values in quotes: those that have a colon, begin
   with `@` or a back quote, or begin like a list or a table and do not end like one.

Source: runs of Codex 0.169.0, `tests/assistants/spellings.jsonl`.
"""

import re
from typing import Any

from nexus_context.assistants.reading.yaml_fields import UnreadableError, read_fields
from nexus_context.config.fixes import as_json

TEXTS = ("name", "description")
_LINE = re.compile(r"([ \t]*[\w-]+[ \t]*:[ \t]+)([^\s\"'|>#&!*%][^\r\n]*?)([ \t\r]*)")
_NULL = ("", "~", "null", "Null", "NULL")


def skill_texts(text: str) -> dict[str, str | None] | None:
    """Return the `name` and `description` of a SKILL.md, each on one line. Return None if Codex refuses the
    file.
    """
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if line.strip() == "---"]
    if len(marks) < 2 or marks[0] != 0:
        return None
    matter = lines[1 : marks[1]]
    values = _texts("\n".join(matter)) or _texts("\n".join(_quoted(line) for line in matter))
    return values and {name: " ".join((values[name] or "").split()) or None for name in TEXTS}


def _texts(matter: str) -> dict[str, str | None] | None:
    try:
        fields = read_fields(matter, plain=_plain, may_repeat=False).values
    except UnreadableError:
        return None
    values = {name: fields.get(name) for name in TEXTS}
    return values if all(value is None or isinstance(value, str) for value in values.values()) else None


def _plain(text: str) -> Any:
    return None if text in _NULL else text


def _quoted(line: str) -> str:
    match = _LINE.fullmatch(line)
    if match is None:
        return line
    value = match[2]
    is_open = (value[0] == "[" and value[-1] != "]") or (value[0] == "{" and value[-1] != "}")
    if ": " in value or value[0] in "@`" or is_open:
        return f"{match[1]}{as_json(value)}{match[3]}"
    return line
