"""Finds what the statements of an instruction file ask for or forbid, by topic.

1. A claim is what a statement says of one topic: a value that it asks for, or one that it forbids. Two claims
   of a topic contradict each other if they ask for different values, or if one forbids what the other asks
   for.
2. Topics are package managers, test frameworks and commands, versions of languages, indentation, quotes,
   semicolons, the length of lines, which of two things is preferred, and clauses: "Never commit to main" and
   "Always commit to main" have the same one.
3. A claim has a scope (`scopes`). Only claims of equal scopes can contradict each other.
4. No claims are: questions, examples, quoted words, what is below "Don't" or behind a cross, and a sentence
   that leaves a choice ("npm or yarn").
5. Of versions, `3.12` and `3.12.4` agree, and so do a minimum and any version from it on.
"""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from nexus_context.errors import Span
from nexus_context.folder.prompt.joint.scopes import label_limits, limits_of, sections_of, tells
from nexus_context.folder.prompt.joint.statements import MOST_SENTENCES, MOST_TEXTS, plain, read_statements

_LONGEST = 400  # characters of a statement; a longer one explains more than it tells
_LONGEST_CLAUSE = 100


class InstructionClaim(NamedTuple):
    """What a statement says of a topic: it asks for `value`, or forbids it if `forbids` is true.

    `scope` is what the claim is limited to. If `implied`, the statement is a mere command, such as "Run `npm
    test`", which only implies that its value is asked for.
    """

    topic: str
    value: str
    forbids: bool
    scope: frozenset[str]
    span: Span
    implied: bool = False

    @property
    def is_clause(self) -> bool:
        """Whether the topic is a clause: something that is always or never to be done."""
        return self.topic.startswith(_CLAUSE_TOPIC)


class _Finding(NamedTuple):
    """A claim in a sentence; `rest` is the text that may limit it."""

    topic: str
    value: str
    rest: str = ""
    forbids: bool = False
    implied: bool = False

    @property
    def languages(self) -> tuple[str, ...]:
        """Words that do not limit the topic, since it is about nothing else."""
        return next((words for sign, words in _LANGUAGES_OF_TOPICS.items() if sign in self.topic), ())


@lru_cache(maxsize=MOST_TEXTS)
def read_claims(text: str) -> tuple[InstructionClaim, ...]:
    """Return the claims of a Markdown text in order. Takes time in proportion to its length."""
    return tuple(
        InstructionClaim(
            finding.topic,
            finding.value,
            finding.forbids,
            (sections_of(statement) | limits).difference(finding.languages),
            span=statement.span,
            implied=finding.implied,
        )
        for statement in read_statements(text)
        if len(statement.key) <= _LONGEST and tells(statement)
        for finding, limits in _read_sentence(text[statement.span.start : statement.span.end])
    )


def contradict(claim: InstructionClaim, other: InstructionClaim) -> bool:
    """Whether two claims of the same topic and scope cannot both be followed."""
    if claim.implied and other.implied:
        return False
    if claim.topic.startswith(_VERSION_TOPIC):
        return not _versions_agree(claim.value, other.value)
    if claim.forbids == other.forbids:
        return not claim.forbids and claim.value != other.value
    return claim.value == other.value


_NO_CLAIM = (
    r"\?(?:\s|$)|^//|(?i:\be\.g\b|\bfor (?:example|instance)\b|\bexamples?:|\bsuch as\b|\bbad\b[ :*]"
    r"|\bwrong\b|\bgood:|\bincorrect\b|\bcorrect:|\bif (?:the )?users?\b)"
    r"|[\u274c\u2717\u2718\U0001f6ab\u26d4]|->|=>|\u2192"
)
_QUOTED = r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|(?<!\w)'[^']+'(?!\w)"


@lru_cache(maxsize=MOST_SENTENCES)
def _read_sentence(source: str) -> tuple[tuple[_Finding, frozenset[str]], ...]:
    """Read the claims of a sentence, each with the words that limit it."""
    text = plain(source).replace("\u2019", "'").casefold()
    finders = [find for find, signs in _FINDERS.items() if any(sign in text for sign in signs)]
    if len(text) <= _LONGEST_CLAUSE:
        finders.append(_find_clauses)
    if not finders or _pattern(_NO_CLAIM).search(source):
        return ()
    text = _pattern(_QUOTED).sub("\u2026", text)
    labels = label_limits(text)
    return tuple((finding, labels | _limits(finding)) for find in finders for finding in find(text))


