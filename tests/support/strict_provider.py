"""A provider that keeps to the public documentation of Anthropic and OpenAI, and refuses what they refuse.

1. It checks a request strictly (`strict_anthropic`, `strict_openai`, `strict_responses`). The form is the
   vendor's: bodies of Anthropic's messages, of OpenAI's chat completions or its Responses.
2. It binds each thinking block that it gives to what came before it, and refuses a request that sends
   the block behind anything else.
3. It keeps a prompt cache (`strict_cache`) and answers with usage and cost.

What the model answers is the caller's (`Answer`); the clock, the tokenizer and the prices are, too.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from support.strict_anthropic import claude, latest_assistant, read_anthropic, thinking_is_on
from support.strict_cache import AutomaticCache, BreakpointCache, Clock, Limits, Settled, prefixes_of
from support.strict_openai import LIFETIME_S, has_breakpoints, read_openai
from support.strict_request import Block, Body, Count, Refused, Sizes, refuse
from support.strict_responses import OPAQUE, read_responses

__all__ = ["Answer", "Pricing", "Refused", "Reply", "StrictProvider", "Usage"]

Vendor = Literal["anthropic", "openai"]

DAY_S = 86_400
MILLION = 1_000_000


class Pricing(NamedTuple):
    """US dollars for a million tokens. A write costs `cache_write` for the short lifetime."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float = 0.0


class Answer(NamedTuple):
    """What the model says. `thinking`: texts of blocks before the rest; `calls`: names and arguments.

    `compaction`: a summary that Responses gives as an encrypted item, before everything else.
    """

    text: str = "Done."
    thinking: Sequence[str] = ()
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    compaction: str = ""


class Usage(NamedTuple):
    """Tokens of a request and its answer. `input` is neither read from the cache nor written to it."""

    input: int
    cache_read: int
    cache_write: int
    cache_write_1h: int
    output: int

    @property
    def sent(self) -> int:
        """All tokens of the request."""
        return self.input + self.cache_read + self.cache_write + self.cache_write_1h

    def cost(self, pricing: Pricing) -> float:
        """US dollars."""
        return (self.cost_of_input(pricing) * MILLION + self.output * pricing.output) / MILLION

    def cost_of_input(self, pricing: Pricing) -> float:
        """US dollars for the request without its answer."""
        parts = (
            (self.input, pricing.input),
            (self.cache_read, pricing.cache_read),
            (self.cache_write, pricing.cache_write),
            (self.cache_write_1h, pricing.cache_write_1h),
        )
        return sum(tokens * price for tokens, price in parts) / MILLION


class Dropped(NamedTuple):
    """A thinking block that the model was not shown: an element of `input_transformations`."""

    path: str
    reason: Literal["model_binding_mismatch", "prefix_binding_mismatch"]


class Reply(NamedTuple):
    """The answer to a request. `message` and `body` (usage and stop reason) are in the vendor's form; of
    Responses, `message` has the items: `output`.

    `read_through` is the path of the last block that was read from the cache; "" for none. `held` are the
    lengths of the prefixes that the cache holds from this request on, in tokens.
    """

    message: Body
    body: Body
    usage: Usage
    cost: float
    dropped: tuple[Dropped, ...]
    read_through: str
    held: tuple[int, ...]


class _Thought(NamedTuple):
    """A thinking block as it was given: behind which prefix, after which other one, in which answer."""

    block: Body
    model: str
    prefix: bytes
    after: str | None
    answer: int


