"""SKILL.md: its content and its problems."""

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.disk.files import decode
from nexus_context.errors import Severity
from nexus_context.folder.skills import ReadSkill, read_skill
from nexus_context.folder.skills.front_matter import MAX_CHARACTERS, MAX_NODES, lenient_front_matter
from support.fixture import Fixture, write_fixture
from support.folders import load_folder

PATH = os.path.join(os.sep, "x", "pdf-forms", "SKILL.md")
GOOD = "---\nname: pdf-forms\ndescription: Fills forms.\n---\nText.\n"


def front(lines: str, body: str = "Text.\n") -> str:
    return f"---\n{lines}\n---\n{body}"


def check(text: str, *expected: str) -> ReadSkill:
    """Read a SKILL.md; its problems as `code severity text`, in the order of the text."""
    read = read_skill(PATH, text)
    assert [
        f"{problem.code.removeprefix('skill.')} {problem.severity.name.lower()} "
        f"{text[problem.span.start : problem.span.end]!r}"
        for problem in read.problems
    ] == list(expected)
    return read


def test_a_skill_of_the_specification() -> None:
    text = front(
        "name: pdf-forms\n"
        "description: >-\n  Fills forms:\n  é, \U0001f600.\n"
        'license: "MIT"\n'
        "compatibility: Needs Python 3.12\n"
        "metadata:\n  version: 1.10\n  priority: 7\n  draft: yes\n"
        "allowed-tools: Bash(git:*, x y) Read\n",
        "\n# Forms\n\nText.\n",
    )
    skill = check(text).skill
    assert skill is not None
    assert (skill.name, skill.description) == ("pdf-forms", "Fills forms: é, \U0001f600.")
    assert (skill.license, skill.compatibility) == ("MIT", "Needs Python 3.12")
    assert skill.metadata == {"version": "1.10", "priority": "7", "draft": "yes"}
    assert (skill.allowed_tools, skill.priority) == (("Bash(git:*, x y)", "Read"), 7)
    assert text[skill.name_span.start : skill.name_span.end] == "pdf-forms"
    assert text[skill.description_span.start : skill.description_span.end].endswith("\U0001f600.")
    assert text[skill.body.start : skill.body.end] == "\n# Forms\n\nText.\n"


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_do_not_matter(end: str) -> None:
    text = GOOD.replace("\n", end)
    skill = check(text).skill
    assert skill is not None
    assert text[skill.name_span.start : skill.name_span.end] == "pdf-forms"
    assert text[skill.body.start : skill.body.end] == f"Text.{end}"


FINE = "name: pdf-forms\ndescription: d\n"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("name: pdf-forms\ndescription: d", ""),
        ("name: 'pdf-forms'\ndescription: |\n  d\n  e", ""),
        ("# comment\n\nname: pdf-forms # why\ndescription: d", ""),
        ("name: PDF\ndescription: d", "name warning 'PDF'"),
        ("name: -pdf\ndescription: d", "name warning '-pdf'"),
        ("name: pdf--forms\ndescription: d", "name warning 'pdf--forms'"),
        ("name: pdf\ndescription: d", "name warning 'pdf'"),
        (f"name: {'a' * 65}\ndescription: d", f"name warning '{'a' * 65}'"),
        (f"name: pdf-forms\ndescription: {'d' * 1025}", f"description warning '{'d' * 1025}'"),
        (f"{FINE}compatibility: {'c' * 501}", f"compatibility warning '{'c' * 501}'"),
        (f"{FINE}license: [MIT]", "license warning '[MIT]'"),
        (f"{FINE}metadata: no", "metadata warning 'no'"),
        (f"{FINE}metadata:\n  a: [1]", "metadata warning '[1]'"),
        (f"{FINE}metadata:", ""),
        (f"{FINE}metadata: {{priority: high}}", "metadata warning 'high'"),
        (f"{FINE}metadata: {{priority: 1.5}}", "metadata warning '1.5'"),
        (f"{FINE}metadata:\n  priority: '1000000'", "metadata warning \"'1000000'\""),
        (f"{FINE}metadata: {{priority: -5}}", ""),
        (f"{FINE}metadata: {{priority: }}", ""),
        (f"{FINE}allowed-tools: [Read, Write]", "allowed-tools hint '[Read, Write]'"),
        (f"{FINE}version: 1.0", "unknown-field hint 'version'"),
        (f"{FINE}name: pdf-forms", "duplicate-field warning 'name'"),
    ],
)
def test_cosmetic_faults_leave_the_skill_in_use(lines: str, expected: str) -> None:
    read = check(front(lines), *filter(None, [expected]))
    assert read.skill is not None
    assert len(read.skill.description) <= 1024


