"""Requests of Anthropic's Messages API, refused where its public documentation says that it refuses them.

Each check has the rule in its docstring; the pages are those of platform.claude.com/docs (November 2026). The
texts of the errors are the API's where the documentation or its users quote them.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from support.strict_request import Block, Body, Section, Sizes, refuse, require, said_by

MOST_BREAKPOINTS = 4
LIFETIMES_S = {"5m": 300, "1h": 3_600}
LEAST_BUDGET = 1_024  # tokens

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_THINKING = ("thinking", "redacted_thinking")
_KINDS = {
    "user": {"text", "image", "document", "search_result", "tool_result", "container_upload"},
    "system": {"text"},
}
_NO_PREFILL = (
    "This model does not support assistant message prefill. The conversation must end with a user message."
)
_THINKING_FIRST = (
    "Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is enabled, a final "
    "`assistant` message must start with a thinking block."
)
_CALLS_FIRST = (
    "`tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block "
    "must have a corresponding `tool_result` block in the next message."
)
_RESULT_ALONE = (
    "unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a "
    "corresponding `tool_use` block in the previous message."
)


class Claude(NamedTuple):
    """What the documentation says of a model. An unknown name is one of the newest."""

    family: str
    version: tuple[int, int]

    @property
    def preserves_thinking(self) -> bool:
        """Preserved thinking: Fable and Mythos from 5.1 on, the others from 5.5 on."""
        return self.version >= ((5, 1) if self._fabled else (5, 5))

    @property
    def always_thinks(self) -> bool:
        """Whether `thinking.type.disabled` is rejected."""
        return self._fabled or (self.version >= (5, 5) and self.family != "haiku")

    @property
    def thinks_unasked(self) -> bool:
        """Whether thinking is on in a request that does not mention it."""
        return self.version >= (5, 0)

    @property
    def takes_system_messages(self) -> bool:
        """Mid-conversation system messages: from Opus 4.8 on."""
        return self.version >= (4, 8)

    @property
    def takes_prefill(self) -> bool:
        """Whether it continues a final assistant message: up to 4.5."""
        return self.version < (4, 6)

    @property
    def _fabled(self) -> bool:
        return self.family in ("fable", "mythos")


def claude(model: str) -> Claude:
    """The model of that name."""
    match = re.search(r"(opus|sonnet|haiku|fable|mythos)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?", model)
    if match is None:
        return Claude("opus", (99, 0))
    return Claude(match[1], (int(match[2]), int(match[3] or 0)))


def read_anthropic(body: Body, sizes: Sizes) -> list[Block]:
    """The blocks in the order in which the API reads them: tools, system, messages. Refused if invalid."""
    model = claude(str(body.get("model", "")))
    require(isinstance(body.get("model"), str) and body["model"], "model: Field required")
    require(isinstance(body.get("max_tokens"), int), "max_tokens: Field required")
    require(body["max_tokens"] >= 1, "max_tokens: Input should be greater than or equal to 1")
    messages = body.get("messages")
    require(isinstance(messages, list) and messages, "messages: at least one message is required")
    turns = [(str(turn["role"]), _content(turn, index)) for index, turn in enumerate(messages or ())]
    _check_roles(turns, model)
    _check_contents(turns, model)
    _check_tool_pairs(turns)
    _check_tools(body.get("tools") or [])
    _check_thinking(body, model)
    blocks = list(_blocks(body, turns, sizes))
    _check_breakpoints(blocks, automatic="cache_control" in body)
    return blocks


def thinking_is_on(body: Body) -> bool:
    """Whether the model may think: asked to, or not told otherwise where it thinks by default."""
    kind = (body.get("thinking") or {}).get("type")
    return kind not in ("disabled", None) or (kind is None and claude(body["model"]).thinks_unasked)


def latest_assistant(body: Body) -> int:
    """The index of the latest assistant message; -1 without one."""
    roles = [message["role"] for message in body["messages"]]
    return max((index for index, role in enumerate(roles) if role == "assistant"), default=-1)


# ---------------------------------------------------------------- checks


def _content(message: Body, index: int) -> list[Body]:
    """A string is one text block. Every message but a final assistant message has content."""
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else content
    rule = "all messages must have non-empty content except for the optional final assistant message"
    if not blocks or not isinstance(blocks, list):
        refuse(f"messages.{index}: {rule}")
    return blocks


def _check_roles(turns: Sequence[tuple[str, list[Body]]], model: Claude) -> None:
    """Roles are user and assistant; the first is user. Neighbours of one role count as one turn.

    System messages (Mid-conversation system messages): not first, where the parameter `system` is for; after
    a user message; last, or before an assistant message; never two in a row; not for models before Opus 4.8.
    """
    roles = [role for role, _ in turns]
    for index, role in enumerate(roles):
        require(
            role in ("user", "assistant", "system"),
            f"messages.{index}.role: Input should be 'user' or 'assistant'",
        )
        if role != "system":
            continue
        require(
            model.takes_system_messages, f"messages.{index}: role 'system' is not supported on this model"
        )
        rule = "use the top-level 'system' parameter for the initial system prompt"
        require(index > 0, f"messages.{index}: {rule}")
        after = f"messages.{index}: a system message must follow a user message"
        require(roles[index - 1] == "user", after)
        before = f"messages.{index}: a system message must be last or be followed by an assistant message"
        require(index == len(roles) - 1 or roles[index + 1] == "assistant", before)
    require(roles[0] != "assistant", 'messages: first message must use the "user" role')
    if roles[-1] == "assistant":
        require(model.takes_prefill, _NO_PREFILL)


def _check_contents(turns: Sequence[tuple[str, list[Body]]], model: Claude) -> None:
    """Text is not blank. A final assistant message does not end with white space or reasoning.

    Blocks belong to roles: results and images to users, calls and reasoning to assistants.
    """
    for index, (role, blocks) in enumerate(turns):
        for at, block in enumerate(blocks):
            path = f"messages.{index}.content.{at}"
            kind = block.get("type", "")
            require(
                kind in _KINDS.get(role, {kind}),
                f"{path}: `{kind}` blocks are not allowed in `{role}` messages",
            )
            require(
                role == "user" or kind != "tool_result",
                f"{path}: `tool_result` blocks can only be in `user` messages",
            )
            if kind == "text":
                require(block["text"], "messages: text content blocks must be non-empty")
                require(
                    block["text"].strip(), "messages: text content blocks must contain non-whitespace text"
                )
            if kind == "tool_use":
                require(
                    _ID.fullmatch(block["id"]),
                    f"{path}.tool_use.id: String should match pattern '{_ID.pattern}'",
                )
                require(
                    _NAME.fullmatch(block["name"]),
                    f"{path}.tool_use.name: String should match pattern '^{_NAME.pattern}$'",
                )
                require(
                    isinstance(block["input"], dict),
                    f"{path}.tool_use.input: Input should be a valid dictionary",
                )
    role, blocks = turns[-1]
    last = blocks[-1]
    if role == "assistant":
        require(
            last.get("text", "").rstrip() == last.get("text", ""),
            "messages: final assistant content cannot end with trailing whitespace",
        )
        require(
            last["type"] not in _THINKING,
            f"messages.{len(turns) - 1}: The final block in an assistant message cannot be `thinking`.",
        )


def _check_tool_pairs(turns: Sequence[tuple[str, list[Body]]]) -> None:
    """Each call is answered in the next user turn, which begins with the results; no result without its call.

    Ids of calls are unique in a conversation.
    """
    waiting: dict[str, int] = {}
    used: set[str] = set()
    before = ""
    only_results = True
    for index, (role, blocks) in enumerate(turns):
        if role == "assistant" and before not in ("assistant", ""):
            _refuse_unanswered(waiting)
        only_results = only_results if role == before else True
        for at, block in enumerate(blocks):
            path = f"messages.{index}.content.{at}"
            if block["type"] == "tool_use":
                require(block["id"] not in used, f"{path}: `tool_use` ids must be unique")
                used.add(block["id"])
                waiting[block["id"]] = index
            elif block["type"] == "tool_result":
                require(
                    block["tool_use_id"] in waiting,
                    f"{path}: " + _RESULT_ALONE.format(id=block["tool_use_id"]),
                )
                require(
                    only_results,
                    f"{path}: `tool_result` blocks must come first in the content of a `user` message",
                )
                del waiting[block["tool_use_id"]]
            elif role != "assistant":
                _refuse_unanswered(waiting)
                only_results = False
        before = role
    _refuse_unanswered(waiting)


def _refuse_unanswered(waiting: dict[str, int]) -> None:
    if waiting:
        refuse(f"messages.{max(waiting.values())}: " + _CALLS_FIRST.format(ids=", ".join(waiting)))


def _check_tools(tools: Sequence[Body]) -> None:
    """Names are unique and match the pattern; a schema describes an object."""
    names = [tool["name"] for tool in tools if "name" in tool]
    require(len(set(names)) == len(names), "tools: Tool names must be unique.")
    for index, tool in enumerate(tools):
        if "input_schema" in tool:
            require(
                _NAME.fullmatch(tool["name"]),
                f"tools.{index}.custom.name: String should match pattern '^{_NAME.pattern}$'",
            )
            require(
                tool["input_schema"].get("type") == "object",
                f"tools.{index}.custom.input_schema.type: Field required",
            )


def _check_thinking(body: Body, model: Claude) -> None:
    """Thinking: `enabled` has a budget of 1,024 or more, below `max_tokens`, and is refused from 4.7 on.

    `adaptive` exists from 4.6 on; `disabled` is refused by models that always think; `between_tools` is
    Sonnet 5.5's. Thinking that is asked for excludes a forced tool, and, up to 4.6, another temperature than
    1; from 4.7 on `temperature`, `top_p` and `top_k` are refused at all.
    """
    config: dict[str, Any] = body.get("thinking") or {}
    kind = config.get("type")
    if kind == "enabled":
        instead = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
        require(model.version < (4, 7), f'"thinking.type.enabled" is not supported for this model. {instead}')
        budget = config.get("budget_tokens", 0)
        require(
            budget >= LEAST_BUDGET,
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
        )
        require(body["max_tokens"] > budget, "`max_tokens` must be greater than `thinking.budget_tokens`.")
        _check_thinking_opens(body)
    if kind == "adaptive":
        require(model.version >= (4, 6), "adaptive thinking is not supported on this model")
    if kind == "disabled":
        require(not model.always_thinks, '"thinking.type.disabled" is not supported for this model.')
    if kind == "between_tools":
        require(model == ("sonnet", (5, 5)), '"thinking.type.between_tools" is not supported for this model.')
    forced = (body.get("tool_choice") or {}).get("type") in ("any", "tool")
    asked = kind in ("enabled", "adaptive") or model.always_thinks
    require(not (forced and asked), "Thinking may not be enabled when tool_choice forces tool use.")
    sampling = [name for name in ("temperature", "top_p", "top_k") if name in body]
    if model.version >= (4, 7):
        require(not sampling, f"`{'`, `'.join(sampling)}` is not supported for this model.")
    elif kind in ("enabled", "adaptive"):
        require(
            body.get("temperature", 1) == 1, "`temperature` may only be set to 1 when thinking is enabled."
        )


def _check_thinking_opens(body: Body) -> None:
    """Extended thinking: in the middle of a tool loop the assistant message begins with its thinking."""
    index = latest_assistant(body)
    if index < 0:
        return
    blocks = _content(body["messages"][index], index)
    answered = any(block["type"] == "tool_use" for block in blocks)
    kind = blocks[0]["type"]
    require(
        not answered or kind in _THINKING, f"messages.{index}.content.0.type: {_THINKING_FIRST.format(kind)}"
    )


def _check_breakpoints(blocks: Sequence[Block], *, automatic: bool) -> None:
    """Prompt caching: at most 4 breakpoints, the automatic one included; none on reasoning.

    A breakpoint of 1 hour never follows one of 5 minutes, in the order tools, system, messages.
    """
    marked = [block for block in blocks if "cache_control" in block.content]
    number = len(marked) + automatic
    rule = f"A maximum of {MOST_BREAKPOINTS} blocks with cache_control may be provided. Found {number}."
    require(number <= MOST_BREAKPOINTS, rule)
    for block in marked:
        path = f"{block.path}.{block.content.get('type')}.cache_control"
        require(not block.thinks, f"{path}: Extra inputs are not permitted")
    for one, other in pairwise(block for block in blocks if block.lifetime is not None):
        order = (
            f"{other.path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
            "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
            "`messages`."
        )
        require((one.lifetime or 0) >= (other.lifetime or 0), order)


# ---------------------------------------------------------------- blocks


def _blocks(body: Body, turns: Sequence[tuple[str, list[Body]]], sizes: Sizes) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or []):
        size = sizes.of_tool(tool)
        yield _block("tools", f"tools.{index}", "tools", tool, size, ends=False)
    system = body.get("system") or []
    for index, part in enumerate([{"type": "text", "text": system}] if isinstance(system, str) else system):
        require(part["text"].strip(), "system: text content blocks must be non-empty")
        size = sizes.of_prompt(part, begins=False)
        yield _block("system", f"system.{index}", "system", part, size, ends=False)
    automatic = body.get("cache_control")
    last = None
    for block in _message_blocks(turns, sizes):
        if last is not None:
            yield last
        last = block
    if last is not None:
        lifetime = last.lifetime if automatic is None else _lifetime(automatic)
        yield last._replace(lifetime=lifetime)


def _message_blocks(turns: Sequence[tuple[str, list[Body]]], sizes: Sizes) -> Iterator[Block]:
    for index, (role, parts) in enumerate(turns):
        first = next((at for at, part in enumerate(parts) if part["type"] not in _THINKING), 0)
        for at, part in enumerate(parts):
            path, ends = f"messages.{index}.content.{at}", at == len(parts) - 1
            size = sizes.of_block(part, begins=at == first)
            yield _block("messages", path, role, part, size, ends=ends)


def _block(section: Section, path: str, role: str, content: Body, tokens: int, *, ends: bool) -> Block:
    control = content.get("cache_control")
    lifetime = None if control is None else _lifetime(control)
    return Block(section, path, said_by(role, content), tokens, lifetime, ends, content)


def _lifetime(control: Body) -> int:
    require(control.get("type") == "ephemeral", "cache_control.type: Input should be 'ephemeral'")
    ttl = control.get("ttl", "5m")
    require(ttl in LIFETIMES_S, "cache_control.ttl: Input should be '5m' or '1h'")
    return LIFETIMES_S[ttl]
