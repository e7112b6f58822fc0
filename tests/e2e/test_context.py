"""What the model will see and what it costs: every token with a row, every character with its source."""

import itertools
import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from inline_snapshot import snapshot

from support.client import ReplyError
from support.editor import Editor, editor_in, uri_of
from support.fixture import Fixture

FIXTURE = """
//- /.nexus3/NEXUS.md
The company's rules.
//- /.nexus3/config.json
{
  "context": {"reserve_tokens": 500, "instruction_files": ["NEXUS.md"]},
  "provider": {"model": "gpt-4o"},
  "tools": {"disabled": ["shell"]}
}
//- /a/.nexus3/NEXUS.md
The project's rules 😀, é.

See @more.md for more.
//- /a/.nexus3/more.md
More rules.
//- /a/.nexus3/config.json
{
  "context": {"reserve_tokens": 1000},
  "parameters": {"temperature": 0.5},
  "tools": {"disabled": ["web", "shell"]}
}
//- /a/.nexus3/mcp.json
{"mcpServers": {"files": {"command": "sh"}, "off": {"command": "sh", "enabled": false}}}
//- /.nexus3/mcp.json
{"servers": [{"name": "files", "command": "sh"}]}
"""
TOOLS = [
    {
        "name": "read",
        "description": "Read a file.",
        "inputSchema": {"type": "object", "properties": {"path": {}}},
    },
    {"name": "shell", "description": "Run a command.", "inputSchema": {"type": "object"}},
]


@pytest.fixture(scope="module")
def tree(editor: Editor) -> Fixture:
    tree = editor.tree(FIXTURE)
    editor.add(tree.path("/a"))
    return tree


def check(editor: Editor, tree: Fixture, **params: object) -> Any:
    """Assemble for /a; whatever is asked for, the rows sum to the total."""
    result = editor.ask("context/assemble", tree.path("/a"), **params)
    usage = result["usage"]
    assert sum(row["tokens"] for row in usage["rows"]) == usage["total"]
    assert usage["available"] == usage["limit"] - usage["reserved"]
    assert usage["remaining"] == usage["available"] - usage["total"]
    assert sum(result["metadata"]["tokens"].values()) == usage["total"]
    return result


# ---------------------------------------------------------------- assemble


def test_neutral(editor: Editor, tree: Fixture) -> None:
    result = check(editor, tree, message="Why?")
    assert {key: result[key] for key in ("session", "tools", "parameters", "model", "provider")} == {
        "session": "main",
        "tools": [],
        "parameters": {"temperature": {"value": 0.5, "origin": "local"}},
        "model": "gpt-4o",
        "provider": "editor",
    }
    (opening,) = result["history"]  # the session's opening is sent from the first request on
    assert (opening["role"], opening["content"][:18]) == ("user", "[Session started: ")
    assert (result["usage"]["limit"], result["usage"]["reserved"]) == (128_000, 1000)
    assert result["usage"]["counter"] == {"name": "o200k_base", "exact": True}
    assert result["currentMessage"]["role"] == "user"
    assert result["currentMessage"]["content"].endswith("\n\nWhy?")
    prompt = result["systemPrompt"]
    assert prompt.index("The company's rules.") < prompt.index("The project's rules 😀, é.")
    assert prompt.index("The project's rules") < prompt.index("More rules.")
    assert "request" not in result


def all_texts(result: Any) -> list[str]:
    """The texts of the history, then that of the current message."""
    return [message["content"] for message in (*result["history"], result["currentMessage"])]


def test_openai(editor: Editor, tree: Fixture) -> None:
    result = check(editor, tree, message="Why?", format="openai", options={"additionalTools": TOOLS})
    body = result["request"]
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["messages"][0]["content"] == result["systemPrompt"]
    assert body["messages"][1]["content"] == "\n\n".join(all_texts(result))
    assert (body["model"], body["temperature"]) == ("gpt-4o", 0.5)
    assert [(tool["type"], tool["function"]["name"]) for tool in body["tools"]] == [("function", "read")]


