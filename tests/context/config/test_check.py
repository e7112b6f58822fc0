"""Errors of one config.json, each at its exact key or value, with its fix."""

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from nexus_context.config.check import (
    CONFIG_SCHEMA,
    MCP_SCHEMA,
    check_config,
    check_value,
    conform,
    describe,
    load_schema,
)
from nexus_context.config.schema import Config
from nexus_context.errors import Severity
from nexus_context.text.json import parse
from support.problems import fixed, rows

PATH = "/home/u/.nexus3/config.json"


def check(text: str, *expected: tuple[str, str, str, str | None]) -> None:
    """Each problem's code, text under the span, message, and the text after its fix."""
    problems = check_config(parse(PATH, text))
    found = [
        (*row, fixed(text, problem.fix)) for row, problem in zip(rows(text, problems), problems, strict=True)
    ]
    assert found == list(expected)


def test_valid_files() -> None:
    for text in ("", " \n", "{}", '{"_comment": 1, "context": {"_comment_x": {}, "ancestor_depth": 3}}'):
        check(text)


def test_unknown_keys() -> None:
    check(
        '{"context": {"ancestorDepth": 3}}',
        (
            "config.unknown-key",
            '"ancestorDepth"',
            'Unknown key "ancestorDepth" in "context": did you mean "ancestor_depth"?',
            '{"context": {"ancestor_depth": 3}}',
        ),
    )
    check(
        '{"contxt": {}}',
        (
            "config.unknown-key",
            '"contxt"',
            'Unknown key "contxt" here: did you mean "context"?',
            '{"context": {}}',
        ),
    )
    check('{"zebra": 1}', ("config.unknown-key", '"zebra"', 'Unknown key "zebra" here: remove it.', "{}"))


def test_a_known_key_elsewhere_is_named_and_not_removed() -> None:
    check(
        '{"ancestor_depth": 1}',
        (
            "config.unknown-key",
            '"ancestor_depth"',
            'Unknown key "ancestor_depth" here: it belongs in "context".',
            None,
        ),
    )


def test_a_name_that_is_taken_is_not_suggested() -> None:
    check(
        '{"tools": {"summary": true, "sumary": true}}',
        (
            "config.unknown-key",
            '"sumary"',
            'Unknown key "sumary" in "tools": remove it.',
            '{"tools": {"summary": true}}',
        ),
    )


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"zz": 1}', "{}"),
        ('{\n  "zz": {"a": [1, 2]}\n}\n', "{\n}\n"),
        ('{\n  "zz": 1,\n  "tools": {}\n}', '{\n  "tools": {}\n}'),
        ('{\n  "tools": {},\n  "zz": 1\n}', '{\n  "tools": {}\n}'),
        ('{"tools": {} , "zz" : 1 , "skills": {}}', '{"tools": {} , "skills": {}}'),
        ('{"tools": {} , "zz" : 1 }', '{"tools": {}  }'),
    ],
)
def test_removing_a_member_takes_the_right_comma(text: str, after: str) -> None:
    (problem,) = check_config(parse(PATH, text))
    assert fixed(text, problem.fix) == after
    json.loads(after)


