"""The measured files: config.json texts of a given length, valid but for one error in the middle.

1. Every line but one is the same in all variants; the error stands on a line of its own, `Document.line`.
2. An edit inserts, or takes out again, one character of a string that stands before the error on that line.
   The value changes as it does when somebody types, the error stays, and its place moves by one column:
   diagnostics of the text before the edit can't be mistaken for those after it.
"""

import json
from typing import Any, Literal, NamedTuple

Error = Literal["schema", "syntax"]

TYPED = "steady"  # the string that is typed at
HEAD: dict[str, Any] = {
    "context": {"ancestor_depth": 1, "keep_recent_turns": 4, "truncation_strategy": "oldest_first"},
    "compaction": {"enabled": True, "threshold": 0.8},
    "permissions": {"level": "trusted"},
    "parameters": {"temperature": 0.2, "max_tokens": 4096},
}


class Document(NamedTuple):
    """A text with one error. Lines and columns count from 0; the text is ASCII: any position encoding."""

    text: str
    line: int
    edit_column: int  # where the typed character goes
    first_column: int  # the error starts in [first_column, last_column] of the unedited text
    last_column: int


def config(lines: int, error: Error) -> Document:
    """A config.json of exactly `lines` lines (at least 40) with one error of the given kind at the middle."""
    body = [*_head(), '  "agents": {']
    tail = ["  },", '  "models": {', *_model(0, last=True), "  }", "}"]
    room = lines - len(body) - len(tail)
    agents = [line for number in range((room - 1) // 4) for line in _agent(number)]
    models = [f'    "filler-{n}": {{ "context_window": {8000 + n} }},' for n in range(room - 1 - len(agents))]
    middle = len(agents) // 8 * 4
    bad, first, last = _bad_line(error)
    above = [*body, *agents[:middle]]
    below = agents[middle:]
    below[-1] = below[-1].rstrip(",")
    text = "\n".join([*above, bad, *below, *tail[:2], *models, *tail[2:]]) + "\n"
    assert text.count("\n") == lines, (text.count("\n"), lines)
    return Document(text, len(above), bad.index(TYPED) + len(TYPED), first, last)


def instructions(lines: int) -> Document:
    """An instruction file of exactly `lines` lines, one of which imports a file that is not there."""
    start, lost = f"- Be {TYPED} and read ", "@docs/gone.md"
    rules = [f"- Part {number} of the house has rules of its own." for number in range(lines - 1)]
    middle = lines // 2
    text = "\n".join([*rules[:middle], f"{start}{lost} first.", *rules[middle:]]) + "\n"
    place = len(start)
    return Document(text, middle, start.index(TYPED) + len(TYPED), place, place + len(lost))


def error_column(diagnostics: list[Any], document: Document, *, typed: int) -> int | None:
    """The one error's column before any edit; None if the diagnostics are wrong after `typed` characters.

    Hints and information (severity 3 and 4) may stand anywhere; an error or warning anywhere else is wrong.
    """
    found = [item["range"]["start"] for item in diagnostics if item.get("severity", 1) <= 2]
    if len(found) != 1 or found[0]["line"] != document.line:
        return None
    column: int = found[0]["character"] - typed
    return column if document.first_column <= column <= document.last_column else None


def edit(document: Document, *, insert: bool) -> dict[str, Any]:
    """The contentChanges item that types the character or takes it out again."""
    start = {"line": document.line, "character": document.edit_column}
    end = start if insert else {"line": document.line, "character": document.edit_column + 1}
    return {"range": {"start": start, "end": end}, "text": "x" if insert else ""}


def _head() -> list[str]:
    lines = json.dumps(HEAD, indent=2).split("\n")
    return [*lines[:-2], lines[-2] + ","]


def _agent(number: int) -> list[str]:
    return [
        f'    "agent-{number}": {{',
        '      "role": "worker",',
        f'      "task": "Look after part {number} of the house and report what changed."',
        "    },",
    ]


def _model(number: int, *, last: bool) -> list[str]:
    return [
        f'    "bench-{number}": {{',
        '      "context_window": 128000,',
        '      "max_output": 8192',
        "    }" if last else "    },",
    ]


def _bad_line(error: Error) -> tuple[str, int, int]:
    start = f'    "agent-odd": {{ "role": "worker", "task": "{TYPED}",'
    if error == "schema":
        key = '"tasks"'
        return f"{start} {key}: 1 }},", len(start) + 1, len(start) + 1 + len(key)
    return f"{start} }},", len(start) - 1, len(start) + 1  # a comma before the brace
