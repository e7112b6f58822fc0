"""Which skills a folder has, which of them count, and what is watched for them."""

import os
from pathlib import Path

import pytest

from nexus_context.disk import files
from nexus_context.folder.layers import skills
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative

FOLDER = "/home/c/a"
PLACES = {
    "n": f"{FOLDER}/.nexus3/skills",
    "a": f"{FOLDER}/.agents/skills",
    "c": f"{FOLDER}/.claude/skills",
    "up": "/home/c/.claude/skills",
    "g": "/home/.nexus3/skills",
    "ga": "/home/.agents/skills",
    "gc": "/home/.claude/skills",
}


def skill(name: str, description: str = "d") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nText of {name}.\n"


def place(shown: str) -> str:
    where, _, name = shown.partition(":")
    return f"{PLACES[where]}/{name}/SKILL.md"


def check(root: Path, present: str, expected: str, *, settings: str = "{}") -> tuple[Fixture, Snapshot]:
    """Skills as `place:name`, with `=status` if they do not count; `present` are all existing ones."""
    text = f"//- /home/c/NEXUS.md\nCompany.\n//- {FOLDER}/.nexus3/config.json\n{settings}\n"
    text += "".join(f"//- {place(one)}\n{skill(one.partition(':')[2])}" for one in present.split())
    fixture = write_fixture(text, root)
    snapshot = load_folder(fixture, FOLDER)
    wanted = {}
    for one in expected.split():
        shown, _, status = one.partition("=")
        wanted[place(shown)] = status or "loaded"
    assert statuses(fixture, snapshot) == wanted
    counting = sorted(one.skill.path for one in snapshot.layers.skills)
    assert counting == sorted(fixture.path(path) for path, status in wanted.items() if status == "loaded")
    return fixture, snapshot


def statuses(fixture: Fixture, snapshot: Snapshot) -> dict[str, str]:
    return {
        relative(fixture, file.path): file.status
        for layer in snapshot.layers.layers
        for file in layer.files
        if file.kind == "skill"
    }


def codes(snapshot: Snapshot) -> list[str]:
    return [problem.code for problem in snapshot.problems]


@pytest.mark.parametrize(
    ("present", "expected", "settings"),
    [
        ("", "", "{}"),
        (
            "n:one a:two c:three up:four g:five ga:six gc:seven",
            "n:one a:two c:three up:four g:five ga:six gc:seven",
            "{}",
        ),
        ("n:x a:x c:x", "n:x a:x=shadowed c:x=shadowed", "{}"),
        ("c:x up:x g:x", "c:x up:x=shadowed g:x=shadowed", "{}"),
        ("n:x g:y", "n:x g:y=excluded", '{"skills": {"include": ["x"]}}'),
        ("n:git-a n:git-b n:z", "n:git-a n:git-b=excluded n:z=excluded",
         '{"skills": {"include": ["git-*"], "exclude": ["*-b"]}}'),
        ("n:x g:y", "", '{"skills": {"enabled": false}}'),
        ("n:.hidden", "", "{}"),
    ],
)  # fmt: skip
def test_where_skills_are_and_which_count(tmp_path: Path, present: str, expected: str, settings: str) -> None:
    check(tmp_path, present, expected, settings=settings)


def test_a_shadowed_skill_is_hinted_at_with_the_one_that_counts(tmp_path: Path) -> None:
    fixture, snapshot = check(tmp_path, "n:x g:x", "n:x g:x=shadowed")
    (problem,) = snapshot.problems
    assert (problem.code, problem.severity.name) == ("skill.shadowed", "HINT")
    assert problem.path == fixture.path(place("g:x"))
    assert [one.path for one in problem.related] == [fixture.path(place("n:x"))]


def test_a_broken_skill_wins_its_name_and_says_why(tmp_path: Path) -> None:
    fixture = write_fixture(
        f"//- {place('n:x')}\nNo front matter.\n//- {place('g:x')}\n{skill('x')}", tmp_path
    )
    snapshot = load_folder(fixture, FOLDER)
    assert statuses(fixture, snapshot) == {place("n:x"): "invalid", place("g:x"): "shadowed"}
    assert snapshot.layers.skills == ()
    assert sorted(codes(snapshot)) == ["skill.front-matter", "skill.shadowed"]


