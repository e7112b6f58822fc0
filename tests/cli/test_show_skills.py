"""`nexus show` and `nexus check` with skills."""

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from support.commands import output_of, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/a/NEXUS.md
Rules.
//- /home/a/.nexus3/skills/pdf/SKILL.md
---
name: pdf
description: Fills forms.
---
Text of pdf.
//- /home/.nexus3/skills/pdf/SKILL.md
---
name: pdf
description: The user's own.
---
Another text.
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


def test_layers_and_tokens_name_skills(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree.path("/home/a")
    listed = [line.split() for line in output_of(tree, capsys, "show", folder, "--layers").splitlines()]
    # the first of a layer's lines begins with its name, the one that has no effect ends without tokens
    (shadowed,) = (line for line in listed if line[-1:] == ["shadowed"])
    (loaded,) = (line for line in listed if line[:1] == [".nexus3/skills/pdf/SKILL.md"])
    assert shadowed[-2] == "~/.nexus3/skills/pdf/SKILL.md"
    assert (loaded[1], loaded[2][0], int(loaded[2][1:]) > 5) == ("loaded", "≈", True)
    rows = [line.split() for line in output_of(tree, capsys, "show", folder, "--tokens").splitlines()]
    assert [line[1] for line in rows if line[:2] == ["system", "pdf"]] == ["pdf"]


def test_a_skill_is_activated(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tree.path("/home/a")
    assert "Text of pdf." not in output_of(tree, capsys, "show", folder)
    assert "Text of pdf." in output_of(tree, capsys, "show", folder, "--skill", "pdf")
    sourced = output_of(tree, capsys, "show", folder, "--skill", "pdf", "--source")
    assert "── /home/a/.nexus3/skills/pdf/SKILL.md:5 (" in sourced
    assert "Text of pdf." in sourced
    said = output_of(tree, capsys, "show", folder, "--skill", "pfd", code=1)
    assert said == 'nexus show: There is no skill "pfd". Skills that this request may use: pdf.\n'


def test_check_shows_a_broken_skill_in_its_frame(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(tree.path("/home/a/.nexus3/skills/pdf/SKILL.md"))
    path.write_text("---\nname: pdf\ndescription: Use when: always\n---\nText.\n")
    shown = output_of(tree, capsys, "check", tree.path("/home/a"), code=1)
    assert shown == snapshot("""\
Configuration Error: Problem in /home/a/.nexus3/skills/pdf/SKILL.md

  Line 3, Column 22: The front matter cannot be read: a value with a colon must be in quotes.

  2 | name: ***
  3 | description: *** ****: ******
    |                      ^
  4 | ---

Fix the file and try again.

~/a/.nexus3/skills/pdf/SKILL.md:3:22 error [skill.front-matter]

1 error and 0 warnings in 5 files of 2 layers.
""")
