"""A request as a strict provider reads it: its blocks in order, and the error that refuses it."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, NoReturn

import msgspec

Body = dict[str, Any]
Count = Callable[[str], int]
Section = Literal["tools", "system", "messages"]

MESSAGE_TOKENS = 4
CALL_TOKENS = 5
_TEXTS = ("text", "input_text", "output_text", "refusal")
CACHE_CONTROLS = ("cache_control", "prompt_cache_breakpoint")


class Refused(Exception):  # noqa: N818  # what the provider does, not what went wrong
    """A provider's error 400; `message` is its text."""

    def __init__(self, message: str) -> None:
        super().__init__(f"400 invalid_request_error: {message}")
        self.message = message


class Block(NamedTuple):
    """What a provider counts, caches and binds thinking to.

    `said` is everything that it says, without cache controls. `path` is its place in the body. `lifetime` is
    that of a breakpoint on it, in seconds. `ends_message` is True for the last block of a message that can
    hold a breakpoint. `content` is the block itself.
    """

    section: Section
    path: str
    said: bytes
    tokens: int
    lifetime: int | None
    ends_message: bool
    content: Body

    @property
    def thinks(self) -> bool:
        """Whether it is reasoning, which is bound to its prefix and never holds a breakpoint."""
        return self.content.get("type") in ("thinking", "redacted_thinking")


class Sizes:
    """How many tokens a request has: 4 a message or result, the text; 5 for a call, its name and arguments.

    Providers do not publish what they add to the text. `by_message` counts what Nexus does: 4 for each
    message as it was before a body joined or split it, that is for each text, each result and each answer
    with calls only; none for the system prompt. `tool` counts a definition, `data` what is encrypted.
    """

    def __init__(
        self,
        count: Count,
        *,
        tool: Callable[[Body], int] | None = None,
        data: Count | None = None,
        by_message: bool = False,
    ) -> None:
        self.count = count
        self.data = data or count
        self.by_message = by_message
        self._tool = tool

    def of_tool(self, tool: Body) -> int:
        """Tokens of a definition; by default those of its JSON."""
        return self.count(_json(tool).decode()) if self._tool is None else self._tool(tool)

    def of_block(self, content: Body, *, begins: bool) -> int:
        """Tokens of a block; `begins`: it is the first of its message."""
        begins = begins or (self.by_message and content.get("type") in _TEXTS)
        return size_of(content, self.count, begins=begins)

    def of_prompt(self, content: Body, *, begins: bool) -> int:
        """Tokens of a block of the system prompt."""
        return size_of(content, self.count, begins=begins and not self.by_message)


def refuse(message: str) -> NoReturn:
    """Raise the provider's error."""
    raise Refused(message)


def require(condition: object, message: str) -> None:
    """Refuse the request unless the condition holds."""
    if not condition:
        refuse(message)


def said_by(role: str, content: Body) -> bytes:
    """The bytes of a block, its keys in their order: caches hold what was sent, not what it means."""
    return f"{role}\0".encode() + _json(content)


def size_of(content: Body, count: Count, *, begins: bool) -> int:
    """Tokens of a block: 4 a message or result, the text; 5 for a call, its name and its arguments."""
    kind = content.get("type")
    overhead = MESSAGE_TOKENS if begins or kind == "tool_result" else 0
    if kind == "tool_use":
        arguments = msgspec.json.encode(content["input"]).decode()
        return overhead + CALL_TOKENS + count(content["name"]) + count(arguments)
    if kind == "function":
        call = content["function"]
        return overhead + CALL_TOKENS + count(call["name"]) + count(call["arguments"])
    return overhead + sum(map(count, texts_of(content)))


def texts_of(content: Body) -> Iterable[str]:
    """The texts of a block; of one that has none (a definition of a tool, an image), its JSON."""
    kind = content.get("type")
    if kind == "tool_result":
        inner = content.get("content", "")
        return [inner] if isinstance(inner, str) else [text for part in inner for text in texts_of(part)]
    for key in ("text", "thinking", "data", "refusal"):
        if isinstance(content.get(key), str):
            return [content[key]]
    return [_json(content).decode()]


def _json(content: Body) -> bytes:
    """The block without its cache controls. Refused if it holds half a character: that is not JSON."""
    bare = {key: value for key, value in content.items() if key not in CACHE_CONTROLS}
    try:
        return msgspec.json.encode(bare)
    except UnicodeEncodeError:
        refuse("The request body is not valid JSON: no low surrogate in string")
