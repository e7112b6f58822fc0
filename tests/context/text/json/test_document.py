"""JSON text: every error with its place and fix, values, locations, bounded time, no secret in a message."""

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.text.json import JsonDocument, parse, parse_pointer, pointer_text
from nexus_context.text.json.document import FEW_LOOKUPS, MOST_VALUES
from nexus_context.text.json.index import NodeIndex
from nexus_context.text.json.problems import MOST_PROBLEMS
from nexus_context.text.json.scanner import DEEPEST, scan


def apply_fixes(text: str, problems: tuple[Problem, ...]) -> str:
    """The text with the fixes of all problems, which do not overlap."""
    edits = sorted(
        (edit.span, number, edit.text)
        for number, problem in enumerate(problems)
        if problem.fix
        for edit in problem.fix.edits
    )
    assert all(before.end <= after.start for (before, _, _), (after, _, _) in pairwise(edits))
    for span, _, insert in reversed(edits):
        text = text[: span.start] + insert + text[span.end :]
    return text


def errors(document: JsonDocument) -> list[Problem]:
    return [each for each in document.problems if each.severity is Severity.ERROR]


# text, problems, text after all fixes, value
CASES: list[tuple[str, str, str, Any]] = [
    ('{"a": 1,}', "trailing-comma@7-8", '{"a": 1}', {"a": 1}),
    ("[1,]", "trailing-comma@2-3", "[1]", [1]),
    ('{"a": 1 "b": 2}', "missing-comma@8-11", '{"a": 1, "b": 2}', {"a": 1, "b": 2}),
    ('{"a": 1\n "b": 2}', "missing-comma@9-12", '{"a": 1,\n "b": 2}', {"a": 1, "b": 2}),
    ("[1 2 3]", "missing-comma@3-4 missing-comma@5-6", "[1, 2, 3]", [1, 2, 3]),
    ('{"a" 1}', "missing-colon@5-6", '{"a": 1}', {"a": 1}),
    ('{"a"}', "missing-colon@4-5", '{"a"}', {}),
    ('{"a":}', "missing-value@5-6", '{"a":}', {}),
    ('{"a":\n "b": 1}', "missing-value@4-5", '{"a":\n "b": 1}', {"b": 1}),
    (
        "{'a': 'it''s \"x\" don't'}",
        "quotes@1-4 quotes@6-10 unexpected@10-23",
        '{"a": "it"\'s "x" don\'t\'}',
        {"a": "it"},
    ),
    (
        "{a: 1, b-c: 2, $d: 3}",
        "unquoted-key@1-2 unquoted-key@7-10 unquoted-key@15-17",
        '{"a": 1, "b-c": 2, "$d": 3}',
        {"a": 1, "b-c": 2, "$d": 3},
    ),
    ("{a}", "property-name@1-2", "{a}", {}),
    (
        '{"a": True, "b": None, "c": undefined, "d": NaN}',
        "literal@6-10 literal@17-21 literal@28-37 number@44-47",
        '{"a": true, "b": null, "c": null, "d": NaN}',
        {"a": True, "b": None, "c": None, "d": None},
    ),
    (
        '{"a": +1, "b": 01, "c": .5, "d": 5., "e": 0x1F, "f": 1_000, "g": -.5}',
        "number@6-8 number@15-17 number@24-26 number@33-35 number@42-46 number@53-58 number@65-68",
        '{"a": 1, "b": 1, "c": 0.5, "d": 5.0, "e": 31, "f": 1000, "g": -0.5}',
        {"a": 1, "b": 1, "c": 0.5, "d": 5.0, "e": 31, "f": 1000, "g": -0.5},
    ),
    (
        '{"a": hello world, "b": 2024-01-01}',
        "unquoted-string@6-17 unquoted-string@24-34",
        '{"a": "hello world", "b": "2024-01-01"}',
        {"a": "hello world", "b": "2024-01-01"},
    ),
    (
        '// c\n{"a": 1 // x\n, /* y */ "b": 2}\n# z\n',
        "comment@0-4 comment@13-17 comment@20-27 comment@36-39",
        '{"a": 1\n, "b": 2}\n',
        {"a": 1, "b": 2},
    ),
    ('{"a": "abc,\n "b": 1}', "unterminated-string@6-10", '{"a": "abc",\n "b": 1}', {"a": "abc", "b": 1}),
    ('{"a: 1,\n "b": 1}', "unterminated-string@1-3", '{"a": 1,\n "b": 1}', {"a": 1, "b": 1}),
    ('{"a": "b}', "unterminated-string@6-8", '{"a": "b"}', {"a": "b"}),
    (
        '{"a": "line1\n line2",\n "b": 2}',
        "control-character@12-13",
        '{"a": "line1\\n line2",\n "b": 2}',
        {"a": "line1\n line2", "b": 2},
    ),
    (
        '{"a": "x\ty", "b": "\\q \\x41 \\u12"}',
        "control-character@8-9 escape@19-21 escape@22-26 escape@27-29",
        '{"a": "x\\ty", "b": "\\\\q \\u0041 \\\\u12"}',
        {"a": "x\ty", "b": "\\q A \\u12"},
    ),
    ('{"a": [1, 2\n, "b": 3}', "unclosed@6-7", '{"a": [1, 2\n], "b": 3}', {"a": [1, 2], "b": 3}),
    ('{"a": [1, 2,\n "b": 3}', "unclosed@6-7", '{"a": [1, 2],\n "b": 3}', {"a": [1, 2], "b": 3}),
    ('{"a": [1, 2\n "b": 3}', "unclosed@6-7", '{"a": [1, 2],\n "b": 3}', {"a": [1, 2], "b": 3}),
    ('{"a": [1, 2}, "b": 3}', "bracket@11-12", '{"a": [1, 2], "b": 3}', {"a": [1, 2], "b": 3}),
    ('[{"a": 1, {"b": 2}]', "unclosed@1-2", '[{"a": 1}, {"b": 2}]', [{"a": 1}, {"b": 2}]),
    ("[1, 2}", "bracket@5-6", "[1, 2]", [1, 2]),
    ("[1}, 2]", "bracket@2-3", "[1, 2]", [1, 2]),
    ('{"a": 1]', "bracket@7-8", '{"a": 1}', {"a": 1}),
    ('{"a": {"b": [1', "unclosed@12-13", '{"a": {"b": [1]}}', {"a": {"b": [1]}}),
    ('{"a": 1}}', "extra-data@8-9", '{"a": 1}', {"a": 1}),
    ('{"a": 1},\n "b": 2}', "bracket@7-8", '{"a": 1,\n "b": 2}', {"a": 1, "b": 2}),
    ('{"a": 1} {"b": 2}', "extra-data@9-17", '{"a": 1} {"b": 2}', {"a": 1}),
    ('{"a": 1};', "extra-data@8-9", '{"a": 1}', {"a": 1}),
    (",", "missing-value@0-1", ",", None),
    ("]", "bracket@0-1", "]", None),
    ("[,]", "extra-comma@1-2", "[]", []),
    ("[1,,2]", "extra-comma@3-4", "[1,2]", [1, 2]),
    ("{,}", "extra-comma@1-2", "{}", {}),
    ('{"a": 1,, "b": 2}', "extra-comma@8-9", '{"a": 1, "b": 2}', {"a": 1, "b": 2}),
    ("{: 1}", "property-name@1-2", "{: 1}", {}),
    ("{1: 2, true: 3}", "unquoted-key@1-2 unquoted-key@7-11", '{"1": 2, "true": 3}', {"1": 2, "true": 3}),
    ("{[1]: 2}", "property-name@1-2 unexpected@4-7", "{[1]: 2}", {}),
    ('{"a":: 1}', "unexpected@5-6", '{"a": 1}', {"a": 1}),
    ('["a": 1]', "missing-comma@4-5", '["a", 1]', ["a", 1]),
    ('{"a": "b": 1}', "unexpected@9-12", '{"a": "b": 1}', {"a": "b"}),
    (
        '{"a" = 1, b = 2, c => 3}',
        "missing-colon@5-6 unquoted-key@10-11 missing-colon@12-13 unquoted-key@17-18 missing-colon@19-21",
        '{"a" : 1, "b" : 2, "c" : 3}',
        {"a": 1, "b": 2, "c": 3},
    ),
    ('{"a": 1; "b": 2}', "missing-comma@7-8", '{"a": 1, "b": 2}', {"a": 1, "b": 2}),
    (
        '{"a": "say "hi" now", "b": 1}',
        "unescaped-quote@11-20",
        '{"a": "say \\"hi\\" now", "b": 1}',
        {"a": "say ", "b": 1},
    ),
    (
        '{"a": abc", b": 2}',
        "missing-quote@6-10 missing-quote@12-14",
        '{"a": "abc", "b": 2}',
        {"a": "abc", "b": 2},
    ),
    ("{“a”: “b”}", "quotes@1-4 quotes@6-9", '{"a": "b"}', {"a": "b"}),
    ('{"a":\xa01}', "whitespace@5-6", '{"a": 1}', {"a": 1}),
    ('\ufeff{"a": 1}', "whitespace@0-1", ' {"a": 1}', {"a": 1}),
    ('{"a": 1\x0c}', "control-character@7-8", '{"a": 1 }', {"a": 1}),
    (
        '{"a": 1, "a": 2, "a": 3}',
        "duplicate-key@9-12 duplicate-key@17-20",
        '{"a": 1, "a": 2, "a": 3}',
        {"a": 3},
    ),
    (
        '{"a": "\\ud800", "b": "\\ud83d\\ude00"}',
        "lone-surrogate@7-13",
        '{"a": "\\ud800", "b": "\\ud83d\\ude00"}',
        {"a": "�", "b": "😀"},
    ),
    ("[1e999, -1e999]", "number-range@1-6 number-range@8-14", "[1e999, -1e999]", [None, None]),
    ('{"a": ${HOME}/x}', "unquoted-string@6-15", '{"a": "${HOME}/x"}', {"a": "${HOME}/x"}),
    (
        '{"url": http://x.y:80/z, "color": #fff}',
        "unquoted-string@8-23 unquoted-string@34-38",
        '{"url": "http://x.y:80/z", "color": "#fff"}',
        {"url": "http://x.y:80/z", "color": "#fff"},
    ),
    ('{"a": 1,', "unclosed@0-1", '{"a": 1}', {"a": 1}),
    ('{"a": ', "unclosed@0-1 missing-value@4-5", '{"a":} ', {}),
    ('{"a"', "unclosed@0-1 missing-colon@1-4", '{"a"}', {}),
    ("{", "unclosed@0-1", "{}", {}),
    ('"', "unterminated-string@0-1", '""', ""),
    (
        '{"a": "C:\\Users\\me"}',
        "escape@9-11 escape@15-17",
        '{"a": "C:\\\\Users\\\\me"}',
        {"a": "C:\\Users\\me"},
    ),
    ("{/* ", "unclosed@0-1 comment@1-4", "{}", {}),
    ('{"a": 1 foo, "b": 2}', "unexpected@8-11", '{"a": 1 foo, "b": 2}', {"a": 1, "b": 2}),
    ('{"a": 1"}', "unexpected@7-8", '{"a": 1}', {"a": 1}),
    ("<html>", "unquoted-string@0-6", "<html>", "<html>"),
    ('"a": 1', "extra-data@3-6", '"a": 1', "a"),
    ("key: value\nother: 3", "unquoted-string@0-10 extra-data@11-19", "key: value\nother: 3", "key: value"),
    ('{"a": [1, 2]], "b": 3}', "bracket@12-13", '{"a": [1, 2], "b": 3}', {"a": [1, 2], "b": 3}),
    ('{"a": 1, "b" }', "missing-colon@13-14", '{"a": 1, "b" }', {"a": 1}),
    (
        '{"a": tru, "b": FALSE}',
        "unquoted-string@6-9 literal@16-21",
        '{"a": "tru", "b": false}',
        {"a": "tru", "b": False},
    ),
    ('{"a": -}', "number@6-7", '{"a": -}', {"a": None}),
    ('{"a": \'x}', "quotes@6-8", '{"a": "x"}', {"a": "x"}),
]


