"""Where the headings and imports of a file stand in the prompt: each import brings the file that it names."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.errors import Span
from nexus_context.folder.prompt import imports
from nexus_context.folder.prompt.file_parts import placed, shares
from nexus_context.folder.snapshot import Snapshot
from support.fixture import write_fixture
from support.folders import load_folder

FOLDER = "/home/a"


def check(root: Path, files: str, expected: dict[str, str], *, of: str = f"{FOLDER}/NEXUS.md") -> None:
    """The imports of a file in the prompt, each with its text there."""
    fixture = write_fixture(files, root)
    assert brought(load_folder(fixture, FOLDER), fixture.path(of)) == expected


def brought(snapshot: Snapshot, path: str) -> dict[str, str]:
    text = snapshot.layers.texts[path]
    where = placed(snapshot.prompt, snapshot.contents, path, snapshot.layers.texts)
    assert where is not None
    return {
        text[one.source.start : one.source.end]: snapshot.prompt.text[one.span.start : one.span.end]
        for one in shares(where, path, text)
        if one.kind == "import"
    }


A, B = f"//- {FOLDER}/a.md\nAAA\n", f"//- {FOLDER}/b.md\nBBB\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ask @dana about @a.md now\nend", {"@a.md": "AAA"}),
        ("| who | what |\n|--|--|\n| @dana | x |\n| me | @a.md |\n\nend", {"@a.md": "AAA"}),
        ("| @dana | @b.md |\n| me | @a.md |\n", {"@b.md": "BBB", "@a.md": "AAA"}),
        ("| @dana |\n\n@a.md\n", {"@a.md": "AAA"}),
        ("@dana\n@a.md\n@erin and @b.md", {"@a.md": "AAA", "@b.md": "BBB"}),
        ("@blank.md @a.md", {"@a.md": "AAA"}),  # what brings nothing has no part
        ("see @through.md and @a.md", {"@through.md": "BBB", "@a.md": "AAA"}),
        ("see @a.md, @a.md", {"@a.md": "AAA"}),
    ],
)
def test_an_import_brings_its_own_file(tmp_path: Path, text: str, expected: dict[str, str]) -> None:
    files = f"//- {FOLDER}/NEXUS.md\n{text}\n{A}{B}//- {FOLDER}/blank.md\n\n//- {FOLDER}/through.md\n@b.md\n"
    check(tmp_path, files, expected)


def test_an_imported_file_may_begin_and_end_with_imports(tmp_path: Path) -> None:
    one = f"//- {FOLDER}/NEXUS.md\nAbove.\n@one.md\nBelow.\n//- {FOLDER}/one.md\n@a.md\nOne.\n@b.md\n{A}{B}"
    check(tmp_path, one, {"@a.md": "AAA", "@b.md": "BBB"}, of=f"{FOLDER}/one.md")
    check(tmp_path, one, {"@one.md": "AAA\nOne.\nBBB"})


def test_so_may_the_file_of_a_section(tmp_path: Path) -> None:
    config = '{"context": {"sections": [{"name": "S", "file": "one.md"}]}}'
    files = f"//- {FOLDER}/.nexus3/config.json\n{config}\n//- {FOLDER}/one.md\n@a.md\nOne. See @b.md.\n{A}{B}"
    check(tmp_path, files, {"@a.md": "AAA", "@b.md": "BBB"}, of=f"{FOLDER}/one.md")


def test_names_in_a_table_are_not_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long table with names and imports: what the load recorded is not searched for again."""
    rows = "".join(f"| @u{at} | x |\n" for at in range(500)) + "|z|\n" * 500
    rows += "".join(f"| y | @f{at}.md |\n" for at in range(100))
    files = "".join(f"//- {FOLDER}/f{at}.md\nF{at}\n" for at in range(100))
    fixture = write_fixture(f"//- {FOLDER}/NEXUS.md\n{rows}{files}", tmp_path)
    lines: list[Span] = []
    real = imports.is_row

    def counted(text: str, line: Span) -> bool:
        lines.append(line)
        return real(text, line)

    monkeypatch.setattr(imports, "is_row", counted)
    snapshot = load_folder(fixture, FOLDER)
    assert 1 <= len(lines) < 2_500  # each row once or twice, not once for each import
    lines.clear()
    found = brought(snapshot, fixture.path(f"{FOLDER}/NEXUS.md"))
    assert found == {f"@f{at}.md": f"F{at}" for at in range(100)}
    assert lines == []


PARTS = st.sampled_from(
    ["| ", "\n", " ", "x", "@u ", "@f0.md ", "@f1.md ", "@f2.md ", "@f3.md\n", "\r\n", "`", "\n\n"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(PARTS, max_size=30))
def test_whatever_the_text_an_import_is_told_with_its_file(parts: list[str]) -> None:
    text = "".join(parts)
    with TemporaryDirectory() as made:
        files = "".join(f"//- {FOLDER}/f{at}.md\nF{at}.\n" for at in range(4))
        fixture = write_fixture(f"//- {FOLDER}/NEXUS.md\nx\n{files}", Path(made))
        path = fixture.path(f"{FOLDER}/NEXUS.md")
        snapshot = load_folder(fixture, FOLDER, overlays={f"{FOLDER}/NEXUS.md": f"x\n{text}"})
        followed = [one for one in snapshot.contents.imports if one.path == path]
        found = brought(snapshot, path)
    assert len(found) == len(followed)
    assert all(f"{token[1:-3].upper()}." == sent for token, sent in found.items())
