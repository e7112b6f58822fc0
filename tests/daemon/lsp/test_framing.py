"""Framing and JSON without I/O."""

import json
import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.lsp import framing


def frame(body: bytes) -> bytes:
    return framing.header(len(body)) + body


def check(*chunks: bytes) -> list[framing.Body] | str:
    """Feed chunks; return the bodies, or why the stream was refused."""
    reader = framing.FrameReader(body_limit=1000)
    bodies = []
    try:
        for chunk in chunks:
            reader.feed(chunk)
            while (body := reader.next()) is not None:
                bodies.append(body)
    except framing.FrameError as error:
        return str(error)
    return bodies


@pytest.mark.parametrize(
    "header",
    [
        b"Content-Length: 2\r\n\r\n",
        b"content-length: 2\r\n\r\n",
        b"CONTENT-LENGTH:2\r\n\r\n",
        b"Content-Length:   2  \r\n\r\n",
        b"Content-Length:\t2\r\n\r\n",
        b"Content-Length: 0002\r\n\r\n",
        b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: 2\r\n\r\n",
        b'Content-Length: 2\r\nContent-Type: application/vscode-jsonrpc; charset="UTF8"\r\n\r\n',
        b"X-Other: a: b\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_accepts(header: bytes) -> None:
    assert check(header + b"{}" + header + b"[]") == [b"{}", b"[]"]
    assert check(*(bytes([byte]) for byte in header + b"{}")) == [b"{}"]


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"Content-Length: 2\n\n{}", "a header line does not end with CRLF"),
        (b"Content-Length: 2\r\n\n", "a header line does not end with CRLF"),
        (b"Content-Length: 2\r\r\n", "a header line is not `Name: value`"),
        (b"Content-Length: -2\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: +2\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: 2_0\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: 0x2\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: 2.0\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length:\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: \xd9\xa2\r\n", "a header line is not `Name: value`"),
        (b"Content-Length: two\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: 1000000000000\r\n", "the message is longer than 1000 bytes"),
        (b"Content-Length: " + b"9" * 5000 + b"\r\n", "Content-Length is not a number of bytes"),
        (b"Content-Length: 2\r\nContent-Length: 2\r\n", "the header has two Content-Length lines"),
        (b"Content-Type: x\r\n\r\n", "the header has no Content-Length"),
        (b"\r\n", "the header has no Content-Length"),
        (b"Content-Type: x; charset=utf-16\r\n", "the charset of Content-Type is not utf-8"),
        (b"POST / HTTP/1.1\r\n", "a header line is not `Name: value`"),
        (b"GET http://localhost/ HTTP/1.1\r\n", "a header line is not `Name: value`"),
        (b'{"jsonrpc":"2.0"}', "a header line does not start with a header name"),
        (b"\x16\x03\x01\x02\x00", "a header line does not start with a header name"),
        (b"Content-Length : 2\r\n", "a header line is not `Name: value`"),
        (b"X" * 9000, "the header is longer than 8192 bytes"),
        (b"X: y\r\n" * 2000, "the header is longer than 8192 bytes"),
        (b"Content-Length: 1\r\n\r\n{}", "a header line does not start with a header name"),
    ],
)
def test_refuses(data: bytes, why: str) -> None:
    assert check(data) == why
    assert check(*(bytes([byte]) for byte in data)) == why


