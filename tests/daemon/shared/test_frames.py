"""The daemon's frames on their way through the forwarder."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.envelope import Error, Result
from nexus_daemon.shared.frames import HOLD, FrameFilter
from nexus_daemon.shared.goodbye import OWN_ID, REPLACED, goodbye

PUBLISH = "textDocument/publishDiagnostics"


def framed(message: Any) -> bytes:
    """A message as the daemon writes it."""
    body = framing.encode(message)
    return framing.header(len(body)) + body


def published(uri: str, *diagnostics: object) -> bytes:
    params = {"uri": uri, "diagnostics": list(diagnostics), "version": 1}
    return framed({"jsonrpc": "2.0", "method": PUBLISH, "params": params})


def check(*pieces: bytes, size: int | None = None) -> tuple[bytes, FrameFilter]:
    """What passes of these frames, in pieces of a size."""
    data, frames = b"".join(pieces), FrameFilter()
    size = size or len(data)
    passed = [piece for at in range(0, len(data), size) for piece in frames.feed(data[at : at + size])]
    return b"".join(passed), frames


def test_what_passes_and_what_is_learned() -> None:
    own = framed(Result("2.0", f"{OWN_ID}initialize", {"capabilities": {}}))
    replies = framed(Result("2.0", 7, {"x": 1})) + framed(Error("2.0", 'a"é', {"code": 1, "message": ""}))
    asked = framed({"jsonrpc": "2.0", "id": 1, "method": "nexus/model/complete", "params": {}})
    odd = 'file:///a"b\\\\"\\'
    wrong, right = published(odd, {"message": "x"}), published("file:///c")
    passed, frames = check(own, replies, own, asked, wrong, right)
    assert passed == replies + asked + wrong + right
    assert frames.replied == ["7", json.dumps('a"é')]
    assert frames.published == {odd: True, "file:///c": False}


def test_nothing_passes_after_the_goodbye() -> None:
    reply = framed(Result("2.0", 7, None))
    passed, frames = check(reply, framed(goodbye(REPLACED, [8, "9"])), framed(Error("2.0", 8, {})))
    assert (passed, frames.goodbye, frames.running) == (reply, REPLACED, ["8", '"9"'])


@given(st.integers(1, 200))
def test_frames_in_any_pieces_pass_whole(size: int) -> None:
    before, after = framed(Result("2.0", 1, "x" * 150)), published("file:///a")
    own = framed(Result("2.0", f"{OWN_ID}1", None))
    passed, frames = check(before, own, after, size=size)
    assert (passed, frames.is_inside_frame) == (before + after, False)


def test_a_part_of_a_frame_is_held_and_one_of_a_long_frame_passes() -> None:
    short, long = framed(Result("2.0", 1, "x" * 1000)), framed(Result("2.0", 2, "x" * (HOLD + 1)))
    assert check(short[:-1])[0] == b""
    passed, frames = check(long[:-1])
    assert (len(passed), frames.is_inside_frame, frames.replied) == (len(long) - 1, True, ["2"])
    assert check(long, short, size=100_000)[0] == long + short
