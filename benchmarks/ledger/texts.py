"""The conversations that are kept and searched: made ones, the same everywhere, and tau-bench.

The made text has a vocabulary like a language's: the n-th most frequent word is said about 1/n as often
as the first, so that a few words are in most messages and most words in a few. Every message has a code
that no other has.
"""

import functools
import itertools
import json
import random
from collections.abc import Iterator

import msgspec
from benchmarks.conversation import traces
from benchmarks.conversation.facts import OpenAIMessage

from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.ledger.records import Counted, NewTurn

SEED = 20_242
VOCABULARY = 30_000  # words
SHORT = 2_000  # of them have one syllable
LENGTH = (8, 90)  # words of a message; about 60 tokens
TURN = 4  # messages: a question, a call, its result, an answer
COUNTER = "about four characters"
KINDS = ("common", "rare", "two words", "phrase", "beginning", "without", "unknown")

_HEADS = "b br c ch d dr f fl g gr h j k kl l m n p pr qu r s sh sl st t tr v w z"
_VOWELS = "a e i o u ai ea ee ie oa ou"
_TAILS = "ck d ft l ll m n nd ng nt p r rd rt s sh st t th x"


class Query(msgspec.Struct, frozen=True):
    """What is searched for, and what kind of query that is."""

    kind: str
    text: str


@functools.cache
def vocabulary() -> list[str]:
    """Words, the most frequent first; the short ones before the long ones, as in a language."""
    dice = _dice(SEED)
    syllables = [a + b + c for a, b, c in itertools.product(*map(str.split, (_HEADS, _VOWELS, _TAILS)))]
    dice.shuffle(syllables)
    words = dict.fromkeys(syllables[:SHORT])
    while len(words) < VOCABULARY:
        words["".join(dice.choices(syllables, k=dice.choice((2, 2, 3))))] = None
    return list(words)


def made(turns: int, *, seed: int = SEED) -> Iterator[NewTurn]:
    """Turns of four messages, each a question with its call, result and answer."""
    dice, words = _dice(seed), vocabulary()
    weights = _weights(words)
    for number in range(turns):
        said = [_said(dice, words, weights, f"q{seed}x{number}m{part}") for part in range(TURN)]
        call = ToolCall(f"call_{number}", "search", {"query": said[1], "limit": 20})
        yield turn_of(
            Message("user", said[0]),
            Message("assistant", None, tool_calls=(call,)),
            Message("tool", json.dumps({"found": said[2]}), tool_call_id=call.id),
            Message("assistant", said[3]),
        )


def tau(turns: int) -> Iterator[NewTurn]:
    """The conversations of tau-bench again and again, four messages a turn; none without its file."""
    if not traces.tau_file().is_file():
        return
    messages = [_neutral(each) for each in traces.tau(10**9)[1:]]
    endless = itertools.cycle(messages)
    for number in range(turns):
        batch = list(itertools.islice(endless, TURN))
        first = msgspec.structs.replace(batch[0], content=f"{text_of(batch[0])} q{SEED}x{number}m0")
        yield turn_of(first, *batch[1:])


def pages(count: int) -> Iterator[str]:
    """Text files of a knowledge base: a title, sections, paragraphs; 2 to 6 kB."""
    dice, words = _dice(SEED + 2), vocabulary()
    weights = _weights(words)
    for number in range(count):
        parts = [f"# {_said(dice, words, weights, f'page{number}', (3, 8))}"]
        for _ in range(dice.randint(2, 4)):
            parts += [f"## {_said(dice, words, weights, 'about', (2, 6))}"]
            parts += [_said(dice, words, weights, "so", LENGTH) + "." for _ in range(dice.randint(2, 4))]
        yield "\n\n".join(parts) + "\n"


def turn_of(*messages: Message) -> NewTurn:
    """A turn of some messages, counted roughly."""
    return NewTurn(
        messages=tuple(Counted(each, 4 + len(text_of(each)) // 4) for each in messages), counter=COUNTER
    )


def queries(texts: list[str], count: int) -> list[Query]:
    """Queries of all kinds in turn, about texts that are kept; the frequent words are the texts' own."""
    dice = _dice(SEED + 1)
    frequency: dict[str, int] = {}
    for text in texts:
        for word in set(text.lower().split()):
            if word.isalpha():
                frequency[word] = frequency.get(word, 0) + 1
    common = sorted(frequency, key=lambda word: -frequency[word])[:60]
    rare = [word for word, times in frequency.items() if times <= 3]
    return [
        Query(kind, _query(kind, dice, texts, common, rare))
        for kind in itertools.islice(itertools.cycle(KINDS), count)
    ]


def _query(kind: str, dice: random.Random, texts: list[str], common: list[str], rare: list[str]) -> str:
    words = [word for word in dice.choice(texts).split() if word.isalpha()] or common
    if kind == "common":
        return dice.choice(common)
    if kind == "rare":
        return dice.choice(rare)
    if kind == "two words":
        return f"{dice.choice(common)} {dice.choice(words)}"
    if kind == "phrase":
        start = dice.randrange(max(1, len(words) - 1))
        return '"' + " ".join(words[start : start + 2]) + '"'
    if kind == "beginning":
        return f"{dice.choice(words)[:4]}*"
    if kind == "without":
        return f"{dice.choice(common)} -{dice.choice(words)}"
    return f"nowhere{dice.randrange(10**6)}"


def _weights(words: list[str]) -> list[float]:
    return list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(words))))


def _said(
    dice: random.Random, words: list[str], weights: list[float], code: str, length: tuple[int, int] = LENGTH
) -> str:
    chosen = dice.choices(words, cum_weights=weights, k=dice.randint(*length))
    chosen.insert(dice.randrange(len(chosen)), code)
    return " ".join(chosen)


def _neutral(message: OpenAIMessage) -> Message:
    calls = tuple(
        ToolCall(each["id"], each["function"]["name"], json.loads(each["function"]["arguments"]))
        for each in message.get("tool_calls") or ()
    )
    return Message(
        message["role"], message.get("content"), tool_calls=calls, tool_call_id=message.get("tool_call_id")
    )


def _dice(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - a benchmark, no secret
