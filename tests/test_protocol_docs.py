"""docs/protocol.md and the TypeScript types say what `protocol`, the handlers and a real daemon say."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from nexus_daemon import protocol, server
from nexus_daemon.api.methods import METHODS
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.initialize import SHOW_IN_CONTEXT, SHOW_SERVER
from nexus_daemon.process.version import PROTOCOL
from nexus_daemon.shared.tracker import RESTARTED
from protocol_docs.examples import REPOSITORY, Examples, load, record
from protocol_docs.metadata import Metadata
from protocol_docs.page import CODES, MOST_LINES, PAGE, page
from protocol_docs.source import fields, meaning, strict, structs_in, values_of
from protocol_docs.typescript import TYPES, typescript

EXAMPLES = load()
RECORDED = [(METHODS[method].types, one) for method, one in EXAMPLES["requests"].items() if method in METHODS]
REMEDY = "run `make generate` and look at the difference"
PARAMS = [
    *((params, example["params"]) for (params, _), example in RECORDED),
    (protocol.CountParams, EXAMPLES["command"]["params"]["arguments"][0]),
    (protocol.SessionParams, EXAMPLES["errors"]["a folder that nobody opened"]["params"]),
]
RESULTS = [
    *((result, example["result"]) for (_, result), example in RECORDED),
    *((protocol.NOTIFICATIONS[method], params) for method, params in EXAMPLES["notifications"].items()),
    *((protocol.QUESTIONS[method][0], one["params"]) for method, one in EXAMPLES["questions"].items()),
    *((protocol.QUESTIONS[method][1], one["result"]) for method, one in EXAMPLES["questions"].items()),
    (protocol.CountResult, EXAMPLES["command"]["result"]),
    (Metadata, EXAMPLES["requests"]["nexus/context/assemble"]["result"]["metadata"]),
]
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


def check(kind: type[msgspec.Struct], recorded: Any) -> Any:
    """Decode what was recorded, refusing unknown fields, and say what it is as JSON again."""
    return msgspec.json.decode(msgspec.json.encode(msgspec.convert(recorded, strict(kind))))


@pytest.mark.parametrize(("kind", "recorded"), RESULTS)
def test_a_recorded_result_is_its_struct_and_nothing_else(kind: type[msgspec.Struct], recorded: Any) -> None:
    assert check(kind, recorded) == recorded


@pytest.mark.parametrize(("kind", "recorded"), PARAMS)
def test_recorded_parameters_have_no_unknown_field(kind: type[msgspec.Struct], recorded: Any) -> None:
    assert recorded.keys() <= check(kind, recorded).keys()


def test_a_field_that_no_struct_has_is_refused() -> None:
    usage = EXAMPLES["requests"]["nexus/context/usage"]["result"]
    lie = {**usage, "rows": [{**usage["rows"][0], "colour": "red"}]}
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        check(protocol.TokenUsage, lie)


def test_every_method_has_an_example_and_nothing_else_has() -> None:
    assert sorted(EXAMPLES["requests"]) == sorted(METHODS)
    assert sorted(EXAMPLES["notifications"]) == sorted(protocol.NOTIFICATIONS)
    assert sorted(EXAMPLES["questions"]) == sorted(protocol.QUESTIONS)


def test_a_daemon_answers_as_recorded(tmp_path: Path) -> None:
    live = record(tmp_path.resolve() / "ana")
    for part, examples in EXAMPLES.items():
        for name in examples:
            assert sketch(live[part][name]) == sketch(examples[name]), f"{part} {name}: {REMEDY}"
    assert live.keys() == EXAMPLES.keys()


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(EXAMPLES), REMEDY


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


def test_examples_on_the_page_are_short() -> None:
    blocks = PAGE.read_text(encoding="utf-8").split("```jsonc\n")[1:]
    lengths = [len(block.split("\n```")[0].splitlines()) for block in blocks]
    assert max(lengths) <= MOST_LINES


def test_every_field_struct_and_handler_says_what_it_means() -> None:
    silent = [
        f"{kind.__name__}.{field.name}" for kind in SPOKEN for field in fields(kind) if not field.meaning
    ]
    undocumented = [kind.__name__ for kind in SPOKEN if not (kind.__doc__ or "").strip()]
    mute = [name for name, method in METHODS.items() if not inspect.getdoc(method.handler())]
    assert (silent, undocumented, mute) == ([], [], [])


def test_links_of_the_page_lead_somewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = [line.lstrip("#").strip() for line in text.splitlines() if line.startswith("#")]
    anchors = [heading.lower().replace("/", "").replace(" ", "-") for heading in headings]
    linked = {part.split(")")[0] for part in text.split("](#")[1:]}
    assert linked - set(anchors) == set()
    assert len(set(anchors)) == len(anchors)


def test_every_method_is_registered_and_a_command() -> None:
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
    told = EXAMPLES["initialize"]["result"]["capabilities"]["executeCommandProvider"]["commands"]
    assert told == sorted(commands)


def test_every_reason_for_a_refusal_is_on_the_page() -> None:
    assert set(CODES) == {*refusals(), RESTARTED}


def no_daemon() -> Any:
    raise AssertionError("nothing needs a daemon yet")


def sketch(value: Examples | Any) -> Any:
    """A value without its figures: they differ between machines, because paths have other lengths."""
    if isinstance(value, dict):
        return {key: sketch(item) for key, item in value.items()}
    if isinstance(value, list):
        return [sketch(item) for item in value]
    return "a number" if isinstance(value, (int, float)) and not isinstance(value, bool) else value


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