@pytest.mark.parametrize(
    ("text", "code", "marked", "message", "after"),
    [
        ("[1]", "type", "[1]", "The file must be an object, not a list.", None),
        ("null", "type", "null", "The file must be an object, not null.", None),
        (
            '{"tools": {"summary": "True"}}',
            "type",
            '"True"',
            '"summary" must be true or false, not text.',
            '{"tools": {"summary": true}}',
        ),
        (
            '{"context": {"ancestor_depth": "3"}}',
            "type",
            '"3"',
            '"ancestor_depth" must be a whole number, not text.',
            '{"context": {"ancestor_depth": 3}}',
        ),
        (
            '{"context": {"ancestor_depth": "30"}}',
            "type",
            '"30"',
            '"ancestor_depth" must be a whole number, not text.',
            None,
        ),
        (
            '{"context": {"max_tokens": 8000.0}}',
            "type",
            "8000.0",
            '"max_tokens" must be a whole number, not a number.',
            '{"context": {"max_tokens": 8000}}',
        ),
        (
            '{"provider": {"model": 4}}',
            "type",
            "4",
            '"model" must be text, not a whole number.',
            '{"provider": {"model": "4"}}',
        ),
        (
            '{"tools": {"disabled": "rm"}}',
            "type",
            '"rm"',
            '"disabled" must be a list, not text.',
            '{"tools": {"disabled": ["rm"]}}',
        ),
        (
            '{"tools": {"disabled": ["a", 1, []]}}',
            "type",
            "[]",
            'Item 3 of "disabled" must be text, not a list.',
            None,
        ),
        ('{"context": []}', "type", "[]", '"context" must be an object, not a list.', None),
        ('{"context": {"git": null}}', "type", "null", '"git" must be true or false, not null.', None),
        (
            '{"provider": {"name": "Anthropik"}}',
            "enum",
            '"Anthropik"',
            (
                '"name" must be anthropic, openai, google, openai-compatible, editor or none. '
                'Did you mean "anthropic"?'
            ),
            '{"provider": {"name": "anthropic"}}',
        ),
        (
            '{"permissions": {"level": "root"}}',
            "enum",
            '"root"',
            '"level" must be yolo, trusted, sandboxed or worker.',
            None,
        ),
        (
            '{"context": {"ancestor_depth": 11}}',
            "range",
            "11",
            '"ancestor_depth" must be between 0 and 10.',
            None,
        ),
        (
            '{"parameters": {"temperature": 2.1}}',
            "range",
            "2.1",
            '"temperature" must be between 0.0 and 2.0.',
            None,
        ),
        (
            '{"context": {"sections": [{"content": "b"}]}}',
            "required",
            "{",
            'Item 1 of "sections" needs "name".',
            None,
        ),
        (
            '{"context": {"sections": [{"name": "a"}]}}',
            "required",
            "{",
            'Item 1 of "sections" needs exactly one of "content" or "file".',
            None,
        ),
        ('{"provider": {"model": ""}}', "pattern", '""', '"model" must not be empty.', None),
        (
            '{"provider": {"api_key_env": "my key"}}',
            "pattern",
            '"my key"',
            (
                '"api_key_env" is not a valid name of an environment variable: use letters, digits and `_`, '
                "and begin with no digit. Put the key itself into that variable, not here."
            ),
            None,
        ),
        (
            '{"provider": {"base_url": "example.org"}}',
            "pattern",
            '"example.org"',
            '"base_url" is not a valid address: write http:// or https://, then a host, without spaces.',
            None,
        ),
        (
            '{"context": {"instruction_files": ["a/b"]}}',
            "pattern",
            '"a/b"',
            (
                'Item 1 of "instruction_files" is not a valid file name: use a name without `/` and '
                "backslashes, or Copilot's `.github/copilot-instructions.md` and "
                "`.github/instructions/*.instructions.md`."
            ),
            None,
        ),
        (
            '{"agents": {"a": {"tools": ["a b"]}}}',
            "pattern",
            '"a b"',
            'Item 1 of "tools" is not a valid name or pattern: use visible ASCII characters without spaces.',
            None,
        ),
    ],
)
def test_values(text: str, code: str, marked: str, message: str, after: str | None) -> None:
    problems = check_config(parse(PATH, text))
    problem = problems[-1]
    assert rows(text, [problem]) == [(f"config.{code}", marked, message)]
    assert fixed(text, problem.fix) == after


def test_all_errors_of_a_file_in_the_order_of_the_text() -> None:
    text = '{"tools": {"summary": 1}, "provider": {"name": 2}, "x": 1, "context": {"git": "yes"}}'
    assert [row[1] for row in rows(text, check_config(parse(PATH, text)))] == ["1", "2", '"x"', '"yes"']


def test_syntax_errors_hide_only_what_is_said_about_them() -> None:
    text = '{"tools": {"summary": }, "zebra": 1, unknown: 2}'
    assert [row[1] for row in rows(text, check_config(parse(PATH, text)))] == ['"zebra"']


