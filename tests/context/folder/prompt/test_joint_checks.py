"""Instructions that are sent together: what they say twice, and where they contradict each other."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.config.silenced import without_silenced
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.prompt.joint.checks import check_together
from nexus_context.folder.prompt.joint.contradictions import CONTRADICTION
from nexus_context.folder.prompt.joint.repetitions import DUPLICATE, MOST_PROBLEMS
from nexus_context.folder.prompt.joint.statements import LONGEST, read_statements
from nexus_context.folder.prompt.joint.texts import JointText
from support.fixture import write_fixture
from support.folders import load_folder
from support.problems import fixed, rows

AGENTS, CLAUDE = "/w/AGENTS.md", "/w/CLAUDE.md"


def joint(path: str, text: str, directory: str = "/w", *, is_users: bool = False) -> JointText:
    return JointText(path, text, (Span(0, len(text)),), directory, is_users)


def check(*texts: str) -> list[Problem]:
    """The problems of AGENTS.md and CLAUDE.md of one directory."""
    paths = (AGENTS, CLAUDE)
    return list(check_together(joint(path, text) for path, text in zip(paths, texts, strict=False)))


def codes(problems: Iterable[Problem]) -> list[str]:
    return [problem.code for problem in problems]


def instruction_codes(problems: Iterable[Problem]) -> list[str]:
    return [code for code in codes(problems) if code.startswith("instructions.")]


LINT = "Always run the linter before you commit any change."


def test_both_places_are_named() -> None:
    problems = check(f"# Acme\n\n- {LINT}\n- Never commit to main.\n", f"Commit to main.\n\n{LINT}\n")
    assert rows(f"Commit to main.\n\n{LINT}\n", problems) == snapshot(
        [
            (
                "instructions.duplicate",
                "Always run the linter before you commit any change.",
                (
                    "This sentence is in line 3 of AGENTS.md, too. Both are sent: about 13 tokens more in "
                    "each request. Remove one of them."
                ),
            ),
            (
                "instructions.contradiction",
                "Commit to main.",
                (
                    'This contradicts line 4 of AGENTS.md, which is sent with it: "do" here, "never" there. '
                    "Keep one of them, or say what each is for."
                ),
            ),
        ]
    )
    assert [(each.severity, each.related[0].path) for each in problems] == [
        (Severity.INFORMATION, AGENTS),
        (Severity.WARNING, AGENTS),
    ]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # clauses
        ("Never commit to main", "Always commit to main"),
        ("Don't commit directly to main.", "Commit to main."),
        ("Don\u2019t push to master.", "Always push to master."),
        ("Commit directly to main", "Never commit to the main branch"),
        ("## Branches\n- Never commit to main", "## Git workflow\n- Always commit to main"),
        ("**NEVER** use emojis in commits!", "ALWAYS use emojis in commits."),
        ("Do not add comments to the code", "Always add comments to the code"),
        ("You must squash commits.", "Never squash commits"),
        ("Write tests first.", "Never write tests first."),
        ("Always ask before deleting files.", "Never ask before deleting files."),
        ("You should mock the database", "You should never mock the database"),
        ("Commit messages must be in English.", "Commit messages must not be in English."),
        ("Always use default exports", "Never use default exports"),
        ("Avoid default exports", "Use default exports."),
        ("No default exports", "Prefer default exports"),
        # package managers
        ("Use npm.", "Use pnpm."),
        ("# Acme\n\nUse npm.", "# Guide\n\nUse pnpm."),
        ("Use `npm` for package management", "Use **yarn** as the package manager"),
        ("Install dependencies with npm", "Install dependencies with pnpm."),
        ("Package manager: bun", "Package manager: pnpm"),
        ("Use Yarn, never npm", "Use npm only"),
        ("Do not use yarn", "Use yarn"),
        ("Never use npm.", "Run `npm install`."),
        ("Never use npm or yarn.", "- Install: `yarn install`"),
        ("Use uv for Python", "Run `pip install -r requirements.txt`"),
        ("Always use uv, not pip.", "Install packages with pip."),
        ("Use poetry to manage dependencies", "Use pip for dependencies"),
        # tests
        ("Run tests with `npm test`", "Run tests with `pnpm test`"),
        ("Run the tests using pytest.", "Run tests with `python -m unittest`"),
        ("Use Jest for testing", "Use Vitest for testing"),
        ("Use pytest for tests.", "Write tests with unittest"),
        ("Test framework: Jest", "Tests use Mocha"),
        ("Use Vitest, not Jest.", "Use Jest for unit tests."),
        # versions
        ("Use Python 3.11", "Use Python 3.12"),
        ("Python 3.11+ is required", "Python 3.13 or later"),
        ("Requires Node 18", "Use Node.js 20"),
        ("Target Python 3.9", "Requires Python >= 3.11"),
        ("This project uses Go 1.21", "Go 1.23"),
        ("Stack: Python 3.11, FastAPI", "Language: Python 3.12"),
        # style
        ("Use tabs for indentation", "Use 2 spaces for indentation"),
        ("## Style\n\n- Use tabs for indentation", "## Code style\n\n- Use 4 spaces for indentation"),
        ("Indent with tabs.", "Indent with four spaces."),
        ("Use 2-space indentation", "Use 4-space indentation"),
        ("Use spaces, not tabs", "Use tabs"),
        ("Use single quotes", "Use double quotes"),
        ("Prefer single quotes for strings.", "Always use double quotes for strings."),
        ("No semicolons", "Always use semicolons"),
        ("Line length: 80", "Max line length is 100 characters"),
        ("Keep lines under 80 characters", "Limit lines to 120 characters"),
        ("Line length limit of 88", "maximum line length 100"),
        ("Prefer interfaces over types", "Prefer types over interfaces"),
        ("Use const instead of let", "Use let instead of const"),
    ],
)
def test_contradictions(one: str, other: str) -> None:
    """In two files, whichever comes first, and in one."""
    assert codes(check(one, other)) == [CONTRADICTION]
    assert codes(check(other, one)) == [CONTRADICTION]
    if "#" not in one:
        assert CONTRADICTION in codes(check(f"- {one}\n- {other}\n"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        # scopes: headings, labels, nested items, conditions
        ("## Frontend\n\n- Use npm.", "## Backend\n\n- Use pnpm."),
        ("## Billing\n\n- Use npm.", "Use pnpm."),
        ("# Style for Python\n\nUse 4 spaces", "# Style for TypeScript\n\nUse 2 spaces"),
        ("- `packages/web`\n  - Use npm", "- Use pnpm"),
        ("In the frontend:\n\n- Use tabs", "- Use 2 spaces"),
        ("Use npm in the docs directory", "Use pnpm"),
        ("Use single quotes", "Use double quotes for JSX"),
        ("On Windows, use tabs", "Use 4 spaces for indentation"),
        ("Line length: 80 for comments", "Line length: 100"),
        ("Commit messages: max line length 72", "Max line length 100"),
        ("Never commit to main", "Commit to main when the user asks for it"),
        ("Never commit to main unless asked", "Commit to main"),
        ("Don't mock the database in integration tests", "Mock the database"),
        ("Python: use 4 spaces", "JavaScript: use 2 spaces"),
        # what is no claim
        ("Use npm", "> Use pnpm"),
        ("Use npm", "```\nUse pnpm\n```"),
        ("Use npm", "<!-- Use pnpm -->"),
        ("Use npm", "\u274c Use pnpm"),
        ("Use npm", "Bad: use pnpm"),
        ("Use npm", "## Don't\n\n- Use pnpm"),
        ("Use npm", "Should we use pnpm?"),
        ("Use npm", "Tools, e.g. use pnpm"),
        ("Use poetry", "// Install: pip install x"),
        ("Never npm", "`npm install`, `pip install`: ask before"),
        ("Use npm", "Don't add npm packages that nobody imports."),
        ("Use double quotes", "Single-quoted text that says what it is for"),
        ("Always use `poetry add`", "Never edit `poetry.lock`"),
        ("**Backend**: Python 3.12", "**Scripts**: Python 3.11"),
        ("Billing: use npm", "Use pnpm"),
        (
            "Java:\nUse camel case.\nIndent code with 4 spaces.",
            "Lua:\nUse snake case.\nIndent code with 2 spaces.",
        ),
        ("Never commit to main", 'If somebody writes "commit to main", ask.'),
        ("Use npm", "| Use pnpm |\n|---|"),
        # what agrees
        ("Use npm.", "Use npm, never pnpm."),
        ("Use npm or pnpm", "Use yarn or npm"),
        ("Use pnpm.", "Install pnpm: `npm install -g pnpm`"),
        ("Use pnpm.", "Publish it to npm"),
        ("Use pnpm.", "Edit package.json, do not use `pnpm add`"),
        ("Run `npm run build`", "Run `pnpm test`"),
        ("Use uv", "Run `uv pip install x`"),
        ("Use pytest for tests", "Use Playwright for e2e tests"),
        ("Use Vitest for unit tests", "Use Jest for integration tests"),
        ("Run tests with `npm test`", "Run tests with `npm run test`"),
        ("Run tests with `pytest`", "Run tests with `uv run pytest -x`"),
        ("Python 3.11+", "Use Python 3.12"),
        ("Node 20", "Node 20.11"),
        ("Python 3.11 or 3.12", "Python 3.13, 3.14"),
        ("Use Python 3.12", "Compatible with Python 3.9"),
        ("Use Python 3.12", "`match` is a feature of Python 3.10"),
        ("Use semicolons", "Always end lines with semicolons"),
        ("Use tabs", "Open two tabs"),
        ("Keep it short.", "Don't keep it"),
        ("Never do this", "Always do this"),
    ],
)
def test_no_contradictions(one: str, other: str) -> None:
    assert codes(check(one, other)) == []
    assert codes(check(other, one)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (LINT, LINT),
        (f"- {LINT}", "* **Always** run the `linter` before\n  you commit any change!"),
        (f"1. {LINT}", f"# Title\n\nHello. {LINT} Bye."),
        (LINT.upper(), f"- [ ] {LINT}"),
        (
            "\u8d70\u6d41\u6c34\u7ebf\u65f6\u5404\u4e2a\u4ee3\u7406\u5b8c\u6210\u540e\u5c3d\u91cf\u4ea7\u51fa\u4efb\u52a1\u6587\u6863\u5230\u76ee\u5f55\u3002",
        )
        * 2,
    ],
)
def test_duplicates(one: str, other: str) -> None:
    (problem,) = check(one, other)
    assert (problem.code, problem.path, problem.related[0].path) == (DUPLICATE, CLAUDE, AGENTS)
    assert problem.fix is None  # which one to remove is the user's choice


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Run the linter.", "Run the linter."),
        ("Use descriptive variable names.", "Use descriptive variable names."),  # too short
        (f"# {LINT}", f"# {LINT}"),
        (f"```\n{LINT}\n```", f"```\n{LINT}\n```"),
        (f"    {LINT}", f"    {LINT}"),
        (f"| {LINT} |", f"| {LINT} |"),
        (f"> {LINT}", f"> {LINT}"),
        (f"<!-- {LINT} -->", f"<!-- {LINT} -->"),
        (f"---\ndescription: {LINT}\n---\n", f"---\ndescription: {LINT}\n---\n"),
        *[("Licensed under the Apache License, Version 2.0 of January 2004.",) * 2],
        *[("`python -m pytest tests/unit --maxfail=1 --cov=app --cov-report=term`",) * 2],
        *[("This method throws an error if the document does not exist.",) * 2],
        *[("Update this file whenever the rules of the project have changed.",) * 2],
        *[("When a request matches one of the triggers, apply this order:",) * 2],
        *[("`file`: The path of the file that the tool reads its tasks from.",) * 2],
        *[("returns: v.array(v.object({ id: string, name: string, size: number }))",) * 2],
    ],
)
def test_no_duplicates(one: str, other: str) -> None:
    assert codes(check(one, other)) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"- {LINT}\n- {LINT}\n- Be kind.\n", f"- {LINT}\n- Be kind.\n"),
        (f"{LINT}\n\nBe kind.\n\n{LINT}\n", f"{LINT}\n\nBe kind.\n\n"),
        (f"## Style\n\n{LINT}\n\n## Git\n\n{LINT}\n", f"## Style\n\n{LINT}\n\n## Git\n\n"),
        (f"- {LINT}\n- Be kind.\n\n- {LINT}\n- Be kind.", f"- {LINT}\n- Be kind.\n\n"),
        (f"{LINT}\r\n\r\n{LINT}\r\n", f"{LINT}\r\n\r\n"),
        (f"{LINT}\n\n{LINT} Be kind.\n", None),  # more is in the paragraph
        (f"- {LINT}\n- {LINT}\n  - Be kind.\n", None),  # an item with others in it
    ],
)
def test_duplicates_in_one_file(text: str, expected: str | None) -> None:
    (problem,) = check(text)
    assert (problem.code, fixed(text, problem.fix)) == (DUPLICATE, expected)


@pytest.mark.parametrize(
    "text",
    [
        f"## Java\n\n- {LINT}\n\n## Python\n\n- {LINT}\n",
        f"## Prompt file guide\n\n- {LINT}\n\n## Agent file guide\n\n- {LINT}\n",
        f"# Phase 1: Plan\n\n- {LINT}\n\n# Phase 2: Code\n\n- {LINT}\n",
        f"- In the shop: be kind. {LINT}\n- In the bank: be quick. {LINT}\n",
    ],
)
def test_sections_that_are_made_alike(text: str) -> None:
    assert codes(check(text)) == []


def test_a_run_is_one_problem() -> None:
    lines = [f"- Rule {number} of the project says that you may not do {number}." for number in range(1, 30)]
    text = "# A\n\n" + "\n".join(lines)
    (problem,) = check(text, f"# B\n\nBe kind.\n\n{text}")
    assert problem.message == snapshot(
        "The 29 sentences from here to line 35 are in line 3 of AGENTS.md and below, too. Both are sent: "
        "about 377 tokens more in each request. Remove one of them."
    )


def test_a_copy_that_was_edited_is_one_problem() -> None:
    lines = [f"- Rule {number} of the project says that you may not do {number}." for number in range(1, 9)]
    edited = [line if number % 2 else f"- Another {number}." for number, line in enumerate(lines)]
    (problem,) = check("\n".join(lines), "\n".join(edited))
    assert problem.message == snapshot(
        "4 sentences of this file in 4 places, of which this is the first, are in line 2 of AGENTS.md and "
        "below, too. Both are sent: about 52 tokens more in each request. Remove one of them."
    )
    assert [related.path for related in problem.related] == [AGENTS, CLAUDE, CLAUDE, CLAUDE]


def test_what_is_not_sent_does_not_count() -> None:
    text = f"{LINT}\n\nUse npm."
    cut = JointText(CLAUDE, text, (Span(0, 20),), "/w")
    assert list(check_together([joint(AGENTS, f"{LINT}\n\nUse pnpm."), cut])) == []


def test_directories() -> None:
    """What a directory says of itself contradicts nothing above it; short sentences are said for each."""
    nested = joint("/w/web/AGENTS.md", f"Use pnpm.\n\n{LINT}", "/w/web")
    assert list(check_together([joint(AGENTS, f"Use npm.\n\n{LINT}"), nested])) == []


def test_what_the_user_says_everywhere() -> None:
    own = joint("/home/.claude/CLAUDE.md", "Use npm.", "", is_users=True)
    (problem,) = check_together([joint(CLAUDE, "Use pnpm."), own])
    assert (problem.path, problem.severity) == (CLAUDE, Severity.INFORMATION)


def test_limits() -> None:
    sentences = [f"Sentence number {number} is long enough to be looked for here." for number in range(200)]
    mixed = [line for one in sentences for line in (one, "Be kind.")]
    assert len(check("\n\n".join(sentences), "\n\n".join(reversed(mixed)))) <= MOST_PROBLEMS
    swapped = [f"- Never do thing {number}\n- Always do thing {number}" for number in range(200)]
    assert len(check("\n".join(swapped))) == MOST_PROBLEMS
    assert read_statements("Be kind. " * (LONGEST // 9 + 1)) == ()


FOLDER = f"""
//- /home/work/AGENTS.md
# Acme

