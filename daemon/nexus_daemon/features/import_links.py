"""Document links and definitions of imports: an `@path` leads to its file.

1. Each import of an instruction file leads there, whether or not a program may include the file: a person
   may read it.
2. An import without a file leads nowhere. The first ones of a file are looked up (`import_targets`).
"""

from collections.abc import Callable
from typing import Any

from nexus_context.errors import Span
from nexus_context.folder.prompt.imports import import_targets
from nexus_daemon.lsp.convert import Locator

IsFile = Callable[[str], bool]
_TOP = Span(0, 0)


def document_links(locate: Locator, path: str, *, user_home: str, is_file: IsFile) -> list[dict[str, Any]]:
    """Return the links of a file, in the order of its text."""
    return [
        {"range": locate.range(path, span), "target": locate.uri(target)}
        for span, target in import_targets(path, locate.text(path), user_home)
        if is_file(target)
    ]


def definition(
    locate: Locator, path: str, offset: int, *, user_home: str, is_file: IsFile
) -> list[dict[str, Any]]:
    """Return the location of the file that the import at an offset names; none elsewhere."""
    return [
        {"uri": locate.uri(target), "range": locate.range(target, _TOP)}
        for span, target in import_targets(path, locate.text(path), user_home)
        if span.start <= offset <= span.end and is_file(target)
    ]
