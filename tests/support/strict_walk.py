"""Random conversations by way of Nexus with strict providers, and what must hold of each of their requests.

1. No request is refused.
2. The tokens that the usage predicts are the tokens that the provider counts.
3. The provider reads from its cache exactly the longest prefix that it still holds and that Nexus says is
   shared with an earlier request. Where nothing was changed, that is all of the earlier request.

So that these can be equal, both count alike (`Sizes.by_message`), and the caches have no limits but their
lifetimes: no least length, no look-back, no rounding, whole blocks only. Neighbours of one role that chat
completions join are one block.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.tools import Tool, name_of, tool_rows
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.store import Ledger
from nexus_context.memory.item import MemoryItem
from nexus_context.tokens.counter import AdditiveCounter
from nexus_context.turn.assembly import assemble
from nexus_context.turn.git import GitState
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.prefix import compare
from nexus_context.turn.request import AssembledContext, Format, Options, Request
from support.fixture import write_fixture
from support.folders import load_folder
from support.strict_cache import UNLIMITED
from support.strict_provider import Answer, Pricing, Reply, StrictProvider, Vendor
from support.strict_request import Body, Sizes

FOLDER = "/home/a"
NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PRICES = Pricing(5, 25, 0.5, 6.25, 10)
DATA = "encrypted_content"


class Letters(AdditiveCounter):
    """As many tokens as a text has characters, or a multiple of that."""

    exact = True

    def __init__(self, factor: int) -> None:
        self.name = f"letters × {factor}"
        self._factor = factor

    def units(self, text: str) -> int:
        return len(text) * self._factor

    def tokens(self, units: int) -> int:
        return units

    part_tokens = tokens


class Model(NamedTuple):
    """A model, the format of its requests, and how long its provider keeps what it caches, in seconds.

    `factor`: tokens of a character. Chat completions join neighbours of one role by a blank line: at two
    tokens a character it costs what Nexus counts for the second message.
    """

    vendor: Vendor
    name: str
    format: Format
    lifetime: float
    factor: int = 1


MODELS = (
    Model("anthropic", "claude-opus-5-5", "anthropic", 300),
    Model("anthropic", "claude-fable-5-1", "anthropic", 300),
    Model("anthropic", "claude-sonnet-4-5", "anthropic", 300),
    Model("openai", "gpt-5.6", "openai", 1_800, factor=2),
    Model("openai", "gpt-5.6", "openai-responses", 1_800),
    Model("openai", "gpt-5.1", "openai", 300, factor=2),
    Model("openai", "gpt-5.1", "openai-responses", 300),
)
TOOLS: tuple[Tool, ...] = (
    {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}},
    {"name": "open", "description": "Opens.", "parameters": {"type": "object", "properties": {}}},
    {"name": "ring", "description": "Rings a bell.", "parameters": {"type": "object", "properties": {}}},
)


class Sent(NamedTuple):
    """A request as it was sent."""

    model: Model
    session: str
    second: float
    context: AssembledContext
    reply: Reply


class Walk:
    """Sessions of one folder, in several windows, with their providers."""

    def __init__(self, root: Path, ledger: Ledger, model: Model, *, window: int) -> None:
        self._root = root
        self._ledger = ledger
        self._config = f'{{"context": {{"max_tokens": {window}, "reserve_tokens": 0}}}}'
        self.model = model
        self.tools = TOOLS[:2]
        self.seconds = 0.0
        self.snapshot = self.with_rules("Be brief.")
        self.sessions = ["main", "main"]  # of each window
        self.windows = [self.opened("main"), self.opened("main")]
        self.sent: list[Sent] = []
        self._calls = 0
        self._providers: dict[tuple[Vendor, int], StrictProvider] = {}

    @property
    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.seconds)

    def with_rules(self, text: str) -> Snapshot:
        """The folder with these rules."""
        files = f"//- {FOLDER}/.nexus3/config.json\n{self._config}\n//- {FOLDER}/.nexus3/NEXUS.md\n{text}\n"
        return load_folder(write_fixture(files, self._root), FOLDER)

    def opened(self, session: str) -> ContextManager:
        """The conversation of a session, as a window reads it from the ledger."""
        return ContextManager(ledger=self._ledger, folder=FOLDER, session=session, clock=lambda: self.now)

    def reopen(self, window: int, session: str | None = None) -> None:
        """Read the session of a window again, or another one."""
        self.sessions[window] = session or self.sessions[window]
        self.windows[window] = self.opened(self.sessions[window])

    def fork(self, window: int, name: str) -> None:
        """Go on in a fork of the session."""
        self._ledger.fork(FOLDER, self.sessions[window], to=name)
        self.reopen(window, name)

    def ask(self, window: int, text: str | None, **request: Any) -> None:
        """One turn without calls; without a text, that of an event."""
        self.answer(window, self._request(window, text, **request), [])

    def loop(self, window: int, text: str, results: list[str], *, other: bool = False) -> None:
        """One turn with calls. `other`: another window has a turn meanwhile."""
        message: str | None = text
        for at, result in enumerate([*results, None]):
            sent = self._request(window, message, calls=0 if result is None else 1 + at % 2)
            calls = self.answer(window, sent, [] if result is None else [result])
            message = None
            if other and calls and not at:
                self.ask(1 - window, "And meanwhile?")

    def answer(self, window: int, sent: Sent, results: list[str]) -> int:
        """Append the turn's message, the answer, and the results of its calls; the number of these."""
        message = message_of(sent.reply.message)
        turn_message = sent.context.turn_message
        conversation = self.windows[window]
        conversation.add([turn_message, message])
        for call in message.tool_calls if results else ():
            conversation.add([Message("tool", results[0], tool_call_id=call.id, name=call.name)])
        return len(message.tool_calls)

    def _request(self, window: int, text: str | None, *, calls: int = 0, **request: Any) -> Sent:
        """Send a request, and check it."""
        number, model = len(self.sent), self.model
        self.seconds += 20
        is_new = text is not None or "event" in request
        context = assemble(
            self.snapshot,
            self.windows[window],
            Request(
                message=None if text is None else Message("user", text),
                format=model.format,
                session=self.sessions[window],
                options=Options(model=model.name, additional_tools=self.tools, parameters=self._thinking),
                git=GitState(branch=f"branch-{number}"),
                **request,
            ),
            now=self.now,
            memory=[MemoryItem("knowledge", "notes", f"Passage {number % 3}.", 1.5)] if is_new else [],
            counter=Letters(model.factor),
        )
        body = context.request
        assert body is not None
        tool_calls = [(name, {"number": number}) for name in _offered(context)[:calls]]
        thinking = (f"Let me look around, number {number}.",) * (1 + number % 2)
        reply = self._provider(model).send(body, Answer(f"Behind wall {number}.", thinking, tool_calls))
        sent = Sent(model, self.sessions[window], self.seconds, context, reply)
        self._check(sent)
        self.sent.append(sent)
        return sent

    @property
    def _thinking(self) -> dict[str, Any]:
        return {"thinking": {"level": "high"}, "max_tokens": 40_000}

    def _provider(self, model: Model) -> StrictProvider:
        key = model.vendor, model.factor
        if key not in self._providers:
            counter = Letters(model.factor)
            definitions = {
                name_of(tool): row.tokens for tool, row in zip(TOOLS, tool_rows(TOOLS, counter), strict=True)
            }
            self._providers[key] = StrictProvider(
                model.vendor,
                clock=lambda: self.seconds,
                count=counter.count,
                pricing=PRICES,
                minimum=0,
                limits=UNLIMITED,
                sizes=Sizes(
                    counter.count,
                    tool=lambda tool: definitions[tool.get("name") or tool["function"]["name"]],
                    data=lambda data: -(-len(data) * 3 // 16),  # as `tokens.estimates` has it
                    by_message=True,
                ),
            )
        return self._providers[key]

    def _check(self, now: Sent) -> None:
        usage = now.reply.usage
        assert now.context.usage.total == usage.sent
        assert now.reply.dropped == () or now.model.vendor == "anthropic"
        shared = 0
        for before in self.sent:
            if not _share_a_cache(before, now) or now.second >= before.second + now.model.lifetime:
                continue
            report = compare(before.context.prefix, now.context.prefix, Letters(now.model.factor))
            most = report.reused - _continues_the_last(before, now)
            most += _shared_note(before, now)
            shared = max(shared, *(length for length in (0, *before.reply.held) if length <= most))
            if report.broke is None:
                assert report.reused == before.reply.usage.sent
        assert usage.cache_read == shared


def _share_a_cache(before: Sent, now: Sent) -> bool:
    """Caches belong to a model and a form; OpenAI's to a session, too (`prompt_cache_key`)."""
    same_session = now.model.vendor == "anthropic" or before.session == now.session
    return before.model == now.model and same_session


def _continues_the_last(before: Sent, now: Sent) -> bool:
    """Whether the last message that both requests share goes on in the newer one, as another block then.

    Chat completions join the texts of neighbours of one role.
    """
    if now.model.format != "openai":
        return False
    old, new = before.context.request, now.context.request
    assert old is not None
    assert new is not None
    pairs = zip(old["messages"], new["messages"], strict=False)
    for one, other in pairs:
        if one != other:
            return one["role"] == other["role"] and _text(other).startswith(f"{_text(one)}\n\n")
    return False


def _shared_note(before: Sent, now: Sent) -> int:
    """Tokens of what both have of a message with a note on changes that differ.

    A report counts note and message as one. For OpenAI the note comes first: two windows may have told the
    same change with another message each. For Anthropic the message comes first, perhaps with a breakpoint:
    later requests may do without the note.
    """
    old, new = before.context.request, now.context.request
    assert old is not None
    assert new is not None
    key = "input" if "input" in new else "messages"
    for last, one, other in zip(old[key], old[key][1:], new[key][1:], strict=False):
        if _without_breakpoints(one) != _without_breakpoints(other):
            if not _is_note(last if now.model.vendor == "openai" else one):
                return 0
            return Letters(now.model.factor).count_messages([Message("user", _first_text(last))])
    return 0


def _without_breakpoints(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_without_breakpoints, value)]
    if not isinstance(value, dict):
        return value
    return {key: _without_breakpoints(each) for key, each in value.items() if key != "cache_control"}


