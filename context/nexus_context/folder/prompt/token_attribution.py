"""Counts what each fragment of a prompt costs, each file, each SKILL.md, and each kind of text.

1. The tokens of the fragments sum exactly to those of the prompt.
2. The text of a file costs the same wherever it stands: its estimate is rounded down separately. The prompt's
   tokens that this rounding leaves over go to the text of no layer, in proportion.
3. A SKILL.md costs, in every request, its line of the index; its text only where the request activates the
   skill. Both are fragments of the section `skills`.
4. Text in files of the layers, or from the request, belongs to the user; headings, paths and separators
   around it are Nexus's own, as are the instructions that it ships.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from nexus_context.folder.layers.layer_types import DEFAULTS
from nexus_context.folder.prompt.blocks import OWN_TEXTS
from nexus_context.folder.prompt.render import Fragment, Prompt
from nexus_context.tokens import TokenCounter, part_tokens, span_units, whole_tokens

PromptPart = Literal["instructions", "skills", "tools", "nexus"]
PARTS: tuple[PromptPart, ...] = ("instructions", "skills", "tools", "nexus")

RowKey = tuple[str, str | None, str, str | None]


def row_key(fragment: Fragment) -> RowKey:
    """Return the key of a fragment's row in a usage: section, layer, title and, for a layer's text, path.

    The fragments of a row are rounded together.
    """
    path = fragment.path if fragment.layer else None
    return fragment.section, fragment.layer, fragment.title, path


@lru_cache(maxsize=32)
def fragment_tokens(prompt: Prompt, counter: TokenCounter) -> tuple[int, ...]:
    """Return the tokens of each fragment. Their sum is the count of the text.

    Cached, since each request needs them.
    """
    units = fragment_units(prompt, counter)
    tokens = [0] * len(units)
    sums: dict[RowKey, int] = {}
    for index, (fragment, added) in enumerate(zip(prompt.fragments, units, strict=True)):
        if fragment.layer is not None:
            key = row_key(fragment)
            sum_before = sums.get(key, 0)
            sum_after = sums[key] = sum_before + added
            tokens[index] = part_tokens(counter, sum_after) - part_tokens(counter, sum_before)
    remaining_tokens = whole_tokens(counter, sum(units)) - sum(tokens)
    for index, share in _in_proportion(prompt, units, remaining_tokens):
        tokens[index] += share
    return tuple(tokens)


@lru_cache(maxsize=32)
def fragment_units(prompt: Prompt, counter: TokenCounter) -> tuple[int, ...]:
    """Return the units of each fragment, before rounding (`tokens.span_units`)."""
    cuts = [0, *(fragment.span.end for fragment in prompt.fragments)]
    return span_units(counter, prompt.text, cuts) if prompt.fragments else ()


def tokens_by_path(prompt: Prompt, counter: TokenCounter) -> dict[str, int]:
    """Return the tokens in the prompt by path of the user's files. A file's imports count separately."""
    tokens: dict[str, int] = {}
    for fragment, count in zip(prompt.fragments, fragment_tokens(prompt, counter), strict=True):
        path = fragment.path
        if path is not None and not path.startswith(OWN_TEXTS):
            tokens[path] = tokens.get(path, 0) + count
    return tokens


def tokens_by_part(prompt: Prompt, counter: TokenCounter) -> dict[PromptPart, int]:
    """Return the tokens of each kind of text, in the order of `PARTS`. Their sum is the prompt's count."""
    tokens = dict.fromkeys(PARTS, 0)
    for fragment, count in zip(prompt.fragments, fragment_tokens(prompt, counter), strict=True):
        tokens[part_of(fragment)] += count
    return tokens


def part_of(fragment: Fragment) -> PromptPart:
    """Return the kind of text that a fragment is (rule 4)."""
    section, layer, path, source = fragment.section, fragment.layer, fragment.path, fragment.source
    if path is None:  # the request's own
        parts: dict[str, PromptPart] = {
            "additional": "instructions",
            "subagent": "instructions",
            "tools": "tools",
        }
        return parts.get(section, "nexus")
    if path.startswith(OWN_TEXTS) or source.start == source.end or layer == DEFAULTS:
        return "nexus"
    if section == "mcp":
        return "tools"
    if layer is None:  # a setting that Nexus passes on to the model
        return "nexus"
    return "skills" if section == "skills" else "instructions"


def _in_proportion(prompt: Prompt, units: tuple[int, ...], tokens: int) -> Iterator[tuple[int, int]]:
    """Divide `tokens` among the fragments of no layer, in proportion to their units.

    If there are no such fragments, the last fragment gets them.
    """
    indexes = [
        index for index, fragment in enumerate(prompt.fragments) if fragment.layer is None and units[index]
    ]
    total_units = sum(units[index] for index in indexes)
    units_before = 0
    for index in indexes:
        units_after = units_before + units[index]
        yield index, tokens * units_after // total_units - tokens * units_before // total_units
        units_before = units_after
    if not indexes and prompt.fragments:
        yield len(prompt.fragments) - 1, tokens