BOMB = "a: &a [x,x,x,x]\nb: &b [*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b]\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "front-matter error ''"),
        ("# A skill\nname: x", "front-matter error '# A skill'"),
        (" ---\nname: x\n---\n", "front-matter error ' ---'"),
        ("---\nname: x\n", "front-matter error '---'"),
        ("---\nname: x\n ---\n", "front-matter error '---'"),
        (front("description: d"), "name error 'description: d\\n'"),
        (front("name: pdf-forms"), "description error 'name: pdf-forms\\n'"),
        (front("name: pdf-forms\ndescription:"), "description error 'description'"),
        (front("name: pdf-forms\ndescription: ~"), "description error 'description'"),
        (front("name: pdf-forms\ndescription: {a: b}"), "description error '{a: b}'"),
        (front("name: pdf-forms\ndescription: Use: now"), "front-matter error ':'"),
        (front("\tname: x"), "front-matter error '\\t'"),
        (front("name: [x"), "front-matter error '['"),
        (front("name: 'x"), 'front-matter error "\'"'),
        (front("- name"), "front-matter error '- name'"),
        (front("just words"), "front-matter error 'just words'"),
        (front("name: a\x07b"), "front-matter error '\\x07'"),
        (front(BOMB), "front-matter error '&a ['"),
        (front("name: !!python/name:os.system x"), "front-matter error '!!python/name:os.system x'"),
        (front("? [a]\n: b"), "front-matter error '[a]'"),
        (front("a: [[[[[[1]]]]]]"), "front-matter error '['"),
        (front(f"a: [{'1,' * MAX_NODES}]"), "front-matter error '1'"),
        (front("a: " + "x" * MAX_CHARACTERS), "front-matter error ''"),
        (front('description: "\\U000E0041"'), "front-matter error '\"\\\\U000E0041\"'"),
        (front('description: "\\UFFFFFFFF"'), "front-matter error 'F'"),
        (front("name: x\n...\nkey: y"), "front-matter error 'k'"),
    ],
)
def test_real_faults_are_errors_at_their_place(text: str, expected: str) -> None:
    read = read_skill(PATH, text)
    assert read.skill is None
    check_first = read.problems[0]
    shown = text[check_first.span.start : check_first.span.end]
    assert (
        f"{check_first.code.removeprefix('skill.')} {check_first.severity.name.lower()} {shown!r}" == expected
    )


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        (front("name: pdf\ndescription: d"), front("name: pdf-forms\ndescription: d")),
        (front('name: "PDF"\ndescription: d'), front("name: pdf-forms\ndescription: d")),
        (
            front("name: pdf-forms\ndescription: It's for: forms"),
            front("name: pdf-forms\ndescription: 'It''s for: forms'"),
        ),
    ],
)
def test_the_fix_leaves_nothing_wrong(text: str, fixed: str) -> None:
    (problem,) = read_skill(PATH, text).problems
    assert problem.fix is not None
    edits = problem.fix.edits
    for edit in reversed(edits):
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert text == fixed
    check(fixed)


def test_a_skill_without_a_text() -> None:
    check(front("name: pdf-forms\ndescription: d", " \n"), "empty warning ''")


@pytest.mark.parametrize(
    "lines",
    [
        "a: " + "[" * 16_000,
        "a: " + "{a: " * 4_000,
        "a: " + "'" * 16_000,
        "a: |\n" + " \n" * 8_000,
        "#" * 16_000,
        "- " * 8_000,
        "? " * 8_000,
        "&" * 16_000,
        "a:\n" * 5_000,
        "%TAG ! tag:x,2000:\n" * 800,
    ],
)
def test_hostile_front_matter_costs_nothing(lines: str) -> None:
    start = time.thread_time()
    read_skill(PATH, front(lines))
    assert time.thread_time() - start < 2


