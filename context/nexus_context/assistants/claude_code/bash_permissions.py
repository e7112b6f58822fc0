"""Decides what Claude Code does with a script of Bash.

1. Deny and ask rules are compared with every command of the script, wherever it stands, without what is in
   front of it (`sudo`, `env`, `timeout`, variables, a directory). A deny rule counts first, unless an ask
   rule is exactly the command. Rules for files are compared with the files that known commands read or write,
   and with redirections.
2. A rule that allows all of Bash allows the rest. Otherwise each command must be allowed: by a rule for its
   text, or because it only reads. `acceptEdits` allows some commands that write.
3. Claude Code asks about a command with a file that is outside of the folder, or whose name only the shell
   knows. It also asks about a redirection into a file that may not be edited, and about what it does not look
   into (`_OPAQUE`). It looks into a `for` loop only after it has run a command in the session; the decision
   here is the one before that.
"""

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import dropwhile, pairwise, takewhile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tree_sitter import Node

from nexus_context.assistants.claude_code.permission_rules import (
    PermissionSettings,
    absolute_path,
    is_protected,
    wildcard,
)
from nexus_context.assistants.permissions.decision import Decision, PermissionRule, RuleKind
from nexus_context.assistants.permissions.shell import (
    Construct,
    ShellCommand,
    ShellScript,
    ShellWord,
    nodes_below,
    parse_bash,
    read_script,
    text_of,
)
from nexus_context.disk.files import read_text

COMMANDS = Path(__file__).with_name("bash_commands.json")
_OPAQUE: tuple[Construct, ...] = (
    *("subshell", "group", "case", "function", "background", "braces", "heredoc", "array"),
)
_NEVER = ("eval", ".", "source", "exec")  # whatever a rule allows
_LIST = re.compile(r"-f|--file=?")  # of patterns to look for
_NOWHERE = ("/dev/null", "/dev/stdout", "/dev/stderr")
_ESCAPED = re.compile(r"\\[\s`]")
_PATTERN = re.compile(r"[*?\[]")
_TEST = re.compile(r"(?:\[{1,2}|test) -[a-uw-z] [\w./-]+(?: \]{1,2})?")
_DISTRUSTED = re.compile(r"[\u00a0\u2028\u2029\u200b]|(?:^|\s)[=~][\w+-]|[^\s\\]\\\n|[<>]&-")
"""Text that the program does not trust itself to read, even in a here-document."""
_DISTRUSTED_CODE = re.compile(r"\$['\"\[{]|\n\s*#|<<<\s*(?!')[^\s<$]*\$")
"""The same outside of here-documents and comments."""
_HIDDEN = re.compile(r"\$\{[^}`]{0,200}`([^`]*)`")
_QUOTED = re.compile(r"(['\"])\w+\1|\\\w+", re.ASCII)
NO_TEXT = "(?!)"  # a pattern that matches nothing
_PLAIN_VALUE = re.compile(r"(?!/|\.\.?/|(?:.*/)?\.\.(?:/|\Z))[\w./:-]+", re.ASCII)
_WRAPPER_OPTIONS = {
    "builtin": re.compile(r"(?:-- )?"),
    "command": re.compile(r"(?:-p )?(?:-- )?"),
    "nice": re.compile(r"(?:-n -?\d+ |-\d+ )?"),
    "noglob": re.compile(""),
    "nohup": re.compile(""),
    "stdbuf": re.compile(r"(?:-[ioe][LN\d]+ )+"),
    "time": re.compile(r"(?!time )"),
    "timeout": re.compile(
        r"(?:(?:-v|--(?:foreground|preserve-status|verbose)|--(?:kill-after|signal)[= ][\w.+-]+"
        r"|-[ks] ?[\w.+-]+) )*\d+(?:\.\d+)?[smhd]? ",
        re.ASCII,
    ),
}
"""The options with which the program looks through a wrapper, each with a blank behind it."""
MOST_WRAPPERS = 16
"""Of a command with more before it, no rule is looked for behind them."""


