"""The prompt: its text, and the source of its every character."""

import json
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.errors import Span
from nexus_context.folder.prompt.render import Fragment, Prompt, places_of, tiled
from nexus_context.folder.prompt.sections import Part
from nexus_context.folder.prompt.texts import Piece, fill, moment, unix_lines
from nexus_context.folder.request_prompt import prompt_for
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative
from support.source_map import fragment_at, source_at

NOW = datetime(2026, 1, 13, 14, 30, tzinfo=UTC)
ENVIRONMENT = """\
## Environment

Host: box
Operating system: Debian GNU/Linux 12
Architecture: x86_64
Working directory: /home/a
Mode: Editor

## Active Configuration

Permission level: trusted"""


def check(root: Path, text: str, folder: str, expected: str) -> tuple[Fixture, Snapshot]:
    """The whole prompt, with `{environment}` for the description of the host."""
    fixture = write_fixture(text, root)
    snapshot = load_folder(fixture, folder)
    assert relative(fixture, snapshot.prompt.text) == expected.replace("{environment}", ENVIRONMENT)
    check_map(snapshot.prompt, snapshot.layers.texts)
    return fixture, snapshot


def check_map(prompt: Prompt, texts: dict[str, str]) -> None:
    """Fragments tile the text; verbatim ones equal their files' text, character by character."""
    position = 0
    for fragment in prompt.fragments:
        assert fragment.span.start == position < fragment.span.end
        position = fragment.span.end
        if not fragment.verbatim:
            continue
        path = fragment.path
        assert path is not None
        file_text = texts[path] if path in texts else Path(path).read_text(encoding="utf-8")
        start, end = fragment.source
        assert unix_lines(file_text[start:end]) == prompt.text[fragment.span.start : fragment.span.end]
    assert position == len(prompt.text)
    prompt.text.encode()


def source(fixture: Fixture, snapshot: Snapshot, shown: str) -> str:
    """File and source text of the fragment that contains a text of the prompt."""
    fragment = fragment_at(snapshot.prompt, snapshot.prompt.text.index(shown))
    assert fragment is not None
    assert fragment.path is not None
    file_text = snapshot.layers.texts.get(fragment.path) or Path(fragment.path).read_text(encoding="utf-8")
    name = (
        relative(fixture, fragment.path)
        if fragment.path in snapshot.layers.texts
        else Path(fragment.path).name
    )
    return f"{name}: {file_text[fragment.source.start : fragment.source.end]}"


