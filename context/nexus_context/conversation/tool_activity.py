"""Extracts what the tools of a conversation did: files touched, commands run and their outcome, errors.

1. A tool writes a file if its name, or its argument `command`, says so (write, edit, create, replace, …).
   Otherwise it reads the file. A patch names its files itself.
2. The outcome of a command is a line that counts (`3 passed`), its last error, or the last line of its
   result.
3. Errors are the lines of a result that look like errors. The last MOST_ERRORS count; the names of failed
   tests count only if there is no other error. The result of a tool that only reads (a file, a listing) is
   searched only if it is short, because source code is full of such lines. A result that is flagged as an
   error, or whose command ended with an exit code other than 0, always has an error: the line that looks most
   like one, else the last line.
4. An error is resolved when the same command, or the same tool on the same file, later ends without one.
   Errors of other tools stay unresolved.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.identifiers import PATH_KEYS, arguments_of, is_shell, leaves
from nexus_context.conversation.message import Message, ToolCall, is_error, text_of

MOST_ERRORS = 3
"""Errors of one result that are reported."""
LONGEST_LINE = 240
"""Most characters of an error or an outcome."""
LONGEST_COMMAND = 200
"""Most characters of a command."""
READ = 12_000
"""Characters of a result that are searched for a summary."""


class FileUse(msgspec.Struct):
    """A file, how often it was written and read, and when it was last used."""

    path: str
    writes: int = 0
    reads: int = 0
    at: int = 0


class CommandRun(NamedTuple):
    """A command, the outcome of its last run, how often it ran, and when it last ran."""

    command: str
    outcome: str
    failed: bool
    times: int
    at: int


class Failure(NamedTuple):
    """An error message and the command or tool that it came from. `resolved` says whether it is resolved, and
    `at` when it last occurred.
    """

    text: str
    where: str
    resolved: bool
    at: int


class ToolActivity(NamedTuple):
    """What tools did: files, runs of commands and failures, each in the order of its first occurrence."""

    files: list[FileUse]
    runs: list[CommandRun]
    failures: list[Failure]


def activity_of(
    messages: Sequence[Message], earlier: Sequence[Failure] = (), *, most: int = READ
) -> ToolActivity:
    """Return what the tools did in these messages. They may resolve the failures `earlier` of previous
    messages.

    At most `most` characters of a result are searched: a third of them at its beginning, the rest at its end.
    """
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    files: dict[str, FileUse] = {}
    runs: dict[str, CommandRun] = {}
    failures = {(failure.where, failure.text): failure for failure in earlier}
    unresolved: dict[str, list[tuple[str, str]]] = {}  # where → keys of its failures
    for where, text in failures:
        unresolved.setdefault(where, []).append((where, text))
    for at, message in enumerate(messages):
        for call in message.tool_calls:
            arguments = arguments_of(call.arguments)
            _use_files(files, call, arguments, at)
            command = _command(call, arguments)
            answer = results.get(call.id)
            result = "" if answer is None else _read(text_of(answer), most)
            has_failed = _exit_code(result) not in (None, 0)
            errors = _errors_of(call, command, answer, result, has_failed=has_failed)
            where = command or _tool_and_file(call, arguments)
            failed = bool(errors) or has_failed
            if command:
                times = runs[command].times + 1 if command in runs else 1
                outcome = _outcome(result, errors)
                runs[command] = CommandRun(command, outcome, failed=failed, times=times, at=at)
            if answer is not None and not failed and where != call.name:
                for key in unresolved.pop(where, ()):
                    failures[key] = failures[key]._replace(resolved=True)
            for error in errors:
                failures.pop((where, error), None)  # to the end: it is the latest
                failures[where, error] = Failure(error, where, False, at)
                unresolved.setdefault(where, []).append((where, error))
    return ToolActivity(list(files.values()), list(runs.values()), list(failures.values()))


def is_minor(command: str) -> bool:
    """Whether a command only reads."""
    return all(
        _READING_COMMAND.match(part.strip()) for part in re.split(r"&&|;|\|\|?", command) if part.strip()
    )


def _use_files(files: dict[str, FileUse], call: ToolCall, arguments: Any, at: int) -> None:
    paths: dict[str, bool] = {}
    action = arguments.get("command") if isinstance(arguments, dict) else None
    name = f"{call.name} {action}" if isinstance(action, str) and len(action) < 32 else call.name
    writes = bool(_WRITES.search(name)) and not _READS_AFTER_ALL.search(name)
    for key, value in leaves(arguments):
        if not isinstance(value, str):
            continue
        if key.lower() in PATH_KEYS and 0 < len(value) <= 300 and value.isprintable():
            paths[value] = writes
        elif "*** " in value or "+++ " in value:
            paths.update((match[1].strip(), True) for match in _PATCHED.finditer(value[:READ]))
    for path, written in paths.items():
        use = files.setdefault(path, FileUse(path))
        use.at = at
        if written:
            use.writes += 1
        else:
            use.reads += 1


def _command(call: ToolCall, arguments: Any) -> str:
    """The first line of the command that a call runs; empty without one."""
    if not isinstance(arguments, dict):
        return ""
    for key, value in arguments.items():
        if not is_shell(call.name, key):
            continue
        if isinstance(value, list):
            value = value[-1] if len(value) > 2 and value[1] in ("-c", "-lc") else " ".join(map(str, value))
        if isinstance(value, str) and value.strip():
            first_line, other_lines, _ = value.strip().partition("\n")
            short = first_line if len(first_line) <= LONGEST_COMMAND else first_line[:LONGEST_COMMAND]
            return f"{short.rstrip()} …" if other_lines or short != first_line else first_line
    return ""


def _tool_and_file(call: ToolCall, arguments: Any) -> str:
    """The tool and the first file that a call names, if any."""
    path = next((value for key, value in leaves(arguments) if key.lower() in PATH_KEYS), None)
    return call.name if path is None else f"{call.name} {path}"


def _only_reads(call: ToolCall, command: str) -> bool:
    return is_minor(command) if command else bool(_READING_TOOL.search(call.name))


def _read(text: str, max_characters: int) -> str:
    if len(text) <= max_characters:
        return text
    return f"{text[: max_characters // 3]}\n{text[-max_characters * 2 // 3 :]}"


def _errors_of(
    call: ToolCall, command: str, answer: Message | None, result: str, *, has_failed: bool
) -> list[str]:
    """The errors in the result of a call; `has_failed` by its exit code."""
    if answer is None:
        return []
    flagged = is_error(answer) or result.startswith(_ERROR_TAG)
    failed = flagged or has_failed
    searched = failed or len(result) < _SHORT or not _only_reads(call, command)
    errors = list(_errors(result)) if searched else []
    if failed and not errors:
        headline = _headline(result)
        return [headline] if headline else []
    return errors


def _errors(result: str) -> Iterator[str]:
    """The last few lines that look like errors, each once."""
    errors: dict[str, None] = {}
    tests: dict[str, None] = {}
    for match in _ERROR_LINE.finditer(result):
        line = _ASSERT_MARK.sub("", match["line"].strip())
        if not _NO_ERROR.search(line):
            (tests if line.startswith(_FAILED_TESTS) else errors)[_shortened(line)] = None
    yield from list(errors or tests)[-MOST_ERRORS:]


def _headline(result: str) -> str:
    """The most telling line of a failed call's result: one with a word of failure, else the last."""
    lines = [_TAGS.sub("", line).strip() for line in result.splitlines()]
    lines = [line for line in lines if line and not _EXIT_LINE.fullmatch(line) and not _PROMPT.search(line)]
    failure_line = next((line for line in reversed(lines) if _FAILURE_WORD.search(line)), None)
    return _shortened(failure_line or lines[-1]) if lines else ""


