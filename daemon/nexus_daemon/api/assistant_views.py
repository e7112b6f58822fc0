"""Show another assistant's profile as the preview, the usage and the layers of a folder.

1. The preview shows those texts of the request that hold files. A heading line above each text names its
   file; that line is not sent and costs nothing.
2. The usage counts these texts, and the assistant's own prompt and tools as its version sends them from an
   empty repository. If the size of the prompt and tools is not known, the usage counts these texts alone.
3. A layer is one scope of the profile in one directory: the user's, a parent's, the project's.
"""

import os
from collections.abc import Iterator
from typing import Literal, get_args

import msgspec

from nexus_context.assistants.reading.profile_types import Profile, Scope, SentBlock, SentPart
from nexus_context.conversation import budget
from nexus_context.errors import Span
from nexus_context.tokens import count_spans, counter_for, get_model_limits
from nexus_daemon import protocol
from nexus_daemon.lsp import convert
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.sessions import results

PLACES = {"system": "the system prompt", "user": "the first user message", "developer": "a developer message"}
_KINDS = {"instructions": "instructions", "skills": "skill", "agents": "agent"}
_PARTS: dict[str, Literal["instructions", "skills"]] = {
    "instructions": "instructions",
    "skills": "skills",
    "agents": "skills",
}
_ORDER = get_args(Scope)


class _Stretch(msgspec.Struct, frozen=True):
    """Text of a block: of a file, where `path` says so, else of the assistant."""

    text: str
    part: SentPart
    path: str | None = None


# ---------------------------------------------------------------- preview


def build_preview(profile: Profile, locate: Locator, revision: int) -> protocol.Preview:
    """Build the preview: the texts of the request that hold files, with the source of every character."""
    fragments: list[tuple[protocol.Fragment, Span]] = []
    texts: list[str] = []
    offset = 0
    for block in profile.blocks:
        heading = _heading(block, is_first=not texts)
        fragments.append((_heading_fragment(profile, heading), Span(offset, offset + len(heading))))
        texts.append(heading)
        offset += len(heading)
        for stretch, tokens in _counted(profile, block):
            span = Span(offset, offset + len(stretch.text))
            fragments.append((_fragment(profile, block, stretch, tokens=tokens, locate=locate), span))
            texts.append(stretch.text)
            offset = span.end
    text = "".join(texts)
    return protocol.Preview(
        revision=revision,
        text=text,
        fragments=[
            msgspec.structs.replace(fragment, range=locate.range_in(text, span))
            for fragment, span in fragments
        ],
        tokens=profile.total,
    )


def _heading(block: SentBlock, *, is_first: bool) -> str:
    addition = "" if block.complete else "; the assistant adds text of its own"
    return f"{'' if is_first else chr(10) * 2}── {block.kind}, in {PLACES[block.place]}{addition} ──\n\n"


_NOWHERE = protocol.Range(protocol.Position(0, 0), protocol.Position(0, 0))


def _heading_fragment(profile: Profile, heading: str) -> protocol.Fragment:
    return protocol.Fragment(
        section="heading",
        layer=None,
        title=f"{profile.assistant.title}: {heading.strip(' ─' + chr(10))}",
        range=_NOWHERE,
        source=None,
        tokens=0,
        verbatim=False,
    )


def _counted(profile: Profile, block: SentBlock) -> Iterator[tuple[_Stretch, int]]:
    """The stretches of a block with their tokens, which sum to those of the block."""
    stretches = [stretch for part in block.parts for stretch in _stretches(part)]
    cuts = [0]
    for stretch in stretches:
        cuts.append(cuts[-1] + len(stretch.text))
    counts = count_spans(counter_for(profile.assistant.model), block.text, cuts)
    yield from zip(stretches, counts, strict=True)


def _stretches(part: SentPart) -> Iterator[_Stretch]:
    start, end = (part.content.start, part.content.end) if part.path is not None else (0, 0)
    for text, path in ((part.text[:start], None), (part.text[start:end], part.path), (part.text[end:], None)):
        if text:
            yield _Stretch(text, part, path)


def _fragment(
    profile: Profile, block: SentBlock, stretch: _Stretch, *, tokens: int, locate: Locator
) -> protocol.Fragment:
    file = profile.texts.get(stretch.path or "") or ""
    offset = file.find(stretch.text) if stretch.path is not None else -1
    source = None
    if stretch.path is not None:
        source = locate.location(
            stretch.path, Span(offset, offset + len(stretch.text)) if offset >= 0 else Span(0, 0)
        )
    return protocol.Fragment(
        section=block.kind,
        layer=None if stretch.path is None else stretch.part.scope,
        title=profile.assistant.title if stretch.path is None else profile.shorten(stretch.path),
        range=_NOWHERE,
        source=source,
        tokens=tokens,
        verbatim=offset >= 0,
    )


