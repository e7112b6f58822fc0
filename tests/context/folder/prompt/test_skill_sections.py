"""Skills in the prompt: the index, the capabilities, and the texts of the active ones."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nexus_context.errors import RequestError
from nexus_context.folder.loading import load
from nexus_context.folder.prompt.render import Prompt, places_of
from nexus_context.folder.request_prompt import prompt_for
from nexus_context.folder.snapshot import Snapshot
from nexus_context.turn.assembly import assemble
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import AssembledContext, Options, Request
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, load_inputs, relative
from support.source_map import fragment_at, skill_texts, source_at

FOLDER = "/home/a"
NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
TEXT = """
//- /home/a/NEXUS.md
Rules.
//- /home/a/.nexus3/skills/pdf/SKILL.md
---
name: pdf
description: |
  Fills forms.

  # Not a heading
---

# Forms
@NEXUS.md

Fill them.

//- /home/.nexus3/skills/git-log/SKILL.md
---
name: git-log
description: Reads logs {0}.
---
Use git.
//- /home/a/.claude/skills/empty/SKILL.md
---
name: empty
description: Nothing.
---
"""
INDEX = """\
## Skills

Each of these is a guide to one kind of work, in a file of its own. Before work that one of them describes, \
read its file and follow it; paths in it start at the file's directory.

- empty: Nothing. (/home/a/.claude/skills/empty/SKILL.md)
- git-log: Reads logs {0}. (/home/.nexus3/skills/git-log/SKILL.md)
- pdf: Fills forms. # Not a heading (/home/a/.nexus3/skills/pdf/SKILL.md)"""
PDF = """\
## Skill: pdf
Source: /home/a/.nexus3/skills/pdf/SKILL.md

# Forms
@NEXUS.md

Fill them."""
GIT = """\
## Skill: git-log
Source: /home/.nexus3/skills/git-log/SKILL.md

Use git."""


def check(root: Path, options: Options, expected: str) -> tuple[Fixture, Snapshot, AssembledContext]:
    """The sections of skills in the prompt of a request, whose fragments tile it."""
    fixture = write_fixture(TEXT, root)
    snapshot = load_folder(fixture, FOLDER)
    made = assemble(snapshot, ContextManager(), Request(options=options), now=NOW)
    parts = relative(fixture, made.system_prompt).split("\n\n---\n\n")
    assert parts[1:-1] == ([expected] if not expected else expected.split("\n\n---\n\n"))
    tiles(made.prompt)
    assert sum(row.tokens for row in made.usage.rows) == made.usage.total
    return fixture, snapshot, made


def tiles(prompt: Prompt) -> None:
    assert [one.span.start for one in prompt.fragments] == [
        0,
        *(one.span.end for one in prompt.fragments[:-1]),
    ]
    assert prompt.fragments[-1].span.end == len(prompt.text)


def capabilities(count: int, names: str) -> str:
    return f"## Capabilities\n\nSkills: {count} ({names})\n\n---\n\n"


ALL = capabilities(3, "empty, git-log, pdf")


def test_the_index_says_what_there_is_and_where(tmp_path: Path) -> None:
    fixture, snapshot, made = check(tmp_path, Options(), ALL + INDEX)
    assert made.metadata["activeSkills"] == []
    assert made.prompt is snapshot.prompt
    row = made.system_prompt.index("- pdf:")
    fragment = fragment_at(made.prompt, row)
    assert fragment is not None
    assert (fragment.section, fragment.layer, fragment.title) == ("skills", "local", "pdf")
    assert fragment.path == fixture.path("/home/a/.nexus3/skills/pdf/SKILL.md")
    source = snapshot.layers.texts[fragment.path][fragment.source.start : fragment.source.end]
    assert source.startswith("|\n  Fills forms.")
    labels = [row.label for row in made.usage.rows]
    assert labels[-7:-2] == ["Capabilities", "Skills", "empty", "git-log", "pdf"]


def test_activation_puts_the_text_in_the_section_traced_to_the_file(tmp_path: Path) -> None:
    options = Options(skills=["pdf", "git-log", "pdf"])
    fixture, snapshot, made = check(tmp_path, options, f"{ALL}{INDEX}\n\n{GIT}\n\n{PDF}")
    assert made.metadata["activeSkills"] == ["git-log", "pdf"]
    path = fixture.path("/home/a/.nexus3/skills/pdf/SKILL.md")
    text = snapshot.layers.texts[path]
    at = made.system_prompt.index("Fill them.")
    assert source_at(made.prompt, at, snapshot.layers.texts) == (path, text.index("Fill them."))
    assert list(places_of(made.prompt, path, text.index("Fill them."), snapshot.layers.texts)) == [at]
    without = assemble(snapshot, ContextManager(), Request(), now=NOW)
    tokens = [{row.label: row.tokens for row in one.usage.rows}["pdf"] for one in (without, made)]
    assert tokens[0] < tokens[1]
    alone = skill_texts(snapshot, "pdf")
    assert relative(fixture, alone.text) == PDF
    tiles(alone)