def _limits(finding: _Finding) -> frozenset[str]:
    if not finding.rest:
        return frozenset()
    languages = finding.languages
    return limits_of(" ".join(word for word in finding.rest.split() if word not in languages))


@cache
def _pattern(pattern: str) -> re.Pattern[str]:
    """Compiled on first use: most folders need few."""
    return re.compile(pattern)


# Alternatives

_NOT = (
    r"(?:never|don't|do not|not|no|avoid|without|instead of|rather than|over|isn't|aren't|mustn't|must not"
    r"|prohibited:?|forbidden:?)"
)
_ENDS = r"(?=\s*(?:$|[.,;:!()\u2014\u2013\u2026]|\s-\s))"
_VERBS = r"(?:(?:ever|use|using|run|install|with|switch|to|mix|raw|plain|the|any)\s+){0,3}"
_NAME_ENDS = r"(?![\w-]|\.\w)"
_BEGINS = r"(?:^|[.;:,(\u2014\u2013]\s*|\b(?:always|must|should|please|we|project|repo|only|tests?)\s+)"


def _choose(
    topic: str, text: str, names: tuple[str, ...], *, demand_pattern: str, ban_pattern: str
) -> Iterator[_Finding]:
    """The claims about alternatives: one is asked for if all others in the sentence are ruled out.

    `demand_pattern` and `ban_pattern` are patterns with NAME.
    """
    any_name = "|".join(map(re.escape, names))
    name_pattern = _pattern(rf"(?<![\w.@-])(?:{any_name}){_NAME_ENDS}")
    if not name_pattern.search(text):
        return
    ruled_out: set[str] = set()
    remaining_text = text
    listed = rf"(?:(?:{any_name}){_NAME_ENDS}(?: install)?(?:,? or |,? nor |,? and |/|, )?)+"
    for match in _pattern(rf"\b{_NOT}\s+{_VERBS}({listed})").finditer(text):
        ruled_out.update(name_pattern.findall(match[1]))
        remaining_text = remaining_text.replace(match[0], " \u2026 ")
    names_left = set(name_pattern.findall(remaining_text))
    demand = _pattern(demand_pattern.replace("NAME", f"({any_name}){_NAME_ENDS}")).search(remaining_text)
    limits = name_pattern.sub(" ", _pattern(rf"\b{_NOT}\b.*").sub(" ", remaining_text))
    if demand is not None and len(names_left) == 1:
        yield _Finding(topic, next(filter(None, demand.groups())), limits)
    for name in sorted(ruled_out - names_left):
        if demand is not None or _pattern(
            ban_pattern.replace("NAME", f"{re.escape(name)}{_NAME_ENDS}")
        ).search(text):
            yield _Finding(topic, name, limits, forbids=True)


_MANAGERS = {"js": ("npm", "pnpm", "yarn", "bun"), "python": ("pip", "poetry", "uv", "pdm", "pipenv")}
_MANAGES = (
    rf"{_BEGINS}uses?\s+(?:only\s+)?NAME(?:{_ENDS}|(?=\s+(?:as|exclusively|only|everywhere|workspaces?|commands?"
    r"|package|in this|throughout|consistently|for (?:all|any|every\w*|package|dependenc|install|manag"
    r"|python)|to (?:install|manage|add))))"
    r"|\bpackage manager(?:\s+is)?:?\s+(?:is\s+)?NAME\b"
    r"|\b(?:install|manage|add)(?:ed|ing)?\s+(?:\w+\s+)?(?:dependencies|packages|deps)\s+(?:with|using|via|through)"
    rf"\s+NAME{_ENDS}|^NAME\s+(?:only|exclusively){_ENDS}|^prefer\s+NAME\b"
)
_UNMANAGED = (
    rf"\b{_NOT}\s+{_VERBS}(?:[\w/, ]*(?:/|,| or | nor )\s*)?NAME"
    rf"(?:{_ENDS}|(?=/|\s+(?:or|and|nor|commands?|here|in this|as|directly"
    r"|for (?:package|dependenc|install))))"
)
_COMMANDS = {
    "js": r"(npm|pnpm|yarn|bun) (?:install|i|ci|add)\b(?![^,;]* (?:-g|--global)\b)",
    "python": r"(?<!uv )(?<!-m )(pip|poetry|uv|pdm|pipenv)3? (?:install|add|sync|run)\b",
}
_COMMANDED = r"^(?:(?:always |please )?(?:run|use|install|execute|build|test)\b[^.]*|[^:.]{1,40}:\s*)?$"


