"""`nexus/context/layers` and `preview`: tokens by file and layer, for the folder and for an agent of it."""

from pathlib import Path

import pytest

from nexus_context.conversation.times import local_time
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import TiktokenCounter
from nexus_daemon.api import context
from nexus_daemon.lsp.convert import Locator
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative
from support.pools import pool_of

COUNT = TiktokenCounter("o200k_base").count
FILES = """\
//- /home/.nexus3/NEXUS.md
Everywhere.
//- /home/co/.nexus3/config.json
{"provider": {"model": "MODEL"}, "context": {"sections": [{"name": "Words", "content": "Mind them."}]}}
//- /home/co/NEXUS.md
The company says @rules.md here.
//- /home/co/rules.md
Rules of the company, which are longer than the rest.
//- /home/co/shop/NEXUS.md
The shop.
//- /home/co/shop/cart/NEXUS.md
The cart.
"""


def written(root: Path, model: str = "gpt-4o") -> Fixture:
    return write_fixture(FILES.replace("MODEL", model), root)


def check(fixture: Fixture, snapshot: Snapshot, expected: dict[str, list[str]]) -> None:
    """The paths with tokens by layer; each layer's tokens are those of its fragments, and of its files."""
    locate = Locator(snapshot.layers, "utf-8")
    result = context.build_layers(snapshot, locate, local_time())
    preview = context.build_preview(snapshot, locate, local_time())
    files = {file.uri: layer.name for layer in result.layers for file in layer.files}
    fragments: dict[str, dict[str, int]] = {}
    for part in preview.fragments:
        uri = "" if part.source is None else part.source.uri
        layer_name = part.layer or files.get(uri)  # a setting that the model is told is of its file
        if layer_name is not None:
            by_path = fragments.setdefault(layer_name, {})
            by_path[uri] = by_path.get(uri, 0) + part.tokens
    assert {layer.name: layer.tokens for layer in result.layers if layer.tokens} == {
        name: sum(by_path.values()) for name, by_path in fragments.items()
    }
    for layer in result.layers:
        for file in layer.files:
            assert (file.tokens or 0) == fragments.get(layer.name, {}).get(file.uri, 0)
    assert {
        name: sorted(relative(fixture, uri.removeprefix("file://")) for uri in by_path)
        for name, by_path in fragments.items()
        if name != "defaults"
    } == expected


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_a_folder(tmp_path: Path, model: str) -> None:
    fixture = written(tmp_path, model)
    expected = {
        "global": ["/home/.nexus3/NEXUS.md"],
        "local": ["/home/co/.nexus3/config.json", "/home/co/NEXUS.md", "/home/co/rules.md"],
    }
    check(fixture, load_folder(fixture, "/home/co"), expected)


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5"])
def test_an_agent_below_another(tmp_path: Path, model: str) -> None:
    """What is the project of the agent above is an ancestor of this one."""
    fixture = written(tmp_path, model)
    pool = pool_of(fixture, "/home/co")
    pool.spawn("shop", "shop")
    expected = {
        "global": ["/home/.nexus3/NEXUS.md"],
        "ancestor:co": ["/home/co/.nexus3/config.json", "/home/co/NEXUS.md", "/home/co/rules.md"],
        "ancestor:shop": ["/home/co/shop/NEXUS.md"],
        "local": ["/home/co/shop/cart/NEXUS.md"],
    }
    check(fixture, pool.spawn("cart", "shop/cart", parent="shop").snapshot, expected)


def test_what_another_directory_brings_is_of_no_layer(tmp_path: Path) -> None:
    fixture = write_fixture(
        FILES.replace("MODEL", "gpt-4o") + "//- /home/co/till/NEXUS.md\nThe till.\n", tmp_path
    )
    pool = pool_of(fixture, "/home/co")
    pool.spawn("shop", "shop")
    expected = {
        "global": ["/home/.nexus3/NEXUS.md"],
        "ancestor:co": ["/home/co/.nexus3/config.json", "/home/co/NEXUS.md", "/home/co/rules.md"],
        "local": ["/home/co/till/NEXUS.md"],
    }
    snapshot = pool.spawn("till", "till", parent="shop").snapshot
    check(fixture, snapshot, expected)
    assert "The shop." in snapshot.prompt.text


def test_the_counter_is_named(tmp_path: Path) -> None:
    snapshot = load_folder(written(tmp_path, "claude-sonnet-4-5"), "/home/co")
    assert not context.build_layers(snapshot, Locator(snapshot.layers, "utf-8"), local_time()).counter.exact


def test_the_shipped_file_has_no_path_in_the_prompt(tmp_path: Path) -> None:
    snapshot = load_folder(write_fixture("//- /home/a/NEXUS.md\nBe brief.\n", tmp_path), "/home/a")
    start = "# System Configuration\n\n## Default Configuration\nSource: (shipped)\n\nYou are"
    assert snapshot.prompt.text.startswith(start)
    assert COUNT("\nSource: (shipped)\n") == 7
