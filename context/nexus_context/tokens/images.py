"""Computes what an image costs by its provider's formula, and reads the size of an image from the first bytes
of its data.

1. The size is read from the header of a PNG, JPEG, GIF or WebP, because the provider sees what the bytes say.
   Only if it cannot be read there, the part's `width` and `height` count.
2. An image whose size is unknown, for example behind a URL, counts as the largest image that the provider
   takes, because a budget must not be too small.
3. No more than MOST_READ bytes are decoded, and nothing raises, whatever the data is.
"""

import binascii
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import msgspec

from nexus_context.tokens.estimates import IMAGE_HOLDERS

MOST_READ = 1 << 20
"""Bytes at the beginning of an image in which its size is searched: JPEG may have profiles before it."""

_FIRST_READ = 3 << 10  # enough for every format but JPEG with a profile
_HEADS = ("iVBORw0KGg", "/9j/", "R0lGOD", "UklGR")  # PNG, JPEG, GIF, WebP in base64
_PATCH = 32  # pixels
_TILE = 512  # pixels


class Size(NamedTuple):
    """Width and height in pixels, both at least 1."""

    width: float
    height: float


class ImageFormula(Protocol):
    """Computes the tokens of an image as one provider does."""

    def tokens(self, size: Size | None, *, low_detail: bool) -> int:
        """Return the tokens of an image of this size. `size` is None if it is unknown."""
        ...


class PixelFormula(msgspec.Struct, frozen=True):
    """Anthropic's formula: width × height / 750, after the image is scaled down to a longest edge and a
    maximum of tokens.
    """

    longest_edge: int  # pixels
    most: int  # tokens
    pixels_per_token: int = 750

    def tokens(self, size: Size | None, *, low_detail: bool) -> int:  # noqa: ARG002 - there is one detail
        if size is None:
            return self.most
        scale = min(1.0, self.longest_edge / max(size))
        pixels = (size.width * scale) * (size.height * scale)
        return min(max(math.ceil(pixels / self.pixels_per_token), 1), self.most)


def _tiles(length: float, side: int) -> int:
    """How many tiles of a side cover a length. 4 × 768 may be scaled to a little more than that."""
    return math.ceil(round(length / side, 6))


class TileFormula(msgspec.Struct, frozen=True):
    """OpenAI's formula with tiles: a base cost, and a cost for each tile of 512 × 512 pixels.

    The image is scaled to fit 2048 × 2048 first, then to a shortest side of 768. Low detail costs the base.
    """

    base: int  # tokens
    tile: int  # tokens

    def tokens(self, size: Size | None, *, low_detail: bool) -> int:
        if low_detail:
            return self.base
        width, height = size or Size(2048, 768)
        scale = min(1.0, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        tiles = _tiles(width * scale, _TILE) * _tiles(height * scale, _TILE)
        return self.base + self.tile * tiles


class PatchFormula(msgspec.Struct, frozen=True):
    """OpenAI's formula with patches: it counts the patches of 32 × 32 pixels that cover the image, after
    scaling it down to a maximum of patches.
    """

    most: int  # patches
    percent: int = 100  # tokens of a hundred patches

    def tokens(self, size: Size | None, *, low_detail: bool) -> int:  # noqa: ARG002 - low is not cheaper
        patches = self.most if size is None else min(self._patches(size), self.most)
        return -(-patches * self.percent // 100)

    def _patches(self, size: Size) -> int:
        width, height = size
        patches = math.ceil(width / _PATCH) * math.ceil(height / _PATCH)
        if patches <= self.most:
            return patches
        scale = math.sqrt(_PATCH * _PATCH * self.most / (width * height))
        columns, rows = width * scale / _PATCH, height * scale / _PATCH
        shrink = min(math.floor(columns) / columns, math.floor(rows) / rows) or 1.0
        return _tiles(columns * shrink, 1) * _tiles(rows * shrink, 1)


class GeminiFormula(msgspec.Struct, frozen=True):
    """The formula of Gemini before version 3: 258 tokens for an image up to 384 × 384 pixels, else 258 for
    each tile of 768 × 768.
    """

    tile: int = 258  # tokens
    longest_edge: int = 3072  # pixels

    def tokens(self, size: Size | None, *, low_detail: bool) -> int:  # noqa: ARG002 - there is one detail
        width, height = size or Size(self.longest_edge, self.longest_edge)
        if max(width, height) <= 384:
            return self.tile
        scale = min(1.0, self.longest_edge / max(width, height))
        return self.tile * _tiles(width * scale, 768) * _tiles(height * scale, 768)


class FixedFormula(msgspec.Struct, frozen=True):
    """Gives every image the same number of tokens."""

    each: int  # tokens

    def tokens(self, size: Size | None, *, low_detail: bool) -> int:  # noqa: ARG002 - by definition
        return self.each


def image_tokens(formula: ImageFormula, part: Mapping[str, Any]) -> int:
    """Return the tokens of a content part that is an image."""
    nested = part.get("image_url")
    detail = part.get("detail", nested.get("detail") if isinstance(nested, Mapping) else None)
    return formula.tokens(image_size(part), low_detail=detail == "low")


def image_size(part: Mapping[str, Any]) -> Size | None:
    """Return the size of an image part: read from its data, else from its `width` and `height`. Return None
    if both are missing.
    """
    data = image_data(part)
    size = None if data is None else _read_size(data)
    return size or _stated(part.get("width"), part.get("height"))


def image_data(part: Mapping[str, Any]) -> str | None:
    """Return the base64 data of an image part in any provider's form, or from a data URL. Return None if the
    part has no data.
    """
    for holder in (part.get("source"), part, *map(part.get, IMAGE_HOLDERS)):
        if isinstance(holder, Mapping):
            for key in ("data", "blob"):
                if isinstance(holder.get(key), str):
                    return str(holder[key])
    link = part.get("image_url", part.get("url"))
    url = link.get("url") if isinstance(link, Mapping) else link
    if isinstance(url, str) and url[:5].lower() == "data:":
        start = url.find(";base64,", 0, 200)
        return url[start + len(";base64,") :] if start >= 0 else None
    return None


def _read_size(data: str) -> Size | None:
    if not data.startswith(_HEADS):
        return None
    for length in (_FIRST_READ, 64 << 10, MOST_READ):
        if size := _size_in(data[: length // 3 * 4]):
            return size
        if length // 3 * 4 >= len(data):
            break
    return None


def _size_in(data: str) -> Size | None:
    """The size in the beginning of an image; None if it lies behind that, or if the data is damaged."""
    import io

    import imagesize  # imports urllib and an XML parser: only for conversations with images

    try:
        head = binascii.a2b_base64(data[: len(data) // 4 * 4])
        width, height = imagesize.get(io.BytesIO(head), exif_rotation=False)
    except Exception:  # noqa: BLE001 - hostile bytes: the library raises whatever its parser meets
        return None
    return _stated(width, height)


def _stated(width: object, height: object) -> Size | None:
    sides = [side for side in (width, height) if isinstance(side, int | float) and not isinstance(side, bool)]
    if len(sides) < 2 or not all(1 <= side < _LARGEST for side in sides):
        return None
    return Size(*sides)


_LARGEST = 1 << 31  # pixels; formats allow no more