def test_priority_before_name(tmp_path: Path) -> None:
    text = "".join(
        f"//- {place(f'n:{name}')}\n" + skill(name, f"d\nmetadata: {{priority: {priority}}}")
        for name, priority in (("a", 0), ("b", -1), ("c", 9), ("d", "no"))
    )
    snapshot = load_folder(write_fixture(text, tmp_path), FOLDER)
    assert [one.skill.name for one in snapshot.layers.skills] == ["c", "a", "d", "b"]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("tools/skills", True),
        ("./tools/../tools/skills/", True),
        ("../skills", False),
        ("/etc", False),
        ("~/skills", False),
        ("link", False),
        ("missing", False),
        ("tools/file.md", False),
        ("a\\u0000b", False),
    ],
)
def test_configured_paths_of_a_workspace_stay_in_it(tmp_path: Path, value: str, found: bool) -> None:
    text = f"""
    //- {FOLDER}/.nexus3/config.json
    {{"skills": {{"paths": ["{value}"]}}}}
    """
    fixture = write_fixture(text, tmp_path)
    for where in (f"{FOLDER}/tools/skills", "/home/c/skills", "/home/skills"):
        file = Path(fixture.path(where), "x", "SKILL.md")
        file.parent.mkdir(parents=True)
        file.write_text(skill("x"))
    Path(fixture.path(f"{FOLDER}/tools/file.md")).touch()
    Path(fixture.path(f"{FOLDER}/link")).symlink_to(fixture.path("/home/skills"))
    snapshot = load_folder(fixture, FOLDER)
    assert [one.skill.name for one in snapshot.layers.skills] == (["x"] if found else [])
    assert codes(snapshot) == ([] if found else ["skill.path"])
    for problem in snapshot.problems:
        text = snapshot.layers.texts[problem.path]
        assert value in text[problem.span.start : problem.span.end]


def test_configured_paths_of_the_global_file_may_be_anywhere(tmp_path: Path) -> None:
    text = f"""
    //- /home/.nexus3/config.json
    {{"skills": {{"paths": ["~/mine", "more", "{{root}}/opt/skills"]}}}}
    //- /home/mine/one/SKILL.md
    {skill("one").replace(chr(10), chr(10) + "    ")}
    """
    fixture = write_fixture(text, tmp_path)
    for path, name in (("/home/.nexus3/more", "two"), ("/opt/skills", "three")):
        file = Path(fixture.path(path), name, "SKILL.md")
        file.parent.mkdir(parents=True)
        file.write_text(skill(name))
    snapshot = load_folder(fixture, FOLDER)
    assert [one.skill.name for one in snapshot.layers.skills] == ["one", "three", "two"]


def test_links_within_the_layer_are_followed_and_one_directory_counts_once(tmp_path: Path) -> None:
    fixture, _ = check(tmp_path, "a:x a:y", "a:x a:y")
    claude = Path(fixture.path(PLACES["c"]))
    claude.parent.mkdir()
    claude.symlink_to("../.agents/skills")
    snapshot = load_folder(fixture, FOLDER)
    assert statuses(fixture, snapshot) == {place("a:x"): "loaded", place("a:y"): "loaded"}
    claude.unlink()
    claude.mkdir()
    (claude / "x").symlink_to("../../.agents/skills/x")
    snapshot = load_folder(fixture, FOLDER)
    assert statuses(fixture, snapshot)[place("c:x")] == "shadowed"
    assert codes(snapshot) == []


@pytest.mark.parametrize("linked", ["skills", "x", "SKILL.md"])
def test_links_out_of_a_workspace_are_not_followed(tmp_path: Path, linked: str) -> None:
    fixture, _ = check(tmp_path, "", "")
    outside = tmp_path / "outside" / "x" / "SKILL.md"
    outside.parent.mkdir(parents=True)
    outside.write_text(skill("x"))
    at = Path(fixture.path(PLACES["c"]))
    link = {"skills": at, "x": at / "x", "SKILL.md": at / "x" / "SKILL.md"}[linked]
    link.parent.mkdir(parents=True)
    link.symlink_to({"skills": outside.parents[1], "x": outside.parent, "SKILL.md": outside}[linked])
    snapshot = load_folder(fixture, FOLDER)
    assert snapshot.layers.skills == ()
    assert [each.reason.partition(" that")[0] for each in snapshot.layers.skipped][-1] == "is a symbolic link"


def test_a_file_that_cannot_be_used_is_said_and_hides_no_other(tmp_path: Path) -> None:
    fixture, _ = check(tmp_path, "n:fine", "n:fine")
    directory = Path(fixture.path(PLACES["n"]))
    for name in ("fifo", "folder", "huge", "loop", "empty"):
        (directory / name).mkdir()
    os.mkfifo(directory / "fifo" / "SKILL.md")
    (directory / "folder" / "SKILL.md").mkdir()
    (directory / "huge" / "SKILL.md").write_bytes(b"x" * (files.PROMPT_LIMIT + 1))
    (directory / "loop" / "SKILL.md").symlink_to("SKILL.md")
    (directory / "README.md").write_text("No skill.")
    snapshot = load_folder(fixture, FOLDER)
    found = {path.split("/")[-2]: status for path, status in statuses(fixture, snapshot).items()}
    assert found == {
        "fifo": "unreadable",
        "fine": "loaded",
        "folder": "unreadable",
        "huge": "too-large",
        "loop": "unreadable",
    }


