"""`allowed-tools` of a SKILL.md: which tools a text approves, and which parts of it are left out."""

import os
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.folder.skills import ReadSkill, read_skill
from nexus_context.folder.skills.allowed_tools import MAX_REPORTED

PATH = os.path.join(os.sep, "x", "a", "SKILL.md")


def written(value: str) -> str:
    return f"---\nname: a\ndescription: d\nallowed-tools: {value}\n---\nText.\n"


def read(value: str) -> ReadSkill:
    return read_skill(PATH, written(value))


def tools(value: str) -> tuple[str, ...]:
    skill = read(value).skill
    assert skill is not None
    return skill.allowed_tools


def check(value: str, approved: str, *left_out: str) -> None:
    """The tools of a value, with `|` between them, and the exact texts that a warning is about."""
    found = read(value)
    assert found.skill is not None
    assert "|".join(found.skill.allowed_tools) == approved
    warnings = [one for one in found.problems if one.severity.name == "WARNING"]
    assert {one.code for one in warnings} <= {"skill.allowed-tools"}
    assert [found.text[one.span.start : one.span.end] for one in warnings] == list(left_out)


@pytest.mark.parametrize(
    ("value", "approved"),
    [
        ("", ""),
        ("Read", "Read"),
        ("Read Bash(git:*)", "Read|Bash(git:*)"),
        ("Read, Bash(git status:*, git diff:*) mcp__x__y", "Read|Bash(git status:*, git diff:*)|mcp__x__y"),
        ("Bash(git log --format=%(refname) *)", "Bash(git log --format=%(refname) *)"),
        ("Bash(a (b (c)) d) Read", "Bash(a (b (c)) d)|Read"),
        ("Bash()", "Bash()"),
        (">-\n  Bash(git\n  status) Read\n  Grep", "Bash(git status)|Read|Grep"),
        ("|\n  Bash(git\n    status)\n  Read", "Bash(git status)|Read"),
        ("'Bash(it''s)'", "Bash(it's)"),
        ("[Read, 'Bash(git:*, x (y))', '']", "Read|Bash(git:*, x (y))"),
        ("\n- Read\n- Bash(git status)", "Read|Bash(git status)"),
    ],
)  # fmt: skip
def test_tools_with_and_without_patterns(value: str, approved: str) -> None:
    check(value, approved)


@pytest.mark.parametrize(
    ("value", "approved", "left_out"),
    [
        # not closed: what follows could be the pattern
        ("Bash(git status:* Read", "", "Bash(git status:* Read"),
        ("Read Bash(git (status) Grep(x) Write", "Read", "Bash(git (status) Grep(x) Write"),
        ("Read Bash(git #) Grep", "Read", "Bash(git"),  # YAML: a comment
        ("Read Bash (git Grep", "Read", "Bash (git Grep"),
        ("(git Grep", "", "(git Grep"),
        # not opened: what stands before could be the tool, or the pattern
        ("Bash git:*) Read", "Read", "git:*)"),
        ("Bash git status:*) Read", "Read", "status:*)"),
        ("Bash git %(a) %(b)) Read", "Read", "%(b))"),
        ("Read Bash(git:*)) Grep", "Grep", "Bash(git:*))"),
        # apart
        ("Read Bash (git:*) Grep", "Read|Grep", "Bash (git:*)"),
        ("Bash, (git:*)", "", "Bash, (git:*)"),
        ("Read(x) (git:*)", "Read(x)", "(git:*)"),
        ("Read(x)( git:* )", "", "Read(x)( git:* )"),
        ("(git:*) Read", "Read", "(git:*)"),
        # going on
        ("Bash(git:*)Read Grep", "Grep", "Bash(git:*)Read"),
        ("Bash(a)(b)", "", "Bash(a)(b)"),
        # written otherwise in YAML
        (">-\n  Bash\n  (git:*) Read", "Read", "Bash\n  (git:*)"),
        ('"Read Bash (git:*)"', "Read", "Bash (git:*)"),
        ('"Bash\\x20(git)"', "", '"Bash\\x20(git)"'),
        ("[Bash(git:*, Read, Grep]", "", "Bash(git:*, Read, Grep"),
        ('["Bash", "(git:*)", "Read"]', "Read", '"Bash", "(git:*)"'),
        ("[Read, 'git:*)', Grep]", "Grep", "'git:*)'"),
        ("[Read Write, Grep]", "Grep", "Read Write"),
        ("[Read, [Bash], Grep]", "Read|Grep", "[Bash]"),
        ("\n- Bash git status\n- Read", "Read", "Bash git status"),
    ],
)
def test_what_is_doubtful_is_left_out_and_said(value: str, approved: str, left_out: str) -> None:
    check(value, approved, left_out)


def test_a_pattern_that_a_comma_cuts_in_two_is_no_tool() -> None:
    check("[Bash(git:*, git diff:*), Read]", "Read", "Bash(git:*", "git diff:*)")


