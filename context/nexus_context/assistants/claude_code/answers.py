"""Groups the records of Claude Code by the answer they belong to, and reads what its provider counted for it.

1. Records belong to one answer if they have the same message id, no two different request ids, and in the
   chain of parents, as far as it is known, nothing but results of tools between them. If there is no request
   id, nothing at all may be between them: some gateways give all answers one id.
2. A record that is written again with the same uuid belongs to the same answer as before.
3. `iterations` are all that was billed, each for its own model, and the last one of the kinds in _WINDOWS is
   the window. The other figures of the usage may leave some of them out. Iterations count only if there are
   several and their sum is not below these figures.
4. Every value of `speed`, `service_tier` and `inference_geo` except those in PLAIN multiplies the prices.
"""

from typing import Any

from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.reading.record_values import (
    LARGEST_COUNT,
    count,
    field,
    objects_in,
    seconds,
    text,
)
from nexus_context.assistants.sessions.session_types import Usage, sum_usages
from nexus_context.assistants.sessions.steps import AssistantRequest, BilledUsage

PLAIN = frozenset({"standard", "default", "auto", "global", "not_available", ""})
_MODES = ("speed", "service_tier", "inference_geo")
_WINDOWS = ("message", "fallback_message")


class AnswerKeys:
    """Tells which answer each record of a conversation belongs to. It must be given the records in their
    order.
    """

    def __init__(self) -> None:
        self._answers: dict[str, tuple[str, bool]] = {}  # key and whether it is an answer itself, by uuid
        self._requests: dict[str, str] = {}  # request id, by key
        self._latest: dict[str, str] = {}  # key of the latest answer, by message id
        self._last = ""  # uuid of the last record

    def key_of(self, record: ClaudeCodeRecord) -> str:
        """Return the key of the answer that a record belongs to or follows. Return an empty string if there
        is none.
        """
        uuid, parent = record.uuid or "", self._last
        if "parentUuid" in record.value:
            parent = record.parent or ""
        self._last = uuid or self._last
        if uuid in self._answers:
            return self._answers[uuid][0]
        parent_key, is_answer = self._answers.get(parent, ("", False))
        key, is_linked = parent_key, parent in self._answers
        if record.kind == "assistant":
            key, is_answer = self._key(record, parent_key if is_linked else None, is_next=is_answer), True
        elif record.results or record.kind in ("attachment", "system", "progress"):
            is_answer = False
        else:
            key, is_answer = "", False
        if uuid:
            self._answers[uuid] = key, is_answer
        return key

    def _key(self, record: ClaudeCodeRecord, parent_key: str | None, *, is_next: bool) -> str:
        message, request = record.message_id or "", text(record.value.get("requestId")) or ""
        latest = self._latest.get(message, "")
        if latest and parent_key in (latest, None):
            known_request = self._requests.get(latest, "")
            if request == known_request and (request or is_next):
                return latest
            if not (request and known_request) and is_next:
                self._requests[latest] = request or known_request
                return latest
        key = f"{message}:{request}"
        if key in self._requests:
            key = f"{key}:{record.uuid}"
        self._latest[message], self._requests[key] = key, request
        return key


def usage_of_models(models: dict[str, dict[str, Any]]) -> Usage:
    """Add up the token counts of all models in a `cost-state`."""

    def total(name: str) -> int:
        return sum(count(values, name) for values in models.values())

    return Usage(
        fresh=total("inputTokens"),
        cache_read=total("cacheReadInputTokens"),
        cache_write=total("cacheCreationInputTokens"),
        output=total("outputTokens"),
    )


def request_of(record: ClaudeCodeRecord, usage: dict[str, Any], key: str) -> AssistantRequest:
    """Make the request of an answer from one of its records and the `usage` in it. `key` identifies the
    answer.
    """
    modes = tuple(mode for name in _MODES if (mode := text(usage.get(name))) and mode not in PLAIN)
    searches = count(usage.get("server_tool_use"), "web_search_requests")
    total = BilledUsage(record.model, usage_of(usage), _written_1h(usage), modes, searches=searches)
    parts = [
        (
            iteration.get("type"),
            BilledUsage(
                text(iteration.get("model")) or record.model,
                usage_of(iteration),
                _written_1h(iteration),
                modes,
            ),
        )
        for iteration in objects_in(usage.get("iterations"))
    ]
    window = next((usage_part for kind, usage_part in reversed(parts) if kind in _WINDOWS), total)
    billed = [usage_part for _, usage_part in parts]
    if len(billed) < 2 or not _covers(sum_usages(usage_part.usage for usage_part in billed), total.usage):
        window, billed = total, []
    elif searches:
        billed.append(BilledUsage(record.model, Usage(), modes=modes, searches=searches))
    return AssistantRequest(
        key=key,
        at=seconds(record.value.get("timestamp")),
        model=record.model,
        usage=window.usage,
        written_1h=window.written_1h,
        version=text(record.value.get("version")),
        cost_usd=_cost(record.value.get("costUSD")),
        modes=modes,
        searches=searches,
        iterations=tuple(billed),
        is_inherited=record.fork_of is not None,
        lifetime=text(record.value.get("promptCacheRequested")),
        miss=_miss(field(record.message, "diagnostics", "cache_miss_reason")),
        is_unended=field(record.message, "stop_reason") is None and "stop_reason" in (record.message or {}),
    )


def usage_of(values: dict[str, Any]) -> Usage:
    """Read the token counts of an answer, or of one of its `iterations`."""
    return Usage(
        fresh=count(values, "input_tokens"),
        cache_read=count(values, "cache_read_input_tokens"),
        cache_write=max(count(values, "cache_creation_input_tokens"), _written(values)),
        output=count(values, "output_tokens"),
    )


def _written(usage: dict[str, Any]) -> int:
    """The tokens written to the cache, by their lifetimes; some gateways state no sum of them."""
    by_lifetime = usage.get("cache_creation")
    return sum(count(by_lifetime, name) for name in by_lifetime) if isinstance(by_lifetime, dict) else 0


def _written_1h(usage: dict[str, Any]) -> int:
    return count(usage.get("cache_creation"), "ephemeral_1h_input_tokens")


def _covers(sum_: Usage, total_usage: Usage) -> bool:
    return (
        sum_.fresh >= total_usage.fresh
        and sum_.cache_read >= total_usage.cache_read
        and sum_.cache_write >= total_usage.cache_write
        and sum_.output >= total_usage.output
    )


def _miss(reason: Any) -> str | None:
    return text(reason) or text(field(reason, "type"))


def _cost(value: Any) -> float | None:
    """What an early version says that a request cost."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value <= LARGEST_COUNT else None