@pytest.mark.parametrize(("text", "places", "fixed", "value"), CASES)
def test_errors(text: str, places: str, fixed: str, value: Any) -> None:
    """Codes and spans of a text's problems, the text after all their fixes, and what was understood."""
    document = parse("/f", text)
    found = " ".join(f"{each.code[5:]}@{each.span.start}-{each.span.end}" for each in document.problems)
    assert (found, apply_fixes(text, document.problems), document.value) == (places, fixed, value)
    assert json.dumps(document.value) == json.dumps(value)  # True is not 1
    # the errors with a fix are gone
    left = [each.code for each in document.problems if not each.fix]
    assert [each.code for each in parse("/f", fixed).problems] == left


@pytest.mark.parametrize("text", [case[0] for case in CASES])
def test_each_fix_alone_removes_its_error(text: str) -> None:
    document = parse("/f", text)
    for problem in document.problems:
        if problem.fix:
            after = parse("/f", apply_fixes(text, (problem,)))
            assert len(errors(after)) < len(errors(document)), problem


def test_three_errors_in_one_file() -> None:
    lines = [
        "{",
        *(f'  "key{number}": {{"a": [1, 2], "b": "text"}},' for number in range(58)),
        '  "end": 1',
        "}",
    ]
    lines[10] = lines[10].removesuffix(",")
    lines[30] = "  'single': True,".replace("True", "true")
    lines[50] = '  "open": "text,'
    text = "\n".join(lines)
    found = parse("/f", text).problems
    assert [(each.code, text.count("\n", 0, each.span.start)) for each in found] == [
        ("json.missing-comma", 11),
        ("json.quotes", 30),
        ("json.unterminated-string", 50),
    ]
    assert parse("/f", apply_fixes(text, found)).ok


