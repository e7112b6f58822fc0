"""Every feature at places of broken documents: no exception, nothing outside of the document."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.tracking.followers import SessionFollowers
from nexus_context.errors import RequestError, Span
from nexus_daemon.api.documents.handlers import HANDLERS
from nexus_daemon.api.documents.question import Question
from nexus_daemon.api.explain import Scene
from nexus_daemon.features.completion import ClientForm
from nexus_daemon.features.edits import Editing
from nexus_daemon.features.open_document import KINDS, OpenDocument
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import Locator, Texts, path_to_uri
from nexus_daemon.protocol.shapes import Position, Range
from support.fixture import write_fixture
from support.folders import load_folder

FILES = """
//- /a/.claude/settings.json
{"model": "opus", "permissions": {"allow": ["Bash(ls)", "mcp__gh__x"]},
 "hooks": {"PreToolUse": [{"hooks": []}]}}
//- /a/.mcp.json
{"mcpServers": {"gh": {"command": "gh", "env": {"A": "${HOME}"}}, "é😀": {"url": "http://x"}}}
//- /a/.codex/config.toml
model = "gpt-5"
[mcp_servers.gh]
command = "gh" # ü
args = ["a", 'b', "😀"]
//- /a/opencode.jsonc
{// a
 "mcp": {"gh": {"type": "local", "command": ["gh"],},}, "permission": {"bash": {"*": "ask"}}}
//- /a/.gemini/settings.json
{"mcpServers": {"gh": {"command": "gh"}}, "context": {"fileName": ["A.md"]}}
//- /a/.nexus3/config.json
{"context": {"reserve_tokens": 9000}, "provider": {"name": "editor"}}
//- /a/CLAUDE.md
# One 😀
See @docs/style.md and @../x.md, @~/y.md.

```
## no
```
## Two
- `@a` <!-- @docs/style.md -->
//- /a/docs/style.md
# Style
@more.md
//- /home/x
"""
ROUNDS = 12
ENCODINGS = ("utf-8", "utf-16", "utf-32")


def broken(text: str, rng: random.Random) -> Iterator[str]:
    """The text, and what is left of it while it is written or after an accident."""
    yield text
    yield ""
    for _ in range(ROUNDS):
        at = rng.randrange(len(text) + 1)
        yield text[:at]
        yield (
            text[:at]
            + rng.choice(['"', "{", "]", ",", "\n", "\r", "@", "\\", "\ud83d", "#", "\ufeff"])
            + text[at:]
        )
        yield text[:at] + text[min(len(text), at + rng.randrange(1, 9)) :]


def ranges(value: Any) -> Iterator[dict[str, Any]]:
    """The ranges of a result, but for those of other files."""
    if isinstance(value, dict):
        if "uri" in value or "changes" in value:
            return
        if value.keys() == {"start", "end"}:
            yield value
        for each in value.values():
            yield from ranges(each)
    elif isinstance(value, list):
        for each in value:
            yield from ranges(each)


@pytest.mark.parametrize("name", [line[4:] for line in FILES.splitlines() if line.startswith("//- /a/")])
def test_no_place_of_a_broken_document_is_too_much(tmp_path: Path, name: str) -> None:
    tree = write_fixture(FILES, tmp_path)
    path, rng = tree.path(name), random.Random(name)  # noqa: S311
    folder, home = str(tmp_path / "a"), str(tmp_path / "home")
    snapshot = load_folder(tree, "/a")
    original = Path(path).read_text()
    for text in broken(original, rng):
        encoding = rng.choice(ENCODINGS)
        scene = Scene(
            Surroundings(folder, home, {"HOME": home}),
            Disk({path: text}),
            snapshot,
            encoding,
            datetime.now(UTC),
        )
        locate = Locator(Texts({path: text.removeprefix("\ufeff")}), encoding, {path: text})
        document = OpenDocument(path, KINDS[Path(path).suffix], locate, folder=folder, user_home=home)
        question = Question(document, scene, ClientForm(), SessionFollowers(), Editing())
        offset = rng.randrange(len(document.text) + 1)
        position = locate.range(path, Span(offset, offset)).start
        end = locate.range(path, Span(len(document.text), len(document.text))).end
        identifier = lsp_types.TextDocumentIdentifier(path_to_uri(path))
        every = {
            "text_document": identifier,
            "position": position,
            "range": Range(Position(0, 0), end),
            "positions": (position,),
            "new_name": "hub",
            "context": lsp_types.CodeActionContext(),
        }
        for method, handler in HANDLERS.items():
            taken = lsp_types.HOT[method]
            params = taken(**{field: every[field] for field in taken.__struct_fields__})
            try:
                result = msgspec.to_builtins(handler(question, params))
            except RequestError:
                continue
            for found in ranges(result):
                for place in found.values():
                    assert (place["line"], place["character"]) <= (end.line, end.character) or place[
                        "line"
                    ] < end.line
