"""A server on stock pygls that only echoes: `python -m benchmarks.echo_server [SOCKET]`.

What a request costs before a server does anything, on standard input and output or on a socket for any number
of clients. pygls's own TCP server mixes up its clients, so each connection has a server object of its own.
"""

import asyncio
import sys
from threading import Event

from pygls.io_ import run_async
from pygls.lsp.server import LanguageServer


def create() -> LanguageServer:
    """A server whose method `echo` returns its params."""
    server = LanguageServer("echo", "1")
    server.feature("echo")(lambda params: params)
    return server


async def _serve(path: str) -> None:
    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = create()
        server.protocol.set_writer(writer)
        await run_async(Event(), reader, server.protocol)

    listener = await asyncio.start_unix_server(connect, path, limit=2**24)
    await listener.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1])) if sys.argv[1:] else create().start_io()
