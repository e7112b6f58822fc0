"""MCP servers of one file in all three forms, and what is wrong with them."""

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nexus_context.config.mcp import McpServer, read_servers, shadow, shadow_hints, syntax_problems
from nexus_context.config.references import references_in
from nexus_context.errors import Problem, Severity
from nexus_context.text.json import parse
from nexus_context.text.redact import redact, secrets_in
from support.problems import fixed, rows

PATH = "/w/.nexus3/mcp.json"
ENVIRON = {"HOME": "/home/u", "TOKEN": "t"}
PROGRAMS = {"npx", "uvx", "/usr/bin/node", "/w/tools/serve", "/w/sub/run.sh"}


def read(text: str, *, is_foreign: bool = False) -> tuple[tuple[McpServer, ...], tuple[Problem, ...]]:
    return read_servers(
        parse(PATH, text),
        origin="local",
        folder="/w",
        environ=ENVIRON,
        which=lambda command: command if command in PROGRAMS else None,
        is_foreign=is_foreign,
    )


def check(text: str, *expected: tuple[str, str, str], is_foreign: bool = False) -> tuple[Problem, ...]:
    """Code, text under the span and message of each problem, in order."""
    _, problems = read(text, is_foreign=is_foreign)
    assert rows(text, problems) == list(expected)
    return problems


# --- forms ---

SHOWN: dict[str, Any] = {
    "name": "a",
    "origin": "local",
    "path": PATH,
    "type": "stdio",
    "command": ("npx", "-y", "x@1.0.0"),
}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"servers": [{"name": "a", "command": ["npx", "-y", "x@1.0.0"]}]}', '"a"'),
        ('{"servers": [{"name": "a", "command": ["npx", "-y"], "args": ["x@1.0.0"]}]}', '"a"'),
        ('{"servers": {"a": {"type": "stdio", "command": "npx", "args": ["-y", "x@1.0.0"]}}}', '"a"'),
        ('{"mcpServers": {"a": {"command": "npx", "args": ["-y", "x@1.0.0"]}}}', '"a"'),
        (
            '{"mcpServers": {"\\u0061": {"command": "npx", "args": ["-y", "x@1.0.0"], "_comment": 1}}}',
            '"\\u0061"',
        ),
    ],
)
def test_forms(text: str, name: str) -> None:
    servers, problems = read(text)
    assert problems == ()
    (server,) = servers
    assert text[slice(*server.name_span)] == name
    assert text[slice(*server.span)].startswith("{")
    default = msgspec.structs.asdict(McpServer(span=server.span, name_span=server.name_span, **SHOWN))
    assert msgspec.structs.asdict(server) == default


@pytest.mark.parametrize("text", ["", "\n", "{}", '{"servers": []}', '{"servers": {}}', '{"mcpServers": {}}'])
def test_no_servers(text: str) -> None:
    assert read(text) == ((), ())


@pytest.mark.parametrize(
    ("text", "unread", "read_instead", "fixed_text"),
    [
        (
            '{"mcpServers": {}, "servers": {"a": {"command": "npx"}}}',
            "mcpServers",
            "servers",
            '{"servers": {"a": {"command": "npx"}}}',
        ),
        (
            '{"mcpServers": {"a": {"command": "npx"}}, "servers": []}',
            "servers",
            "mcpServers",
            '{"mcpServers": {"a": {"command": "npx"}}}',
        ),
        (
            '{"mcpServers": {"_comment": "none"}, "servers": [{"name": "a", "command": ["npx"]}]}',
            "mcpServers",
            "servers",
            None,
        ),
    ],
)
def test_both_forms_and_one_is_empty(
    text: str, unread: str, read_instead: str, fixed_text: str | None
) -> None:
    servers, (problem,) = read(text)
    message = f'"{unread}" is not read: the file has "{read_instead}", too. It is empty: remove it.'
    assert rows(text, [problem]) == [("mcp.both-forms", f'"{unread}"', message)]
    assert [server.name for server in servers] == ["a"]
    assert fixed(text, problem.fix) == fixed_text


@pytest.mark.parametrize("text", ['{"mcpServers": {}, "servers": []}', '{"servers": {}, "mcpServers": {}}'])
def test_both_forms_and_no_servers(text: str) -> None:
    assert read(text) == ((), ())