def test_the_messages_say_what_to_write() -> None:
    messages = {
        value: read(value).problems[0].message for value in ("Bash(git Read", "Bash git)", "Bash (git)")
    }
    assert messages == {
        "Bash(git Read": '"Bash(git Read" is not closed: it is left out, with everything that follows. '
        "Write `)` where the pattern ends: `Bash(…)`.",
        "Bash git)": '"git)" has a `)` whose `(` is missing: it is left out, with everything before it. '
        "Write the tool and its pattern as in `Bash(git:*)`, or remove the `)`.",
        "Bash (git)": '"Bash" and its pattern are separated: both are left out. Write "Bash(git)".',
    }


@pytest.mark.parametrize("value", ["Read Bash (git:*) Grep", "'Bash\t  (git:*)'"])
def test_the_mend_joins_a_tool_and_its_pattern(value: str) -> None:
    found = read(value)
    (problem,) = found.problems
    assert problem.fix is not None
    (edit,) = problem.fix.edits
    text = found.text[: edit.span.start] + edit.text + found.text[edit.span.end :]
    fixed = read_skill(PATH, text)
    assert fixed.problems == ()
    assert fixed.skill is not None
    assert "Bash(git:*)" in fixed.skill.allowed_tools


@pytest.mark.parametrize("value", ["(a) " * 4_000, "(" * 16_000, "a) " * 5_000, f">-\n {'(b)  c ' * 2_000}",
                                   f"[{'a b, ' * 450}]", "[" + "'a (b) ', " * 450 + "]"])  # fmt: skip
def test_hostile_values_cost_nothing(value: str) -> None:
    began = time.thread_time()
    found = read(value)
    assert time.thread_time() - began < 2
    assert 0 < len(found.problems) <= MAX_REPORTED + 1  # a list is hinted at


texts = st.text("ab(), \n", max_size=30)
names = st.sampled_from(["Read", "Bash", "x"])
patterns = st.recursive(
    st.sampled_from(["git", "a b", "c, d", "*"]), lambda inner: inner.map("p ({}) q".format)
)
entries = names | st.builds("{}({})".format, names, patterns)


def bare(approved: tuple[str, ...]) -> set[str]:
    return {tool for tool in approved if "(" not in tool and ")" not in tool}


def unpaired(text: str) -> str:
    """The text without parentheses that have their other half, and what is in them."""
    while (shorter := re.sub(r"\([^()]*\)", "", text)) != text:
        text = shorter
    return text


def alone(text: str) -> set[str]:
    """The words between separators that stand in no parentheses, nor where some might have been meant."""
    words = re.finditer(r"(?<![^\s,])[^\s,()]+(?![^\s,])", text)
    return {
        word[0]
        for word in words
        if "(" not in unpaired(text[: word.start()]) and ")" not in unpaired(text[word.end() :])
    }


@given(texts)
def test_a_name_is_approved_only_where_it_stands_alone(text: str) -> None:
    """Never the beginning of something with parentheses, and nothing within parentheses."""
    quoted = '"' + text.replace("\n", "\\n") + '"'
    found = read(quoted)
    approved = tools(quoted)
    assert bare(approved) <= alone(text)
    for tool in set(approved) - bare(approved):
        assert re.fullmatch(r"[^\s,()]+\(.*\)", tool)
        depths = [tool[: at + 1].count("(") - tool[: at + 1].count(")") for at in range(len(tool))]
        assert min(depths[tool.index("(") : -1]) > 0 == depths[-1]
    if not found.problems:  # then nothing was lost
        assert re.sub(r"[\s,]", "", text) == re.sub(r"[\s,]", "", "".join(approved))


@given(st.lists(entries, min_size=1, max_size=5), st.sampled_from([" ", ", "]), st.booleans(), st.data())
def test_one_parenthesis_less_or_apart_approves_nothing_more(
    given_tools: list[str], separator: str, in_list: bool, data: st.DataObject
) -> None:
    texts = [", ".join(f"'{tool}'" for tool in given_tools)] if in_list else [separator.join(given_tools)]
    (text,) = texts
    frame = "[{}]" if in_list else "'{}'"
    assert tools(frame.format(text)) == tuple(given_tools)
    places = [at for at, character in enumerate(text) if character in "()"]
    if not places:
        return
    at = data.draw(st.sampled_from(places))
    for slip in (text[:at] + text[at + 1 :], text[:at] + " " + text[at:], text[:at] + text[at] + text[at:]):
        found = read(frame.format(slip))
        assert found.skill is not None
        approved = found.skill.allowed_tools
        assert bare(approved) <= bare(tuple(given_tools))
        count = slip.count("(") - slip.count(")")
        assert any(one.severity.name == "WARNING" for one in found.problems) or not count


@given(st.lists(texts, max_size=5))
def test_of_a_list_only_whole_items_are_approved(items: list[str]) -> None:
    value = ", ".join('"' + item.replace("\n", "\\n") + '"' for item in items)
    approved = tools(f"[{value}]")
    assert set(approved) <= {" ".join(item.split()) for item in items}
    assert all(tool.count("(") == tool.count(")") for tool in approved)
    assert not any(re.search(r"[\s,]", tool) for tool in bare(approved))
