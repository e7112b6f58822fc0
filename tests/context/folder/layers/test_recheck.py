"""A keystroke in a broken settings file: rechecking it gives the same as loading the folder."""

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nexus_context.folder.layers import recheck
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder

CONFIG = "/home/work/app/.nexus3/config.json"
TREE = """
//- /home/.nexus3/config.json
{"permissions": {"level": "sandboxed"}}
//- /home/work/app/.nexus3/config.json
{"permissions": {"level": "yolo"}, "context": {"keep_recent_turns": 5}}
//- /home/work/app/NEXUS.md
Be kind.
"""
GOOD = '{"context": {"keep_recent_turns": 5}}'
PIECES = [
    '{"context": {',
    '"keep_recent_turns": 5',
    '"keep_recent_turn": 5',
    '"instruction_files": ["../x"]',
    ",",
    "}}",
    "}",
    '"permissions": {"level": "yolo"}',
]
TYPED = [f'{{"agents": {{"a": {{"task": "{task}", "tasks": 1}}}}}}' for task in ("", "d", "di", "dig", "Dig")]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map("".join) | st.sampled_from([GOOD, *TYPED])


def typed(tree: Fixture, *texts: str, whole: bool) -> Snapshot:
    """The snapshot after these texts were typed in turn; `whole`: everything is loaded each time."""
    snapshot = load_folder(tree, "/home/work/app")
    changed = None if whole else frozenset([tree.path(CONFIG)])
    for text in texts:
        snapshot = load_folder(
            tree, "/home/work/app", overlays={CONFIG: text}, previous=snapshot, changed=changed
        )
    return snapshot


@given(st.lists(TEXTS, min_size=1, max_size=4))
def test_rechecking_gives_the_same_as_loading(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        tree = write_fixture(TREE, Path(directory))
        quick, long = typed(tree, *texts, whole=False), typed(tree, *texts, whole=True)
    assert sorted(map(repr, quick.problems)) == sorted(map(repr, long.problems))
    assert quick.layers.layers == long.layers.layers
    assert quick.layers.texts == long.layers.texts
    assert quick.layers.effective.values == long.layers.effective.values
    assert quick.prompt == long.prompt


def test_only_a_file_that_stays_broken_is_rechecked(tmp_path: Path) -> None:
    """A change that fixes or breaks the file may change settings."""
    tree = write_fixture(TREE, tmp_path)
    path, home = tree.path(CONFIG), tree.path("/home/.nexus3/config.json")

    def is_rechecked(before: str, after: str) -> bool:
        layers = typed(tree, before, whole=True).layers
        return recheck.recheck(layers, path, after, global_path=home) is not None

    assert [
        is_rechecked(*texts) for texts in (("{", "{,"), ("{", GOOD), (GOOD, "{"), (GOOD, GOOD + " "))
    ] == [
        True,
        False,
        False,
        False,
    ]
