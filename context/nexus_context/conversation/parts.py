"""Parts of a message's content in the form of each provider: text and images, whoever's form they come in."""

import re
from typing import Any

import msgspec

Part = dict[str, Any]

_DATA = re.compile(r"data:([\w.+/-]+);base64,", re.ASCII)
_TEXT_TYPES = ("text", "input_text", "output_text")


def is_blank(part: Any) -> bool:
    """Whether a content or a part says nothing: providers refuse text of white space only."""
    if isinstance(part, dict) and part.get("type") in _TEXT_TYPES:
        part = part.get("text")
    return part is None or (isinstance(part, str) and not part.strip()) or part == []


def is_image(part: Any) -> bool:
    """Whether a part is an image, in the form of either provider."""
    return isinstance(part, dict) and part.get("type") in ("image", "image_url", "input_image")


def openai(part: Any) -> Part:
    """A part for chat completions."""
    source = part.get("source") if isinstance(part, dict) and part.get("type") == "image" else None
    if isinstance(source, dict):
        if source.get("type") == "base64":
            url = f"data:{source.get('media_type')};base64,{source.get('data')}"
            return {"type": "image_url", "image_url": {"url": url}}
        if source.get("type") == "url":
            return {"type": "image_url", "image_url": {"url": source.get("url")}}
    if is_image(part) and isinstance(part.get("image_url"), str):
        return {"type": "image_url", "image_url": {"url": part["image_url"]}}
    return _text(part)


def anthropic(part: Any) -> Part:
    """A block for messages."""
    given = part.get("image_url") if is_image(part) else None
    url = given.get("url") if isinstance(given, dict) else given
    if not isinstance(url, str):
        return _text(part)
    data = _DATA.match(url)
    if data is None:
        return {"type": "image", "source": {"type": "url", "url": url}}
    source = {"type": "base64", "media_type": data[1], "data": url[data.end() :]}
    return {"type": "image", "source": source}


def json_text(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _text(part: Any) -> Part:
    """A text part under the name that both providers know; another object as it is."""
    if not isinstance(part, dict):
        return {"type": "text", "text": json_text(part)}
    return {**part, "type": "text"} if part.get("type") in _TEXT_TYPES else part
