"""Random histories for property tests: sound ones, and all that can be wrong with one.

A history is made of whole numbers, one a step, so that hypothesis shrinks it fast. Ids of calls are fresh
except where a step uses one again on purpose.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from hypothesis import strategies as st

from nexus_context.conversation.message import Message, ToolCall, content_of, text_of
from nexus_context.tokens.counter import AdditiveCounter

SIZES = (8, 30, 90, 200, 30, 90, 700, 6_000)
"""Characters of a text: the last is larger than most budgets of the tests."""

SOUND = ("user", "user", "user", "assistant", "call", "call", "calls", "reversed", "parts", "image")
BROKEN = (
    *SOUND,
    "empty",
    "blank",
    "none",
    "missing",
    "open",
    "late",
    "orphan",
    "repeated",
    "again",
    "twice",
    "nameless",
    "system",
)
IMAGE = {"type": "image", "url": "https://x.example/a.png", "width": 64, "height": 64}


class Letters(AdditiveCounter):
    """A token for each four characters; `counted` are the texts that it was asked about."""

    exact = True

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.counted: list[str] = []

    def count(self, text: str) -> int:
        self.counted.append(text)
        return super().count(text)

    def units(self, text: str) -> int:
        return len(text)

    def tokens(self, units: int) -> int:
        return -(-units // 4)

    def part_tokens(self, units: int) -> int:
        return units // 4


def histories(kinds: Sequence[str] = BROKEN, *, most: int = 24) -> st.SearchStrategy[list[Message]]:
    """Histories of up to `most` steps, of which each is one to nine messages."""
    numbers = st.integers(0, len(kinds) * len(SIZES) * 4 - 1)
    steps = st.lists(numbers, max_size=most) | st.lists(numbers, min_size=most // 2, max_size=most)
    return steps.map(lambda chosen: made(chosen, kinds))


def made(steps: Iterable[int], kinds: Sequence[str] = BROKEN) -> list[Message]:
    """The history of these steps."""
    maker = _Maker()
    for number in steps:
        rest, kind = divmod(number, len(kinds))
        many, size = divmod(rest, len(SIZES))
        maker.add(kinds[kind], many + 1, SIZES[size])
    return maker.messages


def pairing_errors(messages: Sequence[Message]) -> list[str]:
    """What providers refuse: results away from their calls, calls without one, an id twice, nothing said."""
    errors: list[str] = []
    waiting: set[str | None] = set()
    used: set[str] = set()
    for index, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                errors.append(f"{index}: a result without a call")
            waiting.discard(message.tool_call_id)
            continue
        if waiting:
            errors.append(f"{index}: calls {sorted(map(str, waiting))} have no result")
        waiting = {call.id for call in message.tool_calls}
        if len(waiting) < len(message.tool_calls) or waiting & used or "" in waiting:
            errors.append(f"{index}: ids used twice, or empty")
        used |= {call.id for call in message.tool_calls}
        if not message.tool_calls and not _says(content_of(message)):
            errors.append(f"{index}: says nothing")
    return errors + [f"end: calls {sorted(map(str, waiting))} have no result"] * bool(waiting)


def _says(content: str | list[Any]) -> bool:
    if isinstance(content, str):
        return bool(content.strip())
    return any(part.get("text", "x").strip() for part in content)


# ---------------------------------------------------------------- histories as text


def conversation(text: str) -> list[Message]:
    """The messages of words such as `u1 a1 c2 r2:90`: user, assistant, call and result, `:90` their tokens.

    A word is 10 tokens, a call more. `c2+3` calls 2 and 3 at once. Counted by `Letters`.
    """
    return [_message(word) for word in text.split()]


def shown(messages: Iterable[Message]) -> str:
    """The words of messages; `~` a result that was shortened, `…` what stands for the part that is cut."""
    return " ".join(_word(message) for message in messages)


def _message(word: str) -> Message:
    name, _, tokens = word.partition(":")
    text = f"{name} ".ljust(4 * (int(tokens or 10) - 4), "x")
    if name[0] == "c":
        return Message("assistant", text, tuple(ToolCall(call, "run") for call in name[1:].split("+")))
    if name[0] == "r":
        return Message("tool", text, tool_call_id=name[1:], name="run")
    return Message({"u": "user", "a": "assistant", "s": "system"}[name[0]], text)  # type: ignore[arg-type]


def _word(message: Message) -> str:
    text = text_of(message)
    if text.startswith("[EARLIER CONTEXT]"):
        return "…"
    return text.partition(" ")[0].strip() + "~" * ("left out here" in text)


class _Maker:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._open: list[str] = []
        self._ids = 0

    def add(self, kind: str, many: int, size: int) -> None:
        text = f"{len(self.messages)} {kind} ".ljust(size, "x")
        messages = self.messages
        if kind in ("user", "assistant", "system"):
            messages.append(Message(kind, text))  # type: ignore[arg-type]
        elif kind == "parts":
            messages.append(
                Message("user", [{"type": "text", "text": text}, {"type": "text", "text": "and"}])
            )
        elif kind == "image":
            messages.append(Message("user", [IMAGE, {"type": "text", "text": text}]))
        elif kind in ("empty", "blank", "none"):
            content: Any = {"empty": "", "blank": [{"type": "text", "text": " "}], "none": None}[kind]
            messages.append(Message("user" if many % 2 else "assistant", content))
        elif kind == "late":
            if self._open:
                self._result(self._open.pop(0), text)
        elif kind == "orphan":
            self._result("nobody", text)
        elif kind == "repeated":
            if messages and messages[-1].role == "tool":
                self._result(messages[-1].tool_call_id or "", text)
        else:
            self._calls(kind, many, text)

    def _calls(self, kind: str, many: int, text: str) -> None:
        ids = [self._fresh() for _ in range(1 if kind == "call" else many)]
        if kind == "again":
            ids[0] = "c1"
        elif kind == "twice":
            ids = [ids[0], ids[0]]
        elif kind == "nameless":
            ids = [""] * len(ids)
        calls = tuple(ToolCall(name, "run", {"of": name}) for name in ids)
        self.messages.append(Message("assistant", None if many % 2 else f"I run {len(ids)}", calls))
        if kind == "open":
            self._open += ids
            return
        answered = ids[1:] if kind == "missing" else ids
        for name in reversed(answered) if kind == "reversed" else answered:
            self._result(name, text)

    def _result(self, call: str, text: str) -> None:
        self.messages.append(
            Message("tool", f"{len(self.messages)} {text}", tool_call_id=call or None, name="run")
        )

    def _fresh(self) -> str:
        self._ids += 1
        return f"c{self._ids}"
