"""Names the parts of a record of Claude Code; the format is that of 2.1.330, and older ones as far as they
agree.

1. Records form a tree: `parentUuid` names the record before. A compaction (`compact_boundary`) has no parent;
   it names the record before it in `logicalParentUuid`.
2. An answer is written as one record for each block, all with the same message id.
3. Records with `isSidechain`, or with the id of the call that started them, belong to a sub-agent.
"""

from typing import Any, ClassVar

from nexus_context.assistants.reading.record_values import (
    LARGEST_COUNT,
    count,
    field,
    objects_in,
    text_in,
    unread_counts,
)
from nexus_context.assistants.sessions.record import SessionRecord
from nexus_context.tokens.models import MILLION

_WITH_STEPS = frozenset({"user", "assistant", "attachment", "system", "cost-state", "api-request-shape"})
_SILENT = frozenset(
    {
        *("queue-operation", "last-prompt", "atis-latch", "tools-used", "mode", "api-request", "summary"),
        *("api-request-blob", "file-history-snapshot", "progress", "permission-mode", "pr-link", "tag"),
        *(
            "custom-title",
            "ai-title",
            "relocated",
            "agent-name",
            "agent-color",
            "agent-setting",
            "worktree-state",
        ),
        *("file-history-delta", "content-replacement", "marble-origami-commit", "task-summary"),
    }
)
"""Records that add nothing to the window: 2.1.330 wrote most of them, the rest are of the public readers."""
_USAGE = frozenset(
    {
        *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens", "speed"),
        *("cache_creation", "server_tool_use", "iterations", "output_tokens_details", "service_tier"),
        *("inference_geo", "total_tokens", "fallback_credit"),  # the last two change no price
    }
)
_INNER = {
    "server_tool_use": frozenset({"web_search_requests", "web_fetch_requests"}),
    "cache_creation": frozenset({"ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"}),
    "iterations": _USAGE | {"type", "model"},
}
"""The known keys of objects in a usage."""
CONTINUES = (2, 1, 277)
"""The first version that goes on counting when a session is resumed."""
UNPRICED = "models whose price Claude Code does not know"