class StrictProvider:
    """One provider with its caches and the thinking that it gave. `minimum`: tokens of the shortest entry.

    `sizes`: how tokens are counted, if not by `count` alone.
    """

    def __init__(
        self,
        vendor: Vendor,
        *,
        clock: Clock,
        count: Count,
        pricing: Pricing,
        minimum: int = 1_024,
        limits: Limits = Limits(),  # noqa: B008  # frozen
        sizes: Sizes | None = None,
    ) -> None:
        self.requests = 0
        self._vendor = vendor
        self._count = count
        self._pricing = pricing
        self._sizes = sizes or Sizes(count)
        self._breakpoints = BreakpointCache(clock, minimum, limits)
        self._automatic = AutomaticCache(clock, count, limits)
        self._thoughts: dict[str, _Thought] = {}
        self._encrypted: dict[str, Body] = {}  # items of Responses, by their content

    def send(self, body: Body, answer: Answer = Answer()) -> Reply:  # noqa: B008  # frozen
        """The answer to a request, in the vendor's form. Raises Refused; then nothing is cached or bound."""
        if self._vendor == "anthropic":
            blocks, dropped = self._readable(body, read_anthropic(body, self._sizes))
            settled = self._settle_anthropic(body, blocks)
        else:
            blocks, dropped = self._readable_openai(body), []
            settled = self._settle_openai(body, blocks)
        self.requests += 1
        message, output = self._answer(body, blocks, answer)
        usage = Usage(settled.plain, settled.read, settled.written, settled.written_1h, output)
        through = blocks[settled.through - 1].path if settled.through else ""
        stop = "tool_use" if answer.calls else "end_turn"
        told = {"usage": self._usage_of(usage, is_responses="input" in body), "stop_reason": stop}
        return Reply(message, told, usage, usage.cost(self._pricing), tuple(dropped), through, settled.held)

    # ------------------------------------------------------------ caches

    def _settle_anthropic(self, body: Body, blocks: Sequence[Block]) -> Settled:
        """Caches belong to a model. Thinking parameters and the tool choice are part of the messages' prefix.

        Prompt caching, What invalidates the cache: a change of tools, of the system prompt or of the
        messages invalidates its own part and what comes after it; a change of thinking or of the tool
        choice the messages. To ask for the thinking that is on by default is no change.
        """
        thinking = dict(body.get("thinking") or ({"type": "adaptive"} if thinking_is_on(body) else {}))
        thinking.pop("block_binding", None)
        settings = json.dumps([thinking, body.get("tool_choice")]).encode()
        prefixes = prefixes_of(blocks, start=body["model"].encode(), settings=settings)
        lifetimes = {at: block.lifetime for at, block in enumerate(blocks) if block.lifetime is not None}
        return self._breakpoints.settle_anthropic(prefixes, lifetimes)

    def _settle_openai(self, body: Body, blocks: Sequence[Block]) -> Settled:
        """Caches belong to a model and, since requests are routed by it, to a `prompt_cache_key`."""
        scope = f"{body['model']}\0{body.get('prompt_cache_key', '')}".encode()
        if not has_breakpoints(body["model"]):
            retention = body.get("prompt_cache_retention")
            return self._automatic.settle(
                scope, blocks, **({"lifetime": DAY_S} if retention == "24h" else {})
            )
        mode = (body.get("prompt_cache_options") or {}).get("mode", "implicit")
        ends = [at for at, block in enumerate(blocks) if block.ends_message]
        explicit = [at for at, block in enumerate(blocks) if block.lifetime is not None]
        prefixes = prefixes_of(blocks, start=scope)
        return self._breakpoints.settle_openai(
            prefixes, ends, explicit, LIFETIME_S, implicit=mode == "implicit"
        )

    # ------------------------------------------------------------ thinking

    def _readable(self, body: Body, blocks: Sequence[Block]) -> tuple[list[Block], list[Dropped]]:
        """The blocks that the model is shown. Preserved thinking, and Prefix checks on thinking blocks:

        1. A block comes back as it was given, else its signature is invalid; those of the latest assistant
           message come back all of them.
        2. A model that cannot read a block does not get it; that is no error. Here, each reads its own.
        3. On models with preserved thinking nothing before the block may have changed: `tools`, `system`,
           every message; nor may a thinking block between others have been left out or moved. Thinking that
           came before it may be left out as a whole.
        4. Such a block fails the request, unless `thinking.block_binding.prefix_mismatch_behavior` is
           "drop_block": then it and the thinking blocks directly behind it are dropped.
        5. Each block is checked by itself: those before a change, and those given after it, stay valid.
        """
        self._check_latest(body)
        preserves = claude(body["model"]).preserves_thinking
        binding = (body.get("thinking") or {}).get("block_binding") or {}
        drops = binding.get("prefix_mismatch_behavior") == "drop_block"
        shown: list[Block] = []
        dropped: list[Dropped] = []
        digest, last, dropping = b"", None, False
        for block in blocks:
            if not block.thinks:
                digest, dropping = _bind(digest, block), False
                shown.append(block)
                continue
            thought = self._thought(block)
            if thought.model != body["model"]:
                dropped.append(Dropped(block.path, "model_binding_mismatch"))
            elif preserves and (dropping or thought.prefix != digest or (last and thought.after != last)):
                if not drops:
                    refuse(_mismatch(block))
                dropping = True
                dropped.append(Dropped(block.path, "prefix_binding_mismatch"))
            else:
                last = _signature(block.content)
                shown.append(block)
        return shown, dropped

    def _thought(self, block: Block) -> _Thought:
        thought = self._thoughts.get(_signature(block.content))
        if thought is None or thought.block != block.content:
            refuse(f"{block.path}: Invalid `signature` in `{block.content['type']}` block")
        return thought

    def _check_latest(self, body: Body) -> None:
        """Thinking: the blocks of the latest assistant message come back complete, in order and unchanged.

        All of them may be missing.
        """
        index = latest_assistant(body)
        content = body["messages"][index]["content"] if index >= 0 else ""
        blocks = [] if isinstance(content, str) else content
        sent = [(at, block) for at, block in enumerate(blocks) if block["type"].endswith("thinking")]
        answers = {
            self._thoughts[_signature(block)].answer
            for _, block in sent
            if _signature(block) in self._thoughts
        }
        given = [thought.block for thought in self._thoughts.values() if thought.answer in answers]
        if [block for _, block in sent if _signature(block) in self._thoughts] != given:
            refuse(
                f"messages.{index}.content.{sent[0][0]}: `thinking` or `redacted_thinking` blocks in the "
                "latest assistant message cannot be modified. These blocks must remain as they were in the "
                "original response."
            )

    def _readable_openai(self, body: Body) -> list[Block]:
        """The blocks. Encrypted items of Responses come back as they were given; nothing binds them to more.

        Reasoning models, Encrypted reasoning items: what the API cannot decrypt is refused.
        """
        if "input" not in body:
            return read_openai(body, self._sizes)
        blocks = read_responses(body, self._sizes)
        for block in blocks:
            content = block.content.get("encrypted_content", "")
            if block.content.get("type") in OPAQUE and self._encrypted.get(content) != block.content:
                refuse(
                    f"The encrypted content {content[:16]} could not be verified. Reason: Encrypted content "
                    "could not be decrypted or parsed."
                )
        return blocks

    # ------------------------------------------------------------ answers

    def _answer(self, body: Body, blocks: Sequence[Block], answer: Answer) -> tuple[Body, int]:
        """The message of the answer and its tokens. Thinking is given only where it is on."""
        output = self._count(answer.text) if answer.text else 0
        calls = [(f"call_{self.requests}_{at}", *call) for at, call in enumerate(answer.calls)]
        output += sum(self._count(name) + self._count(json.dumps(dict(values))) for _, name, values in calls)
        if "input" in body:
            return {"output": self._items(answer, calls)}, output + sum(map(self._count, answer.thinking))
        if self._vendor == "openai":
            message: Body = {"role": "assistant", "content": answer.text or None}
            if calls:
                message["tool_calls"] = [
                    {
                        "id": id_,
                        "type": "function",
                        "function": {"name": name, "arguments": json.dumps(dict(values))},
                    }
                    for id_, name, values in calls
                ]
            return message, output
        thinking = self._give(body, blocks, answer.thinking) if thinking_is_on(body) else []
        output += sum(self._count(block["thinking"]) for block in thinking)
        content = [*thinking, *([{"type": "text", "text": answer.text}] if answer.text else [])]
        content += [
            {"type": "tool_use", "id": id_, "name": name, "input": dict(values)}
            for id_, name, values in calls
        ]
        return {"role": "assistant", "content": content}, output

    def _items(self, answer: Answer, calls: Sequence[tuple[str, str, Mapping[str, Any]]]) -> list[Body]:
        """The items of Responses: what is encrypted first, then the text, then the calls."""
        items = [self._encrypt("compaction", answer.compaction)] if answer.compaction else []
        items += [self._encrypt("reasoning", text) for text in answer.thinking]
        if answer.text:
            part = {"type": "output_text", "text": answer.text, "annotations": []}
            items.append({"type": "message", "role": "assistant", "content": [part], "status": "completed"})
        for name, tool, values in calls:
            arguments = json.dumps(dict(values))
            items.append({"type": "function_call", "call_id": name, "name": tool, "arguments": arguments})
        return items

    def _encrypt(self, kind: str, text: str) -> Body:
        number = len(self._encrypted)
        content = f"{number}-" + hashlib.blake2b(f"{number}{text}".encode(), digest_size=12).hexdigest()
        item: Body = {"type": kind, "id": f"{kind[:2]}_{number}", "encrypted_content": content}
        self._encrypted[content] = item | ({"summary": []} if kind == "reasoning" else {})
        return dict(self._encrypted[content])

    def _give(self, body: Body, blocks: Sequence[Block], texts: Sequence[str]) -> list[Body]:
        """Thinking blocks, bound to what the model was shown."""
        digest, last = b"", None
        for block in blocks:
            if block.thinks:
                last = _signature(block.content)
            else:
                digest = _bind(digest, block)
        given: list[Body] = []
        for text in texts:
            number = len(self._thoughts)
            signature = f"{number}-" + hashlib.blake2b(f"{number}{text}".encode(), digest_size=12).hexdigest()
            thought = {"type": "thinking", "thinking": text, "signature": signature}
            self._thoughts[signature] = _Thought(thought, body["model"], digest, last, self.requests)
            last = signature
            given.append(dict(thought))
        return given

    def _usage_of(self, usage: Usage, *, is_responses: bool) -> Body:
        """The usage with the vendor's names."""
        if self._vendor == "openai":
            details = {"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write}
            if is_responses:
                sums = {"input_tokens": usage.sent, "output_tokens": usage.output}
                return sums | {"input_tokens_details": details, "total_tokens": usage.sent + usage.output}
            sums = {"prompt_tokens": usage.sent, "completion_tokens": usage.output}
            return sums | {"prompt_tokens_details": details}
        return {
            "input_tokens": usage.input,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation_input_tokens": usage.cache_write + usage.cache_write_1h,
            "cache_creation": {
                "ephemeral_5m_input_tokens": usage.cache_write,
                "ephemeral_1h_input_tokens": usage.cache_write_1h,
            },
            "output_tokens": usage.output,
        }


def _bind(digest: bytes, block: Block) -> bytes:
    """What a thinking block is bound to, with one block more."""
    return hashlib.blake2b(digest + block.section.encode() + block.said, digest_size=16).digest()


def _signature(block: Body) -> str:
    return str(block.get("signature") or block.get("data"))


def _mismatch(block: Block) -> str:
    return (
        f"{block.path}: Invalid `signature` in `{block.content['type']}` block. The block is bound to a "
        "different conversation. Remove the block, or set "
        '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
    )
