"""Reports where Claude Code does not do what the author of a file meant: imports, front matter, links stored
as text.

1. An import that brings nothing is reported only if its word can be a path: packages (`@scope/name`),
   decorators and teams are left in the text as they stand.
2. A field counts only where Claude Code heeds it: `paths` counts in rules, but not in files that are
   imported.
3. If front matter cannot be read, it has no fields, so a rule is sent with every request. Globs that match no
   file are reported, too.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from nexus_context.assistants.claude_code.front_matter import (
    fields_of,
    matches_nothing,
    open_values,
    path_patterns,
    read_matter,
)
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.front_matter import matter_fields
from nexus_context.assistants.reading.markdown import ImportToken, split_front_matter
from nexus_context.assistants.reading.working_tree import is_within
from nexus_context.config.fixes import meant
from nexus_context.errors import Edit, Fix, Problem, Severity, Span
from nexus_context.folder.skills.front_matter import unreadable_place

DEEPEST = 5
"""Files of a chain of imports, the first one included."""
NO_EFFECT = "assistant.no-effect"
DOCUMENTS = frozenset(
    {".md", ".mdc", ".markdown", ".txt", ".rst", ".adoc", ".json", ".yaml", ".yml", ".toml"}
)
"""What the names of files end with that are imported; those of code are also packages and aliases."""
LONGEST_LINK = 1_000  # characters of a link that was checked out as a text
_PACKAGE = re.compile(r"[\w.~-]+/[\w~-]+(?:@[\w.^~-]+)?")
"""A package, or a team: two names, the second without an extension."""
_CORRECT = "Correct the path, or add the file."  # which git may ignore, so that a clone lacks it
_PUNCTUATION = ".,;:!?)'\""
_PATHS = re.compile(r"^paths(?=[ \t]*:)", re.MULTILINE)
_FIELD = re.compile(r"^[\w-]+[ \t]*:", re.MULTILINE)
_TAG = re.compile(r"^paths[ \t]*:[ \t]+(![^\s,]+)[ \t\r]*(?:#.*)?$", re.MULTILINE)
_LATE_PATHS = re.compile(
    r"\s*(paths)[ \t]*:[^\n]*\n(?:[ \t]*-[^\n]*\n|[\w-]+[ \t]*:[^\n]*\n|[ \t\r]*\n){0,50}?---[ \t\r]*$", re.M
)
_UNREADABLE_RULE = "Claude Code cannot read this front matter, so it sends the rule with every request."
_UNFINISHED = re.compile(r"\s*(?:-{3,}|\+{3})\w*[ \t]*\n(?:[^\n]*\n){0,9}?paths[ \t]*[:=]")
"""The beginning of a rule with `paths` whose front matter is none."""
_LISTED_STAR = re.compile(r"^[ \t]*-[ \t]+(\*[^\s#\"']*)[ \t]*\r?$", re.MULTILINE)
_SEVERAL = re.compile(r"\*(?:\.\w+)?[ \t;]+\S")
"""A glob, and behind white space or a semicolon another one."""
_OF_OTHERS = {"globs": "Cursor", "alwaysApply": "Cursor", "applyTo": "GitHub Copilot"}


class WrittenImport(NamedTuple):
    """An import as it is written in a file. `path` is the importing file, `body` its text that is sent,
    `target` the path that the import stands for.

    `chain` are the files that led to the import, the importing file last. `may_leave` is true if files
    outside of the folder may be imported. `globs` are the `paths` of the rule that imports.
    """

    path: str
    body: str
    token: ImportToken
    target: str
    chain: Sequence[str]
    may_leave: bool
    globs: Sequence[str]


def _readable_path(path: str, folder: str) -> str:
    """A path for people: from the folder where it is inside."""
    return os.path.relpath(path, folder) if is_within(path, folder) else path


def check_import(disk: Disk, folder: str, written_import: WrittenImport) -> Iterator[Problem]:
    """Report an import that adds nothing, or that brings something else than its author meant."""
    target, text = written_import.target, disk.text(written_import.path) or ""
    offset = len(text) - len(written_import.body)
    span = Span(written_import.token.span.start + offset, written_import.token.span.end + offset)
    fix: Fix | None = None
    if not disk.is_file(target):
        shorter = target.rstrip(_PUNCTUATION)
        if not disk.is_file(shorter):
            if disk.hides(target) or not _can_be_path(disk, written_import):
                return
            directory, name = os.path.split(target)
            sibling = meant(name, [each for each, kind in disk.entries(directory) if kind != "directory"])
            remedy = _CORRECT
            if sibling is not None:
                remedy = f"Did you mean {_readable_path(os.path.join(directory, sibling), folder)}?"
            code, message = "assistant.import", f"{_readable_path(target, folder)} does not exist. {remedy}"
        else:
            end = target[len(shorter) :]
            code = "assistant.import"
            message = f"Claude Code reads `{end}` as part of the path. Put a space before it."
            insertion_point = Span(span.end - len(end), span.end - len(end))
            fix = Fix("Insert a space", (Edit(insertion_point, " "),))
    elif target in written_import.chain:
        code = "assistant.import-cycle"
        target_name = _readable_path(target, folder)
        message = (
            f"{target_name} imports this file in turn, so this import adds nothing. Remove one of the two."
        )
    elif len(written_import.chain) >= DEEPEST:
        code = "assistant.import-depth"
        message = f"Claude Code reads imports {DEEPEST - 1} deep; this one is deeper. Import it further up."
    elif not written_import.may_leave and not is_within(disk.real(target), folder):
        code = "assistant.import-outside"
        message = f"{target} is outside of {folder}. Claude Code reads it only after you approved that."
    elif written_import.globs:
        code = NO_EFFECT
        message = (
            f"{os.path.basename(target)} is sent with every request: Claude Code ignores `paths` for "
            "imports. Name the file without `@`, or put its text here."
        )
    elif "paths" in fields_of(split_front_matter(disk.text(target) or "")[0]):
        code = NO_EFFECT
        message = (
            f"{os.path.basename(target)} is sent with every request: Claude Code ignores `paths` of imports. "
            "Put it into `.claude/rules`, and remove the import."
        )
    else:
        return
    yield Problem(written_import.path, span, code, Severity.WARNING, message=message, fix=fix)


def _can_be_path(disk: Disk, written_import: WrittenImport) -> bool:
    """Whether a word that leads to no file looks like the path of one."""
    word = written_import.token.path.rstrip(_PUNCTUATION)
    if word.startswith(("./", "../", "~/")) or os.path.splitext(word)[1].lower() in DOCUMENTS:
        return True
    directory = os.path.dirname(written_import.path)
    if _PACKAGE.fullmatch(word):
        return disk.is_file(os.path.join(directory, f"{word}.md"))
    first_step, separator, _ = word.partition("/")
    return bool(separator and first_step) and disk.is_directory(os.path.join(directory, first_step))


def check_matter(path: str, text: str, opening: str) -> Iterator[Problem]:
    """Report front matter that is not YAML, and values of known fields whose quote or bracket is not closed.

    `opening` is the sentence that says what Claude Code does with a file whose front matter it cannot read.
    """
    matter = split_front_matter(text)[0] or ""
    if read_matter(matter) is None:
        unreadable_span, why, quotes = unreadable_place(text)
        remedy = "" if "quotes" in why else " Put values in quotes."
        message = f"{opening} {why[:1].upper()}{why[1:]}.{remedy}"
        yield Problem(path, unreadable_span, NO_EFFECT, Severity.WARNING, message=message, fix=quotes)
    start = text.index(matter)
    known_names = {field.name for field in matter_fields(path)}
    for name, value, end in open_values(matter):
        if name not in known_names:
            continue  # nobody heeds it, closed or not
        span = Span(start + value.start, start + value.end)
        delimiter = "bracket" if end in "]}" else "quote"
        message = (
            f"This {delimiter} does not end, so Claude Code reads it as part of the text of "
            f"`{name}`. Write `{end}` at the end."
        )
        close = Fix(f"Write `{end}`", (Edit(Span(span.end, span.end), end),))
        yield Problem(path, span, "assistant.reads-otherwise", Severity.WARNING, message=message, fix=close)


def check_text(disk: Disk, path: str, *, is_rule: bool) -> Iterator[Problem]:
    """Report text and fields that Claude Code does not send or heed, where the author hardly meant that."""
    text = disk.text(path) or ""
    matter, body = split_front_matter(text)
    if matter is None:
        if is_rule and _UNFINISHED.match(text):
            message = (
                "Claude Code sees no front matter here, and sends the rule with every request. Put `---` on "
                "the first line, and another `---` after the fields."
            )
            yield Problem(path, Span(0, 3), NO_EFFECT, Severity.WARNING, message=message)
        yield from _check_beginning(disk, path, text)
        return
    read = read_matter(matter)
    fields = {} if read is None else read.values
    lines = [line for line in matter.splitlines() if line.strip()]
    if is_rule:
        yield from _check_rule(path, text, matter, fields)
    if is_rule and (read is None or read.values) and _FIELD.search(matter):
        start = text.index(matter)
        places = (start + at for star in _LISTED_STAR.finditer(matter) for at in star.span(1))
        edits = tuple(Edit(Span(at, at), '"') for at in places)
        for problem in check_matter(path, text, _UNREADABLE_RULE):
            is_star = bool(edits) and problem.code == NO_EFFECT
            yield replace(problem, fix=Fix("Put the globs in quotes", edits)) if is_star else problem
    elif not fields and lines:
        message = (
            f"Claude Code takes the first {matter.count(chr(10)) + 2} lines, up to the second `---`, for "
            "front matter, and does not send them. For a horizontal rule, write `***`."
        )
        end = len(text) - len(body)
        fix = Fix("Write `***`", (Edit(Span(text.index("---"), text.index("---") + 3), "***"),))
        yield Problem(path, Span(0, end), NO_EFFECT, Severity.WARNING, message=message, fix=fix)
    for name in fields if is_rule and "paths" not in fields else ():
        if name.lower() in ("path", "paths"):
            message = f"Claude Code ignores `{name}`: this rule is sent with every request. Write `paths`."
            name_span = None if read is None else read.places.get(name)
            start = text.index(matter)
            span = Span(0, 3) if name_span is None else Span(start + name_span.start, start + name_span.end)
            rename = None if name_span is None else Fix("Write `paths`", (Edit(span, "paths"),))
            yield Problem(path, span, NO_EFFECT, Severity.WARNING, message=message, fix=rename)
    for name, program in _OF_OTHERS.items():
        key = re.search(rf"^{name}(?=\s*:)", text, re.MULTILINE)
        if is_rule and key is not None and name in fields and "paths" not in fields:
            message = (
                f"`{name}` is a field of {program}: Claude Code ignores it, and sends this rule with every "
                "request. Use `paths` instead."
            )
            span = Span(*key.span())
            meant = None if name == "alwaysApply" else Fix("Write `paths`", (Edit(span, "paths"),))
            yield Problem(path, span, NO_EFFECT, Severity.WARNING, message=message, fix=meant)
            return


def _check_rule(path: str, text: str, matter: str, fields: Mapping[str, Any]) -> Iterator[Problem]:
    """Report globs of a rule that do not count."""
    start, body_start = text.index(matter), len(text) - len(split_front_matter(text)[1])
    if "paths" not in fields:
        late = _LATE_PATHS.match(text, body_start)
        if late is not None:
            message = (
                "The front matter ends above this line, so Claude Code sends the rule with every "
                "request. Write all fields between the first two `---`."
            )
            yield Problem(path, Span(*late.span(1)), NO_EFFECT, Severity.WARNING, message=message)
        return
    yield from _check_paths(path, text[:body_start], path_patterns(fields["paths"]))
    tag = _TAG.search(matter) if fields["paths"] is None else None
    if isinstance(fields["paths"], (dict, int, float)):
        message = (
            "`paths` is neither text nor a list, so the rule is sent with every request. Put its value in "
            "quotes."
        )
        yield Problem(path, Span(0, 3), NO_EFFECT, Severity.WARNING, message=message)
    elif tag is not None:
        message = (
            f"`{tag[1]}` is a tag for YAML, so `paths` is empty and the rule is sent with every "
            "request. Write the files that the rule is for."
        )
        span = Span(start + tag.start(1), start + tag.end(1))
        yield Problem(path, span, NO_EFFECT, Severity.WARNING, message=message)


def _check_paths(path: str, matter: str, patterns: Sequence[str]) -> Iterator[Problem]:
    """Report globs that match no file, and what are several globs in one."""
    for pattern in patterns:
        if pattern.startswith("!") and pattern != patterns[0]:
            continue  # it takes files out of those before
        is_void = matches_nothing(pattern)
        if not is_void and not _SEVERAL.search(pattern):
            continue
        message = f"`{pattern}` matches no file: Claude Code reads `paths` as lines of a .gitignore. "
        shorter = pattern.removeprefix("./")
        fix = None
        if not is_void:
            written = f"{pattern}/**" if f"{pattern}/**" in matter else pattern
            message = f"`{written}` is one glob for Claude Code. Separate globs by commas."
        elif shorter == pattern:
            message += "Write globs of paths from the directory that has `.claude`, in a list or with commas."
        else:
            message += f"Write `{shorter}`."
        at = matter.find(pattern)
        if shorter != pattern and matter.count(pattern) == 1:
            fix = Fix("Remove `./`", (Edit(Span(at, at + 2), ""),))
        span = Span(at, at + len(pattern)) if at >= 0 else Span(0, 3)
        yield Problem(path, span, NO_EFFECT, Severity.WARNING, message=message, fix=fix)


def _check_beginning(disk: Disk, path: str, text: str) -> Iterator[Problem]:
    """Report front matter behind a comment, and a link that was checked out as its text."""
    if text.lstrip("\ufeff \n").startswith("<!--"):
        _, end, text_after = text.partition("-->")
        if end and split_front_matter(text_after.lstrip())[0] is not None:
            message = "Front matter counts only in the first line. Put the comment below it."
            start = len(text) - len(text_after.lstrip())
            yield Problem(path, Span(start, start + 3), NO_EFFECT, Severity.WARNING, message=message)
    word = text.strip()
    if 0 < len(word) < LONGEST_LINK and len(word.split()) == 1 and not word.startswith("@"):
        target = os.path.normpath(os.path.join(os.path.dirname(path), word))
        if target != path and disk.is_file(target):
            message = (
                f"This file has only the words `{word}`, as a link that was checked out as a text. Claude "
                f"Code does not follow it. Write `@{word}` to import that file."
            )
            span = Span(text.index(word), text.index(word) + len(word))
            fix = Fix("Import it", (Edit(span, f"@{word}"),))
            yield Problem(path, span, NO_EFFECT, Severity.WARNING, message=message, fix=fix)