def test_a_remote_server() -> None:
    text = """{"mcpServers": {"a": {"type": "streamable-http", "url": "https://h/${TOKEN}", "disabled": true,
      "headers": {"Authorization": "Bearer ${TOKEN}", "_comment": 3}}}}"""
    servers, problems = read(text)
    assert problems == ()
    assert [(s.type, s.url, s.headers, s.enabled, s.command) for s in servers] == [
        ("http", "https://h/${TOKEN}", {"Authorization": "Bearer ${TOKEN}"}, False, ())
    ]


def test_values_are_made_texts_and_null_unsets() -> None:
    text = '{"servers": {"a": {"command": "npx", "env": {"PORT": 80, "X": null, "Y": "z"}, "cwd": "sub"}}}'
    ((server,), problems) = read(text, is_foreign=True)
    assert (server.env, server.cwd, problems) == ({"PORT": "80", "Y": "z"}, "sub", ())


@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"url": "https://h"}, "http"),
        ({"url": "https://h", "type": "sse"}, "sse"),
        ({"url": "https://h", "type": "streamableHttp"}, "http"),
        ({"url": "https://h", "transport": "sse"}, "sse"),
        ({"command": "npx", "type": "local"}, "stdio"),
    ],
)
def test_transports(entry: dict[str, Any], transport: str) -> None:
    servers, problems = read(json.dumps({"mcpServers": {"a": entry}}))
    assert ([server.type for server in servers], problems) == ([transport], ())


# --- errors ---


def test_both_forms() -> None:
    (problem,) = check(
        '{"servers": [{"name": "b"}], "mcpServers": {"a": {"command": "npx"}}}',
        (
            "mcp.both-forms",
            '"servers"',
            '"servers" is not read: the file has "mcpServers", too. Move its servers there.',
        ),
    )
    assert problem.severity == Severity.WARNING


@pytest.mark.parametrize(
    ("text", "code", "marked", "message"),
    [
        ("[]", "type", "[]", "The file must be an object, not a list."),
        ('{"servers": 1}', "type", "1", '"servers" must be a list or an object, not a whole number.'),
        ('{"servers": [1]}', "type", "1", 'Item 1 of "servers" must be an object, not a whole number.'),
        ('{"mcpServers": {"a": []}}', "type", "[]", '"a" must be an object, not a list.'),
        (
            '{"mcpServers": {"a": {}}}',
            "no-transport",
            '"a"',
            '"a" needs "command" to be started or "url" to be reached.',
        ),
        (
            '{"mcpServers": {"a": {"type": "http", "command": "npx"}}}',
            "no-transport",
            '"http"',
            '"a" is of type "http", which needs "url".',
        ),
        (
            '{"mcpServers": {"a": {"command": "npx", "url": "https://h"}}}',
            "two-transports",
            '"url"',
            '"command" and "url" exclude each other: remove one of them.',
        ),
        ('{"servers": [{"command": "npx"}]}', "required", "{", 'Item 1 of "servers" needs "name".'),
        (
            '{"mcpServers": {"a": {"command": "npx", "args": "-y"}}}',
            "type",
            '"-y"',
            '"args" must be a list, not text.',
        ),
        (
            '{"mcpServers": {"a": {"command": "npx", "env": {"PORT": 80}}}}',
            "type",
            "80",
            '"PORT" must be text, not a whole number.',
        ),
        (
            '{"mcpServers": {"a": {"command": "npx", "comand": 1}}}',
            "unknown-key",
            '"comand"',
            'Unknown key "comand" in "a": remove it.',
        ),
        (
            '{"mcpServers": {"a": {"command": "npx", "arg": []}}}',
            "unknown-key",
            '"arg"',
            'Unknown key "arg" in "a": did you mean "args"?',
        ),
        ('{"github": {"command": "npx"}}', "unknown-key", '"github"', 'A server belongs in "mcpServers".'),
        (
            '{"servers": [{"name": "a", "command": "npx", "type": "htp"}]}',
            "enum",
            '"htp"',
            '"type" must be stdio, http, sse or streamable-http. Did you mean "http"?',
        ),
        (
            '{"servers": [{"name": "a", "command": "npx"}, {"name": "a", "url": "https://h"}]}',
            "duplicate-name",
            '"a"',
            'There are two servers "a" in this file: rename or remove one of them.',
        ),
    ],
)
def test_errors(text: str, code: str, marked: str, message: str) -> None:
    (problem,) = check(text, (f"mcp.{code}", marked, message))
    assert problem.severity == Severity.ERROR


