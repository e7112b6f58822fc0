"""Holds the files of a request whose texts are checked together, and names places in them."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.text.lines import LineIndex


class JointText(NamedTuple):
    """A file of a request: its text, the spans of it that are sent, and the directory that it is for.

    `directory` is "" if the file is for all directories. `is_users` is true for the user's own files, and
    false for the project's.
    """

    path: str
    text: str
    spans: Sequence[Span]
    directory: str = ""
    is_users: bool = False

    def sends(self, span: Span) -> bool:
        """Whether all of a span is sent."""
        return any(sent_span.start <= span.start and span.end <= sent_span.end for sent_span in self.spans)


class LineNumbers:
    """Counts the lines of files, from 1."""

    def __init__(self) -> None:
        self._indices: dict[str, LineIndex] = {}

    def number(self, file: JointText, offset: int) -> int:
        """Return the number of the line that has an offset."""
        if file.path not in self._indices:
            self._indices[file.path] = LineIndex(file.text)
        return self._indices[file.path].position(offset)[0] + 1

    def describe(self, file: JointText, span: Span, reader: JointText) -> str:
        """Return words for the start of a span in `file`.

        They name the file unless it is `reader`, where they are read.
        """
        line = f"line {self.number(file, span.start)}"
        return line if file is reader else f"{line} of {_name(file.path, reader.path)}"


def _name(path: str, reader: str) -> str:
    relative = os.path.relpath(path, os.path.dirname(reader))
    is_far = relative.startswith(os.path.join(os.pardir, os.pardir))
    return os.path.basename(path) if is_far else relative.replace(os.sep, "/")
