"""Divides an answer into pages: as many of its items as fit the tokens of a result.

1. An item is never divided. If it alone is longer than a page, its end is left out, with a mark.
2. The same items give the same pages, so that a model can ask for the next one.
"""

from collections.abc import Iterator

import msgspec

from nexus_context.assistants.views.profile import ASSISTANTS
from nexus_context.errors import RequestError
from nexus_context.text.redact import redact_message
from nexus_context.text.visible import visible
from nexus_context.tokens import TokenCounter, counter_for

MAX_TOKENS = 2_000
_FOOTER = 40  # tokens of the last line
_LONGEST = 200_000  # characters of an item
_CUT = "… (cut)"
_OTHER_MODEL = "gpt-5"  # of a client without a profile


class ToolAnswer(msgspec.Struct, frozen=True):
    """The answer of a tool: a title for every page, and items, each a text of complete lines."""

    title: str
    items: tuple[str, ...] = ()


def page_text(answer: ToolAnswer, *, assistant: str | None, most: int, page: int) -> str:
    """Return a page of at most `most` tokens, counted for the model of the assistant.

    RequestError if there is no such page.
    """
    counter = counter_for(_model(assistant))
    title = _harmless(answer.title)
    max_tokens = max(most - counter.count(title) - _FOOTER, 1)
    pages = list(_pages(answer, counter, max_tokens))
    if page > len(pages):
        raise RequestError(f"There is no page {page}. The last one is {len(pages)}.", code="bad-argument")
    paragraphs = [title, *pages[page - 1]]
    if len(pages) > 1:
        continuation_note = f" Call again with page {page + 1} for more." if page < len(pages) else ""
        paragraphs.append(f"Page {page} of {len(pages)}.{continuation_note}")
    return "\n".join(paragraph for paragraph in paragraphs if paragraph)


def _pages(answer: ToolAnswer, counter: TokenCounter, max_tokens: int) -> Iterator[list[str]]:
    items: list[str] = []
    size = 0
    for item in answer.items:
        text = _harmless(item[:_LONGEST])
        tokens = counter.count(text) + 1
        if tokens > max_tokens:
            text = _shortened(text, counter, max_tokens)
            tokens = max_tokens
        if items and size + tokens > max_tokens:
            yield items
            items, size = [], 0
        items.append(text)
        size += tokens
    yield items


def _shortened(text: str, counter: TokenCounter, max_tokens: int) -> str:
    """The beginning of a text that fits, with a mark."""
    shortest, longest = 0, len(text)
    while shortest < longest:
        middle = (shortest + longest + 1) // 2
        if counter.count(text[:middle] + _CUT) + 1 <= max_tokens:
            shortest = middle
        else:
            longest = middle - 1
    return text[:shortest] + _CUT


def _harmless(text: str) -> str:
    return visible(redact_message(text)).rstrip("\n")


def _model(assistant: str | None) -> str:
    return next(
        (candidate.model for candidate in ASSISTANTS if candidate.name == assistant),
        _OTHER_MODEL,
    )
