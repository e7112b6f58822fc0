"""Estimates tokens without a tokenizer: text by its characters and script, JSON as text, opaque parts by the
size of their data.

An opaque part is one that only its provider can read, such as signed or encrypted reasoning. Providers do not
say how many tokens it costs. It counts as its readable text or as its data, whichever is more; four bytes of
data count as a token, and three bytes are four characters of base64. Reasoning of earlier turns counts
wherever it is sent, although some models ignore it, because a budget must not be too small.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

# One token is 60 units: 4 characters a token in general, 2.5 for Cyrillic, 1.5 for CJK.
UNITS_PER_TOKEN = 60
_OTHER_UNITS = 15
_CYRILLIC_UNITS = 24
_CJK_UNITS = 40

_CYRILLIC = "[\u0400-\u052f\u1c80-\u1c8f\u2de0-\u2dff\ua640-\ua69f]+"
_CJK = (
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff]+"
)


def text_units(text: str) -> int:
    """Return the estimate for `text` in 60ths of a token, by script. It is additive: units(a + b) == units(a)
    + units(b).
    """
    units = _OTHER_UNITS * len(text)
    if text.isascii():
        return units
    units += (_CYRILLIC_UNITS - _OTHER_UNITS) * sum(map(len, re.findall(_CYRILLIC, text)))
    return units + (_CJK_UNITS - _OTHER_UNITS) * sum(map(len, re.findall(_CJK, text)))


IMAGE_HOLDERS = ("resource", "inlineData", "inline_data")
"""Keys of a part whose value may be an image with its type."""
_INLINE = frozenset(IMAGE_HOLDERS[1:])
_IMAGES = ("image", "image_url", "input_image")
_FILES = ("document", "file", "input_file", "input_audio", "audio", "resource")
_ESTIMATED = (*_IMAGES, *_FILES)


def is_image(part: Mapping[str, Any]) -> bool:
    """Whether a content part is an image, in our own form, Anthropic's, either of OpenAI's, Gemini's, or as a
    resource of MCP.
    """
    if "type" in part and part["type"] != "resource":
        return part["type"] in _IMAGES
    holder: Mapping[str, Any] = next(
        (part[key] for key in IMAGE_HOLDERS if isinstance(part.get(key), Mapping)), {}
    )
    kind = holder.get("mimeType", holder.get("mime_type"))
    return str(kind).lower().startswith("image/")


def is_estimated(part: Mapping[str, Any]) -> bool:
    """Whether every counter can only estimate the tokens of a content part. This is so for images and
    files.
    """
    kind = part.get("type")
    return not _INLINE.isdisjoint(part) if kind is None else kind in _ESTIMATED


# The keys of opaque parts with encrypted data, and with readable text.
_OPAQUE_DATA = ("signature", "data", "encrypted_content", "thoughtSignature", "thought_signature")
_OPAQUE_TEXT = ("thinking", "content", "text")
_OPAQUE_TYPES = ("thinking", "redacted_thinking", "reasoning", "compaction")
_DATA_CHARACTERS, _DATA_TOKENS = 16, 3  # 16 characters of base64 are 12 bytes, which are 3 tokens
MOST_OPAQUE = 128_000
"""Tokens of the largest opaque part: no model answers with more."""


def is_opaque(part: Mapping[str, Any]) -> bool:
    """Whether only its provider can read a part: reasoning, a compaction, or a part that Gemini signed."""
    kind = part.get("type")
    if isinstance(kind, str) and kind in _OPAQUE_TYPES:
        return True
    return "thoughtSignature" in part or "thought_signature" in part or part.get("thought") is True


def opaque_text(part: Mapping[str, Any]) -> str:
    """Return the readable text of an opaque part, or "" if it has none."""
    texts = [part.get(key) for key in _OPAQUE_TEXT]
    summary = part.get("summary")
    if isinstance(summary, list):
        texts += [item.get("text") for item in summary if isinstance(item, Mapping)]
    texts += [json_text(part[key]) for key in ("functionCall", "function_call") if part.get(key)]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def opaque_tokens(part: Mapping[str, Any]) -> int:
    """Estimate the tokens of the encrypted data of an opaque part from the length of the data."""
    data = (part.get(key) for key in _OPAQUE_DATA)
    length = sum(len(value) for value in data if isinstance(value, str))
    return min(-(-length * _DATA_TOKENS // _DATA_CHARACTERS), MOST_OPAQUE)


def json_text(value: object) -> str:
    """Return a plain value as compact JSON, as it would be sent. A string is taken for JSON text and returned
    as it is.

    It never raises: a value that JSON cannot represent (lone surrogates, sets, too deep nesting) is
    approximated.
    """
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _flat_text(value)


def _flat_text(value: object) -> str:
    """The leaves of `value` with a mark for each level, without recursion."""
    pieces: list[str] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, Mapping):
            pieces.append("{}")
            stack.extend(key_or_value for pair in item.items() for key_or_value in pair)
        elif isinstance(item, list | tuple | set | frozenset):
            pieces.append("[]")
            stack.extend(item)
        else:
            pieces.append(f'"{item}",' if isinstance(item, str) else f"{item!r},")
    return "".join(pieces)
