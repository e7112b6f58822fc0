"""Report where the parts of a system prompt come from, in the protocol's form."""

from nexus_context.folder.prompt.blocks import blocks_of, paths_of
from nexus_context.folder.prompt.render import Prompt
from nexus_context.folder.prompt.token_attribution import fragment_tokens
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import TokenCounter
from nexus_daemon import protocol
from nexus_daemon.lsp.convert import Locator


def fragments_of(
    prompt: Prompt, snapshot: Snapshot, locate: Locator, counter: TokenCounter
) -> list[protocol.Fragment]:
    """Return the fragments of a prompt with their sources and tokens.

    The tokens sum up to those of the whole text.
    """
    layer_of = layers_by_path(snapshot)
    return [
        protocol.Fragment(
            section=fragment.section,
            layer=fragment.layer and layer_of.get(fragment.path or "", fragment.layer),
            title=fragment.title,
            range=locate.range_in(prompt.text, fragment.span),
            source=locate.location(fragment.path, fragment.source) if fragment.path else None,
            tokens=tokens,
            verbatim=fragment.verbatim,
        )
        for fragment, tokens in zip(prompt.fragments, fragment_tokens(prompt, counter), strict=True)
    ]


def layers_by_path(snapshot: Snapshot) -> dict[str, str | None]:
    """Return the layer of each file in the prompt. None if only a parent agent has the file's layer.

    The project layer of a parent agent may be an ancestor layer here.
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
