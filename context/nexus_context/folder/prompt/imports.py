"""Resolves imports: `@path` in an instruction file includes that file.

1. A token is `@` at the start of a line or after white space, then a path (with spaces as `\\ `) without
   trailing punctuation. Code spans, fences and HTML comments are skipped.
2. The path is relative to the importing file. Only the global layer may use `~/` and absolute paths.
3. A workspace file imports only from beneath its layer's directory, symbolic links resolved; only text files,
   by their suffix; and nothing hidden except in ASSISTANT_DIRECTORIES: a repository must not bring its user's
   `.env` into the prompt.
4. The file replaces a token that is alone on its line. Beside other words the token stays, and the file
   follows the line, or the table that the line is a row of (lines that start with `|`).
5. A prompt includes a file once, by real path. Cycles are cut, and imports nest MAX_DEPTH files deep. At most
   MAX_FILES files and MAX_CHARACTERS are read for a prompt, used or not; further imports are left as they
   are.
6. Where another user could have put a file, it must belong to this user or root.
7. A token without a file is reported only if it looks like one (unlike `@user`, `@decorator`,
   `@scope/package`): it ends in a text suffix or starts with `./`, `../` or `~/`.
8. A token is not looked up if it is too long for a path or name, or has a character that none can have. At
   most MAX_LOOKUPS tokens of a prompt are looked up, with MAX_STEPS names in their paths, since each
   directory may cost a system call.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import functools
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from nexus_context.disk.containment import contained, reported
from nexus_context.disk.files import FileRead, exists, is_dir
from nexus_context.disk.ownership import trusted_read
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.layer_types import Layer
from nexus_context.folder.layers.walk import ASSISTANT_DIRECTORIES, RealPath, needs_examination, within
from nexus_context.folder.prompt.markdown import code_ranges
from nexus_context.folder.prompt.texts import Piece, cut, trimmed
from nexus_context.text.redact import redact_prose

MAX_DEPTH = 5
MAX_CHARACTERS = 2 * 1024 * 1024  # of all files that are read for a prompt's imports
MAX_FILES = 200
MAX_LOOKUPS = 1000  # tokens of a prompt that are looked up
MAX_STEPS = 10_000  # names in the paths of those
MAX_PATH = 4096  # bytes of a path, and of one name in it: the limits of file systems
MAX_NAME = 255

_SHOWN, _SHOWN_END = 60, 20  # characters of a longer name that a message shows
_PATH_SHOWN, _PATH_SHOWN_END = 160, 80  # of a longer path
_TOKEN = re.compile(r"(?<!\S)@(?=[\w./~-])((?:[^\s\\]+|\\ ?)+)")
_BLANK = re.compile(r"\s*")
_ROW = re.compile(r"[ \t]*\|")
_ADDRESS = "://"
_PUNCTUATION = ".,;:!?)]}>\"'*_"
_TEXT_SUFFIXES = (".md", ".mdc", ".mdx", ".markdown", ".txt", ".text", ".rst", ".adoc", ".org")


class Import(NamedTuple):
    """A file that an import brings into the prompt. `path` is the importing file, `target` the imported one.

    `span` is the range of the `@…` in the importing file.
    """

    path: str
    span: Span
    target: str


class Imports:
    """The imports of one prompt, in all its instruction files. Each `expand_imports` adds to them.

    `read` returns a file's text, unsaved text first; `user_home` is what `~` means. `included` are the real
    paths in the prompt; `inherited` are those of them that another agent brought. `texts` are the prompt's
    texts by path. `dropped` are paths that were read and not used; `refused` are existing ones that must not
    be read. `followed` are the imports in the prompt, each after that of its importing file.
    """

    def __init__(self, read: Callable[[str], FileRead], user_home: str, real_path: RealPath) -> None:
        self.read = read
        self.real_path = real_path
        self.user_home = user_home
        self.included: set[str] = set()
        self.inherited: set[str] = set()
        self.texts: dict[str, str] = {}
        self.dropped: set[str] = set()
        self.refused: set[str] = set()
        self.problems: list[Problem] = []
        self.followed: list[Import] = []
        self.lookups = 0
        self.steps = 0
        self.seen: dict[str, int] = {}  # characters of each file that was read
        self.spent = False


class ImportRefusal(NamedTuple):
    """Why a file is not included. `why` is empty if this was reported before."""

    detail: str  # of the problem's code
    why: str


class _Importer(NamedTuple):
    """The file whose tokens are being resolved."""

    path: str
    text: str
    layer: Layer
    stack: tuple[str, ...]  # real paths from the instruction file to this one
    body: Span | None = None  # the part of the text that counts; None: all of it


class _Token(NamedTuple):
    name: str
    span: Span


def expand_imports(
    imports: Imports, layer: Layer, path: str, text: str, body: Span | None = None
) -> list[Piece]:
    """Return the pieces of a layer's file with its imports in place, without white space at both ends.

    `body` is the part of the text that counts, or None if all of it does.
    """
    imports.texts[path] = text

    def importer() -> _Importer:
        return _Importer(path, text, layer, (imports.real_path(path),), body=body)

    return _contained(imports, path, text, lambda: _pieces(imports, importer()))


def read_import(imports: Imports, layer: Layer, path: str) -> FileRead | ImportRefusal:
    """Read a file for the prompt on behalf of a layer that may name its path, or say why it is left out."""
    real = imports.real_path(path)
    reason = _forbidden(imports, layer, path)
    if reason is not None:
        imports.refused.add(path)
        return ImportRefusal("refused", reason)
    if imports.spent:
        return ImportRefusal("limit", "")
    read = imports.read(path)
    if read.real not in (None, real):  # the decision about the path does not hold for this file
        imports.dropped.add(path)
        return ImportRefusal(
            "unreadable", "its path was changed while it was read. Save the file that names it again"
        )
    if read.text is None:
        return read
    imports.seen[path] = len(read.text)
    if len(imports.seen) > MAX_FILES or sum(imports.seen.values()) > MAX_CHARACTERS:
        imports.spent = True
        imports.dropped.add(path)
        why = f"{MAX_FILES} files and {MAX_CHARACTERS:,} characters are read for one prompt. Import less"
        return ImportRefusal("limit", why)
    # check the opened file: another one may have replaced it by now
    must = layer.in_workspace and needs_examination(path, strict=layer.strict)
    if must and (reason := trusted_read(read)):
        imports.dropped.add(path)
        return ImportRefusal("refused", f"it {reason}. Only your own files and root's are read there")
    return read


def is_too_long(path: str) -> bool:
    """Whether a path is too long for any file.

    The time of path functions grows with the square of its length.
    """
    if len(path) > MAX_PATH:
        return True
    names = path.encode("utf-8", "surrogatepass").split(b"/")
    return sum(map(len, names)) + len(names) > MAX_PATH or max(map(len, names)) > MAX_NAME


def is_impossible(path: str) -> bool:
    """Whether a path has a character that no file name here can have.

    Path functions raise ValueError for it.
    """
    try:
        return b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        return True


def short_name(name: str) -> str:
    """Shorten a name for a message. A long one keeps only its beginning and its end."""
    return _shortened(name, _SHOWN, _SHOWN_END)


def short_path(path: str) -> str:
    """Shorten an absolute path for a message."""
    return _shortened(path, _PATH_SHOWN, _PATH_SHOWN_END)


def place_after(text: str, span: Span, end: int) -> int:
    """Return where an import beside other words puts its file: at the end of their line, or of their table.

    `end` is the end of the text.
    """
    line = _line(text, span, end)
    while is_row(text, line):
        next_start = line.end + (2 if text.startswith("\r\n", line.end) else 1)
        if next_start >= end or not is_row(text, next_line := _line(text, Span(next_start, next_start), end)):
            break
        line = next_line
    return line.end


def import_tokens(text: str) -> Iterator[_Token]:
    """Yield the tokens of a text that can be imports, in order. A token's span covers `@` and the path."""
    if "@" not in text:
        return
    skipped = code_ranges(text)
    index = 0
    for match in _TOKEN.finditer(text):
        while index < len(skipped) and skipped[index].end <= match.start():
            index += 1
        if index < len(skipped) and skipped[index].start <= match.start():
            continue
        written = match[1].rstrip(_PUNCTUATION)
        if written:
            yield _Token(written.replace("\\ ", " "), Span(match.start(), match.start() + 1 + len(written)))


