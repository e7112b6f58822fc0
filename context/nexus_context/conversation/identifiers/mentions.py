"""The names and values that one message mentions, by source.

1. Sources are kept apart: user text, arguments of calls, assistant text, results of tools. A result floods;
   an argument is what a step was about.
2. Arguments: a value under a key for files is a path, under a key for commands a command. Other values are
   searched as text, long ones (a file that is written) only at their beginning.
3. JSON escapes in a result are decoded, so that a word after an escaped line end is a separate word.
"""

from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from nexus_context.conversation.identifiers.find import command, find
from nexus_context.conversation.identifiers.word_kinds import LONGEST, Mention
from nexus_context.conversation.message import Message, text_of

Source = Literal["user", "call", "assistant", "written", "result"]

_FOR_PATHS = (
    "path paths file files file_path filepath filename file_name target_file notebook_path relative_path "
    "absolute_path old_path new_path workdir"
)
PATH_KEYS = frozenset(_FOR_PATHS.split())
COMMAND_KEYS = frozenset(("command", "cmd", "commands", "script", "shell_command", "command_line"))
SHELLS = ("bash", "shell", "execute", "exec", "terminal", "run", "cmd", "command", "console", "powershell")
MOST_VALUES = 400
"""Most values of one call that are searched."""
LONG = 200
"""Characters above which a value of a call counts as text."""
RESULT_HEAD = 6_000
"""Characters of a result's beginning that are read."""
RESULT_TAIL = 2_000
"""Characters of a result's end that are read."""
WRITTEN = 4_000
"""Characters of a text in a call's arguments that are read."""
_DEPTH = 8


def mentions(message: Message) -> list[tuple[Source, list[Mention]]]:
    """The names and values of a message by source, in order; a name may occur in several lists."""
    text = text_of(message)
    if message.role == "tool":
        return [("result", find(_unescaped(text), head=RESULT_HEAD, tail=RESULT_TAIL))]
    by_source: list[tuple[Source, list[Mention]]] = []
    if text:
        by_source.append(("assistant" if message.role == "assistant" else "user", find(text)))
    for call in message.tool_calls:
        by_source += _of_call(call.name, arguments_of(call.arguments))
    return by_source


def arguments_of(arguments: Any) -> Any:
    """The arguments of a call as a value; a JSON string is decoded."""
    if isinstance(arguments, str):
        try:
            return msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return arguments
    return arguments


def is_shell(tool: str, key: str) -> bool:
    """Whether `key` of a tool's arguments holds a command line."""
    name = tool.lower()
    return key in COMMAND_KEYS and any(shell in name for shell in SHELLS)


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The leaves of a JSON value, each with the key of itself or its list; bounded."""
    stack: list[tuple[str, Any, int]] = [(key, value, 0)]
    count = 0
    while stack and count < MOST_VALUES:
        name, item, depth = stack.pop()
        if isinstance(item, dict):
            if depth < _DEPTH:
                stack.extend([(str(each), inner, depth + 1) for each, inner in reversed(item.items())])
        elif isinstance(item, list):
            if depth < _DEPTH:
                stack.extend([(name, inner, depth + 1) for inner in reversed(item)])
        else:
            count += 1
            yield name, item


def _of_call(tool: str, arguments: Any) -> Iterator[tuple[Source, list[Mention]]]:
    for key, value in leaves(arguments):
        if value is None or isinstance(value, bool):
            continue
        text = str(value)
        if isinstance(value, str) and is_shell(tool, key):
            parts = [mention for mention in find(text, head=WRITTEN, tail=0) if mention.kind != "command"]
            line = command(text)
            yield "call", [line, *parts] if line.text.isprintable() else parts
        elif key.lower() in PATH_KEYS and 0 < len(text) <= LONGEST and text.isprintable():
            yield "call", [Mention("path", text)]
        elif len(text) > LONG:
            yield "written", find(text, head=WRITTEN, tail=0)
        else:
            yield "call", find(text) or _code_of(text)


def _code_of(value: str) -> list[Mention]:
    """A short value that is not a plain word, such as JFK."""
    return [Mention("id", value)] if 1 < len(value) <= 5 and value.isascii() and value.isupper() else []


def _unescaped(text: str) -> str:
    """A JSON text with its escapes decoded; any other text unchanged."""
    if "\\" not in text or not text.startswith(("{", "[", '"')):
        return text
    text = text.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "")
    return text.replace('\\"', '"').replace("\\/", "/").replace("\0", "\\")
