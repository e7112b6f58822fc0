"""The frame of a problem, and the exception that carries frames."""

import time
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.config.frames import MAX_COLUMNS, MAX_FRAMES, ConfigError, format_frame
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text.redact import without_secrets


def check(
    text: str, mark: str, expected: str, *, code: str = "json.unquoted-key", message: str = "Wrong."
) -> None:
    start = text.index(mark)
    problem = Problem("/home/u/config.json", Span(start, start + len(mark)), code, Severity.ERROR, message)
    assert format_frame(problem, text) == dedent(expected).strip("\n")


def test_the_frame_to_the_letter() -> None:
    check(
        "\n" * 12 + '{\n  "model": "claude-3",\n  trailing_comma: true,\n}\n',
        "trailing_comma",
        """
        Configuration Error: Invalid JSON in /home/u/config.json

          Line 15, Column 3: Expecting property name enclosed in double quotes

          14 |   "model": "********",
          15 |   trailing_comma: true,
             |   ^
          16 | }

        Fix the JSON syntax error and try again.
        """,
        message="Expecting property name enclosed in double quotes",
    )


@pytest.mark.parametrize(
    ("text", "mark", "code", "excerpt"),
    [
        ("?", "?", "json.value", "  1 | ?\n    | ^"),
        ("{?\n}", "?", "config.type", "  1 | {?\n    |  ^\n  2 | }"),
        (",\n\n?", "?", "mcp.type", "  2 |\n  3 | ?\n    | ^"),
        ("\n" * 8 + "x\n?\ny", "?", "json.value", "   9 | *\n  10 | ?\n     | ^\n  11 | *"),
        ("{\r\n\t?\r\n}", "?", "json.value", "  1 | {\n  2 | \t?\n    | \t^\n  3 | }"),
        ('"日本" ?', "?", "json.value", '  1 | "**" ?\n    |      ^'),
        ('"e\u0301" ?', "?", "json.value", '  1 | "**" ?\n    |      ^'),
        ("\u2028?", "?", "json.value", "  1 | \ufffd?\n    |  ^"),
    ],
)
def test_excerpts(text: str, mark: str, code: str, excerpt: str) -> None:
    problem = Problem("/c", Span(text.index(mark), text.index(mark) + 1), code, Severity.ERROR, "Wrong.")
    assert format_frame(problem, text).split("\n\n", 2)[2].rpartition("\n\n")[0] == excerpt


def test_a_minified_line_is_cut_around_the_column() -> None:
    text = "x" * 500_000 + " ? " + "y" * 500_000
    started = time.thread_time()
    frame = format_frame(Problem("/c", Span(500_001, 500_002), "json.value", Severity.ERROR, "Wrong."), text)
    assert time.thread_time() - started < 10
    line, mark = frame.splitlines()[4:6]
    assert (len(line), line[mark.index("^")]) == (len("  1 | ") + MAX_COLUMNS + 2, "?")


def test_many_problems_of_a_minified_file_are_no_more_work_than_one() -> None:
    """The long line is read once: 200 frames of a megabyte would take minutes."""
    text = '{"a": [' + ", ".join(['"secret"'] * 100_000) + "]}"
    started = time.thread_time()
    for place in range(200):
        problem = Problem(
            "/c", Span(7 + 10 * place, 15 + 10 * place), "config.type", Severity.ERROR, "Wrong."
        )
        assert "secret" not in format_frame(problem, text)
    assert time.thread_time() - started < 20


def test_secrets_in_shown_lines_are_covered() -> None:
    text = '{"env": {"API_KEY": "short",\n "B": "ghp_0123456789abcdefghij"}, "c": ?}'
    frame = format_frame(Problem("/c", Span(text.index("?"), 0), "mcp.type", Severity.ERROR, "Wrong."), text)
    assert frame.splitlines()[4:7] == [
        '  1 | {"env": {"API_KEY": "*****",',
        f'  2 |  "B": "{"*" * 24}"}}, "c": ?}}',
        "    |" + " " * 41 + "^",
    ]


def test_secrets_in_the_message_are_covered() -> None:
    token = "ghp_" + "a1B2" * 9
    frame = format_frame(Problem("/c", Span(0, 1), "mcp.type", Severity.ERROR, f"Not {token}."), "?")
    assert f"Not {'*' * len(token)}." in frame


def test_terminal_sequences_are_replaced() -> None:
    text = "\x1b[\u202e]?"
    frame = format_frame(Problem("/a\x1b", Span(4, 5), "json.value", Severity.ERROR, "Bad \x07."), text)
    assert frame == dedent(
        """\
        Configuration Error: Invalid JSON in /a\N{REPLACEMENT CHARACTER}

          Line 1, Column 5: Bad \N{REPLACEMENT CHARACTER}.

          1 | \N{REPLACEMENT CHARACTER}[\N{REPLACEMENT CHARACTER}]?
            |     ^

        Fix the JSON syntax error and try again."""
    )


@pytest.mark.parametrize(
    ("severity", "code", "frame"),
    [
        (
            Severity.WARNING,
            "layer.refused",
            "Configuration Warning: Problem in /c\n\n  Said.",
        ),
        (
            Severity.WARNING,
            "config.type",
            "Configuration Warning: Invalid setting in /c\n\n  Said.",
        ),
        (
            Severity.ERROR,
            "layer.refused",
            "Configuration Error: Problem in /c\n\n  Said.\n\nFix the file and try again.",
        ),
        (Severity.INFORMATION, "config.twice", "Configuration Information: About /c\n\n  Said."),
        (Severity.HINT, "skill.shadowed", "Configuration Hint: About /c\n\n  Said."),
    ],
)
def test_each_severity_by_its_name(severity: Severity, code: str, frame: str) -> None:
    """What is no fault is not called one, and nothing is asked for."""
    assert format_frame(Problem("/c", Span(0, 0), code, severity, "Said."), None) == frame


def test_the_lines_of_a_hint() -> None:
    problem = Problem("/c", Span(0, 1), "skill.shadowed", Severity.HINT, "Said.")
    assert format_frame(problem, "a\nb\n") == (
        "Configuration Hint: About /c\n\n  Line 1, Column 1: Said.\n\n  1 | a\n    | ^\n  2 | b"
    )


def test_config_error_shows_errors_only_and_keeps_all() -> None:
    error = Problem("/c", Span(0, 0), "json.value", Severity.ERROR, "Wrong.")
    hint = Problem("/c", Span(0, 0), "json.hint", Severity.HINT, "Aside.")
    raised = ConfigError([hint, error], {"/c": "?"})
    assert (raised.problems, str(raised)) == ((hint, error), format_frame(error, "?"))
    many = str(ConfigError([error] * (MAX_FRAMES + 3), {}))
    assert many.endswith("\n\n... and 3 more.")


@given(st.text(), st.integers(0, 200), st.integers(0, 200))
def test_every_text_and_span_has_a_frame(text: str, start: int, length: int) -> None:
    frame = format_frame(Problem("/c", Span(start, start + length), "json.x", Severity.ERROR, "Wrong."), text)
    assert frame.count("^\n") >= 1
    assert all(char.isprintable() or char in "\t\n" for char in frame)


def test_values_are_shown_without_secrets() -> None:
    token = "ghp_" + "a1B2" * 9
    value = {"headers": {"Authorization": f"Bearer {token}", "X-Team": "backend"}, "list": [token, 1, None]}
    assert without_secrets(value) == {
        "headers": {"Authorization": "Bearer " + "*" * len(token), "X-Team": "backend"},
        "list": ["*" * len(token), 1, None],
    }
