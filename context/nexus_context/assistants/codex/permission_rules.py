"""Reads the rules for commands in the `.rules` files of Codex.

1. The files are `*.rules` in the directory `rules` beside each settings file that counts, sorted by name. A
   file is a program in Starlark. Calls of `prefix_rule` and `host_executable` with plain values are read here
   as Codex reads them. Of a file with variables, loops or functions it is only known that there may be more
   rules.
2. A pattern is a list; each item is a word, or a list of words of which one must be there. A rule covers a
   command that begins with these words. The first word may also be a path that ends with it, unless
   `host_executable` lists other paths. If several rules cover a command, the strictest counts.
3. If one rule is not valid, or does not cover its own example, Codex takes no rule of any file.
"""

import ast
import io
import os
import re
import shlex
import tokenize
from typing import Any, NamedTuple

import msgspec

from nexus_context.assistants.permissions.decision import PermissionRule, RuleKind
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings
from nexus_context.errors import Span

KINDS: dict[str, RuleKind] = {"allow": "allow", "prompt": "ask", "forbidden": "deny"}
_PARAMETERS = ("pattern", "decision", "match", "not_match", "justification")
_ESCAPE = re.compile(r"\\[^nt\\'\"]")


class CommandRule(NamedTuple):
    """A `prefix_rule`. `pattern` has, for each word, the words that may stand there."""

    pattern: tuple[tuple[str, ...], ...]
    rule: PermissionRule

    def covers(self, command: list[str]) -> bool:
        """Whether the words of a command begin with the pattern."""
        return len(command) >= len(self.pattern) and all(
            word in words for word, words in zip(command, self.pattern, strict=False)
        )


class CommandRules(NamedTuple):
    """The rules of all files. `by_name` has them by the first word of their patterns.

    `executables` maps a name to the only paths that rules about the name cover; without an entry they cover
    every path that ends with the name. `unread` is a file that may hold rules that are not read here.
    `refused` is the path, place and reason of a rule for which Codex takes none.
    """

    by_name: dict[str, list[CommandRule]]
    executables: dict[str, list[str]]
    unread: str | None = None
    refused: tuple[str, Span, str] | None = None

    def covering(self, command: list[str]) -> list[CommandRule]:
        """List the rules that cover a command, in the order of the files."""
        if not command:
            return []
        rules = [rule for rule in self.by_name.get(command[0], ()) if rule.covers(command)]
        name = os.path.basename(command[0])
        if not rules and name != command[0] and command[0] in self.executables.get(name, command[:1]):
            return self.covering([name, *command[1:]])
        return rules


class _RefusedRuleError(Exception):
    """Codex refuses a rule; the message says why."""


class _UnreadError(Exception):
    """A value that only a run of the program gives."""


def read_rules(settings: AssistantSettings, disk: Disk) -> CommandRules:
    """Read the rules that are in force in a folder. If one is not valid, there are none and `refused` says
    why.
    """
    rules = CommandRules({}, {})
    directories = dict.fromkeys(os.path.dirname(file.path) for file in settings.files)
    for directory in (os.path.join(directory, "rules") for directory in directories):
        for name, _ in sorted(disk.entries(directory)):
            path = os.path.join(directory, name)
            text = disk.text(path) if name.endswith(".rules") else None
            if text is None:
                continue
            try:
                if not _read_file(path, text, rules):
                    rules = rules._replace(unread=path)
            except _RefusedRuleError as error:
                why, span = error.args
                return CommandRules({}, {}, refused=(path, span, why))
    return rules


