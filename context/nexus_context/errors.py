"""Defines problems as values, and the exceptions.

A user's mistake is a value, `Problem`; exceptions are for bugs and I/O:

    NexusError
    ├── ConfigError        problems of configuration files, raised by the simple interface (`loader`) only
    └── RequestError       a request that cannot be answered; says what to do instead
        └── ContextOverflowError    what must be sent does not fit, even if everything else is left out
"""

import enum
from typing import NamedTuple

import msgspec


class Severity(enum.IntEnum):
    """The four severities of LSP 3.17, with its numbers."""

    ERROR = 1
    WARNING = 2
    INFORMATION = 3
    HINT = 4


class Span(NamedTuple):
    """A half-open range of code points, `text[start:end]`."""

    start: int
    end: int


class Edit(msgspec.Struct, frozen=True):
    """One change of a file: `span` is replaced by `text`."""

    span: Span
    text: str


class Fix(msgspec.Struct, frozen=True):
    """The one fix of a problem, which editors show as a quick fix."""

    title: str
    edits: tuple[Edit, ...]


class Related(msgspec.Struct, frozen=True):
    """Another place, which explains a problem."""

    path: str
    span: Span
    message: str


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with one file.

    `path` is absolute. `span` is in code points of the file's decoded text (no BOM, line ends as they are).
    `code` is `family.detail` with the families json, config, mcp, layer, prompt, skill, instructions and
    assistant, or `internal` for a bug of Nexus in handling the file (`containment`). `message` says what is
    wrong and what to do.
    """

    path: str
    span: Span
    code: str
    severity: Severity
    message: str
    fix: Fix | None = None
    related: tuple[Related, ...] = ()


class NexusError(Exception):
    """Base of every exception that Nexus raises on purpose."""


class RequestError(NexusError):
    """Raised if a request cannot be answered.

    `code` is a short stable word for programs. `problems` are those of the files that explain why.
    """

    def __init__(self, message: str, *, code: str, problems: tuple[Problem, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.problems = problems


class ContextOverflowError(RequestError):
    """Raised if what must be sent does not fit the model's window, even if everything else is left out."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="context-overflow")