def test_problem_as_a_whole() -> None:
    text = '{"a": 1, "a": 2}'
    assert parse("/f", text).problems == (
        Problem(
            "/f",
            Span(9, 12),
            "json.duplicate-key",
            Severity.WARNING,
            "This key is there already; the last one wins. Remove one of them.",
            None,
            (Related("/f", Span(1, 4), "First here."),),
        ),
    )


MESSAGES = {
    "{a: 1}": 'Expecting property name enclosed in double quotes: write "a".',
    "{sk-1: 1}": "Expecting property name enclosed in double quotes: write them around the name.",
    "{1: 1}": "Expecting property name enclosed in double quotes: write them around this.",
    "[Bearer sk-1]": "Expecting value: write text in double quotes.",
    "[0x1F]": "Expecting value: write a decimal number without `+`, `_` and leading zeros.",
    "[1_" + "0" * 30 + "]": "Expecting value: write a decimal number without `+`, `_` and leading zeros.",
    "{'a': 1}": "Expecting property name enclosed in double quotes: write \"…\" instead of '…'.",
    '{"a": 1,}': "Illegal trailing comma before end of object: remove it.",
    "[1,]": "Illegal trailing comma before end of array: remove it.",
    "[1 2]": "Expecting ',' delimiter: write a comma before this.",
    '{"a" 1}': "Expecting ':' delimiter: write a colon after the property name.",
    '{"a":}': "Expecting value: write one after the colon.",
    '["a': "'[' was never closed: write ']' at the end.",
    '"a': "Unterminated string: write the closing double quote.",
    '"a\tb"': 'Invalid control character U+0009 (tab) in a string: write "\\t".',
    '"a\0b"': 'Invalid control character U+0000 (NUL) in a string: write "\\u0000".',
    "[\0]": "Invalid control character U+0000 (NUL) between values: write a space, or remove it.",
    '"\\x"': 'Invalid \\escape "\\x": write "\\\\x".',
    "[NaN]": "Expecting value: JSON has no NaN; write a number or null.",
    "1 2": "Extra data after the end of the value: remove it, or put all into one object.",
    "// a\n1": 'Comments are not JSON: remove it, or keep it as a "_comment" key.',
    "": "Expecting value: the file is empty. Write {}.",
    "[1" + "0" * 5000 + "]": "The integer has 5,001 digits; at most 4,300 are read. Write a string.",
}


