"""A provider's answer through `nexus_daemon.providers`, beside the provider's SDK alone, from loopback.

The provider is a process of its own (`python -m benchmarks.providers`): it answers every request with CHUNKS
deltas of text, one every PAUSE_S.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.promises import Measured, Promise, Run, Series, promises

CHUNKS, PAUSE_S = 500, 0.002
SDK = "the SDK's stream alone"
CPU, FIRST = f"CPU of {CHUNKS} chunks in a second", "a request until its first text"
TURN = "a whole turn until its first text"
BODY = {"model": "m", "max_tokens": 4_096, "messages": [{"role": "user", "content": "hi"}]}
_USAGE = {"input_tokens": 9, "output_tokens": 1}
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@promises(Promise(CPU, 2.0, SDK), Promise(FIRST, 2.0, SDK))
def streams(run: Run) -> Iterator[Measured]:
    """Anthropic's messages. The SDK's client keeps its connection; Nexus connects for each request."""
    import anthropic

    from nexus_daemon.providers import Provider, Target, TextDelta

    with _provider() as url, asyncio.Runner() as runner:
        client = anthropic.AsyncAnthropic(api_key="key", base_url=url, max_retries=0)

        async def by_nexus() -> tuple[float, float]:
            begin, cpu, first = time.perf_counter(), time.process_time(), 0.0
            async for item in Provider(Target("anthropic", url, "key")).stream(BODY):
                if not first and isinstance(item, TextDelta):
                    first = time.perf_counter() - begin
            return (time.process_time() - cpu) * 1000, first * 1000

        async def by_sdk() -> tuple[float, float]:
            begin, cpu, first = time.perf_counter(), time.process_time(), 0.0
            async with client.messages.stream(**BODY) as events:  # type: ignore[arg-type]
                async for _ in events.text_stream:
                    first = first or time.perf_counter() - begin
                await events.get_final_message()
            return (time.process_time() - cpu) * 1000, first * 1000

        measured: dict[str, list[tuple[float, float]]] = {"nexus": [], SDK: []}
        for _ in range(2 + run.pick(full=20, quick=2)):
            measured["nexus"].append(runner.run(by_nexus()))
            measured[SDK].append(runner.run(by_sdk()))
        runner.run(client.close())
    for at, name in enumerate((CPU, FIRST)):
        ours, theirs = ([each[at] for each in measured[who][2:]] for who in ("nexus", SDK))
        yield name, Series(ours), Series(theirs)


@promises(Promise(TURN, 8.0, SDK))
def turns(run: Run) -> Iterator[Measured]:
    """A whole turn in a daemon of this process, with the ledger on the disk: until its first text."""
    import anthropic

    from nexus_daemon import api, protocol
    from nexus_daemon.cli.asking import writing
    from nexus_daemon.lsp.dispatch import NexusServer

    ours: list[float] = []
    theirs: list[float] = []

    class Client(NexusServer):
        began = 0.0

        def notify(self, method: str, params: Any = None) -> None:  # noqa: ARG002 - of the base class
            value = getattr(params, "value", None)
            if self.began and isinstance(value, list) and value[0].kind == "text":
                ours.append((time.perf_counter() - self.began) * 1000)
                self.began = 0.0

    async def by_sdk(client: anthropic.AsyncAnthropic) -> None:
        begin, first = time.perf_counter(), 0.0
        async with client.messages.stream(**BODY) as events:  # type: ignore[arg-type]
            async for _ in events.text_stream:
                first = first or time.perf_counter() - begin
        theirs.append(first * 1000)

    with _provider() as url, _home(url) as folder, asyncio.Runner() as runner:
        sdk, editor = anthropic.AsyncAnthropic(api_key="key", base_url=url, max_retries=0), Client()
        with writing("chat", folder, editor) as client:
            for number in range(2 + run.pick(full=20, quick=2)):
                params = protocol.ChatSendParams(
                    client.uri, message=f"Message {number}.", partial_result_token=1
                )
                editor.began = time.perf_counter()
                client.ask(api.chat.send, params)
                runner.run(by_sdk(sdk))
        runner.run(sdk.close())
    yield TURN, Series(ours[2:]), Series(theirs[2:])


@contextmanager
def _home(url: str) -> Iterator[str]:
    """A folder of a user whose provider is at an address."""
    with tempfile.TemporaryDirectory() as directory:
        home, folder = Path(directory, "home"), Path(directory, "folder")
        home.mkdir()
        folder.mkdir()
        (folder / "AGENTS.md").write_text("Answer in one sentence.\n")
        named = {
            "name": "anthropic",
            "model": "claude-sonnet-4-6",
            "base_url": url,
            "api_key_env": "BENCH_KEY",
        }
        (home / "config.json").write_text(json.dumps({"provider": named}))
        variables = {
            "NEXUS_HOME": str(home),
            "NEXUS_STATE": str(Path(directory, "state")),
            "BENCH_KEY": "key",
        }
        before = {name: os.environ.get(name) for name in variables}
        os.environ.update(variables)
        try:
            yield str(folder)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


@contextmanager
def _provider() -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.providers"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def _event(kind: str, **fields: object) -> bytes:
    data = f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
    return b"%x\r\n%b\r\n" % (len(data), data)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    message = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "usage": _USAGE,
    }
    delta = {"type": "text_delta", "text": "six words of text at once "}
    try:
        while head := await reader.readuntil(b"\r\n\r\n"):
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
            writer.write(_HEAD)
            writer.write(_event("message_start", message=message))
            writer.write(_event("content_block_start", index=0, content_block={"type": "text", "text": ""}))
            for _ in range(CHUNKS):
                writer.write(_event("content_block_delta", index=0, delta=delta))
                await writer.drain()
                await asyncio.sleep(PAUSE_S)
            writer.write(_event("content_block_stop", index=0))
            writer.write(
                _event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 9})
            )
            writer.write(_event("message_stop") + b"0\r\n\r\n")
    except (ConnectionError, asyncio.IncompleteReadError):
        writer.close()


async def _serve() -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve())