def imported_paths(path: str, text: str, user_home: str) -> list[str]:
    """Return the text files that the imports of a file name, whether or not it may import them."""
    targets = (target for _, target in import_targets(path, text, user_home))
    return [target for target in targets if target.lower().endswith(_TEXT_SUFFIXES)]


def import_targets(path: str, text: str, user_home: str) -> Iterator[tuple[Span, str]]:
    """Yield each token that looks like an import: its span, and the path that it names, allowed or not.

    At most the first MAX_LOOKUPS tokens are considered.
    """
    for name, span in islice(import_tokens(text), MAX_LOOKUPS):
        if not (is_too_long(name) or is_impossible(name)):
            yield span, _absolute(path, name, user_home)


def _absolute(importer: str, name: str, user_home: str) -> str:
    start = user_home if name.startswith("~/") else os.path.dirname(importer)
    return os.path.normpath(os.path.join(start, name.removeprefix("~/")))


def _pieces(imports: Imports, importer: _Importer) -> Iterator[Piece]:
    path, text = importer.path, importer.text
    body_span = trimmed(text, importer.body or Span(0, len(text)))
    position = body_span.start
    nothing: _Importer | None = None
    for token in import_tokens(text):
        if token.span.start < body_span.start:
            continue
        imports.lookups += 1
        imports.steps += 0 if is_too_long(token.name) else token.name.count("/") + 1
        if (imports.lookups > MAX_LOOKUPS or imports.steps > MAX_STEPS) and not imports.spent:
            imports.spent = True
            why = (
                f"only the first {MAX_LOOKUPS} of a prompt are looked up, with {MAX_STEPS:,} names in their "
                "paths. Import less"
            )
            _report(imports, importer, token, "limit", message=why)
        if imports.spent:
            break
        imported = reported(
            imports.problems, path, functools.partial(_resolve, imports, importer, token), nothing
        )
        if imported is None:
            continue
        imports.followed.append(Import(path, token.span, imported.path))
        line = _line(text, token.span, body_span.end)
        if _is_alone(text, token.span, line):
            yield from _cut(path, text, Span(position, token.span.start))
            position = token.span.end
        else:
            # two tokens on one line or in one table: both files follow it, and the rest is written once
            if token.span.start >= position:
                insert_at = place_after(text, token.span, body_span.end)
                yield from _cut(path, text, Span(position, insert_at))
                position = insert_at
            yield Piece("\n", path, Span(position, position))
        yield from _contained(
            imports, imported.path, imported.text, functools.partial(_pieces, imports, imported)
        )
    yield from _cut(path, text, Span(position, body_span.end))


