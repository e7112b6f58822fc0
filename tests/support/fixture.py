"""Fixture strings: one string is a tree of files and a cursor.

1. A line `//- /path/to/file` starts a file; its text is everything up to the next such line.
2. Text before the first such line is the file `/main`.
3. `$0` marks the cursor and is removed from the text; there is at most one.
4. The whole string is dedented first, so that a fixture may be indented like the code around it.
5. `{root}` in a text becomes the absolute root directory, for the few files that name absolute paths.
"""

import textwrap
from pathlib import Path

import msgspec

FILE_MARK = "//- "
CURSOR_MARK = "$0"
DEFAULT_PATH = "/main"


class Fixture(msgspec.Struct, frozen=True):
    """Files by absolute path and, if marked, the cursor: its file and its code-point offset."""

    root: str
    files: dict[str, str]
    cursor_path: str | None = None
    cursor: int | None = None

    def path(self, relative: str) -> str:
        """Absolute path of a file or directory that the fixture names `/relative`."""
        return join(self.root, relative)

    @property
    def text(self) -> str:
        """Text of the file with the cursor, else of the only file."""
        if self.cursor_path is not None:
            return self.files[self.cursor_path]
        (text,) = self.files.values()
        return text


def parse_fixture(text: str, *, root: str = "/") -> Fixture:
    """Read a fixture string without touching the disk; paths are placed under `root`."""
    files: dict[str, str] = {}
    cursor: tuple[str, int] | None = None
    for relative, raw in split_files(text):
        path = join(root, relative)
        if path in files:
            raise ValueError(f"fixture names {relative} twice")
        content = raw.replace("{root}", root)
        offset = content.find(CURSOR_MARK)
        if offset >= 0:
            if cursor is not None or content.count(CURSOR_MARK) > 1:
                raise ValueError("fixture has more than one $0")
            cursor = (path, offset)
            content = content.replace(CURSOR_MARK, "")
        files[path] = content
    if cursor is None:
        return Fixture(root, files)
    return Fixture(root, files, *cursor)


def write_file(path: Path, text: str) -> None:
    """Write a file as UTF-8, with line ends as they are, and make the directories that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def write_fixture(text: str, root: Path) -> Fixture:
    """Read a fixture string and write its files under `root`, as UTF-8, with line ends as they are."""
    fixture = parse_fixture(text, root=str(root))
    for path, content in fixture.files.items():
        write_file(Path(path), content)
    return fixture


def split_files(text: str) -> list[tuple[str, str]]:
    """Pairs of fixture path and raw text, in order."""
    body = textwrap.dedent(text).removeprefix("\n")
    files: list[tuple[str, list[str]]] = []
    for line in body.splitlines(keepends=True):
        if line.startswith(FILE_MARK):
            files.append((line.removeprefix(FILE_MARK).strip(), []))
        elif files:
            files[-1][1].append(line)
        else:
            files.append((DEFAULT_PATH, [line]))
    return [(path, "".join(lines)) for path, lines in files]


def join(root: str, relative: str) -> str:
    """Join a fixture path, which starts with a slash, to the root."""
    return root.rstrip("/") + "/" + relative.strip("/")
