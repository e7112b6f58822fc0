"""docs/protocol.md: structs of `protocol`, docstrings of the handlers and recorded examples as one page.

1. A table has every method; a section says what its fields mean and shows a line of a real exchange.
2. A struct stands at the only method that names it, else among the shapes, without the fields of its bases.
3. What many fields say alike (`COMMON_USES`) is said once.
4. Lines are wrapped between words, never in code.
"""

import inspect
import itertools
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache

from nexus_daemon import protocol
from nexus_daemon.api.methods import METHODS
from protocol_docs import prose
from protocol_docs.examples import REPOSITORY, Examples, Json
from protocol_docs.exchange import one_line
from protocol_docs.metadata import Metadata
from protocol_docs.refusals import JSONRPC, REFUSALS
from protocol_docs.source import (
    Field,
    StructType,
    bases,
    declared_fields,
    fields,
    structs_in,
)

PAGE = REPOSITORY / "docs" / "protocol.md"
WIDTH = 240
ENTRIES_WIDTH = 640  # of lines that break between entries
CODE_WIDTH = 110
PARAMS_ROOM = 110  # characters of an example's parameters
RESULT_ROOM = 190
FIRST_ROOM = 1_600
COMMON_USES = 3
SEPARATOR = " · "
LINK = re.compile(r"\[(\w+)\]\(#\w+\)")
CODE = re.compile(r"(``?)(?!`).+?\1")
EMPTY = (None, "null", "absent", "[]", "{}")


def page(examples: Examples) -> str:
    """The whole of docs/protocol.md."""
    parts = [
        _wrapped(prose.INTRODUCTION),
        _overview(),
        _wrapped(prose.RULES),
        _first_contact(examples),
        _wrapped(prose.NOTATION),
        _common_fields(),
        *(_request(method, examples["requests"][method]) for method in METHODS),
        _wrapped(prose.QUESTIONS),
        *(_question(method, examples["questions"][method]) for method in protocol.QUESTIONS),
        _wrapped(prose.NOTIFICATIONS),
        *(_notification(method, examples["notifications"][method]) for method in protocol.NOTIFICATIONS),
        _errors(examples["errors"]),
        _shapes(),
        _wrapped(prose.VERSIONS),
    ]
    return "\n".join(parts)


def _overview() -> str:
    rows = [
        *(_row(method, "request", _doc(METHODS[method].handler())) for method in METHODS),
        *(_row(method, "question", prose.QUESTION_DOCS[method]) for method in protocol.QUESTIONS),
        *(_row(method, "notification", _doc(kind)) for method, kind in protocol.NOTIFICATIONS.items()),
    ]
    return "\n".join(["| Method | Kind | What it is for |", "|---|---|---|", *rows]) + "\n"


def _row(method: str, kind: str, doc: str) -> str:
    return f"| [`{method}`](#{method.lower().replace('/', '')}) | {kind} | {_paragraphs(doc)[0]} |"


def _first_contact(examples: Examples) -> str:
    hello, command = examples["initialize"], examples["command"]
    lines = ["## First contact\n", "```jsonc"]
    for title, value in (
        ("initialize", hello["params"]),
        ("its result", hello["result"]),
        ("workspace/executeCommand, of a request as a command", command["params"]),
        ("its result", command["result"]),
    ):
        text = one_line(value, FIRST_ROOM, depth=3)
        lines += [f"// {title}", *textwrap.wrap(text, CODE_WIDTH, break_on_hyphens=False)]
    return "\n".join([*lines, "```", ""])


def _common_fields() -> str:
    common = SEPARATOR.join(f"`{name}` {text}" for name, text in sorted(_common().items()))
    return _fill(f"Fields without words mean: {common}.") + "\n"


def _request(method: str, example: Json) -> str:
    params, result = METHODS[method].types
    lines = [f"### {method}", _described(_doc(METHODS[method].handler()))]
    lines += [*_method_fields("Params", params, given=True), *_method_fields("Result", result)]
    return "\n".join([*lines, _example(example["params"], example["result"]), ""])


def _question(method: str, example: Json) -> str:
    params, result = protocol.QUESTIONS[method]
    lines = [f"### {method}", _described(prose.QUESTION_DOCS[method])]
    lines += [*_method_fields("Params", params), *_method_fields("Result", result)]
    return "\n".join([*lines, _example(example["params"], example["result"]), ""])


def _notification(method: str, params: Json) -> str:
    kind = protocol.NOTIFICATIONS[method]
    lines = [f"### {method}", _described(_doc(kind)), *_method_fields("Params", kind)]
    return "\n".join([*lines, f"- **Example:** `{one_line(params, PARAMS_ROOM + RESULT_ROOM)}`", ""])


def _described(doc: str) -> str:
    """Its paragraphs; the first two, of which the first is a sentence, as one."""
    first, *rest = map(_unlinked, _paragraphs(doc))
    paragraphs = [" ".join([first, *rest[:1]]), *rest[1:]]
    return "\n\n".join(map(_fill, paragraphs))


def _example(params: Json, result: Json) -> str:
    return f"- **Example:** {_code(one_line(params, PARAMS_ROOM))} → {_code(one_line(result, RESULT_ROOM))}"