class _Access(NamedTuple):
    """A file that a command reads or writes; no path if only the shell knows it.

    `is_sure` is false for a path that the program does not resolve before it allows something.
    """

    writes: bool
    path: str | None
    is_glob: bool = False
    is_sure: bool = True


class _CommandFiles(NamedTuple):
    """A command of a script, or a redirection (None), with the files that it uses."""

    command: ShellCommand | None
    files: list[_Access]


class _Objection(NamedTuple):
    """Why a script is asked about, and the command that is the reason."""

    reason: str
    part: str | None = None


def decide_script(settings: PermissionSettings, text: str) -> Decision:
    """Decide what the rules say of a script. The caller applies the permission mode afterwards."""
    original_text, text = text, _without_documents(text)
    script = read_script(text, {"HOME": settings.user_home})
    directories = list(_directories(settings, script))
    command_files = [
        *(
            _CommandFiles(command, _files(settings, command, directory))
            for command, directory in zip(script.commands, directories, strict=False)
        ),
        *(
            _CommandFiles(
                None, [_access(settings, redirection.target, directories[-1], writes=redirection.writes)]
            )
            for redirection in script.redirections
        ),
    ]
    stopped = _decide_stopped(settings, script, command_files, text)
    if stopped is not None:
        return stopped
    blanket_rule = next((rule for rule in settings.matching("allow", "Bash") if rule.pattern is None), None)
    if blanket_rule is not None:
        return _decide_whole(settings, script, command_files, blanket_rule)
    if _DISTRUSTED.search(original_text) or _DISTRUSTED_CODE.search(_without_comments(text)):
        return Decision("asks", "The script cannot be read for sure.")
    if not _has_plain_substitutions(text):
        return Decision("asks", "Only the shell knows the text of a substitution in it.")
    objection = next(_objections(settings, script, command_files), None)
    if objection is not None:
        return Decision("asks", objection.reason, part=objection.part)
    rules = [rule for command in script.commands for rule in _allowing(settings, command)]
    if rules:
        return Decision("allowed", f"`{rules[0].text}` allows it.", rules[0])
    only_reads = all(_only_reads(command) for command in script.commands) and not script.redirections
    return Decision(
        "allowed", "It only reads." if only_reads else "It only reads and edits what may be edited."
    )


# ---------------------------------------------------------------- text that is not looked into


def _without_documents(text: str) -> str:
    """The script without the here-documents that the program takes for plain text: those whose word is quoted
    and ends its line, and `"$(cat <<'EOF' …)"`.
    """
    return _without(text, _document_span) if "<<" in text else text


def _without_comments(text: str) -> str:
    if "#" not in text:
        return text
    return _without(text, lambda node: (node.start_byte, node.end_byte) if node.type == "comment" else None)


def _without(text: str, span_of: Callable[[Node], tuple[int, int] | None]) -> str:
    root = parse_bash(text)
    if root is None or root.has_error:
        return text
    data = text.encode(errors="replace")
    spans = [span for node in nodes_below(root) if (span := span_of(node)) is not None]
    pieces, end = list[bytes](), 0
    for start, next_end in sorted(spans):
        pieces.append(data[end:start])
        end = max(end, next_end)
    return b"".join((*pieces, data[end:])).decode(errors="replace")


def _has_plain_substitutions(text: str) -> bool:
    """Whether each substitution is of a single command, in a string in which other text has a blank. Such a
    string is no path and no option.
    """
    root = parse_bash(text) if re.search(r"[(`]", text) else None
    for node in () if root is None else nodes_below(root):
        if node.type == "process_substitution":
            return False
        if node.type == "command_substitution":
            string = node.parent
            contents = [] if string is None or string.type != "string" else string.children
            is_text = any(
                part.type == "string_content" and re.search(r"\s", text_of(part)) for part in contents
            )
            if not is_text or [child.type for child in node.named_children] != ["command"]:
                return False
    return True


