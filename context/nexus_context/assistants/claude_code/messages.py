"""Reads session files of Claude Code (`~/.claude/projects/*/*.jsonl`) as the messages of the live branch.

The format is undocumented and changes; it is known from what readers of such files have reported.

1. Records form a tree: `parentUuid` names the record before. The conversation is the branch that ends with
   the last record with a message; abandoned branches stay in the file. If a parent is missing, or no record
   of the file names one, the record above is taken instead. If a uuid occurs twice, the later record counts.
2. A compaction (`compact_boundary`) has no parent: the records before it are no longer sent. Those that it
   preserved (`preservedSegment`, `preservedMessages`) come after its anchor, which is the summary.
3. An answer is written as one record per block, all with the same `message.id`: they are one message. A block
   that is written again as it grows counts once.
4. Of parallel calls only one lies on the branch: the blocks of the others are matched by message id, their
   results by call id.
5. The time is linear in the number of records and blocks, however they are linked.
6. The records of a sub-agent (`isSidechain`) are a conversation of their own. It is named by the id of the
   agent, else by the call that started it, else by its first record.
7. What the user says while the model works is in a `queued_command`, or only in a `queue-operation`
   (`steering`).
8. Errors that Claude Code wrote in the model's name, and its other attachments, are left out and counted.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.reading.record_values import field, text_in
from nexus_context.assistants.transcripts import steering
from nexus_context.assistants.transcripts.chat_records import contained
from nexus_context.assistants.transcripts.conversation import (
    Answer,
    Conversation,
    FormatReader,
    leading_system,
    outcome_of,
)
from nexus_context.assistants.transcripts.records import Record, Report
from nexus_context.conversation.agent_result import TurnOutcome
from nexus_context.conversation.message import Message
from nexus_context.tokens.estimates import json_text

_MARKS = ("uuid", "sessionId", "session_id", "leafUuid")
_FLAGS = ("isMeta", "isCompactSummary")
_LEFT_OUT = {
    "branch": "of abandoned branches of the conversation",
    "compacted": "before the last compaction: its summary replaces them",
    "error": "with errors that Claude Code wrote in the model's name",
    "attachment": "attached by Claude Code itself: reminders, changed files and the like",
    "hidden": "shown to the user only",
}


def is_session(values: Sequence[Any]) -> bool:
    """Whether values are the lines of a session file. One line that only Claude Code writes is enough."""
    return any(
        is_record(value)
        and "payload" not in value  # a line of Codex, whatever else it holds
        and (
            isinstance(value.get("message"), dict) or any(isinstance(value.get(mark), str) for mark in _MARKS)
        )
        for value in values
    )


def is_record(value: Any) -> bool:
    """Whether a JSON value may be a line of a session file."""
    return isinstance(value, dict) and "role" not in value and isinstance(value.get("type"), str)


def convert(lines: Sequence[Record], report: Report, entire: bool) -> list[Conversation]:
    """Convert the records of a session file: the session is one conversation, each of its sub-agents another.
    With `entire`, the messages before a compaction are included.
    """
    main: list[Record] = []
    agents: dict[str, list[Record]] = {}
    roots: dict[str, str] = {}  # uuid of a record → agent
    for line in lines:
        record = ClaudeCodeRecord(line.value)
        if not record.is_sidechain:
            main.append(line)
            continue
        uuid = record.uuid or ""
        agent = record.agent or roots.get(_text(line.value, "parentUuid")) or uuid
        roots[uuid] = agent
        agents.setdefault(agent, []).append(line)
    conversations = []
    if not agents or any(ClaudeCodeRecord(line.value).has_message for line in main):
        conversations.append(_Reader(main, report, entire).session())
    session = ClaudeCodeRecord(lines[-1].value).session if lines else None
    return [
        *conversations,
        *(
            _Reader(agents[agent], report, entire).session(agent, session, alone=not conversations)
            for agent in agents
        ),
    ]


class _Reader:
    """The records of one conversation with their links."""

    def __init__(self, lines: Sequence[Record], report: Report, entire: bool) -> None:
        self.report = report
        self.entire = entire
        last_indexes = {_text(line.value, "uuid") or f"#{at}": at for at, line in enumerate(lines)}
        self.lines = [lines[at] for at in sorted(last_indexes.values())]
        self.values: list[dict[str, Any]] = [line.value for line in self.lines]
        self.records = [ClaudeCodeRecord(value) for value in self.values]
        self.places = {record.uuid: at for at, record in enumerate(self.records) if record.uuid}
        self.blocks: dict[str, list[int]] = {}  # message id → its records
        self.results: dict[str, int] = {}  # call id → the record with its result
        for at, record in enumerate(self.records):
            for call in record.results:
                self.results[call] = at
            if record.kind == "assistant" and record.message_id is not None:
                self.blocks.setdefault(record.message_id, []).append(at)
        self.linked = any(
            value.get("parentUuid") in self.places for value in self.values if _text(value, "parentUuid")
        )
        self.parents = {} if entire else self._relinked()
        # for each record the nearest one above it that may be unvisited
        self.above = list(range(-1, len(self.values) - 1))

    def session(
        self, agent: str | None = None, session: str | None = None, *, alone: bool = False
    ) -> Conversation:
        """The conversation; of a sub-agent, with its name, unless the file has no other one."""
        path = self._path()
        consumed = set(path)
        messages: list[Message] = []
        answers: list[Answer] = []
        done: set[str] = set()
        model = None
        waiting = steering.Waiting(steering.unsent(self.values, self.report))
        for at in path:
            messages += self._steered(waiting.take_before(at, messages))
            record = self.records[at]
            name = record.message_id or f"#{at}"
            if record.kind != "assistant" or record.is_error:
                messages += self._messages_at(at)
                continue
            if name in done:
                continue
            done.add(name)
            group = self.blocks.get(name, [at])
            consumed.update(group)
            model = record.model or model
            answer_messages = self._answer(group)
            outcome = _outcome(self.records[at].message for at in group)
            if answer_messages and outcome is not None:
                answers.append(Answer(len(messages), outcome))
            messages += answer_messages
            results = (
                self.results.get(call.id) for message in answer_messages for call in message.tool_calls
            )
            for result_at in dict.fromkeys(
                index for index in results if index is not None and index not in consumed
            ):
                consumed.add(result_at)
                messages += [message for message in self._messages_at(result_at) if message.role == "tool"]
        messages += self._steered(waiting.take_rest())
        self._count_unused(path, consumed)
        session_id = (self.records[-1].session if self.records else None) or session
        system, conversation_messages = leading_system(messages)
        shift = len(messages) - len(conversation_messages)
        return Conversation(
            tuple(conversation_messages),
            system,
            name="" if agent is None or alone else f"agent {agent}",
            model=model,
            id=session_id if agent is None else f"{session_id or ''}/{agent}",
            agent=agent,
            answers=tuple(Answer(answer.message - shift, answer.outcome) for answer in answers),
        )

    def _steered(self, places: Iterable[int]) -> list[Message]:
        """What the user said while the model worked, by the places of the records."""
        return [
            message for at in places for message in self._neutral(at, "user", self.values[at].get("content"))
        ]

    def _path(self) -> list[int]:
        """The records of the live conversation, oldest first."""
        leaves = (at for at in reversed(range(len(self.records))) if self.records[at].has_message)
        at = next(leaves, None)
        path: list[int] = []
        visited: set[int] = set()
        while at is not None and at not in visited:
            visited.add(at)
            path.append(at)
            at = self._previous_record(at, visited)
        path.reverse()
        if not self.entire and not any(self.records[at].is_compaction for at in path):
            summaries = [n for n, at in enumerate(path) if self.records[at].is_summary]
            path = path[summaries[-1] :] if summaries else path
        return path

    def _previous_record(self, at: int, visited: set[int]) -> int | None:
        """Find the record before `at`: its parent, or the record above if the parent is missing."""
        value, is_compaction = self.values[at], self.records[at].is_compaction
        if at in self.parents:
            return self.parents[at]
        parent = value.get("parentUuid", "")
        if parent is None and is_compaction:
            parent = (value.get("logicalParentUuid") or "") if self.entire else None
        if parent is None and (self.linked or is_compaction):
            return None
        if isinstance(parent, str) and parent in self.places:
            return self.places[parent]
        return self._first_above(at, visited)

    def _first_above(self, at: int, visited: set[int]) -> int | None:
        """Find the nearest record above `at` that is not visited; each visited one is skipped only once."""
        passed_indexes = [at]
        while (nearest_above := self.above[passed_indexes[-1]]) >= 0 and nearest_above in visited:
            passed_indexes.append(nearest_above)
        for index in passed_indexes:
            self.above[index] = nearest_above
        return nearest_above if nearest_above >= 0 else None

    def _relinked(self) -> dict[int, int]:
        """New parents for the records that the last compaction preserved."""
        compactions = (record for record in reversed(self.records) if record.is_compaction)
        last_compaction = next(compactions, None)
        preserved, anchor = self._preserved(
            {} if last_compaction is None else last_compaction.compact_metadata
        )
        if not preserved or anchor is None or anchor in preserved:
            return {}
        parents = dict(zip(preserved, [anchor, *preserved], strict=False))
        for at, value in enumerate(self.values):
            if at not in parents and self.places.get(_text(value, "parentUuid")) == anchor:
                parents[at] = preserved[-1]
        return parents

    def _preserved(self, about: dict[str, Any]) -> tuple[list[int], int | None]:
        """The indexes of the records that a compaction preserved, oldest first, and of the one before."""
        listed, segment = about.get("preservedMessages"), about.get("preservedSegment")
        if isinstance(listed, dict) and isinstance(listed.get("uuids"), list):
            preserved = [self.places.get(str(name), -1) for name in listed["uuids"]]
            return ([] if -1 in preserved else preserved), self.places.get(str(listed.get("anchorUuid")))
        if not isinstance(segment, dict):
            return [], None
        chain: dict[int, None] = {}
        head = self.places.get(str(segment.get("headUuid")))
        at = self.places.get(str(segment.get("tailUuid")))
        while at is not None and at not in chain:
            chain[at] = None
            if at == head:
                return [*chain][::-1], self.places.get(str(segment.get("anchorUuid")))
            at = self.places.get(str(self.values[at].get("parentUuid")))
        return [], None

    def _answer(self, group: Sequence[int]) -> list[Message]:
        """The one message of an answer that was written as several records."""
        contents = [self.records[at].content for at in group]
        content = contents[0] if len(contents) == 1 else _merged(contents)
        return self._neutral(group[0], "assistant", content)

    def _messages_at(self, at: int) -> list[Message]:
        """The messages of a record that is not an answer. A record that was not sent is only counted."""
        value, record = self.values[at], self.records[at]
        kind = record.kind
        if kind == "user" and record.message is not None:
            if record.is_hidden:
                return self._leave("hidden")
            is_meta = steering.is_notification({"origin": value.get("origin"), "prompt": record.content})
            return self._neutral(at, "user", record.content, is_meta=is_meta)
        if kind == "assistant":
            return self._leave("error")
        if kind == "system" and value.get("subtype") == "local_command":
            return self._neutral(at, "user", value.get("content"))
        if kind == "attachment":
            queued = record.queued_command
            if field(queued, "prompt") is None:
                return self._leave("attachment")
            is_meta = steering.is_notification(queued)
            return self._neutral(at, "user", field(queued, "prompt"), is_meta=is_meta)
        return []

    def _neutral(self, at: int, role: str, content: Any, *, is_meta: bool = False) -> list[Message]:
        value = self.values[at]
        flags = {flag: True for flag in _FLAGS if value.get(flag) is True}
        if is_meta:
            flags["isMeta"] = True
        stamp = value.get("timestamp")
        messages = contained(self.lines[at], {"role": role, "content": content}, self.report)
        return [
            msgspec.structs.replace(
                message,
                timestamp=stamp if isinstance(stamp, str) else None,
                meta=flags | (message.meta if isinstance(message.meta, dict) else {}) or msgspec.UNSET,
            )
            for message in messages or ()
        ]

    def _leave(self, reason: str) -> list[Message]:
        self.report.leave(reason, _LEFT_OUT[reason])
        return []

    def _count_unused(self, path: Sequence[int], consumed: set[int]) -> None:
        first_record = self.records[path[0]] if path else None
        cut_at = (
            path[0]
            if first_record is not None and (first_record.is_compaction or first_record.is_summary)
            else -1
        )
        for at, record in enumerate(self.records):
            if at not in consumed and record.has_message:
                self._leave("compacted" if at < cut_at else "branch")


def _outcome(messages: Iterable[dict[str, Any] | None]) -> TurnOutcome | None:
    """What the provider said about an answer. Its records repeat it, and the last one is complete."""
    outcome = None
    for message in messages:
        usage = field(message, "usage")
        outcome = (
            outcome_of(
                field(usage, "input_tokens"),
                field(usage, "output_tokens"),
                cache_read=field(usage, "cache_read_input_tokens"),
                cache_write=field(usage, "cache_creation_input_tokens"),
                includes_cache=False,
                stop_reason=text_in(message, "stop_reason"),
            )
            or outcome
        )
    return outcome


def _merged(contents: Iterable[Any]) -> list[Any]:
    """Merge the blocks of an answer's records. Of a repeated block, the longer or later copy stays."""
    blocks: list[Any] = []
    indexes: dict[Any, int] = {}  # identity of a block → its index in `blocks`
    for content in contents:
        earlier_count = len(blocks)
        fresh = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        for block in fresh:
            index = indexes.get(_identity(block), earlier_count)
            if index >= earlier_count and earlier_count and _grows(block, blocks[earlier_count - 1]):
                index = earlier_count - 1
            if index < earlier_count:
                if indexes.get(_identity(blocks[index])) == index:
                    del indexes[_identity(blocks[index])]
                blocks[index] = block
            else:
                index = len(blocks)
                blocks.append(block)
            indexes.setdefault(_identity(block), index)
    return blocks


def _identity(block: Any) -> Any:
    """What identifies a block: the id of a call; for anything else, its whole content."""
    if isinstance(block, dict) and block.get("type") == "tool_use" and _text(block, "id"):
        return "tool_use", block["id"]
    return block.__class__, json_text(block)


def _grows(block: Any, earlier: Any) -> bool:
    """Whether a block repeats an earlier block and adds text."""
    if not (
        isinstance(block, dict) and isinstance(earlier, dict) and block.get("type") == earlier.get("type")
    ):
        return False
    key = "thinking" if block.get("type") == "thinking" else "text"
    old_text, new_text = earlier.get(key), block.get(key)
    return (
        isinstance(old_text, str)
        and isinstance(new_text, str)
        and bool(old_text)
        and new_text.startswith(old_text)
    )


def _text(value: dict[str, Any], key: str) -> str:
    text = value.get(key)
    return text if isinstance(text, str) else ""


READER = FormatReader("claude-code", is_session, is_record, convert)