def _code(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _method_fields(title: str, kind: StructType, *, given: bool = False) -> list[str]:
    """What a method takes or gives: its fields, or the name of a shape."""
    if kind in _shape_kinds():
        return [f"- **{title}:** `{kind.__name__}`"]
    if not fields(kind):
        return [f"- **{title}:** none"]
    return [_rows(f"**{title}:**", _entries(kind, given=given))]


def _entries(kind: StructType, *, given: bool) -> Iterator[str]:
    """The bases of a struct and its own fields."""
    yield from (f"the fields of `{base.__name__}`" for base in bases(kind))
    yield from (_entry(field, given=given) for field in declared_fields(kind))


def _entry(field: Field, *, given: bool) -> str:
    mark = "" if field.default is None else "?"
    kind = field.type.removesuffix(" | null") if field.default == "null" else field.type
    default = f" = {field.default}" if given and field.default not in EMPTY else ""
    said = "" if _common().get(field.name) == field.meaning else f" {_unlinked(field.meaning)}"
    return f"`{field.name}{mark}: {kind}{default}`{said}"


def _errors(examples: Json) -> str:
    families: dict[str, list[str]] = {}
    for code, text in sorted(REFUSALS.items()):
        families.setdefault(code.split("-")[0], []).append(f"`{code}` {text}")
    singles = [text for family in families.values() if len(family) < 3 for text in family]
    groups = [*(family for family in families.values() if len(family) >= 3), singles]
    codes = (f"`{code}` {text}" for code, text in sorted(JSONRPC.items()))
    parts = [_wrapped(prose.ERRORS), _rows("**`code`:**", codes)]
    parts += [_rows("**`data.code`:**", group) for group in groups]
    for example in examples.values():
        asked, error = _code(one_line(example["params"], PARAMS_ROOM)), _code(one_line(example["error"], 400))
        parts.append(f"- **Example:** `{example['method']}` {asked} → {error}")
    return "\n".join([*parts, ""])


def _shapes() -> str:
    lines = [_wrapped(prose.SHAPES)]
    for kind in sorted(_shape_kinds(), key=lambda kind: kind.__name__):
        doc = "" if kind.__name__.endswith("Params") else " ".join(_unlinked(_doc(kind)).split()) + " "
        given = kind in _param_kinds()
        extended = "".join(f" < {base.__name__}" for base in bases(kind))
        entries = (_entry(field, given=given) for field in declared_fields(kind))
        lines.append(_rows(f"**{kind.__name__}{extended}:** {doc}".rstrip(), entries))
    return "\n".join([*lines, ""])


# ---------------------------------------------------------------- which structs, which meanings


def _method_kinds() -> Iterator[StructType]:
    """The params and results of all methods, each as often as it is one."""
    for method in METHODS.values():
        yield from method.types
    yield from itertools.chain(*protocol.QUESTIONS.values())
    yield from protocol.NOTIFICATIONS.values()


@cache
def _param_kinds() -> set[StructType]:
    return {kind for method in METHODS.values() for kind in structs_in(method.params)}


@cache
def _shape_kinds() -> set[StructType]:
    """The structs that do not stand at the only method that they belong to."""
    counts = Counter(_method_kinds())
    roots = [*counts, Metadata, protocol.ChatItem]
    inner = {kind for root in roots for kind in structs_in(root) if kind not in counts}
    extended = {base for kind in (*counts, *inner) for base in bases(kind)}
    extended |= {base for kind in extended for base in bases(kind)}
    used = {kind for root in roots for kind in structs_in(root) if kind is not root}
    several = {kind for kind, count in counts.items() if count > 1}
    return {kind for kind in inner | extended | several | (used & set(counts)) if fields(kind)}


@cache
def _common() -> dict[str, str]:
    """Names of fields → the meaning that many of them share."""
    kinds = {*_method_kinds(), *_shape_kinds()}
    counts = Counter((field.name, field.meaning) for kind in kinds for field in declared_fields(kind))
    common: dict[str, str] = {}
    for (name, text), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count >= COMMON_USES:
            common.setdefault(name, text)
    return common


# ---------------------------------------------------------------- text


def _doc(value: object) -> str:
    return inspect.getdoc(value) or ""


def _unlinked(text: str) -> str:
    """The text with the names of shapes as code; the shapes have no headings to link to."""
    return LINK.sub(r"`\1`", text)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def _wrapped(text: str) -> str:
    """Paragraphs, lists and headings, wrapped anew."""
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join("\n".join(_blocks(paragraph)) for paragraph in paragraphs) + "\n"


def _blocks(paragraph: str) -> Iterator[str]:
    for block in re.split(r"\n(?=- )", paragraph):
        yield block if block.startswith("#") else _fill(" ".join(block.split()))


def _fill(text: str) -> str:
    """A paragraph or an item of a list, in lines that break between words but not in code."""
    text = CODE.sub(lambda match: match[0].replace(" ", "\0"), text)
    indent = "  " if text.startswith("- ") else ""
    filled = textwrap.fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return filled.replace("\0", " ")


def _rows(head: str, entries: Iterable[str]) -> str:
    """An item of a list with entries, in lines that break between entries."""
    lines, line = [], f"- {head}"
    for number, entry in enumerate(entries):
        if number and len(line) + len(entry) > ENTRIES_WIDTH:
            lines.append(f"{line} ·")
            line = "  "
        line += f"{'' if line.endswith('  ') else SEPARATOR if number else ' '}{entry}"
    return "\n".join([*lines, line])
