"""Changes what servers refuse although the types of their requests allow it, by a table of limits.

1. RULES has a row for each format. The sources of the limits are listed below; documentation and errors were
   read in November 2026.
2. A schema is changed as little as possible. A missing `items` is added. A key that is refused becomes the
   nearest key that is accepted, in calls, too. Only the keys of the arguments themselves are checked, not
   keys inside them.
3. An image that is refused becomes a text. If there are too many images, the oldest are left out in steps of
   a quarter of the limit, so that many requests begin with the same bytes.
4. Citations are enabled for all documents and search results of a request, or for none. If one of them asks
   for citations, they are enabled for all.
5. If images were left out for their number, or citations were enabled, reasoning that is bound to earlier
   messages is left out after the first message that changed.

Sources. Anthropic: "Vision" (General limits), "Citations" and "Search results" (all or none), "Tool search"
(not all tools deferred) in the documentation of the Claude API; errors "Property keys should match pattern"
(top level only) and "image exceeds 5 MB maximum" (of base64). OpenAI: errors "array too long" (128 tools),
"array schema missing items", "'additionalProperties' is required to be supplied and to be false"; "Images and
vision" (500 images). Gemini: error "At most 512 function declarations"; "Image understanding" (3,600 images).
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2s
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.bodies.parameter_fields import checks_reasoning
from nexus_context.conversation.provider_tools import Owner
from nexus_context.conversation.repair import RepairLog, quote_name
from nexus_context.folder.prompt import texts
from nexus_context.tokens import get_model_limits
from nexus_context.tokens.images import image_data, image_size

Schema = dict[str, Any]
Body = dict[str, Any]
Block = dict[str, Any]

MIB = 1024 * 1024


class Rules(NamedTuple):
    """The limits of a format; None means unlimited. `images` applies to models with a window of more than
    SMALL_WINDOW tokens.
    """

    tools: int | None
    images: int
    images_of_small_window: int
    needs_items: bool = False
    checks_keys: bool = False


RULES: Mapping[Owner, Rules] = {
    "anthropic": Rules(tools=None, images=600, images_of_small_window=100, checks_keys=True),
    "openai": Rules(tools=128, images=500, images_of_small_window=500, needs_items=True),
    "openai-responses": Rules(tools=128, images=500, images_of_small_window=500, needs_items=True),
    "gemini": Rules(tools=512, images=3_600, images_of_small_window=3_600, needs_items=True),
}
SMALL_WINDOW = 200_000  # tokens

MOST_DATA = 5 * MIB
"""Characters of an image's base64 for Anthropic."""
LONGEST_EDGE = 8_000  # pixels of an image for Anthropic
FEW_IMAGES = 20
"""With more images than these in a request, Anthropic takes none with an edge above LONGEST_OF_MANY."""
LONGEST_OF_MANY = 2_000  # pixels

_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}", re.ASCII)
_OTHER = re.compile(r"[^a-zA-Z0-9_.-]", re.ASCII)
_LONGEST_KEY = 64
_IN_SCHEMA = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_IN_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_CITED = ("document", "search_result")
_LOOKED_AT = ("image", "image_url", "input_image", *_CITED)
_TEXTS = ("text", "input_text", "output_text")
_NOT_OF_USER = ("assistant", "model", "system", "developer")
_MARKS = ("cache_control", "prompt_cache_breakpoint")

# ---------------------------------------------------------------- schemas


def accepted_schema(
    schema: Schema, provider: Owner, name: str, *, log: RepairLog, encoded: bytes
) -> tuple[Schema, Mapping[str, str]]:
    """Return the schema of a tool as the provider accepts it, and the keys that are sent differently: key →
    sent key.

    `encoded` is the tool's definition as JSON.
    """
    rules = RULES[provider]
    if rules.needs_items and b'"array"' in encoded and _lacks_items(encoded):
        changed = _with_items(schema)
        if changed is not schema:
            text = f"Arrays in the schema of {quote_name(name)} get items of any kind: providers want them."
            log.add("schema-items-added", text, given=name)
        schema = changed
    if not rules.checks_keys or all(map(_KEY.fullmatch, schema["properties"])):
        return schema, {}
    return _with_keys(schema, name, log)


def is_strict_schema(schema: Any, *, all_required: bool) -> bool:
    """Whether each object of a schema allows no additional properties. With `all_required`, each object must
    also require all its properties.
    """
    for part in _parts(schema):
        if part.get("type") != "object" and "properties" not in part:
            continue
        if part.get("additionalProperties") is not False:
            return False
        if all_required and set(part.get("properties") or ()) != set(part.get("required") or ()):
            return False
    return True