def _is_note(message: Mapping[str, Any]) -> bool:
    return message.get("role") in ("developer", "system") and _first_text(message).startswith("<changes>")


def _first_text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content[0].get("text", "") if isinstance(content, list) else content or ""


def _text(message: Body) -> str:
    content = message["content"]
    return content if isinstance(content, str) else ""


def _offered(context: AssembledContext) -> list[str]:
    return list(map(name_of, context.tools))


def message_of(message: Body) -> Message:
    """An answer in the form of a provider, as a program appends it."""
    if "output" in message:
        return _message_of_items(message["output"])
    content = message["content"]
    if isinstance(content, list):
        calls = [
            ToolCall(one["id"], one["name"], one["input"]) for one in content if one["type"] == "tool_use"
        ]
        parts = [one for one in content if one["type"] != "tool_use"]
        return Message("assistant", parts, tuple(calls))
    calls = [
        ToolCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return Message("assistant", content, tuple(calls))


def _message_of_items(items: list[Body]) -> Message:
    parts: list[Any] = []
    calls = []
    for item in items:
        if item["type"] == "message":
            parts += ({"type": "text", "text": part["text"]} for part in item["content"])
        elif item["type"] == "function_call":
            calls.append(ToolCall(item["call_id"], item["name"], json.loads(item["arguments"])))
        else:
            parts.append(item)
    return Message("assistant", parts, tuple(calls))
