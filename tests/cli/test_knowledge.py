"""`nexus knowledge query` and `status`."""

import json
import re
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from support.commands import output_of, use_home
from support.embeddings import needs_model
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "memory": {"knowledge": {"paths": ["docs", "notes/*.md"], "top_k": 2}}}
//- /home/a/docs/deploy.md
# Deploy

Talk.

## Rollback

Run `make rollback` within an hour.
//- /home/a/docs/money.md
Customers get their money back within thirty days.
//- /home/a/docs/style.md
Names are short. No rollback has a name.
//- /home/lone/NEXUS.md
Lone.
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    tree = write_fixture(FIXTURE, tmp_path)
    use_home(monkeypatch, tmp_path)
    monkeypatch.chdir(tree.path("/home/a"))
    return tree


def check(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """The output and the errors of `nexus knowledge`, without the root's path and the index's name."""
    return re.sub(r"[0-9a-f]{24}", "<index>", output_of(tree, capsys, "knowledge", *arguments, code=code))


def test_passages_are_printed_with_their_place(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tree, capsys, "query", "When", "is", "a", "rollback", "possible?") == snapshot("""\
/home/a/docs/deploy.md:5 › Deploy › Rollback

## Rollback

Run `make rollback` within an hour.

/home/a/docs/style.md:1

Names are short. No rollback has a name.

""")
    assert check(tree, capsys, "query", "mountains") == "nexus knowledge: no passage matches.\n"


def test_json_is_what_the_protocol_has(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    (passage,) = json.loads(check(tree, capsys, "query", "a rollback?", "--limit", "1", "--json"))["passages"]
    assert passage["uri"] == Path("/home/a/docs/deploy.md").as_uri()
    assert passage["range"]["start"] == {"line": 4, "character": 0}
    assert passage["matchedBy"] == ["words"]


def test_status(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tree, capsys, "status") == snapshot("""\
path         /home/a/docs
path         /home/a/notes/*.md
files        3
passages     4
searched by  words
index        /state/knowledge/<index>.db
nexus knowledge: /home/a/notes/*.md does not exist. Create it or correct the path.
""")
    state = json.loads(check(tree, capsys, "status", "--json"))
    assert (state["files"], state["passages"], state["model"], state["vectors"]) == (3, 4, None, None)


@needs_model
def test_the_search_by_meaning_is_that_of_a_turn(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tree, capsys, "query", "a refund for a client") == "nexus knowledge: no passage matches.\n"
    config = Path(tree.path("/home/a/.nexus3/config.json"))
    settings = json.loads(config.read_text())
    settings["memory"]["knowledge"]["embeddings"] = {"enabled": True}
    config.write_text(json.dumps(settings))
    printed = check(tree, capsys, "query", "a refund for a client")
    assert printed.startswith("/home/a/docs/money.md:1 (by meaning)\n\nCustomers get their money back")
    state = json.loads(check(tree, capsys, "status", "--json"))
    assert state["vectors"] == state["passages"] == 4
    settings["memory"]["knowledge"]["embeddings"]["min_similarity"] = 0.99
    config.write_text(json.dumps(settings))
    assert check(tree, capsys, "query", "a refund for a client") == "nexus knowledge: no passage matches.\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ("status", "--folder", "../lone"),
            1,
            (
                "/home/lone has no knowledge base; name its files in memory.knowledge.paths of "
                ".nexus3/config.json (docs/memory.md)."
            ),
        ),
        (("query", "x", "--folder", "/nowhere"), 2, "/nowhere does not exist."),
    ],
)
def test_mistakes_are_one_line(
    tree: Fixture, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], code: int, message: str
) -> None:
    assert check(tree, capsys, *arguments, code=code) == f"nexus knowledge: {message}\n"