def _document_span(node: Node) -> tuple[int, int] | None:
    """Where a here-document is that the program does not look into."""
    statement = node.parent
    parts = [child.type for child in node.children]
    is_alone = statement is not None and len(statement.children) == 2
    if node.type != "heredoc_redirect" or parts[1:] != ["heredoc_start", "heredoc_body", "heredoc_end"]:
        return None
    word = text_of(node.children[1])
    if statement is None or not is_alone or not _QUOTED.fullmatch(word):
        return None
    around = statement.parent
    if around is not None and around.type in ("program", "list"):
        return node.start_byte, node.end_byte
    string = around.parent if around is not None and around.type == "command_substitution" else None
    is_cat = text_of(statement.children[0]) == "cat" and parts[0] == "<<" and not word.startswith("\\")
    if around is None or string is None or string.type != "string" or not is_cat:
        return None
    is_first = around.start_byte == string.start_byte + 1
    return (around.start_byte, around.end_byte) if is_first else None


# ---------------------------------------------------------------- what stops a script


def _decide_stopped(
    settings: PermissionSettings, script: ShellScript, command_files: list[_CommandFiles], text: str
) -> Decision | None:
    """The decision on a script that a deny or ask rule stops."""
    stopped = _stopping(settings, "deny", script, text)
    if stopped is not None:
        rule, part = stopped[0], stopped[1].raw
        shadowed = _shadowed(settings, stopped[1])
        return Decision("denied", f"`{rule.text}` denies `{part}`.", rule, shadowed, part=part)
    for command, files in command_files:
        rules = [rule for access in files for rule in _denying(settings, access)]
        part = text if command is None else command.raw
        if rules and command is not None and ("substitution" in command.inside or command.name == "xargs"):
            return Decision("asks", f"It uses a file that `{rules[0].text}` denies.", part=part)
        if rules:
            return Decision(
                "denied", f"`{rules[0].text}` denies the file that `{part}` uses.", rules[0], part=part
            )
    stopped = _stopping(settings, "ask", script, text)
    if stopped is not None:
        rule, part = stopped[0], stopped[1].raw
        shadowed = _shadowed(settings, stopped[1])
        return Decision("asks", f"`{rule.text}` asks about `{part}`.", rule, shadowed, part=part)
    for inner in _HIDDEN.findall(text):  # the parser does not look there
        stopped = _stopping(settings, "deny", read_script(inner, {}), inner)
        if stopped is not None:
            return Decision("denied", f"`{stopped[0].text}` denies `{inner}`.", stopped[0], part=inner)
    for inner in (inner_script for command in script.commands for inner_script in _inner_scripts(command)):
        if _stopping(settings, "deny", read_script(inner, {}), inner) is not None:
            return Decision("asks", "A shell would run a command that a rule denies.", part=inner)
    return None


def _stopping(
    settings: PermissionSettings, kind: RuleKind, script: ShellScript, text: str
) -> tuple[PermissionRule, ShellCommand] | None:
    """The first rule that covers a command of a script, and that command."""
    rules = settings.matching(kind, "Bash")
    for command in (script.commands or (ShellCommand(text, ()),)) if rules else ():
        forms = set(_denied_forms(command))
        if kind == "deny" and _has_exact(settings, "ask", forms) and not _has_exact(settings, kind, forms):
            continue
        for rule in rules:
            if rule.pattern is None or any(covers_command(rule.pattern, form) for form in forms):
                return rule, command
    return None


def _shadowed(settings: PermissionSettings, command: ShellCommand) -> tuple[PermissionRule, ...]:
    """The rules that would allow a command."""
    blanket_rules = (rule for rule in settings.matching("allow", "Bash") if rule.pattern is None)
    return (*blanket_rules, *_allowing(settings, command))


def _has_exact(settings: PermissionSettings, kind: RuleKind, forms: set[str]) -> bool:
    """Whether a rule is about this very command: an ask of that kind counts before a wider deny."""
    rules = settings.matching(kind, "Bash")
    return any(rule.pattern is not None and rule.pattern.removesuffix(":*") in forms for rule in rules)


def _denied_forms(command: ShellCommand) -> Iterator[str]:
    """The texts of a command that a deny is held against."""
    yield command.raw
    words = [word.raw if word.text is None else word.text for word in command.words]
    yield " ".join(words)
    for behind in _commands_behind(words):
        yield " ".join((os.path.basename(behind[0]), *behind[1:]))


