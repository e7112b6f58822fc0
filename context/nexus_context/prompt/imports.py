"""Imports: `@path` in an instruction file includes that file.

1. A token is `@` at the start of a line or after white space, then a path (a space in it is `\\ `);
   punctuation after it is not part of it. Code spans, fences and HTML comments are skipped.
2. The path is relative to the importing file. `~/` and absolute paths count in the global layer only.
3. A file of a workspace layer imports from beneath that layer's directory only, symbolic links resolved.
4. A token alone on its line is replaced by the file; beside other words it stays, and the file follows
   the line.
5. A file is included once a prompt, by real path; a cycle is cut; MAX_DEPTH files deep and MAX_CHARACTERS
   in all.
6. A token whose file does not exist is reported only if it can be meant as a file (`@user`, `@decorator`,
   `@scope/package` are not): it ends in a text suffix or starts with `./`, `../` or `~/`.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from nexus_context.errors import Problem, Severity, Span
from nexus_context.files import FileRead, is_dir
from nexus_context.layers.walk import RealPath, within
from nexus_context.prompt.markdown import code_ranges
from nexus_context.prompt.texts import Piece, cut, trimmed

MAX_DEPTH = 5
MAX_CHARACTERS = 2 * 1024 * 1024  # of all imported files of a prompt
MAX_LOOKUPS = 1000  # tokens of a prompt that are looked at

_TOKEN = re.compile(r"(?<!\S)@((?:\\ |\S)+)")
_PATH_START = re.compile(r"[\w./~-]")
_PUNCTUATION = ".,;:!?)]}>\"'*_"
_TEXT_SUFFIXES = (".md", ".mdc", ".mdx", ".markdown", ".txt", ".text", ".rst", ".adoc", ".org")


class Imports:
    """The imports of one prompt, of all its instruction files.

    `read` returns a file's text, unsaved text first; `user_home` is what `~` stands for. `included` are the
    real paths that are in the prompt; it and `problems` grow with each `expand`.
    """

    def __init__(self, read: Callable[[str], FileRead], user_home: str, real_path: RealPath) -> None:
        self.read = read
        self.real_path = real_path
        self.user_home = user_home
        self.included: set[str] = set()
        self.problems: list[Problem] = []
        self.characters = 0
        self.lookups = 0


class _Importer(NamedTuple):
    """The file whose tokens are looked at; `root` None: the global layer's, which may import anything."""

    path: str
    text: str
    root: str | None
    stack: tuple[str, ...]  # real paths from the instruction file to this one


class _Token(NamedTuple):
    name: str
    span: Span


def expand(imports: Imports, path: str, text: str, *, root: str | None) -> list[Piece]:
    """Pieces of an instruction file with its imports in place, without white space at both ends."""
    return list(_pieces(imports, _Importer(path, text, root, (imports.real_path(path),))))


def import_tokens(text: str) -> Iterator[_Token]:
    """Tokens of a text that can be imports, in order; the span covers `@` and the path."""
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
        if written and _PATH_START.match(written):
            yield _Token(written.replace("\\ ", " "), Span(match.start(), match.start() + 1 + len(written)))


def _pieces(imports: Imports, importer: _Importer) -> Iterator[Piece]:
    path, text = importer.path, importer.text
    whole = trimmed(text, Span(0, len(text)))
    position = whole.start
    for token in import_tokens(text):
        imports.lookups += 1
        if imports.lookups > MAX_LOOKUPS:
            _report_limit(imports, importer, token)
            break
        imported = _resolve(imports, importer, token)
        if imported is None:
            continue
        line = _line(text, token.span, whole)
        if text[line.start : line.end].strip() == text[token.span.start : token.span.end]:
            yield from _cut(path, text, Span(position, token.span.start))
            position = token.span.end
        else:
            # two tokens on one line: both files follow it, and the rest of the line is written once
            yield from _cut(path, text, Span(position, max(position, line.end)))
            position = max(position, line.end)
            yield Piece("\n", path, Span(position, position))
        yield from _pieces(imports, imported)
    yield from _cut(path, text, Span(position, whole.end))


