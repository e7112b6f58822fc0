"""Groups models into families that count alike: with the same tokenizer, and the same cost of a tool call and
of an image.

The first family whose pattern matches the beginning of a model's name is that of the model. Each figure has
its source.

1. A tool call with its result costs more than its text: its provider writes ids, types and its own markup
   around both. `call_overhead` is what that adds for a call; a result adds MESSAGE_OVERHEAD as any message.
2. A counter's name includes the family wherever that changes a count: counts are cached and stored by name.
"""

import re
from functools import cache, lru_cache

import msgspec

from nexus_context.tokens.images import (
    FixedFormula,
    GeminiFormula,
    ImageFormula,
    PatchFormula,
    PixelFormula,
    TileFormula,
)

MESSAGE_OVERHEAD = 4  # tokens of role and separators around each message
TOOL_CALL_OVERHEAD = 5  # tokens around each tool call's name and arguments

_CLAUDE_CALL = 72
"""176 sessions of Claude Code with 13,886 answers and the provider's own usage (issue 17): a call with its
result costs 70 to 82 tokens more than their text; 76, minus the overhead of the result's message. With it,
the median error of increments falls from 23 % to 5.7 %.
"""


class Family(msgspec.Struct, frozen=True):
    """How the models of one family are counted. A count is that of `encoding` times `factor`; `label` is part
    of the names of the family's counters.
    """

    name: str
    encoding: str = "o200k_base"
    factor: float = 1.0
    exact: bool = False
    call_overhead: int = TOOL_CALL_OVERHEAD
    # platform.openai.com, guide "Images and vision": gpt-4o, gpt-4.1, gpt-4.5; also for unknown models
    images: ImageFormula = TileFormula(85, 170)
    label: str = ""


DEFAULT = Family("default")


@lru_cache(maxsize=256)  # names come from configurations
def family_of(name: str) -> Family:
    """Return the family of a model. `name` is in lower case and without prefixes (`models.candidates`)."""
    if not name:
        return DEFAULT
    if name.startswith("claude"):
        return _claude(name)
    for pattern, family in _families():
        if re.match(pattern, name):
            return family
    letters = re.match(r"[a-z]+", name)
    return msgspec.structs.replace(DEFAULT, name=letters[0]) if letters else DEFAULT


# tiktoken 0.14.0, tiktoken/model.py: exact names and prefixes, as far as they lead to our two encodings.
# gpt-oss uses o200k_harmony, which differs from o200k_base in special tokens only.
_END = r"(?=[-:@]|$)"
_FINE_TUNED = r"(?:ft:)?"
_O200K = rf"{_FINE_TUNED}(?:gpt-5|chatgpt-4o-|gpt-oss[-:]|(?:o1|o3|o4-mini|gpt-4\.5|gpt-4\.1|gpt-4o){_END})"
_CL100K = rf"{_FINE_TUNED}(?:gpt-4|gpt-3\.5|gpt-3\.5-turbo|gpt-35-turbo){_END}"

_CLAUDE_VERSION = r"-v?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?"
_CLAUDE = Family(  # median error 3.8 %, 95th percentile 12.7 % up to Opus 4.5; 4.6 is taken as the same
    "claude", factor=1.18, call_overhead=_CLAUDE_CALL, images=PixelFormula(1568, 1600), label="Claude"
)
_CLAUDE_47 = Family(  # a new tokenizer since Opus 4.7: 1.45 to 1.53
    "claude-4.7", factor=1.48, call_overhead=_CLAUDE_CALL, images=PixelFormula(2576, 4784), label="Claude"
)


def _claude(name: str) -> Family:
    version = re.search(_CLAUDE_VERSION, name)
    numbers = (int(version[1]), int(version[2] or 0)) if version else None
    is_old = name.startswith("claude-instant") or (numbers is not None and numbers < (4, 7))
    return _CLAUDE if is_old else _CLAUDE_47


@cache
def _families() -> tuple[tuple[str, Family], ...]:
    """Patterns in the order in which they are tried.

    Factors were measured against counts that the vendors' own APIs returned, on code and prose. Sources of
    the formulas of images: platform.claude.com, "Vision" (a longest edge of 1,568 pixels and about 1,600
    tokens; from Opus 4.7 on 2,576 pixels and 4,784 tokens); platform.openai.com, "Images and vision" (tiles;
    patches up to 1,536, times a factor); ai.google.dev, "Understand and count tokens" (258 per tile) and
    "Media resolution" (1,120 per image from Gemini 3 on). From gpt-5.2 on, OpenAI's tokens grow as the
    patches times 1.2, up to the 10,000 patches of `detail: original` (measured by users in 2026).
    """

    def openai(name: str, images: ImageFormula) -> Family:
        return Family(name, exact=True, images=images, label=name)

    exact = Family("gpt-4o", exact=True)
    patches = PatchFormula(10_000, 120)
    return (
        # 1.1 to 1.2; less for Chinese, Japanese and Korean
        (r"gemini-[12](?!\d)", Family("gemini", factor=1.15, images=GeminiFormula(), label="Gemini")),
        (r"gemini", Family("gemini-3", factor=1.15, images=FixedFormula(1120), label="Gemini 3")),
        (rf"{_FINE_TUNED}gpt-4o-mini", openai("gpt-4o-mini", TileFormula(2833, 5667))),
        (rf"{_FINE_TUNED}gpt-(?:4\.1|5|5\.1-codex)-mini{_END}", openai("gpt-mini", PatchFormula(1536, 162))),
        (rf"{_FINE_TUNED}gpt-(?:4\.1|5)-nano{_END}", openai("gpt-nano", PatchFormula(1536, 246))),
        (rf"{_FINE_TUNED}o4-mini", openai("o4-mini", PatchFormula(1536, 172))),
        (rf"{_FINE_TUNED}o[13]{_END}", openai("o1", TileFormula(75, 150))),
        (r"gpt-oss", Family("gpt-oss", exact=True)),
        (rf"{_FINE_TUNED}gpt-5(?:\.1)?{_END}", openai("gpt-5", TileFormula(70, 140))),
        (rf"{_FINE_TUNED}gpt-5\.", openai("gpt-5.2", patches)),
        (_O200K, exact),
        (_CL100K, Family("gpt-4", encoding="cl100k_base", exact=True)),
        (r"gpt-[6-9]", Family("gpt-6", images=patches, label="gpt-6")),
    )
