"""Find the names and values in a text: paths, commands, symbols, ids, dates, amounts.

1. One pattern splits the text into words; `word_kinds` classifies each. Nothing backtracks: the time is
   proportional to the length. Words longer than LONGEST are skipped.
2. Of a text longer than HEAD + TAIL only that many characters of its beginning and end are read.
3. Text between backticks is a name however it is spelled, or a command if it begins like one.
4. Lines that begin with a prompt (`$ `) and lines of shell fences are commands.
5. Keys of JSON objects are not names, unless they hold a digit: every result repeats them.
6. Names stay as written, without the punctuation around them.
"""

import re
from collections.abc import Iterable

from nexus_context.conversation.identifiers.word_kinds import FILE_NAMES, LETTERS, Mention, classify

HEAD = 12_000
"""Characters of a text's beginning that are read."""
TAIL = 4_000
"""Characters of a text's end that are read."""
LONGEST_COMMAND = 120
"""Most characters of a command."""

_WORDS = re.compile(
    rf"""(?:https?|wss?|ftp|file|git|ssh|postgres(?:ql)?|mysql|redis|mongodb|s3)://[^\s"'`<>()\[\]{{}}|]+
    | [$€£¥]?[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?                 # 1,250.00
    | [A-Za-z]:\\[{LETTERS}0-9_.\\-]{{1,200}}                                   # C:\a\b.txt
    | </?[A-Za-z][A-Za-z0-9:-]*                                             # a tag is not a name
    | [{LETTERS}0-9_$€£¥~\#@./+%:-]+(?:\(\))?""",
    re.VERBOSE,
)
_JSON_KEYS = re.compile(r'"[A-Za-z_ -]{1,60}"[ ]?:')
_CODE = re.compile(r"`([^`\n]{1,120})`")
_SHELL_LINE = re.compile(r"^[ \t>]{0,8}[$❯] ([^\n]{2,300})$", re.MULTILINE)
_SHELL_FENCE = re.compile(r"^```(?:bash|sh|shell|console|zsh|powershell)\n([^`]{2,2000})```", re.MULTILINE)
_STARTS_COMMAND = re.compile(
    r"(?:sudo |[A-Z_]{1,40}=\S{1,80} )?(?:\./\S+|(?:git|npm|npx|yarn|pnpm|bun|deno|node|python3?|pip3?|uv|uvx"
    r"|poetry|pytest|tox|ruff|mypy|make|cmake|cargo|rustc|go|java|mvn|gradle|docker|kubectl|helm|terraform|bash"
    r"|sh|curl|wget|ssh|scp|rsync|cd|ls|cat|rm|cp|mv|mkdir|grep|rg|find|sed|awk|tar|chmod|systemctl|journalctl"
    r"|apt|brew|psql|sqlite3|redis-cli|aws|gcloud|az|gh|code|nexus)) \S"
)


def find(text: str, *, head: int = HEAD, tail: int = TAIL) -> list[Mention]:
    """The names and values in a text, each once: commands and marked code first, then in order."""
    if len(text) > head + tail:
        text = f"{text[:head]}\n{text[len(text) - tail :]}"
    names: dict[Mention, None] = {}
    if "`" in text:
        for match in _SHELL_FENCE.finditer(text):
            names.update(dict.fromkeys(map(command, filter(_is_command, match[1].splitlines()))))
        for match in _CODE.finditer(text):
            names.update(dict.fromkeys(_code(match[1])))
    if "$ " in text or "❯ " in text:
        lines = (match[1] for match in _SHELL_LINE.finditer(text) if match[1].isprintable())
        names.update(dict.fromkeys(map(command, lines)))
    if '":' in text or '" :' in text:
        text = _JSON_KEYS.sub(" ", text)
    if "diff --git " in text or "\n+++ b/" in text:
        text = text.replace(" a/", " ").replace(" b/", " ")
    for word in dict.fromkeys(_WORDS.findall(text)):
        if word.isalpha() and (word.islower() or (word.istitle() and word not in FILE_NAMES)):
            continue  # most words are plain
        for each in classify(word):
            names[each] = None
    return list(names)


def command(line: str) -> Mention:
    """A command as a name: its first line, with a mark if it was cut."""
    first, more, _ = line.strip().replace("\t", " ").partition("\n")
    if len(first) > LONGEST_COMMAND:
        first, more = first[:LONGEST_COMMAND], "…"
    return Mention("command", f"{first.rstrip()} …" if more else first.rstrip())


def _is_command(line: str) -> bool:
    return bool(line.strip()) and line.isprintable() and not line.lstrip().startswith("#")


def _code(code: str) -> Iterable[Mention]:
    code = code.strip()
    if " " in code:
        return (command(code),) if _STARTS_COMMAND.match(code) and code.isprintable() else ()
    names = classify(code)
    if not names and len(code) > 1 and code.isascii() and code.isidentifier():
        return (Mention("symbol", code),)
    return names