def _parts(schema: Any) -> Iterator[Schema]:
    """A schema and all within it; what it has as values (`enum`, `default`) is none."""
    if not isinstance(schema, dict):
        return
    yield schema
    for key in _IN_SCHEMA:
        yield from _parts(schema.get(key))
    for key in _IN_LISTS:
        for part in schema[key] if isinstance(schema.get(key), list) else ():
            yield from _parts(part)
    for key in _BY_NAME:
        for part in schema[key].values() if isinstance(schema.get(key), dict) else ():
            yield from _parts(part)


def _needs_items(schema: Schema) -> bool:
    kind = schema.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return is_array and "items" not in schema


@functools.lru_cache(maxsize=4096)
def _lacks_items(encoded: bytes) -> bool:
    """Whether an array anywhere in a definition lacks items: quick to know for one that was seen before."""
    tool = msgspec.json.decode(encoded)
    function = tool.get("function")
    source = function if isinstance(function, dict) else tool
    return any(_needs_items(part) for value in source.values() for part in _parts(value))


def _with_items(schema: Any) -> Any:
    """A copy of a schema with items in each array."""
    if not isinstance(schema, dict):
        return schema
    copy = schema | ({"items": {}} if _needs_items(schema) else {})
    for key in _IN_SCHEMA:
        if key in copy:
            copy[key] = _with_items(copy[key])
    for key in _IN_LISTS:
        if isinstance(copy.get(key), list):
            copy[key] = [_with_items(part) for part in copy[key]]
    for key in _BY_NAME:
        if isinstance(copy.get(key), dict):
            copy[key] = {name: _with_items(part) for name, part in copy[key].items()}
    return copy if copy != schema else schema


def _with_keys(schema: Schema, name: str, log: RepairLog) -> tuple[Schema, Mapping[str, str]]:
    """The schema with keys that the provider accepts; each that changed is logged."""
    properties = schema["properties"]
    taken = set(filter(_KEY.fullmatch, properties))
    renamed: dict[str, str] = {}
    for key in properties:
        if key in taken:
            continue
        sent_key = _OTHER.sub("_", key)
        if sent_key in taken or not _KEY.fullmatch(sent_key) or not sent_key.strip("_"):
            suffix = "-" + blake2s(key.encode(), digest_size=4).hexdigest()
            sent_key = sent_key[: _LONGEST_KEY - len(suffix)] + suffix
        taken.add(sent_key)
        renamed[key] = sent_key
        text = f"The argument {quote_name(key)} of the tool {quote_name(name)} is sent as {sent_key}."
        log.add("argument-renamed", text, given=key, sent=sent_key)
    changed = schema | {"properties": {renamed.get(key, key): value for key, value in properties.items()}}
    if isinstance(schema.get("required"), list):
        changed["required"] = [renamed.get(key, key) for key in schema["required"]]
    return changed, renamed


# ---------------------------------------------------------------- the finished body


class _PlacedPart(NamedTuple):
    """An image, a document or a search result in a message. `replace` puts another part in its place."""

    message: int
    part: Block
    replace: Callable[[Block], None]


def check_body(form: Owner, body: Body, log: RepairLog, *, model: str = "") -> None:
    """Change the images and citations in the messages of a finished body that the server would refuse.

    `model` is set for Anthropic only. Its window matters, and whether its reasoning is bound to earlier
    messages.
    """
    items = body.get("messages") or body.get("input") or body.get("contents") or ()
    placed_parts = list[_PlacedPart]()
    for index, item in enumerate(items):
        if not isinstance(item.get("content"), str) and item.get("role") not in _NOT_OF_USER:
            _add_places(placed_parts, index, item)
    if not placed_parts:
        return
    images = [placed for placed in placed_parts if not _is_cited(placed)]
    changed = _replace_images(form, images, log, model) if images else []
    if form == "anthropic":
        changed += _cite_all(list(filter(_is_cited, placed_parts)), log)
    if changed and checks_reasoning(model):
        _leave_out_bound(body, min(changed), log)


