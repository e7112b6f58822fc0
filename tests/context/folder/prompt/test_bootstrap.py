"""Bootstrap files: the agent's definition, from the nearest layer that has one; a named agent's own."""

import os
from pathlib import Path

import pytest

from nexus_context.agents import AgentPool
from nexus_context.disk.files import PROMPT_LIMIT
from nexus_context.errors import Severity
from nexus_context.folder.layers.bootstrap import agent_file, variant_of
from nexus_context.folder.snapshot import Snapshot
from nexus_context.loader import ContextLoader, PromptLoader
from nexus_context.tokens import SimpleTokenCounter
from nexus_context.turn.usage_rows import system_rows
from support.fixture import Fixture, write_fixture
from support.folders import HOST, load_folder, load_inputs, relative
from support.source_map import fragment_at, source_at

FOLDER = "/home/c/a"
FILES = "AGENT.md", "SOUL.md", "IDENTITY.md", "CONTEXT.md"
KINDS = "agent", "soul", "identity", "user-identity", "context"
AS_ROOT = pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")


def check(root: Path, present: str, expected: list[str], *, agent: str | None = None) -> Snapshot:
    """Bootstrap files of a load, each as `path kind`, and ` status` if they do not count.

    `present` are names from `.nexus3/` upwards: `x` is the folder's, `c:x` its ancestor's, `g:x` the global
    one's. The text of each file is its name, and the prompt contains those that count.
    """
    fixture = write_fixture("".join(f"//- {place(name)}\n<{name}>\n" for name in present.split()), root)
    (root / FOLDER.strip("/")).mkdir(parents=True, exist_ok=True)
    snapshot = load_folder(fixture, FOLDER, agent=agent)
    assert sorted(shown(fixture, snapshot)) == sorted(f"{place(line)}" for line in expected)
    for line in expected:
        assert (f"<{line.partition(' ')[0]}>" in snapshot.prompt.text) == (not line.endswith("shadowed"))
    return snapshot


def place(name: str) -> str:
    layer, _, file = name.rpartition(":")
    return {"": FOLDER, "c": "/home/c", "g": "/home"}[layer] + f"/.nexus3/{file}"


def shown(fixture: Fixture, snapshot: Snapshot) -> list[str]:
    return [
        f"{relative(fixture, file.path)} {file.kind}" + ("" if file.status == "loaded" else f" {file.status}")
        for layer in snapshot.layers.layers
        for file in layer.files
        if file.kind in KINDS
    ]


def codes(fixture: Fixture, snapshot: Snapshot) -> list[tuple[str, str]]:
    return [(relative(fixture, problem.path), problem.code) for problem in snapshot.problems]


def headings(snapshot: Snapshot) -> list[str]:
    return [line for line in snapshot.prompt.text.splitlines() if line.startswith("#")]


@pytest.mark.parametrize(
    ("name", "variant"),
    [
        ("AGENT.one.md", ("AGENT.md", "one")),
        ("AGENT.a.b.md", ("AGENT.md", "a.b")),
        ("SOUL.one.md", ("SOUL.md", "one")),
        ("AGENT.md", None),
        ("AGENT..md", None),
        ("AGENT.-.md", None),
        ("AGENT.one.MD", None),
        ("NOTES.one.md", None),
        ("one.md", None),
        ("", None),
    ],
)
def test_variants_by_name(name: str, variant: tuple[str, str] | None) -> None:
    assert variant_of(name) == variant


