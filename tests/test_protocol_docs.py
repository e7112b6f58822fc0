"""docs/protocol.md and the TypeScript types say what `protocol`, the handlers and a real daemon say."""

import ast
import inspect
import json
import re
from typing import Any, get_args

import msgspec
import pytest

from nexus_daemon import protocol, server
from nexus_daemon.api.methods import METHODS
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.initialize import SHOW_IN_CONTEXT, SHOW_SERVER
from nexus_daemon.process.version import PROTOCOL
from nexus_daemon.shared.tracker import RESTARTED
from protocol_docs.examples import REPOSITORY, Examples, record
from protocol_docs.exchange import exchanges_page, without_figures
from protocol_docs.metadata import Metadata
from protocol_docs.page import PAGE, page
from protocol_docs.refusals import REFUSALS
from protocol_docs.source import bases, declared_fields, fields, meaning, strict, structs_in, values_of
from protocol_docs.typescript import TYPES, typescript

pytestmark = pytest.mark.timeout(180)  # the first test asks a daemon everything
REMEDY = "run `make generate` and look at the difference"
MOST_LINES = 900
SPOKEN = {
    kind
    for types in (
        (Metadata,),
        *(method.types for method in METHODS.values()),
        *protocol.QUESTIONS.values(),
        tuple(protocol.NOTIFICATIONS.values()),
    )
    for one in types
    for kind in structs_in(one)
}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    """What a daemon answers now."""
    return record(tmp_path_factory.mktemp("home").resolve() / "ana")


def check(kind: type[msgspec.Struct], recorded: Any) -> Any:
    """Decode what was recorded, refusing unknown fields, and say what it is as JSON again."""
    return msgspec.json.decode(msgspec.json.encode(msgspec.convert(recorded, strict(kind))))


def test_a_recorded_result_is_its_struct_and_nothing_else(live: Examples) -> None:
    metadata = live["requests"]["nexus/context/assemble"]["result"]["metadata"]
    results: list[tuple[Any, Any]] = [
        *((METHODS[method].types[1], one["result"]) for method, one in live["requests"].items()),
        *((protocol.NOTIFICATIONS[method], params) for method, params in live["notifications"].items()),
        *((protocol.QUESTIONS[method][0], one["params"]) for method, one in live["questions"].items()),
        *((protocol.QUESTIONS[method][1], one["result"]) for method, one in live["questions"].items()),
        (protocol.CountResult, live["command"]["result"]),
        (Metadata, metadata),
    ]
    for kind, recorded in results:
        assert check(kind, recorded) == recorded, kind


def test_recorded_parameters_have_no_unknown_field(live: Examples) -> None:
    params: list[tuple[Any, Any]] = [
        *((METHODS[method].types[0], example["params"]) for method, example in live["requests"].items()),
        (protocol.CountParams, live["command"]["params"]["arguments"][0]),
        (protocol.SessionParams, live["errors"]["a folder that nobody opened"]["params"]),
    ]
    for kind, recorded in params:
        assert recorded.keys() <= check(kind, recorded).keys(), kind


def test_a_field_that_no_struct_has_is_refused(live: Examples) -> None:
    usage = live["requests"]["nexus/context/usage"]["result"]
    lie = {**usage, "rows": [{**usage["rows"][0], "colour": "red"}]}
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        check(protocol.TokenUsage, lie)


def test_every_method_has_an_example_and_nothing_else_has(live: Examples) -> None:
    assert sorted(live["requests"]) == sorted(METHODS)
    assert sorted(live["notifications"]) == sorted(protocol.NOTIFICATIONS)
    assert sorted(live["questions"]) == sorted(protocol.QUESTIONS)


def test_the_page_is_what_a_daemon_answers(live: Examples) -> None:
    committed = PAGE.read_text(encoding="utf-8").splitlines()
    assert list(map(comparable, committed)) == list(map(comparable, page(live).splitlines())), REMEDY