- Use npm.
- {LINT}
//- /home/work/CLAUDE.md
@AGENTS.md

## More

<!-- nexus: ignore instructions.contradiction -->
Use pnpm.

{LINT}
//- /home/work/web/CLAUDE.md
Use yarn. {LINT}
//- /home/work/.claude/rules/style.md
---
paths: '**/*.ts'
---
Use bun.
"""


def test_a_program_that_sends_both(tmp_path: Path) -> None:
    fixture = write_fixture(FOLDER, tmp_path)
    where = Surroundings(fixture.path("/home/work"), fixture.path("/home"), {})
    problems = [
        problem
        for problem in read_profile("claude-code", where).problems
        if problem.code.startswith("instructions.")
    ]
    path = fixture.path("/home/work/CLAUDE.md")
    assert [(each.code, each.path) for each in problems] == [(DUPLICATE, path), (CONTRADICTION, path)]
    assert instruction_codes(read_profile("codex", where).problems) == []
    heard = without_silenced(problems, fixture.files, (), where.folder)
    assert codes(heard.problems) == [DUPLICATE]
    heard = without_silenced(problems, fixture.files, ["instructions.duplicate:CLAUDE.md"], where.folder)
    assert codes(heard.problems) == []
    disk = Disk({path: "@AGENTS.md\n\nBe kind."})  # unsaved
    assert instruction_codes(read_profile("claude-code", where, disk=disk).problems) == []


def test_links_to_one_file(tmp_path: Path) -> None:
    """A program that reads both names of a file has no two places that could be changed."""
    fixture = write_fixture(f"//- /home/work/AGENTS.md\n{LINT}\n\nUse npm.\n", tmp_path)
    Path(fixture.path("/home/work/CLAUDE.md")).symlink_to("AGENTS.md")
    where = Surroundings(fixture.path("/home/work"), fixture.path("/home"), {})
    assert instruction_codes(read_profile("copilot", where).problems) == []


def test_what_nexus_itself_sends(tmp_path: Path) -> None:
    fixture = write_fixture(
        f"""
        //- /home/.nexus3/SOUL.md
        Never use npm.
        //- /home/work/.git/HEAD
        ref: refs/heads/main
        //- /home/work/.nexus3/NEXUS.md
        Use npm.

        @rules.md

        {LINT}
        //- /home/work/.nexus3/rules.md
        {LINT}
        """,
        tmp_path,
    )
    loaded = load_folder(fixture, "/home/work")
    assert instruction_codes(loaded.problems) == snapshot(
        ["instructions.duplicate", "instructions.contradiction"]
    )


TOKENS = [
    *(
        "# Title\n",
        "## Don't\n",
        "- ",
        "  - ",
        "\t",
        "> ",
        "```\n",
        "~~~\n",
        "<!-- ",
        "-->",
        "---\n",
        "\n",
        "\r\n",
    ),
    *(
        "\r",
        "Use npm. ",
        "Never use npm. ",
        "Use Python 3.11\n",
        "Use 2 spaces\n",
        "**",
        "`",
        "_",
        "[a](b)",
        "1. ",
    ),
    *(f"{LINT} ", f"{LINT}\n", "\u3002", "\u0130stanbul ", "\ufeff", "| a |", "e.g. X", "Be kind.\n"),
]
TEXTS = st.lists(st.sampled_from(TOKENS) | st.text(max_size=8), max_size=14).map("".join)


@given(st.lists(TEXTS, min_size=1, max_size=3))
def test_any_text(texts: list[str]) -> None:
    """Spans are within the texts, and a fix of one file removes what it says."""
    by_path = {f"/w/{number}.md": text for number, text in enumerate(texts)}
    for problem in check_together(joint(path, text) for path, text in by_path.items()):
        text = by_path[problem.path]
        places = [(problem.path, problem.span), *((each.path, each.span) for each in problem.related)]
        assert all(0 <= span.start < span.end <= len(by_path[path]) for path, span in places)
        if problem.fix is not None:
            assert len(fixed(text, problem.fix) or "") < len(text)