def test_anthropic(editor: Editor, tree: Fixture) -> None:
    options = {"model": "claude-sonnet-4-5", "additionalTools": TOOLS}
    result = check(editor, tree, message="Why?", format="anthropic", options=options)
    body = result["request"]
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert "".join(block["text"] for block in body["system"]) == result["systemPrompt"]
    assert str(body).count("cache_control") <= 4
    assert (body["model"], body["max_tokens"] > 0) == ("claude-sonnet-4-5", True)
    assert [tool["name"] for tool in body["tools"]] == ["read"]
    assert result["usage"]["counter"]["exact"] is False
    assert all(row["exact"] is False for row in result["usage"]["rows"])


def test_responses(editor: Editor, tree: Fixture) -> None:
    options = {"model": "gpt-5.5", "additionalTools": TOOLS}
    result = check(editor, tree, message="Why?", format="openai-responses", options=options)
    body = result["request"]
    assert (body["model"], body["store"]) == ("gpt-5.5", False)
    assert body["instructions"] == result["systemPrompt"]
    parts = [[{"type": "input_text", "text": text}] for text in all_texts(result)]
    assert body["input"] == [{"type": "message", "role": "user", "content": part} for part in parts]
    assert body["include"] == ["reasoning.encrypted_content"]
    assert [(tool["type"], tool["name"]) for tool in body["tools"]] == [("function", "read")]
    assert result["metadata"]["unsent"] == [
        "parameter temperature: gpt-5.5 does not accept it while thinking"
    ]


def test_gemini(editor: Editor, tree: Fixture) -> None:
    options = {"model": "gemini-3.5-flash", "additionalTools": TOOLS}
    result = check(editor, tree, message="Why?", format="gemini", options=options)
    body = result["request"]
    assert body["systemInstruction"] == {"parts": [{"text": result["systemPrompt"]}]}
    assert body["contents"] == [{"role": "user", "parts": [{"text": text} for text in all_texts(result)]}]
    assert body["generationConfig"] == {"temperature": 0.5}
    assert [one["name"] for one in body["tools"][0]["functionDeclarations"]] == ["read"]


def test_reasoning_comes_back_to_its_provider(editor: Editor, tree: Fixture) -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
    messages = [
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": [thinking, reasoning, {"type": "text", "text": "Done."}]},
    ]
    editor.ask("session/append", tree.path("/a"), session="thinking", messages=messages)
    options = {"model": "claude-opus-4-8"}
    result = check(editor, tree, session="thinking", message="Go on.", format="anthropic", options=options)
    assert result["request"]["messages"][1]["content"][0] == thinking
    assert [(one["kind"], one["index"]) for one in result["metadata"]["repairs"]] == [
        ("thinking-left-out", 2)
    ]
    options = {"model": "gpt-5.5"}
    result = check(
        editor, tree, session="thinking", message="Go on.", format="openai-responses", options=options
    )
    assert result["request"]["input"][2] == reasoning


