"""Keeps the system prompt and tools that a conversation's requests begin with, and writes notes on what
changed since.

1. The prompt and tools that a request was sent with are sent again, byte for byte, although files and tools
   have changed since. The next user message says what changed, in a note in its preamble, and later requests
   send this note again.
2. The parts of a prompt are those that have rows in the usage (`row_key`): a file of a layer, a skill, a
   section. Notes do not mention a change of order, or of the space around a part.
3. A note lists the lines of a part that no longer apply and the new lines. It has the whole text of the part
   if that is shorter, or if lines alone would mislead, for example if a line is removed at one place and
   remains at another.
4. If a tool is gone, a note says so, although the tool's definition is still sent.
5. Each state has a number, and a note belongs to the state with its number. When prompt and tools are
   rendered anew, the state gets a new number. Earlier notes are then not sent any more, because they would
   contradict the newer prompt.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from nexus_context.conversation.message import Message
from nexus_context.conversation.tools import Tool, name_of, sent_fields
from nexus_context.folder.layers.layer_types import DEFAULTS
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.blocks import OWN_TEXTS
from nexus_context.folder.prompt.render import Prompt
from nexus_context.folder.prompt.token_attribution import RowKey, row_key
from nexus_context.text.decoding import decode_as

ChangeKind = Literal["added", "changed", "removed"]

_START, _END = "<changes>", "</changes>"
_BY_TOOLS = "tools"  # the section that says again what the tools say


class Rendered(msgspec.Struct, frozen=True):
    """A system prompt and the definitions of tools, as they are sent."""

    prompt: Prompt
    tools: Sequence[Tool]


class Frozen(msgspec.Struct, frozen=True, omit_defaults=True):
    """The system prompt and tools that a conversation's requests begin with, kept unchanged.

    `told` is the state that notes have described since, or None if there was no note.
    """

    number: int
    model: str
    agent: str | None
    sent: Rendered
    told: Rendered | None = None

    @property
    def latest(self) -> Rendered:
        """The prompt and tools that the model knows: those that are sent, updated by notes."""
        return self.told or self.sent


class Proposal(NamedTuple):
    """What the conversation's requests begin with if it continues from this request, and the note in this
    request.
    """

    frozen: Frozen | None
    note: str = ""


class Change(msgspec.Struct, frozen=True):
    """A part of the prompt or a tool that changed. `text` is the passage of the note about it."""

    kind: ChangeKind
    label: str
    text: str
    path: str | None = None
    is_tool: bool = False


def settled(frozen: Frozen | None, proposal: Proposal | None, messages: Iterable[Message]) -> Frozen | None:
    """Return the frozen state of a conversation after `messages` were added to it.

    A note counts only if one of the messages was sent with it. Otherwise the model would never learn of the
    change.
    """
    if proposal is None:
        return frozen
    state = proposal.frozen
    if not proposal.note or state is None:
        return state
    preambles = (message.preamble for message in messages)
    has_note = any(
        preamble is not None and (preamble.frozen, preamble.changes) == (state.number, proposal.note)
        for preamble in preambles
    )
    return state if has_note else frozen


def frozen_text(frozen: Frozen | None) -> str | None:
    """Return the state as JSON for the ledger. Return None if there is no state, or if JSON cannot hold
    it.
    """
    try:
        return None if frozen is None else msgspec.json.encode(frozen).decode()
    except (UnicodeEncodeError, TypeError):  # a name that is not Unicode
        return None


def frozen_of(text: str | None) -> Frozen | None:
    """Read the state that `frozen_text` wrote. Return None if there is none, or if this version cannot read
    it.
    """
    try:
        return None if text is None else decode_as(text, Frozen)
    except msgspec.DecodeError:
        return None


def note_of(changes: Sequence[Change]) -> str:
    """Write the note that tells a model of these changes. Return "" if there are none."""
    if not changes:
        return ""
    change_texts = "\n\n".join(change.text for change in changes)
    return f"{_START}\n{_line('head')}\n\n{change_texts}\n{_END}"


def changes_between(
    before: Rendered, now: Rendered, *, separator: str, sent: Sequence[Tool] = ()
) -> tuple[Change, ...]:
    """Compare two renderings of prompt and tools, and return the changes of parts, then those of tools.
    `separator` stands between sections of a prompt.

    `sent` are tools whose definitions are still sent, so that the model can call them.
    """
    if before is now:
        return ()
    changes: list[Change] = []
    if before.prompt is not now.prompt and before.prompt.text != now.prompt.text:
        changes += _part_changes(parts_of(before.prompt, separator), parts_of(now.prompt, separator))
    if before.tools is not now.tools:
        changes += _tool_changes(before.tools, now.tools, sent)
    return tuple(changes)


@lru_cache(maxsize=8)
def parts_of(prompt: Prompt, separator: str) -> Mapping[RowKey, str]:
    """Return the text of each part, without the space around it, in the order of the prompt."""
    collected: dict[RowKey, str] = {}
    for fragment in prompt.fragments:
        key = row_key(fragment)
        collected[key] = collected.get(key, "") + prompt.text[fragment.span.start : fragment.span.end]
    rule = separator.strip()
    trimmed = {key: text.strip().removesuffix(rule).strip() for key, text in collected.items()}
    return {key: text for key, text in trimmed.items() if text and key[0] != _BY_TOOLS}


# ---------------------------------------------------------------- parts


def _part_changes(before: Mapping[RowKey, str], now: Mapping[RowKey, str]) -> list[Change]:
    changes = []
    for key, text in now.items():
        earlier = before.get(key)
        if earlier is None:
            changes.append(_part_change(key, "added", f"{_line('part_added', _name(key))}\n{text}"))
        elif earlier != text:
            changes.append(_part_change(key, "changed", _changed_text(_name(key), earlier, text)))
    gone = (key for key in before if key not in now)
    return [*changes, *(_part_change(key, "removed", _line("part_removed", _name(key))) for key in gone)]


def _part_change(key: RowKey, kind: ChangeKind, text: str) -> Change:
    return Change(kind, key[2], text, path=key[3])


def _name(key: RowKey) -> str:
    """The part as the prompt names it: by its title and, for a user's file, its path."""
    _, layer, title, path = key
    if path is None or layer == DEFAULTS or path.startswith(OWN_TEXTS):
        return f'"{title}"'
    return f'"{title}" ({path})'