@pytest.mark.parametrize(("text", "message"), MESSAGES.items())
def test_messages(text: str, message: str) -> None:
    assert parse("/f", text).problems[0].message == message


@pytest.mark.parametrize("text", ["", " ", "\r\n\t "])
def test_empty(text: str) -> None:
    document = parse("/f", text)
    assert (document.empty, document.ok, document.value) == (True, False, None)
    assert [(each.code, each.span) for each in document.problems] == [("json.empty", Span(0, 0))]
    assert document.path_at(0) == ()
    with pytest.raises(KeyError):
        document.span(())


def test_only_a_comment_is_not_empty_text() -> None:
    document = parse("/f", "// nothing")
    assert not document.empty
    assert [each.code for each in document.problems] == ["json.empty", "json.comment"]


def test_depth() -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        assert parse("/f", opening * DEEPEST + "1" + closing * DEEPEST).ok
        for depth in (DEEPEST + 1, 900, 100_000):
            found = parse("/f", opening * depth + "1" + closing * depth).problems
            assert [each.code for each in found] == ["json.too-deep"]
    assert parse("/f", '"' + "[" * 1000 + '"').ok
    assert parse("/f", "[" + "[]," * 1000 + "[]]").ok


def test_too_many_values() -> None:
    document = parse("/f", "[" + "0," * MOST_VALUES)
    message = (
        "The file has about 100,001 values; at most 100,000 are read. Split it, or remove what is not needed."
    )
    problem = Problem("/f", Span(0, 1), "json.too-many-values", Severity.ERROR, message)
    assert (document.value, document.ok, document.problems) == (None, False, (problem,))
    assert document.path_at(5) == ()
    with pytest.raises(KeyError):
        document.span(())
    assert parse("/f", "[" + "0," * (MOST_VALUES - 2) + "0]").ok
    assert parse("/f", '["' + 'one, two\\" [' * MOST_VALUES + '"]').ok


