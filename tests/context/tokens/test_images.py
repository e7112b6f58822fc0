"""What images cost, by each provider's formula, and their sizes from their bytes."""

import base64
import struct
import zlib
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexus_context.tokens import count_message, counter_for
from nexus_context.tokens.families import family_of
from nexus_context.tokens.images import MOST_READ, Size, image_size


def check(model: str, width: int, height: int, *, low_detail: bool = False) -> int:
    """The tokens of an image of this size, for a model."""
    return family_of(model).images.tokens(Size(width, height), low_detail=low_detail)


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        # platform.claude.com, "Vision": sizes that are not scaled, and the maximum of about 1,600
        ("claude-sonnet-4", 200, 200, 54),
        ("claude-sonnet-4", 1000, 1000, 1334),
        ("claude-sonnet-4", 1092, 1092, 1590),
        ("claude-sonnet-4", 1568, 300, 628),
        ("claude-sonnet-4", 3136, 600, 628),  # half of it, because of the longest edge
        ("claude-sonnet-4", 8000, 8000, 1600),
        ("claude-sonnet-4", 1, 1, 1),
        ("claude-opus-4-7", 2000, 1500, 4000),
        ("claude-opus-4-7", 2576, 1449, 4784),
        ("claude-opus-4-7", 8000, 8000, 4784),
        # platform.openai.com, "Images and vision": the guide's own examples
        ("gpt-4o", 1024, 1024, 765),
        ("gpt-4o", 2048, 4096, 1105),
        ("gpt-4o", 512, 512, 255),
        ("gpt-4o", 1, 1, 255),
        ("gpt-5", 1024, 1024, 70 + 4 * 140),
        ("o3", 1024, 1024, 75 + 4 * 150),
        ("gpt-4o-mini", 1024, 1024, 2833 + 4 * 5667),
        ("gpt-4.1-mini", 1024, 1024, 1659),  # 1,024 patches × 1.62
        ("gpt-4.1-mini", 1800, 2400, 2353),  # scaled to 1,452 patches
        ("o4-mini", 1800, 2400, 2498),
        ("gpt-6.1-sol", 2048, 1365, 3303),  # 64 × 43 patches × 1.2
        ("gpt-6.1-sol", 90_000, 60_000, 11_859),
        # ai.google.dev, "Understand and count tokens"
        ("gemini-2.5-pro", 384, 384, 258),
        ("gemini-2.5-pro", 385, 384, 258),
        ("gemini-2.5-pro", 769, 768, 516),
        ("gemini-2.5-pro", 960, 540, 516),
        ("gemini-2.5-pro", 30_720, 30_720, 16 * 258),
        ("gemini-3.8-flash", 10, 10_000, 1120),
        ("deepseek-chat", 1024, 1024, 765),
    ],
)
def test_formulas(model: str, width: int, height: int, tokens: int) -> None:
    assert check(model, width, height) == tokens
    assert check(model, height, width) == tokens


