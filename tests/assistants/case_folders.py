"""Fixture strings with what folders of assistants need besides texts: links, sizes, encodings, directories.

1. `//- /path` starts a file as in `support/fixture.py`, and `{root}` in a text is the root.
2. `//- /path -> target` is a symbolic link, with the target as it stands.
3. `//- /path/` is a directory. `{slug}` in a path is the resolved folder with `-` for what is no letter or
   digit.
4. `{text *N}` in a text stands for N times the text.
5. Words after ` | ` change the bytes: `*N` repeats the text, `bom` and `crlf` do as they say, `latin-1` and
   `utf-16` encode it, `unended` drops the last line end.
"""

import re
from pathlib import Path

from support.fixture import split_files

LINK = " -> "
OPTIONS = " | "


REPEATED = re.compile(r"\{(\S+ )\*(\d+)\}")


def expand(text: str) -> str:
    """A text with its repetitions written out."""
    return REPEATED.sub(lambda match: match[1] * int(match[2]), text)


def write_case(text: str, root: Path, directory: str = "/work") -> None:
    """Write a case's files below a root; it is for runs in a directory there."""
    for header, raw in split_files(expand(text)):
        header = header.replace("{slug}", slug(root) + slug(directory))
        path, link, target = header.partition(LINK)
        name, _, options = path.partition(OPTIONS)
        file = root / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        if link:
            file.symlink_to(target.replace("{root}", str(root)))
        elif name.endswith("/"):
            file.mkdir(exist_ok=True)
        else:
            file.write_bytes(_encoded(raw.replace("{root}", str(root)), options.split()))


def slug(path: Path | str) -> str:
    """A path as Claude Code names a directory for it."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(path))


def _encoded(text: str, options: list[str]) -> bytes:
    encoding = "utf-8"
    for option in options:
        if option.startswith("*"):
            text = "".join(text.replace("{n}", str(number)) for number in range(int(option[1:])))
        elif option == "bom":
            text = "\ufeff" + text
        elif option == "crlf":
            text = text.replace("\n", "\r\n")
        elif option == "unended":
            text = text.removesuffix("\n")
        elif option in ("latin-1", "utf-16"):
            encoding = option
        else:
            raise ValueError(f"{option} is not an option of a case's file")
    return text.encode(encoding)