# ---------------------------------------------------------------- usage


def build_usage(profile: Profile, locate: Locator) -> protocol.TokenUsage:
    """Count the tokens that every request has before the conversation begins."""
    tokens_by_kind: dict[Literal["instructions", "skills", "program"], int] = {}
    for block in profile.blocks:
        kind = _PARTS[block.kind]
        tokens_by_kind[kind] = tokens_by_kind.get(kind, 0) + sum(part.tokens for part in block.parts)
    if profile.own_tokens is not None:
        tokens_by_kind["program"] = profile.own_tokens
    token_usage = budget.usage(
        get_model_limits(profile.assistant.model),
        counter_for(profile.assistant.model),
        _rows(profile),
        max_tokens=None,
        reserved=0,
        parts=[
            budget.UsagePart(kind, tokens, profile.exact and kind != "program")
            for kind, tokens in tokens_by_kind.items()
        ],
    )
    return results.usage(token_usage, locate)


def _rows(profile: Profile) -> Iterator[budget.UsageRow]:
    surrounding_tokens = 0
    for part in profile.parts:
        if part.path is None:
            surrounding_tokens += part.tokens
            continue
        label = profile.shorten(part.path)
        if part.importer is not None:
            label = f"{profile.shorten(part.importer)}: {label}"
        yield budget.UsageRow("system", label, part.tokens, profile.exact, path=part.path, span=Span(0, 0))
    title = profile.assistant.title
    if surrounding_tokens:
        yield budget.UsageRow(
            "system", f"text of {title} around the files", surrounding_tokens, profile.exact
        )
    if profile.own_tokens is not None:
        label = f"prompt and tools of {title} {profile.assistant.version}"
        yield budget.UsageRow("system", label, profile.own_tokens, exact=False)


# ---------------------------------------------------------------- layers


def build_layers(profile: Profile, locate: Locator, revision: int) -> protocol.LayersResult:
    """Build the layers: the files by scope and directory, the files that are not read, and the problems."""
    layers: dict[tuple[str, str], list[protocol.LayerFile]] = {}
    for block in profile.blocks:
        for part in block.parts:
            if part.path is not None and part.scope not in ("skill", "agent"):
                layers.setdefault(_layer_of(part.path, part.scope, profile), []).append(
                    _sent_file(profile, block, part, locate)
                )
    for later_file in profile.later:
        file = protocol.LayerFile(
            _KINDS.get(f"{later_file.scope}s", "instructions"),
            locate.uri(later_file.path),
            "conditional",
            tokens=later_file.tokens,
            reason=f"Sent {later_file.when}.",
        )
        layers.setdefault(_layer_of(later_file.path, later_file.scope, profile), []).append(file)
    return protocol.LayersResult(
        revision=revision,
        layers=[
            protocol.Layer(
                name, directory, files, sum(file.tokens or 0 for file in files if file.status == "loaded")
            )
            for (name, directory), files in sorted(layers.items(), key=lambda item: _ORDER.index(item[0][0]))
        ],
        skipped=[protocol.SkippedLayer(ignored.path, ignored.reason) for ignored in profile.ignored],
        problems=results.problems(locate, profile.problems),
        counter=protocol.Counter(profile.counter, profile.exact),
        servers=build_servers(profile),
    )


def build_servers(profile: Profile) -> list[protocol.AssistantMcpServer]:
    """List the MCP servers in an assistant's settings, by name."""
    return [
        protocol.AssistantMcpServer(
            name=server.name,
            uri=convert.path_to_uri(server.path) if os.path.isabs(server.path) else server.path,
            scope=server.scope,
            start=server.start,
            reason=server.reason,
        )
        for server in profile.servers
    ]


def _sent_file(profile: Profile, block: SentBlock, part: SentPart, locate: Locator) -> protocol.LayerFile:
    reason = None
    if part.cut is not None:
        lines = f"lines {part.cut.first_line:,}–{part.cut.last_line:,}"
        reason = f"{part.cut.reason.capitalize()}: {lines} are never read."
    elif part.importer is not None:
        reason = f"Imported by {profile.shorten(part.importer)}."
    uri = locate.uri(part.path or "")
    return protocol.LayerFile(_KINDS[block.kind], uri, "loaded", tokens=part.tokens, reason=reason)


def _layer_of(path: str, scope: str, profile: Profile) -> tuple[str, str]:
    """Return the scope and the directory of the layer that a file belongs to."""
    if scope in ("user", "managed", "parent", "nested"):
        return scope, os.path.dirname(path)
    return scope, profile.folder
