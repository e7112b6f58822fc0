"""The files of JSONTestSuite as config.json of one daemon: what is no JSON is shown, and only that."""

import os
from pathlib import Path

from support.editor import Editor

CORPORA = Path(
    os.environ.get("NEXUS_CORPORA") or Path(__file__).resolve().parents[2].parent / "shared" / "data"
)
FILES = sorted((CORPORA / "JSONTestSuite" / "test_parsing").glob("*.json"))
OWN = {
    "y_empty.json": b"{}",
    "y_spaces.json": b' \t\r\n{"a":[]}\n',
    "n_trailing_comma.json": b'{"a":1,}',
    "n_single_quotes.json": b"{'a':1}",
    "n_comment.json": b"{} // a",
    "n_open.json": b"[" * 10_000,
    "n_bytes.json": b'["\xff"]',
}


def check(editor: Editor, name: str, data: bytes) -> list[str]:
    """The errors of bytes on disk that make them no JSON: of the syntax or of the encoding."""
    tree = editor.tree("//- /a/.nexus3/NEXUS.md\nRules.\n")
    path = Path(tree.path("/a/.nexus3/config.json"))
    path.write_bytes(data)
    editor.add(tree.path("/a"))
    assert "Rules." in editor.ask("context/preview", tree.path("/a"))["text"]
    found = [one["code"] for one in editor.shown(path) if one["severity"] == 1]
    syntax = ("json.", "layer.")
    on_disk = [code for code in found if code.startswith(syntax)]
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None:
        editor.open(path, text)
        assert "Rules." in editor.ask("context/preview", tree.path("/a"))["text"]
        typed = [
            one["code"]
            for one in editor.shown(path)
            if one["severity"] == 1 and one["code"].startswith(syntax)
        ]
        assert bool(typed) == bool(on_disk), name
        editor.close(path)
    editor.remove(tree.path("/a"))
    return on_disk


EMPTY = {"n_single_space.json", "n_structure_no_data.json", "n_structure_UTF8_BOM_no_data.json"}
"""No JSON, but fine as a config.json: the same as {}."""


def wrong(name: str, found: list[str]) -> bool:
    """Whether the answer contradicts the file's name: y_ must be accepted, n_ must not, i_ may be either."""
    accepted = name.startswith("y_") or name in EMPTY
    return (accepted and bool(found)) or (name.startswith("n_") and not accepted and not found)


def test_files_of_our_own(editor: Editor) -> None:
    found = {name: check(editor, name, data) for name, data in OWN.items()}
    assert {name: codes for name, codes in found.items() if wrong(name, codes)} == {}


if FILES:

    def test_the_whole_suite(editor: Editor) -> None:
        found = {path.name: check(editor, path.name, path.read_bytes()) for path in FILES}
        assert len(found) == 318
        assert {name: codes for name, codes in found.items() if wrong(name, codes)} == {}
