"""Shorten a tool result that is larger than what it may take: its beginning, a marker, its end.

The marker says how many tokens are left out. The result's end is kept because that is where commands say
how they ended. Deterministic: the same result and limit give the same text.
"""

from collections.abc import Sequence

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.prompt import texts
from nexus_context.tokens import TokenCounter, count_message

LEAST = 48
"""Tokens that a result is never shortened below: the marker and a few words."""

_TAIL = 3  # a third of what is kept is the end of the text
_ATTEMPTS = 6  # tokens of a text are nearly proportional to its length: two or three are enough
_NEAR = 0.9  # of the limit; nearer is not worth another count
_AIM = 0.96  # of the limit


def clamped(message: Message, tokens: int, limit: int, counter: TokenCounter) -> tuple[Message, int]:
    """The message, of `tokens` tokens, with its text shortened to at most `limit`, or LEAST, and its tokens.

    What is not text (an image) is left out: only text can be shortened.
    """
    limit = max(limit, LEAST)
    if tokens <= limit:
        return message, tokens
    text = text_of(message)
    marker = texts.text("clamped")
    kept = len(text) * limit // tokens
    best = _made(message, text, 0, marker, tokens, counter)
    for _ in range(_ATTEMPTS):
        made = _made(message, text, kept, marker, tokens, counter)
        if made[1] <= limit:
            best = max(best, made, key=lambda one: one[1])
            if made[1] >= limit * _NEAR:
                break
        kept = min(int(kept * limit * _AIM / made[1]), len(text))
    return best if best[1] < tokens else (message, tokens)


def _made(
    message: Message, text: str, kept: int, marker: str, tokens: int, counter: TokenCounter
) -> tuple[Message, int]:
    """The message with `kept` code points of its text, and its tokens."""
    tail = kept // _TAIL if kept < len(text) else 0  # the text is whole where only images are left out
    head = text[: kept - tail]
    end = text[len(text) - tail :]
    left_out = max(tokens - counter.count(head) - counter.count(end), 0)
    shown = f"{head}\n{marker.format(tokens=left_out)}\n{end}"
    made = msgspec.structs.replace(message, content=shown)
    return made, count_message(counter, shown, message.tool_calls)


def water_level(sizes: Sequence[int], budget: int) -> int:
    """The size to which the largest of `sizes` (descending) come down so that they sum to `budget`."""
    rest = sum(sizes)
    for count, size in enumerate(sizes, start=1):
        rest -= size
        following = sizes[count] if count < len(sizes) else 0
        level = (budget - rest) // count
        if level >= following:
            return max(level, LEAST)
    return LEAST
