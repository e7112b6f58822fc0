"""Turns the files of a prompt of Nexus into texts that are checked together."""

from collections.abc import Collection, Iterable, Mapping

from nexus_context.errors import Span
from nexus_context.folder.prompt.blocks import Block
from nexus_context.folder.prompt.joint.texts import JointText


def joint_texts(
    blocks: Iterable[Block], texts: Mapping[str, str], packaged: Collection[str]
) -> list[JointText]:
    """Return the files of the blocks. An imported file is for the directory of its importer.

    `texts` maps paths to the texts of files. Files in `packaged` are left out, since no user can change them.
    """
    spans: dict[str, list[Span]] = {}
    importers: dict[str, Block] = {}
    for block in blocks:
        for piece in block.pieces:
            path = piece.path
            if path is None or not piece.verbatim or path in packaged or path not in texts:
                continue
            importers.setdefault(path, block)
            sent_spans = spans.setdefault(path, [])
            if sent_spans and sent_spans[-1].end == piece.source.start:
                sent_spans[-1] = Span(sent_spans[-1].start, piece.source.end)
            else:
                sent_spans.append(piece.source)
    return [
        JointText(
            path,
            texts[path],
            sent_spans,
            directory=importers[path].layer.directory if importers[path].layer.in_workspace else "",
            is_users=not importers[path].layer.in_workspace,
        )
        for path, sent_spans in spans.items()
    ]
