"""Classifies one word, a run of characters without spaces.

1. Order of the rules: address, time, error, version, amount, issue number; then path; then symbol or id.
2. A path begins with `/`, `~/`, `./`, `../` or a drive; or it has a `/` and a known first directory, a file
   name at its end, two slashes or an underscore; or it is a file name with a known extension. A line number
   after it (`a.py:12`) is not part of it; `a.py::test_b` is a path and a symbol.
3. A word with a digit is an id, unless it is a measure (20th, 10kg); so is a word of five or more capitals.
4. A symbol has an underscore, a dot, `::` or an inner capital, or is followed by `()`.
5. Patterns are applied to words of at most LONGEST characters, and none can match in two ways.
"""

import re
from functools import lru_cache
from typing import Literal, NamedTuple, cast

Kind = Literal["path", "command", "error", "symbol", "id", "url", "email", "version", "date", "amount"]
KINDS: tuple[Kind, ...] = Kind.__args__  # type: ignore[attr-defined]

LONGEST = 200
"""Characters of the longest word that is a name."""


class Mention(NamedTuple):
    """One name or value as written."""

    kind: Kind
    text: str


# of alphabets with spaces between words: Chinese and Japanese text would stick to names
LETTERS = "A-Za-zÀ-ÖØ-öø-ɏͰ-ϿЀ-ӿ"

_BEFORE = ",:;+"  # no name begins with these
_AFTER = ".,:;+-/\\"  # no name ends with these


@lru_cache(maxsize=16_384)
def classify(word: str) -> tuple[Mention, ...]:
    """What a word names; nothing for a plain word."""
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
    first, *rest = name.replace("\\", "/").split("/")
    if first in _DIRECTORIES or _FILE.fullmatch(rest[-1]) or rest[-1] in FILE_NAMES:
        return True
    if name.replace("/", "").replace(".", "").isdigit():
        return False
    return len(rest) > 1 or "_" in name or first.startswith((".", "@"))


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