BAD_URL = '"url" is not a valid address: it must begin with http:// or https:// and a host.'


@pytest.mark.parametrize(
    "url",
    [
        "h",
        "ftp://h",
        "https://",
        "https:///p",
        "https://h:99999/",
        "https://h h/",
        "https:h",
        "unix:///s",
        "https://[h]/",
    ],
)
def test_bad_urls(url: str) -> None:
    text = json.dumps({"mcpServers": {"a": {"url": url}}})
    check(text, ("mcp.bad-url", json.dumps(url), BAD_URL))
    assert read(text)[0] == ()


@pytest.mark.parametrize(
    "url",
    [
        "https://h",
        "https://h:8080/p?q=1#f",
        "http://localhost:3000/mcp",
        "http://127.0.0.1/",
        "http://[::1]:9/",
        "${TOKEN}/mcp",
        "https://${TOKEN}:${TOKEN}/x",
        "http://${TOKEN}/x",
        "https://[2001:db8::1]/",
        "https://u@h/",
    ],
)
def test_good_urls(url: str) -> None:
    check(json.dumps({"servers": [{"name": "a", "url": url}]}))


def test_sockets_in_vs_code_files() -> None:
    check('{"servers": {"a": {"url": "unix:///tmp/s.sock#/mcp"}}}', is_foreign=True)


def test_duplicate_names_in_objects() -> None:
    text = """{"mcpServers": {"a": {"command": "npx"}, "b": {"env": {"X": "1", "X": "2"}, "command": "npx"},
        "a": {"command": "uvx"}}}"""
    (problem,) = check(
        text,
        (
            "mcp.duplicate-name",
            '"a"',
            'There are two servers "a" in this file: rename or remove one of them.',
        ),
    )
    assert (problem.span.start, problem.related[0].span.start) == (text.rindex('"a"'), text.index('"a"'))
    left = syntax_problems(parse(PATH, text), [problem], jsonc=False)
    assert [text[slice(*each.span)] for each in left] == ['"X"']


def test_vs_code_files_may_have_comments_and_trailing_commas() -> None:
    text = '{\n  // servers\n  "servers": {"a": {"command": "npx",}},\n}'
    document = parse(PATH, text)
    assert {problem.code for problem in document.problems} == {"json.comment", "json.trailing-comma"}
    servers, problems = read(text, is_foreign=True)
    assert ([server.name for server in servers], problems) == (["a"], ())
    assert syntax_problems(document, problems, jsonc=True) == ()
    assert syntax_problems(document, problems, jsonc=False) == document.problems


# --- files of other tools ---

OTHERS = [
    """{"servers": {"a": {"type": "stdio", "command": "npx", "cwd": "${cwd}",
       "envFile": "${workspaceFolder}/.env",
       "dev": {"watch": "src/**", "debug": {"type": "node"}}, "gallery": true, "version": "1.0.0",
       "sandboxEnabled": true, "env": {"A": "${input:key}", "B": "${config:x}"}},
       "b": {"type": "http", "url": "https://h", "oauth": {"clientId": "1"}, "gallery": "https://g"}},
       "inputs": [{"type": "promptString", "id": "key", "description": "Key", "password": true}],
       "sandbox": {"network": {"allowedDomains": []}}}""",
    """{"mcpServers": {"a": {"command": "npx", "args": [], "env": {}, "timeout": 60, "disabled": false,
       "autoApprove": ["x"], "alwaysAllow": [], "disabledTools": [], "tools": ["*"], "type": "local"},
       "b": {"type": "http", "url": "https://h", "headersHelper": "/h.sh", "oauth": {"callbackPort": 1},
       "alwaysLoad": true}, "c": {"url": "https://h", "auth": {"CLIENT_ID": "${env:TOKEN}"}},
       "d": {"command": "uvx", "envFile": ".env", "description": "d", "startup_timeout": 1.5}}}""",
]


@pytest.mark.parametrize("text", OTHERS)
@pytest.mark.parametrize("is_foreign", [True, False])
def test_documented_keys_of_other_tools(text: str, is_foreign: bool) -> None:
    check(text if is_foreign else text.replace("${config:x}", ""), is_foreign=is_foreign)