def _contained(imports: Imports, path: str, text: str, look: Callable[[], Iterator[Piece]]) -> list[Piece]:
    """The pieces of a file; if a bug occurs, the whole text without its imports."""

    def report(problem: Problem) -> list[Piece]:
        imports.problems.append(problem)
        return list(_cut(path, text, trimmed(text, Span(0, len(text)))))

    return contained(path, lambda: list(look()), report)


def _cut(path: str, text: str, span: Span) -> Iterator[Piece]:
    if span.start < span.end:
        yield cut(path, text, span)


def _line(text: str, span: Span, end: int) -> Span:
    """The line around the span, without its line end, up to `end` at most."""
    start = text.rfind("\n", 0, span.start) + 1
    start = max(start, text.rfind("\r", start, span.start) + 1)
    for mark in "\n\r":  # a line of a million characters may hold many imports
        at = text.find(mark, span.end, end)
        end = end if at < 0 else at
    return Span(start, end)


def _is_alone(text: str, span: Span, line: Span) -> bool:
    """Whether the line holds nothing else."""
    around = ((line.start, span.start), (span.end, line.end))
    return all(_BLANK.fullmatch(text, start, end) for start, end in around)


def is_row(text: str, line: Span) -> bool:
    """Whether a line is a row of a table."""
    return _ROW.match(text, line.start, line.end) is not None


def _shortened(text: str, head_length: int, tail_length: int) -> str:
    return text if len(text) <= head_length + tail_length else f"{text[:head_length]}…{text[-tail_length:]}"