@given(st.text("-\n\r\t abcname:[]{}'\"\\|>&*!#%?.,~é\ud800", max_size=60) | st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    for given_text in (text, f"---\n{text}\n---\n{text}"):
        read = read_skill(PATH, given_text)
        assert read == read_skill(PATH, given_text)
        assert read.skill is not None or read.problems
        for problem in read.problems:
            assert 0 <= problem.span.start <= problem.span.end <= len(given_text)


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_raise(data: bytes, framed: bool) -> None:
    read = decode(PATH, b"---\n" + data + b"\n---\n" if framed else data)
    text = read.text or ""
    result = read_skill(PATH, text)
    assert result.skill is not None or result.problems
    assert all(0 <= problem.span.start <= problem.span.end <= len(text) for problem in result.problems)


@pytest.mark.parametrize(
    "data", [b"\xff\xfe-\0-\0", b"\0" * 100, b"---\nname: \xff\n---\n", b"\xef\xbb\xbf" + GOOD.encode()]
)
def test_any_bytes_of_a_file(tmp_path: Path, data: bytes) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\nRules.\n", tmp_path)
    file = tmp_path / "home/a/.nexus3/skills/pdf-forms/SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    first, second = (load_folder(fixture, "/home/a") for _ in range(2))
    assert (first.prompt, first.problems) == (second.prompt, second.problems)
    assert bool(first.layers.skills) == (GOOD.encode() in data)
    assert any(problem.path == str(file) for problem in first.problems)


@given(st.binary(max_size=200))
def test_equal_files_give_equal_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    root = tmp_path_factory.getbasetemp() / "equal"
    file = root / "home/a/.nexus3/skills/pdf-forms/SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    for framed in (data, b"---\nname: pdf-forms\ndescription: " + data + b"\n---\n"):
        file.write_bytes(framed)
        first, second = (load_folder(Fixture(str(root), {}), "/home/a") for _ in range(2))
        assert first.prompt.text.encode() == second.prompt.text.encode()
        assert first.problems == second.problems


@pytest.mark.parametrize(
    ("tools", "names", "message"),
    [
        ('[{"name": "a"}, {"name": "b", "inputSchema": {}}]', ["a", "b"], None),
        ("", [], None),
        ('{"name": "a"}', [], "The tools of the skill are not an array and are left out. "),
        ('[{"name": "a"}, {"title": "b"}, 3]', ["a"], "2 tools of the skill have no name, or are too many. "),
        ("[" * 10_000, [], "The tools of the skill are not valid JSON ("),
    ],
)
def test_tools(tools: str, names: list[str], message: str | None) -> None:
    text = front(f"name: pdf-forms\ndescription: Fills forms.\nmetadata:\n  tools: |\n    {tools}")
    read = read_skill(PATH, text)
    assert read.skill is not None
    assert [tool["name"] for tool in read.skill.tools] == names
    wrong = [problem.message for problem in read.problems if problem.code == "skill.tools"]
    assert len(wrong) == (message is not None)
    assert wrong == [] or wrong[0].startswith(message or "")


DEEP = "hooks:\n  Stop:\n    - matcher: x\n      hooks:\n        - type: command"


@pytest.mark.parametrize(
    ("text", "name", "description", "problems"),
    [
        ("# Layout\n\nUse it.\n", "s", "Layout", []),
        (front("description: Use this: when reviewing"), "s", "Use this: when reviewing", []),
        (front('description: Say "a: b"\nargument-hint: [a] [b]'), "s", 'Say "a: b"', []),
        (front(f"description: d\n{DEEP}"), "s", "d", []),
        (front("name: Other\ndescription: d"), "Other", "d", ["skill.name 'Other'"]),
        ("---\ndescription: d\n", "s", "---", []),
        (front("a: &x [*x]\n: ["), "s", "Text.", ["skill.front-matter '&x ['"]),
    ],
)
@pytest.mark.parametrize("program", [".claude", ".agents"])
def test_a_skill_of_another_program_is_read_as_that_program_reads_it(
    program: str, text: str, name: str, description: str, problems: list[str]
) -> None:
    read = read_skill(os.path.join(os.sep, "x", program, "skills", "s", "SKILL.md"), text)
    assert read.skill is not None
    assert (read.skill.name, read.skill.description) == (name, description)
    assert all(problem.severity is Severity.HINT for problem in read.problems)
    assert [f"{each.code} {text[slice(*each.span)]!r}" for each in read.problems] == problems


@given(st.text(alphabet="ab:'\"[]{}\\ -\n&*#", max_size=40))
def test_places_of_quoted_values_are_those_in_the_file(matter: str) -> None:
    text = f"---\n{matter}\n---\nText.\n"
    front_matter = lenient_front_matter("", text)
    for member in (front_matter.fields or {}).values():
        assert (
            text[member.span.start : member.span.end].strip("'\"") in ("", member.name.strip("'\""))
            or "\\" in text
        )
        assert 0 <= member.value.span.start <= member.value.span.end <= len(text)
