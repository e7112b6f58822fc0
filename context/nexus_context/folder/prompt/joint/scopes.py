"""Finds what a statement is limited to: a package, a language, a directory, a platform.

1. The title of a file limits it by the words of AREAS alone: the others name the project.
2. Any other heading, a list item that others are nested in, and a paragraph with a colon above a list limit
   what is below them by their words, unless all are GENERIC: "Code style" limits nothing, "Billing" does.
3. A statement's own condition limits it ("in tests", "on Windows", "when …"), unless it only says that it is
   about code: "for indentation", "in all files".
4. Statements below a heading such as "Never", "Anti-patterns", "Examples" or "History" tell nobody to do so.
"""

import re
from functools import cache, lru_cache

from nexus_context.folder.prompt.joint.statements import Statement


def _words_of(words: str) -> frozenset[str]:
    return frozenset(words.split())


AREAS = _words_of(
    "android angular api backend backends bash c c# c++ cgo ci cli client clients clojure comment "
    "comments cpp css dart deno django docker docs docstring docstrings documentation dotnet e2e edge "
    "electron elixir email express fastapi flask flutter frontend frontends go golang graphql helm html "
    "infra infrastructure integration ios java javascript js json jsx kotlin kubernetes laravel legacy "
    "libraries library linux lua macos makefile makefiles markdown mcp message messages mobile module "
    "modules nestjs next next.js nextjs node node.js notebook notebooks package perl php playwright "
    "plugin plugins powershell production prompts python rails react ruby rust scala scripts sdk server "
    "serverless servers service services shell shopify solidity spring sql storybook subject svelte swift "
    "tailwind terraform ts tsx typescript ui vue web website windows wordpress yaml zig"
)
"""Words that limit whatever they stand above."""
GENERIC = _words_of(
    "a about additional after agent agents ai all always an and application apps architecture are as "
    "assistant basic basics be before best branch branches build building by change changes check "
    "checklist checks clean code codebase coding command commands commit commits committing common "
    "configuration constraints context contributing convention conventions core critical dependencies "
    "dependency details dev develop developer developers development directives do dos environment "
    "essential essentials etc expectations extra extras file files first follow following for format "
    "formatter formatting from gate gates general getting git github guardrails guide guideline "
    "guidelines guides hard hints hook hooks how i important in indentation info information install "
    "installation installing instruction instructions is it key language languages lint linter linting "
    "local maintenance manage management manager managers mandatory memory misc miscellaneous modules "
    "more must naming new non-negotiable note notes of on operations other our overall overview packages "
    "philosophy policies policy pr practice practices preference preferences prerequisites principle "
    "principles process project prs pull push quality quick quickstart quotes reference reminder "
    "reminders repo repository requests required requirement requirements review reviews rule rules run "
    "running runtime runtimes setup spacing specific stack standard standards start started structure "
    "style styles styling summary syntax task tasks team tech technical technologies technology test "
    "testing tests the these this tips to tool toolchain tooling tools type types typing unit usage use "
    "useful using validation verification version versions we what when with work workflow workflows "
    "working writing you your"
)
"""Words of headings that limit nothing."""
_TOPICS = _words_of(
    "framework indent language length limit line lines lint max maximum package runner runtime semicolons "
    "spaces suite tabs typescript unit width"
)
"""Words of labels that say what a claim is about."""

_NOT_TOLD = (
    r"(?i)\b(?:don'?t|don\u2019t|do not|never|avoid|anti-?patterns?|bad|wrong|mistakes?|pitfalls?|gotchas?"
    r"|not|forbidden|prohibited|examples?|out of scope|rejected|deprecated|history|changelog|migrat\w+"
    r"|troubleshooting)\b|[\u274c\u2717\u2718\U0001f6ab\u26d4]"
)
_WORD = r"[^\W_][\w.#+/@*-]*[\w#+]|[^\W\d_]"
_MANAGEMENT = r"\b(?:packages?|dependency|module) (?:manag\w+|install\w*)"
_CONDITION = (
    r"\b(?:in|for|on|when|whenever|if|inside|within|under|outside|unless|except|during|while|where|until|before"
    r"|after|at|only|by default|from|across|per|without|via|with)\s+[^\s,;.()\u2014][^,;.()\u2014]*"
)
_UNLIMITED = (
    r"\b(?:in|for|on|across|within|with|via|at)\s+(?:(?:all|any|every|the|this|your|our|its|new|clear|consistent"
    r"|local|unit)\s+)*(?:code|codebase|files?|projects?|repo(?:sitory)?|everything|indentation|indents?"
    r"|indenting|strings?|string literals?|consistency|readability"
    r"|packages?(?: (?:management|manager|installs?|installation))?|managing (?:packages|dependencies)"
    r"|dependenc(?:y|ies)(?: management)?|installs?|installing(?: (?:packages|dependencies))?|installation"
    r"|tests?|testing|running tests|commands?|scripts|operations|monorepo|workspaces?|times?|development"
    r"|javascript and typescript|no exceptions|cases?|source(?: (?:code|files?))?|line(?: length)?)\b"
    r"|\bas (?:an?|the|our|its) (?:default )?(?:package manager|test (?:framework|runner))"
)


def sections_of(statement: Statement) -> frozenset[str]:
    """Return the words by which the headings and list items above a statement limit it."""
    return _sections(statement.headings, statement.leads)


def tells(statement: Statement) -> bool:
    """Whether a statement is an instruction, judged by the headings and list items above it (rule 4)."""
    return not any(map(_denies, statement.headings)) and not any(map(_denies, statement.leads))


def limits_of(condition: str) -> frozenset[str]:
    """Return the limits that the words around a claim set, in lower case."""
    limiting_text = _pattern(_UNLIMITED).sub(" ", condition)
    conditions = (" ".join(match[0].split()) for match in _pattern(_CONDITION).finditer(limiting_text))
    return frozenset(_pattern(_WORD).findall(limiting_text)).intersection(AREAS).union(conditions)


def label_limits(text: str) -> frozenset[str]:
    """Return the limits that the label of a statement sets, in lower case, as in "Billing: use npm"."""
    label = _pattern(r"([^:.]{1,40}):\s").match(text)
    return frozenset(_words(label[1]) - GENERIC - _TOPICS if label else ())


def are_parallel(statement: Statement, other: Statement) -> bool:
    """Whether two statements are below headings that are made alike, such as "Phase 1" and "Phase 2"."""
    for title, other_title in zip(statement.headings, other.headings, strict=False):
        if title != other_title:
            words, other_words = (
                set(_pattern(_WORD).findall(heading.casefold())) for heading in (title, other_title)
            )
            return any(not word.isdigit() for word in words & other_words)
    return False


@lru_cache(maxsize=256)
def _sections(headings: tuple[str, ...], leads: tuple[str, ...]) -> frozenset[str]:
    limits = {word for title in headings[:1] for word in _words(title) & AREAS}
    for title in (*headings[1:], *leads):
        words = _words(title)
        limits |= words & AREAS if words & GENERIC else words
        limits |= {word for word in words if _pattern(r"[/.@]").search(word)}
    for lead in leads:
        limits |= limits_of(lead.casefold())
    return frozenset(limits)


@lru_cache(maxsize=256)
def _denies(title: str) -> bool:
    return _pattern(_NOT_TOLD).search(title) is not None


def _words(title: str) -> set[str]:
    words = _pattern(_WORD).findall(_pattern(_MANAGEMENT).sub(" ", title.casefold()))
    return {word for word in words if not word.isdigit()}


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: a folder without instructions needs none."""
    return re.compile(pattern)