def test_a_history_with_tool_calls_is_valid_for_both_providers(editor: Editor, tree: Fixture) -> None:
    messages = [
        {"role": "user", "content": "Read it."},
        {
            "role": "assistant",
            "content": None,
            "toolCalls": [{"id": "1", "name": "read", "arguments": {"p": 1}}],
        },
        {"role": "tool", "toolCallId": "1", "name": "read", "content": "text"},
    ]
    editor.ask("session/append", tree.path("/a"), session="tools", messages=messages)
    openai = check(editor, tree, session="tools", message="Go on.", format="openai")["request"]["messages"]
    roles = [role for role, _ in itertools.groupby(one["role"] for one in openai)]
    assert roles == ["system", "user", "assistant", "tool", "user"]
    (called,) = [one for one in openai if one["role"] == "assistant"]
    assert called["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"p":1}'}
    anthropic = check(editor, tree, session="tools", message="Go on.", format="anthropic")["request"][
        "messages"
    ]
    assert [one["role"] for one in anthropic] == ["user", "assistant", "user"]
    assert anthropic[1]["content"][-1]["input"] == {"p": 1}
    assert [block["type"] for block in anthropic[2]["content"]] == ["tool_result", "text"]


def test_the_second_prompt_is_the_same_to_the_byte(editor: Editor, tree: Fixture) -> None:
    first, second = (check(editor, tree, message=message) for message in ("One?", "Two, which is longer?"))
    assert first["systemPrompt"].encode() == second["systemPrompt"].encode()
    assert first["metadata"]["prefixHash"] == second["metadata"]["prefixHash"]
    assert first["revision"] == second["revision"]
    assert editor.ask("context/preview", tree.path("/a"))["text"] == first["systemPrompt"]
    other = check(editor, tree, options={"additionalTools": TOOLS})
    assert other["metadata"]["prefixHash"] != first["metadata"]["prefixHash"]


def test_every_request_is_a_command_too(editor: Editor, tree: Fixture) -> None:
    folder = {"workspaceFolder": uri_of(tree.path("/a"))}
    for method, params in {
        "nexus/context/assemble": {**folder, "session": "c"},
        "nexus/context/preview": folder,
        "nexus/context/usage": {**folder, "session": "c"},
        "nexus/context/layers": folder,
        "nexus/config/effective": folder,
        "nexus/session/messages": {**folder, "session": "c"},
        "nexus/session/clear": {**folder, "session": "c"},
        "nexus/tokens/count": {"texts": ["a"]},
    }.items():
        command = {"command": method.replace("/", "."), "arguments": [params]}
        by_command = editor.request("workspace/executeCommand", command)
        by_request = editor.request(method, params)
        assert without_time(by_command) == without_time(by_request)
    status = editor.request("workspace/executeCommand", {"command": "nexus.status"})
    assert status["connections"] == 1


def without_time(result: Any) -> Any:
    if "metadata" in result:
        result["metadata"].pop("assemblyMs")
    result.pop("currentMessage", None)
    return result


# ---------------------------------------------------------------- options


def test_options_of_one_request(editor: Editor, tree: Fixture) -> None:
    options = {
        "model": "gpt-4-turbo",
        "maxContextTokens": 5000,
        "reserveTokens": 250,
        "additionalSystemPrompt": "Only this once.",
        "additionalTools": TOOLS,
        "disabledTools": ["re*"],
        "parameters": {"temperature": 1.5, "top_p": 0.9},
    }
    result = check(editor, tree, options=options)
    assert (result["model"], result["usage"]["counter"]["name"]) == ("gpt-4-turbo", "cl100k_base")
    assert (result["usage"]["limit"], result["usage"]["reserved"]) == (5000, 250)
    assert "Only this once." in result["systemPrompt"]
    assert result["tools"] == []
    assert result["parameters"] == {
        "temperature": {"value": 1.5, "origin": "request"},
        "top_p": {"value": 0.9, "origin": "request"},
    }
    assert "Only this once." not in check(editor, tree)["systemPrompt"]


def test_a_budget_that_is_too_small_is_said(editor: Editor, tree: Fixture) -> None:
    usage = check(editor, tree, message="Hello", options={"maxContextTokens": 300, "reserveTokens": 100})[
        "usage"
    ]
    assert (usage["limit"], usage["reserved"], usage["over"]) == (300, 100, True)
    assert usage["remaining"] < 0


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_p": -1}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temprature": 1}, "temprature"),
        ({"thinking": {"level": "hard", "budgget": 1}}, "thinking"),
    ],
)
def test_a_parameter_out_of_range_is_named(
    editor: Editor, tree: Fixture, parameters: Any, named: str
) -> None:
    with pytest.raises(ReplyError) as failed:
        check(editor, tree, options={"parameters": parameters})
    error = failed.value.error
    assert (error["code"], error["data"]["code"]) == (-32803, "bad-parameter")
    assert named in error["message"]


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"format": "cohere"}, -32803),
        ({"format": 5}, -32602),
        ({"options": []}, -32602),
        ({"options": {"maxContextTokens": "many"}}, -32602),
        ({"message": {"role": "robot", "content": ""}}, -32602),
        ({"message": 5}, -32602),
    ],
)
def test_wrong_parameters_are_refused(editor: Editor, tree: Fixture, params: Any, code: int) -> None:
    with pytest.raises(ReplyError) as failed:
        check(editor, tree, **params)
    assert failed.value.error["code"] == code
    assert check(editor, tree)["systemPrompt"]


