"""Whatever is in a file's place: a diagnostic arrives, soon, and the folder still assembles."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.editor import Editor

"""A hundred times what it takes; a hang takes for ever."""

GOOD = {
    "config.json": '{"tools": {"summary": true}}\n',
    "NEXUS.md": "Rules.\n",
    "mcp.json": '{"servers": []}\n',
}


def check(editor: Editor, name: str, make: Callable[[Path], object]) -> list[str]:
    """Put something in a file's place; the codes that are shown for it. The folder's others still count."""
    other = "AGENTS.md" if name != "NEXUS.md" else "more.md"
    tree = editor.tree(f"//- /a/.nexus3/{other}\nOther rules.\n")
    folder, path = Path(tree.path("/a")), Path(tree.path("/a/.nexus3"), name)
    if name == "NEXUS.md":
        (folder / ".nexus3" / "config.json").write_text('{"context": {"reserve_tokens": 77}}')
    make(path)
    editor.add(folder)
    context = editor.ask("context/assemble", folder, message="Why?")
    if name == "NEXUS.md":
        assert context["usage"]["reserved"] == 77
    else:
        assert "Other rules." in context["systemPrompt"]
    editor.remove(folder)
    return codes(editor, path)


def codes(editor: Editor, path: Path) -> list[str]:
    """Everything that was ever shown about a file."""
    return sorted({one["code"] for published in editor.published(path) for one in published["diagnostics"]})


def encoded(codec: str, before: bytes = b"") -> Callable[[Path], object]:
    return lambda path: path.write_bytes(before + GOOD[path.name].encode(codec))


def bytes_of(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 30)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


def unreadable(path: Path) -> None:
    path.write_text(GOOD[path.name])
    path.chmod(0)


def crlf(path: Path) -> None:
    path.write_bytes(GOOD[path.name].replace("\n", "\r\n").encode())


def outside(path: Path) -> None:
    target = path.parents[3] / f"outside-{path.parents[2].name}-{path.name}"
    target.write_text(GOOD[path.name])
    path.symlink_to(target)


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "BOM": (encoded("utf-8", b"\xef\xbb\xbf"), "layer.bom"),
    "UTF-16 with BOM": (encoded("utf-16"), "layer.encoding"),
    "UTF-16 without BOM": (encoded("utf-16-le"), "layer.encoding"),
    "UTF-32": (encoded("utf-32"), "layer.encoding"),
    "not UTF-8": (bytes_of(b'{"_comment": "\xff\xfe\x80"}'), "layer.encoding"),
    "NUL": (bytes_of(b'{"_comment": "a\0b", "x": 1}\n'), "layer.nul"),
    "FIFO": (lambda path: os.mkfifo(path), "layer.not-a-file"),
    "a directory": (lambda path: path.mkdir(), "layer.not-a-file"),
    "1 GiB": (huge, "layer.too-large"),
    "a loop of links": (loop, "layer.unreadable"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="files of POSIX")
@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(("make", "code"), PLACES.values(), ids=PLACES)
def test_what_can_be_in_a_files_place(
    editor: Editor, name: str, make: Callable[[Path], object], code: str
) -> None:
    assert code in check(editor, name, make)


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 0)() == 0, reason="root reads everything")
@pytest.mark.parametrize("name", GOOD)
def test_a_file_without_permission(editor: Editor, name: str) -> None:
    assert "layer.unreadable" in check(editor, name, unreadable)


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
@pytest.mark.parametrize("name", GOOD)
def test_a_link_out_of_the_folder_is_not_followed(editor: Editor, name: str) -> None:
    """A repository must not pull a file of the user's into the prompt."""
    secret = "Rules." if name == "NEXUS.md" else "summary"
    tree = editor.tree(f"//- /a/main.py\n//- /secret\n{GOOD[name]}")
    path = Path(tree.path("/a/.nexus3"), name)
    path.parent.mkdir()
    path.symlink_to(tree.path("/secret"))
    editor.add(tree.path("/a"))
    context = editor.ask("context/assemble", tree.path("/a"))
    assert secret not in context["systemPrompt"]
    assert editor.ask("config/effective", tree.path("/a"))["config"]["tools"]["summary"] is False
    reported = [one["path"] for one in editor.layers(tree.path("/a"))["skipped"]]
    assert str(path) in reported or editor.shown(path) != []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and FIFOs of POSIX")
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (loop, "layer.unreadable"),
        (lambda path: path.write_text(""), "layer.not-a-directory"),
        (lambda path: os.mkfifo(path), "layer.not-a-directory"),
        (lambda path: path.symlink_to(path.parents[1]), "layer.refused"),
    ],
    ids=["loop", "file", "FIFO", "leads out"],
)
def test_a_directory_that_nothing_can_be_read_from(
    editor: Editor, make: Callable[[Path], object], code: str
) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nRules.\n")
    folder, directory = tree.path("/a"), Path(tree.path("/a/.nexus3"))
    make(directory)
    editor.add(folder)
    assert "Rules." in editor.ask("context/assemble", folder)["systemPrompt"]
    assert codes(editor, directory) == [code]
    skipped = {one["path"]: one["reason"] for one in editor.layers(folder)["skipped"]}
    assert skipped[str(directory)].startswith("is a ")
    editor.remove(folder)


@pytest.mark.parametrize("name", GOOD)
def test_line_ends_count_only_in_what_is_sent(editor: Editor, name: str) -> None:
    assert check(editor, name, crlf) == (["layer.line-endings"] if name == "NEXUS.md" else [])


@pytest.mark.parametrize("name", GOOD)
def test_an_empty_file_is_fine(editor: Editor, name: str) -> None:
    assert check(editor, name, bytes_of(b"")) == []


def test_a_broken_file_that_is_opened_and_mended(editor: Editor) -> None:
    """The editor's text wins over what the disk cannot be read as."""
    tree = editor.tree("//- /a/.nexus3/mcp.json\n{}\n")
    folder, path = tree.path("/a"), Path(tree.path("/a/.nexus3/config.json"))
    path.write_bytes(GOOD["config.json"].encode("utf-16"))
    editor.add(folder)
    editor.layers(folder)
    assert editor.codes(path) == ["layer.encoding"]
    editor.open(path, GOOD["config.json"])
    editor.layers(folder)
    assert editor.shown(path) == []
    editor.close(path)
    editor.layers(folder)
    assert editor.codes(path) == ["layer.encoding"]


HOSTILE = {
    "a mark in the text": "\ufeff{}",
    "CRLF": "{\r\n}",
    "NUL": "\0",
    "UTF-16 taken for UTF-8": "{\0}\0",
    "half a character": '{"_comment": "\ud800"}',
    "very deep": "[1," * 50_000,
    "very long": '"' * 100_001,
    "too long": " " * 5_000_000,
    "astral": "😀" * 1000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_that_is_typed(editor: Editor, text: str) -> None:
    tree = editor.tree("//- /a/AGENTS.md\nOther rules.\n")
    folder = tree.path("/a")
    editor.add(folder)
    for name in GOOD:
        editor.open(tree.path(f"/a/.nexus3/{name}"), text)
    assert "context" in editor.ask("config/effective", folder)["config"]
    editor.ask("context/assemble", folder)
    for name in GOOD:
        assert editor.published(tree.path(f"/a/.nexus3/{name}"))[-1]["version"] == 1
        editor.close(tree.path(f"/a/.nexus3/{name}"))
