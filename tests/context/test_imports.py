"""Imports: which tokens of an instruction file include a file, and what becomes of the others."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.prompt.imports import MAX_LOOKUPS, import_tokens
from nexus_context.prompt.markdown import code_ranges
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative

FOLDER = "/home/a"


def check(root: Path, text: str, expected: str, problems: dict[str, str] | None = None) -> Fixture:
    """What stands in the prompt for the folder's NEXUS.md, and each problem: token → code."""
    fixture = write_fixture(text, root)
    snapshot = load_folder(fixture, FOLDER)
    content = snapshot.prompt.text.partition("## Project Configuration\n")[2]
    body = content.partition("\n\n")[2].partition("\n\n---\n\n")[0]
    assert relative(fixture, body) == expected
    found = {
        snapshot.layers.texts[problem.path][problem.span.start : problem.span.end]: problem.code
        for problem in snapshot.problems
        if problem.code.startswith("prompt.")
    }
    assert found == {token: f"prompt.import-{code}" for token, code in (problems or {}).items()}
    return fixture


def test_a_token_alone_on_its_line_is_replaced(tmp_path: Path) -> None:
    text = """
    //- /home/a/NEXUS.md
    Before
    @docs/rules.md
    After
    //- /home/a/docs/rules.md

    Rule one
    @more.md

    //- /home/a/docs/more.md
    Rule two
    """
    check(tmp_path, text, "Before\nRule one\nRule two\nAfter")


def test_a_token_in_a_sentence_stays_and_the_file_follows_the_line(tmp_path: Path) -> None:
    text = """
    //- /home/a/NEXUS.md
    See @README.md, and @"x" or (@x.md).
    - style: @style.md
    End
    //- /home/a/README.md
    Read me
    //- /home/a/style.md
    Style
    //- /home/a/x.md
    """
    expected = 'See @README.md, and @"x" or (@x.md).\nRead me\n- style: @style.md\nStyle\nEnd'
    check(tmp_path, text, expected)


def test_two_tokens_on_a_line_are_followed_by_both_files(tmp_path: Path) -> None:
    text = "//- /home/a/NEXUS.md\n@x.md @y.md\r\nend\n//- /home/a/x.md\nX\n//- /home/a/y.md\nY\n"
    check(tmp_path, text, "@x.md @y.md\nX\nY\nend")


def test_code_and_comments_are_skipped(tmp_path: Path) -> None:
    text = """
    //- /home/a/NEXUS.md
    `@x.md` and ``a ` @x.md``
    ```
    @x.md
    ```
    - ~~~md
      @x.md
      ~~~
    <!-- @x.md
    @x.md -->
    mail@x.md
    //- /home/a/x.md
    X
    """
    fixture = check(
        tmp_path, text, write_fixture(text, tmp_path).files[str(tmp_path / "home/a/NEXUS.md")].strip()
    )
    assert fixture.path("/home/a/x.md") not in load_folder(fixture, FOLDER).layers.texts


@pytest.mark.parametrize(
    "token",
    [
        "@user",
        "@pytest.fixture",
        "@types/node",
        "@scope/package@1.0",
        "@Override",
        "@media",
        "@/components",
        "@...",
    ],
)
def test_what_is_no_file_is_left_alone(tmp_path: Path, token: str) -> None:
    check(tmp_path, f"//- /home/a/NEXUS.md\nUse {token} here\n", f"Use {token} here")


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("@missing.md", "missing"),
        ("@./missing", "missing"),
        ("@docs/guide.mdc", "missing"),
        ("@../outside.md", "outside"),
        ("@../a-sibling/x.md", "outside"),
        ("@~/notes.md", "outside"),
        ("@/etc/motd.txt", "outside"),
        ("@link.md", "outside"),
        ("@picture.png", "unreadable"),
        ("@NEXUS.md", "cycle"),
    ],
)
def test_a_file_that_cannot_be_included_is_reported(tmp_path: Path, token: str, code: str) -> None:
    text = f"""
    //- /home/outside.md
    //- /home/notes.md
    //- /home/a-sibling/x.md
    //- /home/a/NEXUS.md
    See {token}, please
    """
    write_fixture(text, tmp_path)
    (tmp_path / "home/a/link.md").symlink_to(tmp_path / "home/outside.md")
    (tmp_path / "home/a/picture.png").write_bytes(b"\x89PNG\x00\x00")
    check(tmp_path, text, f"See {token}, please", {token: code})


