"""Formats problems for machines: JSON in the protocol's shape, SARIF 2.1.0, GitHub's workflow commands."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nexus_context.errors import Problem, Severity
from nexus_context.text.lines import LineIndex
from nexus_context.text.visible import visible
from nexus_daemon.cli import invocation
from nexus_daemon.lsp.convert import HasTexts, Locator, path_to_uri
from nexus_daemon.process.version import __version__
from nexus_daemon.sessions import results


class Checked(Protocol):
    """What a report needs of a checked folder, such as a snapshot: its path, and the texts of its files."""

    @property
    def folder(self) -> str: ...

    @property
    def layers(self) -> HasTexts: ...


SARIF_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "note",
    Severity.HINT: "note",
}
GITHUB_LEVELS = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.INFORMATION: "notice",
    Severity.HINT: "notice",
}
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
SOURCE_ROOT = "%SRCROOT%"


def as_json(snapshot: Checked, problems: Sequence[Problem], **more: Any) -> str:
    """Return `{"problems": [Problem]}` as in docs/protocol.md, and `more`. Positions count UTF-16 units."""
    converted = results.problems(Locator(snapshot.layers, "utf-16"), problems)
    return _pretty({"problems": converted, **more})


def as_sarif(snapshot: Checked, problems: Sequence[Problem]) -> str:
    """Return a SARIF 2.1.0 log with one run. Columns count code points from 1.

    Paths beneath the source root are relative to it, as GitHub's code scanning requires; others, such as the
    user's own files, are absolute.
    """
    root = _root_uri(snapshot)
    rules = sorted({problem.code for problem in problems})
    results = [
        {
            "ruleId": problem.code,
            "ruleIndex": rules.index(problem.code),
            "level": SARIF_LEVELS[problem.severity],
            "message": {"text": problem.message},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": _artifact(problem.path, root),
                        "region": _region(snapshot, problem),
                    }
                }
            ],
        }
        for problem in problems
    ]
    driver = {"name": "nexus", "version": __version__, "rules": [{"id": rule} for rule in rules]}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {SOURCE_ROOT: {"uri": root}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return _pretty({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def as_github(snapshot: Checked, problems: Sequence[Problem]) -> str:
    """Return a line `::error file=…,line=…::message` for each problem.

    Paths below the current directory are relative. The text is escaped as GitHub's runner requires, after
    control characters are made visible.
    """
    lines = []
    for problem in problems:
        region = _region(snapshot, problem)
        places = {
            "file": _relative(problem.path),
            "line": region["startLine"],
            "col": region["startColumn"],
            "endLine": region["endLine"],
            "endColumn": region["endColumn"],
            "title": problem.code,
        }
        properties = ",".join(f"{name}={_escaped(str(value), more=':,')}" for name, value in places.items())
        lines.append(f"::{GITHUB_LEVELS[problem.severity]} {properties}::{_escaped(problem.message)}\n")
    return "".join(lines)


FORMATS: dict[str, Callable[[Checked, Sequence[Problem]], str]] = {
    "json": as_json,
    "sarif": as_sarif,
    "github": as_github,
}


def _root_uri(snapshot: Checked) -> str:
    """The checked folder, or the current directory around it, in CI the repository's root."""
    here, folder = Path(invocation.current().cwd), Path(snapshot.folder)
    root = here if folder.is_relative_to(here) and here != here.parent else folder
    return path_to_uri(str(root)).rstrip("/") + "/"


def _artifact(path: str, root: str) -> dict[str, str]:
    uri = path_to_uri(path)
    if not uri.startswith(root):
        return {"uri": uri}
    return {"uri": uri.removeprefix(root), "uriBaseId": SOURCE_ROOT}


def _region(snapshot: Checked, problem: Problem) -> dict[str, int]:
    index = LineIndex(snapshot.layers.texts.get(problem.path, ""))
    line, column = index.position(problem.span.start)
    end_line, end_column = index.position(problem.span.end)
    return {
        "startLine": line + 1,
        "startColumn": column + 1,
        "endLine": end_line + 1,
        "endColumn": end_column + 1,
    }


def _relative(path: str) -> str:
    here = Path(invocation.current().cwd)
    return str(Path(path).relative_to(here)) if Path(path).is_relative_to(here) else path


def _escaped(text: str, *, more: str = "") -> str:
    text = visible(text)
    for char in "%\r\n" + more:
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def _pretty(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