def test_unknown_keys_of_other_tools_are_warnings() -> None:
    (problem,) = check(
        '{"mcpServers": {"a": {"command": "npx", "colour": 1}}}',
        ("mcp.unknown-key", '"colour"', 'Unknown key "colour" in "a": remove it.'),
        is_foreign=True,
    )
    assert (problem.severity, len(read('{"mcpServers": {"a": {"command": "npx", "colour": 1}}}')[0])) == (
        2,
        1,
    )


def test_transports_that_nexus_does_not_know() -> None:
    text = '{"mcpServers": {"a": {"type": "ws", "url": "wss://h"}}}'
    message = 'Nexus cannot start servers of type "ws": it knows stdio, http and sse.'
    check(text, ("mcp.unsupported", '"ws"', message), is_foreign=True)
    assert read(text)[0] == ()


# --- warnings ---


@pytest.mark.parametrize(
    ("entry", "program"),
    [
        ({"command": "npx"}, None),
        ({"command": "/usr/bin/node"}, None),
        ({"command": "tools/serve"}, None),
        ({"command": "./run.sh", "cwd": "sub"}, "./run.sh"),
        ({"command": "run.sh", "cwd": "sub"}, "run.sh"),
        ({"command": "tools/serve", "cwd": "/w"}, None),
        ({"command": "${TOKEN}/x"}, None),
        ({"command": ["npxx", "-y"]}, "npxx"),
    ],
)
def test_programs(entry: dict[str, Any], program: str | None) -> None:
    text = json.dumps({"servers": [{"name": "a", **entry}]})
    message = f'There is no program "{program}": install it, or give its full path.'
    check(text, *([("mcp.command-not-found", json.dumps(program), message)] if program else []))


def test_arguments_in_the_command() -> None:
    check(
        '{"servers": [{"name": "a", "command": "npx -y x"}]}',
        (
            "mcp.command-not-found",
            '"npx -y x"',
            'There is no program of this name, but there is "npx": move its arguments to "args".',
        ),
    )


UNSET = (
    "The environment variable NOPE is not set where Nexus runs: set it for the program that starts the "
    "server, or write ${NOPE:-default}."
)
NO_INPUT = 'There is no input "key": add one with this "id" to "inputs".'
UNCLEAR = (
    "This reference is not understood: use ${VAR}, ${VAR:-default}, ${env:VAR}, "
    "${workspaceFolder} or ${input:id}."
)


@pytest.mark.parametrize(
    ("value", "code", "marked", "message"),
    [
        ("x${NOPE}", "unset-variable", "${NOPE}", UNSET),
        ("${env:NOPE}", "unset-variable", "${env:NOPE}", UNSET),
        ("${input:key}", "bad-reference", "${input:key}", NO_INPUT),
        ("${TOKEN", "bad-reference", "${TOKEN", UNCLEAR),
        ("${}", "bad-reference", "${}", UNCLEAR),
        ("${TOKEN:x}", "bad-reference", "${TOKEN:x}", UNCLEAR),
        ("${env:}", "bad-reference", "${env:}", UNCLEAR),
        ("${command:x}", "bad-reference", "${command:x}", UNCLEAR),
        ("${1A}", "bad-reference", "${1A}", UNCLEAR),
    ],
)
def test_references(value: str, code: str, marked: str, message: str) -> None:
    for entry in ({"args": [value]}, {"env": {"A": value}}, {"cwd": value}, {"headers": {"A": value}}):
        check(
            json.dumps({"servers": [{"name": "a", "command": "npx", **entry}]}),
            (f"mcp.{code}", marked, message),
        )


@pytest.mark.parametrize(
    "value",
    [
        "${TOKEN}",
        "${NOPE:-}",
        "${NOPE:-a b}",
        "${env:NOPE:-x}",
        "${workspaceFolder}/x",
        "$TOKEN",
        "${userHome}",
    ],
)
def test_good_references(value: str) -> None:
    check(json.dumps({"servers": [{"name": "a", "command": "npx", "args": [value]}]}))


def test_the_parts_of_a_reference() -> None:
    assert [
        tuple(found)[:3] for found in references_in("${A}${B:-c}${env:D}${workspaceFolder:x}${input:e}${")
    ] == [
        ("variable", "A", None),
        ("variable", "B", "c"),
        ("variable", "D", None),
        ("editor", "workspaceFolder:x", None),
        ("input", "e", None),
        ("bad", "", None),
    ]


