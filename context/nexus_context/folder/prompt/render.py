"""Renders the system prompt of a folder, with its source map.

1. Sections stand by priority, high first; equal ones in the order below, custom ones after them.
2. Fragments tile the text: no gap, no overlap, none empty. A separator belongs to what stands before it.
3. Line ends are `\\n`. A verbatim fragment with fewer characters than its source has `\\r\\n` there:
   a file with such line ends needs no fragment for each line.
4. Equal inputs give equal bytes: no clock and no state of the work is read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from nexus_context.errors import Span
from nexus_context.folder.layers.layer_types import Layers
from nexus_context.folder.prompt import sections
from nexus_context.folder.prompt.environment import Environment
from nexus_context.folder.prompt.gather import PromptContents
from nexus_context.folder.prompt.sections import NO_FACTS, Part, PromptFacts
from nexus_context.folder.prompt.texts import unix_lines

OWN = 20_000  # of an agent below others: before everything that it inherits
AGENT = 1000
PERSONA = 900
CONTEXT = 800
LAYERED = 700
CAPABILITIES = 600
SKILLS = 500
TOOLS = 400
ADDITIONAL = 300
ENVIRONMENT = 200
ROLE = 150
DATE = 100

_SURROGATE = re.compile("[\ud800-\udfff]")


class Fragment(msgspec.Struct, frozen=True):
    """A range of the prompt and where it came from.

    `section` is the kind of a bootstrap file (agent, soul, identity, user-identity, context), or layers,
    capabilities, skills, tools, additional, environment, active, mcp, date, custom, subagent (what an agent
    has of its own, and of those between it and the folder) or role. `title` is its heading. `path` is None
    for text of the request. `source` is a range of the file's text. If `verbatim`, the prompt's text is that
    range with its line ends as `\\n`. Otherwise it is made from what stands there, and an empty range stands
    for a place or the file as a whole.
    """

    section: str
    layer: str | None
    title: str
    span: Span
    path: str | None
    source: Span
    verbatim: bool = False


class Prompt(msgspec.Struct, frozen=True):
    """The system prompt. `fragments` cover all of `text`, in order and without overlap."""

    text: str
    fragments: tuple[Fragment, ...]


def render(
    layers: Layers, contents: PromptContents, *, environment: Environment, facts: PromptFacts = NO_FACTS
) -> Prompt:
    """Render the prompt of the layers. It holds the date only with `datetime.placement = system`.

    Raises RequestError for an active skill that does not exist or is left out.
    """
    effective = layers.effective
    surroundings = [
        sections.environment(layers.folder, environment),
        sections.active(effective, facts),
        sections.mcp_servers(layers.servers, contents),
    ]
    base = sections.folder_files(contents)
    weighted = [
        *((OWN, group) for group in sections.agent_configurations(contents)),
        (AGENT, sections.bootstrap(base, "agent")),
        (PERSONA, sections.bootstrap(base, "soul", "identity", "user-identity")),
        (CONTEXT, sections.bootstrap(base, "context")),
        (LAYERED, sections.layered(base)),
        (CAPABILITIES, sections.capabilities(layers, contents, facts)),
        (SKILLS, sections.skills(layers, facts)),
        (TOOLS, sections.tool_summary(facts.tools) if effective.get("/tools/summary") else []),
        (ADDITIONAL, sections.additional(facts.additional)),
        (ENVIRONMENT, sections.join_groups(surroundings, "\n\n")),
        (ROLE, sections.agent_role(contents.grant)),
        (DATE, sections.date(effective, facts.now, facts.timezone)),
        *((section.priority, sections.custom(section)) for section in contents.sections),
    ]
    weighted.sort(key=lambda section: -section[0])
    separator = unix_lines(str(effective.get("/context/section_separator")))
    return tiled(sections.join_groups((parts for _, parts in weighted), separator))


def tiled(parts: Sequence[Part]) -> Prompt:
    """Join the texts of parts in order, with the fragments that tile the text."""
    fragments: list[Fragment] = []
    texts: list[str] = []
    start = 0
    for section, layer, title, pieces in parts:
        for text, path, source, verbatim in pieces:
            if not text:
                continue
            end = start + len(text)
            last_fragment = fragments[-1] if fragments else None
            fragment = Fragment(
                section, layer, title, Span(start, end), path=path, source=source, verbatim=verbatim
            )
            joined = (
                _joined(last_fragment, fragment)
                if last_fragment is not None and last_fragment.path == path
                else None
            )
            if joined is None:
                fragments.append(fragment)
            else:
                fragments[-1] = joined
            texts.append(text)
            start = end
    text = "".join(texts)
    if not text.isascii():
        # a path or name that is not Unicode; one character for one keeps the spans
        text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
    return Prompt(text, tuple(fragments))


def places_of(prompt: Prompt, path: str, offset: int, file_texts: Mapping[str, str]) -> Iterator[int]:
    """Yield the prompt's offsets of a character of a file that stands there verbatim.

    `offset` is that of the character in the file.
    """
    for fragment in prompt.fragments:
        source = fragment.source
        if fragment.path != path or not fragment.verbatim or not source.start <= offset < source.end:
            continue
        distance = offset - source.start
        if _length(source) != _length(fragment.span):
            distance -= file_texts.get(path, "").count("\r\n", source.start, offset)
        yield min(fragment.span.start + distance, fragment.span.end - 1)


def _length(span: Span) -> int:
    return span.end - span.start


def _joined(before: Fragment, after: Fragment) -> Fragment | None:
    """One fragment for two that are adjacent in a file or stand for the same place; else None."""
    if before.verbatim != after.verbatim or before.title != after.title or before.section != after.section:
        return None
    source = before.source
    if after.verbatim and source.end == after.source.start:
        source = Span(source.start, after.source.end)
    elif after.verbatim or source != after.source:
        return None
    span = Span(before.span.start, after.span.end)
    return msgspec.structs.replace(after, span=span, source=source)
