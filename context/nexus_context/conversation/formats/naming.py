"""Names of tools and ids of calls in the form that a provider takes.

1. What fits stays as it is. In a name, other characters become `_`; what is too long ends in a hash of it.
2. Two tools never share a name: the one that had to change ends in a hash of its own name.
3. An id that does not fit is the nearest that does, and always ends in a hash: nobody reads it.
4. Each form depends on the name alone, or for names on the other tools: the same each time.
"""

import re
from collections.abc import Iterable
from hashlib import blake2s

from nexus_context.conversation.formats.repair_log import Said
from nexus_context.conversation.repair.report import shown

_FITTING = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_OTHER = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_NAMELESS = "tool"


class Naming:
    """The names and ids of one rendering. Lengths are in characters; None: as long as it is."""

    def __init__(self, said: Said, *, longest_name: int, longest_id: int | None, any_id: bool) -> None:
        """`any_id` says that ids may hold any character."""
        self._said = said
        self._longest_name = longest_name
        self._longest_id = longest_id
        self._any_id = any_id
        self._names: dict[str, str] = {}

    def define(self, names: Iterable[str]) -> None:
        """Take in the names of all tool definitions, before the first `name`."""
        given = list(dict.fromkeys(names))
        taken = {name for name in given if self._fits(name)}
        for name in given:
            if name in taken:
                self._names[name] = name
                continue
            sent = self._fitting(name)
            if sent in taken:
                sent = _hashed(sent, name, self._longest_name)
            taken.add(sent)
            self._names[name] = sent
            self._say_renamed(name, sent)

    def name(self, given: str) -> str:
        """The name of a tool in a call."""
        sent = self._names.get(given)
        if sent is None:
            sent = self._names[given] = given if self._fits(given) else self._fitting(given)
            if sent != given:
                self._say_renamed(given, sent)
        return sent

    def id(self, given: str) -> str:
        """The id of a call, or of the call that a result answers."""
        longest = self._longest_id
        if (longest is None or len(given) <= longest) and (self._any_id or _FITTING.fullmatch(given)):
            return given
        clean = given if self._any_id else _OTHER.sub("_", given)
        sent = _hashed(clean, given, longest or len(given) + 9)
        self._said.add(
            "id-changed",
            "Ids of calls that the provider refuses are sent in another form, with their results",
            tool_call_id=given,
            given=given,
            sent=sent,
        )
        return sent

    def _fits(self, name: str) -> bool:
        return len(name) <= self._longest_name and _FITTING.fullmatch(name) is not None

    def _fitting(self, name: str) -> str:
        clean = _OTHER.sub("_", name) or _NAMELESS
        return clean if len(clean) <= self._longest_name else _hashed(clean, name, self._longest_name)

    def _say_renamed(self, given: str, sent: str) -> None:
        text = f"The provider refuses the name {shown(given)} of a tool; it is sent as {sent}."
        self._said.add("tool-renamed", text, given=given, sent=sent)


def _hashed(name: str, given: str, longest: int) -> str:
    """`name` with a hash of `given` behind it, `longest` at most."""
    suffix = "-" + blake2s(given.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return name[: longest - len(suffix)] + suffix