@pytest.mark.parametrize(
    ("model", "unknown", "low"),
    [
        ("claude-sonnet-4", 1600, 1334),
        ("claude-opus-4-7", 4784, 1334),
        ("gpt-4o", 85 + 8 * 170, 85),
        ("gpt-5", 70 + 8 * 140, 70),
        ("gpt-4.1-nano", 3779, 2460),  # 1,000 × 1,000: 32 × 32 patches, scaled by nothing
        ("gemini-2.5-pro", 16 * 258, 4 * 258),
        ("gemini-3.8-flash", 1120, 1120),
    ],
)
def test_unknown_sizes_count_as_the_largest_and_low_detail_is_openais(
    model: str, unknown: int, low: int
) -> None:
    formula = family_of(model).images
    assert formula.tokens(None, low_detail=False) == unknown
    if model == "gpt-4.1-nano":
        low = -(-1024 * 246 // 100)
    assert check(model, 1000, 1000, low_detail=True) == low


SIDES = st.integers(1, 100_000)
MODELS = st.sampled_from(
    ["claude-sonnet-4", "claude-opus-4-7", "gpt-4o", "gpt-4.1-mini", "gpt-6.1-sol", "gemini-2.5-pro"]
)


@given(MODELS, SIDES, SIDES)
@example("gemini-2.5-pro", 3733, 4976)  # scaled to 3072.0000000000005: no fifth tile
def test_no_image_costs_more_than_an_unknown_one(model: str, width: int, height: int) -> None:
    most = family_of(model).images.tokens(None, low_detail=False)
    assert 1 <= check(model, width, height) <= most


# ---------------------------------------------------------------- sizes from bytes


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x00\x00\x00" + b"\x00" * 40


def jpeg(width: int, height: int, *, profile: int = 0) -> bytes:
    """`profile`: bytes of metadata before the size."""
    segments = b""
    while profile > 0:
        part = min(profile, 60_000)
        segments += b"\xff\xe2" + struct.pack(">H", part + 2) + b"\x00" * part
        profile -= part
    frame = b"\xff\xc0" + struct.pack(">HBHHB", 17, 8, height, width, 3) + b"\x01\x11\x00" * 3
    return b"\xff\xd8" + segments + frame + b"\xff\xd9"


def webp(width: int, height: int) -> bytes:
    chunk = struct.pack("<I", 0) + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<I", 10) + chunk
    return b"RIFF" + struct.pack("<I", len(body)) + body


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


PNG = encoded(png(640, 480) + b"\x00" * 5_000)


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "data": PNG},
        {"type": "image", "data": encoded(gif(640, 480))},
        {"type": "image", "data": encoded(jpeg(640, 480))},
        {"type": "image", "data": encoded(jpeg(640, 480, profile=10_000))},
        {"type": "image", "data": encoded(jpeg(640, 480, profile=300_000))},
        {"type": "image", "data": encoded(webp(640, 480))},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "image", "url": f"DATA:image/png;base64,{PNG}"},
        {"type": "resource", "resource": {"mimeType": "image/png", "blob": PNG}},
        {"type": "image", "data": PNG, "width": 5, "height": 5},  # the bytes are what the provider sees
        {"type": "image", "url": "https://example.com/a.png", "width": 640, "height": 480},
    ],
)
def test_the_size_is_read_in_every_form(part: dict[str, Any]) -> None:
    assert image_size(part) == (640, 480)
    assert count_message(counter_for("claude-sonnet-4"), [part]) == 4 + 410


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image"},
        {"type": "image", "data": ""},
        {"type": "image", "data": "iVBORw0KGgo" * 1000},
        {"type": "image", "data": PNG[:20]},
        {"type": "image", "data": encoded(png(0, 480))},
        {"type": "image", "data": encoded(b"\xff\xd8\xff" + b"\xff" * 5_000)},
        {"type": "image", "data": encoded(jpeg(640, 480, profile=MOST_READ))},
        {"type": "image", "data": encoded(b"<svg width='640' height='480'/>")},
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "image", "width": 640, "height": float("nan")},
        {"type": "image", "width": -640, "height": 480},
        {"type": "image", "width": True, "height": 480},
        {"type": "image_url", "image_url": {"url": "data:image/png,abc"}},
    ],
)
def test_an_unreadable_size_counts_as_the_largest(part: dict[str, Any]) -> None:
    assert image_size(part) is None
    assert count_message(counter_for("claude-sonnet-4"), [part]) == 4 + 1600


@given(st.sampled_from([png(9, 9), gif(9, 9), jpeg(9, 9), webp(9, 9)]), st.binary(max_size=60))
def test_hostile_bytes_never_raise(start: bytes, rest: bytes) -> None:
    for cut in range(3, len(start), 5):
        size = image_size({"type": "image", "data": encoded(start[:cut] + rest)})
        assert size is None or min(size) >= 1