def test_sections_stand_in_the_order_of_their_priorities(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/IDENTITY.md
    Ada, in Berlin.
    //- /home/.nexus3/SOUL.md
    Kind.
    //- /home/c/.nexus3/CONTEXT.md

    Company matters.
    @more.md

    //- /home/c/.nexus3/more.md
    More.
    //- /home/c/a/.nexus3/IDENTITY.md
    Reviewer.
    //- /home/c/a/.nexus3/AGENT.md
    You review.
    //- /home/c/a/NEXUS.md
    Rules.
    //- /home/.nexus3/NEXUS.md
    Global.
    //- /home/c/a/.nexus3/config.json
    {"context": {"section_separator": "\\n\\n***\\n\\n", "sections": [
      {"name": "Between", "content": "b", "priority": 850}, {"name": "After", "content": "a", "priority": 900}
    ]}}
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert relative(fixture, snapshot.prompt.text).partition("\n\n***\n\n## Environment")[0] == (
        """\
## Agent Definition
Source: /home/c/a/.nexus3/AGENT.md

You review.

***

## Soul
Source: /home/.nexus3/SOUL.md

Kind.

## Identity
Source: /home/c/a/.nexus3/IDENTITY.md

Reviewer.

## User Identity
Source: /home/.nexus3/IDENTITY.md

Ada, in Berlin.

***

## After

a

***

## Between

b

***

## Context Instructions
Source: /home/c/.nexus3/CONTEXT.md

Company matters.
More.

***

# System Configuration

## Global Configuration
Source: /home/.nexus3/NEXUS.md

Global.

## Project Configuration
Source: /home/c/a/NEXUS.md

Rules."""
    )
    assert snapshot.problems == ()
    more = snapshot.prompt.text.index("More.")
    fragment = fragment_at(snapshot.prompt, more)
    assert fragment is not None
    assert (fragment.section, fragment.layer, fragment.title) == (
        "context",
        "ancestor:c",
        "Context Instructions: more.md",
    )
    path = fixture.path("/home/c/.nexus3/more.md")
    assert source_at(snapshot.prompt, more + 2, snapshot.layers.texts) == (path, 2)
    rows = {
        (row.label, relative(fixture, str(row.path)))
        for row in system_rows(snapshot.prompt, SimpleTokenCounter())
        if row.tokens
    }
    assert rows >= {
        ("Agent Definition", "/home/c/a/.nexus3/AGENT.md"),
        ("Soul", "/home/.nexus3/SOUL.md"),
        ("Identity", "/home/c/a/.nexus3/IDENTITY.md"),
        ("User Identity", "/home/.nexus3/IDENTITY.md"),
        ("Context Instructions", "/home/c/.nexus3/CONTEXT.md"),
        ("Context Instructions: more.md", "/home/c/.nexus3/more.md"),
    }


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ("AGENT.md", ["AGENT.md agent"]),
        ("g:AGENT.md", ["g:AGENT.md agent"]),
        ("c:SOUL.md g:SOUL.md", ["g:SOUL.md soul shadowed", "c:SOUL.md soul"]),
        (
            "CONTEXT.md c:CONTEXT.md g:CONTEXT.md",
            ["g:CONTEXT.md context shadowed", "c:CONTEXT.md context shadowed", "CONTEXT.md context"],
        ),
        ("SOUL.md c:AGENT.md g:CONTEXT.md", ["g:CONTEXT.md context", "c:AGENT.md agent", "SOUL.md soul"]),
        ("g:IDENTITY.md", ["g:IDENTITY.md user-identity"]),
        (
            "IDENTITY.md c:IDENTITY.md g:IDENTITY.md",
            ["g:IDENTITY.md user-identity", "c:IDENTITY.md identity shadowed", "IDENTITY.md identity"],
        ),
        ("AGENT.md AGENT.reviewer.md g:AGENT.reviewer.md", ["AGENT.md agent"]),
    ],
)
def test_the_nearest_layer_wins_for_each_name(tmp_path: Path, present: str, expected: list[str]) -> None:
    check(tmp_path, present, expected)


@pytest.mark.parametrize(
    ("agent", "present", "expected"),
    [
        ("reviewer", "AGENT.md c:AGENT.md", ["c:AGENT.md agent shadowed", "AGENT.md agent"]),
        (
            "reviewer",
            "AGENT.md AGENT.reviewer.md",
            ["AGENT.reviewer.md agent", "AGENT.md agent shadowed"],
        ),
        (
            "reviewer",
            "AGENT.md g:AGENT.reviewer.md",
            ["g:AGENT.reviewer.md agent", "AGENT.md agent shadowed"],
        ),
        (
            "reviewer",
            "AGENT.reviewer.md c:AGENT.reviewer.md SOUL.md",
            ["c:AGENT.reviewer.md agent shadowed", "AGENT.reviewer.md agent", "SOUL.md soul"],
        ),
        ("tester", "AGENT.md AGENT.reviewer.md", ["AGENT.md agent"]),
        ("prüfer-2.b", "AGENT.prüfer-2.b.md", ["AGENT.prüfer-2.b.md agent"]),
        ("../x", "AGENT.md", ["AGENT.md agent"]),
    ],
)
def test_an_agent_has_its_own_definition(
    tmp_path: Path, agent: str, present: str, expected: list[str]
) -> None:
    check(tmp_path, present, expected, agent=agent)