def test_an_ancestor_imports_from_its_own_directory_only(tmp_path: Path) -> None:
    text = """
    //- /home/top.md
    //- /home/a/AGENTS.md
    @../top.md
    @b/in.md
    //- /home/a/b/in.md
    inside
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, "/home/a/b")
    assert "inside" in snapshot.prompt.text
    assert [problem.code for problem in snapshot.problems] == ["prompt.import-outside"]


def test_the_global_file_may_import_from_anywhere(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/NEXUS.md
    @~/notes/one.md
    @{root}/srv/two.md
    @../notes/three.md
    //- /home/notes/one.md
    One
    //- /srv/two.md
    Two
    //- /home/notes/three.md
    Three
    //- /home/a/x
    """
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert "One\nTwo\nThree" in snapshot.prompt.text
    assert snapshot.problems == ()
    assert {fixture.path("/srv/two.md"), fixture.path("/home/notes/one.md")} <= set(snapshot.layers.watch)


def test_cycles_and_depth_are_cut(tmp_path: Path) -> None:
    files = "".join(f"//- /home/a/{n}.md\n{n}\n@{n + 1}.md\n" for n in range(1, 8))
    check(
        tmp_path,
        f"//- /home/a/NEXUS.md\n@1.md\n{files}",
        "1\n2\n3\n4\n5\n@6.md",
        {"@6.md": "depth"},
    )
    cycle = "//- /home/a/NEXUS.md\n@x.md\n//- /home/a/x.md\nX\n@y.md\n//- /home/a/y.md\nY\n@x.md\n"
    check(tmp_path, cycle, "X\nY\n@x.md", {"@x.md": "cycle"})


def test_a_file_is_included_once(tmp_path: Path) -> None:
    text = "//- /home/a/NEXUS.md\n@x.md\n@./x.md\n//- /home/a/x.md\nX\n"
    check(tmp_path, text, "X\n@./x.md", {"@./x.md": "repeated"})


def test_unsaved_text_is_imported(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\n@new.md\n", tmp_path)
    snapshot = load_folder(fixture, FOLDER, overlays={"/home/a/new.md": "not saved yet"})
    assert "not saved yet" in snapshot.prompt.text
    assert snapshot.problems == ()


def test_spaces_are_escaped(tmp_path: Path) -> None:
    check(tmp_path, "//- /home/a/NEXUS.md\n@my\\ notes.md\n//- /home/a/my notes.md\nNotes\n", "Notes")


def test_a_directory_is_not_imported(tmp_path: Path) -> None:
    check(
        tmp_path, "//- /home/a/NEXUS.md\nSee @docs/ and @docs\n//- /home/a/docs/x\n", "See @docs/ and @docs"
    )


def test_many_imports_are_bounded(tmp_path: Path) -> None:
    tokens = "\n".join(f"@missing/{n}" for n in range(MAX_LOOKUPS * 2))
    fixture = write_fixture(f"//- /home/a/NEXUS.md\n{tokens}\n", tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    looked = [path for path in snapshot.layers.watch if f"{os.sep}missing{os.sep}" in path]
    assert len(looked) == MAX_LOOKUPS
    assert [problem.code for problem in snapshot.problems] == ["prompt.import-limit"]


@given(st.text(alphabet="`~@<!-> \n\rax.*/", max_size=200))
def test_code_ranges_and_tokens_are_in_order_and_apart(text: str) -> None:
    ranges = code_ranges(text)
    assert all(span.start < span.end <= len(text) for span in ranges)
    assert all(before.end <= after.start for before, after in pairwise(ranges))
    for token in import_tokens(text):
        assert text[token.span.start] == "@"
        assert not [span for span in ranges if span.start <= token.span.start < span.end]


def test_code_ranges_take_linear_time() -> None:
    for text in (
        "` `` " * 100_000,
        "<!--" * 200_000,
        "`a`<!--" * 100_000,
        "```\n" * 100_001,
        "> - " * 200_000,
    ):
        code_ranges(text)
