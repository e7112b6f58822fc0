"""The key or value at the cursor, `$0`, of a settings file."""

import pytest

from nexus_daemon.features.open_document import KINDS, OpenDocument
from nexus_daemon.features.settings_place import place_at
from nexus_daemon.lsp.convert import Locator, Texts


@pytest.mark.parametrize(
    ("suffix", "text", "path", "span"),
    [
        (".json", '{"a": {"b$0": 1}}', ("a", "b"), '"b"'),
        (".json", '{"a": {"b": 1$0}}', ("a", "b"), "1"),
        (".json", '{"a": ["x", "y$0"]}', ("a", 1), '"y"'),
        (".json", '{"a": {$0 }}', None, ""),
        (".json", '{"a": {"b$0": ', ("a", "b"), '"b"'),
        (".json", "$0", None, ""),
        (".jsonc", '{"a": 1, // x\n "b$0": 2,}', ("b",), '"b"'),
        (".toml", 'a = 1\n[b.c]\nd$0 = "x"', ("b", "c", "d"), "d"),
        (".toml", '[b]\nd = ["x", "y$0"]', ("b", "d", 1), '"y"'),
        (".toml", "[b.c$0]\n", ("b", "c"), "c"),
        (".toml", "a = $0\n", None, ""),
        (".toml", "a = 1\n$0\n", None, ""),
    ],
)
def test_a_place_is_the_key_or_the_plain_value(
    suffix: str, text: str, path: tuple[str | int, ...] | None, span: str
) -> None:
    offset, text = text.index("$0"), text.replace("$0", "")
    name = f"/a/x{suffix}"
    locate = Locator(Texts({name: text}), "utf-16")
    place = place_at(OpenDocument(name, KINDS[suffix], locate, folder="/a", user_home="/h"), offset)
    assert (None if place is None else place.path) == path
    assert place is None or text[place.span.start : place.span.end] == span
