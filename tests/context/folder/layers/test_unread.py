"""Existing instruction files that are not read: which are reported, why, and what would change that."""

from pathlib import Path
from textwrap import dedent

import pytest

from nexus_context.folder.layers import unread
from nexus_context.folder.layers.unread import MOST
from support.fixture import write_fixture
from support.folders import load_folder, relative

DEPTH_1 = '{"context": {"ancestor_depth": 1}}'


def check(root: Path, text: str, *expected: tuple[str, str], folder: str = "/home/mono/app") -> None:
    """Each unread file with its reason."""
    fixture = write_fixture(f"//- /home/mono/.git/HEAD\nx\n{dedent(text).lstrip()}", root)
    entries = load_folder(fixture, folder).layers.unread
    assert [(relative(fixture, entry.path), entry.reason) for entry in entries] == list(expected)


def test_a_file_beside_the_one_that_is_read(tmp_path: Path) -> None:
    check(
        tmp_path,
        "//- /home/mono/app/AGENTS.md\nA\n//- /home/mono/app/CLAUDE.md\nC\n//- /home/mono/CLAUDE.md\nRoot\n",
        (
            "/home/mono/app/CLAUDE.md",
            (
                "has no effect beside AGENTS.md: of NEXUS.md, AGENTS.md, CLAUDE.md the first that exists "
                "is read. "
                "Write @CLAUDE.md in AGENTS.md to read it, too"
            ),
        ),
    )


def test_files_of_other_programs(tmp_path: Path) -> None:
    text = """
    //- /home/mono/.nexus3/NEXUS.md
    N
    //- /home/mono/.github/copilot-instructions.md
    C
    //- /home/mono/.github/instructions/python.instructions.md
    P
    //- /home/mono/.cursorrules
    R
    //- /home/mono/.cursor/rules/a.mdc
    M
    //- /home/mono/app/GEMINI.md
    G
    """
    check(
        tmp_path,
        text,
        (
            "/home/mono/app/GEMINI.md",
            (
                "is an instruction file of Gemini CLI. "
                'Add "GEMINI.md" to "instruction_files" in "context" to read it'
            ),
        ),
        (
            "/home/mono/.github/copilot-instructions.md",
            (
                "is an instruction file of GitHub Copilot. "
                'Add ".github/copilot-instructions.md" to "instruction_files" in "context" to read it, too'
            ),
        ),
        (
            "/home/mono/.cursorrules",
            "is an instruction file of Cursor. Move its text to a file that is read, such as AGENTS.md",
        ),
        (
            "/home/mono/.cursor/rules/a.mdc",
            (
                "is an instruction file of Cursor. "
                "Write @../.cursor/rules/a.mdc in .nexus3/NEXUS.md to read it, too"
            ),
        ),
        (
            "/home/mono/.github/instructions/python.instructions.md",
            (
                "is an instruction file of GitHub Copilot. "
                'Add ".github/instructions/*.instructions.md" to "instruction_files" in "context" '
                "to read it, too"
            ),
        ),
    )


def test_out_of_reach(tmp_path: Path) -> None:
    check(
        tmp_path,
        f"//- /home/mono/AGENTS.md\nRoot\n//- /home/mono/a/b/.nexus3/config.json\n{DEPTH_1}\n",
        (
            "/home/mono/AGENTS.md",
            'is out of reach: "ancestor_depth" in "context" is 1. Set it to 2 to read it',
        ),
        folder="/home/mono/a/b",
    )


OUT_OF_REACH = 'is out of reach: "ancestor_depth" in "context" is 1. Set it to 2'


def test_what_a_greater_depth_alone_would_not_read(tmp_path: Path) -> None:
    text = f"""
    //- /home/mono/AGENTS.md
    Root
    //- /home/mono/CLAUDE.md
    C
    //- /home/mono/.github/copilot-instructions.md
    C
    //- /home/mono/.cursorrules
    R
    //- /home/mono/a/b/.nexus3/config.json
    {DEPTH_1}
    """
    check(
        tmp_path,
        text,
        ("/home/mono/AGENTS.md", f"{OUT_OF_REACH} to read it"),
        ("/home/mono/CLAUDE.md", f"{OUT_OF_REACH}, and write @CLAUDE.md in AGENTS.md to read it, too"),
        (
            "/home/mono/.github/copilot-instructions.md",
            (
                f'{OUT_OF_REACH}, and add ".github/copilot-instructions.md" to "instruction_files" in '
                '"context" to read it, too'
            ),
        ),
        (
            "/home/mono/.cursorrules",
            "is an instruction file of Cursor. Move its text to a file that is read, such as AGENTS.md",
        ),
        folder="/home/mono/a/b",
    )


@pytest.mark.parametrize(
    ("open_to_all", "reason"),
    [
        ("/home/mono", "is in a directory that is not read: it is writable for everyone and not sticky"),
        (
            "/home/mono/a",
            "is above {}, which is not read: that is writable for everyone and not sticky",
        ),
    ],
)
def test_beyond_a_directory_that_is_not_trusted(tmp_path: Path, open_to_all: str, reason: str) -> None:
    fixture = write_fixture("//- /home/mono/.git/HEAD\nx\n//- /home/mono/AGENTS.md\nR\n", tmp_path)
    Path(fixture.path("/home/mono/a/b")).mkdir(parents=True)
    directory = Path(fixture.path(open_to_all))
    directory.chmod(0o777)
    entries = load_folder(fixture, "/home/mono/a/b").layers.unread
    expected = [("/home/mono/AGENTS.md", reason.format(directory))]
    assert [(relative(fixture, entry.path), entry.reason) for entry in entries] == expected


