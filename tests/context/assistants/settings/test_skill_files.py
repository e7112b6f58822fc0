"""Skills that Codex or opencode does not list are reported, those that it lists are not."""

from pathlib import Path

import pytest

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile

FILES = {"codex": ".agents/skills/s/SKILL.md", "opencode": ".opencode/skills/s/SKILL.md"}
REFUSED_BY_ALL = ("name: s\n", "name: s\ndescription: a\ndescription: b\n", "name: s\ndescription: [a, b]\n")
LISTED_BY_ALL = (
    "name: s\ndescription: Use this: it helps\n",
    "name: s\ndescription: a\nhooks: {Stop: [{hooks: [{type: command}]}]}\n",
    "name: s\ndescription: &a b\nother: *a\n",
)


def codes(program: str, matter: str, root: Path) -> list[str]:
    """The codes of what is wrong with a skill."""
    path = root / "work" / FILES[program]
    path.parent.mkdir(parents=True)
    path.write_text(f"---\n{matter}---\nText.\n")
    (root / "home").mkdir()
    profile = read_profile(program, Surroundings(str(root / "work"), str(root / "home"), {}))
    return [each.code for each in profile.problems if each.path == str(path)]


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize("matter", REFUSED_BY_ALL)
def test_a_skill_that_is_not_listed(program: str, matter: str, tmp_path: Path) -> None:
    assert codes(program, matter, tmp_path.resolve()) == ["assistant.void"]


@pytest.mark.parametrize("program", FILES)
@pytest.mark.parametrize("matter", LISTED_BY_ALL)
def test_a_skill_that_is_listed(program: str, matter: str, tmp_path: Path) -> None:
    assert codes(program, matter, tmp_path.resolve()) == []


@pytest.mark.parametrize("program", FILES)
def test_nothing_is_said_of_a_skill_that_nexus_itself_does_not_read(
    program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus_context.assistants.reading.disk.MOST_BYTES", 10)
    assert codes(program, LISTED_BY_ALL[0], tmp_path.resolve()) == ["assistant.too-large"]
