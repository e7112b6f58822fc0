"""Names the parts of a record of Codex, an envelope with `type` and `payload`; the format is that of
0.169.0.
"""

from typing import Any, ClassVar

from nexus_context.assistants.reading.record_values import field, text_in, unread_counts
from nexus_context.assistants.sessions.record import SessionRecord

_SILENT = frozenset({"session_meta", "world_state", "turn_context", "session_state", "ghost_snapshot"})
_WITH_STEPS = frozenset({"response_item", "event_msg", "token_usage_record", "compacted"})
_KNOWN_KINDS = _SILENT | _WITH_STEPS
OUTPUTS = frozenset(
    {"function_call_output", "custom_tool_call_output", "local_shell_call_output", "tool_search_output"}
)
CALLS = frozenset(
    {"function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call"}
)
COMPACTIONS = frozenset({"compaction", "compaction_summary", "context_compaction"})
_ITEMS = frozenset({"message", "reasoning", "ghost_snapshot", "other"}) | OUTPUTS | CALLS | COMPACTIONS
_LAST_USAGE = ("info", "last_token_usage")
_USAGE = frozenset(
    {
        *("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens"),
        *("reasoning_output_tokens", "total_tokens"),
    }
)


class CodexRecord(SessionRecord):
    """A line of a rollout."""

    __slots__ = ()

    COMPACTION_MARKS: ClassVar = (b'"type":"compacted"', b'"type": "compacted"')

    @property
    def unknown(self) -> tuple[str, ...]:
        kind, payload = self.kind, self.payload
        if payload is None or kind not in _KNOWN_KINDS:
            return (str(kind),)
        if kind == "response_item" and text_in(payload, "type") in _ITEMS:
            return ()
        if kind in ("event_msg", "token_usage_record"):
            usage = field(payload, *(("usage",) if kind == "token_usage_record" else _LAST_USAGE))
            unread = unread_counts(usage, _USAGE) if isinstance(usage, dict) else ()
            return tuple(f"usage/{key}" for key in unread)
        items = [payload] if kind == "response_item" else self.replacement if kind == "compacted" else ()
        kinds = (text_in(item, "type") for item in items)
        return tuple(f"response_item/{item_kind}" for item_kind in kinds if item_kind not in _ITEMS)

    @property
    def is_compaction(self) -> bool:
        return self.kind == "compacted"

    @property
    def folder(self) -> str | None:
        return text_in(self.payload, "cwd")

    @property
    def parent_thread(self) -> str | None:
        """The id of the thread that started a sub-agent, else None. Versions before 0.169.0 have it in
        `source`.
        """
        spawn = field(field(self.payload, "source", "subagent"), "thread_spawn", "parent_thread_id")
        return text_in(self.payload, "parent_thread_id") or (spawn if isinstance(spawn, str) else None)

    @property
    def parent_session(self) -> str | None:
        return self.parent_thread

    @property
    def fork_of(self) -> str | None:
        return text_in(self.payload, "forked_from_id") if self.kind == "session_meta" else None

    @property
    def shared_until(self) -> str | None:
        has_base = self.kind == "session_meta" and field(self.payload, "history_base") is not None
        return text_in(self.payload, "timestamp") if has_base else None

    @property
    def kind(self) -> str | None:
        """The `type` of the record, such as "response_item"; None if it has none."""
        kind = self.value.get("type")
        return kind if isinstance(kind, str) else None

    @property
    def payload(self) -> dict[str, Any] | None:
        """The object in the envelope; None if there is none."""
        payload = self.value.get("payload")
        return payload if isinstance(payload, dict) else None

    @property
    def payload_kind(self) -> str | None:
        """The `type` of the payload, such as "token_count"."""
        return text_in(self.payload, "type")

    @property
    def replacement(self) -> list[dict[str, Any]]:
        """The items that a compaction put in place of all items before it."""
        history = field(self.payload, "replacement_history")
        return [item for item in history if isinstance(item, dict)] if isinstance(history, list) else []