def _commands_behind(words: list[str]) -> Iterator[list[str]]:
    """Yield a command and each command that its wrappers may run; which words are options is unknown."""
    waiting_commands = [words] if words else []
    for _ in range(MOST_WRAPPERS):
        if not waiting_commands:
            return
        command_words = waiting_commands.pop()
        yield command_words
        wrapper = os.path.basename(command_words[0])
        if wrapper not in _table()["lookedThroughToDeny"]:
            continue
        if wrapper in ("nice", "nohup", "stdbuf", "time"):
            behind = command_words[1:]
            if "--" in behind:
                behind.remove("--")
            count = 1 if wrapper == "time" and behind[:1] == ["-p"] else _options_of(wrapper, behind)
            waiting_commands += [] if count is None else [behind[count:]]
            continue
        for at, word in enumerate(command_words[1:], start=1):
            is_option = word.startswith("-")
            if not is_option:
                waiting_commands.append(command_words[at:])
            is_value = command_words[at - 1].startswith("-") or "=" in word or word[:1].isdigit()
            if wrapper == "xargs" or not (is_option or is_value or (wrapper == "flock" and at == 1)):
                break


def covers_command(pattern: str, text: str) -> bool:
    """Whether the pattern of a rule covers the text of a command."""
    if pattern.endswith(":*"):
        prefix = pattern[:-2]
        return prefix != "" and (text == prefix or text.startswith(prefix + " "))
    if pattern.endswith(" *") and text == pattern[:-2]:
        return True
    return text == pattern if "*" not in pattern else wildcard(pattern).fullmatch(text) is not None


def _inner_scripts(command: ShellCommand, depth: int = 3) -> Iterator[str]:
    """The scripts that a command may hand to a shell."""
    words = [word.text or "" for word in command.words]
    for name, *arguments in _commands_behind(words):
        if os.path.basename(name) == "busybox" and arguments:
            name, *arguments = arguments
        if os.path.basename(name) in _table()["shells"]:
            at = next(
                (at for at, argument in enumerate(arguments) if re.fullmatch(r"-\w*c\w*", argument)), None
            )
            scripts = (
                () if at is None else [argument for argument in arguments[at + 1 :] if argument != "--"][:1]
            )
            yield from scripts
            for inner_command in (inner for text in scripts for inner in read_script(text, {}).commands):
                yield from _inner_scripts(inner_command, depth - 1) if depth else ()


# ---------------------------------------------------------------- files


def _files(settings: PermissionSettings, command: ShellCommand, directory: str | None) -> list[_Access]:
    """The files that a command in a directory reads and writes, as far as the program looks for them."""
    table = _table()
    words = _peeled(command.words, table["lookedThroughToDeny"])
    name = words[0].text if words else None
    if name is None:
        return []
    arguments = [word for word in words[1:] if not word.raw.startswith("-") or word.raw == "-"]
    if name == "find":  # its tests come after the directories
        words_after_options = dropwhile(lambda word: word.raw in ("-H", "-L", "-P"), words[1:])
        arguments = list(
            takewhile(lambda word: word.raw[:1] not in ("-", "(", "\\", "!"), words_after_options)
        )
        arguments += [word for test, word in pairwise(words) if test.raw in ("-newer", "-samefile")]
    reads: list[ShellWord] = []
    writes: list[ShellWord] = []
    if name == "git" and arguments and arguments[0].text == "diff":
        reads = arguments[1:]
    if name in table["reads"]:
        lists = [word for word in words[1:] if name in ("grep", "rg") and _LIST.match(word.raw)]
        reads = arguments[0 if lists else table["reads"][name] :]
        reads += [ShellWord(path, path) for word in lists if (path := _LIST.sub("", word.raw))]
    if name in table["writes"]:
        writes = arguments
    if name in ("cp", "mv") and len(arguments) > 1:
        reads, writes = arguments[:-1], arguments[-1:] if name == "cp" else arguments
    if name == "sed" and any((word.text or "").startswith("-i") for word in words):
        writes = arguments[1:]
    return [
        *(_access(settings, word, directory, writes=False) for word in reads),
        *(_access(settings, word, directory, writes=True) for word in writes),
    ]


