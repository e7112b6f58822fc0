"""Links and definitions of imports, of a file and at the cursor."""

from pathlib import Path

import msgspec
import pytest

from nexus_daemon.features.import_links import import_definition, import_links
from nexus_daemon.features.open_document import OpenDocument
from nexus_daemon.lsp.convert import Locator, Texts, path_to_uri
from support.fixture import write_fixture

FILES = """
//- /docs/style.md
Be brief.
//- /a/docs/threats.md
None.
//- /a/b c.md
Blank.
//- /home/own.md
Mine.
"""


def opened(root: Path, text: str, encoding: str = "utf-16") -> OpenDocument:
    path = write_fixture(FILES, root).path("/a/CLAUDE.md")
    locate = Locator(Texts({path: text}), encoding)
    return OpenDocument(path, "instructions", locate, folder=str(root / "a"), user_home=str(root / "home"))


def is_file(path: str) -> bool:
    return Path(path).is_file()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("See @docs/threats.md.", [("0:4-0:20", "/a/docs/threats.md")]),
        ("@../docs/style.md", [("0:0-0:17", "/docs/style.md")]),
        ("@~/own.md and @b\\ c.md!", [("0:0-0:9", "/home/own.md"), ("0:14-0:22", "/a/b c.md")]),
        ("Mail to me@docs/threats.md", []),
        ("`@docs/threats.md`", []),
        ("@docs/gone.md, @docs, @user", []),
        ("@a\0b @" + "x" * 5000, []),
    ],
)
def test_an_import_with_a_file_is_a_link(tmp_path: Path, line: str, expected: list[tuple[str, str]]) -> None:
    links = msgspec.to_builtins(import_links(opened(tmp_path, line), is_file=is_file))
    assert [(shown(link["range"]), link["target"]) for link in links] == [
        (where, path_to_uri(str(tmp_path) + target)) for where, target in expected
    ]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("See $0@docs/threats.md.", "/a/docs/threats.md"),
        ("See @docs/thr$0eats.md.", "/a/docs/threats.md"),
        ("See @docs/threats.md$0.", "/a/docs/threats.md"),
        ("See $0 @docs/threats.md.", None),
        ("@docs/go$0ne.md", None),
        ("$0", None),
    ],
)
def test_the_definition_of_an_import_is_its_file(tmp_path: Path, text: str, target: str | None) -> None:
    offset = text.index("$0")
    document = opened(tmp_path, text.replace("$0", ""))
    places = msgspec.to_builtins(import_definition(document, offset, is_file=is_file))
    expected = [] if target is None else [path_to_uri(str(tmp_path) + target)]
    assert [place["uri"] for place in places] == expected
    assert all(shown(place["range"]) == "0:0-0:0" for place in places)


@pytest.mark.parametrize(("encoding", "start"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)])
def test_columns_are_those_of_the_editor(tmp_path: Path, encoding: str, start: int) -> None:
    document = opened(tmp_path, "😀 @docs/threats.md", encoding)
    (link,) = msgspec.to_builtins(import_links(document, is_file=is_file))
    assert link["range"]["start"] == {"line": 0, "character": start}


def shown(where: dict[str, dict[str, int]]) -> str:
    return "-".join(f"{where[end]['line']}:{where[end]['character']}" for end in ("start", "end"))
