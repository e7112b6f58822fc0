"""Real pipes, small ones: everything is written, in order, and read into place."""

import asyncio
import fcntl
import os
import random
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from nexus_daemon.lsp import framing
from nexus_daemon.lsp.pipe import PipeReader, PipeWriter
from support.waiting import wait_until, yield_to_loop

SMALL = 4096  # bytes that a pipe holds here, where that can be set


def pipe() -> tuple[int, int]:
    out, into = os.pipe()
    if sys.platform == "linux":
        fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, SMALL)
    return out, into


class Side:
    """What is above a writer and below a reader; keeps what comes."""

    def __init__(self, *, room: int = 7) -> None:
        self.lost = asyncio.Event()
        self.data = b""
        self.room = bytearray(room)
        self.chunks = 0
        self.wrotes = 0

    def wrote(self) -> None:
        self.wrotes += 1

    def writer_lost(self) -> None:
        self.lost.set()

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.room)

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self.room[:nbytes]
        self.chunks += 1

    def eof_received(self) -> None:
        self.lost.set()


class Drain(threading.Thread):
    """The other end of a pipe: reads everything, in pieces of odd sizes, until `limit` bytes or the end."""

    def __init__(self, descriptor: int, *, limit: int | None = None) -> None:
        super().__init__(daemon=True)
        self.data = bytearray()
        self._descriptor = descriptor
        self._limit = limit
        self.start()

    def run(self) -> None:
        sizes = random.Random(3)  # noqa: S311
        while self._limit is None or len(self.data) < self._limit:
            piece = os.read(self._descriptor, sizes.choice([1, 100, 5000, 100_000]))
            if not piece:
                break
            self.data += piece
        os.close(self._descriptor)


@asynccontextmanager
async def writing(*, limit: int | None = None) -> AsyncIterator[tuple[PipeWriter, Side, Drain]]:
    out, into = pipe()
    side = Side()
    writer = PipeWriter(into, side, asyncio.get_running_loop())
    drain = Drain(out, limit=limit)
    yield writer, side, drain
    await asyncio.wait_for(side.lost.wait(), 10)
    await asyncio.to_thread(drain.join, 10)


def test_more_parts_than_one_system_call_takes() -> None:
    parts = [b"%d," % number for number in range(5000)]

    async def run() -> bytearray:
        async with writing() as (writer, _, drain):
            writer.write(b"", *parts, b"", memoryview(b"end"))
            assert writer.get_write_buffer_size() < len(b"".join(parts)) + 3  # the pipe took some at once
            writer.close()
        assert writer.get_write_buffer_size() == 0
        return drain.data

    assert asyncio.run(run()) == b"".join(parts) + b"end"


def test_frames_written_while_one_is_stuck_follow_it() -> None:
    frames = [[bytes([65 + n]) * 3000, b"", bytes([97 + n]) * (n * 1000)] for n in range(20)]

    async def run() -> bytearray:
        async with writing() as (writer, _, drain):
            for number, frame in enumerate(frames):
                writer.write(*frame)
                if number % 3 == 0:
                    await yield_to_loop()
            writer.close()
            writer.write(b"too late")
        return drain.data

    assert asyncio.run(run()) == b"".join(part for frame in frames for part in frame)


def test_it_is_told_that_what_waited_was_taken() -> None:
    async def run() -> tuple[int, int]:
        async with writing() as (writer, side, _):
            writer.write(b"at once")
            assert (writer.get_write_buffer_size(), side.wrotes) == (0, 0)
            writer.write(b"x" * 1_000_000)
            assert writer.get_write_buffer_size()
            while writer.get_write_buffer_size():
                before = side.wrotes
                await yield_to_loop()
            writer.close()
        return before, side.wrotes

    before, after = asyncio.run(run())
    assert 0 <= before < after


def test_nobody_reads() -> None:
    """The loop goes on, what waits is counted, and closing at once forgets it."""

    async def run() -> None:
        out, into = pipe()
        side = Side()
        writer = PipeWriter(into, side, asyncio.get_running_loop())
        writer.write(b"x" * 50_000, b"y" * 50_000)
        writer.write(b"z")
        waiting = writer.get_write_buffer_size()
        assert 0 < waiting < 100_001
        await yield_to_loop(5)
        assert (writer.get_write_buffer_size(), side.lost.is_set()) == (waiting, False)
        writer.abort()
        await asyncio.wait_for(side.lost.wait(), 10)
        assert writer.get_write_buffer_size() == 0
        os.close(out)

    asyncio.run(run())


def test_the_reader_dies_in_the_middle() -> None:
    async def run() -> int:
        async with writing(limit=10_000) as (writer, side, drain):
            writer.write(*[b"x" * 1000] * 2000)
            await asyncio.wait_for(side.lost.wait(), 10)
            writer.write(b"more")  # is dropped
            assert writer.get_write_buffer_size() == 0
            writer.abort()  # twice is once
        return len(drain.data)

    assert asyncio.run(run()) >= 10_000


@pytest.mark.parametrize("room", [1, 7, 200_000])
def test_reading(room: int) -> None:
    text = random.Random(4).randbytes(30_000)  # noqa: S311

    async def run() -> bytes:
        out, into = pipe()
        side = Side(room=room)
        reader = PipeReader(out, side, asyncio.get_running_loop())
        await asyncio.to_thread(os.write, into, text)
        os.close(into)
        await asyncio.wait_for(side.lost.wait(), 10)
        reader.close()
        reader.close()  # twice is once
        return side.data

    assert asyncio.run(run()) == text


def test_reading_pauses() -> None:
    async def run() -> tuple[bytes, bytes]:
        out, into = pipe()
        side = Side()
        reader = PipeReader(out, side, asyncio.get_running_loop())
        reader.pause_reading()
        reader.pause_reading()
        os.write(into, b"abc")
        await yield_to_loop(5)
        before = side.data
        reader.resume_reading()
        reader.resume_reading()
        await wait_until(lambda: side.data)
        reader.close()
        reader.resume_reading()  # a closed one stays closed
        os.close(into)
        return before, side.data

    assert asyncio.run(run()) == (b"", b"abc")


def test_a_client_that_never_stops_writing_does_not_stop_the_loop() -> None:
    async def run() -> None:
        out, into = pipe()
        side = Side(room=16)
        reader = PipeReader(out, side, asyncio.get_running_loop())
        os.write(into, b"x" * SMALL)
        await yield_to_loop(2)
        assert 0 < side.chunks < SMALL // 16
        reader.close()
        os.close(into)

    asyncio.run(run())


def test_a_long_message_in_odd_pieces() -> None:
    """Through the reader of frames: its room grows, and nothing of the message after it is lost."""
    bodies = [random.Random(n).randbytes(n) for n in (5, 40_000, 300_000, 9_000_000, 0, 70_000)]  # noqa: S311
    stream = b"".join(framing.header(len(body)) + body for body in bodies)
    sizes = random.Random(6)  # noqa: S311
    for kinds in ([1, 3, 50_000, 1_000_000], [65_536], [10_000_000]):
        reader, found, at = framing.FrameReader(), [], 0
        while at < len(stream):
            with reader.room() as room:
                count = min(sizes.choice(kinds), len(room), len(stream) - at)
                room[:count] = stream[at : at + count]
            reader.filled(count)
            at += count
            if sizes.random() < 0.7:
                while (body := reader.next()) is not None:
                    found.append(body)
        while (body := reader.next()) is not None:
            found.append(body)
        assert (found, reader.pending) == (bodies, 0)