def _access(settings: PermissionSettings, word: ShellWord, directory: str | None, *, writes: bool) -> _Access:
    if word.text is None or directory is None:
        return _Access(writes, None)
    is_sure = os.pardir not in word.text.lstrip("./").split("/")
    text = os.path.dirname(_PATTERN.split(word.text)[0] + "x") if word.is_glob else word.text
    if word.raw.startswith("~") and not re.match(r"~(?:/|\Z)", word.raw):
        return _Access(writes, None)
    path = os.path.normpath(os.path.join(directory, text))
    if word.raw.startswith("~"):
        path = absolute_path(text, directory, settings.user_home)
    return _Access(writes, path, word.is_glob, is_sure)


def _directories(settings: PermissionSettings, script: ShellScript) -> Iterator[str | None]:
    """Where each command of a script runs, and what comes after the last; None if only the shell knows."""
    directory: str | None = settings.folder
    for command in script.commands:
        yield directory
        if command.name == "cd" and directory is not None:
            target = command.words[1].text if len(command.words) > 1 else settings.user_home
            directory = None if target is None else absolute_path(target, directory, settings.user_home)
    yield directory


def _decide_whole(
    settings: PermissionSettings,
    script: ShellScript,
    command_files: list[_CommandFiles],
    rule: PermissionRule,
) -> Decision:
    """The decision under a rule that allows all of Bash."""
    if script.is_broken:
        return Decision("asks", "The script cannot be read.")
    written_paths = [access.path for _, files in command_files for access in files if access.writes]
    if any(path is not None and _is_guarded(settings, path) for path in written_paths):
        return Decision("asks", "Claude Code asks about a file that it writes or removes.")
    return Decision("allowed", f"`{rule.text}` allows every command.", rule)


def _is_guarded(settings: PermissionSettings, path: str) -> bool:
    """Whether Claude Code asks about a path in any case: protected files, the folder and its parents."""
    return (
        path == settings.user_home
        or is_protected(path)
        or f"{settings.folder}{os.sep}".startswith(path.rstrip(os.sep) + os.sep)
    )


def _denying(settings: PermissionSettings, access: _Access) -> list[PermissionRule]:
    if access.path is None:
        return []
    return settings.covering("deny", "Edit" if access.writes else "Read", access.path)


# ---------------------------------------------------------------- what keeps it from being allowed


def _objections(
    settings: PermissionSettings, script: ShellScript, command_files: list[_CommandFiles]
) -> Iterator[_Objection]:
    """Why a script that no rule stops is asked about."""
    if script.is_broken:
        yield _Objection("The script cannot be read for sure.")
    redirected = [access for command, files in command_files if command is None for access in files]
    if any(name == "PATH" for name in script.assigned) or len(script.assigned) > 1:
        yield _Objection("It sets variables.")
    if "for" in script.constructs:
        yield _Objection("Claude Code looks into a loop only when it has run a command in the session.")
    for construct in _OPAQUE:
        if construct in script.constructs:
            yield _Objection(f"Claude Code does not look into it: {construct}.")
    if "substitution" in script.constructs and not all(access.writes for access in redirected):
        yield _Objection("It reads a file with `<`, and has a substitution.")
    if script.redirections and not script.commands:
        yield _Objection("It is a redirection without a command.")
    changes = [command for command in script.commands if command.name == "cd"]
    if len(changes) > 1:
        yield _Objection("It changes the directory more than once.")
    for command, files in command_files:
        if command is None:
            yield from _redirection_objections(settings, files[0], is_elsewhere=bool(changes))
        else:
            yield from _command_objections(settings, command, files)
            if changes and command.name != "cd" and _minds_directory(settings, command, files):
                yield _Objection("It changes the directory, and then uses files of another.", command.raw)


