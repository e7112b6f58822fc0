"""Writing `.nexus3/`: nothing is overwritten, no link is followed, nothing half-written stays."""

import errno
import os
from pathlib import Path

import pytest

from nexus_context.errors import RequestError
from nexus_context.folder.init import InitPlan
from nexus_daemon.workspace.scaffold import scaffold


def check(directory: Path, *, overwrite: bool = False, **texts: str) -> tuple[list[str], list[str]]:
    """Write files `name=text`; names that were created, and that existed."""
    plan = InitPlan(str(directory), tuple((str(directory / name), text) for name, text in texts.items()), ())
    done = scaffold(plan, overwrite=overwrite)
    return [os.path.basename(path) for path in done.created], [
        os.path.basename(path) for path in done.existing
    ]


def test_what_is_there_stays(tmp_path: Path) -> None:
    directory = tmp_path / "new" / ".nexus3"
    assert check(directory, one="1\n", two="é\n") == (["one", "two"], [])
    assert (directory / "two").read_bytes() == "é\n".encode()
    (directory / "one").write_text("mine")
    assert check(directory, one="1", three="3") == (["three"], ["one"])
    assert (directory / "one").read_text() == "mine"


def test_overwrite(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("much longer than before")
    assert check(tmp_path, overwrite=True, one="1") == (["one"], [])
    assert (tmp_path / "one").read_text() == "1"


def test_what_the_plan_leaves_alone_is_said(tmp_path: Path) -> None:
    done = scaffold(InitPlan(str(tmp_path), (), (str(tmp_path / "one"),)))
    assert (done.created, done.existing) == ((), (str(tmp_path / "one"),))


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("target", ["elsewhere", "missing"])
def test_a_link_is_not_followed(tmp_path: Path, overwrite: bool, target: str) -> None:
    (tmp_path / "elsewhere").write_text("mine")
    directory = tmp_path / ".nexus3"
    directory.mkdir()
    (directory / "one").symlink_to(tmp_path / target)
    if overwrite:
        with pytest.raises(RequestError):
            check(directory, overwrite=True, one="1")
    else:
        assert check(directory, one="1") == ([], ["one"])
    assert (tmp_path / "elsewhere").read_text() == "mine"
    assert not (tmp_path / "missing").exists()


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_directory_that_is_a_link_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").write_text("")
    for name, code in (("link", "init-link"), ("file", "init-failed")):
        with pytest.raises(RequestError) as failed:
            check(tmp_path / name, one="1")
        assert failed.value.code == code
        assert str(tmp_path / name) in str(failed.value)
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("stage", ["write", "replace"])
def test_what_was_there_survives_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    (tmp_path / "one").write_text("mine")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, {"write": "fsync", "replace": "replace"}[stage], full)
    with pytest.raises(RequestError, match="No space left on device"):
        check(tmp_path, overwrite=True, one="1")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("one", "mine")]


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_a_replaced_file_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("mine")
    (tmp_path / "one").chmod(0o600)
    assert check(tmp_path, overwrite=True, one="1", two="2") == (["one", "two"], [])
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_half_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, *_: object, **__: object) -> None:
        os.write(handle, b"half")
        os.close(handle)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("nexus_daemon.workspace.scaffold.open", full, raising=False)
    with pytest.raises(RequestError, match="No space left on device"):
        check(tmp_path, one="whole")
    assert list(tmp_path.iterdir()) == []