def test_many_problems_are_counted() -> None:
    found = parse("/f", "[" + "'a'," * 1000 + "1]").problems
    assert len(found) == MOST_PROBLEMS + 1
    assert found[-1] == Problem(
        "/f",
        found[-2].span,
        "json.more",
        Severity.ERROR,
        "And 800 more problems in this file. Fix the reported ones first.",
    )
    document = parse("/f", "{" + '"a": 1, ' * 1000 + '"a": 2}')
    assert (document.ok, document.value, document.problems[-1].severity) == (True, {"a": 2}, Severity.WARNING)


HALVES = [
    ('{"a": {"b": [1]}, "a"}', ("a", "b", 0), "1"),
    ('{"a": {"b": [1]}, "a":}', ("a", "b", 0), "1"),
    ('{"a": {"b": [1]}, "c": 2, "a"', ("a", "b", 0), "1"),
    ('{"c": 2, "a": {"b": 1}, "d": 3, "a", "a":, "a"}', ("a", "b"), "1"),
    ('{"a", "a": {"b": 1}}', ("a", "b"), "1"),
    ('{"a": {"b": 1}, "a": {"c": 2}, "a"}', ("a", "c"), "2"),
    ('[{"a": {"b": 1}, "a"\n, "c": {"d": 2}, "c"}]', (0, "c", "d"), "2"),
    # there is no whole one: the place where the value is to come
    ('{"a": }', ("a",), ""),
    ('{"a", "b": 1, "a": }', ("a",), ""),
]


