"""A grammar of typing states: files as they are while people, editors and merges are at work on them.

A session begins with a valid file and goes on step by step: each text is the one before with one change.
The same number gives the same session. What can happen to a text is listed in `CHANGES` and `JSON_CHANGES`.
"""

import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from support.typing_forms import FORMS, Form

Change = Callable[[Random, str], str]

LONGEST = 8_000
"""Characters of a text, past which the session begins anew with a valid one."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"?|[{}\[\],:]|[^\s{}\[\],:"]+|\s+')
_KEY = re.compile(r'"((?:[^"\\\n]|\\.)*)"\s*:')
_TYPED: tuple[str, ...] = (
    *'"",:{}[] \n\t\r1-.eE\'x\\/_#@&*!|>%?`~<=+$()',
    *(
        '"a"',
        '"a":',
        ": ",
        ", ",
        "null",
        "tru",
        "NaN",
        "-",
        "01",
        "1e999",
        "\r\n",
        "\n\n",
        "//",
        "/*",
        "*/",
        "---",
    ),
)
_ODD: tuple[str, ...] = (
    *"\0\x07\x1b\x7f\x85\xa0\xad\u034f\u200b\u200d\u202e\u2028\u2029\u2800\u3000\ufeff\ufffd\ufffe",
    *("\ud800", "\udc00", "\ud83d\ude00", "\U0001f600", "\U000e0041", "e\u0301", "漢字", "א", "“", "”", "‘"),
    *("\\u12", "\\ud800", "\\u0000", "\\udfff\\ud800", "\\q", "\\"),
)
_OPENERS = ("[", '{"a":', "{", '[{"a":', "(", "- ", "> ", "<!--", "```\n")
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1.5, 10**30, "", "x", "a b", "../..", "*", "${", "${X", "http://", "\0", "é"),
    *([], {}, [[]], [None], [1, "x"], {"a": 1}, {"": None}, {"a": {"a": []}}, [{"name": []}], {"name": {}}),
)
_MARKDOWN: tuple[str, ...] = (
    *(
        "---\n",
        "---",
        "- ",
        "  - x\n",
        "key:",
        "key: ",
        "name:",
        "description: |\n",
        "? x\n",
        ": \n",
        "&a ",
        "*a",
    ),
    *(
        "!!python/object:os.system x",
        "{",
        "[",
        "'",
        '"',
        "@more.md",
        "@",
        "@./",
        "@sub/",
        "@more.md @more.md",
    ),
    *(
        "\\ ",
        "`",
        "```",
        "~~~\n",
        "<!--",
        "-->",
        "[//]: # (",
        "| @more.md |",
        "\t",
        "# ",
        "1. ",
        "%YAML 1.1\n",
    ),
)


def states(form: Form, seed: int, count: int) -> Iterator[str]:
    """So many texts, each with one step more than the one before; the first is valid."""
    dice = Random(seed)  # noqa: S311 - no secret
    changes = JSON_CHANGES if form.is_json else TEXT_CHANGES
    text = dice.choice(form.texts)
    for _ in range(count):
        yield text
        if len(text) > LONGEST or dice.random() < 0.04:
            text = dice.choice(form.texts)
        text = dice.choices(tuple(changes), tuple(changes.values()))[0](dice, text)


def form_of(seed: int) -> Form:
    """The kinds of files in turn."""
    forms = tuple(FORMS.values())
    return forms[seed % len(forms)]


def _type(dice: Random, text: str) -> str:
    """A key is pressed."""
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice(_TYPED) + text[at:]


def _erase(dice: Random, text: str) -> str:
    """Backspace."""
    at = dice.randint(0, len(text))
    return text[: max(at - 1, 0)] + text[at:]


def _write_word(dice: Random, text: str) -> str:
    """Letters within or beside other letters."""
    places = [match.start() for match in re.finditer(r"\w", text)]
    at = dice.choice(places) if places else 0
    return text[:at] + dice.choice(("x", "ab", "é", "1", " ", "")) + text[at + dice.randint(0, 1) :]


def _cut(dice: Random, text: str) -> str:
    """A prefix: the rest is not there yet."""
    return text[: dice.randint(0, len(text))]


def _cut_start(dice: Random, text: str) -> str:
    return text[dice.randint(0, len(text)) :]


def _span(dice: Random, text: str) -> tuple[int, int]:
    start = dice.randint(0, len(text))
    return start, min(len(text), start + dice.choice((1, 2, 5, 20, 100, 1000)))


def _delete(dice: Random, text: str) -> str:
    start, end = _span(dice, text)
    return text[:start] + text[end:]


def _repeat(dice: Random, text: str) -> str:
    start, end = _span(dice, text)
    return text[:end] + text[start:end] * dice.choice((1, 1, 2, 9)) + text[end:]


def _move(dice: Random, text: str) -> str:
    start, end = _span(dice, text)
    rest, at = text[:start] + text[end:], dice.randint(0, len(text) - (end - start))
    return rest[:at] + text[start:end] + rest[at:]


def _odd(dice: Random, text: str) -> str:
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice(_ODD) + text[at:]


def _deep(dice: Random, text: str) -> str:
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice(_OPENERS) * dice.choice((2, 5, 30, 129, 700)) + text[at:]


def _line_ends(dice: Random, text: str) -> str:
    return text.replace("\n", dice.choice(("\r\n", "\r", "", "\n\n", "\u2028")))


def _conflict(dice: Random, text: str) -> str:
    """A merge that is not resolved."""
    lines = text.splitlines(keepends=True)
    at = dice.randint(0, len(lines))
    mine = "".join(lines[at : at + 2])
    return "".join((*lines[:at], "<<<<<<< HEAD\n", mine, "=======\n", mine, ">>>>>>> x\n", *lines[at + 2 :]))


def _markdown(dice: Random, text: str) -> str:
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    at = dice.choice(starts)
    return text[:at] + dice.choice(_MARKDOWN) + text[at:]


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _places(tokens: list[str], kinds: str) -> list[int]:
    """The tokens that begin with one of these characters; all of them if there is none."""
    return [at for at, token in enumerate(tokens) if token[0] in kinds] or list(range(len(tokens)))


def _half_key(dice: Random, text: str) -> str:
    """A key without a value, often one that is there already."""
    name = dice.choice([*_KEY.findall(text), "servers", "context", "a", ""])
    half = dice.choice(('"{}"', '"{}":', '"{}" :', '"{}', "{}:", "'{}'", '"{}": ,'))
    tokens = _tokens(text)
    if not tokens:
        return half.format(name)
    at = dice.choice(_places(tokens, "{},"))
    before = dice.choice((", ", "", "\n"))
    written = before + half.format(name) + dice.choice(("", ", "))
    return "".join(
        (
            *tokens[:at],
            *((written, tokens[at]) if dice.random() < 0.5 else (tokens[at], written)),
            *tokens[at + 1 :],
        )
    )


def _lose(kinds: str) -> Change:
    def lose(dice: Random, text: str) -> str:
        tokens = _tokens(text)
        if tokens:
            del tokens[dice.choice(_places(tokens, kinds))]
        return "".join(tokens)

    return lose


def _double(kinds: str) -> Change:
    def double(dice: Random, text: str) -> str:
        tokens = _tokens(text)
        if tokens:
            at = dice.choice(_places(tokens, kinds))
            tokens.insert(at, tokens[at])
        return "".join(tokens)

    return double


def _swap_tokens(dice: Random, text: str) -> str:
    tokens = _tokens(text)
    if tokens:
        a, b = dice.randrange(len(tokens)), dice.randrange(len(tokens))
        tokens[a], tokens[b] = tokens[b], tokens[a]
    return "".join(tokens)


def _commas(dice: Random, text: str) -> list[int]:
    """Two places after commas, in order; perhaps of different depths."""
    places = [match.end() for match in re.finditer(",", text)] or [0]
    return sorted((dice.choice(places), dice.choice(places)))


def _swap_members(dice: Random, text: str) -> str:
    first, second = _commas(dice, text)
    _, third = _commas(dice, text)
    start, middle, end = sorted((first, second, third))
    return text[:start] + text[middle:end] + text[start:middle] + text[end:]


def _repeat_member(dice: Random, text: str) -> str:
    start, end = _commas(dice, text)
    return text[:end] + text[start:end] + text[end:]


def _rename(dice: Random, text: str) -> str:
    """A key becomes another one, often one that is there already."""
    keys = list(_KEY.finditer(text))
    if not keys:
        return text
    match, other = dice.choice(keys), dice.choice(keys)
    name = dice.choice((other[1], other[1], "name", "x", "", "_comment", "0", "__proto__"))
    return text[: match.start(1)] + name + text[match.end(1) :]


def _other_value(dice: Random, text: str) -> str:
    """A whole value becomes one of another kind, or another one of the file."""
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        return _other_token(dice, text)
    holders = list(_holders(root))
    if not holders:
        return json.dumps(dice.choice(_VALUES))
    holder, key = dice.choice(holders)
    other, name = dice.choice(holders)
    holder[key] = dice.choice((*_VALUES, json.loads(json.dumps(other[name]))))
    return json.dumps(root, indent=dice.choice((None, 2)))


def _holders(root: Any) -> Iterator[tuple[Any, Any]]:
    todo = [root]
    while todo:
        value = todo.pop()
        if isinstance(value, dict | list):
            for key in value if isinstance(value, dict) else range(len(value)):
                yield value, key
                todo.append(value[key])


def _other_token(dice: Random, text: str) -> str:
    tokens = _tokens(text)
    if not tokens:
        return text
    places = [at for at, token in enumerate(tokens) if token[0] not in "{}[],: \t\r\n"]
    at = dice.choice(places or list(range(len(tokens))))
    tokens[at] = json.dumps(dice.choice(_VALUES))
    return "".join(tokens)


def _comment(dice: Random, text: str) -> str:
    at = dice.choice([0, len(text), *(match.end() for match in re.finditer(r"[,{}\[\]:\n]", text))])
    comment = dice.choice(("// x\n", "/* x */", "/* x", "# x\n", "//", "<!-- x -->", '// "a": 1\n', "/**/"))
    return text[:at] + comment + text[at:]


def _quotes(dice: Random, text: str) -> str:
    places = [match.start() for match in re.finditer('"', text)]
    if not places:
        return text
    at = dice.choice(places)
    quote = dice.choice(("'", "“", "”", "`", "", '\\"', '""', "'''"))
    if dice.random() < 0.2:
        return text.replace('"', quote)
    return text[:at] + quote + text[at + 1 :]


CHANGES: dict[Change, int] = {
    _type: 10,
    _erase: 8,
    _write_word: 8,
    _cut: 4,
    _cut_start: 1,
    _delete: 4,
    _repeat: 3,
    _move: 3,
    _odd: 4,
    _deep: 1,
    _line_ends: 1,
    _conflict: 1,
}
"""What can happen to any text, and how often."""

TEXT_CHANGES: dict[Change, int] = {**CHANGES, _markdown: 20, _quotes: 3}

JSON_CHANGES: dict[Change, int] = {
    **CHANGES,
    _half_key: 12,
    _lose(":"): 3,
    _lose('"'): 4,
    _lose(","): 3,
    _lose("{}[]"): 4,
    _double(","): 3,
    _double("{}[]:"): 3,
    _double('"'): 2,
    _swap_tokens: 3,
    _swap_members: 4,
    _repeat_member: 4,
    _rename: 6,
    _other_value: 12,
    _other_token: 4,
    _comment: 4,
    _quotes: 4,
}