def _find_managers(text: str) -> Iterator[_Finding]:
    commands = {ecosystem: _pattern(pattern).search(text) for ecosystem, pattern in _COMMANDS.items()}
    is_list = all(commands.values())  # of the commands of several ecosystems
    for ecosystem, names in _MANAGERS.items():
        topic = f"package manager ({ecosystem})"
        yield from _choose(topic, text, names, demand_pattern=_MANAGES, ban_pattern=_UNMANAGED)
        command = commands[ecosystem]
        if command is None or is_list or _pattern(rf"\b{_NOT}\b").search(text):
            continue
        text_before = text[: command.start()]
        is_alone = len(set(_pattern(rf"\b(?:{'|'.join(names)})\b").findall(text))) == 1
        if is_alone and _pattern(_COMMANDED).match(text_before):
            yield _Finding(topic, command[1], text_before, implied=True)


_FRAMEWORKS = {
    "js": ("jest", "vitest", "mocha", "ava", "jasmine", "node:test", "bun test"),
    "python": ("pytest", "unittest", "nose"),
    "ruby": ("rspec", "minitest"),
    "c#": ("xunit", "nunit", "mstest"),
    "browser": ("playwright", "cypress", "selenium"),
}
_TESTED = (
    rf"{_BEGINS}(?:uses?|prefer|written (?:in|with))\s+NAME(?:(?=\s+(?:for|to write|as the test)\s)|{_ENDS})"
    r"|\b(?:test(?:ing)?|spec)s?\s*(?:framework|runner|library)?(?:\s+is)?:\s*NAME\b"
    rf"|(?:\bwrite\s+|^)(?:all\s+)?(?:\w+\s+)?tests\s+(?:with|using|in)\s+NAME{_ENDS}"
)
_UNTESTED = rf"\b{_NOT}\s+(?:use\s+|using\s+)?(?:[\w:/, ]*?)NAME\b"
_KINDS_OF_TESTS = (
    r"\b(?:integration|e2e|end-to-end|component|snapshot|smoke|api|ui|browser|visual|contract|performance|single"
    r"|specific|one|fast|slow|watch|coverage)\b"
)


def _find_frameworks(text: str) -> Iterator[_Finding]:
    kinds = sorted(set(_pattern(_KINDS_OF_TESTS).findall(text)))
    for ecosystem, names in _FRAMEWORKS.items():
        topic = f"test framework ({' '.join((ecosystem, *kinds))})"
        yield from _choose(topic, text, names, demand_pattern=_TESTED, ban_pattern=_UNTESTED)


_TEST_COMMAND = (
    r"^(?:[^:]{0,30}:\s*)?(?:always |please )?(?:(?:run|execute) (?:all |the |your |our )*"
    r"(?:test suite|tests)(?: with| using| via| by running| through)?"
    r"|tests?(?: command| runner)?(?= *:)):?\s+(.*)"
)
_RUNNERS = {
    "js": r"(npm|pnpm|yarn|bun)(?: run)? test",
    "python": r"(?:(?:uv|poetry|pdm|hatch) run )?(?:python3? -m )?(pytest|unittest|nose\w*)",
    "rust": r"cargo (test|nextest)",
    "java": r"(mvn|\./mvnw|gradle|\./gradlew)",
    "ruby": r"(?:bundle exec )?(rspec|rake test|minitest)",
    "php": r"(?:\S*/)?(phpunit|pest)",
}


