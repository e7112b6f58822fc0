"""Misplaced skills, and settings about skills that have no effect: both are reported."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from nexus_context.disk import files
from nexus_context.folder.layers import skills
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative

FOLDER = "/home/a"
SKILLS = f"{FOLDER}/.claude/skills"
TEXT = "---\nname: x\ndescription: d\n---\nText.\n"
FINE = f"//- {SKILLS}/x/SKILL.md\n{TEXT}"


def check(root: Path, text: str, *expected: str) -> tuple[Fixture, Snapshot]:
    """Problems of a fixture beside one good skill: `path severity code`, with paths in the skill
    directory.
    """
    fixture = write_fixture(FINE + text, root)
    return fixture, check_again(fixture, *expected)


def check_again(fixture: Fixture, *expected: str, previous: Snapshot | None = None) -> Snapshot:
    snapshot = load_folder(fixture, FOLDER, previous=previous)
    assert messages(fixture, snapshot) == list(expected)
    assert [one.skill.name for one in snapshot.layers.skills][-1:] == ["x"]
    return snapshot


def messages(fixture: Fixture, snapshot: Snapshot) -> list[str]:
    return sorted(
        f"{relative(fixture, one.path).removeprefix(SKILLS + '/')} {one.severity.name.lower()} "
        f"{one.code.removeprefix('skill.')}"
        for one in snapshot.problems
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("y/skill.md", "y/skill.md warning misplaced"),
        ("y/Skill.MD", "y/Skill.MD warning misplaced"),
        ("SKILL.md", "SKILL.md warning misplaced"),
        ("skill.md", "skill.md warning misplaced"),
        ("y.md", "y.md hint misplaced"),
        ("group/y/SKILL.md", "group/y/SKILL.md hint misplaced"),
        # what may be on purpose, or is something else
        ("group/more/y/SKILL.md", ""),
        ("group/.y/SKILL.md", ""),
        (".y/skill.md", ""),
        ("y/README.md", ""),
        ("y/y.md", ""),
        ("y.txt", ""),
        ("x/skill.md", ""),
        ("x/inner/SKILL.md", ""),
    ],
)
def test_a_misplaced_skill_is_said(tmp_path: Path, path: str, expected: str) -> None:
    fixture, snapshot = check(tmp_path, f"//- {SKILLS}/{path}\n{TEXT}", *filter(None, [expected]))
    shown = [relative(fixture, one.path) for one in snapshot.layers.skipped if SKILLS in one.path]
    assert shown == ([f"{SKILLS}/{path}"] if expected else [])


@pytest.mark.parametrize("text", ["# Our skills\n", "---\nname: x\n---\n", "---\nname: [\n---\n", ""])
def test_markdown_beside_skills_is_no_skill(tmp_path: Path, text: str) -> None:
    check(tmp_path, f"//- {SKILLS}/README.md\n{text}")


def test_the_messages_say_what_to_do(tmp_path: Path) -> None:
    paths = ("y/skill.md", "SKILL.md", "flat.md", "group/a/SKILL.md", "group/b/SKILL.md", "group/c/SKILL.md")
    fixture = write_fixture("".join(f"//- {SKILLS}/{path}\n{TEXT}" for path in paths), tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    messages = {relative(fixture, one.path): relative(fixture, one.message) for one in snapshot.problems}
    assert messages == {
        f"{SKILLS}/SKILL.md": f"This skill is not read: it has no directory of its own in {SKILLS}. Move it "
        f"to {SKILLS}/<name>/SKILL.md, or, if the directory is the skill's, name the one above in "
        "`skills.paths`.",
        f"{SKILLS}/flat.md": f"This skill is not read: it has no directory of its own in {SKILLS}. Move it "
        f"to {SKILLS}/flat/SKILL.md.",
        f"{SKILLS}/group/a/SKILL.md": f"This skill is not read: it is one level too deep in {SKILLS} (2 more "
        "beside it). Move its directory there, or name .claude/skills/group in `skills.paths`.",
        f"{SKILLS}/y/skill.md": "This skill is not read: it is not named SKILL.md. Rename it to SKILL.md.",
    }
    assert len(snapshot.layers.skipped) == len(paths) + 1  # and where the walk upwards ended


@pytest.mark.parametrize(
    "settings",
    ['{"skills": {"paths": [".claude/skills/group"]}}', '{"skills": {"enabled": false}}'],
)
def test_what_is_read_from_elsewhere_or_not_wanted_is_not_astray(tmp_path: Path, settings: str) -> None:
    text = f"{FINE}//- {FOLDER}/.nexus3/config.json\n{settings}\n//- {SKILLS}/group/y/SKILL.md\n"
    fixture = write_fixture(text + TEXT.replace("name: x", "name: y"), tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert messages(fixture, snapshot) == []
    # the directory is known in two ways, as one of skills and as one without SKILL.md
    again = load_folder(fixture, FOLDER, previous=snapshot, changed=frozenset({fixture.path("/x")}))
    assert again.problems == ()
    assert again.layers.skills == snapshot.layers.skills


def test_a_skill_that_a_link_brings_to_its_place_is_read(tmp_path: Path) -> None:
    path = f"{SKILLS}/group/y/SKILL.md"
    fixture, _ = check(tmp_path, f"//- {path}\n{TEXT}", "group/y/SKILL.md hint misplaced")
    Path(fixture.path(SKILLS), "y").symlink_to("group/y")
    snapshot = load_folder(fixture, FOLDER)
    assert "skill.misplaced" not in [one.code for one in snapshot.problems]


def test_nothing_behind_a_link_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, _ = check(tmp_path, f"//- /other/skill.md\n{TEXT}//- /other/in/SKILL.md\n{TEXT}")
    Path(fixture.path(SKILLS), "y").symlink_to(fixture.path("/other"))
    Path(fixture.path(SKILLS), "y.md").symlink_to(fixture.path("/other/skill.md"))
    os.mkfifo(Path(fixture.path(SKILLS), "z.md"))
    Path(fixture.path(FOLDER), ".agents").mkdir()
    Path(fixture.path(FOLDER), ".agents/skills").symlink_to(fixture.path("/other"))
    opened: list[str] = []

    read = files.RealFiles.read

    def noted(self: files.RealFiles, path: str, real: str, **options: Any) -> files.FileRead:
        opened.append(os.path.basename(path))
        return read(self, path, real, **options)

    monkeypatch.setattr(files.RealFiles, "read", noted)
    check_again(fixture)
    assert {"y.md", "z.md", "skill.md"}.isdisjoint(opened)
    Path(fixture.path(SKILLS), "x.md").write_text(TEXT)
    load_folder(fixture, FOLDER)
    assert "x.md" in opened


def test_a_mend_is_noticed(tmp_path: Path) -> None:
    text = f"//- {SKILLS}/y/skill.md\n{TEXT}//- {SKILLS}/group/z/SKILL.md\n{TEXT}"
    expected = ("group/z/SKILL.md hint misplaced", "y/skill.md warning misplaced")
    fixture, first = check(tmp_path, text, *expected)
    for path in ("y/SKILL.md", "y/", "group/", "group/z/SKILL.md"):
        assert f"{fixture.path(SKILLS)}/{path}" in first.layers.watch
    Path(fixture.path(f"{SKILLS}/y/skill.md")).unlink()
    Path(fixture.path(f"{SKILLS}/group/z/SKILL.md")).unlink()
    second = check_again(fixture, previous=first)
    assert [one for one in second.layers.skipped if SKILLS in one.path] == []


def test_a_keystroke_lists_and_opens_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"//- {SKILLS}/y/skill.md\n{TEXT}//- {SKILLS}/y.md\n{TEXT}//- {SKILLS}/z/file.txt\n\n"
    fixture, first = check(tmp_path, text, "y.md hint misplaced", "y/skill.md warning misplaced")
    for name in ("exists", "is_dir"):
        monkeypatch.delattr(skills, name)
    monkeypatch.delattr(files.RealFiles, "list_directory")
    edited = {f"{FOLDER}/NEXUS.md": "Typed."}
    changed = frozenset(map(fixture.path, edited))
    second = load_folder(fixture, FOLDER, overlays=edited, previous=first, changed=changed)
    assert second.problems == first.problems


def test_in_a_crowd_nothing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills, "MAX_EXAMINED", 2)
    monkeypatch.setattr(skills, "MAX_INSIDE", 3)
    monkeypatch.setattr(skills, "MAX_FLAT", 1)
    names = ("a/skill.md", "b/1", "b/2", "b/3", "b/skill.md", "c/skill.md", "m.md", "n.md")
    text = "".join(f"//- {SKILLS}/{name}\n{TEXT}" for name in names)
    check(tmp_path, text, "a/skill.md warning misplaced", "m.md hint misplaced")


def test_thousands_of_names_stay_quick(tmp_path: Path) -> None:
    fixture = write_fixture(FINE, tmp_path)
    directory = Path(fixture.path(SKILLS))
    for number in range(2_500):
        (directory / f"d{number:04}" / "inner").mkdir(parents=True)
        (directory / f"f{number:04}.md").write_text(TEXT)
    seconds = []
    for _ in range(3):
        began = time.thread_time()
        snapshot = load_folder(fixture, FOLDER)
        seconds.append(time.thread_time() - began)
    codes = [one.code for one in snapshot.problems]
    assert codes.count("skill.misplaced") == skills.MAX_FLAT
    assert codes.count("skill.too-many") == 1
    assert min(seconds) < 1.0


CONFIG = f"{FOLDER}/.nexus3/config.json"


@pytest.mark.parametrize(
    ("where", "settings", "expected"),
    [
        (CONFIG, '"include": ["x", "$y$"]', "hint pattern"),
        (CONFIG, '"include": ["x*", "$y*$"]', "hint pattern"),
        (CONFIG, '"exclude": ["$y$"]', "hint pattern"),
        (CONFIG, '"exclude": ["[!x]*", "$z$"]', "hint pattern"),
        (CONFIG, '"include": ["x"], "exclude": ["other", "z*"]', ""),
        (CONFIG, '"paths": ["$none$"]', "warning path"),
        (CONFIG, '"paths": ["$./file.md$"]', "warning path"),
        (CONFIG, '"paths": ["empty/../empty/"]', ""),
        # the user's own are for other folders and machines, too
        ("/home/.nexus3/config.json", '"include": ["x", "y"], "exclude": ["z"]', ""),
        ("/home/.nexus3/config.json", '"paths": ["$~/none$"]', "hint path"),
        ("/home/.nexus3/config.json", '"paths": ["$~/a/file.md$"]', "warning path"),
    ],
)
def test_settings_of_no_effect_are_said_at_their_value(
    tmp_path: Path, where: str, settings: str, expected: str
) -> None:
    value = settings.split("$")[1] if "$" in settings else None
    text = f'//- {where}\n{{"skills": {{{settings.replace("$", "")}}}}}\n//- {FOLDER}/file.md\n\n'
    for name in ("other", "za"):
        text += f"//- /home/.nexus3/skills/{name}/SKILL.md\n{TEXT.replace('name: x', f'name: {name}')}"
    fixture = write_fixture(text + FINE, tmp_path)
    Path(fixture.path(FOLDER), "empty").mkdir()
    snapshot = load_folder(fixture, FOLDER)
    path = fixture.path(where)
    found = [
        (one.path, f"{one.severity.name.lower()} {one.code.removeprefix('skill.')}")
        for one in snapshot.problems
    ]
    assert found == ([(path, expected)] if expected else [])
    for one in snapshot.problems:
        assert snapshot.layers.texts[path][one.span.start : one.span.end] == f'"{value}"'


def test_a_misspelt_name_that_leaves_all_skills_out(tmp_path: Path) -> None:
    text = f'//- {CONFIG}\n{{"skills": {{"include": ["deploy-App"]}}}}\n'
    text += f"//- {SKILLS}/deploy-app/SKILL.md\n{TEXT.replace('name: x', 'name: deploy-app')}"
    fixture = write_fixture(text, tmp_path)
    (problem,) = load_folder(fixture, FOLDER).problems
    assert (problem.code, problem.severity.name) == ("skill.pattern", "WARNING")
    assert problem.message == (
        '"deploy-App" matches no skill of this folder, and all skills are left out. '
        'Did you mean "deploy-app"? Otherwise correct it or remove it.'
    )
    assert problem.fix is not None
    (edit,) = problem.fix.edits
    config = Path(problem.path)
    before = config.read_text()
    config.write_text(before[: edit.span.start] + edit.text + before[edit.span.end :])
    fixed = load_folder(fixture, FOLDER)
    assert fixed.problems == ()
    assert len(fixed.layers.skills) == 1


def test_of_a_stale_file_nothing_is_said(tmp_path: Path) -> None:
    text = f'//- {CONFIG}\n{{"skills": {{"include": ["x", "y"], "paths": ["none"]}}}}\n{FINE}'
    fixture = write_fixture(text, tmp_path)
    first = load_folder(fixture, FOLDER)
    assert sorted(one.code for one in first.problems) == ["skill.path", "skill.pattern"]
    Path(fixture.path(CONFIG)).write_text("{")
    second = load_folder(fixture, FOLDER, previous=first)
    assert {one.code.partition(".")[0] for one in second.problems} == {"json"}
    assert second.layers.skills == first.layers.skills


def test_what_is_not_saved_yet_is_there(tmp_path: Path) -> None:
    fixture = write_fixture(f'//- {CONFIG}\n{{"skills": {{"paths": ["new"], "include": ["x"]}}}}\n', tmp_path)
    snapshot = load_folder(fixture, FOLDER, overlays={f"{FOLDER}/new/x/SKILL.md": TEXT})
    assert snapshot.problems == ()
    assert len(snapshot.layers.skills) == 1
