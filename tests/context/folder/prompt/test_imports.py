"""Imports: which tokens of an instruction file include a file, and what happens to the others."""

import json
import os
import re
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.errors import Span
from nexus_context.folder.prompt.imports import (
    MAX_CHARACTERS,
    MAX_FILES,
    MAX_LOOKUPS,
    MAX_NAME,
    MAX_PATH,
    MAX_STEPS,
    _is_alone,
    _line,
    import_tokens,
    is_impossible,
)
from nexus_context.folder.prompt.markdown import code_ranges
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative

FOLDER = "/home/a"


def check(root: Path, text: str, expected: str, problems: dict[str, str] | None = None) -> Fixture:
    """The prompt's text of the folder's NEXUS.md, and each problem: token → code."""
    fixture = write_fixture(text, root)
    snapshot = load_folder(fixture, FOLDER)
    content = snapshot.prompt.text.partition("## Project Configuration\n")[2]
    body = content.partition("\n\n")[2].partition("\n\n---\n\n")[0]
    assert relative(fixture, body) == expected
    found = {
        snapshot.layers.texts[problem.path][problem.span.start : problem.span.end]: problem.code
        for problem in snapshot.problems
        if problem.code.startswith("prompt.import-")
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


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_table_is_not_cut(tmp_path: Path, end: str) -> None:
    """A file that a table row names follows the table."""
    rows = ["Rules", "| File | For |", "|---|---|", "| @x.md | a |", "| @y.md @x.md | b |", "  | c | |"]
    text = end.join([*rows, "After @z.md", "| @w.md |"])
    files = "".join(f"//- /home/a/{name}.md\n{name.upper()}\n" for name in "xyzw")
    fixture = write_fixture(f"//- /home/a/NEXUS.md\n{files}", tmp_path)
    (tmp_path / "home/a/NEXUS.md").write_bytes(text.encode())
    prompt = load_folder(fixture, FOLDER).prompt.text
    expected = [*rows, "X", "Y", "After @z.md", "Z", "| @w.md |", "W"]
    assert "\n".join(expected) in prompt


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
    loaded = load_folder(fixture, FOLDER)
    assert ("Mine" in loaded.prompt.text, "Planted" in loaded.prompt.text) == (True, False)
    assert relative(fixture, loaded.problems[0].message) == (
        "Nexus leaves the import @planted.md out: it belongs to another user (uid 4242). Only your "
        "own files and root's are read there."
    )
    assert fixture.path(f"{FOLDER}/planted.md") not in loaded.layers.texts


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
    codes = [code for code in codes_of(fixture) if code != "prompt.size"]
    assert codes == [*["prompt.import-missing"] * MAX_LOOKUPS, "prompt.import-limit"]


@pytest.mark.parametrize(
    "text",
    [
        "@" + "a/" * 500_000 + "x.md",
        "@" + "../" * 300_000 + "x.md",
        "".join(f"@a{n}/" + "b/" * 2_000 + "x.md\n" for n in range(250)),
        "".join("@" + f"a{n}/" * 80 + "x.md\n" for n in range(2_000)),  # below the length of a long path
        "@" + "a" * 1_000_000 + ".md",
        f"@{'a' * (MAX_NAME + 1)}.md\n" * 4_000,
        "@a " * 300_000,
        "@x.md" * 200_000,
    ],
)
def test_the_disk_is_asked_little_whatever_the_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\nRules\n", tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    asked = {"lstat": 0, "stat": 0, "open": 0}

    def counted(name: str) -> Callable[..., object]:
        real: Callable[..., object] = getattr(os, name)

        def call(*args: object, **kwargs: object) -> object:
            asked[name] += 1
            return real(*args, **kwargs)

        return call

    for name in asked:
        monkeypatch.setattr(os, name, counted(name))
    snapshot = load_folder(fixture, FOLDER, overlays={f"{FOLDER}/NEXUS.md": text}, previous=snapshot)
    monkeypatch.undo()
    assert sum(asked.values()) < 4 * (MAX_STEPS + MAX_LOOKUPS)
    assert max((len(problem.message) for problem in snapshot.problems), default=0) < 500
    assert len(snapshot.problems) <= MAX_LOOKUPS + 2


@pytest.mark.parametrize(
    "name",
    [
        "a/" * (MAX_PATH // 2) + "x.md",
        "a" * (MAX_NAME + 1) + ".md",
        "\N{LATIN SMALL LETTER E WITH ACUTE}" * (MAX_NAME // 2) + ".md",  # bytes count
        "~/" + "a/" * MAX_PATH + "x.md",
    ],
)
@pytest.mark.parametrize("where", ["/home/a/NEXUS.md", "/home/.nexus3/NEXUS.md"])
def test_what_is_longer_than_a_path_is_a_missing_file(tmp_path: Path, name: str, where: str) -> None:
    text = f"//- {where}\nSee @{name} and @{name.removesuffix('.md').replace('~/', '')}\n//- /home/a/x\n"
    snapshot = load_folder(write_fixture(text, tmp_path), FOLDER)
    (problem,) = snapshot.problems
    assert problem.code == "prompt.import-missing"
    assert snapshot.layers.texts[problem.path][slice(*problem.span)] == f"@{name}"
    assert f"Nexus leaves the import @{name[:60]}…{name[-20:]} out: " in problem.message
    assert len(problem.message) < 300
    assert not [path for path in snapshot.layers.watch if len(path) > MAX_PATH]


def test_an_address_is_no_file(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/NEXUS.md\n@https://ana:hunter2@h.org/x.md @http://h.net\n", tmp_path)
    messages = [
        one.message for one in load_folder(fixture, FOLDER).problems if one.code == "prompt.import-missing"
    ]
    why = "it is a URL, and only files can be imported. Copy its text into a file."
    assert messages == [f"Nexus leaves the import @https://{'*' * 22} out: {why}"]


def test_a_long_path_in_a_message_is_shortened(tmp_path: Path) -> None:
    name = "/".join(["directory"] * 100) + "/x.md"
    fixture = write_fixture(f"//- /home/a/NEXUS.md\n@{name}\n", tmp_path)
    (problem,) = load_folder(fixture, FOLDER).problems
    assert (
        f"Nexus leaves the import @{name[:60]}…{name[-20:]} out: there is no file {tmp_path}"
        in problem.message
    )
    assert len(problem.message) < 500
    config = f'{{"context": {{"sections": [{{"name": "S", "file": "{name}"}}]}}}}'
    fixture = write_fixture(f"//- /home/a/.nexus3/config.json\n{config}\n", tmp_path / "b")
    (problem,) = load_folder(fixture, FOLDER).problems
    assert (problem.code, len(problem.message) < 500) == ("prompt.section-file", True)
    assert "it does not exist" in problem.message


def test_a_section_names_no_file_longer_than_a_path(tmp_path: Path) -> None:
    for where in ("/home/a", "/home"):
        config = f'{{"context": {{"sections": [{{"name": "S", "file": "{"a/" * 1_000_000}x.md"}}]}}}}'
        text = f"//- {where}/.nexus3/config.json\n{config}\n//- /home/a/x\n"
        snapshot = load_folder(write_fixture(text, tmp_path / where.strip("/")), FOLDER)
        (problem,) = snapshot.problems
        assert (problem.code, len(problem.message) < 500) == ("prompt.section-file", True)


@pytest.mark.parametrize("where", ["/home/a", "/home"])
@pytest.mark.parametrize("name", ["a\0b", "a\0b.md", "~/a\0b.md", "\0", "sub/../\0/x.md"])
def test_a_section_names_no_file_that_cannot_be(tmp_path: Path, where: str, name: str) -> None:
    config = json.dumps({"context": {"sections": [{"name": "S", "file": name}]}})
    text = f"//- {where}/.nexus3/config.json\n{config}\n//- /home/a/x\n"
    snapshot = load_folder(write_fixture(text, tmp_path), FOLDER)
    (problem,) = snapshot.problems
    assert (problem.code, "\0" in problem.message) == ("prompt.section-file", False)
    assert "contains a character that no file name can contain" in problem.message
    marked = snapshot.layers.texts[problem.path][slice(*problem.span)]
    assert marked == json.dumps(name)


@pytest.mark.parametrize("name", ["a\0b", "\ud800.md", "\0"])
def test_a_name_that_no_file_can_have(name: str) -> None:
    assert is_impossible(name)
    with pytest.raises(ValueError, match=r"null|surrogates"):
        os.lstat(name)


NAMES = st.text(max_size=20) | st.text("a./~\\@ \0\ud800\udc80\n\r\té", max_size=20)


@settings(max_examples=80, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=4), st.sampled_from(["/home/a", "/home"]))
def test_whatever_a_file_names_the_folder_is_loaded(names: list[str], where: str) -> None:
    """Each name as a section's file, an import, and every other setting that is a path or a name."""
    config = {
        "context": {
            "sections": [{"name": f"{at} {name}", "file": name} for at, name in enumerate(names)],
            "instruction_files": names,
            "datetime": {"timezone": names[0], "format": names[-1]},
        },
        "skills": {"paths": names},
    }
    overlays = {
        f"{where}/.nexus3/config.json": json.dumps(config),
        f"{where}/.nexus3/AGENT.md": "".join(f"@{name}\n@./{name}.md x\n" for name in names),
    }
    with TemporaryDirectory() as made:
        snapshot = load_folder(write_fixture("//- /home/a/x\n", Path(made)), FOLDER, overlays=overlays)
    assert snapshot.prompt.text
    assert "\0" not in "".join(one.message for one in snapshot.problems if one.code.startswith("prompt."))


def test_what_is_read_for_imports_is_bounded(tmp_path: Path) -> None:
    """All characters that are read count, whether the file is included or not."""
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


def test_a_long_line_of_imports_stays_quick(tmp_path: Path) -> None:
    line = "".join(f"@{at}.md " for at in range(190)) + "word " * 180_000
    files = "".join(f"//- /home/a/{at}.md\nfile {at}\n" for at in range(190))
    fixture = write_fixture(f"//- /home/a/NEXUS.md\n{line}\n{files}", tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert len(snapshot.contents.imports) == 190
    best = 2.0
    for number in range(3):
        overlays = {f"{FOLDER}/NEXUS.md": f"{line}{number}"}
        began = time.thread_time()
        load_folder(fixture, FOLDER, overlays=overlays, previous=snapshot)
        best = min(best, time.thread_time() - began)
    assert best < 0.6


@given(st.text(" \t\r\n\x0b\x1c\x85\u3000", max_size=4), st.text(" \t\r\n\x1c\u3000a|", max_size=4))
def test_a_token_is_alone_where_only_white_space_is_beside_it(before: str, after: str) -> None:
    text = f"{before}@x{after}"
    span = Span(len(before), len(before) + 2)
    line = _line(text, span, len(text))
    around = re.split("[\r\n]", before)[-1], re.split("[\r\n]", after)[0]
    assert line == (span.start - len(around[0]), span.end + len(around[1]))
    assert _is_alone(text, span, line) == (not "".join(around).strip())


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
    started = time.thread_time()
    code_ranges(text)
    return time.thread_time() - started