def _read_file(path: str, text: str, rules: CommandRules) -> bool:
    """Add the rules of a file; False if it says more than is read here."""
    try:
        statements = ast.parse(text).body
        texts = [
            token
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.STRING
        ]
    except (SyntaxError, ValueError, tokenize.TokenError) as error:
        if "too many" in str(error):  # only Python counts brackets
            return False
        raise _RefusedRuleError(str(error), Span(0, 0)) from error
    except (RecursionError, MemoryError):
        return False
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    constants, is_read = 0, all(_ESCAPE.search(token.string) is None for token in texts)
    for statement in statements:
        value = statement.value if isinstance(statement, ast.Expr) else None
        constants += sum(
            isinstance(node, ast.Constant) and isinstance(node.value, str) for node in ast.walk(statement)
        )
        if isinstance(value, ast.Constant) or isinstance(statement, ast.Pass):
            continue
        if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Name)):
            is_read = False
            continue
        span = _span(value, lines, starts)
        try:
            _add_call(
                value,
                PermissionRule(kind="allow", text="", tool="Bash", pattern=None, path=path, span=span),
                rules,
            )
        except _UnreadError:
            is_read = False
        except _RefusedRuleError as error:
            raise _RefusedRuleError(error.args[0], span) from error
    if constants < len(texts):
        raise _RefusedRuleError("Two texts stand side by side; Starlark does not join them.", Span(0, 0))
    return is_read


def _span(node: ast.expr, lines: list[str], starts: list[int]) -> Span:
    """The first line of a call."""
    line = lines[node.lineno - 1]
    start = starts[node.lineno - 1] + len(line.encode()[: node.col_offset].decode(errors="replace"))
    return Span(start, starts[node.lineno - 1] + len(line.rstrip()))


def _add_call(call: ast.Call, rule: PermissionRule, rules: CommandRules) -> None:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    values = {
        parameter: _value(argument) for parameter, argument in zip(_PARAMETERS, call.args, strict=False)
    }
    values |= {keyword.arg or "": _value(keyword.value) for keyword in call.keywords}
    if name == "host_executable":
        paths = values.get("paths", values.get("decision"))
        if isinstance(paths, list):
            rules.executables[str(values.get("name", values.get("pattern")))] = list(map(str, paths))
        return
    if name == "network_rule":
        return
    if name != "prefix_rule":
        raise _UnreadError
    unknown_parameter = next((parameter for parameter in values if parameter not in _PARAMETERS), None)
    if unknown_parameter is not None:
        raise _RefusedRuleError(f"`prefix_rule` has no parameter `{unknown_parameter}`.")
    decision = "allow" if values.get("decision") is None else values["decision"]
    if decision not in KINDS:
        raise _RefusedRuleError("The decision must be `allow`, `prompt` or `forbidden`.")
    if isinstance(values.get("justification"), str) and not values["justification"].strip():
        raise _RefusedRuleError("The justification is empty.")
    pattern = _pattern(values.get("pattern"))
    text = " ".join("|".join(words) for words in pattern)
    permission_rule = msgspec.structs.replace(rule, kind=KINDS[decision], text=text, pattern=text)
    command_rule = CommandRule(pattern, permission_rule)
    for is_match, key in ((True, "match"), (False, "not_match")):
        for example in values.get(key) or ():
            if command_rule.covers(_words(example)) is not is_match:
                raise _RefusedRuleError(f"The rule does not do what its `{key}` says of `{example}`.")
    for head in pattern[0]:
        rules.by_name.setdefault(head, []).append(command_rule)


def _pattern(value: Any) -> tuple[tuple[str, ...], ...]:
    words = [[item] if isinstance(item, str) else item for item in value] if isinstance(value, list) else []
    if not words or not all(
        isinstance(alternatives, list)
        and alternatives
        and all(isinstance(word, str) for word in alternatives)
        for alternatives in words
    ):
        raise _RefusedRuleError("The pattern must be a list of texts, or of lists of texts.")
    return tuple(tuple(alternatives) for alternatives in words)


def _words(example: Any) -> list[str]:
    try:
        words = shlex.split(example) if isinstance(example, str) else example
    except ValueError:
        words = []
    if not isinstance(words, list) or not words:
        raise _RefusedRuleError("An example must be a command.")
    return words


def _value(node: ast.expr) -> Any:
    """A plain value. Tuples are none that Codex takes for a list."""
    if isinstance(node, ast.List):
        return [_value(element) for element in node.elts]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple):
        return tuple(_value(element) for element in node.elts)
    raise _UnreadError