def _changed_text(name: str, before: str, now: str) -> str:
    full_text = f"{_line('part_changed', name)}\n{now}"
    old_lines, new_lines = before.split("\n"), now.split("\n")
    old_line_set, new_line_set = {*old_lines, ""}, {*new_lines, ""}
    if [line for line in old_lines if line in new_line_set] != [
        line for line in new_lines if line in old_line_set
    ]:
        return full_text  # a line moved, or remains elsewhere
    removed = [line for line in old_lines if line not in new_line_set]
    line_changes = ["\n".join([_line("lines_removed", name), *removed])] if removed else []
    if len(old_line_set | new_line_set) > len(old_line_set):
        line_changes.append("\n".join([_line("lines_added", name), *_with_headings(new_lines, old_line_set)]))
    by_line = "\n\n".join(line_changes)
    return by_line if len(by_line) < len(full_text) else full_text


def _with_headings(lines: Sequence[str], known_lines: Container[str]) -> Iterator[str]:
    """The new lines, each group after its heading, except the heading of the whole part."""
    heading = None
    for number, line in enumerate(lines):
        if line not in known_lines:
            if heading is not None:
                yield heading
            yield line
            heading = None
        elif number and line.startswith("#"):
            heading = line


# ---------------------------------------------------------------- tools


def _tool_changes(before: Sequence[Tool], now: Sequence[Tool], sent: Sequence[Tool]) -> list[Change]:
    callable_tools = {name_of(tool): sent_fields(tool) for tool in sent}
    tools_before = {name_of(tool): tool for tool in before}
    tools_now = {name_of(tool): tool for tool in now}
    changes = []
    for name, tool in tools_now.items():
        if name not in tools_before and callable_tools.get(name) == sent_fields(tool):
            changes.append(_tool_change(name, "added", _line("tool_back", name)))
        elif name not in tools_before:
            changes.append(_tool_change(name, "added", f"{_line('tool_added', name)}\n{_json(tool)}"))
        elif tools_before[name] != tool and sent_fields(tools_before[name]) != sent_fields(tool):
            changes.append(_tool_change(name, "changed", f"{_line('tool_changed', name)}\n{_json(tool)}"))
    gone = (name for name in tools_before if name not in tools_now)
    return [*changes, *(_tool_change(name, "removed", _line("tool_removed", name)) for name in gone)]


def _tool_change(name: str, kind: ChangeKind, text: str) -> Change:
    return Change(kind, name, text, is_tool=True)


def _json(tool: Tool) -> str:
    return msgspec.json.encode(sent_fields(tool)).decode()


def _line(key: str, name: str = "") -> str:
    return texts.table("changes")[key].replace("{name}", name)