def _find_test_commands(text: str) -> Iterator[_Finding]:
    match = _pattern(_TEST_COMMAND).search(text)
    if match is None or _pattern(r"\b(?:or|and)\b").search(match[1]):
        return
    for ecosystem, runner in _RUNNERS.items():
        command = _pattern(rf"{runner}\b").match(match[1])
        if command is not None:
            yield _Finding(f"test command ({ecosystem})", command[1], match[1][command.end() :])


# Versions

_VERSION_TOPIC = "version of "
_LANGUAGES = r"python|node(?:\.?js)?|java|go|golang|ruby|php|typescript|rust|swift|kotlin|\.net|c#"
_SPELLINGS = {"nodejs": "node", "node.js": "node", "golang": "go"}
_VERSION = (
    r"^(?:(?:always|must|we|you|this|the|project|code|target|targets|uses?|using|require[sd]?|requires|needs"
    r"|runs on|built with|written in|minimum|prerequisites?|install|with|is|requires:)\s+)*"
    rf"({_LANGUAGES})(?: version)?(?::|\s| is| must be)*(>=|\u2265|>|~|\^|=|v|==)?(?<=[\s:>=~^v\u2265])\s*v?"
    r"(\d{1,2}(?:\.\d+){0,2})(?:\.x)?"
    r"(\s*\+|\s+(?:or|and) (?:higher|later|newer|above|greater|up)|\s+minimum)?"
    r"(?:\s+(?:is )?(?:required|only|runtime|needed))?((?:\s+(?:in|for|on|with|via|when)\b.*)?)[.\s)]*$"
)
_NO_REQUIREMENT = (
    r"\b(?:recommended|preferred|support\w*|tested|compatib\w+|deprecated|features?|syntax|current(?:ly)?"
    r"|best|ci)\b"
)


def _find_versions(text: str) -> Iterator[_Finding]:
    """The versions of languages in a statement that is a list of them, behind a label or not."""
    if _pattern(_NO_REQUIREMENT).search(text):
        return
    findings: list[_Finding] = []
    body = _pattern(rf"^(?!(?:{_LANGUAGES}):)[^:]{{1,30}}:\s+(?=\w)").sub(
        "", _pattern(r"\([^()]*\)").sub(" ", text)
    )
    for item in _pattern(r"[,;]\s|\s[\u2014\u2013-]\s").split(body):
        match = _pattern(_VERSION).search(item)
        if match is not None:
            at_least = bool(match[4]) or match[2] in (">=", "\u2265", ">") or "minimum" in text
            topic = _VERSION_TOPIC + _SPELLINGS.get(match[1], match[1])
            findings.append(_Finding(topic, f"{'>=' if at_least else ''}{match[3]}", match[5]))
        elif _pattern(rf"(?<!\w)(?:{_LANGUAGES})(?!\w)|^\W*\d").search(item):
            return  # more is said of it, or there is another version
    if len({finding.topic for finding in findings}) == len(findings):
        yield from findings


def _versions_agree(version: str, other: str) -> bool:
    numbers = [
        [int(digits) for digits in version_text.removeprefix(">=").split(".")]
        for version_text in (version, other)
    ]
    shorter = min(map(len, numbers))
    first, second = (version_numbers[:shorter] for version_numbers in numbers)
    if first == second:
        return True
    are_minimums = (version.startswith(">="), other.startswith(">="))
    if are_minimums == (True, False):
        return first < second
    return are_minimums == (False, True) and second < first


_LANGUAGES_OF_TOPICS = {
    "(js": ("js", "javascript", "ts", "typescript", "node", "node.js"),
    "(python": ("python",),
    "of node": ("js", "javascript", "ts", "typescript", "node", "node.js"),
    "of python": ("python",),
    "of go": ("go", "golang"),
    **{f"of {name}": (name,) for name in ("java", "ruby", "php", "rust", "swift", "kotlin")},
}
"""By what a topic has in its name."""

# Style

