"""A tiny server for tests of the wire: `python -m support.server`, or in a thread."""

import asyncio
import sys
from typing import Any

import msgspec
from lsprotocol import types as lsp

from nexus_context.errors import Problem, RequestError, Severity, Span
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.lsp.link import Limits
from nexus_daemon.lsp.stdio import serve_stdio


class EchoParams(msgspec.Struct, frozen=True, rename="camel"):
    value: msgspec.Raw


class FolderParams(msgspec.Struct, frozen=True, rename="camel"):
    workspace_folder: str
    session: str = "main"


class WaitParams(msgspec.Struct, frozen=True):
    seconds: float
    size: int = 0


def _find_moniker(_: lsp.MonikerParams) -> list[lsp.Moniker]:
    return []


def build(server: NexusServer) -> None:
    """Register one handler for each way in which a handler can behave."""

    @server.feature("textDocument/hover", lsp.HoverOptions())
    def hover(params: lsp.HoverParams) -> lsp.Hover:
        document = server.documents.get(params.text_document.uri)
        text = "" if document is None else document.text
        return lsp.Hover(
            lsp.MarkupContent(lsp.MarkupKind.PlainText, text), lsp.Range(params.position, params.position)
        )

    @server.feature("textDocument/completion", lsp.CompletionOptions(trigger_characters=['"']))
    def complete(params: lsp.CompletionParams) -> object:
        return object()

    server.feature("textDocument/moniker", lsp.MonikerOptions())(_find_moniker)

    @server.custom("nexus/echo", lambda: EchoParams)
    def echo(params: EchoParams) -> dict[str, Any]:
        return {"value": params.value}

    @server.custom("nexus/folder", lambda: FolderParams)
    def folder(params: FolderParams) -> FolderParams:
        return params

    @server.custom("nexus/wait", lambda: WaitParams)
    async def wait(params: WaitParams) -> dict[str, Any]:
        await asyncio.sleep(params.seconds)
        return {"waited": params.seconds, "text": "x" * params.size}

    @server.custom("nexus/fail", lambda: FolderParams)
    def fail(params: FolderParams) -> None:
        problem = Problem("/a.json", Span(0, 1), "json.syntax", Severity.ERROR, "bad")
        raise RequestError("Do something else.", code="unknown-folder", problems=(problem,))

    @server.custom("nexus/crash", lambda: msgspec.Raw)
    def crash(params: msgspec.Raw) -> None:
        raise ZeroDivisionError("secret")

    @server.custom("nexus/rubbish", lambda: msgspec.Raw)
    def rubbish(params: msgspec.Raw) -> object:
        return {"a": object()}

    @server.custom("nexus/odd", lambda: msgspec.Raw)
    def odd(params: msgspec.Raw) -> object:
        print("this is no frame")  # noqa: T201 - it must not reach the wire
        return [float("nan"), float("inf"), "\ud800", 10**30]

    @server.custom("nexus/ask", lambda: msgspec.Raw)
    async def ask(params: msgspec.Raw) -> Any:
        return await server.request("workspace/configuration", {"items": []}, list[int], timeout_s=5)

    @server.custom("nexus/text", lambda: FolderParams)
    def text(params: FolderParams) -> str | None:
        document = server.documents.get(params.workspace_folder)
        return None if document is None else document.text


def main() -> None:
    """Serve, with the limits given as JSON in the first argument."""
    limits = msgspec.json.decode(sys.argv[1], type=Limits) if len(sys.argv) > 1 else Limits()
    sys.exit(asyncio.run(serve_stdio(build, limits=limits)))


if __name__ == "__main__":
    main()