@pytest.mark.parametrize(
    ("agent", "file"),
    [
        (None, None),
        ("", None),
        ("a", "AGENT.a.md"),
        ("..", None),
        ("a/b", None),
        ("a\\b", None),
        ("a\0", None),
        ("a\n", None),
        ("a" * 64, f"AGENT.{'a' * 64}.md"),
        ("a" * 65, None),
    ],
)
def test_a_name_that_no_file_can_bear_has_no_file(agent: str | None, file: str | None) -> None:
    assert agent_file(agent) == file


def test_another_agent_reads_only_what_is_its_own(tmp_path: Path) -> None:
    names = ["AGENT.md", "AGENT.one.md", "AGENT.two.md", "SOUL.md", "c:CONTEXT.md"]
    fixture = write_fixture("".join(f"//- {place(name)}\n<{name}>\n" for name in names), tmp_path)
    overlays = {place("AGENT.new.md"): "unsaved"}

    def another(base: Snapshot, agent: str | None) -> Snapshot:
        return load_folder(
            fixture, FOLDER, overlays=overlays, previous=base, changed=frozenset(), agent=agent
        )

    base = load_folder(fixture, FOLDER)
    (tmp_path / "home/c/a/.nexus3/SOUL.md").write_text("changed since")
    one, two, new = (another(base, agent) for agent in ("one", "two", "new"))
    for snapshot, own in ((base, "<AGENT.md>"), (one, "<AGENT.one.md>"), (two, "<AGENT.two.md>")):
        assert own in snapshot.prompt.text
        assert "<SOUL.md>" in snapshot.prompt.text
        assert snapshot.prompt.text.count("<AGENT.") == 1
    assert "unsaved" in new.prompt.text
    assert one.agent == "one"
    assert another(one, None).prompt == base.prompt
    path = fixture.path(place("AGENT.one.md"))
    assert [path in snapshot.layers.watch for snapshot in (base, one, two)] == [False, True, False]
    soul = fixture.path(place("SOUL.md"))
    assert one.layers.memory.reads[soul] is base.layers.memory.reads[soul]
    later = load_folder(fixture, FOLDER, agent="one", previous=one)
    assert "changed since" in later.prompt.text
    assert later.revision == one.revision + 1


def test_a_keystroke_is_not_taken_from_another_agent(tmp_path: Path) -> None:
    config = f"{FOLDER}/.nexus3/config.json"
    fixture = write_fixture(f'//- {config}\n{{"x": 1}}\n//- {place("AGENT.one.md")}\nmine\n', tmp_path)
    base = load_folder(fixture, FOLDER, overlays={config: '{"x": 2}'})
    changed = frozenset({fixture.path(config)})
    overlays = {config: '{"x": 3}'}
    again = load_folder(fixture, FOLDER, overlays=overlays, previous=base, changed=changed, agent="one")
    assert (again.agent, "mine" in again.prompt.text) == ("one", True)