@pytest.mark.parametrize(("text", "pointer", "source"), HALVES)
def test_a_half_typed_key_replaces_no_whole_member(
    text: str, pointer: tuple[str | int, ...], source: str
) -> None:
    document = parse("/f", text)
    assert text[slice(*document.span(pointer))] == source
    for each in pointers(document.value):
        assert document.span(each)


def test_places() -> None:
    text = '{"a": [1, {"b": "c"}], "d": {}}'
    for document in (parse("/f", text), parse("/f", text + ",")):
        places = {
            (): "{",
            ("a",): '[1, {"b": "c"}]',
            ("a", 0): "1",
            ("a", 1, "b"): '"c"',
            ("a", "1", "b"): '"c"',
            ("d",): "{}",
        }
        for pointer, source in places.items():
            assert text[slice(*document.span(pointer))].startswith(source)
        assert [document.key_span(pointer) for pointer in ((), ("a",), ("a", 0), ("a", 1, "b"))] == [
            None,
            Span(1, 4),
            None,
            Span(11, 14),
        ]
        for absent in (("x",), ("a", 2), ("a", -1), ("a", "b"), ("a", "01"), ("a", 0, "x"), ("d", 0)):
            with pytest.raises(KeyError):
                document.span(absent)


CURSORS = [
    ('{"a": {"b$0": 1}}', ("a", "b")),
    ('{"a": {"b": 1$0}}', ("a", "b")),
    ('{"a": {"b": 1 $0}}', ("a",)),
    ('{"a": {$0}}', ("a",)),
    ('{"a": {}$0}', ()),
    ('{"a": [1, $02]}', ("a", 1)),
    ('{"a": [1,$0 2]}', ("a",)),
    ('$0{"a": 1}', ()),
    ('{"a": 1}$0', ()),
    # while typing
    ('{"a": $0}', ("a",)),
    ('{"a": $0\n}', ("a",)),
    ('{"a":\n  $0\n}', ()),
    ('{"a": {"b$0"}}', ("a", "b")),
    ('{"a": {"b$0', ("a", "b")),
    ('{"a": {"b": $0', ("a", "b")),
    ('{"a": {$0', ("a",)),
    ('{"a": [1, $0', ("a",)),
    ('{"a": 1, "b$0\n "c": 2}', ("b",)),
    ('{"a": tr$0, "c": 2}', ("a",)),
    ('{[{"b": $01}]: 2}', ()),
    ('{"a": {"b": $01}, "a": 2}', ("a",)),
    ("$0", ()),
]


@pytest.mark.parametrize(("fixture", "path"), CURSORS)
def test_path_at(fixture: str, path: tuple[str | int, ...]) -> None:
    offset = fixture.index("$0")
    assert parse("/f", fixture.replace("$0", "")).path_at(offset) == path


def test_pointers() -> None:
    for path, text in {
        (): "",
        ("",): "/",
        ("a", 0, "b/c~d"): "/a/0/b~1c~0d",
        ("01", "-", "~1"): "/01/-/~01",
    }.items():
        assert (pointer_text(path), parse_pointer(text)) == (text, path)
    with pytest.raises(ValueError, match="begins with '/'"):
        parse_pointer("a")


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)
LAYOUTS = st.sampled_from(
    [{}, {"indent": 2}, {"separators": (" , ", " : ")}, {"indent": "\t", "ensure_ascii": False}]
)


