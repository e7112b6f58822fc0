"""Build hovers: what a key of a settings file does and which file decides, what a section or an import costs.

Clients that show no Markdown get the same text without marks.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nexus_context.assistants.views.readers import AssistantUse
from nexus_context.errors import Span
from nexus_context.folder.prompt.headings import Heading, find_headings
from nexus_context.tokens import TokenCounter
from nexus_daemon.features.answer_text import code, escaped, plain
from nexus_daemon.features.code_lens import share_text
from nexus_daemon.features.open_document import OpenDocument


class TextReader(NamedTuple):
    """A view that may send a text: its title, what it does with the text, and its counter.

    `window` is the number of tokens that a request may take, if it is known.
    """

    title: str
    use: AssistantUse
    counter: TokenCounter
    window: int | None


def hover(document: OpenDocument, span: Span, text: str, *, has_markdown: bool) -> dict[str, Any] | None:
    """Return the hover of a span with a Markdown text. None if the text is empty."""
    if not text:
        return None
    contents = (
        {"kind": "markdown", "value": text} if has_markdown else {"kind": "plaintext", "value": plain(text)}
    )
    return {"contents": contents, "range": document.locate.range(document.path, span)}


def heading_at(text: str, offset: int) -> Heading | None:
    """Return the heading whose line contains the offset, or None."""
    return next(
        (heading for heading in find_headings(text) if heading.line.start <= offset <= heading.line.end), None
    )


def section_text(text: str, heading: Heading, readers: Sequence[TextReader]) -> str:
    """Describe the cost of a heading's section for each view that sends the file."""
    section = text[heading.section.start : heading.section.end]
    return "\n\n".join((f"**{escaped(heading.title)}**", *_costs(section, readers)))


def import_text(
    name: str, target: str | None, readers: Sequence[TextReader], importers: Sequence[str]
) -> str:
    """Describe the cost of an import.

    `target` is the text of the imported file, or None if it cannot be read.

    `name` is the file's path for people; `importers` are the other files that import it.
    """
    if target is None:
        return f"{code(name)}: there is no such file, or it cannot be read."
    blocks = [code(name), *_costs(target, readers)]
    if importers:
        blocks.append(f"Also imported by {', '.join(map(code, importers))}.")
    return "\n\n".join(blocks)


def _costs(text: str, readers: Sequence[TextReader]) -> Iterator[str]:
    for reader in readers:
        if reader.use.use == "unread":
            continue
        tokens = reader.counter.count(text)
        row = f"{reader.title}: {'' if reader.counter.exact else '≈ '}{tokens:,} tokens"
        if reader.window is not None:
            row += f" · {share_text(tokens, reader.window)}"
        if reader.use.reason:
            row += f" · {reader.use.reason}"
        yield escaped(row)