def _command_objections(
    settings: PermissionSettings, command: ShellCommand, files: list[_Access]
) -> Iterator[_Objection]:
    part = command.raw
    if any(word.has_variable for word in command.words):
        yield _Objection("Only the shell knows the value of a variable in it.", part)
    if command.name == "cd":
        target = command.words[1].text if len(command.words) > 1 else settings.user_home
        path = None if target is None else absolute_path(target, settings.folder, settings.user_home)
        if path is None or not settings.holds(path):
            yield _Objection("It changes to a directory outside of the folder.", part)
    for access in files:
        if access.path is None or not access.is_sure or (access.writes and access.is_glob):
            yield _Objection("Only the shell knows which files it uses.", part)
        elif access.writes and _is_guarded(settings, access.path):
            yield _Objection("Claude Code asks about this file, whatever allows it.", part)
        elif not settings.holds(access.path) and not _may_use(settings, access):
            yield _Objection("It uses files outside of the folder.", part)
    is_read = _only_reads(command)
    edit: str = _table()["edits"].get(command.name, NO_TEXT)
    is_edit = settings.mode == "acceptEdits" and not command.assignments
    options_text = " ".join(
        word.raw for word in command.words[1:] if word.raw.startswith("-") or command.name == "sed"
    )
    is_edit = is_edit and re.fullmatch(edit, options_text) is not None and _ESCAPED.search(part) is None
    if not is_read and not is_edit and not _allowing(settings, command):
        yield _Objection(f"No rule allows `{part}`.", part)


def _may_use(settings: PermissionSettings, access: _Access) -> bool:
    """Whether a rule allows a file outside of the folder."""
    path = access.path or ""
    if access.writes:
        return bool(settings.allowing("Edit", path))
    return bool(settings.covering("allow", "Read", settings.real_path(path), is_linked=False))


def _redirection_objections(
    settings: PermissionSettings, access: _Access, *, is_elsewhere: bool
) -> Iterator[_Objection]:
    if access.path in _NOWHERE:
        return
    if not access.writes:
        if access.path is not None and not settings.holds(access.path) and not _may_use(settings, access):
            yield _Objection("It reads a file outside of the folder.")
        return
    if access.path is None or not access.is_sure or access.is_glob:
        yield _Objection("Only the shell knows which file it writes into.")
    elif is_protected(access.path):
        yield _Objection("Claude Code asks about the file that it writes into, whatever allows it.")
    elif is_elsewhere:
        yield _Objection("It changes the directory, and then writes into a file.")
    elif not (settings.mode == "acceptEdits" and settings.holds(access.path)) and not _may_use(
        settings, access
    ):
        yield _Objection("It writes into a file, and no rule allows the edit.")


def _minds_directory(settings: PermissionSettings, command: ShellCommand, files: list[_Access]) -> bool:
    """Whether Claude Code asks about a command after `cd` that it would allow without the `cd`."""
    reads = command.name in _table()["reads"] and any(settings.matching("deny", "Read"))
    if command.name == "git" or reads:
        return True
    return any(access.writes for access in files) or any(
        ".." in (word.text or "") for word in command.words[1:]
    )


# ---------------------------------------------------------------- what allows a command


def _allowing(settings: PermissionSettings, command: ShellCommand) -> list[PermissionRule]:
    """The rules that allow a command as written, or the command behind its wrappers."""
    words: list[ShellWord] = list(command.words)
    is_declaration = command.name in ("export", "declare", "local", "readonly")
    is_odd = not all(
        _is_harmless(name, value) and _PLAIN_VALUE.fullmatch(value.raw) for name, value in command.assignments
    )
    if not words or command.name in _NEVER or (is_odd and not is_declaration) or _dangerous(words):
        return []
    if _ESCAPED.search(command.raw.replace("\\\n", "")):
        return []
    texts, wrappers = [command.raw], tuple(_table()["lookedThrough"])
    for _ in range(MOST_WRAPPERS):
        name = words[0].raw if words[0].text is None else words[0].text
        texts.append(" ".join((name, *(word.raw for word in words[1:]))))
        behind = _peeled(words, wrappers, once=True)
        if len(behind) == len(words):
            break
        words, wrappers = behind, () if name == "xargs" else wrappers
    exact, texts = list(dict.fromkeys([texts[0], *texts[2:]])), list(dict.fromkeys(texts))
    rules: list[PermissionRule] = []
    for rule in settings.matching("allow", "Bash"):
        pattern = rule.pattern
        if pattern is not None:
            candidates = texts if "*" in pattern else exact
            rules += [rule] if any(covers_command(pattern, text) for text in candidates) else []
    return rules


