"""Secrets: what counts as one, and that none is shown."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.text import redact as module
from nexus_context.text.redact import (
    cover_literals,
    printable_setting,
    redact,
    secrets_in,
    secrets_in_text,
    without_secrets,
)

TOKEN = "ghp_" + "a1B2" * 9


def check(value: str, secrets: list[str], name: str = "") -> None:
    """The parts of a value, which stands under a name, that count as secrets."""
    assert [value[slice(*span)] for span in secrets_in(value, name)] == secrets


@pytest.mark.parametrize(
    ("value", "secrets"),
    [
        ("plain words", []),
        (f"use {TOKEN}.", [TOKEN]),
        ("Bearer abcdefgh1234", ["abcdefgh1234"]),
        ("Bearer ${TOKEN}", []),
        ("https://u:hunter2@h.org/", ["hunter2"]),
        ("https://h.org/?api_key=0123456789&x=1", ["0123456789"]),
        ("sk-<your key>", []),
        ("sk-ant-api03-0123456789abcdef", ["sk-ant-api03-0123456789abcdef"]),
    ],
)
def test_shapes(value: str, secrets: list[str]) -> None:
    check(value, secrets)


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("API_KEY", "q8Zk2LmP0xVt7RwY", True),
        ("API_KEY", "q8Zk2", False),
        ("API_KEY", "${API_KEY}", False),
        ("PATH", "q8Zk2LmP0xVt7RwY", False),
    ],
)
def test_names(name: str, value: str, secret: bool) -> None:
    check(value, [value] if secret else [], name)


@pytest.mark.parametrize(
    ("pointer", "value", "shown"),
    [
        ((), {"provider": {"headers": {"X-Team": "backend", "X-None": None}, "name": "openai"}}, None),
        (("provider", "headers"), {"X-Team": "backend"}, {"X-Team": "********"}),
        (("provider", "headers", "X-Team"), "backend", "********"),
        (("provider", "headers", "X-Team"), "${TEAM}", "********"),
        (("ledger", "url"), "postgres://ana:pa/ss@w@db/x", "postgres://********@db/x"),
        (("ledger", "url"), "postgres://ana@db/x", "postgres://********@db/x"),
        (("ledger", "url"), "ana:pass@db/x", "********@db/x"),
        (("ledger", "url"), "postgres://db/x", "postgres://db/x"),
        (("ledger", "path"), "/home/a@b/ledger", "/home/a@b/ledger"),
        (("provider", "model"), TOKEN, "*" * len(TOKEN)),
        (("tools", "disabled"), ["shell", TOKEN], ["shell", "*" * len(TOKEN)]),
        (("context", "max_tokens"), 5, 5),
    ],
)
def test_settings_for_people_to_see(pointer: tuple[str, ...], value: Any, shown: Any) -> None:
    if shown is None:
        shown = {"provider": {"headers": {"X-Team": "********", "X-None": None}, "name": "openai"}}
    assert printable_setting(value, pointer) == shown


def test_a_text_of_any_length_is_searched() -> None:
    text = "word " * 50_000 + TOKEN + " end"
    assert [text[slice(*span)] for span in secrets_in_text(text)] == [TOKEN]
    assert secrets_in_text("nothing here: https://example.org/a?b=c") == ()


@given(st.text())
def test_covering_keeps_the_length_and_the_line_ends(text: str) -> None:
    covered = redact(f"{text}\n{TOKEN}\n")
    assert len(covered) == len(text) + len(TOKEN) + 2
    assert TOKEN not in covered
    assert TOKEN not in str(without_secrets({"a": [text, TOKEN]}))


WORDS = ["ghp_", "sk-a1", "A" * 20, "1b" * 12, "Bearer ", "BAſIC\n", "basıc ", "https", "://", "u", ":", "@"]
WORDS += [
    "p@ss",
    "?token=",
    "&",
    " ",
    "\n",
    "-",
    "é",
    "İ",
    "a" * 40,
    "-----BEGIN PRIVATE KEY-----",
    "eyJ",
    ".",
]
WRITTEN = st.lists(st.sampled_from(WORDS), max_size=30).map("".join)


@settings(max_examples=400)
@given(WRITTEN)
def test_what_is_looked_for_by_marks_is_what_the_patterns_find(text: str) -> None:
    password = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{0,30}" + module.PASSWORD.pattern)
    patterns = (module.TOKEN, module.SCHEME, password, module.QUERY)
    whole = [match.span(match.lastindex or 0) for each in patterns for match in each.finditer(text)]
    assert [match.span(match.lastindex or 0) for match in module.find_candidates(text)] == whole


# lines of public documentation and instruction files; no one of them holds a secret
DOCUMENTATION = Path(__file__).with_name("documentation_lines.txt").read_text("utf-8")


def test_documentation_gives_no_alarm() -> None:
    assert [DOCUMENTATION[slice(*span)] for span in secrets_in_text(DOCUMENTATION)] == []
    assert [line for line in DOCUMENTATION.splitlines() if secrets_in_text(line)] == []


def test_no_words_behind_a_scheme_are_starred() -> None:
    prose = re.compile(r"(?i)\b(?:basic|bearer)\s")
    lines = [
        line
        for line in DOCUMENTATION.splitlines()
        if prose.search(line) and "authorization" not in line.lower() and "://" not in line
    ]
    assert len(lines) > 200
    assert [line for line in lines if redact(line) != line or cover_literals(line) != line] == []


BASIC = "YW5hOm1vb25saXRoYXJib3Vy"  # ana:moonlitharbour


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        ("Authorization: Bearer moonlitharbour", "moonlitharbour"),
        ("curl -H 'Authorization: Bearer moonlitharbour' x", "moonlitharbour"),
        ("curl --header 'X-Auth: Bearer moonlitharbour' x", "moonlitharbour"),
        ('headers={"Authorization": "Bearer moonlitharbour"}', "moonlitharbour"),
        ('\\"authorization\\": \\"Bearer moonlitharbour\\"', "moonlitharbour"),
        ("X-Team-Token: Bearer moonlitharbour", "moonlitharbour"),
        ("- **Authorization:** `Bearer moonlitharbour`", "moonlitharbour"),
        ("| Authorization | Bearer moonlitharbour |", "moonlitharbour"),
        ("Send Bearer q8Zk2LmP0xVt7RwY with it", "q8Zk2LmP0xVt7RwY"),
        ("bearer 550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
        (f"Log in with basic {BASIC} there", BASIC),
        ("Basic\nq8Zk2LmP0xVt7RwY", "q8Zk2LmP0xVt7RwY"),
        ("https://ana:moonlit7@db.harbour.dev/x", "moonlit7"),
        ("postgres://app:q8Zk2LmP0xVt7RwY@localhost/app", "q8Zk2LmP0xVt7RwY"),
        ("https://h.org/?access_token=q8Zk2LmP0xVt", "q8Zk2LmP0xVt"),
        (f"-----BEGIN PRIVATE KEY-----\n{'MIIEvQIBADAN' * 5}", None),
        (f"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjE{'A' * 9}{'MIIEvQIBADAN' * 5}", None),
        (f'"-----BEGIN RSA PRIVATE KEY-----\\n{"MIIEvQIBADAN" * 5}"', None),
    ],
)
def test_a_credential_in_a_text_gives_an_alarm(line: str, secret: str | None) -> None:
    spans = secrets_in_text(line)
    assert len(spans) == 1
    assert secret is None or line[slice(*spans[0])] == secret
    assert cover_literals(line)[slice(*spans[0])].strip("*") == ""


@pytest.mark.parametrize(
    "value", ["Bearer " + "a1" * 30_000, "Basic " + "test" * 15_000 + "!", "Bearer " + "abc" * 20_000]
)
def test_a_long_value_costs_little(value: str) -> None:
    started = time.process_time()
    redact(value)
    secrets_in_text(value)
    assert time.process_time() - started < 1