@pytest.mark.parametrize(
    "options", [{"maxContextTokens": -5}, {"reserveTokens": -1}, {"maxContextTokens": 0}]
)
def test_a_limit_below_nothing_is_refused(editor: Editor, tree: Fixture, options: Any) -> None:
    with pytest.raises(ReplyError) as failed:
        check(editor, tree, options=options)
    assert next(iter(options)) in failed.value.error["message"]


def test_every_form_of_a_message(editor: Editor, tree: Fixture) -> None:
    parts = [{"type": "text", "text": "Why?"}]
    for message, content in [
        ("Why?", "Why?"),
        (parts, parts),
        ({"role": "user", "content": "Why?"}, "Why?"),
        ({"role": "user", "content": parts, "meta": {"class": 1}}, parts),
    ]:
        current = check(editor, tree, message=message)["currentMessage"]
        if isinstance(content, str):
            assert current["content"].endswith(content)
        else:
            assert current["content"][-1:] == content
    assert "meta" in current


def test_the_event_is_part_of_the_current_message_and_of_its_row(editor: Editor, tree: Fixture) -> None:
    event = {"platform": "slack", "hook": {"class": [1, 2]}}
    result = check(editor, tree, message="Why?", event=event)
    assert "Platform: slack" in result["currentMessage"]["content"]
    assert "platform" not in result["systemPrompt"]
    with_event = [row for row in result["usage"]["rows"] if row["category"] == "event"]
    without = [
        row for row in check(editor, tree, message="Why?")["usage"]["rows"] if row["category"] == "event"
    ]
    assert with_event[0]["tokens"] > without[0]["tokens"]


# ---------------------------------------------------------------- preview


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
def test_fragments_tile_the_prompt_and_point_at_their_source(tmp_path: Path, encoding: str) -> None:
    with editor_in(tmp_path / "home", encodings=[encoding]) as editor:
        tree = editor.tree(FIXTURE)
        editor.add(tree.path("/a"))
        preview = editor.ask("context/preview", tree.path("/a"))
        text, place, pieces = preview["text"], {"line": 0, "character": 0}, []
        for fragment in preview["fragments"]:
            assert fragment["range"]["start"] == place
            place = fragment["range"]["end"]
            piece = slice_of(text, fragment["range"], encoding)
            pieces.append(piece)
            source = fragment["source"]
            # a section of Nexus's own has an empty source; a line about a setting points at its value
            if (
                source
                and source["uri"].endswith(".md")
                and source["range"]["start"] != source["range"]["end"]
            ):
                path = Path(unquote(source["uri"].removeprefix("file://")))
                assert slice_of(path.read_text(), source["range"], encoding) == piece
        assert "".join(pieces) == text
        assert preview["tokens"] == sum(fragment["tokens"] for fragment in preview["fragments"])
        sources = {
            piece.strip(): fragment["source"]
            for piece, fragment in zip(pieces, preview["fragments"], strict=True)
        }
        assert sources["More rules."]["uri"] == uri_of(tree.path("/a/.nexus3/more.md"))


def slice_of(text: str, where: Any, encoding: str) -> str:
    lines = text.split("\n")

    def offset(position: Any) -> int:
        line = lines[position["line"]]
        width = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
        codec = encoding if encoding == "utf-8" else f"{encoding}-le"
        before = line.encode(codec)[: position["character"] * width].decode(codec)
        return sum(len(one) + 1 for one in lines[: position["line"]]) + len(before)

    return text[offset(where["start"]) : offset(where["end"])]


# ---------------------------------------------------------------- layers, effective


def test_layers(editor: Editor, tree: Fixture) -> None:
    result = editor.layers(tree.path("/a"))
    parent = Path(tree.root).name
    rows = [
        # whether the prompt names the model of a config.json depends on what was picked before
        (layer["name"], file["kind"], file["status"], file["kind"] != "config" and file.get("tokens", 0) > 0)
        for layer in result["layers"]
        for file in layer["files"]
        if file["status"] != "missing"
    ]
    assert rows == [
        ("defaults", "instructions", "loaded", True),
        ("defaults", "config", "loaded", False),
        ("defaults", "mcp", "loaded", False),
        (f"ancestor:{parent}", "instructions", "loaded", True),
        (f"ancestor:{parent}", "config", "loaded", False),
        (f"ancestor:{parent}", "mcp", "loaded", False),
        ("local", "instructions", "loaded", True),
        ("local", "config", "loaded", False),
        ("local", "mcp", "loaded", True),  # the prompt names its server
    ]
    assert [skipped["path"] for skipped in result["skipped"]] == [str(editor.home)]
    assert [layer["path"] for layer in result["layers"]][1] == str(editor.home / ".nexus3")


