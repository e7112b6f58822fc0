"""Answer `nexus/session/transcript`: a page of a conversation for people, with what each message costs.

1. The counter of the folder's model counts each message, unless the ledger has that counter's figure or an
   earlier page counted it. A message longer than MOST_COUNTED keeps the ledger's count, as an estimate.
2. Texts are for people: control characters are visible, secrets are covered, and the middle of a long text is
   omitted. Everything but the omitted middle keeps its length.
3. "Sent" means what a request made now would send.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

import msgspec

from nexus_context.conversation import parts
from nexus_context.conversation.message import Message, ToolCall, content_of, text_of
from nexus_context.conversation.summary import readable
from nexus_context.ledger.records import Excerpt, ExcerptTurn, StoredMessage
from nexus_context.ledger.rows import json_text
from nexus_context.text.decoding import convert_to
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible, visible_line
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.tokens.estimates import is_estimated
from nexus_context.turn.assembly import view_of
from nexus_context.turn.context_json import message_contexts
from nexus_context.turn.models import model_of
from nexus_context.turn.request import Options
from nexus_daemon import protocol
from nexus_daemon.sessions import next_request, sync
from nexus_daemon.sessions.scope import SessionScope

MOST_MESSAGES = 1_000
"""The most messages of one page."""
MOST_TEXT = 60_000
"""The most characters of a message's text in a page: two thirds from its start, one third from its end."""
MOST_ARGUMENTS = 10_000
"""The most characters of a call's arguments in a page."""
MOST_CALLS = 100
MOST_LABELS = 100
MOST_COUNTED = 2_000_000
"""A message with more characters is not counted for a page."""
MOST_COUNTS = 20_000
"""The most counts that are cached for a conversation."""
LEAST_MILLISECONDS = 1e11
"""Timestamps from here on are milliseconds, smaller ones seconds."""
Counts = dict[tuple[str, str, int], int]
"""Tokens of messages, by counter, turn and position."""


def page(scope: SessionScope, params: protocol.TranscriptParams) -> protocol.TranscriptResult:
    """Read the page that `params` select. Call it in a worker thread."""
    scope.follow()
    conversation, snapshot = scope.conversation, scope.snapshot
    options = next_request.options_beside(snapshot, conversation, scope.ledger)
    _, counter = model_of(snapshot, None)
    excerpt = scope.ledger.store.pages.excerpt(
        scope.ledger.workspace,
        params.session,
        thread=params.thread,
        first=params.first,
        before=params.before,
        limit=params.limit,
    )
    if excerpt is None:
        counter_info = protocol.Counter(counter.name, counter.exact)
        return protocol.TranscriptResult(
            params.session, thread="", messages=0, first=0, end=0, turns=[], counter=counter_info
        )
    sent_positions, shortened = _sent_positions(scope, options) if excerpt.current else ([], [])
    in_force = conversation.state.compaction is not None and excerpt.current
    summary, *later_positions = conversation.positions if in_force else (None,)
    return msgspec.structs.replace(
        page_of(excerpt, params.session, counter, conversation.counted),
        sent=list(sync.ranges(sent_positions)),
        shortened=shortened,
        summary=summary,
        kept=[]
        if summary is None
        else list(sync.ranges(position for position in later_positions if position < summary)),
    )


def page_of(
    excerpt: Excerpt, session: str, counter: TokenCounter, counts: Counts
) -> protocol.TranscriptResult:
    """Build the page without the parts that say what the next request sends.

    `counts` holds the counts of earlier pages; the new ones are added to it.
    """
    covered: dict[str, str] = {}
    return protocol.TranscriptResult(
        session=session,
        thread=excerpt.thread,
        messages=excerpt.messages,
        first=excerpt.first,
        end=excerpt.end,
        turns=[_turn(turn, counts, counter, covered) for turn in excerpt.page],
        counter=protocol.Counter(counter.name, counter.exact),
        cleared=not excerpt.current,
        forked_from=None if excerpt.forked_from is None else visible_line(excerpt.forked_from),
    )


def _sent_positions(scope: SessionScope, options: Options) -> tuple[list[int], list[int]]:
    """The ascending positions of the messages that the next request sends, and of the shortened ones."""
    conversation = scope.conversation
    positions = conversation.positions
    if not positions:
        return [], []
    view = view_of(scope.snapshot, conversation.manager, options, now=scope.client.now())
    sent = sorted(positions[index] for index in view.sent_indexes())
    return sent, sorted(positions[index] for index in view.shortened)


def _turn(
    turn: ExcerptTurn, counts: Counts, counter: TokenCounter, covered: dict[str, str]
) -> protocol.TranscriptTurn:
    record = turn.context if isinstance(turn.context, dict) else {}
    memory = record.get("memory")
    is_whole = bool(turn.stored) and turn.stored[0].position == turn.first
    contexts = message_contexts(
        [stored_message.message for stored_message in turn.stored] if is_whole else [], record
    )
    return protocol.TranscriptTurn(
        turn=turn.id,
        seq=turn.seq,
        type=turn.type,
        created=turn.created,
        first=turn.first,
        count=turn.messages,
        messages=[
            _message(stored_message, turn.id, counts, counter, context=_for_people(context, covered))
            for stored_message, context in zip_longest(turn.stored, contexts)
        ],
        model=None if turn.model is None else visible_line(turn.model),
        compaction=turn.compaction,
        receipt=_receipt(turn.receipt),
        kept=list(turn.kept[:MOST_LABELS]),
        folded=list(turn.folded),
        beside=_labels(memory, "included"),
        left_out=_labels(memory, "dropped"),
        context=_for_people(record.get("system"), covered),
    )