def _dangerous(words: list[ShellWord]) -> bool:
    """Whether a command does more than its rule says: `find -delete`, a program of awk that runs another."""
    names = [word.text or "" for word in words]
    if names[:1] == ["awk"] and re.search(r"system|getline|[|>]", " ".join(names)):
        return True
    return names[:1] == ["find"] and not re.fullmatch(
        _table()["whole"]["find"], " ".join(names[1:]), re.DOTALL
    )


def _only_reads(command: ShellCommand) -> bool:
    """Whether a command needs no approval."""
    if not command.words:
        return True
    is_odd = not all(_is_harmless(name, value) for name, value in command.assignments)
    is_timed = command.name == "timeout"
    words = _peeled(command.words, ["timeout"] if is_timed else _table()["readOnlyWrappers"])
    wrapper_words = command.words[: len(command.words) - len(words)]
    if any(word.raw.startswith("-") and word.raw not in ("-p", "--") for word in wrapper_words):
        return False
    name = words[0].text
    if name in ("[", "[[", "test"):
        return not is_odd and _TEST.fullmatch(command.raw) is not None
    if is_odd or any(word.text is None for word in words):
        return False
    texts = [word.text or "" for word in words[1:]]
    is_escaped = _ESCAPED.search(command.raw.replace("\\\n", "")) is not None and name != "find"
    if is_escaped or any("$(" in text or "`" in text for text in texts):
        return False
    return _needs_no_approval(name, texts)


def _is_harmless(variable: str, value: ShellWord) -> bool:
    """Whether Claude Code minds a variable that is set for a command only."""
    values = _table()["variableValues"].get(variable, ".*")
    return (
        value.text is not None
        and variable in _table()["harmlessVariables"]
        and re.fullmatch(values, value.raw, re.DOTALL) is not None
    )


def _needs_no_approval(name: str | None, arguments: list[str]) -> bool:
    """Whether Claude Code ran a command with these arguments without asking."""
    if name == "cd":
        return len(arguments) == 1
    whole_pattern, options = _table()["whole"].get(name), _table()["readOnly"].get(name)
    if whole_pattern is not None:
        return re.fullmatch(whole_pattern, " ".join(arguments), re.DOTALL) is not None
    option_arguments = [argument for argument in arguments if argument.startswith("-") and argument != "-"]
    return options is not None and all(re.fullmatch(options, option) for option in option_arguments)


def _peeled(words: Iterable[ShellWord], wrappers: Iterable[str], *, once: bool = False) -> list[ShellWord]:
    """Strip the wrappers of a command. A wrapper with unknown options stays."""
    remaining_words = list(words)
    for _ in range(MOST_WRAPPERS):
        if not remaining_words or os.path.basename(remaining_words[0].text or "") not in wrappers:
            break
        texts = [word.text or word.raw for word in remaining_words[1:]]
        count = _options_of(os.path.basename(remaining_words[0].text or ""), texts)
        if count is None or count >= len(texts):
            break
        remaining_words = remaining_words[1 + count :]
        if once:
            break
    return remaining_words


def _options_of(wrapper: str, texts: list[str]) -> int | None:
    """How many words belong to a wrapper; None if it is not looked through with these."""
    options = _WRAPPER_OPTIONS.get(wrapper)
    if options is None:
        return 0 if texts and not texts[0].startswith("-") and "=" not in texts[0] else None
    match = options.match("".join(re.sub(r"\s", "\0", text) + " " for text in texts))
    count = None if match is None else match[0].count(" ")
    return None if count is None or texts[count:][:1] == [] or texts[count].startswith("-") else count


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = msgspec.json.decode(read_text(str(COMMANDS), limit=1 << 20).text or "")
    return table