_USES = r"(?:^|[:;,]\s*|\balways )(?:use |indent with |prefer )"
_NOT_SPACES = r"(?:,? (?:not|never|instead of|over|rather than) spaces| \(not spaces\))?"
_TABS = (
    rf"{_USES}(?:hard )?tabs?(?: characters?)?{_NOT_SPACES}(?= for indent|$|[.,;]| - | \u2014)"
    rf"|^tabs(?: for indentation)?{_NOT_SPACES}$|\bindent(?:ation)?: tabs?\b|\btab indentation\b"
)
_NO_TABS = (
    rf"{_USES}spaces(?: for indentation)?"
    r"(?:,? (?:not|never|instead of|over|rather than) tabs| \(not tabs\)|$|[.,;])"
    r"|^(?:no|never use|don't use|do not use|avoid) tabs(?: for indentation)?(?:$|[.,;])"
)
_SPACES = r"(\d|two|four|eight)[ -]spaces?"
_INDENTED = (
    rf"(?:^|[:;,]\s*|\balways )(?:use |indent with |prefer )?{_SPACES} ?"
    r"(?:for )?(?:indent\w*|per indent\w*|$|[.,;])"
    rf"|\bindent(?:ation)?:? (?:code )?(?:of |with |is |uses? |by |size:? )?{_SPACES}"
    rf"|\b{_SPACES} (?:for )?indent\w*"
)
_NUMBERS = {"two": "2", "four": "4", "eight": "8"}


def _find_indentation(text: str) -> Iterator[_Finding]:
    tabs, spaces = _pattern(_TABS).search(text), _pattern(_INDENTED).search(text)
    if tabs is not None and spaces is None:
        yield _Finding("indentation", "tabs", _without(text, tabs))
    elif spaces is not None and tabs is None and len(_pattern(_SPACES).findall(text)) == 1:
        width = next(filter(None, spaces.groups()))
        yield _Finding("indentation", f"{_NUMBERS.get(width, width)} spaces", _without(text, spaces))
    elif no_tabs := _pattern(_NO_TABS).search(text):
        yield _Finding("indentation", "tabs", _without(text, no_tabs), forbids=True)


_QUOTES = (
    r"(?:^|[:;,]\s*|\balways )(?:use |prefer )?(single|double)[ -]quotes?\b(?: \([^)]*\))?"
    r"(?:,? (?:not|never|over|instead of|rather than) (?:single|double)[ -]quotes?\b)?"
)


def _find_quotes(text: str) -> Iterator[_Finding]:
    match = _pattern(_QUOTES).search(text)
    if match is not None and not _pattern(r"\b(?:single|double)\b").search(_without(text, match)):
        yield _Finding("quotes", f"{match[1]} quotes", _without(text, match))


_NO_SEMICOLONS = r"never use|don't use|do not use|no|omit|avoid|without|skip|never"
_SEMICOLONS = (
    rf"(?:^|[:;,]\s*)(?:(always use|use|require|include|with)|({_NO_SEMICOLONS})) semi-?colons?"
    r"(?: (?:required|always|at the end of statements))?(?=$|[.,;(]| - | \u2014| at | in | for )"
)


def _find_semicolons(text: str) -> Iterator[_Finding]:
    match = _pattern(_SEMICOLONS).search(text)
    if match is not None:
        yield _Finding("semicolons", "semicolons", _without(text, match), forbids=bool(match[2]))


_LENGTH = (
    r"\b(?:(?:max(?:imum)?\.? )?line[ -](?:length|width|limit)|print ?width|column limit)(?: limit)?"
    r"(?: \(?max(?:imum)?\)?)?(?: of|:| is| to| at| =)?\s*"
    r"(?:max(?:imum)? |at most |<= ?|\u2264 ?|under |up to )?(\d{2,3})\b"
    r"|\b(\d{2,3})[ -]?(?:characters?|chars?|columns?|cols?)[ -](?:line|max(?:imum)? line|per line)"
    r"|\b(?:keep |limit )?lines (?:to|under|below|at most|within|\u2264|<=|should not exceed"
    r"|should not be (?:more|longer) than) (\d{2,3}) ?"
    r"(?:characters|chars|columns)"
)


def _find_lengths(text: str) -> Iterator[_Finding]:
    match = _pattern(_LENGTH).search(text)
    if match is not None and len(_pattern(r"\b\d{2,3}\b").findall(text)) == 1:
        yield _Finding("length of lines", next(filter(None, match.groups())), _without(text, match))


def _without(text: str, match: re.Match[str]) -> str:
    return f"{text[: match.start()]} {text[match.end() :]}"