def test_the_whole_prompt(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/NEXUS.md
    Be brief.
    //- /home/.nexus3/config.json
    {"provider": {"model": "claude-sonnet-4-5"}, "models": {"claude-sonnet-4-5": {"context_window": 200000}}}
    //- /home/.nexus3/mcp.json
    {"servers": [{"name": "a|b", "command": ["x"]}, {"name": "pg", "command": ["y"]}]}
    //- /home/company/.nexus3/NEXUS.md

    Company rules.

    //- /home/company/app/.nexus3/config.json
    {"context": {"include_readme": true}}
    //- /home/company/app/.nexus3/mcp.json
    {"mcpServers": {"pg": {"url": "http://localhost:1", "enabled": false}}}
    //- /home/company/app/AGENTS.md
    Project rules.
    @more.md
    //- /home/company/app/more.md
    More.
    //- /home/company/app/README.md
    Read me.
    """
    expected = """\
# System Configuration

## Global Configuration
Source: /home/.nexus3/NEXUS.md

Be brief.

## Ancestor Configuration (company)
Source: /home/company/.nexus3/NEXUS.md

Company rules.

## Project Configuration
Source: /home/company/app/AGENTS.md

Project rules.
More.

Source: /home/company/app/README.md

Read me.

---

## Capabilities

MCP servers configured: a|b
MCP servers disabled: pg

---

## Environment

Host: box
Operating system: Debian GNU/Linux 12
Architecture: x86_64
Working directory: /home/company/app
Mode: Editor

## Active Configuration

Model: claude-sonnet-4-5
Context window: 200000 tokens
Permission level: trusted

## MCP Servers

| Server | Type | Origin | Status |
|--------|------|--------|--------|
| a\\|b | stdio | global | configured |
| pg | http | local | disabled |"""
    fixture, snapshot = check(tmp_path, text, "/home/company/app", expected)
    assert [
        source(fixture, snapshot, shown)
        for shown in ("Be brief", "Company rules", "More.", "Model:", "| pg", "Mode:")
    ] == [
        "/home/.nexus3/NEXUS.md: Be brief.",
        "/home/company/.nexus3/NEXUS.md: Company rules.",
        "/home/company/app/more.md: More.",
        '/home/.nexus3/config.json: "claude-sonnet-4-5"',
        '/home/company/app/.nexus3/mcp.json: {"url": "http://localhost:1", "enabled": false}',
        "environment.md: \nMode: ",
    ]
    titles = [fragment.title for fragment in snapshot.prompt.fragments if fragment.layer == "local"]
    assert sorted(set(titles)) == [
        "Project Configuration",
        "Project Configuration: README.md",
        "Project Configuration: more.md",
    ]


def test_without_any_file_the_packaged_prompt_is_used(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/x\n", tmp_path)
    prompt = load_folder(fixture, "/home/a").prompt.text
    assert prompt.startswith("# System Configuration\n\n## Default Configuration\nSource: ")
    assert relative(fixture, prompt).endswith(f"\n\n---\n\n{ENVIRONMENT}")


def test_sections_stand_by_priority(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/NEXUS.md
    G
    //- /home/a/.nexus3/config.json
    {"context": {"section_separator": "\\n\\n", "sections": [
      {"name": "Last", "content": " one\\r\\ntwo ", "priority": 1},
      {"name": "First", "file": "docs/first.md", "priority": 900},
      {"name": "Gone", "file": "../gone.md"},
      {"name": "Empty", "content": " "}
    ]}}
    //- /home/a/docs/first.md
    First text
    @second.md
    //- /home/a/docs/second.md
    Second text
    """
    expected = """\
## First

First text
Second text

# System Configuration

## Global Configuration
Source: /home/.nexus3/NEXUS.md

G

{environment}

## Last

one
two"""
    fixture, snapshot = check(tmp_path, text, "/home/a", expected)
    assert source(fixture, snapshot, "one") == '/home/a/.nexus3/config.json: " one\\r\\ntwo "'
    (problem,) = snapshot.problems
    assert problem.code == "prompt.section-file"
    config = snapshot.layers.texts[problem.path]
    assert config[problem.span.start : problem.span.end] == '"../gone.md"'


def test_a_request_adds_its_own_text_model_and_date(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/NEXUS.md
    G
    //- /home/.nexus3/config.json
    {"models": {"big": {"context_window": 1000000}}, "context": {"datetime": {"placement": "system"}}}
    //- /home/a/x
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, "/home/a")
    assert prompt_for(snapshot) is snapshot.prompt
    prompt = prompt_for(snapshot, model="big", additional="Extra\r\ntext\n", now=NOW)
    after = relative(fixture, prompt.text).partition("\n\nG\n\n---\n\n")[2]
    assert after == (
        "## Additional Instructions\n\nExtra\ntext\n\n---\n\n"
        + ENVIRONMENT.replace("Permission", "Model: big\nContext window: 1000000 tokens\nPermission")
        + "\n\n---\n\n## Date\n\nToday is 2026-01-13."
    )
    check_map(prompt, snapshot.layers.texts)
    extra = fragment_at(prompt, prompt.text.index("Extra"))
    assert extra is not None
    assert (extra.section, extra.path) == ("additional", None)


def test_equal_files_give_equal_bytes(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\nx @y.md\n//- /home/a/y.md\n", tmp_path)
    one, two = load_folder(fixture, "/home/a"), load_folder(fixture, "/home/a", now=NOW)
    assert one.prompt == two.prompt


def test_carriage_returns_are_line_ends_and_every_character_is_found(tmp_path: Path) -> None:
    text = "//- /home/a/NEXUS.md\n\r\none\r\ntwo\rthree\n\r\nfour\r\n"
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, "/home/a")
    path = fixture.path("/home/a/NEXUS.md")
    file_text = snapshot.layers.texts[path]
    assert "one\ntwo\nthree\n\nfour" in snapshot.prompt.text
    assert "\r" not in snapshot.prompt.text
    for word in ("one", "two", "three", "four"):
        at = snapshot.prompt.text.rindex(word)
        assert source_at(snapshot.prompt, at, snapshot.layers.texts) == (path, file_text.index(word))
        assert list(places_of(snapshot.prompt, path, file_text.index(word), snapshot.layers.texts)) == [at]


def test_nothing_can_add_lines_or_characters_that_no_text_holds(tmp_path: Path) -> None:
    name = "a\udcff\nb"
    folder = tmp_path / "home" / name
    folder.mkdir(parents=True)
    (folder / "NEXUS.md").write_text("x")
    fixture = write_fixture("//- /home/.nexus3/NEXUS.md\nG\n", tmp_path)
    snapshot = load_folder(fixture, f"/home/{name}")
    assert "Working directory: /home/a\ufffd b\n" in relative(fixture, snapshot.prompt.text)
    check_map(snapshot.prompt, snapshot.layers.texts)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("2026-01-13 14:30", "2026-01-13", "UTC+00:00")),
        ({"timezone": "UTC"}, ("2026-01-13 14:30", "2026-01-13", "UTC")),
        ({"timezone": "nowhere/at all"}, ("2026-01-13 14:30", "2026-01-13", "nowhere/at all")),
        ({"format": "ddd DD MMM YY, hh:mm:ss A"}, ("Tue 13 Jan 26, 02:30:00 PM", "2026-01-13", "UTC+00:00")),
    ],
)
def test_moments_are_shown_as_set(options: dict[str, str], expected: tuple[str, str, str]) -> None:
    shown = moment(NOW, options)
    assert (shown["moment"], shown["date"], shown["zone"]) == expected