def test_files_come_and_go(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/c/.nexus3/SOUL.md\nfar\n//- /home/c/a/x\n", tmp_path)
    near = tmp_path / "home/c/a/.nexus3/SOUL.md"
    first = load_folder(fixture, FOLDER)
    assert {fixture.path(place(name)) for name in FILES} <= set(first.layers.watch)
    near.parent.mkdir()
    near.write_text("near")
    created = load_folder(fixture, FOLDER, previous=first)
    near.with_name("new").write_text("moved here")
    near.with_name("new").replace(near)
    replaced = load_folder(fixture, FOLDER, previous=created)
    unsaved = load_folder(fixture, FOLDER, overlays={place("SOUL.md"): "typed"}, previous=replaced)
    near.unlink()
    deleted = load_folder(fixture, FOLDER, previous=unsaved)
    snapshots = (first, created, replaced, unsaved, deleted)
    texts = [snapshot.prompt.text.partition("SOUL.md\n\n")[2].split("\n")[0] for snapshot in snapshots]
    assert texts == ["far", "near", "moved here", "typed", "far"]
    assert [snapshot.revision for snapshot in snapshots] == [1, 2, 3, 4, 5]
    assert deleted.prompt == first.prompt
    assert [shown(fixture, snapshot)[0] for snapshot in (first, created)] == [
        "/home/c/.nexus3/SOUL.md soul",
        "/home/c/.nexus3/SOUL.md soul shadowed",
    ]


def test_unsaved_text_counts_where_there_is_no_directory_yet(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/c/a/x\n", tmp_path)
    first = load_folder(fixture, FOLDER)
    path = place("c:CONTEXT.md")
    assert fixture.path(path) in first.layers.watch
    edited = load_folder(
        fixture,
        FOLDER,
        overlays={path: "typed"},
        previous=first,
        changed=frozenset({fixture.path(path)}),
    )
    assert shown(fixture, edited) == [f"{path} context"]
    assert "\n\ntyped\n\n" in edited.prompt.text


def test_a_file_that_cannot_be_used_says_so_and_none_stands_in_its_place(tmp_path: Path) -> None:
    text = "".join(f"//- {place(f'c:{name}')}\nfar {name}\n" for name in FILES)
    fixture = write_fixture(text, tmp_path)
    near = tmp_path / "home/c/a/.nexus3"
    (near / "AGENT.md").mkdir(parents=True)
    (near / "SOUL.md").write_bytes(b"\xff\xfe" + "soul".encode("utf-16-le"))
    (near / "CONTEXT.md").write_bytes(b"x" * (PROMPT_LIMIT + 1))
    (near / "IDENTITY.md").symlink_to("IDENTITY.md")
    snapshot = load_folder(fixture, FOLDER)
    assert shown(fixture, snapshot)[-4:] == [
        "/home/c/a/.nexus3/AGENT.md agent unreadable",
        "/home/c/a/.nexus3/SOUL.md soul invalid",
        "/home/c/a/.nexus3/IDENTITY.md identity unreadable",
        "/home/c/a/.nexus3/CONTEXT.md context too-large",
    ]
    assert "far" not in snapshot.prompt.text
    assert codes(fixture, snapshot) == [
        ("/home/c/a/.nexus3/AGENT.md", "layer.not-a-file"),
        ("/home/c/a/.nexus3/SOUL.md", "layer.encoding"),
        ("/home/c/a/.nexus3/IDENTITY.md", "layer.unreadable"),
        ("/home/c/a/.nexus3/CONTEXT.md", "layer.too-large"),
    ]


def test_nothing_is_said_about_a_shadowed_file(tmp_path: Path) -> None:
    text = f"//- {place('c:SOUL.md')}\n@gone.md \u202e\n//- {place('SOUL.md')}\n@gone.md\n\u200b\n"
    fixture = write_fixture(text, tmp_path)
    (tmp_path / "home/c/.nexus3/AGENT.md").write_bytes(b"\0")
    (tmp_path / "home/c/a/.nexus3/AGENT.md").write_text("fine")
    own = place("SOUL.md")
    found = codes(fixture, load_folder(fixture, FOLDER))
    assert found == [(own, "prompt.import-missing"), (own, "prompt.hidden-text")]


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("@../docs/x.md", None),
        ("@../../x.md", "prompt.import-outside"),
        ("@~/x.md", "prompt.import-outside"),
        ("@../.env", "prompt.import-refused"),
        ("@CONTEXT.md", "prompt.import-cycle"),
        ("@AGENT.md", "prompt.import-repeated"),
        ("@../NEXUS.md", "prompt.import-repeated"),
    ],
)
def test_imports_are_those_of_instruction_files(tmp_path: Path, token: str, code: str | None) -> None:
    text = f"""
    //- {place("CONTEXT.md")}
    {token}
    //- {place("AGENT.md")}
    Agent
    //- {FOLDER}/NEXUS.md
    Rules
    //- {FOLDER}/docs/x.md
    Imported
    //- /home/c/x.md
    //- {FOLDER}/.env
    SECRET=1
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert codes(fixture, snapshot) == ([] if code is None else [(place("CONTEXT.md"), code)])
    assert ("Imported" in snapshot.prompt.text) == (code is None)
    assert "SECRET" not in snapshot.prompt.text


def test_a_text_is_in_the_prompt_once(tmp_path: Path) -> None:
    text = f"""
    //- {place("AGENT.md")}
    @../shared.md
    //- {FOLDER}/shared.md
    Said once
    //- {FOLDER}/NEXUS.md
    @shared.md
    //- {FOLDER}/.nexus3/config.json
    {{"context": {{"instruction_files": ["NEXUS.md", "AGENT.md"]}}}}
    //- {place("c:SOUL.md")}
    Once, too
    //- /home/c/.nexus3/config.json
    {{"context": {{"instruction_files": ["SOUL.md"]}}}}
    """
    fixture = write_fixture(text, tmp_path)
    (tmp_path / "home/c/a/.nexus3/CONTEXT.md").symlink_to("AGENT.md")
    snapshot = load_folder(fixture, FOLDER)
    assert snapshot.prompt.text.count("Said once") == 1
    assert snapshot.prompt.text.count("Once, too") == 1
    assert "## Context Instructions" not in snapshot.prompt.text
    assert codes(fixture, snapshot) == [(f"{FOLDER}/NEXUS.md", "prompt.import-repeated")]


@pytest.mark.parametrize(
    ("blank", "name", "agent", "counts"),
    [
        ("SOUL.md", "c:SOUL.md", None, True),
        ("SOUL.md", "g:SOUL.md", None, True),
        ("c:SOUL.md", "SOUL.md", None, False),
        ("IDENTITY.md", "g:IDENTITY.md", None, False),
        ("IDENTITY.md", "c:IDENTITY.md", None, True),
        ("AGENT.one.md", "c:AGENT.one.md", "one", True),
        ("AGENT.one.md", "AGENT.md", "one", True),
        ("AGENT.md", "c:AGENT.one.md", "one", False),
    ],
)
def test_an_empty_file_is_as_if_it_were_not_there(
    tmp_path: Path, blank: str, name: str, agent: str | None, counts: bool
) -> None:
    """It removes nothing; a problem tells which file counts instead."""
    fixture = write_fixture(f"//- {place(blank)}\n \n//- {place(name)}\n<text>\n", tmp_path)
    (tmp_path / FOLDER.strip("/")).mkdir(parents=True, exist_ok=True)
    snapshot = load_folder(fixture, FOLDER, agent=agent)
    assert "<text>" in snapshot.prompt.text
    assert snapshot.prompt.text.count(f"Source: {fixture.path('/home')}") == 1
    said = [(place(blank), "layer.empty")] if counts else []
    assert codes(fixture, snapshot) == said
    for problem in snapshot.problems:
        assert (problem.severity, problem.related[0].path) == (
            Severity.INFORMATION,
            fixture.path(place(name)),
        )
        assert f"{fixture.path(place(name))} counts instead" in problem.message


@pytest.mark.parametrize("role", ["manager", "worker"])
def test_an_empty_file_is_the_same_for_a_folder_and_for_an_agent_there(tmp_path: Path, role: str) -> None:
    text = f"//- {place('c:SOUL.md')}\n<soul>\n//- {place('SOUL.md')}\n\n//- {place('NEXUS.md')}\nRules\n"
    fixture = write_fixture(text, tmp_path)
    company, opened = load_folder(fixture, "/home/c"), load_folder(fixture, FOLDER)
    inputs = load_inputs(fixture.path("/home"))
    agent = AgentPool(company, inputs).view_as("one", "a", role)
    assert [one.prompt.text.count("<soul>") for one in (company, opened, agent)] == [1, 1, 1]
    said = [(place("SOUL.md"), "layer.empty")]
    assert codes(fixture, opened) == codes(fixture, agent.snapshot) == said


def test_an_empty_file_by_itself_is_no_section_and_no_news(tmp_path: Path) -> None:
    fixture = write_fixture(f"//- {place('SOUL.md')}\n\n//- {place('CONTEXT.md')}\n\n", tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert "## Soul" not in headings(snapshot)
    assert codes(fixture, snapshot) == []
    assert shown(fixture, snapshot)[-1] == f"{place('CONTEXT.md')} context"
    typed = load_folder(fixture, FOLDER, overlays={place("SOUL.md"): "typed"}, previous=snapshot)
    assert "## Soul" in headings(typed)


def test_a_link_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    fixture = write_fixture(f"//- /home/key\nkey\n//- {place('c:SOUL.md')}\nfar\n", tmp_path)
    directory = tmp_path / "home/c/a/.nexus3"
    directory.mkdir(parents=True)
    (directory / "SOUL.md").symlink_to(tmp_path / "home/key")
    snapshot = load_folder(fixture, FOLDER)
    assert shown(fixture, snapshot) == [f"{place('c:SOUL.md')} soul"]
    assert codes(fixture, snapshot) == [(place("SOUL.md"), "layer.refused")]


@AS_ROOT
def test_a_planted_file_in_a_shared_directory_is_not_read(tmp_path: Path) -> None:
    fixture = write_fixture("//- /tmp/.nexus3/AGENT.md\nPLANTED\n//- /tmp/.nexus3/SOUL.md\nmine\n", tmp_path)
    (tmp_path / "tmp").chmod(0o1777)
    os.chown(tmp_path / "tmp/.nexus3/AGENT.md", 4242, 4242)
    (tmp_path / "tmp/work").mkdir()
    for folder in ("/tmp", "/tmp/work"):
        snapshot = load_folder(fixture, folder)
        assert shown(fixture, snapshot) == ["/tmp/.nexus3/SOUL.md soul"]
        assert "PLANTED" not in snapshot.prompt.text
        assert codes(fixture, snapshot) == [("/tmp/.nexus3/AGENT.md", "layer.refused")]


def test_sections_of_one_name_in_two_layers_are_reported_at_the_nearer_one(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/config.json
    {"context": {"sections": [{"name": "Style", "content": "a"}, {"name": "Same", "content": "s"}]}}
    //- /home/c/a/.nexus3/config.json
    {"context": {"sections": [{"name": "Same", "content": "s"}, {"content": "b", "name": " Style"}]}}
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert headings(snapshot).count("## Style") == 2
    assert headings(snapshot).count("## Same") == 1
    (problem,) = snapshot.problems
    (other,) = problem.related
    texts = snapshot.layers.texts
    assert (problem.code, texts[problem.path][slice(*problem.span)]) == ("prompt.section-name", '" Style"')
    assert (relative(fixture, other.path), texts[other.path][slice(*other.span)]) == (
        "/home/.nexus3/config.json",
        '"Style"',
    )


def test_a_section_whose_file_is_in_the_prompt_already_says_so(tmp_path: Path) -> None:
    text = f"""
    //- {place("AGENT.md")}
    Agent
    //- {FOLDER}/.nexus3/config.json
    {{"context": {{"sections": [{{"name": "S", "file": ".nexus3/AGENT.md"}}]}}}}
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert snapshot.prompt.text.count("Agent\n\n---") == 1
    (problem,) = snapshot.problems
    marked = snapshot.layers.texts[problem.path][slice(*problem.span)]
    assert (problem.code, problem.severity, marked) == ("prompt.section-file", 3, '".nexus3/AGENT.md"')


