"""Receive the browser when a sign-in has ended: a listener on 127.0.0.1, for one answer.

1. It answers only a request for its path with the `state` of the sign-in, which only the browser knows. No
   other page or program can end the sign-in, or give it a code.
2. It reads at most LONGEST_HEAD bytes of a request, for REQUEST_S. Nothing of the request is printed or
   logged.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from nexus_context.errors import RequestError

PATH = "/callback"
LONGEST_HEAD = 32 << 10
REQUEST_S = 10.0
_ERROR = re.compile(r"[a-z_]{1,40}")
_PAGE = "<!doctype html><title>Nexus</title><p>{}</p>"


class SignInError(RequestError):
    """Signing in has failed. The text says why."""


class RedirectListener:
    """Listens for the end of a sign-in.

    `uri` is the address that the browser is sent to, `answer` what it brings.
    """

    def __init__(self) -> None:
        self.uri = ""
        self.answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()
        self._state = ""

    def expect(self, page: str) -> None:
        """Expect the answer of the sign-in that begins at the address `page`."""
        self._state = dict(parse_qsl(urlsplit(page).query)).get("state", "")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a connection."""
        with suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            async with asyncio.timeout(REQUEST_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.decode("ascii", "replace"))
                page = _PAGE.format(text).encode()
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                    f"Content-Length: {len(page)}\r\nCache-Control: no-store\r\nConnection: close\r\n"
                    "Referrer-Policy: no-referrer\r\n\r\n".encode()
                    + page
                )
                await writer.drain()
        writer.close()

    def _take(self, head: str) -> tuple[str, str]:
        method, _, target_and_version = head.partition(" ")
        address = urlsplit(target_and_version.partition(" ")[0])
        query = dict(parse_qsl(address.query))
        is_state = secrets.compare_digest(query.get("state", "").encode(), self._state.encode())
        if method != "GET" or address.path != PATH or not self._state or not is_state:
            return "404 Not Found", "There is nothing here."
        if not self.answer.done() and "code" in query:
            self.answer.set_result(AuthorizationCodeResult.model_validate(query))
        elif not self.answer.done():
            reason = _ERROR.fullmatch(query.get("error", ""))
            words = "an error" if reason is None else reason[0]
            self.answer.set_exception(
                SignInError(f"The sign-in was refused ({words}).", code="mcp-sign-in-refused")
            )
        return "200 OK", "You may close this page, and go back to your editor or terminal."


@asynccontextmanager
async def redirect_listener() -> AsyncIterator[RedirectListener]:
    """Yield a listener on a free port. OSError if there is no free port."""
    listener = RedirectListener()
    server = await asyncio.start_server(listener.serve, "127.0.0.1", 0, limit=LONGEST_HEAD)
    listener.uri = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
    try:
        yield listener
    finally:
        server.close()
        if listener.answer.done() and not listener.answer.cancelled():
            listener.answer.exception()  # retrieved, else asyncio complains
        listener.answer.cancel()