def _cut(path: str, text: str, span: Span) -> Iterator[Piece]:
    if span.start < span.end:
        yield cut(path, text, span)


def _line(text: str, span: Span, whole: Span) -> Span:
    """Range of the line around the span, without its line end."""
    start = max(text.rfind("\n", 0, span.start), text.rfind("\r", 0, span.start)) + 1
    ends = [end for end in (text.find("\n", span.end), text.find("\r", span.end)) if end >= 0]
    return Span(start, min([*ends, whole.end]))


def _resolve(imports: Imports, importer: _Importer, token: _Token) -> _Importer | None:
    """The file that a token includes here, or None with the reason reported where it was meant."""
    target = _target(imports, importer, token)
    if target is None:
        return None
    if is_dir(target):
        return None
    read = imports.read(target)
    if read.status == "missing":
        _report_if_meant(
            imports, importer, token, "missing", f"there is no file {target}. Create it or correct the path"
        )
        return None
    if read.text is None or read.status != "loaded":
        why = read.problems[0].message.rstrip(".") if read.problems else read.status
        _report(imports, importer, token, "unreadable", f"{target} cannot be included: {why}")
        return None
    real = imports.real_path(target)
    refusal = _refusal(imports, importer, real, read.text)
    if refusal is not None:
        _report(imports, importer, token, *refusal)
        return None
    imports.included.add(real)
    imports.characters += len(read.text)
    return _Importer(target, read.text, importer.root, (*importer.stack, real))


def _target(imports: Imports, importer: _Importer, token: _Token) -> str | None:
    """Absolute path that a token names, if files of this layer may import it."""
    name, root = token.name, importer.root
    home_relative = name.startswith("~/")
    if home_relative or os.path.isabs(name):
        if root is not None:
            hint = "only the global layer may use `~` and absolute paths. Use a path relative to this file"
            _report_if_meant(imports, importer, token, "outside", hint)
            return None
        return os.path.normpath(os.path.join(imports.user_home, name[2:]) if home_relative else name)
    target = os.path.normpath(os.path.join(os.path.dirname(importer.path), name))
    if root is not None and not within(imports.real_path(target), imports.real_path(root)):
        hint = f"it leads out of {root}. Import files beneath that directory only"
        _report_if_meant(imports, importer, token, "outside", hint)
        return None
    return target


def _refusal(imports: Imports, importer: _Importer, real: str, text: str) -> tuple[str, str] | None:
    """Code and message if an existing file is not included here."""
    if real in importer.stack:
        return (
            "cycle",
            "that file imports this one, so it is not included again. Remove one of the two imports",
        )
    if real in imports.included:
        return "repeated", "that file is in the prompt already and is not included twice. Remove this import"
    if len(importer.stack) > MAX_DEPTH:
        return (
            "depth",
            f"imports are followed {MAX_DEPTH} files deep. Import it from a file nearer to the top",
        )
    if imports.characters + len(text) > MAX_CHARACTERS:
        return "size", f"the imports of one prompt are limited to {MAX_CHARACTERS} characters. Import less"
    return None


def _report_limit(imports: Imports, importer: _Importer, token: _Token) -> None:
    if imports.lookups == MAX_LOOKUPS + 1:
        why = f"only the first {MAX_LOOKUPS} of a prompt are looked at. Import less"
        _report(imports, importer, token, "limit", why)


def _report_if_meant(imports: Imports, importer: _Importer, token: _Token, detail: str, message: str) -> None:
    name = token.name
    if name.startswith(("./", "../", "~/")) or name.lower().endswith(_TEXT_SUFFIXES):
        _report(imports, importer, token, detail, message)


def _report(imports: Imports, importer: _Importer, token: _Token, detail: str, message: str) -> None:
    severity = Severity.INFORMATION if detail == "repeated" else Severity.WARNING
    text = f"Import @{token.name} is left out: {message}."
    imports.problems.append(Problem(importer.path, token.span, f"prompt.import-{detail}", severity, text))
