"""Link settings to files: a value that names a file leads to it.

A path is relative to the directory of the settings file, or to the parent of a settings directory
(`.claude`). `~/` is the home directory. Only files that exist are linked.
"""

from collections.abc import Callable, Iterator
from os.path import basename, dirname, isabs, join, normpath
from typing import Any

from nexus_context.errors import Span
from nexus_context.text.json.spans import texts_in
from nexus_daemon.features.open_document import OpenDocument
from nexus_daemon.features.settings_place import parse

MOST_LOOKUPS = 500
LONGEST = 500


def setting_links(document: OpenDocument, *, is_file: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Return the links of a settings file, in the order of its text."""
    locate, path = document.locate, document.path
    links = []
    for number, (span, text) in enumerate(_values(document)):
        if number == MOST_LOOKUPS:
            break
        target = next(filter(is_file, _paths(document, text)), None)
        if target is not None:
            links.append({"range": locate.range(path, span), "target": locate.uri(target)})
    return links


def _paths(document: OpenDocument, text: str) -> Iterator[str]:
    """The paths that a text may stand for."""
    if text.startswith("~/"):
        yield normpath(join(document.user_home, text[2:]))
    elif isabs(text):
        yield normpath(text)
    else:
        directory = dirname(document.path)
        yield normpath(join(directory, text))
        if basename(directory).startswith("."):
            yield normpath(join(dirname(directory), text))


def _values(document: OpenDocument) -> Iterator[tuple[Span, str]]:
    """The texts that may be paths, each without its quotes."""
    parsed = parse(document)
    if parsed is None:
        return
    for pointer, text in texts_in(parsed.value):
        if len(text) <= LONGEST and ("/" in text or "." in text) and "\0" not in text and "://" not in text:
            span = parsed.span(pointer)
            yield Span(span.start + 1, max(span.end - 1, span.start + 1)), text