def test_values_are_never_looked_at_for_placeholders() -> None:
    pieces = fill("custom", {"name": [Piece("{content}")], "content": [Piece("{name} {x}")]})
    assert "".join(piece.text for piece in pieces) == "## {content}\n\n{name} {x}"


def test_pieces_that_belong_together_are_one_fragment() -> None:
    own = Piece("a", "/f", Span(0, 1), True), Piece("", "/f"), Piece("b", "/f", Span(1, 2), True)
    prompt = tiled([Part("layers", "local", "T", [*own, Piece("c", "/f"), Piece("d", "/f")])])
    assert prompt == Prompt(
        "abcd",
        (
            Fragment("layers", "local", "T", Span(0, 2), "/f", Span(0, 2), True),
            Fragment("layers", "local", "T", Span(2, 4), "/f", Span(0, 0)),
        ),
    )


WORDS = st.sampled_from(
    ["word", "@one.md", "@two.md", "`@one.md`", "é", "\r\n", "\n", "\r", " ", "@none.md", "😀"]
)
TEXT = st.lists(WORDS, max_size=12).map("".join)
PATHS = [
    "home/.nexus3/NEXUS.md",
    "home/a/AGENTS.md",
    "home/a/b/NEXUS.md",
    "home/a/b/README.md",
    "home/a/b/one.md",
    "home/a/b/.nexus3/AGENT.md",
    "home/a/.nexus3/CONTEXT.md",
    "home/.nexus3/IDENTITY.md",
]


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from([*PATHS, "home/a/b/two.md", "home/a/one.md"]), TEXT), st.booleans())
def test_every_character_has_its_source(files: dict[str, str], readme: bool) -> None:
    with TemporaryDirectory() as directory:
        root = Path(directory)
        config = json.dumps({"context": {"include_readme": readme}})
        for name, text in {**files, "home/a/b/.nexus3/config.json": config}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        snapshot = load_folder(Fixture(str(root), {}), "/home/a/b")
        check_map(snapshot.prompt, snapshot.layers.texts)
        check_characters(snapshot)
        assert load_folder(Fixture(str(root), {}), "/home/a/b").prompt == snapshot.prompt
        assert (
            load_folder(Fixture(str(root), {}), "/home/a/b", previous=snapshot).revision == snapshot.revision
        )


def check_characters(snapshot: Snapshot) -> None:
    """Each character of a verbatim fragment is the one at its source, and maps back."""
    prompt, texts = snapshot.prompt, snapshot.layers.texts
    for fragment in prompt.fragments:
        if not fragment.verbatim or fragment.path not in texts:
            continue
        for offset in range(*fragment.span):
            found = source_at(prompt, offset, texts)
            assert found is not None
            path, at = found
            assert unix_lines(texts[path][at]) == prompt.text[offset]
            assert offset in list(places_of(prompt, path, at, texts))