def test_nothing_in_a_skill_is_listed_but_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, _ = check(tmp_path, "n:x", "n:x")
    for number in range(5_000):
        (Path(fixture.path(place("n:x"))).parent / f"{number}.txt").touch()
    listed: list[str] = []

    list_directory = files.RealFiles.list_directory

    def noted(self: files.RealFiles, real: str, most: int) -> list[tuple[str, files.Entry]] | None:
        listed.append(real)
        return list_directory(self, real, most)

    monkeypatch.setattr(files.RealFiles, "list_directory", noted)
    first = load_folder(fixture, FOLDER)
    assert [relative(fixture, path) for path in listed if os.path.isdir(path)] == [PLACES["n"]]
    listed.clear()
    edited = {f"{FOLDER}/NEXUS.md": "Typed."}
    load_folder(
        fixture, FOLDER, overlays=edited, previous=first, changed=frozenset(map(fixture.path, edited))
    )
    assert listed == []  # an editor's text changes no directory


def test_a_directory_that_cannot_be_listed_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fixture, _ = check(tmp_path, "n:x", "n:x")
    monkeypatch.setattr(files.RealFiles, "list_directory", lambda *_: None)
    seen = load_folder(fixture, FOLDER)
    assert [f"{relative(fixture, one.path)} {one.code}" for one in seen.problems] == [
        f"{PLACES['n']} skill.unreadable"
    ]
    assert relative(fixture, seen.problems[0].message) == (
        "No skill in here is read: the directory cannot be listed. Give this user permission "
        "to read it (chmod u+rx), or remove it."
    )


def test_too_many_skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skills, "MAX_SKILLS", 2)
    monkeypatch.setattr(skills, "MAX_ENTRIES", 4)
    settings = '{"skills": {"include": ["[a-z]", "unknown"]}}'  # it may be among those that are not read
    fixture, snapshot = check(tmp_path / "1", "n:c n:b n:a g:z", "n:a n:b g:z", settings=settings)
    (problem,) = snapshot.problems
    assert (problem.code, problem.path) == ("skill.too-many", fixture.path(PLACES["n"]))
    assert 'of 3 directories the first 2 by name, to "b".' in problem.message
    fixture, snapshot = check(tmp_path / "2", "n:a n:b n:c n:d n:e g:z", "g:z")
    (problem,) = snapshot.problems
    assert (problem.code, problem.path) == ("skill.too-many", fixture.path(PLACES["n"]))
    assert problem.message.startswith("No skill in here is read: there are more than 4 names")


def test_skills_come_change_and_go(tmp_path: Path) -> None:
    fixture, first = check(tmp_path, "", "")
    for path in (f"{FOLDER}/.claude", *(PLACES[name] for name in ("n", "a", "c", "up", "g", "ga", "gc"))):
        assert fixture.path(path) in first.layers.watch
    file = Path(fixture.path(place("c:x")))
    assert os.path.dirname(file.parent) + os.sep in first.layers.watch
    file.parent.mkdir(parents=True)
    made = load_folder(fixture, FOLDER, previous=first)
    assert str(file) in made.layers.watch
    file.write_text(skill("x"))
    second = load_folder(fixture, FOLDER, previous=made)
    assert second.revision > first.revision
    assert [one.skill.name for one in second.layers.skills] == ["x"]
    same = load_folder(fixture, FOLDER, previous=second)
    assert same.revision == second.revision
    assert same.layers.memory.skills[str(file)] is second.layers.memory.skills[str(file)]
    file.parent.rename(file.parents[1] / "y")
    third = load_folder(fixture, FOLDER, previous=same)
    assert statuses(fixture, third) == {place("c:y"): "loaded"}
    assert codes(third) == ["skill.name"]


def test_unsaved_text_wins_also_where_there_is_no_file_yet(tmp_path: Path) -> None:
    fixture, first = check(tmp_path, "n:x", "n:x")
    texts = {place("n:x"): skill("x", "unsaved"), place("c:new"): skill("new", "not saved")}
    changed = frozenset(map(fixture.path, texts))
    second = load_folder(fixture, FOLDER, overlays=texts, previous=first, changed=changed)
    described = [(one.skill.name, one.skill.description) for one in second.layers.skills]
    assert described == [("new", "not saved"), ("x", "unsaved")]
    third = load_folder(fixture, FOLDER, previous=second, changed=changed)
    assert third.layers.skills == first.layers.skills


def test_a_foreign_skill_above_the_folder_is_not_believed(tmp_path: Path) -> None:
    fixture, _ = check(tmp_path, "up:x", "up:x")
    os.chmod(fixture.path(place("up:x")), 0o666)  # noqa: S103 - that is what is tested
    snapshot = load_folder(fixture, FOLDER)
    assert snapshot.layers.skills == ()
    assert codes(snapshot) == ["layer.refused"]