@pytest.mark.parametrize(
    ("text", "code", "marked", "message"),
    [
        (
            '{"context": {"max_tokens": 8000, "reserve_tokens": 8000}}',
            "budget",
            "8000",
            "8000 of 8000 tokens are reserved: nothing is left. Raise max_tokens or reserve less.",
        ),
        (
            '{"context": {"max_tokens": 1500}}',
            "budget",
            "1500",
            "2000 of 1500 tokens are reserved: nothing is left. Raise max_tokens or reserve less.",
        ),
        (
            '{"compaction": {"target": 0.8}}',
            "compaction",
            "0.8",
            '"target" must be below "threshold" (0.8), or a compaction frees nothing.',
        ),
        (
            '{"context": {"datetime": {"timezone": "Europe/Berlinn"}}}',
            "timezone",
            '"Europe/Berlinn"',
            'Unknown time zone "Europe/Berlinn": did you mean "Europe/Berlin"?',
        ),
        (
            '{"context": {"datetime": {"timezone": "../../etc/passwd"}}}',
            "timezone",
            '"../../etc/passwd"',
            'Unknown time zone "../../etc/passwd": use a name such as "Europe/Berlin", "UTC" or "local".',
        ),
        (
            '{"ledger": {"path": "a", "url": "b"}}',
            "ledger",
            '"a"',
            '"url" is used and "path" is not: set one of them.',
        ),
        (
            '{"provider": {"headers": {"Authorization": "Bearer abcdef123456"}}}',
            "secret",
            '"Bearer abcdef123456"',
            (
                '"Authorization" contains what looks like a secret: put it into an environment variable and '
                "name that in provider.api_key_env."
            ),
        ),
    ],
)
def test_advice(text: str, code: str, marked: str, message: str) -> None:
    (problem,) = check_config(parse(PATH, text))
    assert rows(text, [problem]) == [(f"config.{code}", marked, message)]
    assert problem.severity == Severity.WARNING


def test_two_sections_of_one_name_are_shown_together() -> None:
    text = """{"context": {"sections": [
      {"name": "Style", "content": "a"}, {"name": "Tests", "content": "b"}, {"name": " Style", "content": "c"}
    ]}}"""
    (problem,) = check_config(parse(PATH, text))
    message = 'There are two sections " Style" in this file: rename or remove one of them.'
    assert rows(text, [problem]) == [("config.section-name", '" Style"', message)]
    assert [text[each.span.start : each.span.end] for each in problem.related] == ['"Style"']
    for broken in (
        '{"context": {"sections": [{"name": 1}, 2, {"name": ""}]}}',
        '{"context": {"sections": 1}}',
    ):
        assert "config.section-name" not in [one.code for one in check_config(parse(PATH, broken))]


def test_settings_that_go_together() -> None:
    check('{"context": {"max_tokens": 8000, "datetime": {"timezone": "Asia/Tokyo"}}}')
    check('{"compaction": {"threshold": 0.5}}')


def test_describe_and_check_value() -> None:
    assert (describe(("context", "ancestor_depth")) or {})["maximum"] == 10
    assert (describe(("agents", "a", "permissions", "deny", 3)) or {})["type"] == "string"
    assert describe(("agents", "a", "colour")) is None
    assert check_value("/parameters/temperature", 1) is None
    assert check_value("/parameters/temperature", 3) == '"temperature" must be between 0.0 and 2.0.'
    assert check_value("/parameters/colour", 3) == "There is no setting parameters.colour"


def test_a_large_file_is_checked_in_little_time() -> None:
    text = large_config(5000)
    document = parse(PATH, text)
    assert check_config(document) == ()
    best = min(_seconds(lambda: check_config(document)) for _ in range(3))
    assert best < 0.05  # about 5 ms; the bound leaves room for a busy machine