def test_names_of_the_settings_that_no_file_is_looked_for_by(tmp_path: Path) -> None:
    settings = '{"context": {"instruction_files": ["AGENTS.md", "*", "..", ".git", "*.md"]}}'
    check(tmp_path, f"//- /home/mono/.nexus3/config.json\n{settings}\n//- /home/mono/AGENTS.md\nA\n")


def test_a_name_of_the_settings_is_looked_for_in_no_directory_of_another_program(tmp_path: Path) -> None:
    settings = '{"context": {"instruction_files": ["copilot-instructions.md", "AGENTS.md"]}}'
    check(
        tmp_path,
        f"//- /home/mono/app/.nexus3/config.json\n{settings}\n//- /home/mono/app/AGENTS.md\nA\n"
        "//- /home/mono/app/.github/copilot-instructions.md\nC\n",
        (
            "/home/mono/app/.github/copilot-instructions.md",
            (
                "is an instruction file of GitHub Copilot. "
                'Add ".github/copilot-instructions.md" to "instruction_files" in "context" to read it, too'
            ),
        ),
    )


def test_a_file_that_the_settings_do_not_name(tmp_path: Path) -> None:
    check(
        tmp_path,
        '//- /home/mono/app/.nexus3/config.json\n{"context": {"instruction_files": ["OWN.md"]}}\n'
        "//- /home/mono/app/AGENTS.md\nA\n",
        (
            "/home/mono/app/AGENTS.md",
            (
                'is not among "instruction_files" in "context". '
                'Add "AGENTS.md" to "instruction_files" in "context" to read it'
            ),
        ),
    )


@pytest.mark.parametrize(
    "text",
    [
        "//- /home/mono/app/AGENTS.md\n@CLAUDE.md\n//- /home/mono/app/CLAUDE.md\nC\n",
        """
        //- /home/mono/app/AGENTS.md
        @.github/copilot-instructions.md
        //- /home/mono/app/.github/copilot-instructions.md
        C
        """,
        "//- /home/other/CLAUDE.md\nC\n//- /home/AGENTS.md\nA\n",
        "//- /home/mono/app/deep/CLAUDE.md\nC\n",
    ],
)
def test_what_is_read_or_of_no_concern(tmp_path: Path, text: str) -> None:
    check(tmp_path, text)


def test_a_link_to_the_file_that_is_read(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/AGENTS.md\nA\n", tmp_path)
    Path(fixture.path("/home/a/CLAUDE.md")).symlink_to("AGENTS.md")
    assert load_folder(fixture, "/home/a").layers.unread == ()


def test_a_file_that_appears_is_noticed_and_listed_once(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/AGENTS.md\nA\n", tmp_path)
    first = load_folder(fixture, "/home/a")
    assert {fixture.path(f"/home/a/{name}") for name in ("CLAUDE.md", "GEMINI.md")} <= set(first.layers.watch)
    Path(fixture.path("/home/a/GEMINI.md")).write_text("G")
    second = load_folder(fixture, "/home/a", previous=first)
    third = load_folder(fixture, "/home/a", previous=second)
    assert second.revision > first.revision
    assert [relative(fixture, entry.path) for entry in third.layers.not_read if "GEMINI" in entry.path] == [
        "/home/a/GEMINI.md"
    ]


def test_of_very_many_files_the_first_are_reported_and_how_many_more_there_are(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/AGENTS.md\nA\n", tmp_path)
    rules = Path(fixture.path("/home/a/.cursor/rules"))
    rules.mkdir(parents=True)
    for number in range(MOST + 7):
        (rules / f"{number:04}.mdc").write_text("x")
    entries = load_folder(fixture, "/home/a").layers.unread
    assert [Path(entry.path).name for entry in entries] == [f"{number:04}.mdc" for number in range(MOST + 1)]
    assert entries[-1].reason == "is the first of 7 more instruction files that are not read"


def test_a_keystroke_looks_into_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "//- /home/a/AGENTS.md\nA\n//- /home/a/GEMINI.md\nG\n//- /home/a/.cursor/rules/a.mdc\nR\n"
    fixture = write_fixture(text, tmp_path)
    first = load_folder(fixture, "/home/a")
    looked: list[str] = []

    def look(path: str, _: int = 0) -> None:
        looked.append(path)

    monkeypatch.setattr(unread, "exists", look)
    monkeypatch.setattr(unread, "list_directory", look)
    typed = {"/home/a/AGENTS.md": "Typed.", "/home/a/CLAUDE.md": "Unsaved."}
    changed = frozenset(fixture.path(path) for path in typed)
    second = load_folder(fixture, "/home/a", previous=first, overlays=typed, changed=changed)
    assert looked == []
    paths = [relative(fixture, entry.path) for entry in second.layers.unread]
    assert paths == ["/home/a/GEMINI.md", "/home/a/.cursor/rules/a.mdc", "/home/a/CLAUDE.md"]
    load_folder(fixture, "/home/a", previous=second)
    assert looked
