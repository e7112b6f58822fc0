"""A folder whose files become anything that a disk can hold: typing states, damaged bytes, no file at all."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder
from support.typing_forms import FOLDER, FORMS, TREE, Form
from support.typing_states import states

Damage = Callable[[Random, bytes], bytes]

_BYTES = (
    b"\xff",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x80" * 9,
)
_OTHERS = (
    "config.json",
    "NEXUS.md",
    "../outside.md",
    "/etc/hosts",
    ".",
    "..",
    "no-such",
    "more.md",
    "SKILL.md",
    "/dev/null",
)


class MutatedFolder:
    """A folder on the disk, changed and loaded again and again with what the load before remembers."""

    def __init__(self, root: Path, seed: int) -> None:
        self.dice = Random(seed)  # noqa: S311 - no secret
        self.tree: Fixture = write_fixture(TREE, root)
        Path(self.tree.path("/home/outside.md")).write_text("Outside.\n")
        self.texts = {form.path: _texts(form, seed) for form in FORMS.values()}
        self.overlays: dict[str, str] = {}
        self.snapshots: dict[str | None, Snapshot] = {}
        for form in FORMS.values():
            self._write(form.path, form.texts[seed % len(form.texts)].encode())

    def load(self) -> Snapshot:
        """Change up to three files, then load the folder, now and then for an agent."""
        paths = self.dice.sample(tuple(self.texts), self.dice.choice((1, 1, 1, 2, 3)))
        for path in paths:
            self._change(path)
        agent = self.dice.choice((None, None, None, "helper", "../x", "é"))
        typed = all(path in self.overlays for path in paths)
        changed = frozenset(map(self.tree.path, paths)) if typed and self.dice.random() < 0.5 else None
        snapshot = load_folder(
            self.tree,
            FOLDER,
            overlays=self.overlays,
            previous=self.snapshots.get(agent),
            changed=changed if len(self.snapshots) == 1 and agent in self.snapshots else None,
            agent=agent,
        )
        self.snapshots[agent] = snapshot
        if self.dice.random() < 0.02:
            self.snapshots.clear()
        return snapshot

    def _change(self, path: str) -> None:
        text = next(self.texts[path])
        kind = self.dice.choices(("text", "bytes", "unsaved", "other"), (5, 5, 3, 1))[0]
        if kind == "unsaved":
            self.overlays[path] = text
            return
        self.overlays.pop(path, None)
        if kind == "other":
            self._replace(path)
        else:
            data = text.encode("utf-8", "surrogatepass")
            self._write(path, data if kind == "text" else self.dice.choice(DAMAGES)(self.dice, data))

    def _write(self, path: str, data: bytes) -> None:
        file = self._cleared(path)
        file.write_bytes(data)

    def _replace(self, path: str) -> None:
        """The file is gone, or is no regular file, or is a link to something."""
        file = self._cleared(path)
        kind = self.dice.choice(("missing", "directory", "link", "loop", "pipe", "unreadable"))
        if kind == "directory":
            file.mkdir()
        elif kind == "link":
            file.symlink_to(self.dice.choice(_OTHERS))
        elif kind == "loop":
            file.symlink_to(file.name)
        elif kind == "pipe" and hasattr(os, "mkfifo"):
            os.mkfifo(file)
        elif kind == "unreadable":
            file.write_bytes(b"{}")
            file.chmod(0)

    def _cleared(self, path: str) -> Path:
        file = Path(self.tree.path(path))
        if file.is_dir() and not file.is_symlink():
            shutil.rmtree(file)
        else:
            file.unlink(missing_ok=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        return file


def _texts(form: Form, seed: int) -> Iterator[str]:
    return states(form, seed, 1_000_000)


def _insert(dice: Random, data: bytes) -> bytes:
    at = dice.randint(0, len(data))
    return data[:at] + dice.choice(_BYTES) + data[at:]


def _truncate(dice: Random, data: bytes) -> bytes:
    return data[: dice.randint(0, len(data))]


def _flip(dice: Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(dice.choice((1, 3, 30)) if data else 0):
        changed[dice.randrange(len(changed))] = dice.randrange(256)
    return bytes(changed)


def _encode(dice: Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(
        dice.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7")), "replace"
    )


def _block(dice: Random, data: bytes) -> bytes:
    """A block of zeros, as a crash of the machine leaves it."""
    at = dice.randint(0, len(data))
    return data[:at] + bytes(dice.choice((1, 512, 4096))) + data[at + 512 :]


DAMAGES: tuple[Damage, ...] = (_insert, _truncate, _flip, _encode, _block)
"""What can happen to bytes."""
