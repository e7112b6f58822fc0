"""Fields of front matter as lenient readers take them: texts, and lists separated by commas."""

import re

from nexus_context.folder.skills.front_matter import MAX_LENIENT_DEPTH, Member, front_matter, quote_values

_STAR = "\ue000"
"""Stands for a `*` that YAML would take for an alias."""
_LEADING_STAR = re.compile(r"^([\w-]+:[ \t]+|[ \t]*-[ \t]+)\*", re.MULTILINE)


def fields_of(matter: str) -> dict[str, Member]:
    """The fields of the text between two lines `---`; empty if it cannot be read."""
    text = _LEADING_STAR.sub(rf"\1{_STAR}", f"---\n{matter.strip(chr(10))}\n---\n")
    return front_matter("", text, deepest=MAX_LENIENT_DEPTH).fields or {}


def retried(matter: str | None) -> str | None:
    """Front matter as Claude Code reads it: what is no YAML, with the values of its lines in quotes."""
    return matter if not matter or fields_of(matter) else quote_values(matter)[0]


def field_text(matter: str | None, name: str) -> str | None:
    """The text of a field, None if it has none."""
    member = None if matter is None else fields_of(matter).get(name)
    text = None if member is None else member.value.text
    return None if text is None else text.replace(_STAR, "*")


def field_list(matter: str | None, name: str) -> list[str]:
    """The items of a list, or of a text with commas; commas within braces separate nothing."""
    member = None if matter is None else fields_of(matter).get(name)
    if member is None:
        return []
    texts = [item.text for item in member.value.items or () if item.text] or [member.value.text or ""]
    items = [item.strip() for text in texts for item in re.split(r",(?![^{]*\})", text)]
    return [item.replace(_STAR, "*") for item in items if item]
