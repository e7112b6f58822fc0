"""What can be written in front matter; `$0` is the place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.assistants.reading.front_matter import find_matter_place, matter_fields


@pytest.mark.parametrize(
    ("text", "field", "written", "names"),
    [
        ("---\n$0\n---\n", None, "", set()),
        ("---\nna$0", None, "na", set()),
        ("---\nname: x\nde$0\nmodel: y\n---\nbody", None, "de", {"name", "model"}),
        ("---\r\nname: a$0\r\n---\r\n", "name", "a", set()),
        ("--- \nname:$0", "name", "", set()),
    ],
)
def test_a_place(text: str, field: str | None, written: str, names: set[str]) -> None:
    offset, text = text.index("$0"), text.replace("$0", "")
    place = find_matter_place(text, offset)
    assert place is not None
    assert (place.field, text[place.written.start : place.written.end]) == (field, written)
    assert place.names == names


@pytest.mark.parametrize(
    "text", ["$0", "--$0-\n", "---\nname: a b$0", "---\na: b\n---\nx$0", " ---\n$0", "---\n  - x$0"]
)
def test_no_place(text: str) -> None:
    assert find_matter_place(text.replace("$0", ""), text.index("$0")) is None


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/a/.claude/skills/x/SKILL.md", "allowed-tools"),
        ("/a/.nexus3/skills/x/SKILL.md", "description"),
        ("/a/.claude/agents/b/x.md", "permissionMode"),
        ("/a/.claude/rules/x.md", "paths"),
        ("/a/.claude/commands/git/x.md", "argument-hint"),
        ("/a/.cursor/rules/x.mdc", "globs"),
        ("/a/.github/instructions/x.instructions.md", "applyTo"),
        ("/a/.github/prompts/x.prompt.md", "agent"),
        ("/a/.opencode/agent/x.md", "mode"),
        ("/a/.gemini/agents/x.md", "max_turns"),
    ],
)
def test_the_fields_of_a_file(path: str, field: str) -> None:
    assert field in [each.name for each in matter_fields(path)]


@pytest.mark.parametrize("path", ["/a/CLAUDE.md", "/a/.claude/rules", "/a/agents/x.md"])
def test_other_files_have_no_fields(path: str) -> None:
    assert matter_fields(path) == ()


@given(st.text(alphabet="-:\r\n ab#", max_size=40), st.integers(0, 40))
def test_any_text_has_an_answer_within_it(text: str, offset: int) -> None:
    place = find_matter_place(text, min(offset, len(text)))
    assert place is None or 0 <= place.written.start <= place.written.end <= len(text)