def test_every_setting_says_where_it_comes_from(editor: Editor, tree: Fixture) -> None:
    result = editor.ask("config/effective", tree.path("/a"))
    assert result["config"]["context"]["reserve_tokens"] == 1000
    assert result["config"]["tools"]["disabled"] == ["shell", "web"]
    chain = result["provenance"]["/context/reserve_tokens"]
    outer, inner = tree.path("/.nexus3/config.json"), tree.path("/a/.nexus3/config.json")
    set_in = [(one["uri"], one["value"], one["wins"]) for one in chain if one["layer"] != "built-in"]
    assert set_in == [(uri_of(outer), 500, False), (uri_of(inner), 1000, True)]
    for one, path in zip(chain[-2:], (outer, inner), strict=True):
        assert slice_of(tree.files[path], one["range"], "utf-16") == str(one["value"])


def test_a_value_that_its_file_may_not_set_is_told_from_one_that_loses(editor: Editor) -> None:
    tree = editor.tree(
        """
        //- /.nexus3/config.json
        {"permissions": {"level": "sandboxed"}}
        //- /a/.nexus3/config.json
        {"permissions": {"level": "worker"}}
        //- /a/b/.nexus3/config.json
        {"permissions": {"level": "yolo"}, "provider": {"headers": {"A": "b"}}}
        """
    )
    editor.add(tree.path("/a/b"))
    provenance = editor.ask("config/effective", tree.path("/a/b"))["provenance"]
    shown = {
        pointer: [(one["value"], one["wins"], one.get("ignored")) for one in provenance[pointer]]
        for pointer in ("/permissions/level", "/provider/headers/A")
    }
    assert shown == {
        "/permissions/level": [("sandboxed", False, None), ("worker", True, None), ("yolo", False, True)],
        "/provider/headers/A": [("********", False, True)],
    }


def test_servers_say_where_they_come_from(editor: Editor, tree: Fixture) -> None:
    servers = editor.ask("config/effective", tree.path("/a"))["mcpServers"]
    outer, inner = tree.path("/.nexus3/mcp.json"), tree.path("/a/.nexus3/mcp.json")
    parent = Path(tree.root).name
    rows = [
        (one["name"], one["origin"], one["uri"], one["enabled"], one.get("shadowedBy")) for one in servers
    ]
    assert rows == [
        ("files", f"ancestor:{parent}", uri_of(outer), True, "local"),
        ("files", "local", uri_of(inner), True, None),
        ("off", "local", uri_of(inner), False, None),
    ]


def test_a_workspace_may_only_tighten(editor: Editor) -> None:
    tree = editor.tree(
        """
        //- /a/.nexus3/config.json
        {
          "provider": {"base_url": "https://evil.example", "api_key_env": "TOKEN", "headers": {"a": "b"}},
          "permissions": {"level": "yolo"},
          "ledger": {"path": "/tmp/ledger"}
        }
        //- /b/.nexus3/config.json
        {"permissions": {"level": "sandboxed"}}
        """
    )
    editor.add(tree.path("/a"), tree.path("/b"))
    config = editor.ask("config/effective", tree.path("/a"))["config"]
    assert config["permissions"]["level"] == "trusted"
    assert (config["provider"].get("base_url"), config["provider"]["headers"]) == (None, {})
    assert "ledger" not in config
    assert editor.codes(tree.path("/a/.nexus3/config.json")) == snapshot(
        ["config.scope", "config.scope", "config.scope", "config.scope", "config.scope"]
    )
    assert "config.json" in editor.shown(tree.path("/a/.nexus3/config.json"))[0]["message"]
    assert editor.ask("config/effective", tree.path("/b"))["config"]["permissions"]["level"] == "sandboxed"