@given(VALUES, LAYOUTS)
def test_scanner_agrees_with_the_decoder(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    document = parse("/f", text)
    scanned = scan("/f", text)
    assert document.problems == scanned.problems == ()
    assert json.dumps(document.value) == json.dumps(scanned.value) == json.dumps(json.loads(text))


def pointers(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(inner for name, member in members for inner in pointers(member, (*path, name)))]


@given(VALUES, LAYOUTS)
def test_spans_hold_their_values(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    table = parse("/f", text)
    for _ in range(FEW_LOOKUPS + 1):
        table.path_at(0)
    for pointer in pointers(value):
        document = parse("/f", text)
        span, key = document.span(pointer), document.key_span(pointer)
        assert (table.span(pointer), table.key_span(pointer)) == (span, key)
        assert table.span(parse_pointer(pointer_text(pointer))) == span
        expected = value
        for step in pointer:
            expected = expected[step]
        assert json.dumps(json.loads(text[slice(*span)])) == json.dumps(expected)
        if key:
            assert json.loads(text[slice(*key)]) == pointer[-1]
        assert document.path_at(span.start) == pointer


@given(VALUES, LAYOUTS)
def test_path_at_agrees_with_the_table(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps(value, **layout)
    table = parse("/f", text)
    for _ in range(FEW_LOOKUPS + 1):
        table.path_at(0)
    for offset in range(-1, len(text) + 2):
        assert parse("/f", text).path_at(offset) == table.path_at(offset)


PIECES = st.lists(
    st.sampled_from(
        [*"{}[]:,\"'\\/*#=;+-.01ab \n\t\0\x0c\ud800“`$", "//", "/*", "true", '"a"', "null", "\\u", "\r\n"]
    ),
    max_size=30,
).map("".join)


@given(st.text() | PIECES)
def test_any_text(text: str) -> None:
    document = parse("/f", text)
    assert document.ok == is_json(text)
    json.dumps(document.value, ensure_ascii=False).encode()
    for problem in document.problems:
        assert 0 <= problem.span.start <= problem.span.end <= len(text)
        assert problem.code.startswith("json.")
        problem.message.encode()
    for pointer in pointers(document.value):
        assert document.value is None or document.span(pointer)
    for offset in range(len(text) + 1):
        path = document.path_at(offset)
        assert path == () or document.span(path)


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda name: int(name))
    except ValueError:
        return False
    return True


@given(VALUES, st.data())
def test_damaged_text_keeps_the_rest(value: Any, data: st.DataObject) -> None:
    text = json.dumps({"first": 1, "value": value, "last": [2]}, indent=1)
    document = parse("/f", re.sub(r'(?m)^( "first": 1),$', r"\1", text))
    assert [each.code for each in document.problems] == ["json.missing-comma"]
    assert json.dumps(document.value) == json.dumps(json.loads(text))
    at = data.draw(st.integers(0, len(text) - 1))
    parse("/f", text[:at] + text[at + 1 :])


def scanned(text: str) -> list[Any]:
    """What is seen of a text if each place is found among the nodes of a scan."""
    value, nodes, problems = scan("/f", text)
    index = NodeIndex(text, nodes)
    places = [(pointer, index.find(pointer)) for pointer in pointers(value)] if value is not None else []
    return [
        json.dumps(value),
        problems,
        *((pointer, place.value, place.key) for pointer, place in places),
        *(index.at(offset) for offset in range(-1, len(text) + 2)),
    ]


def observed(document: JsonDocument, text: str) -> list[Any]:
    """The same, each place asked of a document that has not been asked before."""
    found: list[Any] = [json.dumps(document.value), document.problems]
    for pointer in pointers(document.value) if document.value is not None else ():
        fresh = parse("/f", text)
        found.append((pointer, fresh.span(pointer), fresh.key_span(pointer)))
        for absent in ((*pointer, "absent"), (*pointer, -1), (*pointer, 99)):
            with pytest.raises(KeyError):
                fresh.span(absent)
    found.extend(parse("/f", text).path_at(offset) for offset in range(-1, len(text) + 2))
    return found


@pytest.mark.parametrize("text", [case[0] for case in CASES])
def test_places_are_the_same_whether_they_are_skipped_to_or_scanned(text: str) -> None:
    assert observed(parse("/f", text), text) == scanned(text)


@settings(deadline=None)
@given(VALUES, LAYOUTS)
def test_places_in_any_value_are_the_same(value: Any, layout: dict[str, Any]) -> None:
    text = json.dumps({"a": value, "b": [1, {"c": 2}]}, **layout)
    assert observed(parse("/f", text), text) == scanned(text)


SECRETS = ["sk-proj-abc123DEF456", "ghp_0123456789abcdefABCDEF", "dGhpcyBzZWNyZXQ=", "hunter2.correct/horse"]
LEAKS = [
    '{{"key": {}}}',
    '{{"key": Bearer {}}}',
    "{{'key': '{}'}}",
    '{{"key": "{}',
    '{{"key": "{}\n}}',
    '{{"key": "Bearer {}, "b": 1}}',
    '{{"key": {}"}}',
    '{{"key": "a" {}}}',
    '{{"key": "a"{}"b"}}',
    '{{"key":\n  {}\n}}',
    '{{"key" {}}}',
    '{{"key" = {}}}',
    "[{}, 1]",
    "[1 {}]",
    '{{"key": {};}}',
    '{{"key": "\t{}"}}',
    '{{"key": "\\q{}"}}',
    "{}",
    '{{"key": `{}`}}',
    '{{"key": 1, {}}}',
    "{{}} {}",
    "// {}\n{{}}",
    '{{"key": 1,\n {}: 2}}',
    '{{"{}": 1, "{}": 2,}}',
    '{{"key":\n {}="x"}}',
]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("text", LEAKS)
def test_messages_hold_no_values(text: str, secret: str) -> None:
    problems = parse("/f", text.format(*[secret] * 2)).problems
    assert problems
    for problem in problems:
        words = [problem.message, *(each.message for each in problem.related)]
        words += [problem.fix.title] if problem.fix else []
        assert not any(part in each for each in words for part in (secret, secret[:6], secret[-6:-1]))


SIZE = 100_000
HOSTILE = [
    *("[]:,\"'\\ \n1-a`=;}\0$"),
    *("[],", '{"a":', "}{", "[}", "//", "/*", "/**/", "//\n", "a ", "a:", "${", "1e,", "''", "“x”,", '"a"b '),
    *(
        '"abc\n',
        '"abc\ndef",\n',
        '"a":1,',
        '"\\ud800",',
        '"\ud800",',
        "\ufeff",
        "\xa01,",
        '"a" ',
        '},"b":2',
        "0x1f,",
        "#a",
        'nulnull"tools":[]\'',
        'true\n\\"tru😀',
    ),
]


@pytest.mark.parametrize("start", ["[", "{", '{"a":', '"'])
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_linear_time(start: str, piece: str) -> None:
    text = start + piece * (SIZE // len(piece))
    started = time.thread_time()
    document = parse("/f", text)
    document.path_at(len(text) // 2)
    # quadratic behaviour would take minutes
    assert time.thread_time() - started < 30
    assert len(document.problems) <= MOST_PROBLEMS + 1


def large(size: int) -> str:
    servers = {
        f"server{number}": {
            "command": "npx",
            "args": ["-y", f"@scope/package{number}"],
            "env": {"KEY": "x y"},
        }
        for number in range(size // 170)
    }
    return json.dumps({"mcpServers": servers}, indent=2)


def test_many_places_in_a_large_text() -> None:
    text = large(87_000)
    document = parse("/f", text)
    started = time.thread_time()
    for number in range(500):
        span = document.span(("mcpServers", f"server{number}", "args", 1))
        assert text[slice(*span)] == f'"@scope/package{number}"'
    assert time.thread_time() - started < 10


def test_a_lookup_while_another_thread_builds_the_tables_finds_the_value() -> None:
    text = '{"a": 1, "b": [2, 3], "c": 4,}'
    scanned = scan("/f", text)
    early: list[Span] = []

    class Nodes(list[Any]):
        """Nodes between whose first and second another thread looks something up."""

        def __iter__(self) -> Iterator[Any]:
            for number, node in enumerate(super().__iter__()):
                if number == 1 and not early:
                    early.append(Span(0, 0))
                    early[:] = [index.find(("b", 1)).value]
                yield node

    index = NodeIndex(text, Nodes(scanned.nodes))
    location = index.find(("c",)).value
    assert [text[span.start : span.end] for span in (*early, location)] == ["3", "4"]
