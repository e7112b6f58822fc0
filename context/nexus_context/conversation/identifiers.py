"""Finds names and values that a conversation mentions. A later step can only repeat them, never guess them.

One word (`classify`):

1. The rules are tried in this order: address, time, error, version, amount, issue number; then path; then
   symbol or id.
2. A path begins with `/`, `~/`, `./`, `../` or a drive. Or it has a `/` and also a known first directory, a
   file name at its end, two slashes or an underscore. Or it is a file name with a known extension. A line
   number after it (`a.py:12`) is not part of it, and `a.py::test_b` is a path and a symbol.
3. A word with a digit is an id, unless it is a measure (20th, 10kg). A word of five or more capitals is an
   id, too.
4. A symbol has an underscore, a dot, `::` or an inner capital, or is followed by `()`.
5. Patterns are applied to words of at most LONGEST characters, and none can match in two ways.

A text (`find`):

6. One pattern splits the text into words. Nothing backtracks: the time is proportional to the length.
7. If a text is longer than HEAD + TAIL characters, only its first HEAD and its last TAIL characters are read.
8. Text between backticks is a name however it is spelled, or a command if it begins like one. Lines that
   begin with a prompt (`$ `) and lines of shell fences are commands.
9. Keys of JSON objects are not names, because every result repeats them, unless they have a digit.
10. Names stay as written, without the punctuation around them.

A message (`mentions`):

11. Names are collected separately by source: user text, arguments of calls, assistant text, results of tools.
    A result has very many names, while an argument says what a step was about. The middle of a long result
    has the most, so its names only fill the room that all other names leave.
12. In arguments, a value under a key for files is a path, and one under a key for commands is a command.
    Other values are searched as text. Of long ones, such as a file that is written, only the beginning is
    searched.
13. A secret is not a name, nor a part of one (`redact`).
14. JSON escapes in a result are decoded, so that a word after an escaped line end is a separate word.

What is cut from a conversation (`IdentifierIndex`):

15. Each message is read once, when it is cut. The index stores how strongly a name was mentioned (WEIGHTS, by
    source) and when it was last mentioned. The strength fades with every message that is cut afterwards.
16. The note lists as many of the best names as fit, weighted by kind. They are grouped by kind, best first.
17. The index keeps the MOST best names. When it has more than twice as many, the others are dropped.
18. The same messages and counter give the same note.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, cast

import msgspec

from nexus_context.conversation.message import Message, text_of
from nexus_context.folder.prompt import texts
from nexus_context.text.redact import redact_arguments, redact_message
from nexus_context.tokens import TokenCounter

Kind = Literal["path", "command", "error", "symbol", "id", "url", "email", "version", "date", "amount"]
KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]

LONGEST = 200
"""Characters of the longest word that is a name."""


class Mention(NamedTuple):
    """A name or value as it was written."""

    kind: Kind
    text: str


# of alphabets with spaces between words: Chinese and Japanese text would stick to names
LETTERS = "A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ӿ"

_BEFORE = ",:;+"  # no name begins with these
_AFTER = ".,:;+-/\\"  # no name ends with these


@lru_cache(maxsize=16_384)
def classify(word: str) -> tuple[Mention, ...]:
    """Return the names in a word. A plain word has none."""
    if len(word) > LONGEST:
        return ()
    word = word.lstrip(_BEFORE).rstrip(_AFTER)
    if word.endswith("()"):
        name = word[:-2].lstrip(".")
        return (Mention("symbol", name),) if _SYMBOL.fullmatch(name) or name.isidentifier() else ()
    if len(word) < 3:
        return ()
    match = _VALUE.fullmatch(word)
    if match is not None:
        return (Mention(cast(Kind, match.lastgroup), word),)
    return _path(word) or _symbol(word)


def _path(word: str) -> tuple[Mention, ...]:
    """The path, and the test named after `::`."""
    if "/" not in word and "\\" not in word:
        if "." not in word:
            return (Mention("path", word),) if word in FILE_NAMES else ()
        match = _FILE.fullmatch(word)
        return (Mention("path", match["name"]),) if match else ()
    match = _ROOTED.fullmatch(word)
    if match is not None:
        return (Mention("path", match["name"]),)
    match = _SLASHED.fullmatch(word)
    if match is None or not _is_path(match["name"]):
        return ()
    path = Mention("path", match["name"])
    return (path, Mention("symbol", match["test"][2:])) if match["test"] else (path,)


def _is_path(name: str) -> bool:
    """Whether words joined by slashes are a path, unlike `and/or`."""
    first_component, *other_components = name.replace("\\", "/").split("/")
    if (
        first_component in _DIRECTORIES
        or _FILE.fullmatch(other_components[-1])
        or other_components[-1] in FILE_NAMES
    ):
        return True
    if name.replace("/", "").replace(".", "").isdigit():
        return False
    return len(other_components) > 1 or "_" in name or first_component.startswith((".", "@"))


def _symbol(word: str) -> tuple[Mention, ...]:
    bare = word.strip("@%~:#$€£¥.-")
    if _DIGIT.search(bare):
        if len(bare) < 3 or _MEASURE.fullmatch(bare) or not _ID.fullmatch(bare):
            return ()
        if len(bare) == 3 and not bare.isupper():
            return ()
        named = "_" in bare and not any(part[:1].isdigit() for part in bare.split("_"))
        return (Mention("symbol" if named else "id", bare),)
    if bare.isalpha() and bare.isupper():
        return (Mention("id", bare),) if bare.isascii() and 5 <= len(bare) <= 12 else ()
    if bare.lower() in _ABBREVIATIONS or not _SYMBOL.fullmatch(bare):
        return ()
    return (Mention("symbol", bare),)


_EXTENSIONS = (
    "py pyi pyx ipynb js jsx ts tsx mjs cjs vue svelte rs go java kt kts scala c h cc cpp cxx hpp hh cs "
    "fs vb rb php pl pm swift m mm lua r jl ex exs erl hs ml clj dart zig nim sol sh bash zsh fish ps1 "
    "bat cmd sql html htm css scss sass less json jsonl json5 yaml yml toml ini cfg conf env xml csv "
    "tsv md mdx rst txt tex log lock proto graphql tf hcl gradle cmake mk dockerfile patch diff svg png "
    "jpg jpeg gif pdf zip tar gz whl so dll exe bin db sqlite wasm map snap plist"
)
_FILE_NAME_LIST = (
    "Makefile Dockerfile Justfile Rakefile Gemfile Procfile Vagrantfile Jenkinsfile LICENSE README CHANGELOG"
)
_DIRECTORY_NAMES = (
    "src lib libs test tests spec specs docs doc app apps bin pkg cmd internal scripts include config "
    "configs packages crates examples benchmarks tools utils api core client server frontend backend "
    "web public static assets templates migrations models views components pages modules vendor build "
    "dist target node_modules .github .vscode"
)
FILE_NAMES = frozenset(_FILE_NAME_LIST.split())
_DIRECTORIES = frozenset(_DIRECTORY_NAMES.split())
_ABBREVIATIONS = frozenset(("e.g", "i.e", "a.m", "p.m", "u.s", "u.k", "ph.d"))

_IN_PATH = rf"[{LETTERS}0-9_.@+%~$-]"
_LINE = r"(?::[0-9]+){0,2}"
_EXTENSION = "|".join(sorted(_EXTENSIONS.split(), key=len, reverse=True))
_FILE = re.compile(
    rf"@?(?P<name>[{LETTERS}0-9_+~$-][{LETTERS}0-9_@+~$.-]*\.(?i:{_EXTENSION})"
    rf"|\.(?:env|[a-z]{{2,12}}(?:rc|ignore|config))){_LINE}"
)
_ROOTED = re.compile(
    rf"(?P<name>(?:~?/|\.{{1,2}}/|[A-Za-z]:[\\/]+|\$[A-Z_]+/){_IN_PATH}+(?:[/\\]+{_IN_PATH}+)*){_LINE}"
)
_SLASHED = re.compile(
    rf"(?P<name>[{LETTERS}0-9_.@+-]{_IN_PATH}*(?:[/\\]{_IN_PATH}+)+)(?P<test>::[\w.:-]+)?{_LINE}"
)
_SYMBOL = re.compile(
    r"""(?:
      [A-Za-z_$][A-Za-z0-9_$]*(?:(?:\.|::|->|\#)[A-Za-z_$][A-Za-z0-9_$]*)+     # a.b, a::b
    | [A-Za-z_][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_*                               # snake_case, CONSTANT_NAME
    | _+[A-Za-z][A-Za-z0-9_]*
    | [a-z]+[A-Z][A-Za-z0-9]* | (?:[A-Z][a-z0-9]+){2,}[A-Z]* | [A-Z]{2,}[a-z]+[A-Z][A-Za-z]*
    )""",
    re.VERBOSE,
)
_DIGIT = re.compile(r"[0-9]")
_ID = re.compile(r"[A-Za-z0-9]+(?:[_.-]+[A-Za-z0-9]+)*")
_MEASURE = re.compile(
    r"[0-9]+(?:\.[0-9]+)?"
    r"(?i:st|nd|rd|th|am|pm|kg|lb|lbs|g|km|cm|mm|m|h|hr|hrs|min|s|ms|k|x|kb|mb|gb|px|em|rem|d|w|y)"
)
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
_VALUE = re.compile(
    rf"""
      (?P<url>[a-z0-9]{{2,10}}://\S+)
    | (?P<email>[\w.+-]{{1,64}}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)
    | (?P<date>
        (?:(?:19|20)\d\d[-/.]\d{{1,2}}[-/.]\d{{1,2}} | \d{{1,2}}[/.]\d{{1,2}}[/.](?:19|20)\d\d)
        (?:[T_]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?
      | {_CLOCK}(?:[+-]\d{{1,4}})?(?:am|pm|AM|PM)?)
    | (?P<error>
        (?:[A-Za-z_]\w*\.)*[A-Z][A-Za-z0-9]*(?:Error|Exception|Warning|Fault|Panic)
      | E(?:NOENT|ACCES|PERM|EXIST|CONN[A-Z]{{5,7}}|TIMEDOUT|PIPE|ADDRINUSE|NOTFOUND|ISDIR|NOTDIR|NOTEMPTY
      |MFILE
          |NOSPC|INVAL|AGAIN|NOMEM|RESOLVE|INTEGRITY)
      | ERR_[A-Z_]+ | SIG(?:KILL|SEGV|TERM|ABRT|INT|PIPE)
      | (?:TS|CS)\d{{4,5}} | E\d{{3,4}} | RUF\d{{3}} | CVE-\d{{4}}-\d{{4,7}})
    | (?P<version>[vV]?\d+\.\d+\.\d+[A-Za-z0-9.+-]* | [vV]\d+(?:\.\d+)*)
    | (?P<amount>
        [$€£¥][0-9][0-9,]*(?:\.[0-9]+)? | [0-9][0-9,]*(?:\.[0-9]+)?[€£¥%]
      | [0-9,]{{3,}}(?:\.[0-9]+)? | [0-9]+\.[0-9]{{2,}})
    | (?P<id>\#\d+ | [A-Z][A-Z0-9]{{1,9}}-\d+)
    """,
    re.VERBOSE,
)

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

Source = Literal["user", "call", "assistant", "written", "result", "middle"]

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

RESULT_MIDDLE = 64_000
"""Characters between them that are read for fillers, the nearest to the end."""

MOST_MIDDLE = 1_000_000
"""Characters of middles that are read at one cut, those of the newest messages."""

WRITTEN = 4_000
"""Characters of a text in a call's arguments that are read."""
_DEPTH = 8

MOST = 2_000

HALF_LIFE = 60
"""Messages after which a mention counts half."""
WEIGHTS: Mapping[Source, float] = {"user": 3.0, "call": 3.0, "assistant": 1.0, "written": 0.4, "result": 0.15}
FILLER = 0.001
"""The weight of a name that only the middle of a result has: it gives way to all others."""

PLAIN = 0.3
"""Share of the weight for a word of letters only, such as IMPORTANT, unless it is in a call."""

KIND_WEIGHTS: Mapping[Kind, float] = {
    "path": 1.3,
    "command": 1.0,
    "error": 0.9,
    "symbol": 0.8,
    "id": 1.2,
    "url": 0.8,
    "email": 1.0,
    "version": 0.8,
    "date": 0.7,
    "amount": 0.5,
}
_Strength = tuple[float, int]  # the strength, and the number of the last message that mentioned it


class IdentifierIndex:
    """An index of the names in messages that are cut. Copying it is cheap, and a copy is independent."""

    def __init__(self, *, most: int = MOST, weights: Mapping[Source, float] = WEIGHTS) -> None:
        self._most = most
        self._weights = weights
        self.messages = 0
        """Number of messages added."""
        self._strengths: dict[Mention, _Strength] = {}

    def copy(self) -> "IdentifierIndex":
        index = IdentifierIndex(most=self._most, weights=self._weights)
        index.messages, index._strengths = self.messages, self._strengths.copy()
        return index

    def add(self, message: Message, *, middle: int = RESULT_MIDDLE) -> None:
        """Read the next message that is cut. Of a long result, also read `middle` characters between its two
        ends.
        """
        self.messages = now = self.messages + 1
        strengths = self._strengths
        for source, names in mentions(message, middle=middle):
            weight = FILLER if source == "middle" else self._weights[source]
            for mention in names:
                strength = weight
                if source != "call" and mention.text.isalpha():
                    strength *= PLAIN
                stored_strength = strengths.get(mention)
                if stored_strength is not None:
                    strength += stored_strength[0] * 0.5 ** ((now - stored_strength[1]) / HALF_LIFE)
                strengths[mention] = (strength, now)
        if len(strengths) > 2 * self._most:
            self._strengths = {mention: strengths[mention] for mention in self.ranked()[: self._most]}

    def extend(self, messages: Iterable[Message]) -> None:
        added, middles, characters_left = list(messages), list[int](), MOST_MIDDLE
        for message in reversed(added):
            length = len(text_of(message)) - RESULT_HEAD - RESULT_TAIL if message.role == "tool" else 0
            middles.append(min(max(length, 0), RESULT_MIDDLE, characters_left))
            characters_left -= middles[-1]
        for message, middle in zip(added, reversed(middles), strict=True):
            self.add(message, middle=middle)

    def ranked(self) -> list[Mention]:
        """Return all names, best first."""
        now = self.messages

        def score(item: tuple[Mention, _Strength]) -> tuple[float, str]:
            mention, (strength, last_message) = item
            weight = strength * 0.5 ** ((now - last_message) / HALF_LIFE) * KIND_WEIGHTS[mention.kind]
            return (-weight, mention.text)

        return [mention for mention, _ in sorted(self._strengths.items(), key=score)]

    def render(self, counter: TokenCounter, limit: int = 600, *, first: str = "") -> str:
        """Return the note with at most `limit` tokens, with the lines of `first` before the names. It may be
        empty.
        """
        head = texts.text("identifiers_head").format(messages=self.messages)
        if first:
            head = f"{head}\n{first}"
        lines = list_of(self.ranked(), counter, limit, head=head)
        if lines:
            return f"{head}\n{lines}"
        return head if first else ""


def find(text: str, *, head: int = HEAD, tail: int = TAIL) -> list[Mention]:
    """Return the names and values in a text, each once. Commands and marked code come first, then the others
    in order.
    """
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
        for mention in classify(word):
            names[mention] = None
    return list(names)


def command(line: str) -> Mention:
    """Return a command as a mention: its first line, with a mark if it was cut."""
    first_line, continuation, _ = line.strip().replace("\t", " ").partition("\n")
    if len(first_line) > LONGEST_COMMAND:
        first_line, continuation = first_line[:LONGEST_COMMAND], "…"
    return Mention("command", f"{first_line.rstrip()} …" if continuation else first_line.rstrip())


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


def mentions(message: Message, *, middle: int = 0) -> list[tuple[Source, list[Mention]]]:
    """Return the names and values of a message by source, in order. A name may occur in several lists.

    With `middle`, that many characters before the end of a long result (RESULT_TAIL) are a source of their
    own.
    """
    text = redact_message(text_of(message))
    if message.role == "tool":
        text = _unescaped(text)
        ends: tuple[Source, list[Mention]] = ("result", find(text, head=RESULT_HEAD, tail=RESULT_TAIL))
        between = text[RESULT_HEAD:-RESULT_TAIL][-middle:] if middle else ""
        return [("middle", find(between, head=middle, tail=0)), ends] if between else [ends]
    by_source: list[tuple[Source, list[Mention]]] = []
    if text:
        by_source.append(("assistant" if message.role == "assistant" else "user", find(text)))
    for call in message.tool_calls:
        by_source += _of_call(call.name, redact_arguments(arguments_of(call.arguments)))
    return by_source


def arguments_of(arguments: Any) -> Any:
    """Return the arguments of a call as a value. A string with JSON is decoded."""
    if isinstance(arguments, str):
        try:
            return msgspec.json.decode(arguments)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return arguments
    return arguments


def is_shell(tool: str, key: str) -> bool:
    """Whether the argument `key` of this tool holds a command line."""
    name = tool.lower()
    return key in COMMAND_KEYS and any(shell in name for shell in SHELLS)


def leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a JSON value, each with its key, or with the key of the list that contains it. At
    most MOST_VALUES are returned.
    """
    stack: list[tuple[str, Any, int]] = [(key, value, 0)]
    count = 0
    while stack and count < MOST_VALUES:
        name, item, depth = stack.pop()
        if isinstance(item, dict):
            if depth < _DEPTH:
                stack.extend(
                    [(str(inner_key), inner, depth + 1) for inner_key, inner in reversed(item.items())]
                )
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


def list_of(ranked: Iterable[Mention], counter: TokenCounter, limit: int, *, head: str = "") -> str:
    """List as many of the mentions, best first, as fit together with `head` in `limit` tokens. The result has
    a line for each kind.
    """
    chosen: list[Mention] = []
    spent = counter.count(head) + 1
    labels: set[Kind] = set()
    for mention in ranked:
        cost = counter.count(f" {mention.text}") + 1
        if mention.kind not in labels:
            cost += counter.count(f"\n{texts.text('identifiers_kinds')}") // len(KINDS)
        if spent + cost > limit:
            if spent + 4 > limit:
                break
            continue
        labels.add(mention.kind)
        chosen.append(mention)
        spent += cost
    while chosen:
        text = _lines(chosen)
        over = counter.count(f"{head}\n{text}") - limit
        if over <= 0:
            return text
        del chosen[-max(1, over // 8) :]
    return ""


def _lines(chosen: Iterable[Mention]) -> str:
    labels = dict(line.split(": ", 1) for line in texts.text("identifiers_kinds").splitlines())
    by_kind: dict[Kind, list[str]] = {}
    for mention in chosen:
        by_kind.setdefault(mention.kind, []).append(mention.text)
    lines = []
    for kind in KINDS:
        names = by_kind.get(kind, ())
        if kind == "command":
            lines += [f"$ {name}" for name in names]
        elif names:
            lines.append(f"{labels[kind]}: {', '.join(names)}")
    return "\n".join(lines)
