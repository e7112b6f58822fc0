"""Offers the tool `read_skill`, with which a model reads the skills that the system prompt lists.

1. It is offered if a request asks for it and at least one skill is offered. Its argument is the name of a
   skill.
2. It reads only the folder's snapshot: no other file, and no skill that the settings leave out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.errors import RequestError
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.sections import READ_SKILL
from nexus_context.folder.request_prompt import offered_skills, skill_text
from nexus_context.folder.snapshot import Snapshot


def definitions(
    snapshot: Snapshot, *, skip_skills: bool = False, skill_filter: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return a list with the tool's definition. The list is empty if the request offers no skill."""
    offered = () if skip_skills else offered_skills(snapshot, skill_filter=skill_filter)
    names = [layer_skill.skill.name for layer_skill in offered]
    if not names:
        return []
    descriptions = texts.table("skill_read_tool")
    name = {"type": "string", "enum": names, "description": descriptions["name"]}
    schema = {"type": "object", "properties": {"name": name}, "required": ["name"]}
    return [
        {
            "name": READ_SKILL,
            "description": descriptions["description"],
            "inputSchema": {**schema, "additionalProperties": False},
            "annotations": {"readOnlyHint": True},
        }
    ]


def run(snapshot: Snapshot, arguments: Mapping[str, Any] | str | None) -> str:
    """Run the tool and return its answer. `arguments` is an object, or its JSON text.

    Raise RequestError, code `bad-argument`, which names the argument, or code `unknown-skill`.
    """
    value: Any = arguments
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise _bad(f"the arguments are not valid JSON: {error}.") from None
    if not isinstance(value, Mapping):
        raise _bad("the arguments must be an object with the name of a skill.")
    for field in value:
        if field != "name":
            raise _bad(f"there is no argument {str(field)!r:.60}. Known: name.")
    name = value.get("name")
    if not isinstance(name, str):
        raise _bad("name must be the name of a skill, as a string.")
    return skill_text(snapshot, name)


def _bad(message: str) -> RequestError:
    return RequestError(f"{READ_SKILL}: {message}", code="bad-argument")
