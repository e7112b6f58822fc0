"""Completion items of settings files: what an item writes at the cursor, `$0`."""

from typing import Any

import pytest

from nexus_context.assistants.reading.toml_cursor import find_place as find_toml_place
from nexus_context.assistants.views.setting_keys import MCP_SERVERS, SettingKey, key_at, keys_below
from nexus_context.errors import Span
from nexus_context.text.json.cursor import find_place
from nexus_daemon.features.completion import ClientForm, Suggestion, key_items, value_items
from nexus_daemon.features.open_document import KINDS, OpenDocument
from nexus_daemon.lsp.convert import Locator, Texts

KEYS = [
    SettingKey("name", {"type": "string"}, "Who it is.", None),
    SettingKey("on", {"type": "boolean"}, "", False),
    SettingKey("list", {"type": "array"}, "", []),
    SettingKey("a$b", {"type": ["string", "null"]}, "", None),
]
SNIPPETS = ClientForm(has_snippets=True, has_markdown=True)


def opened(text: str, suffix: str = ".json") -> OpenDocument:
    path = f"/a/x{suffix}"
    return OpenDocument(
        path, KINDS[suffix], Locator(Texts({path: text}), "utf-16"), folder="/a", user_home="/h"
    )


def applied(text: str, name: str, form: ClientForm = SNIPPETS, suffix: str = ".json") -> str | None:
    """The text with the item of that name, None without one."""
    offset, text = text.index("$0"), text.replace("$0", "")
    document = opened(text, suffix)
    place = (find_place if suffix == ".json" else find_toml_place)(text, offset)
    assert place is not None
    items = {each["label"]: each for each in key_items(document, place, KEYS, form=form)}
    if name not in items:
        return None
    edit = items[name]["textEdit"]
    span = document.locate.span(document.path, edit["range"])
    new_text: str = edit["newText"]
    return text[: span.start] + new_text + text[span.end :]


@pytest.mark.parametrize(
    ("text", "name", "result"),
    [
        ("{$0}", "name", '{"name": "$0"}'),
        ('{"$0"}', "name", '{"name": "$0"}'),
        ('{"na$0', "name", '{"name": "$0"'),
        ('{"na$0me": 1}', "name", '{"name": 1}'),
        ('{$0 "b": 1}', "name", '{"name": "$0", "b": 1}'),
        ("{$0 }", "on", '{"on": ${1:true}$0 }'),
        ("{$0}", "list", '{"list": [$0]}'),
        ("{$0}", "a$b", '{"a\\$b": $0}'),
        ('{"name": 1, $0}', "name", None),
    ],
)
def test_a_key_comes_with_what_it_needs(text: str, name: str, result: str | None) -> None:
    assert applied(text, name) == result


@pytest.mark.parametrize(
    ("text", "name", "result"),
    [
        ("{$0}", "name", '{"name": ""}'),
        ("{$0}", "on", '{"on": true}'),
        ("{$0}", "a$b", '{"a$b": }'),
    ],
)
def test_a_client_without_snippets_gets_plain_text(text: str, name: str, result: str) -> None:
    assert applied(text, name, ClientForm()) == result


@pytest.mark.parametrize(
    ("text", "name", "result"),
    [
        ("$0", "name", 'name = "$0"'),
        ("[a]\nna$0me = 1", "name", "[a]\nname = 1"),
        ("$0", "a$b", '"a\\$b" = $0'),
    ],
)
def test_keys_of_toml(text: str, name: str, result: str) -> None:
    assert applied(text, name, suffix=".toml") == result


def test_an_item_says_what_is_known_of_the_key() -> None:
    place = find_place("{}", 1)
    assert place is not None
    name, on, *_ = key_items(opened("{}"), place, KEYS, form=SNIPPETS)
    assert (name["detail"], name["documentation"]) == ("text", {"kind": "markdown", "value": "Who it is."})
    assert on["documentation"]["value"] == "Default: `false`"
    plain: dict[str, Any] = key_items(opened("{}"), place, KEYS, form=ClientForm())[1]
    assert plain["documentation"] == {"kind": "plaintext", "value": "Default: false"}
    assert name["filterText"] == "name"


def test_values_keep_their_order_and_match_with_the_quote() -> None:
    text = '{"model": "g"}'
    offers = [Suggestion("b", '"b"'), Suggestion("a", '"a"')]
    items = value_items(opened(text), Span(10, 13), offers, form=SNIPPETS)
    assert [(each["filterText"], each["textEdit"]["newText"]) for each in items] == [
        ('"b"', '"b"'),
        ('"a"', '"a"'),
    ]
    assert items[0]["sortText"] < items[1]["sortText"]


@pytest.mark.parametrize(
    ("name", "keys", "known"),
    [
        ("nexus", ("provider", "name"), ["anthropic", "openai", "google"]),
        ("claude-code", ("permissions", "defaultMode"), ["default", "acceptEdits", "bypassPermissions"]),
        ("claude-code", ("effortLevel",), ["low", "medium", "high"]),
        (MCP_SERVERS, ("mcpServers", "x", "type"), ["stdio", "http", "sse"]),
        ("claude-code", ("autoMemoryEnabled",), [True, False]),
        ("copilot", ("chat.mcp.access",), ["none", "registry", "all"]),
    ],
)
def test_the_values_of_a_key(name: str, keys: tuple[str, ...], known: list[Any]) -> None:
    key = key_at(name, keys)
    assert key is not None
    assert key.values[:3] == known


@pytest.mark.parametrize(
    ("name", "keys", "below"),
    [
        ("nexus", (), "provider"),
        ("claude-code", ("hooks",), "PreToolUse"),
        ("claude-code", ("hooks", "PreToolUse", 0, "hooks", 0), "command"),
        ("codex", (), "model"),
        ("gemini", ("mcpServers", "x"), "command"),
        ("opencode", (), "mcp"),
        ("copilot", (), "chat.useAgentsMdFile"),
        (MCP_SERVERS, ("servers", "x"), "command"),
    ],
)
def test_the_keys_of_an_object(name: str, keys: tuple[str | int, ...], below: str) -> None:
    assert below in [key.name for key in keys_below(name, keys)]
    assert key_at(name, (*keys, "no-such-key-at-all")) is None or keys[:1] != ()