@pytest.mark.parametrize(
    ("options", "expected", "active"),
    [
        (Options(skip_skills=True), "", []),
        (Options(skip_skills=True, skills=["pdf"]), "", []),
        (Options(skill_filter=[]), "", []),
        (
            Options(skill_filter=["git-*"], skills=["git-log"]),
            f"{capabilities(1, 'git-log')}{INDEX.partition('- empty')[0]}{INDEX.splitlines()[5]}\n\n{GIT}",
            ["git-log"],
        ),
        (Options(skills=["empty"]), ALL + INDEX, ["empty"]),
    ],
)
def test_a_request_chooses_its_skills(
    tmp_path: Path, options: Options, expected: str, active: list[str]
) -> None:
    fixture = write_fixture(TEXT, tmp_path)
    made = assemble(load_folder(fixture, FOLDER), ContextManager(), Request(options=options), now=NOW)
    parts = relative(fixture, made.system_prompt).split("\n\n---\n\n")
    assert "\n\n---\n\n".join(parts[1:-1]) == expected
    assert made.metadata["activeSkills"] == active
    tiles(made.prompt)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skills": ["PDF"]}, 'There is no skill "PDF"; did you mean pdf?'),
        ({"skills": ["x" * 5_000]}, "Skills that this request may use: empty, git-log, pdf."),
        ({"skills": ["pdf"], "skill_filter": ["git-*"]}, "Skills that this request may use: git-log."),
        ({"skills": ["pdf"], "skill_filter": []}, "Skills that this request may use: none."),
    ],
)
def test_a_skill_that_cannot_be_activated(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    snapshot = load_folder(write_fixture(TEXT, tmp_path), FOLDER)
    with pytest.raises(RequestError) as raised:
        prompt_for(snapshot, **options)
    assert raised.value.code == "unknown-skill"
    assert message in str(raised.value)
    assert len(str(raised.value)) < 300


def test_the_index_shows_no_more_of_a_description_than_is_allowed(tmp_path: Path) -> None:
    text = f"//- /home/a/.nexus3/skills/x/SKILL.md\n---\nname: x\ndescription: {'d' * 3_000}\n---\nText.\n"
    snapshot = load_folder(write_fixture(text, tmp_path), FOLDER)
    assert snapshot.prompt.text.count("d" * 1_024) == 1
    assert "d" * 1_025 not in snapshot.prompt.text
    assert [problem.code for problem in snapshot.problems] == ["skill.description"]


def test_hidden_text_and_secrets_of_a_skill_are_reported(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    text = f"//- /home/a/.nexus3/skills/x/SKILL.md\n---\nname: x\ndescription: d\n---\nA\u202eB {secret}\n"
    fixture = write_fixture(text, tmp_path)
    first = load_folder(fixture, FOLDER)
    assert sorted(problem.code for problem in first.problems) == ["prompt.hidden-text", "prompt.secret"]
    assert load_folder(fixture, FOLDER, previous=first).problems == first.problems


def test_capabilities_name_servers_and_credentials_and_never_a_value(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/config.json
    {"provider": {"api_key_env": "MY_KEY"}}
    //- /home/a/.nexus3/mcp.json
    {"servers": [
      {"name": "on", "url": "https://x.example/", "headers": {"A": "Bearer ${env:UNSET}"}},
      {"name": "off", "command": ["sh"], "env": {"A": "${NOT_NEEDED}"}, "enabled": false},
      {"name": "two", "command": ["sh"], "env": {"A": "${SET}", "B": "${EMPTY}", "C": "${OTHER:-x}"}}]}
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load(
        fixture.path(FOLDER),
        load_inputs(fixture.path("/home"), environ={"MY_KEY": "value-1", "SET": "value-2", "EMPTY": ""}),
    )
    assert "value-" not in snapshot.prompt.text
    assert snapshot.prompt.text.partition("## Capabilities\n\n")[2].partition("\n\n---")[0] == (
        """\
MCP servers configured: on, two
MCP servers disabled: off
Credentials configured: MY_KEY, SET
Credentials broken (the environment variable is not set): EMPTY, UNSET"""
    )


@pytest.mark.parametrize(
    ("tools", "line"),
    [
        ([("ask", "Asks."), ("two\nlines", "")], "\nTools: 2 (ask, two lines)\n"),
        (
            [(f"t{n:03}", "") for n in range(300)],
            f"\nTools: 300 ({', '.join(f't{n:03}' for n in range(20))}, …)\n",
        ),
    ],
)
def test_capabilities_name_the_tools_of_a_request(
    tmp_path: Path, tools: list[tuple[str, str]], line: str
) -> None:
    snapshot = load_folder(write_fixture(TEXT, tmp_path), FOLDER)
    made = prompt_for(snapshot, tools=tools)
    tiles(made)
    assert made.text.count(line) == 1
    before = snapshot.prompt.text  # which has no tools; nothing else of the section is another
    head, _, rest = made.text.partition(line)
    assert head.endswith("\nSkills: 3 (empty, git-log, pdf)")
    assert before.startswith(head)
    assert rest.startswith(before[len(head) + 1 :].partition("\n\n---")[0])
    alone = load_folder(write_fixture("//- /home/b/NEXUS.md\nRules.\n", tmp_path / "b"), "/home/b")
    assert "## Capabilities" not in alone.prompt.text
    assert f"## Capabilities\n{line}" in prompt_for(alone, tools=tools).text