def large_config(lines: int) -> str:
    """A valid config.json of about so many lines."""
    agents = {
        f"agent{number}": {
            "cwd": f"src/{number}",
            "role": "worker",
            "task": "Test it.",
            "tools": ["fs.read", "net.*"],
        }
        for number in range(lines // 9)
    }
    return json.dumps({"agents": agents}, indent=2)


def _seconds(call: Any) -> float:
    started = time.thread_time()
    call()
    return time.thread_time() - started


def test_a_pattern_of_the_schemas_is_explained_in_words() -> None:
    texts = [load_schema(path) for path in (CONFIG_SCHEMA, MCP_SCHEMA)]
    for node in texts:
        texts += [child for child in node.values() if isinstance(child, dict)]
        if isinstance(node.get("pattern"), str):
            (problem,) = conform(parse(PATH, '"/ "'), (), {"type": "string", "pattern": node["pattern"]})
            assert node["pattern"] not in problem.message
            assert problem.message.startswith("The file is not a valid ")


# --- the checker and the models agree ---

SCHEMA = load_schema(CONFIG_SCHEMA)
WORDS = st.sampled_from(
    ["", "a", "A_B", "https://h/p", "fs.*", "a b", "x\n", "é", "\x1f", "../x", "1", "true", "h"]
)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 20),
    st.sampled_from([10**8, 10**8 + 1, 10**20, 0.5, 2.0, -0.1, 1e300]),
    WORDS,
    st.lists(st.one_of(WORDS, st.integers(0, 1)), max_size=2),
    st.dictionaries(WORDS, st.one_of(st.none(), WORDS), max_size=2),
)


def _valid(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    types = node.get("type", "object")
    kind = types if isinstance(types, str) else types[0]
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if kind == "object":
        return _valid_object(node)
    if kind == "array":
        return st.lists(_valid(node["items"]), max_size=2)
    if kind == "boolean":
        return st.booleans()
    if kind in {"integer", "number"}:
        return st.sampled_from([node.get("minimum", 0), node.get("maximum", 1)])
    return st.sampled_from(
        ["https://example.org", "NAME"] if "https" in node.get("pattern", "") else ["NAME", "x"]
    )


def _valid_object(node: dict[str, Any]) -> st.SearchStrategy[Any]:
    properties = {key: _valid(child) for key, child in node.get("properties", {}).items()}
    required = {key: properties.pop(key) for key in node.get("required", ())}
    others = node.get("additionalProperties")
    if isinstance(others, dict):
        return st.dictionaries(st.sampled_from(["a", "_comment", "b/c"]), _valid(others), max_size=2)
    comments = {"_comment": ODD, "_commented": ODD}
    return st.fixed_dictionaries(required, optional=properties | comments)


@st.composite
def documents(draw: st.DrawFn) -> Any:
    """A document that is valid or nearly so."""
    value = copy.deepcopy(draw(_valid(SCHEMA)))
    for _ in range(draw(st.integers(0, 2))):
        places = [place for place in _places(value) if isinstance(place[0], dict | list)]
        if not places:
            return draw(ODD)
        holder, key = draw(st.sampled_from(places))
        if isinstance(holder, dict) and draw(st.booleans()):
            item = holder.pop(key)
            if draw(st.booleans()):
                holder[draw(st.sampled_from([f"{key}s", str(key).upper(), "level", "name", "file"]))] = item
        elif (isinstance(holder, dict) and key in holder) or isinstance(holder, list):
            holder[key] = draw(ODD)
    return value


def _places(value: Any) -> list[tuple[Any, Any]]:
    keys = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    return [place for key in keys for place in [(value, key), *_places(value[key])]]


@given(documents())
@example({"context": {"sections": [{"name": "a", "content": None, "file": "b"}]}})
@example({"provider": {"headers": {"_comment": None}}})
@example([])
def test_the_checker_and_the_models_agree(value: Any) -> None:
    problems = check_config(parse(PATH, json.dumps(value)))
    accepted = not any(problem.severity == Severity.ERROR for problem in problems)
    try:
        Config.model_validate(value)
    except ValidationError as error:
        assert not accepted, error
    else:
        assert accepted, problems


@given(st.text(alphabet='{}[]",:\n 1tolsagenxr/', max_size=60))
def test_any_text_is_checked(text: str) -> None:
    for problem in check_config(parse(PATH, text)):
        assert 0 <= problem.span.start <= problem.span.end <= len(text)


@given(documents())
@example({"providers": None})
def test_every_fix_mends_its_problem(value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    problems = check_config(parse(PATH, text))
    for problem in problems:
        after = fixed(text, problem.fix)
        if after is not None and problem.severity == Severity.ERROR:
            json.loads(after)
            remaining = check_config(parse(PATH, after))
            # a key under its right name may show that its value is wrong, too: that is another problem
            same = [(p.code, p.message) for p in problems].count((problem.code, problem.message))
            assert [(p.code, p.message) for p in remaining].count((problem.code, problem.message)) < same
