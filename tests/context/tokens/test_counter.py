"""Counts of text and messages, exact and estimated, whatever the text."""

import functools
import subprocess
import sys
from typing import Any, NamedTuple

import pytest
import tiktoken
import tiktoken_ext.openai_public  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.tokens import (
    ScaledCounter,
    SimpleTokenCounter,
    TiktokenCounter,
    TokenCounter,
    count_message,
    get_token_counter,
    segments,
    vocabulary,
)

CL100K = TiktokenCounter()
O200K = TiktokenCounter("o200k_base")
SIMPLE = SimpleTokenCounter()


@functools.cache
def tiktokens_own(name: str) -> tiktoken.Encoding:
    """The encoding with the pattern as tiktoken writes it."""
    definition = vocabulary.DEFINITIONS[name]
    return tiktoken.Encoding(
        f"{name} of tiktoken",
        pat_str=definition.pattern,
        mergeable_ranks=vocabulary.read_ranks(name, definition.sha256),
        special_tokens=definition.special_tokens,
    )


def reference(counter: TiktokenCounter, text: str) -> int:
    return len(tiktokens_own(counter.name).encode(text, disallowed_special=()))


def test_text() -> None:
    counters = (CL100K, O200K, SIMPLE)
    assert {text: tuple(one.count(text) for one in counters) for text in TEXTS} == TEXTS


TEXTS = {
    "": (0, 0, 0),
    "hello world": (2, 2, 3),
    "<|endoftext|>": (7, 7, 4),
    "Привет, мир": (6, 4, 5),
    "你好世界": (5, 2, 3),
    "Hi 你好 мир": (6, 4, 4),
    "\ud83d\ude00": (2, 1, 1),
    "a\ud800b": (3, 3, 1),
    "\x00\x07": (2, 2, 1),
}


@pytest.mark.parametrize("counter", [CL100K, O200K], ids=repr)
@pytest.mark.parametrize(
    ("text", "difference"),
    [
        ("a" * 1_000_000, 0),
        ("1" * 1_000_000, 0),
        ("\n" * 1_000_000, 0),
        ("\U0001f600" * 300_000, 0),
        ("<|endoftext|>" * 40_000, 0),
        ("// a comment\n" * 40_000, 0),
        ('{"key": [1, 2, "x y"]},' * 20_000, 0),
        ("\ud800" * 100_000, 0),
    ],
    ids=lambda value: repr(value[:14]) if isinstance(value, str) else "",
)
def test_large_text_counts_as_tiktoken_does(counter: TiktokenCounter, text: str, difference: int) -> None:
    assert counter.count(text) - reference(counter, text) == difference


@pytest.mark.parametrize("counter", [CL100K, O200K], ids=repr)
@pytest.mark.parametrize("blank", [" ", "\t", "\u00a0"], ids=repr)
def test_a_million_blanks_on_which_tiktoken_gives_up(counter: TiktokenCounter, blank: str) -> None:
    half = blank * 589_824  # 12 segments
    assert counter.count(half * 2 + "x") == 2 * counter.count(half) + 1


@pytest.mark.parametrize("counter", [CL100K, O200K], ids=repr)
@given(
    text=st.text(st.sampled_from("aZé中д1 \t\r\n/'.)\u3000\u2028\x85\x1c\u0301\ud800"), min_size=1),
    times=st.integers(1, 900),
)
@settings(max_examples=150, deadline=None)
def test_split_text_counts_as_the_whole(counter: TiktokenCounter, text: str, times: int) -> None:
    text = f"{text}\n{text}x" * times
    assert counter.count(text) == reference(counter, text)


LETTERS = (
    "aAzZsSſlLvVeErRdDtTmMKǅʰéд中ı1٣Ⅷ"
    " \t\n\r\x0b\x0c\x1c\x85\u00a0\u200b\u2028\u3000'’\"/!<|>_.\u0301\ud800\U0001f600"
)


@pytest.mark.parametrize("counter", [CL100K, O200K], ids=repr)
@given(text=st.text(st.sampled_from(LETTERS)) | st.text())
@settings(max_examples=300, deadline=None)
def test_the_pattern_matches_as_tiktokens_own(counter: TiktokenCounter, text: str) -> None:
    ours = vocabulary.load_encoding(counter.name).encode(text, disallowed_special=())
    assert ours == tiktokens_own(counter.name).encode(text, disallowed_special=())


@given(text=st.text(), times=st.integers(1, 3000))
@settings(max_examples=100, deadline=None)
def test_segments_tile_the_text(text: str, times: int) -> None:
    text *= times
    parts = list(segments.split(text))
    assert "".join(parts) == text
    assert all(0 < len(part) <= segments.LONG for part in parts)


def test_an_edit_changes_segments_around_it_only() -> None:
    lines = [f"- item {number} of the list, number {number * 7919 % 1000}\n" for number in range(4000)]
    before = set(segments.split("".join(lines)))
    lines[2000] = "- quite another thing\n"
    after = list(segments.split("".join(lines)))
    assert len([part for part in after if part not in before]) <= 3 < 50 < len(after)


class Call(NamedTuple):
    name: str
    arguments: Any


class Message(NamedTuple):
    content: Any
    tool_calls: tuple[Call, ...] = ()