@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_any_cutting_gives_the_same_bodies(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(frame, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    chunks = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert check(*chunks) == bodies


@given(st.binary(max_size=200))
def test_any_bytes_are_bodies_or_refused(data: bytes) -> None:
    check(data)


def test_a_long_body_in_many_chunks_is_not_copied_again_and_again() -> None:
    body = b"x" * (8 * 1024 * 1024)
    stream = frame(body) * 2
    reader = framing.FrameReader()
    found = []
    for start in range(0, len(stream), 1000):
        reader.feed(stream[start : start + 1000])
        if (complete := reader.next()) is not None:
            found.append(complete)
    assert found == [body, body]


@pytest.mark.parametrize("chunk", [4_000_000, 65_536])
def test_many_small_bodies_in_one_chunk_are_not_copied_again_and_again(chunk: int) -> None:
    stream = frame(b"{}") * 150_000
    reader, count = framing.FrameReader(), 0
    began = time.thread_time()
    for start in range(0, len(stream), chunk):
        reader.feed(stream[start : start + chunk])
        while reader.next() is not None:
            count += 1
    assert (count, reader.pending) == (150_000, 0)
    assert time.thread_time() - began < 8  # about half a second; it was half a minute


@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_bodies_that_pile_up_come_out_in_order(bodies: list[bytes], data: st.DataObject) -> None:
    """Chunks are fed before anything is taken, as behind an async handler's first step."""
    stream = b"".join(map(frame, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    reader = framing.FrameReader()
    found = []
    for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        reader.feed(stream[a:b])
        if data.draw(st.booleans()) and (body := reader.next()) is not None:
            found.append(body)
    while (body := reader.next()) is not None:
        found.append(body)
    assert (found, reader.pending) == (bodies, 0)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_json_round_trip(value: Any) -> None:
    assert json.loads(framing.encode(value)) == value
    assert framing.decode(json.dumps(value).encode(), Any) == value


class Box(msgspec.Struct):
    raw: msgspec.Raw
    text: str


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ([float("nan"), float("inf"), -float("inf")], b"[null,null,null]"),
        ("a\ud800b", '"a\ufffdb"'.encode()),
        ({"\udfff": ["\ud83d\ude00"]}, '{"\ufffd":["😀"]}'.encode()),
        (Box(msgspec.Raw(b'{"a":1.50}'), "\ud800"), '{"raw":{"a":1.50},"text":"\ufffd"}'.encode()),
        (10**30, b"1" + b"0" * 30),
    ],
)
def test_encode(value: Any, text: bytes) -> None:
    assert framing.encode(value) == text


class Held(msgspec.Struct, rename="camel"):
    first_name: Any
    raws: list[msgspec.Raw]
    others: list[Any]
    last: Any = None


LONG_RAWS = [msgspec.Raw(b'{"text":"%s"}' % (b"x" * n)) for n in (100_000, 0, 3)]
SHORT_RAWS = [msgspec.Raw(b"[%d]" % n) for n in range(40_000)]


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        (Held("a\0b", LONG_RAWS, [1], "z"), 9),
        (Held("\ud800", LONG_RAWS, LONG_RAWS[:1]), 13),  # two lists
        (Held(None, LONG_RAWS[1:], []), 1),  # not worth it
        (Held(None, SHORT_RAWS, [SHORT_RAWS]), 1),
        (Held(None, [*LONG_RAWS, 5], []), 1),  # type: ignore[list-item]
        (Held(msgspec.Raw(b"\0"), LONG_RAWS, []), 1),  # what is no JSON is not made worse
        (LONG_RAWS, 1),
        (None, 1),
    ],
)
def test_long_values_that_are_encoded_already_are_not_copied(result: Any, parts: int) -> None:
    found = framing.encode_in_parts(result, lambda result: {"id": 1, "result": result})
    assert b"".join(found) == framing.encode({"id": 1, "result": result})
    assert len(found) == parts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (rb'"\ud83d"', "\ufffd"),
        (rb'"\ude00x"', "\ufffdx"),
        (rb'"\ud83d\ude00\ud83d"', "😀\ufffd"),
        (rb'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (rb'"\\ud83d\ud83d"', "\\ud83d\ufffd"),
        (rb'"\uD83D\n"', "\ufffd\n"),
    ],
)
def test_lone_surrogates_of_javascript(text: bytes, value: str) -> None:
    assert framing.decode(text, str) == value


@pytest.mark.parametrize(
    "text",
    [
        b"{",
        b"",
        b"nul",
        b'"\xff"',
        b'{"\xff": 1}',
        b'"\\ud83d\xff"',
        b"[" * 100_000,
        rb'"\ud8"',
        b"\xef\xbb\xbf1",
    ],
)
def test_not_json(text: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        framing.decode(text, Any)