def test_no_header_and_no_password_of_the_user_is_shown(tmp_path: Path) -> None:
    with editor_in(tmp_path / "home") as editor:
        (editor.home / ".nexus3").mkdir()
        settings = {
            "provider": {"headers": {"X-Team": "quiet", "Authorization": "Bearer short"}},
            "ledger": {"url": "postgres://ana:pw@db/nexus"},
        }
        (editor.home / ".nexus3" / "config.json").write_text(json.dumps(settings))
        tree = editor.tree("//- /a/NEXUS.md\nRules.\n")
        editor.add(tree.path("/a"))
        result = editor.ask("config/effective", tree.path("/a"))
        assert result["config"]["provider"]["headers"] == {"X-Team": "********", "Authorization": "********"}
        assert result["config"]["ledger"]["url"] == "postgres://********@db/nexus"
        shown = json.dumps(result)
        assert [secret for secret in ("quiet", "short", "ana", "pw@") if f'"{secret}' in shown] == []
        assert "/provider/headers/X-Team" in result["provenance"]


def test_the_prompt_that_is_shown_is_the_one_that_is_sent(editor: Editor) -> None:
    tree = editor.tree(
        """
        //- /a/NEXUS.md
        Rules.
        //- /a/.nexus3/config.json
        {"context": {"datetime": {"placement": "system"}}}
        """
    )
    folder = tree.path("/a")
    editor.add(folder)
    sent = editor.ask("context/assemble", folder)
    preview = editor.ask("context/preview", folder)
    assert "date" in [fragment["section"] for fragment in preview["fragments"]]
    assert preview["text"] == sent["systemPrompt"]
    assert preview["tokens"] == sent["usage"]["total"]
    assert editor.ask("context/usage", folder) == sent["usage"]


def test_a_body_without_a_model_is_refused(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nRules.\n")
    editor.add(tree.path("/a"))
    with pytest.raises(ReplyError) as failed:
        editor.ask("context/assemble", tree.path("/a"), format="openai")
    assert failed.value.error["data"]["code"] == "no-model"
    options = {"model": "gpt-4o-2024-08-06"}
    made = editor.ask("context/assemble", tree.path("/a"), format="openai", options=options)
    assert (made["request"]["model"], made["model"]) == ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06")


# ---------------------------------------------------------------- tokens/count, init, status


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"texts": ["hello world"]}, ("o200k_base", True, [2])),
        ({"texts": ["", "tiktoken is great!"], "encoding": "cl100k_base"}, ("cl100k_base", True, [0, 6])),
        (
            {"texts": ["2 + 2 = 4", "お誕生日おめでとう"], "encoding": "cl100k_base"},
            ("cl100k_base", True, [7, 9]),
        ),
        ({"texts": ["お誕生日おめでとう"], "encoding": "o200k_base"}, ("o200k_base", True, [8])),
        ({"texts": ["antidisestablishmentarianism"], "encoding": "cl100k_base"}, ("cl100k_base", True, [6])),
        ({"texts": ["<|endoftext|>"], "model": "gpt-4o"}, ("o200k_base", True, [7])),
    ],
)
def test_known_counts(editor: Editor, params: Any, expected: Any) -> None:
    """Figures of OpenAI's cookbook."""
    result = editor.request("nexus/tokens/count", params)
    assert (result["encoding"], result["exact"], result["counts"]) == expected
    assert result["total"] == sum(result["counts"])


def test_an_estimate_is_labelled(editor: Editor) -> None:
    exact = editor.request("nexus/tokens/count", {"texts": ["word " * 100], "model": "gpt-4o"})
    estimate = editor.request("nexus/tokens/count", {"texts": ["word " * 100], "model": "claude-sonnet-4-5"})
    assert (exact["exact"], estimate["exact"]) == (True, False)
    assert estimate["total"] > exact["total"]