def _resolve(imports: Imports, importer: _Importer, token: _Token) -> _Importer | None:
    """The file that an import token names, or None.

    A token that looks like a file is reported if there is none.
    """
    target = _target(imports, importer, token)
    if target is None or is_dir(target):
        return None
    real = imports.real_path(target)
    refusal = _repetition(imports, importer, real)
    read = refusal or read_import(imports, importer.layer, target)
    if isinstance(read, ImportRefusal):
        if read.detail != "refused" or exists(target):
            _report(imports, importer, token, *read)
            return None
        read = FileRead(target, "missing", None)
    if read.status == "missing":
        why = f"there is no file {short_path(target)}. Create it or correct the path"
        _report_if_meant(imports, importer, token, "missing", message=why)
        return None
    if read.text is None or read.status != "loaded":
        why = read.problems[0].message.rstrip(".") if read.problems else read.status
        _report(
            imports, importer, token, "unreadable", message=f"{short_path(target)} cannot be included: {why}"
        )
        return None
    if len(importer.stack) > MAX_DEPTH:
        imports.dropped.add(target)
        why = f"imports nest at most {MAX_DEPTH} files deep. Import it from a file nearer to the top"
        _report(imports, importer, token, "depth", message=why)
        return None
    imports.included.add(real)
    imports.texts[target] = read.text
    return _Importer(target, read.text, importer.layer, (*importer.stack, real))


def _target(imports: Imports, importer: _Importer, token: _Token) -> str | None:
    """Absolute path that a token names, if files of this layer may import it."""
    name = token.name
    if _ADDRESS in name:
        why = "it is a URL, and only files can be imported. Copy its text into a file"
        _report_if_meant(imports, importer, token, "missing", message=why)
        return None
    if is_too_long(name):
        why = f"no file can have so long a name: it has {len(name):,} characters. Correct the path"
        _report_if_meant(imports, importer, token, "missing", message=why)
        return None
    if is_impossible(name):
        why = "it contains a character that no file name can contain. Correct the path"
        _report_if_meant(imports, importer, token, "missing", message=why)
        return None
    root = importer.layer.tree if importer.layer.in_workspace else None
    target = _absolute(importer.path, name, imports.user_home)
    if name.startswith("~/") or os.path.isabs(name):
        if root is not None:
            hint = "only the global layer may use `~` and absolute paths. Use a path relative to this file"
            _report_if_meant(imports, importer, token, "outside", message=hint)
            return None
        return target
    if root is not None and not within(imports.real_path(target), imports.real_path(root)):
        hint = f"it leads out of {short_path(root)}. Import files beneath that directory only"
        _report_if_meant(imports, importer, token, "outside", message=hint)
        return None
    return target


def _forbidden(imports: Imports, layer: Layer, path: str) -> str | None:
    """Why a workspace file must not bring this one into the prompt; decided without reading it."""
    if not layer.in_workspace:
        return None
    real, root = imports.real_path(path), imports.real_path(layer.directory)
    root = root if within(real, root) else imports.real_path(layer.tree)
    *directories, name = real[len(root) :].split(os.sep)
    hidden = [
        directory
        for directory in directories
        if directory.startswith(".") and directory not in ASSISTANT_DIRECTORIES
    ]
    if hidden or name.startswith("."):
        hidden_name, allowed = (*hidden, name)[0], ", ".join(ASSISTANT_DIRECTORIES)
        return (
            f"{short_name(hidden_name)} is hidden, and of hidden directories Nexus reads only {allowed}. "
            "Move the text if Nexus is to read it"
        )
    if not name.lower().endswith(_TEXT_SUFFIXES):
        return f"a workspace imports only files that end in {', '.join(_TEXT_SUFFIXES)}. Copy its text there"
    return None


def _repetition(imports: Imports, importer: _Importer, real: str) -> ImportRefusal | None:
    if real in importer.stack:
        why = "that file imports this one, so it is not included again. Remove one of the two imports"
        return ImportRefusal("cycle", why)
    if real in imports.inherited:
        return ImportRefusal("repeated", "")
    if real in imports.included:
        why = "the prompt contains that file already. Remove this import"
        return ImportRefusal("repeated", why)
    return None


def _report_if_meant(imports: Imports, importer: _Importer, token: _Token, detail: str, message: str) -> None:
    name = token.name
    if name.startswith(("./", "../", "~/")) or name.lower().endswith(_TEXT_SUFFIXES):
        _report(imports, importer, token, detail, message=message)


def _report(imports: Imports, importer: _Importer, token: _Token, detail: str, message: str) -> None:
    if not message:
        return
    severity = Severity.INFORMATION if detail == "repeated" else Severity.WARNING
    name = short_name(token.name)
    if _ADDRESS in token.name:  # it may hold a password
        name = redact_prose(name)
    text = f"Nexus leaves the import @{name} out: {message}."
    imports.problems.append(
        Problem(importer.path, token.span, f"prompt.import-{detail}", severity, message=text)
    )
