"""Imports: which tokens of an instruction file include a file, and what becomes of the others."""

import os
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.prompt.imports import MAX_CHARACTERS, MAX_FILES, MAX_LOOKUPS, import_tokens
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
        ("@picture.md", "unreadable"),
        ("@main.py", "refused"),
        ("@.env", "refused"),
        ("@.env.md", "refused"),
        ("@.git/config", "refused"),
        ("@notes/.private/x.md", "refused"),
        ("@innocent.md", "refused"),
        ("@NEXUS.md", "cycle"),
    ],
)
def test_a_file_that_cannot_be_included_is_reported(tmp_path: Path, token: str, code: str) -> None:
    text = f"""
    //- /home/outside.md
    //- /home/notes.md
    //- /home/a-sibling/x.md
    //- /home/a/main.py
    //- /home/a/.env
    TOKEN=1
    //- /home/a/.env.md
    //- /home/a/.git/config
    //- /home/a/notes/.private/x.md
    //- /home/a/NEXUS.md
    See {token}, please
    """
    write_fixture(text, tmp_path)
    (tmp_path / "home/a/link.md").symlink_to(tmp_path / "home/outside.md")
    (tmp_path / "home/a/innocent.md").symlink_to(tmp_path / "home/a/.env")
    (tmp_path / "home/a/picture.md").write_bytes(b"\x89PNG\x00\x00")
    fixture = check(tmp_path, text, f"See {token}, please", {token: code})
    if code == "refused":
        assert not [
            path for path, text in load_folder(fixture, FOLDER).layers.texts.items() if "TOKEN" in text
        ]


@pytest.mark.parametrize("path", [".claude/x.md", ".github/a/x.mdc", ".cursor/rules/x.mdc", ".nexus3/x.md"])
def test_the_directories_of_assistants_are_imported_from(tmp_path: Path, path: str) -> None:
    check(tmp_path, f"//- /home/a/NEXUS.md\n@{path}\n//- /home/a/{path}\nX\n", "X")