def _message(
    stored_message: StoredMessage,
    turn: str,
    counts: Counts,
    counter: TokenCounter,
    *,
    context: Any,
) -> protocol.TranscriptMessage:
    message = stored_message.message
    tokens, is_counted = _tokens(stored_message, turn, counts, counter)
    text, omitted = _clipped(text_of(readable(message)), MOST_TEXT)
    calls = [_call(call) for call in message.tool_calls[:MOST_CALLS]]
    content = content_of(message)
    is_exact = counter.exact and is_counted
    other_parts = [part for part in content if not _is_text(part)] if isinstance(content, list) else []
    return protocol.TranscriptMessage(
        position=stored_message.position,
        role=message.role,
        text=text,
        tokens=tokens,
        exact=is_exact and not any(isinstance(part, dict) and is_estimated(part) for part in other_parts),
        name=None if message.name is None else visible_line(message.name),
        tool_call_id=None if message.tool_call_id is None else visible_line(message.tool_call_id),
        calls=[call for call, _ in calls],
        attachments=[_label(part) for part in other_parts[:MOST_LABELS]],
        time=_time(message),
        omitted=omitted + sum(left_out for _, left_out in calls),
        context=context,
    )


# ---------------------------------------------------------------- counts


def _tokens(
    stored_message: StoredMessage, turn: str, counts: Counts, counter: TokenCounter
) -> tuple[int, bool]:
    """A message's tokens, and whether this counter counted them."""
    if stored_message.counter == counter.name:
        return stored_message.tokens, True
    message = stored_message.message
    if len(text_of(message)) > MOST_COUNTED:
        return stored_message.tokens, False
    key = counter.name, turn, stored_message.position
    tokens = counts.get(key)
    if tokens is None:
        tokens = count_message(counter, content_of(message), message.tool_calls, message.role)
        if len(counts) >= MOST_COUNTS:
            del counts[next(iter(counts))]
        counts[key] = tokens
    return tokens, True


# ---------------------------------------------------------------- texts for people


def _clipped(text: str, max_characters: int) -> tuple[str, int]:
    """Return the text for people and the number of characters omitted from its middle."""
    omitted = len(text) - max_characters
    if omitted <= 0:
        return redact(visible(text)), 0
    head, tail = text[: 2 * max_characters // 3], text[len(text) - max_characters // 3 :]
    omitted = len(text) - len(head) - len(tail)
    mark = f"\n[… {omitted:,} characters are not shown …]\n"
    return redact(visible(head)) + mark + redact(visible(tail)), omitted


def _call(call: ToolCall) -> tuple[protocol.TranscriptCall, int]:
    arguments, omitted = _clipped(_arguments(call.arguments), MOST_ARGUMENTS)
    identifier = visible_line(call.id) if call.id else None
    return protocol.TranscriptCall(visible_line(call.name), arguments, identifier), omitted


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.format(msgspec.json.encode(arguments), indent=2).decode()
    except (UnicodeError, msgspec.MsgspecError):
        return json_text(arguments)


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and isinstance(part.get("text"), str))


def _label(part: Any) -> str:
    """Describe a content part in a few words."""
    kind = parts.read_part(part)
    source = ""
    if isinstance(kind, parts.ImagePart):
        source = kind.media_type or kind.url
    elif isinstance(kind, parts.DocumentPart):
        source = kind.title or kind.url
    name = parts.part_name(kind)
    return redact(visible_line(f"{name} {source}".strip()[:200]))


def _for_people(value: Any, covered: dict[str, str]) -> Any:
    """A JSON value with visible control characters and covered secrets. `covered` has the texts so far:
    the turns of a page repeat them.
    """
    if isinstance(value, str):
        if value not in covered:
            covered[value] = redact(visible_line(value))
        return covered[value]
    if isinstance(value, list):
        return [_for_people(item, covered) for item in value[:MOST_LABELS]]
    if isinstance(value, dict):
        return {visible_line(name): _for_people(item, covered) for name, item in value.items()}
    return value


def _labels(memory: Any, name: str) -> list[str]:
    """The labels of what a turn was sent besides its messages, as far as its record has them."""
    labels: Iterable[Any] = memory.get(name) or () if isinstance(memory, dict) else ()
    if not isinstance(labels, Sequence) or isinstance(labels, str):
        return []
    return [redact(visible_line(label)) for label in labels[:MOST_LABELS] if isinstance(label, str)]


def _receipt(receipt: Any) -> protocol.Receipt | None:
    """The receipt of a compaction; None if an import stored something else."""
    try:
        return convert_to(receipt, protocol.Receipt)
    except msgspec.ValidationError:
        return None


def _time(message: Message) -> str | None:
    """Convert the client's timestamp to ISO 8601. None if it is missing or of an unknown form."""
    stamp = message.timestamp
    if isinstance(stamp, str):
        try:
            datetime.fromisoformat(stamp)
        except ValueError:
            return None
        return stamp
    if stamp is None or isinstance(stamp, bool):
        return None
    try:
        seconds = stamp / 1000 if stamp >= LEAST_MILLISECONDS else stamp
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None