def test_files_are_counted_with_their_unsaved_text(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nhello world\n//- /a/other.txt\nhello world")
    editor.add(tree.path("/a"))
    uris = [uri_of(tree.path("/a/other.txt")), uri_of(tree.path("/a/NEXUS.md"))]
    assert editor.request("nexus/tokens/count", {"uris": uris, "texts": ["hello"]})["counts"] == [1, 2, 3]
    editor.open(tree.path("/a/other.txt"), "")
    assert editor.request("nexus/tokens/count", {"uris": uris})["counts"] == [0, 3]


def test_a_count_of_a_file_that_is_not_utf8_is_not_exact(editor: Editor) -> None:
    tree = editor.tree("//- /a/fine.txt\nhello world\n")
    Path(tree.path("/a/odd.txt")).write_bytes(b"line\nhello w\xf6rld")
    fine, odd = uri_of(tree.path("/a/fine.txt")), uri_of(tree.path("/a/odd.txt"))
    result = editor.request("nexus/tokens/count", {"uris": [fine, odd, odd]})
    (problem,) = result["problems"]
    assert (result["exact"], result["total"]) == (False, sum(result["counts"]))
    assert (problem["uri"], problem["code"], problem["range"]["start"]) == (
        odd,
        "layer.encoding",
        {"line": 1, "character": 7},
    )
    result = editor.request("nexus/tokens/count", {"uris": [fine]})
    assert (result["exact"], "problems" in result) == (True, False)


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"texts": ["x"], "encoding": "p50k"}, "unknown-encoding"),
        ({"uris": ["http://example.com"]}, "not-a-file-uri"),
        ({"uris": ["file:///no/such/file"]}, "unreadable"),
        ({"uris": ["file:///"]}, "unreadable"),
    ],
)
def test_what_cannot_be_counted(editor: Editor, params: Any, code: str) -> None:
    with pytest.raises(ReplyError) as failed:
        editor.request("nexus/tokens/count", params)
    assert failed.value.error["data"]["code"] == code


def test_text_that_chokes_tokenizers_is_counted(editor: Editor) -> None:
    texts = ["a" * 1_000_000, " " * 1_000_000, "é" * 300_000, "\n" * 300_000]
    result = editor.request("nexus/tokens/count", {"texts": texts})
    assert all(count > 0 for count in result["counts"])


def test_init_creates_and_never_overwrites(editor: Editor) -> None:
    tree = editor.tree("//- /a/.nexus3/NEXUS.md\nMine.\n//- /b/readme\n")
    a, b = tree.path("/a"), tree.path("/b")
    editor.add(a, b)
    created = editor.ask("workspace/init", b)
    names = ["NEXUS.md", "config.json", "mcp.json"]
    nothing: dict[str, list[object]] = {"adopted": [], "left": []}
    files = [uri_of(f"{b}/.nexus3/{name}") for name in names]
    assert created == {"created": files, "existing": [], **nothing}
    assert editor.ask("workspace/init", b) == {"created": [], "existing": files, **nothing}
    mixed = editor.ask("workspace/init", a)
    assert mixed["existing"] == [uri_of(f"{a}/.nexus3/NEXUS.md")]
    assert Path(a, ".nexus3", "NEXUS.md").read_text() == "Mine.\n"
    for folder in (a, b):
        problems = editor.layers(folder)["problems"]  # the template has comments in which to write
        assert {problem["code"] for problem in problems} <= {"prompt.hidden-markup"}
    local = editor.layers(b)["layers"][-1]
    assert [(file["kind"], file["status"]) for file in local["files"]][:3] == [
        ("instructions", "loaded"),
        ("config", "loaded"),
        ("mcp", "loaded"),
    ]


def test_init_adopts_servers_where_the_user_says_so(editor: Editor) -> None:
    tree = editor.tree(
        '//- /a/.mcp.json\n{"mcpServers": {"db": {"command": "db", "env": {"PGPASSWORD": "hunter2"}}}}\n'
    )
    folder = tree.path("/a")
    editor.add(folder)
    preview = editor.ask("workspace/init", folder, adopt=True, preview=True)
    assert not Path(folder, ".nexus3").exists()
    assert editor.ask("workspace/init", folder, adopt=True) == preview
    assert preview["adopted"] == [
        {"name": "db", "uri": uri_of(f"{folder}/.mcp.json"), "variables": ["PGPASSWORD"]}
    ]
    assert "hunter2" not in Path(folder, ".nexus3", "mcp.json").read_text()