# Choices and clauses

_CLAUSE_TOPIC = "clause "

_CHOICE = (
    r"^(?:[^:]{1,30}:\s*)?(?:always |please )?(?:prefer|favou?r|use) (.{2,60}?),? "
    r"(?:over|instead of|rather than|not) (.{2,60}?)"
    r"(?=$|[.;(]| - | \u2014| for | when | in | unless | where | if | because )"
)


def _find_choices(text: str) -> Iterator[_Finding]:
    match = _pattern(_CHOICE).search(text)
    if match is not None:
        first, second = (" ".join(_pattern(_FILLERS).sub(" ", side).split()) for side in (match[1], match[2]))
        low, high = sorted((first, second))
        if low != high:
            yield _Finding(f"choice of {low} or {high}", first, text[match.end() :])


_FORBIDS = (
    r"(?:you |we |agents? )?(?:must never|never|don't ever|don't|do not ever|do not|must not|mustn't"
    r"|should never|should not|shouldn't|cannot|can't|may not|(avoid|no))\b:?\s+(.*)"
)
_ASKS = (
    r"(?:you |we |agents? )?(?:must always|always|must|should always|should|do|please|make sure to|be sure to"
    r"|prefer to|(prefer))\b:?\s+(.*)"
)
_MODAL = r"(.{3,60}?) (?:must|should|shall)(?: (?:(not|never)|always)|(n't))? (.+)"
_CLAUSE_END = r"\s*(?:;|\s[\u2014\u2013-]\s|\u2014|\(|\bbecause\b|\.(?=\s|$)|:(?=\s|$)|!)"
_EXCEPTED = r"\b(?:unless|except|only|if|when|but|until|without|before|instead|where|outside)\b"
_FILLERS = r"\b(?:directly|ever|straight|the|an?|explicitly|any|branch|plain|raw)\b|[`'\"]"
_ANAPHORIC = (
    r"(?:^|\s)(?:it|this|that|them|these|those|so|one|here|to|above|below|both|everything|when|\u2026)$"
)


def _find_clauses(text: str) -> Iterator[_Finding]:
    """Find what a statement says is always or never done, in as few words as say it."""
    forbids, asks = _pattern(_FORBIDS).match(text), _pattern(_ASKS).match(text)
    modal = None if forbids or asks else _pattern(_MODAL).match(text)
    plain = forbids or asks
    is_forbidden = forbids is not None or (modal is not None and bool(modal[2] or modal[3]))
    body = plain[2] if plain else text if modal is None else f"{modal[1]} must {modal[4]}"
    end = _pattern(_CLAUSE_END).search(body)
    clause, after_clause = (body, "") if end is None else (body[: end.start()], body[end.start() :])
    if _pattern(_EXCEPTED).search(after_clause) or "," in clause or "\u2026" in clause:
        return
    noun = (
        _pattern(r"us(?:e|ing)\b").sub("", clause, count=1) if clause.startswith(("use ", "using ")) else None
    )
    if noun is None and plain and plain[1]:
        noun = clause  # "Avoid default exports" forbids what "Use default exports" asks for
    words = _pattern(_FILLERS).sub(" ", clause if noun is None else noun).split()
    if len(words) > 1 and not _pattern(_ANAPHORIC).search(" ".join(words)):
        value = " ".join(words) if noun is None else f"use {' '.join(words)}"
        yield _Finding(f"{_CLAUSE_TOPIC}{value}", value, forbids=is_forbidden)


_FINDERS = {
    _find_managers: ("npm", "yarn", "bun", "pip", "poetry", "uv", "pdm"),
    _find_frameworks: ("test", "spec"),
    _find_test_commands: ("test",),
    _find_versions: (
        "python",
        "node",
        "java",
        "go",
        "ruby",
        "php",
        "script",
        "rust",
        "swift",
        "kotlin",
        "net",
        "c#",
    ),
    _find_indentation: ("tab", "space"),
    _find_quotes: ("quote",),
    _find_semicolons: ("colon",),
    _find_lengths: ("line", "char", "width", "column", "cols"),
    _find_choices: (" over ", " instead ", " rather ", " not "),
}
"""What finds claims, with the words of which a sentence has one."""