def test_plain_http() -> None:
    text = '{"servers": [{"name": "a", "url": "http://h/p"}]}'
    (problem,) = check(
        text,
        (
            "mcp.plain-http",
            '"http://h/p"',
            '"url" uses http:// to another machine, where anyone on the way can read what is sent: use https://.',
        ),
    )
    assert fixed(text, problem.fix) == text.replace("http:", "https:")


KEY = "ghp_0123456789abcdefghijABCDEFGHIJ"
RANDOM = "8f3kQz71LmXv0bTn4RwY"


@pytest.mark.parametrize(
    ("entry", "name", "after"),
    [
        ({"env": {"GITHUB_TOKEN": KEY}}, "GITHUB_TOKEN", {"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}),
        ({"env": {"MY_SECRET": RANDOM}}, "MY_SECRET", {"env": {"MY_SECRET": "${MY_SECRET}"}}),
        (
            {"headers": {"Authorization": f"Bearer {RANDOM}"}},
            "A_B_TOKEN",
            {"headers": {"Authorization": "Bearer ${A_B_TOKEN}"}},
        ),
        ({"headers": {"X-Api-Key": RANDOM}}, "X_API_KEY", {"headers": {"X-Api-Key": "${X_API_KEY}"}}),
        ({"args": [f"--api-key={RANDOM}"]}, "API_KEY", {"args": ["--api-key=${API_KEY}"]}),
        ({"args": ["--token", RANDOM]}, "TOKEN", {"args": ["--token", "${TOKEN}"]}),
        ({"args": [f"x {KEY}"]}, "A_B_TOKEN", {"args": ["x ${A_B_TOKEN}"]}),
        (
            {"args": [f"postgres://u:{RANDOM}@h/db"]},
            "A_B_TOKEN",
            {"args": ["postgres://u:${A_B_TOKEN}@h/db"]},
        ),
        ({"url": f"https://h/?api_key={RANDOM}"}, "A_B_TOKEN", {"url": "https://h/?api_key=${A_B_TOKEN}"}),
        ({"env": {"A_KEY": f"\u00e9\\{KEY}"}}, "A_KEY", {"env": {"A_KEY": "${A_KEY}"}}),
    ],
)
def test_secrets(entry: dict[str, Any], name: str, after: dict[str, Any]) -> None:
    entry, after = (
        {"command": "/usr/bin/node", **each} if "url" not in each else each for each in (entry, after)
    )
    text = json.dumps({"mcpServers": {"a b": entry}})
    _, (problem, *others) = read(text)
    assert (problem.code, problem.severity, others) == ("mcp.secret", Severity.WARNING, [])
    assert problem.message == (
        f"This looks like a secret: set it as the environment variable {name} and write ${{{name}}} here."
    )
    assert json.loads(fixed(text, problem.fix) or "") == {"mcpServers": {"a b": after}}
    _, problems = read(fixed(text, problem.fix) or "")
    assert problems == ()  # the variable is not set, but that is what the fix has just written


def test_a_secret_in_a_vs_code_file_becomes_vs_codes_reference() -> None:
    text = f'{{"servers": {{"a": {{"command": "npx", "env": {{"A_TOKEN": "{KEY}"}}}}}}}}'
    _, (problem,) = read(text, is_foreign=True)
    assert fixed(text, problem.fix) == text.replace(KEY, "${env:A_TOKEN}")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "${API_KEY}"),
        ("API_KEY", "<your-api-key-goes-here-1>"),
        ("API_KEY", "your-api-key-goes-here-1"),
        ("PASSWORD", "postgres"),
        ("KEY_FILE", "8f3kQz71LmXv0bTn4RwY"),
        ("SSH_KEY", "/home/u/.ssh/id_ed25519_work_2024"),
        ("SORT_KEY", "last_modified_timestamp"),
        ("Authorization", "Bearer ${TOKEN}"),
        ("", "sk-learn-is-a-nice-library"),
        ("", "https://user@example.com/path"),
        ("", "a long sentence with 12345 numbers in it"),
    ],
)
def test_what_is_no_secret(name: str, value: str) -> None:
    assert secrets_in(value, name) == ()


