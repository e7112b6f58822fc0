"""A `.nexus3` that nothing can be read from: it is reported with what to do, wherever it is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nexus_context.config.frames import ConfigError
from nexus_context.errors import Severity
from nexus_context.loader import ContextLoader
from support.fixture import Fixture, write_fixture
from support.folders import HOST, load_folder, relative

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and FIFOs of POSIX")

TREE = """
//- /home/work/app/AGENTS.md
Rules.
//- /outside/NEXUS.md
From outside.
"""
APP, ABOVE, GLOBAL = "/home/work/app/.nexus3", "/home/work/.nexus3", "/home/.nexus3"
Make = Callable[[Path], object]


def out(path: Path) -> None:
    path.symlink_to(next(above for above in path.parents if above.name == "home").with_name("outside"))


BROKEN: dict[str, tuple[Make, str, str, str]] = {
    "loop": (
        lambda path: path.symlink_to(".nexus3"),
        "layer.unreadable",
        "is a loop of symbolic links",
        "Point the link at a real directory or remove it.",
    ),
    "dangling": (
        lambda path: path.symlink_to("nothing"),
        "layer.unreadable",
        "is a symbolic link to nothing",
        "Correct the link or remove it.",
    ),
    "beneath a file": (
        lambda path: path.symlink_to("/dev/null/nothing"),
        "layer.unreadable",
        "is a symbolic link to nothing",
        "Correct the link or remove it.",
    ),
    "file": (
        lambda path: path.write_text("{}"),
        "layer.not-a-directory",
        "is a file, not a directory",
        "Replace it by a directory or remove it.",
    ),
    "FIFO": (
        lambda path: os.mkfifo(path),
        "layer.not-a-directory",
        "is a named pipe (FIFO), not a directory",
        "Replace it by a directory or remove it.",
    ),
    "device": (
        lambda path: path.symlink_to("/dev/null"),
        "layer.not-a-directory",
        "is a device, not a directory",
        "Replace it by a directory or remove it.",
    ),
}
OUT = (
    out,
    "layer.refused",
    "is a symbolic link that leads out of its directory",
    "Replace it by a directory or remove it.",
)


def check(root: Path, place: str, make: Make, *expected: str) -> Fixture:
    """The problems of `.nexus3` in a place, as `code: reason. advice`; it is skipped for the reason."""
    fixture = write_fixture(TREE, root)
    path = Path(fixture.path(place))
    path.rmdir() if path.exists() else None
    make(path)
    seen = load_folder(fixture, "/home/work/app")
    assert [relative(fixture, one.path) for one in seen.problems] == [place] * len(expected)
    start = "Nothing in here is read: it "
    assert [f"{one.code}: {one.message.removeprefix(start)}" for one in seen.problems] == list(expected)
    skipped = [one.reason for one in seen.layers.skipped if one.path == str(path)]
    assert [f"{reason}." in one for reason, one in zip(skipped, expected, strict=True)] == [True] * len(
        expected
    )
    assert "Rules." in seen.prompt.text
    assert "From outside." not in seen.prompt.text
    assert str(path) in seen.layers.watch
    return fixture


@pytest.mark.parametrize("place", [APP, ABOVE, GLOBAL])
@pytest.mark.parametrize(("make", "code", "reason", "advice"), BROKEN.values(), ids=BROKEN)
def test_it_cannot_be_entered(
    tmp_path: Path, place: str, make: Make, code: str, reason: str, advice: str
) -> None:
    check(tmp_path, place, make, f"{code}: {reason}. {advice}")


@pytest.mark.parametrize("place", [APP, ABOVE])
def test_it_leads_out(tmp_path: Path, place: str) -> None:
    make, code, reason, advice = OUT
    check(tmp_path, place, make, f"{code}: {reason}. {advice}")


def test_the_users_own_may_lie_anywhere(tmp_path: Path) -> None:
    fixture = write_fixture(TREE, tmp_path)
    out(Path(fixture.path(GLOBAL)))
    seen = load_folder(fixture, "/home/work/app")
    assert seen.problems == ()
    assert "From outside." in seen.prompt.text


@pytest.mark.parametrize("place", [APP, ABOVE, GLOBAL])
def test_it_may_not_be_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    system = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: not str(path).endswith(place) and system(path, mode))
    advice = "Give this user permission to read it (chmod u+rx) or remove it."
    check(tmp_path, place, Path.mkdir, f"layer.unreadable: cannot be entered: no permission. {advice}")


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")
@pytest.mark.parametrize(
    ("place", "make"),
    [(APP, Path.mkdir), (APP, BROKEN["loop"][0]), (ABOVE, Path.mkdir), (ABOVE, BROKEN["file"][0])],
)
def test_it_is_another_users(tmp_path: Path, place: str, make: Make) -> None:
    """Anybody can put one above the opened folder: it is not read, and nobody is bothered with it."""

    def foreign(path: Path) -> None:
        make(path)
        os.lchown(path, 4242, 4242)

    who = "the symbolic link belongs" if make is BROKEN["loop"][0] else "belongs"
    advice = "Make it your own and let nobody else write to it (chown, chmod go-w), or remove it."
    problem = f"layer.refused: {who} to another user (uid 4242). {advice}"
    fixture = write_fixture(TREE, tmp_path)
    if place == APP:
        check(tmp_path, place, foreign, problem)
        return
    foreign(Path(fixture.path(place)))
    seen = load_folder(fixture, "/home/work/app")
    assert seen.problems == ()
    assert fixture.path(place) in [one.path for one in seen.layers.skipped]


def test_it_is_read_once_it_can_be(tmp_path: Path) -> None:
    make, code, reason, advice = BROKEN["file"]
    fixture = check(tmp_path, APP, make, f"{code}: {reason}. {advice}")
    before = load_folder(fixture, "/home/work/app")
    path = Path(fixture.path(APP))
    path.unlink()
    path.mkdir()
    (path / "NEXUS.md").write_text("Read now.")
    after = load_folder(fixture, "/home/work/app", previous=before)
    assert after.problems == ()
    assert "Read now." in after.prompt.text


def test_the_front_for_programs_raises(tmp_path: Path) -> None:
    make, _, reason, advice = BROKEN["loop"]
    fixture = write_fixture(TREE, tmp_path)
    make(Path(fixture.path(APP)))
    with pytest.raises(ConfigError, match=f"Nothing in here is read: it {reason}. {advice}"):
        ContextLoader(environ={"HOME": fixture.path("/home")}, environment=HOST).load(
            Path(fixture.path("/home/work/app"))
        )


def test_errors_come_with_severity(tmp_path: Path) -> None:
    for number, (make, severity) in enumerate(((BROKEN["loop"][0], Severity.ERROR), (out, Severity.WARNING))):
        fixture = write_fixture(TREE, tmp_path / str(number))
        make(Path(fixture.path(APP)))
        assert [one.severity for one in load_folder(fixture, "/home/work/app").problems] == [severity]