def test_the_context_loader_loads_for_an_agent(tmp_path: Path) -> None:
    names = ["g:IDENTITY.md", "c:AGENT.md", "AGENT.one.md", "SOUL.md"]
    fixture = write_fixture("".join(f"//- {place(name)}\n<{name}>\n" for name in names), tmp_path)
    loader = ContextLoader(environ={"HOME": fixture.path("/home")}, environment=HOST)
    loaded = loader.load(Path(fixture.path(FOLDER)), agent="one")
    assert "<AGENT.one.md>" in loaded.system_prompt
    assert [(relative(fixture, str(path)), layer) for path, layer in loaded.sources.prompt_sources[1:]] == [
        (place("g:IDENTITY.md"), "global"),
        (place("AGENT.one.md"), "local"),
        (place("SOUL.md"), "local"),
    ]
    assert "<c:AGENT.md>" in loader.load(Path(fixture.path(FOLDER))).system_prompt


def test_the_prompt_loader_knows_two_files_only(tmp_path: Path) -> None:
    text = f"""
    //- {place("AGENT.md")}
    @x.md
    //- {FOLDER}/.nexus3/x.md
    X
    //- {FOLDER}/NEXUS.md
    @.nexus3/x.md
    """
    fixture = write_fixture(text, tmp_path)
    loader = PromptLoader(environ={"HOME": fixture.path("/home")})
    content = loader.load(cwd=Path(fixture.path(FOLDER))).content
    assert "\n\n# Project Configuration\n\nX\n\n# Environment\n\n" in content
    assert "Agent Definition" not in content
