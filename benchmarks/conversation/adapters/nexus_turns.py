"""Nexus's `assemble`, with the time, event, git and memory of a turn."""

import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.conversation.fact_quality import MODELS, UNCUT, Body, Vendor
from benchmarks.conversation.facts import OpenAIMessage, calls_of
from benchmarks.conversation.turn_facts import START, TurnFacts

from nexus_context import ContextManager, LoadInputs, Message, Options, Request, assemble, detect, load
from nexus_context.conversation.bodies import formats
from nexus_context.conversation.message import ToolCall
from nexus_context.memory.item import MemoryItem
from nexus_context.tokens import TiktokenCounter
from nexus_context.turn.git import Changes, GitState
from nexus_context.turn.request import AssembledContext


def turn_messages(context: AssembledContext) -> list[Message]:
    """What a turn appends to the conversation before its answer: the message as it was sent."""
    return [context.turn_message]


class EveryStep:
    """Assembles before every request, also in the middle of a tool loop; calls and results are appended as
    they come. The budget is in tokens of the tokenizer that counts for all, so Nexus counts with it, too: its
    estimate of the model's tokens scales texts, but not what surrounds a message.
    """

    def __init__(self, budget: int, vendor: Vendor) -> None:
        self._format = vendor
        self._counter = TiktokenCounter("cl100k_base")
        limit = None if budget >= UNCUT else budget
        self._options = Options(model=MODELS[vendor], max_context_tokens=limit, reserve_tokens=0)
        self._conversation = ContextManager(started=START)
        self._system = ""
        self._snapshot: Any = None
        self._now: datetime = START
        self._message: Message | None = None  # of a turn that is not appended yet
        self._facts: TurnFacts | None = None
        self._context: AssembledContext | None = None

    def load(self, messages: Sequence[OpenAIMessage]) -> None:
        """Appends them."""
        for message in messages:
            if message["role"] == "system":
                self._snapshot = _snapshot(message["content"])
            else:
                self._conversation.add([_message(message)])

    def begin(self, message: OpenAIMessage, facts: TurnFacts) -> int:
        """Keeps the message for the next request; the system prompt becomes the folder's NEXUS.md."""
        if message["role"] == "system":
            self._snapshot = _snapshot(message["content"])
            return 0
        self._message, self._facts, self._now = Message("user", message["content"]), facts, facts.now
        return 0

    def build(self) -> tuple[Body, int]:
        """The body. What is timed is the assembly without a provider's form."""
        request, memory = self._request("neutral")
        start = time.perf_counter_ns()
        self._assemble(request, memory)
        taken = time.perf_counter_ns() - start
        request, memory = self._request(self._format)
        self._context = self._assemble(request, memory)
        body = self._context.request
        assert body is not None
        return body, taken

    def _assemble(self, request: Request, memory: list[MemoryItem]) -> AssembledContext:
        return assemble(
            self._snapshot,
            self._conversation,
            request,
            now=self._now,
            memory=memory,
            counter=self._counter,
        )

    def answer(self, message: OpenAIMessage, thinking: Sequence[Body]) -> int:
        """Appends the turn's message, if this is its first answer, and the answer."""
        assert self._context is not None
        before = [] if self._message is None else turn_messages(self._context)
        self._message = self._facts = None
        return self._append([*before, _assistant(message, thinking)])

    def result(self, message: OpenAIMessage) -> int:
        """Appends it."""
        return self._append([_result(message)])

    def _append(self, messages: list[Message]) -> int:
        start = time.perf_counter_ns()
        self._conversation.add(messages)
        return time.perf_counter_ns() - start

    def _request(self, form: str) -> tuple[Request, list[MemoryItem]]:
        facts = self._facts
        if facts is None:
            return Request(self._message, format=form, options=self._options), []
        files = tuple(f" M {file}" for file in facts.files)
        changes = Changes(len(files), unstaged=len(files), files=files)
        git = GitState(branch=facts.branch, upstream="origin/main", ahead=0, behind=0, changes=changes)
        event = {"activeFile": facts.file, "line": facts.line}
        memory = [MemoryItem("knowledge", "knowledge", passage) for passage in facts.passages]
        return Request(self._message, event=event, git=git, format=form, options=self._options), memory


class EveryTurn(EveryStep):
    """Assembles once a turn, as the chat of an editor does: calls and results of the turn are sent behind
    what was assembled, and the turn is appended when it has ended.
    """

    def __init__(self, budget: int, vendor: Vendor) -> None:
        super().__init__(budget, vendor)
        self._loop: list[Message] = []

    def begin(self, message: OpenAIMessage, facts: TurnFacts) -> int:
        taken = 0
        if self._message is not None:
            assert self._context is not None
            taken = self._append([*turn_messages(self._context), *self._loop])
            self._loop = []
        return taken + super().begin(message, facts)

    def build(self) -> tuple[Body, int]:
        if not self._loop:
            return super().build()
        context = self._context
        assert context is not None
        assert context.request is not None
        opening = Message("user", "-")  # a body begins with a user's message; this one is not sent
        render = formats.anthropic if self._format == "anthropic" else formats.openai
        rest, _ = render(context.model, "", [opening, *self._loop], (), {}, cache=None)
        body = dict(context.request)
        if self._format == "anthropic":
            body |= {"messages": _last_mark_only(body["messages"]), "cache_control": {"type": "ephemeral"}}
        body["messages"] = [*body["messages"], *rest["messages"][1:]]
        return body, 0

    def answer(self, message: OpenAIMessage, thinking: Sequence[Body]) -> int:
        self._loop.append(_assistant(message, thinking))
        return 0

    def result(self, message: OpenAIMessage) -> int:
        self._loop.append(_result(message))
        return 0


def _last_mark_only(messages: list[Body]) -> list[Body]:
    """The messages with the last of their breakpoints, so that an automatic one may follow."""
    marked = [
        at for at, message in enumerate(messages) if any("cache_control" in one for one in message["content"])
    ]
    changed = list(messages)
    for at in marked[:-1]:
        blocks = [
            {key: value for key, value in one.items() if key != "cache_control"}
            for one in messages[at]["content"]
        ]
        changed[at] = messages[at] | {"content": blocks}
    return changed


def _snapshot(system: str) -> Any:
    """The snapshot of a folder whose instructions are the system prompt."""
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root).resolve() / "folder"
        folder.mkdir()
        (folder / "NEXUS.md").write_text(system, encoding="utf-8")
        environment = detect("repl", environ={})
        inputs = LoadInputs(home=f"{root}/none", user_home=root, environ={}, environment=environment)
        return load(str(folder), inputs)


def _message(message: OpenAIMessage) -> Message:
    if message["role"] == "user":
        return Message("user", message["content"])
    return _result(message) if message["role"] == "tool" else _assistant(message, ())


def _assistant(message: OpenAIMessage, thinking: Sequence[Body]) -> Message:
    calls = tuple(ToolCall(call.id, call.name, call.arguments) for call in calls_of(message))
    text: Any = message.get("content")
    if thinking:
        text = [*thinking, *([{"type": "text", "text": text}] if text else [])]
    return Message("assistant", text, calls)


def _result(message: OpenAIMessage) -> Message:
    return Message("tool", message["content"], tool_call_id=message["tool_call_id"], name=message.get("name"))