def test_init_of_a_folder_that_cannot_be_written(editor: Editor) -> None:
    tree = editor.tree("//- /a/.nexus3\nnot a directory\n//- /elsewhere/x\n//- /b/x\n")
    Path(tree.path("/b"), ".nexus3").symlink_to(tree.path("/elsewhere"))
    editor.add(tree.path("/a"), tree.path("/b"))
    for folder, code in ((tree.path("/a"), "init-failed"), (tree.path("/b"), "init-link")):
        with pytest.raises(ReplyError) as failed:
            editor.ask("workspace/init", folder)
        assert failed.value.error["data"]["code"] == code
    assert [path.name for path in Path(tree.path("/elsewhere")).iterdir()] == ["x"]


def test_status(editor: Editor) -> None:
    tree = editor.tree('//- /a/.nexus3/config.json\n{"x": 1, "_comment": "y"}\n')
    editor.add(tree.path("/a"))
    editor.layers(tree.path("/a"))
    status = editor.request("nexus/status", {})
    assert status["connections"] == 1
    assert status["memory"] > 10_000_000
    assert status["uptime"] > 0
    (mine,) = [folder for folder in status["folders"] if folder["uri"] == uri_of(tree.path("/a"))]
    assert mine.pop("freshness")["state"] in ("watched", "unknown")  # which it is until the watch stands
    assert mine == {
        "uri": uri_of(tree.path("/a")),
        "name": "a",
        "revision": 1,
        "layers": 3,
        "errors": 1,
        "warnings": 0,
        "sessions": [],
        "client": status["clients"][0]["name"],
    }
    (client,) = status["clients"]
    assert client["folders"] == [folder["uri"] for folder in status["folders"]]
    assert (client["running"], client["unreadBytes"]) == (1, 0)
    assert (status["agents"], status["rssBytes"]) == (0, status["memory"])
    assert os.path.exists(f"/proc/{status['pid']}") or sys.platform != "linux"


# ---------------------------------------------------------------- didChange


def test_an_edit_is_announced_with_its_cost(editor: Editor) -> None:
    tree = editor.tree(
        "//- /a/NEXUS.md\nShort.\n//- /a/.nexus3/config.json\n{}\n//- /a/.nexus3/mcp.json\n{}\n"
    )
    folder = tree.path("/a")
    editor.add(folder)
    first = editor.until(lambda: editor.changes(folder))[0]
    assert (first["revision"], first["reason"]) == (1, "folder")
    edits = [
        ("/a/NEXUS.md", "Much longer. " * 50, "instructions"),
        ("/a/.nexus3/config.json", '{"context": {"reserve_tokens": 1}}', "config"),
        ("/a/.nexus3/mcp.json", '{"servers": [{"name": "x", "command": "sh"}]}', "mcp"),
    ]
    before = first
    for path, text, reason in edits:
        editor.open(tree.path(path), text)
        after = editor.until(partial(later, editor, folder, before["revision"]))[-1]
        assert (after["reason"], after["revision"]) == (reason, before["revision"] + 1)
        usage = editor.ask("context/usage", folder)
        assert after["usage"]["total"] == sum(row["tokens"] for row in after["usage"]["rows"])
        assert usage["total"] != editor.ask("context/assemble", folder, message="x")["usage"]["total"]
        before = after
    assert before["usage"]["reserved"] == 1


def later(editor: Editor, folder: str, revision: int) -> list[Any]:
    return [one for one in editor.changes(folder) if one["revision"] > revision]


def test_an_edit_that_changes_nothing_is_not_announced(editor: Editor) -> None:
    tree = editor.tree("//- /a/NEXUS.md\nShort.\n")
    folder, path = tree.path("/a"), tree.path("/a/NEXUS.md")
    editor.add(folder)
    editor.until(lambda: editor.changes(folder))
    revision = editor.layers(folder)["revision"]
    editor.open(path, "Short.\n")
    editor.layers(folder)
    editor.close(path)
    editor.layers(folder)
    assert editor.layers(folder)["revision"] == revision
    assert len(editor.changes(folder)) == 1