def _shortened(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]} […]"


def _exit_code(result: str) -> int | None:
    codes = _EXIT.findall(result)
    return int(codes[-1]) if codes else None


def _outcome(result: str, errors: Sequence[str]) -> str:
    """How a command ended, in its own words; empty if it printed nothing."""
    counted = [match["line"].strip(" =") for match in _COUNTED.finditer(result)]
    if counted:
        return counted[-1][:LONGEST_LINE]
    if errors:
        return errors[-1]
    lines = [line.strip() for line in result[-2000:].splitlines()]
    last_line = next((line for line in reversed(lines) if line and not _PROMPT.search(line)), "")
    return last_line if len(last_line) <= LONGEST_LINE else ""


_SHORT = 600  # characters
_WRITES = re.compile(
    r"(?i)write|edit|creat|replace|patch|update|insert|appl|delet|remove|renam|move|append|modif|save|undo"
)
_READS_AFTER_ALL = re.compile(r"(?i)(?:^|\s)(?:view|read|open|cat|list|show|search|grep|glob|find)\b")
_READING_TOOL = re.compile(r"(?i)read|view|open|cat|grep|search|glob|list|\bls\b|find|fetch|get|show|look")
_READING_COMMAND = re.compile(
    r"(?:ls|cat|cd|pwd|head|tail|grep|rg|find|echo|wc|which|tree|less|file|stat|sed -n|nl|sort|uniq|env"
    r"|printenv|date|whoami|git (?:status|log|diff|show|branch|remote|blame)|open|goto|scroll_\w+|search_\w+"
    r"|find_file)\b"
)
_PATCHED = re.compile(r"^(?:\*\*\* (?:Update|Add|Delete) File: |\+\+\+ b/)([^\n\t]{1,300})", re.MULTILINE)
_EXIT = re.compile(
    r"(?i)\b(?:exit(?:ed)?(?:\s+with)?(?:\s+(?:code|status))?|return\s?code)\"?[:= ]{1,3}(-?\d{1,4})\b"
)
_PROMPT = re.compile(r"^[\w.@:~-]{0,60}[$#>]$|^\((?:Open file|Current directory):")
_ERROR_TAG = "<tool_use_error>"
_TAGS = re.compile(r"</?(?:tool_use_error|error|stderr|output)>")
_EXIT_LINE = re.compile(
    r"(?i)[\[(<]?(?:process )?(?:exit(?:ed)?(?: with)?(?: code| status)?|return ?code)[:= ]*-?\d{1,4}\W{0,3}"
)
_ASSERT_MARK = re.compile(r"^E {2,8}(?=assert )")
_FAILED_TESTS = ("FAILED ", "FAIL ", "FAIL:", "--- FAIL")
_FAILURE_WORD = re.compile(
    r"(?i)\b(?:error|fail\w*|fatal|cannot|can't|could not|unable|denied|refused|reject\w*|invalid|not found"
    r"|no such|missing|unknown|unexpected|undefined|abort\w*|timed? ?out|panic|out of \w+)\b"
)
_COUNTED = re.compile(
    r"""(?imx)^(?P<line>[^\n]{0,120}
    \b\d+\ (?:passed|failed|errors?|problems?|tests?|warnings?|skipped|passing|failing)\b[^\n]{0,120})$"""
)
_ERROR_LINE = re.compile(
    r"""(?mx)^[ \t]{0,16}(?:E\ {1,8})?(?P<line>(?:
        (?:[A-Za-z_][\w.]{0,80}\.)?[A-Z][A-Za-z0-9]{0,60}(?:Error|Exception|Panic|Fault)\b(?::[^\n]{0,400})?
      | (?:[Ee]rror|ERROR|[Ff]atal|FATAL|FAILED|FAIL|ERR!|npm\ (?:ERR!|error)|panic|---\ FAIL)\b
        (?:\[[A-Z0-9]+\])?[: ][^\n]{1,400}
      | [^\s:]{1,120}:\d+(?::\d+)?:\ (?:fatal\ )?error:?\ [^\n]{1,300}
      | [^\s:()]{1,160}\(\d+,\d+\):\ error\ [^\n]{1,300}
      | \d+:\d+\ {1,4}error\ [^\n]{1,300}
      | [^\s:]{1,160}:\d+:\d+(?::|\ -\ error)\ (?!in\ |warning|note|info)[^\n]{1,300}
      | (?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Timeout|Expired|NotExist|NotFound|Denied|Interrupt|Failure
        |Failed|Refused|Aborted|Exit|Invalid)\b:?[^\n]{0,400}
      | E\ {2,8}assert\ [^\n]{1,300}
      | (?:Uncaught|Caused\ by:|E:|!\ \[|curl:\ \(\d+\))\ ?[^\n]{1,300}
      | [\w./-]{1,40}(?:\[\d+\])?:\ (?:\*\*\*|(?:fatal\ )?[Ee]rror\b|FATAL|fatal|\[(?:emerg|error)\]
        |cannot\ |failed\ |unable\ )[^\n]{1,300}
      | (?:[Cc]annot|[Cc]ould\ not|[Uu]nable\ to|[Ff]ailed\ to|[✕✗✖×]|not\ ok\ \d|denied:)[ ][^\n]{3,300}
      | (?:Expected|expected)\ [^\n]{1,160}\ (?:to|but|got|received|found)\ [^\n]{0,200}
      | \{[^\n]{0,40}"(?:error|errors|exception)":[^\n]{1,300}
      | \{[^\n]{0,40}"(?:status|statusCode|code)":\ ?"?[45]\d\d\b[^\n]{0,300}
      | [^\n]{0,160}(?:command\ not\ found|No\ such\ file\ or\ directory|[Pp]ermission\ denied|panicked\ at
        |:\ not\ found|cannot\ find\ module|Segmentation\ fault|ECONNREFUSED|not\ recognized\ as
        |[Tt]imed\ out)[^\n]{0,200}
    ))$"""
)
_NO_ERROR = re.compile(
    r"(?i)\b(?:0 errors?|no errors?|0 failed|errors?: 0)\b|\*\*\* \[[^\]]*\] Error \d"
    r"|\bclass \w+|\bexcept\b|\braise\b|\bimport\b"
)
