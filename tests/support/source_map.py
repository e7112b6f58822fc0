"""The look-up in the prompt's source map: which character of which file a character came from."""

from bisect import bisect_right
from collections.abc import Mapping

from nexus_context.errors import Span
from nexus_context.folder.prompt.render import Fragment, Prompt, tiled
from nexus_context.folder.prompt.sections import skill_bodies
from nexus_context.folder.request_prompt import active_skills
from nexus_context.folder.snapshot import Snapshot


def skill_texts(snapshot: Snapshot, *names: str) -> Prompt:
    """The texts of these skills alone, as a prompt has them."""
    return tiled(skill_bodies(snapshot.layers, active_skills(snapshot, names)))


def fragment_at(prompt: Prompt, offset: int) -> Fragment | None:
    """The fragment that holds the character at an offset of the prompt."""
    index = bisect_right(prompt.fragments, offset, key=lambda fragment: fragment.span.start) - 1
    if index < 0 or offset >= prompt.fragments[index].span.end:
        return None
    return prompt.fragments[index]


def source_at(prompt: Prompt, offset: int, file_texts: Mapping[str, str]) -> tuple[str, int] | None:
    """The file and the offset in its text that a character of the prompt came from; None if from no file.

    `file_texts` are the texts by path that the prompt was made of (`Layers.texts`).
    """
    fragment = fragment_at(prompt, offset)
    if fragment is None or fragment.path is None:
        return None
    source = fragment.source
    if not fragment.verbatim:
        return fragment.path, source.start
    distance = offset - fragment.span.start
    if source.end - source.start == fragment.span.end - fragment.span.start:
        return fragment.path, source.start + distance
    return fragment.path, _skip(file_texts.get(fragment.path, ""), source, distance)


def _skip(text: str, source: Span, distance: int) -> int:
    """Offset after `distance` characters of a source range, `\\r\\n` counting as one."""
    offset = source.start
    while distance > 0:
        end = text.find("\r\n", offset, source.end)
        if end < 0 or end - offset >= distance:
            return min(offset + distance, source.end)
        distance -= end - offset + 1
        offset = end + 2
    return offset
