"""Tool names and call ids in a form that a provider accepts.

1. Valid names and ids stay unchanged. In a name, other characters become `_`; a name that is too long ends in
   a hash of itself.
2. Two tools never share a name: the one that had to change ends in a hash of its original name.
3. An invalid id becomes the nearest valid one and always ends in a hash: nobody reads it.
4. The result depends only on the original (for names, also on the other tools): it is the same each time.
"""

import re
from collections.abc import Iterable
from hashlib import blake2s

from nexus_context.conversation.repair import RepairLog, quote_name

_FITTING = re.compile(r"[a-zA-Z0-9_-]+", re.ASCII)
_OTHER = re.compile(r"[^a-zA-Z0-9_-]", re.ASCII)
_NAMELESS = "tool"


class Naming:
    """The names and ids of one body. Lengths are in characters; None: unlimited."""

    def __init__(self, log: RepairLog, *, longest_name: int, longest_id: int | None, any_id: bool) -> None:
        """`any_id`: ids may hold any character."""
        self._log = log
        self._longest_name = longest_name
        self._longest_id = longest_id
        self._any_id = any_id
        self._names: dict[str, str] = {}

    def define(self, names: Iterable[str]) -> None:
        """Register the names of all tool definitions, before the first call of `name`."""
        originals = list(dict.fromkeys(names))
        taken = {name for name in originals if self._fits(name)}
        for name in originals:
            if name in taken:
                self._names[name] = name
                continue
            sent = self._fitting(name)
            if sent in taken:
                sent = _hashed(sent, name, self._longest_name)
            taken.add(sent)
            self._names[name] = sent
            self._log_renamed(name, sent)

    def name(self, original: str) -> str:
        """The name of a tool in a call."""
        sent = self._names.get(original)
        if sent is None:
            sent = self._names[original] = original if self._fits(original) else self._fitting(original)
            if sent != original:
                self._log_renamed(original, sent)
        return sent

    def id(self, original: str) -> str:
        """The id of a call, or of the call that a result answers."""
        longest = self._longest_id
        if (longest is None or len(original) <= longest) and (self._any_id or _FITTING.fullmatch(original)):
            return original
        clean = original if self._any_id else _OTHER.sub("_", original)
        sent = _hashed(clean, original, longest or len(original) + 9)
        self._log.add(
            "id-changed",
            "Call ids that the provider rejects are replaced, in calls and in results.",
            tool_call_id=original,
            given=original,
            sent=sent,
        )
        return sent

    def _fits(self, name: str) -> bool:
        return len(name) <= self._longest_name and _FITTING.fullmatch(name) is not None

    def _fitting(self, name: str) -> str:
        clean = _OTHER.sub("_", name) or _NAMELESS
        return clean if len(clean) <= self._longest_name else _hashed(clean, name, self._longest_name)

    def _log_renamed(self, original: str, sent: str) -> None:
        text = f"The provider rejects the tool name {quote_name(original)}; it is sent as {sent}."
        self._log.add("tool-renamed", text, given=original, sent=sent)


def _hashed(name: str, original: str, longest: int) -> str:
    """`name` followed by a hash of `original`, in at most `longest` characters."""
    suffix = "-" + blake2s(original.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return name[: longest - len(suffix)] + suffix
