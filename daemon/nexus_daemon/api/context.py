"""`nexus/context/*` and `nexus/config/effective`: what the model will see, what it costs, and why."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from nexus_context import assembly
from nexus_context.config import merge
from nexus_context.errors import Span
from nexus_context.jsontext import parse_pointer
from nexus_context.layers import Layers
from nexus_context.prompt.blocks import blocks_of, paths_of
from nexus_context.prompt.imports import Import
from nexus_context.prompt.render import Prompt
from nexus_context.prompt.token_attribution import fragment_tokens, tokens_by_path
from nexus_context.redact import printable_setting
from nexus_context.snapshot import Snapshot, prompt_for
from nexus_daemon import protocol, results
from nexus_daemon.lsp.convert import Locator


def prompt_now(snapshot: Snapshot) -> Prompt:
    """The prompt that a request would be sent now: with the date where the settings ask for it."""
    return prompt_for(snapshot, now=_now())


def preview(snapshot: Snapshot, locate: Locator) -> protocol.Preview:
    prompt = prompt_now(snapshot)
    _, counter = assembly.model_of(snapshot, None)
    counts = fragment_tokens(prompt, counter)
    layer_of = _layers_by_path(snapshot)
    return protocol.Preview(
        revision=snapshot.revision,
        text=prompt.text,
        fragments=[
            protocol.Fragment(
                section=fragment.section,
                layer=fragment.layer and layer_of.get(fragment.path or "", fragment.layer),
                title=fragment.title,
                range=locate.range_in(prompt.text, fragment.span),
                source=locate.location(fragment.path, fragment.source) if fragment.path else None,
                tokens=tokens,
                verbatim=fragment.verbatim,
            )
            for fragment, tokens in zip(prompt.fragments, counts, strict=True)
        ],
        tokens=sum(counts),
    )


def layers(snapshot: Snapshot, locate: Locator) -> protocol.LayersResult:
    _, counter = assembly.model_of(snapshot, None)
    tokens = tokens_by_path(prompt_now(snapshot), counter)
    by_layer: dict[str | None, int] = {}
    for path, layer_name in _layers_by_path(snapshot).items():
        by_layer[layer_name] = by_layer.get(layer_name, 0) + tokens.get(path, 0)
    tree = _Tree(snapshot, locate, tokens)
    return protocol.LayersResult(
        revision=snapshot.revision,
        layers=[
            protocol.Layer(
                layer.name,
                layer.config_directory,
                [
                    protocol.LayerFile(
                        file.kind,
                        locate.uri(file.path),
                        file.status,
                        tokens.get(file.path),
                        tree.below(file.path) if file.status == "loaded" else None,
                        file.applies_to,
                    )
                    for file in layer.files
                ],
                by_layer.get(layer.name, 0),
            )
            for layer in snapshot.layers.layers
        ],
        skipped=[protocol.SkippedLayer(skipped.path, skipped.reason) for skipped in snapshot.layers.not_read],
        problems=results.problems(locate, snapshot.problems),
        counter=protocol.Counter(counter.name, counter.exact),
    )


def _layers_by_path(snapshot: Snapshot) -> dict[str, str | None]:
    """The layer of each file that is in the prompt; None: an agent above has it, from no layer of these.

    What an agent above calls its project may be an ancestor here.
    """
    layers = snapshot.layers.layers
    by_path: dict[str, str | None] = {file.path: layer.name for layer in layers for file in layer.files}
    by_directory = {layer.config_directory: layer.name for layer in layers}
    contents = snapshot.contents
    for block in (*contents.bootstrap, *contents.blocks, *blocks_of(contents.above)):
        name = by_path.get(block.path, by_directory.get(block.layer.config_directory))
        for path in (block.path, *paths_of([block])):
            by_path.setdefault(path, name)
    for section in contents.sections:
        for path in (section.path, *paths_of([section])):
            by_path.setdefault(path, by_path.get(section.path))
    return by_path


class _Tree:
    """Which file imports which; a file is in a prompt once, so there is no circle."""

    def __init__(self, snapshot: Snapshot, locate: Locator, tokens: Mapping[str, int]) -> None:
        self._locate = locate
        self._tokens = tokens
        self._by_importer: dict[str, list[Import]] = {}
        for one in snapshot.contents.imports:
            self._by_importer.setdefault(one.path, []).append(one)

    def below(self, path: str) -> list[protocol.ImportedFile] | None:
        """What a file imports, in its order, each followed by its own; None where it imports nothing."""
        return list(self._below(path, 1)) or None

    def _below(self, path: str, depth: int) -> Iterator[protocol.ImportedFile]:
        for one in self._by_importer.get(path, ()):
            source = self._locate.location(path, one.span)
            tokens = self._tokens.get(one.target)
            yield protocol.ImportedFile(self._locate.uri(one.target), depth, source, tokens)
            yield from self._below(one.target, depth + 1)


def effective(snapshot: Snapshot, locate: Locator) -> protocol.EffectiveResult:
    return protocol.EffectiveResult(
        revision=snapshot.revision,
        config=printable_setting(snapshot.effective.values),
        provenance={
            pointer: [_provenance(pointer, entry, snapshot.layers, locate) for entry in chain]
            for pointer, chain in snapshot.effective.provenance.items()
        },
        mcp_servers=[
            protocol.McpServer(
                name=server.name,
                type=server.type,
                origin=server.origin,
                uri=locate.uri(server.path),
                range=locate.range(server.path, server.span),
                enabled=server.enabled,
                shadowed_by=server.shadowed_by,
            )
            for server in snapshot.layers.servers
        ],
    )


def _provenance(
    pointer: str, entry: merge.Provenance, layers: Layers, locate: Locator
) -> protocol.Provenance:
    granted = entry.document is None and entry.layer != merge.BUILT_IN
    path = layers.folder if granted else entry.path
    return protocol.Provenance(
        layer=entry.layer,
        uri=locate.uri(path),
        range=locate.range(path, _present_span(entry, layers)),
        value=printable_setting(entry.value, parse_pointer(pointer)),
        wins=entry.wins,
        ignored=entry.ignored,
    )


def _present_span(entry: merge.Provenance, layers: Layers) -> Span:
    """Where the value stands in the text that is there now; a stale file's value may be gone from it."""
    present = layers.documents.get(entry.path)
    if entry.document is None or present is None or present is entry.document:
        return entry.span
    try:
        return present.span(entry.pointer)
    except KeyError:
        return Span(0, 0)


def _now() -> datetime:
    return datetime.now().astimezone()