def _add_places(places: list[_PlacedPart], index: int, holder: Mapping[str, Any]) -> None:
    """Add the images, documents and search results of a message, a result or an item."""
    parts = holder.get("content") or holder.get("parts") or holder.get("output")
    if not isinstance(parts, list):
        return
    for at, part in enumerate(parts):
        kind = part.get("type") if part.__class__ is dict else "text"
        if kind in _TEXTS:
            continue  # nearly always
        if kind == "tool_result":
            _add_places(places, index, part)
        elif "functionResponse" in part:
            _add_places(places, index, part["functionResponse"])
        elif kind in _LOOKED_AT or _is_gemini_image(part):
            places.append(_PlacedPart(index, part, functools.partial(parts.__setitem__, at)))


def _is_gemini_image(part: Block) -> bool:
    file = part.get("inlineData") or part.get("fileData")
    return isinstance(file, dict) and str(file.get("mimeType")).startswith("image/")


def _is_cited(placed: _PlacedPart) -> bool:
    return placed.part.get("type") in _CITED


def _replace_images(form: Owner, images: list[_PlacedPart], log: RepairLog, model: str) -> list[int]:
    """Put texts in place of refused images; returns the messages whose images left for their number."""
    rules = RULES[form]
    remaining, leaving = images, list[_PlacedPart]()
    edges = dict[int, float]()
    if form == "anthropic":
        edges = {id(placed.part): max(image_size(placed.part) or (0,)) for placed in images}
        too_large = [placed for placed in images if _is_too_large(placed, edges)]
        _replace(
            too_large, "image-too-large", "An image is too large for the provider; a text replaces it.", log
        )
        remaining = [placed for placed in images if not _is_too_large(placed, edges)] if too_large else images
    max_images = rules.images_of_small_window
    if len(remaining) > max_images and get_model_limits(model).context_window > SMALL_WINDOW:
        max_images = rules.images
    leaving += remaining[: _in_steps(len(remaining), max_images)]
    _replace(
        leaving,
        "images-over-limit",
        f"The provider takes {max_images} images; texts replace the oldest.",
        log,
    )
    remaining = remaining[len(leaving) :]
    large = [placed for placed in remaining if edges.get(id(placed.part), 0) > LONGEST_OF_MANY]
    if len(remaining) > FEW_IMAGES and large:
        oldest = remaining[: _in_steps(len(remaining), FEW_IMAGES)]
        fewest = large if len(large) <= len(oldest) else oldest
        text = f"With more than {FEW_IMAGES} images the provider takes none above {LONGEST_OF_MANY} pixels; "
        _replace(fewest, "images-over-limit", text + "texts replace some.", log)
        leaving += fewest
    return [placed.message for placed in leaving]


def _is_too_large(placed: _PlacedPart, edges: Mapping[int, float]) -> bool:
    return edges[id(placed.part)] > LONGEST_EDGE or len(image_data(placed.part) or "") > MOST_DATA


def _in_steps(count: int, limit: int) -> int:
    """How many of `count` leave so that at most `limit` stay: whole quarters of `limit`."""
    step = limit // 4
    return -(-max(count - limit, 0) // step) * step


def _replace(placed_parts: list[_PlacedPart], kind: str, text: str, log: RepairLog) -> None:
    for placed in placed_parts:
        form = {"image": "text", "image_url": "text", "input_image": "input_text"}.get(
            placed.part.get("type", "")
        )
        marks = {key: placed.part[key] for key in _MARKS if key in placed.part}
        replacement = {"text": texts.text("part_omitted").format(kind="image")} | marks
        placed.replace(replacement if form is None else {"type": form} | replacement)
        log.add(kind, text)


def _cite_all(cited: list[_PlacedPart], log: RepairLog) -> list[int]:
    """Enable citations of all documents if one has them; returns the messages that it changed."""
    uncited = [placed for placed in cited if not (placed.part.get("citations") or {}).get("enabled")]
    if not uncited or len(uncited) == len(cited):
        return []
    for placed in uncited:
        placed.replace(placed.part | {"citations": {"enabled": True}})
        text = (
            "Citations are enabled for a document without them: the provider wants all of a request, or none."
        )
        log.add("citations-enabled", text)
    return [placed.message for placed in uncited]


def _leave_out_bound(body: Body, first_changed: int, log: RepairLog) -> None:
    """Leave out the reasoning behind a message that changed."""
    for message in body["messages"][first_changed + 1 :]:
        blocks = message["content"]
        kept_blocks = [block for block in blocks if not block["type"].endswith("thinking")]
        if message["role"] == "assistant" and kept_blocks and len(kept_blocks) < len(blocks):
            message["content"] = kept_blocks
            text = "Reasoning is left out where messages before it have changed since."
            log.add("thinking-left-out", text)