def test_the_page_is_short() -> None:
    assert len(PAGE.read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def test_the_page_has_every_field_at_its_shape_or_its_method() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [
        f"{kind.__name__}.{field.name}"
        for kind in SPOKEN
        for field in declared_fields(kind)
        if not re.search(rf"`{field.name}\??: ", place_of(kind, text))
    ]
    assert missing == []
    assert [base.__name__ for kind in SPOKEN for base in bases(kind) if not shape_of(base, text)] == []


def test_every_method_has_a_section_and_one_example() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("\n## Errors\n")[0]
    sections = text.split("\n### ")[1:]
    methods = [*METHODS, *protocol.QUESTIONS, *protocol.NOTIFICATIONS]
    assert [section.partition("\n")[0] for section in sections] == methods
    assert [section.count("- **Example:** ") for section in sections] == [1] * len(methods)


def test_the_long_page_has_every_exchange_in_full(live: Examples) -> None:
    text = exchanges_page(live)
    prompt = live["requests"]["nexus/context/preview"]["result"]["text"]
    assert json.dumps(prompt, ensure_ascii=False) in text
    assert [method for method in METHODS if f"\n## {method}\n" not in text] == []


def test_the_types_of_the_extension_are_fresh() -> None:
    assert TYPES.read_text(encoding="utf-8") == typescript(), REMEDY


def test_the_comment_of_a_field_names_its_values() -> None:
    mismatches = []
    for kind in SPOKEN:
        for field in msgspec.structs.fields(kind):
            types = [one for one in (field.type, *get_args(field.type)) if values_of(one) is not None]
            for one_of in map(values_of, types):
                words = re.findall(r"`([^`]+)`", meaning(kind, field.name))
                values = [value for value in one_of.values if isinstance(value, str)] if one_of else []
                mismatches += [(kind.__name__, field.name, value) for value in {*values} - {*words}]
    assert mismatches == []


def test_neovim_names_the_number_of_the_protocol() -> None:
    config = (REPOSITORY / "editors" / "neovim" / "lsp" / "nexus.lua").read_text(encoding="utf-8")
    assert f"experimental = {{ nexus = {{ protocol = {PROTOCOL}," in config


def test_every_field_struct_and_handler_says_what_it_means() -> None:
    silent = [
        f"{kind.__name__}.{field.name}" for kind in SPOKEN for field in fields(kind) if not field.meaning
    ]
    undocumented = [kind.__name__ for kind in SPOKEN if not (kind.__doc__ or "").strip()]
    mute = [name for name, method in METHODS.items() if not inspect.getdoc(method.handler())]
    assert (silent, undocumented, mute) == ([], [], [])


def test_every_method_is_registered_and_a_command(live: Examples) -> None:
    connection = NexusServer()
    server.build(no_daemon, connection)
    table = connection.protocol
    commands = [method.replace("/", ".") for method in METHODS]
    assert {name for name in table.features if name.startswith("nexus/")} == set(METHODS)
    assert {name for name in table.commands if name.startswith("nexus.")} == {
        *commands,
        SHOW_IN_CONTEXT,
        SHOW_SERVER,
    }
    told = live["initialize"]["result"]["capabilities"]["executeCommandProvider"]["commands"]
    assert told == sorted(commands)


def test_every_reason_for_a_refusal_is_on_the_page() -> None:
    assert set(REFUSALS) == {*refusals(), RESTARTED}


def no_daemon() -> Any:
    raise AssertionError("nothing needs a daemon yet")


def place_of(kind: Any, text: str) -> str:
    """The part of the page that describes a struct: among the shapes, or at its method."""
    types: dict[str, Any] = {name: method.types for name, method in METHODS.items()} | protocol.QUESTIONS
    types |= {name: (notice,) for name, notice in protocol.NOTIFICATIONS.items()}
    methods = [name for name, kinds in types.items() if kind in kinds]
    sections = [text.partition(f"\n### {name}\n")[2].partition("\n#")[0] for name in methods]
    return shape_of(kind, text) or "".join(sections)


def shape_of(kind: Any, text: str) -> str:
    """The item of a struct among the shapes."""
    match = re.search(
        rf"^- \*\*{kind.__name__}(?: < \w+)*:\*\*.*?\n(?=- |\n)", text, re.DOTALL | re.MULTILINE
    )
    return match[0] if match else ""


def comparable(line: str) -> str:
    """A line of the page; an example without its figures: they differ between machines, as paths do."""
    return without_figures(line) if "**Example:**" in line else line


def refusals() -> list[str]:
    """The `code` of every RequestError of library and daemon, and of what derives from it."""
    found = []
    for package in ("context", "daemon"):
        for path in (REPOSITORY / package).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree) if path.parent.name != "cli" else ():
                if isinstance(node, ast.Call) and _raises(node.func):
                    found += [
                        word.value.value
                        for word in node.keywords
                        if word.arg == "code"
                        and isinstance(word.value, ast.Constant)
                        and isinstance(word.value.value, str)
                    ]
    return found


def _raises(called: ast.expr) -> bool:
    """Whether this makes an error, or its part that is a RequestError."""
    name = getattr(called, "id", "") or getattr(called, "attr", "")
    return name.endswith("Error") or name == "__init__"
