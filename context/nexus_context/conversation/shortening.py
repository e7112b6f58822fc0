"""Shortens a text or a message to its beginning, a marker and its end.

The marker says how much is left out. The end stays because commands report their outcome there. The same
input and limit give the same text.
"""

from collections.abc import Sequence

import msgspec

from nexus_context.conversation.message import Message, content_of, text_of
from nexus_context.folder.prompt import texts
from nexus_context.tokens import TokenCounter, count_message

LEAST = 48
"""Tokens below which no message is shortened: the marker and a few words."""

_TAIL = 3  # a third of what stays is the end of the text
_ATTEMPTS = 6  # tokens of a text are nearly proportional to its length: two or three are enough
_NEAR = 0.9  # of the limit; nearer is not worth another count
_AIM = 0.96  # of the limit


def shorten_text(text: str, max_characters: int) -> str:
    """Return the text in about `max_characters` characters."""
    if len(text) <= max_characters:
        return text
    tail = max_characters // _TAIL
    note = texts.text("summary_shortened").format(characters=len(text) - max_characters)
    return f"{text[: max_characters - tail]} {note} {text[-tail:]}"


def shorten_message(message: Message, tokens: int, limit: int, counter: TokenCounter) -> tuple[Message, int]:
    """Shorten the text of a message with `tokens` tokens to at most `limit` tokens, but not below LEAST.
    Return the message and its new tokens.

    Parts that are not text, such as images, are left out, because only text can be shortened.
    """
    limit = max(limit, LEAST)
    if tokens <= limit:
        return message, tokens
    text = text_of(message)
    marker = texts.text("clamped" if message.role == "tool" else "clamped_message")

    def cut(length: int) -> tuple[Message, int]:
        """The message with `length` code points of its text, and its tokens."""
        tail = length // _TAIL if length < len(text) else 0  # the text is whole if only images are left out
        head = text[: length - tail]
        end = text[len(text) - tail :]
        left_out = max(tokens - counter.count(head) - counter.count(end), 0)
        content = f"{head}\n{marker.format(tokens=left_out)}\n{end}"
        shortened = msgspec.structs.replace(message, content=content)
        return shortened, count_message(counter, content, message.tool_calls, message.role)

    length = len(text) * limit // tokens
    best = cut(0)
    for _ in range(_ATTEMPTS):
        candidate = cut(length)
        if candidate[1] <= limit:
            best = max(best, candidate, key=lambda attempt: attempt[1])
            if candidate[1] >= limit * _NEAR or length == len(text):  # nothing more of the text is left
                break
        length = min(int(length * limit * _AIM / candidate[1]), len(text))
    return best if best[1] < tokens else (message, tokens)


def leave_out_result(message: Message, counter: TokenCounter) -> tuple[Message, int]:
    """Replace the text of a result by a few words. Return the message and its new tokens."""
    short = msgspec.structs.replace(message, content=texts.text("result_left_out").strip())
    return short, count_message(counter, content_of(short), short.tool_calls, short.role)


def water_level(sizes: Sequence[int], budget: int) -> int:
    """Return the size to which the largest of `sizes` must be reduced so that all sum to `budget`. `sizes`
    must be sorted, largest first.
    """
    smaller_sum = sum(sizes)
    for count, size in enumerate(sizes, start=1):
        smaller_sum -= size
        smaller = sizes[count] if count < len(sizes) else 0
        level = (budget - smaller_sum) // count
        if level >= smaller:
            return max(level, LEAST)
    return LEAST