IMAGE = {"type": "image", "data": "iVBORw0KGgo" * 1000}


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (Message(""), 4),
        (Message(None), 4),
        (Message("hello world"), 4 + 2),
        (Message([{"type": "text", "text": "hello world"}, "hello"]), 4 + 2 + 1),
        (Message([IMAGE]), 4 + 85 + 8 * 170),
        (Message([IMAGE | {"width": 512, "height": 256}]), 4 + 255),
        (Message([{"type": "image_url", "image_url": {"url": "data:", "detail": "low"}}]), 4 + 85),
        (Message([{"type": "json", "n": 1}]), 4 + CL100K.count('{"type":"json","n":1}')),
        (
            Message([{"type": "tool_call", "id": "toolu_01Ab2Cd3Ef4Gh5Ij6Kl7Mn8"}], (Call("f", "{}"),)),
            4 + 1 + 1 + 5,
        ),
        (Message("", (Call("read", {"path": "a b"}),)), 4 + 1 + CL100K.count('{"path":"a b"}') + 5),
        (Message("", (Call("read", '{"path": "a b"}'),)), 4 + 1 + CL100K.count('{"path": "a b"}') + 5),
        (Message("", (Call("f", {"x": "\ud800"}),)), 4 + 1 + CL100K.count('{}"\ud800","x",') + 5),
    ],
)
def test_messages(message: Message, tokens: int) -> None:
    assert count_message(CL100K, message.content, message.tool_calls) == tokens
    assert CL100K.count_messages([message, message]) == 2 * tokens


@pytest.mark.parametrize(
    ("model", "overhead"),
    [
        ("claude-sonnet-4", 72),
        ("claude-opus-4-7", 72),
        ("claude-instant-1.2", 72),
        ("gpt-4o", 5),
        ("gemini-2.5-pro", 5),
        ("deepseek-chat", 5),
    ],
)
def test_a_call_costs_what_its_provider_puts_around_it(model: str, overhead: int) -> None:
    counter = get_token_counter(model=model)
    text = counter.count("read") + counter.count('{"path":"a b"}')
    call, result = Message("", (Call("read", {"path": "a b"}),)), Message("hello world")
    assert count_message(counter, call.content, call.tool_calls) == 4 + text + overhead
    assert counter.count_messages([call, result]) == 4 + text + overhead + 4 + counter.count("hello world")
    assert count_message(counter, "", call.tool_calls * 3) == 4 + 3 * (text + overhead)


def test_deep_arguments_are_counted() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    assert count_message(SIMPLE, None, [Call("f", deep)]) > 50_000


def test_names_and_exactness() -> None:
    counters: list[TokenCounter] = [
        get_token_counter(),
        get_token_counter(encoding="o200k_base"),
        get_token_counter(model="gpt-4o"),
        get_token_counter(model="gpt-5"),
        get_token_counter(model="claude-opus-4-5"),
        get_token_counter(False, model="gpt-4o"),
        ScaledCounter(O200K, 1.48),
    ]
    assert [(counter.name, counter.exact) for counter in counters] == [
        ("cl100k_base", True),
        ("o200k_base", True),
        ("o200k_base", True),
        ("o200k_base (gpt-5)", True),
        ("o200k_base × 1.18 (Claude)", False),
        ("characters", False),
        ("o200k_base × 1.48", False),
    ]
    with pytest.raises(ValueError, match="choose one of: cl100k_base, o200k_base"):
        get_token_counter(encoding="p50k_base")


LOAD_IN_THREADS = """
import threading
from nexus_context.tokens import vocabulary

reads, read_ranks = [], vocabulary.read_ranks

def record(name, sha256):
    reads.append(name)
    return read_ranks(name, sha256)

vocabulary.read_ranks = record
threads = [threading.Thread(target=vocabulary.load_encoding, args=("cl100k_base",)) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(reads, vocabulary.loaded_encodings())
"""


def test_a_vocabulary_is_loaded_once_for_many_threads() -> None:
    """In a new process, where none is loaded."""
    command = [sys.executable, "-c", LOAD_IN_THREADS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout == "['cl100k_base'] ('cl100k_base',)\n"


@pytest.mark.parametrize("name", vocabulary.ENCODINGS)
def test_definitions_are_tiktokens_own(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, str] = {}

    def record(url: str, expected_hash: str) -> dict[bytes, int]:
        asked["sha256"] = expected_hash
        return {}

    monkeypatch.setattr(tiktoken_ext.openai_public, "load_tiktoken_bpe", record)
    theirs = tiktoken_ext.openai_public.ENCODING_CONSTRUCTORS[name]()
    ours = vocabulary.DEFINITIONS[name]
    assert ours == (asked["sha256"], theirs["pat_str"], theirs["special_tokens"])


def test_a_damaged_vocabulary_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        vocabulary.VocabularyError, match=r"cl100k_base.tiktoken.gz has a wrong SHA-256; reinstall"
    ):
        vocabulary.read_ranks("cl100k_base", "0" * 64)
    with pytest.raises(vocabulary.VocabularyError, match="cannot read the vocabulary"):
        vocabulary.read_ranks("none", "")


def test_tiktoken_finds_a_loaded_vocabulary_by_itself() -> None:
    encoding = vocabulary.load_encoding("o200k_base")
    assert tiktoken.get_encoding("o200k_base") is encoding
    assert tiktoken.encoding_for_model("gpt-4o") is encoding
    assert encoding.decode(encoding.encode("hello world")) == "hello world"