def test_a_refused_file_is_looked_at_again_when_it_goes(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\n@.env\n//- /home/a/.env\nA=1\n", tmp_path)
    first = load_folder(fixture, FOLDER)
    assert fixture.path("/home/a/.env") in first.layers.watch
    (tmp_path / "home/a/.env").unlink()
    assert load_folder(fixture, FOLDER, previous=first).problems == ()


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")
def test_a_file_of_another_user_in_a_shared_directory_is_refused(tmp_path: Path) -> None:
    text = """
    //- /home/a/NEXUS.md
    @planted.md
    @shared/planted.md
    @mine.md
    //- /home/a/planted.md
    Planted
    //- /home/a/shared/planted.md
    Planted
    //- /home/a/mine.md
    Mine
    //- /home/a/.nexus3/config.json
    {"context": {"sections": [{"name": "S", "file": "planted.md"}]}}
    """
    fixture = write_fixture(text, tmp_path)
    for path in ("planted.md", "shared/planted.md"):
        os.chown(fixture.path(f"{FOLDER}/{path}"), 4242, 4242)
    assert "Planted" in load_folder(fixture, FOLDER).prompt.text  # of a folder of one's own, all is trusted
    (tmp_path / "home/a/shared").chmod(0o1777)
    assert codes_of(fixture) == ["prompt.import-refused", "prompt.section-file"]
    (tmp_path / "home/a").chmod(0o1777)
    assert codes_of(fixture) == ["prompt.import-refused", "prompt.import-refused", "prompt.section-file"]
    snapshot = load_folder(fixture, FOLDER)
    assert ("Mine" in snapshot.prompt.text, "Planted" in snapshot.prompt.text) == (True, False)
    assert "belongs to another user (uid 4242)" in snapshot.problems[0].message
    assert fixture.path(f"{FOLDER}/planted.md") not in snapshot.layers.texts


def codes_of(fixture: Fixture) -> list[str]:
    return [problem.code for problem in load_folder(fixture, FOLDER).problems]


def test_a_secret_in_the_prompt_is_reported_and_not_repeated(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    text = f"""
    //- /home/a/NEXUS.md
    @x.md
    Push with {secret}, not with ghp_<your token>.
    //- /home/a/x.md
    Authorization: Bearer {secret}
    //- /home/a/.nexus3/config.json
    {{"context": {{"sections": [{{"name": "S", "content": "use {secret}"}}]}}}}
    """
    snapshot = load_folder(write_fixture(text, tmp_path), FOLDER)
    texts = snapshot.layers.texts
    found = [
        (os.path.basename(one.path), one.code, texts[one.path][slice(*one.span)]) for one in snapshot.problems
    ]
    assert sorted(found) == [
        ("NEXUS.md", "prompt.secret", secret),
        ("config.json", "prompt.secret", f'"use {secret}"'),
        ("x.md", "prompt.secret", secret),
    ]
    assert {one.fix for one in snapshot.problems} == {None}
    assert secret not in "".join(one.message for one in snapshot.problems)


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
    tokens = "\n".join(f"@missing/{n}.md" for n in range(MAX_LOOKUPS * 2))
    fixture = write_fixture(f"//- /home/a/NEXUS.md\n{tokens}\n", tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    looked = [path for path in snapshot.layers.watch if f"{os.sep}missing{os.sep}" in path]
    assert len(looked) == MAX_LOOKUPS
    assert codes_of(fixture)[-1:] == ["prompt.import-limit"]
    assert codes_of(fixture).count("prompt.import-limit") == 1


def test_what_is_read_for_imports_is_bounded(tmp_path: Path) -> None:
    """Characters that are read count, whether the file is included in the end or not."""
    big = "x" * (MAX_CHARACTERS // 4)
    files = "".join(f"//- /home/a/{n}.md\n{big}\n" for n in range(8))
    tokens = "".join(f"@{n}.md\n" for n in range(8))
    snapshot = load_folder(write_fixture(f"//- /home/a/NEXUS.md\n{tokens}{files}", tmp_path), FOLDER)
    assert snapshot.prompt.text.count(big) == 3
    assert sum(
        len(text) for path, text in snapshot.layers.texts.items() if path.startswith(str(tmp_path))
    ) < (MAX_CHARACTERS)
    assert [problem.code for problem in snapshot.problems if problem.code != "prompt.size"] == [
        "prompt.import-limit"
    ]


def test_the_number_of_files_is_bounded(tmp_path: Path) -> None:
    count = MAX_FILES + 50
    files = "".join(f"//- /home/a/{n}.md\nfile {n}\n" for n in range(count))
    tokens = "".join(f"@{n}.md\n" for n in range(count))
    snapshot = load_folder(write_fixture(f"//- /home/a/NEXUS.md\n{tokens}{files}", tmp_path), FOLDER)
    assert snapshot.prompt.text.count("\nfile ") == MAX_FILES
    assert [problem.code for problem in snapshot.problems] == ["prompt.import-limit"]


@given(st.text(alphabet="`~@<!-> \n\rax.*/", max_size=200))
def test_code_ranges_and_tokens_are_in_order_and_apart(text: str) -> None:
    ranges = code_ranges(text)
    assert all(span.start < span.end <= len(text) for span in ranges)
    assert all(before.end <= after.start for before, after in pairwise(ranges))
    for token in import_tokens(text):
        assert text[token.span.start] == "@"
        assert not [span for span in ranges if span.start <= token.span.start < span.end]


@pytest.mark.parametrize("unit", ["` `` ", "<!--", "`a`<!--", "```\n", "> - ", "`a\n", "- ```x\n"])
def test_code_ranges_take_linear_time(unit: str) -> None:
    """Sixteen times the text takes about sixteen times as long; quadratic would be 256 times."""
    small, large = (seconds(unit * (size // len(unit))) for size in (50_000, 800_000))
    assert large < 100 * max(small, 0.005)


def seconds(text: str) -> float:
    started = time.perf_counter()
    code_ranges(text)
    return time.perf_counter() - started