@pytest.mark.parametrize(
    "value",
    [
        "github_pat_11ABCDEFG0abcdefghijkl_mnop",
        "sk-ant-api03-abcdefghijklmnop",
        "sk-proj-abcdefghijklmnop0",
        "xoxb-1234567890-abcdef",
        "AKIAIOSFODNN7ABCDEFG",
        "glpat-abcdefghij0123456789",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
    ],
)
def test_known_tokens(value: str) -> None:
    assert secrets_in(f"x={value}") != ()
    assert value not in redact(f'{{"a": "{value}"}}')


@given(
    st.text(alphabet="abcdefghij0123456789ABCDEF", min_size=24, max_size=40),
    st.sampled_from(["env", "headers", "args"]),
)
def test_no_message_holds_a_value(noise: str, key: str) -> None:
    secret = f"ghp_{noise}"
    value: Any = (
        ["--token", secret, f"--x={secret}${{NOPE}}"] if key == "args" else {"T": secret, "U": f"{secret}${{"}
    )
    text = json.dumps(
        {"servers": [{"name": "a", "command": secret, key: value, "url": f"https://u:{secret}@"}]}
    )
    _, problems = read(text)
    assert problems
    for problem in problems:
        assert secret not in problem.message
        assert noise not in (problem.fix.title if problem.fix else "")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["${", "http://x", "npx"]),
    lambda child: (
        st.lists(child, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["servers", "mcpServers", "a", "name", "command", "args", "url", "env", "type", "inputs"]
            ),
            child,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.sampled_from(["servers", "mcpServers"]), st.booleans())
@example({"command": "", "url": "http://a"}, "servers", False)
def test_any_json_is_read(value: Any, form: str, is_foreign: bool) -> None:
    for text in (
        json.dumps(value),
        json.dumps({form: value}),
        json.dumps({form: [value]}),
        json.dumps({form: {"a": value}}),
    ):
        check_is_sound(text, is_foreign=is_foreign)


@given(st.text(alphabet='{}[]",:\n abservmcpS/', max_size=60))
def test_any_text_is_read(text: str) -> None:
    check_is_sound(text)


def check_is_sound(text: str, *, is_foreign: bool = False) -> None:
    """Problems lie in the text, in its order; each server is started or called, never both."""
    servers, problems = read(text, is_foreign=is_foreign)
    assert all(0 <= problem.span.start <= problem.span.end <= len(text) for problem in problems)
    assert list(problems) == sorted(problems, key=lambda problem: problem.span)
    for server in servers:
        assert bool(server.command) != bool(server.url)
        assert (server.type == "stdio") == bool(server.command)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"mcpServers": {"a": {"command": "npx", "args": ["sk-" * 500_000, "eyJ-" * 300_000]}}}),
        json.dumps({"mcpServers": {"a": {"command": "npx", "args": ["${}" * 500_000, "a.a:" * 300_000]}}}),
        json.dumps({"mcpServers": {str(number): {"comand": "${X}", "argss": 1} for number in range(20_000)}}),
        json.dumps({f"server{number}": 1 for number in range(50_000)}),
    ],
)
def test_hostile_files_take_bounded_time(text: str) -> None:
    started = time.thread_time()
    document = parse(PATH, text)
    read_servers(document, origin="local", folder="/w", environ={}, which=lambda _: None)
    assert time.thread_time() - started < 30


# --- layers ---


def test_the_later_server_of_a_name_wins() -> None:
    text = '{"servers": [{"name": "a", "command": "npx"}, {"name": "b", "command": "npx"}]}'
    below, _ = read(text)
    above = tuple(msgspec.structs.replace(server, origin="vscode", path="/v") for server in below[:1])
    servers = shadow([*below, *above])
    assert [(server.name, server.origin, server.shadowed_by) for server in servers] == [
        ("a", "local", "vscode"),
        ("b", "local", None),
        ("a", "vscode", None),
    ]
    (hint,) = shadow_hints(servers)
    assert (hint.path, hint.span, hint.code, hint.severity) == (
        PATH,
        below[0].name_span,
        "mcp.shadowed",
        Severity.HINT,
    )
    assert hint.message == 'Nexus does not use "a" of this file: the server of vscode has the same name.'
    assert [(place.path, place.span) for place in hint.related] == [("/v", below[0].name_span)]
    assert shadow_hints(below) == ()
