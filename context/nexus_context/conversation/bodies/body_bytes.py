"""Limits the bytes of a body. This is a budget beside the tokens, since images take few tokens and many
bytes.

1. Above its limit a provider answers 413, however few tokens the body has.
2. The oldest images of the history are left out first, then its oldest files; a text replaces each. The
   current message keeps its own: if it alone is too large, the request is refused.
3. Images are left out in steps of a quarter of the limit, so that many requests begin with the same bytes.

Sources, each read in November 2026: "Request size limits" in the documentation of the Claude API; "Images and
vision" in that of OpenAI; "Increased file size limits", January 2026, of the Gemini API.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, sent_content, text_part
from nexus_context.conversation.view import View
from nexus_context.folder.prompt import texts
from nexus_context.tokens import TokenCounter, count_message
from nexus_context.tokens.estimates import is_estimated, is_image, json_text
from nexus_context.tokens.images import image_data

MB = 1_000_000
BODY_BYTES: Mapping[str, int] = {
    "anthropic": 32 * MB,
    "openai": 50 * MB,
    "openai-responses": 50 * MB,
    "gemini": 100 * MB,
}
"""The largest body that a provider takes, by its format."""

MARGIN = 0.05
"""Share of the limit for what a format and a client write around the messages."""
STEP = 0.25
"""Share of the limit that leaves at once."""
LEAST_DATA = 4_000
"""Characters of base64 below which a part saves nothing."""


class _Media(NamedTuple):
    """A part with data: its message, its place in the content, and its bytes."""

    message: int
    place: int
    size: int
    is_image: bool


def within_bytes(view: View, counter: TokenCounter, *, form: str, around: object) -> View:
    """Return the view without the images and files for which a body of this format has no room.

    `around` is what else is sent: system prompt, tools, current message.
    """
    history, limit = view.history, int(BODY_BYTES[form] * (1 - MARGIN))
    indexes = view.sent_indexes()
    total = _size(around) + sum(
        _message_size(history, index) for index in indexes if index not in view.replaced
    )
    over = total - limit
    if over <= 0:
        return view
    step = int(STEP * limit)
    in_steps = -(-over // step) * step
    chosen: dict[int, set[int]] = {}
    freed = count = 0
    for media in _oldest_media(view, indexes):
        if freed >= (in_steps if media.is_image else over):
            break
        chosen.setdefault(media.message, set()).add(media.place)
        freed, count = freed + media.size, count + 1
    without = _without_media(view, counter, chosen) if chosen else view
    return msgspec.structs.replace(without, excess_bytes=max(over - freed, 0), unsent_media=count)


def _oldest_media(view: View, indexes: list[int]) -> list[_Media]:
    """The parts with data: the images, then the files, the oldest first."""
    media: list[_Media] = []
    for index in indexes:
        content = view.history.sent[index].content
        if not isinstance(content, list) or index in view.replaced:
            continue
        for part_index, part in enumerate(content):
            size = _data_size(part)
            if size >= LEAST_DATA:
                media.append(_Media(index, part_index, size, is_image(part)))
    return sorted(media, key=lambda part: not part.is_image)


def _without_media(view: View, counter: TokenCounter, chosen: Mapping[int, set[int]]) -> View:
    """The view with texts in place of these parts, by message."""
    sums, added, replaced = view.history.sums(counter), dict(view.added), dict(view.replaced)
    saved = 0
    for index, places in chosen.items():
        message = _without_parts(view.history.sent[index], places)
        replaced[index] = message
        tokens = count_message(counter, sent_content(message), message.tool_calls, message.role)
        saved += sums[index + 1] - sums[index] + added.pop(index, 0) - tokens
    return msgspec.structs.replace(
        view,
        replaced=replaced,
        added=added,
        tokens=view.tokens - saved,
        uncut_tokens=view.uncut_tokens - saved,
    )


def _without_parts(message: Message, part_indexes: set[int]) -> Message:
    content: Any = message.content
    parts = [
        text_part(texts.text("media_left_out").format(kind="image" if is_image(part) else "file"))
        if part_index in part_indexes
        else part
        for part_index, part in enumerate(content)
    ]
    return msgspec.structs.replace(message, content=parts)


def _data_size(part: Any) -> int:
    """The characters of base64 in an image or a file; 0 without any."""
    if not isinstance(part, dict) or not is_estimated(part):
        return 0
    data = image_data(part)
    if data is not None:
        return len(data)
    inner = part.get("file", part.get("input_audio", part))
    values = inner.values() if isinstance(inner, dict) else ()
    return max((len(value) for value in values if isinstance(value, str)), default=0)


def _message_size(history: History, index: int) -> int:
    """The bytes of a message as JSON; each is measured once."""
    sizes = history.sizes
    while len(sizes) <= index:
        message = history.sent[len(sizes)]
        sizes.append(_size((message.content, message.tool_calls)))
    return sizes[index]


def _size(value: object) -> int:
    try:
        return len(msgspec.json.encode(value))
    except (UnicodeEncodeError, RecursionError, TypeError, ValueError):
        return len(json_text(value))