class ClaudeCodeRecord(SessionRecord):
    """A line of the file of a session or of a sub-agent."""

    __slots__ = ()

    COMPACTION_MARKS: ClassVar = (b'"compact_boundary"',)
    FIELDS: ClassVar = (
        *(
            "type",
            "subtype",
            "uuid",
            "parentUuid",
            "logicalParentUuid",
            "leafUuid",
            "sessionId",
            "session_id",
        ),
        *("agentId", "parent_tool_use_id", "isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage"),
        *("isVisibleInTranscriptOnly", "message", "content", "attachment", "rendered", "origin", "operation"),
        *("reason", "timestamp", "version", "requestId", "cwd", "compactMetadata", "totalCostUSD"),
        *(
            "modelUsage",
            "hasUnknownModelCost",
            "startTime",
            "totalDuration",
            "costUSD",
            "requestedModel",
            "promptCacheRequested",
        ),
        *("customTitle", "aiTitle", "relocatedCwd", "forkedFrom", "lastPrompt", "shapeHash", "shape", "role"),
    )
    # not `toolUseResult`, which repeats what `message` has, often at length

    @property
    def unknown(self) -> tuple[str, ...]:
        kind, usage = self.kind, self.usage
        if kind not in _WITH_STEPS and kind not in _SILENT:
            return (str(kind),)
        if usage is None:
            return ()
        unread = unread_counts(usage, _USAGE)
        for name, known in _INNER.items():
            inner = usage.get(name)
            for values in [inner] if isinstance(inner, dict) else objects_in(inner):
                unread += unread_counts(values, known)
        return tuple(f"usage/{key}" for key in dict.fromkeys(unread))

    @property
    def is_compaction(self) -> bool:
        return self.kind == "system" and self.value.get("subtype") == "compact_boundary"

    @property
    def folder(self) -> str | None:
        return text_in(self.value, "cwd")

    @property
    def fork_of(self) -> str | None:
        return text_in(self.value, "forkedFrom", "sessionId")

    @property
    def relocated(self) -> str | None:
        return text_in(self.value, "relocatedCwd")

    @property
    def kind(self) -> Any:
        """The `type` of the record, such as "assistant"; None if it has none."""
        kind = self.value.get("type")
        return kind if isinstance(kind, str) else None

    @property
    def uuid(self) -> str | None:
        return text_in(self.value, "uuid")

    @property
    def parent(self) -> str | None:
        """The uuid of the record before this one (rule 1); None if it names none."""
        return text_in(self.value, "logicalParentUuid" if self.is_root_compaction else "parentUuid")

    @property
    def is_root_compaction(self) -> bool:
        """Whether the record is a compaction without `parentUuid`."""
        return self.value.get("parentUuid") is None and self.value.get("subtype") == "compact_boundary"

    @property
    def queue_operation(self) -> str | None:
        """What the record does with the user's texts that wait for the model, such as "enqueue". None if it
        is not about them.
        """
        return text_in(self.value, "operation") if self.kind == "queue-operation" else None

    @property
    def session(self) -> str | None:
        return text_in(self.value, "sessionId")

    @property
    def agent(self) -> str | None:
        """The id of the sub-agent that wrote the record, or else of the call that started it. None if the
        record names neither.
        """
        return text_in(self.value, "agentId") or text_in(self.value, "parent_tool_use_id")

    @property
    def is_sidechain(self) -> bool:
        """Whether the record belongs to a sub-agent."""
        return self.value.get("isSidechain") is True or bool(self.value.get("parent_tool_use_id"))

    @property
    def is_summary(self) -> bool:
        """Whether the record is the summary that a compaction wrote."""
        return self.value.get("isCompactSummary") is True

    @property
    def is_hidden(self) -> bool:
        """Whether the record is shown to the user alone, and not sent to the model."""
        return self.value.get("isVisibleInTranscriptOnly") is True and not self.is_summary

    @property
    def is_error(self) -> bool:
        """Whether the record stands for an answer that the model did not give, such as an error."""
        return self.value.get("isApiErrorMessage") is True or self.message is None

    @property
    def message(self) -> dict[str, Any] | None:
        """The message that the record holds, of the user or the model."""
        message = self.value.get("message")
        return message if isinstance(message, dict) else None

    @property
    def usage(self) -> dict[str, Any] | None:
        """What the provider counted for an answer. None for errors that Claude Code wrote in the model's
        name.
        """
        usage = field(self.message, "usage")
        return usage if isinstance(usage, dict) and field(self.message, "model") != "<synthetic>" else None

    @property
    def model(self) -> str | None:
        """The model that gave the answer."""
        return text_in(self.message, "model")

    @property
    def compact_metadata(self) -> dict[str, Any]:
        """What the record says about a compaction, such as its trigger."""
        about = self.value.get("compactMetadata")
        return about if isinstance(about, dict) else {}

    @property
    def total_cost_usd(self) -> float | None:
        """What the session has cost so far, in US dollars."""
        cost = self.value.get("totalCostUSD")
        if not isinstance(cost, int | float) or isinstance(cost, bool):
            return None
        return float(cost) if 0 <= cost <= LARGEST_COUNT else None

    @property
    def counts_on(self) -> bool:
        """Whether this version of Claude Code goes on counting when a session is resumed."""
        parts = (text_in(self.value, "version") or "").split(".")
        numbers = (part for part in parts if part.isascii() and part.isdecimal() and len(part) < 10)
        return tuple(map(int, numbers)) >= CONTINUES

    @property
    def stated_at(self) -> float | None:
        """When a statement of costs was made, in seconds since 1970, or somewhat before: when the session
        began and how long its processes ran. None if it does not say.
        """
        started = count(self.value, "startTime")
        return (started + count(self.value, "totalDuration")) / 1_000 if started else None

    @property
    def has_unpriced_model(self) -> bool:
        """Whether Claude Code does not know what one of the session's models costs."""
        return self.value.get("hasUnknownModelCost") is True

    @property
    def model_usage(self) -> dict[str, dict[str, Any]]:
        """The usage of the session so far: each model → its counts."""
        models = self.value.get("modelUsage")
        items = models.items() if isinstance(models, dict) else ()
        return {name: usage for name, usage in items if isinstance(usage, dict)}

    @property
    def titles(self) -> dict[int, str]:
        """The titles that the record gives the session: each rank → title. The user's own title has a higher
        rank than the model's.
        """
        if self.kind not in ("ai-title", "custom-title"):
            return {}
        names = enumerate(("aiTitle", "customTitle"))
        return {rank: title for rank, name in names if (title := text_in(self.value, name)) is not None}

    @property
    def stated_window(self) -> int | None:
        """The size in tokens of the window that Claude Code asked for; None if the record does not say."""
        return MILLION if "[1m]" in (text_in(self.value, "requestedModel") or "").lower() else None

    @property
    def message_id(self) -> str | None:
        """The id that all records of one answer share: the id of the message, else the uuid of the record."""
        return text_in(self.message, "id") or self.uuid

    @property
    def content(self) -> Any:
        """The content of the record's message: a text, or a list of blocks."""
        return field(self.message, "content")

    @property
    def blocks(self) -> list[dict[str, Any]]:
        """The blocks of the record's message. A content that is a text counts as one block."""
        content = self.content
        return [{"type": "text", "text": content}] if isinstance(content, str) else objects_in(content)

    @property
    def calls(self) -> list[str]:
        """The ids of the tool calls in an answer. Empty for other records."""
        if self.kind != "assistant":
            return []
        return [str(block.get("id")) for block in self.blocks if block.get("type") == "tool_use"]

    @property
    def results(self) -> list[str]:
        """The ids of the calls whose results the record holds."""
        if self.kind != "user":
            return []
        blocks = objects_in(self.content)
        return [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]

    @property
    def queued_command(self) -> dict[str, Any] | None:
        """The attachment with what the user wrote while the model was busy; None if the record has none."""
        attachment = self.value.get("attachment")
        is_queued = self.kind == "attachment" and field(attachment, "type") == "queued_command"
        return attachment if is_queued else None

    @property
    def has_message(self) -> bool:
        """Whether the record holds a message of the user or the model."""
        if self.kind in ("user", "assistant"):
            return self.message is not None
        if self.kind == "system":
            return self.value.get("subtype") == "local_command"
        return field(self.queued_command, "prompt") is not None
