"""What `initialize` takes and answers."""

import asyncio
import json
from typing import Any

import msgspec
import pytest
from inline_snapshot import snapshot

from nexus_daemon.lsp.capabilities import choose_encoding
from nexus_daemon.lsp.lsp_types import ClientInfo, InitializeParams, WorkspaceFolder, initialize_params
from nexus_daemon.lsp.server import NexusServer
from support.talk import Message, Talk, call


def test_capabilities() -> None:
    def register(server: NexusServer) -> None:
        from lsprotocol import types as lsp

        names: dict[str, Any] = {
            "textDocument/hover": None,
            "textDocument/completion": lsp.CompletionOptions(trigger_characters=['"']),
            "completionItem/resolve": None,
            "textDocument/codeAction": lsp.CodeActionOptions([lsp.CodeActionKind.QuickFix]),
            "textDocument/rename": None,
            "textDocument/prepareRename": None,
            "textDocument/didSave": None,
            "textDocument/diagnostic": None,
            "workspace/diagnostic": None,
            "workspace/textDocumentContent": {"schemes": ["nexus-context"]},
        }
        for name, options in names.items():
            server.feature(name, options)(lambda params: None)
        server.custom("nexus/a/b", msgspec.Raw)(lambda params: None)

    async def run() -> Message:
        talk = Talk(register)
        client = {
            "general": {"positionEncodings": ["utf-8"]},
            "textDocument": {"rename": {"prepareSupport": True}},
        }
        talk.send(call(1, "initialize", {"processId": None, "rootUri": None, "capabilities": client}))
        talk.link.end(0, "over")
        answer: Message = talk.writer.messages()[0]["result"]
        return answer

    assert asyncio.run(run()) == snapshot(
        {
            "capabilities": {
                "positionEncoding": "utf-8",
                "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": False}},
                "codeActionProvider": {"codeActionKinds": ["quickfix"]},
                "completionProvider": {"triggerCharacters": ['"'], "resolveProvider": True},
                "diagnosticProvider": {"interFileDependencies": True, "workspaceDiagnostics": True},
                "hoverProvider": True,
                "renameProvider": {"prepareProvider": True},
                "executeCommandProvider": {"commands": ["nexus.a.b"]},
                "workspace": {
                    "workspaceFolders": {"supported": True, "changeNotifications": True},
                    "textDocumentContent": {"schemes": ["nexus-context"]},
                },
                "experimental": {"nexus": {"protocol": 1}},
            },
            "serverInfo": {"name": "test", "version": "1"},
        }
    )


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [
        (["utf-8", "utf-16"], "utf-8"),
        (["utf-32", "utf-8"], "utf-32"),
        (["utf-7", "utf-16"], "utf-16"),
        (["utf-7", 5, None, {}], "utf-16"),
        ([], "utf-16"),
        (None, "utf-16"),
        ("utf-8", "utf-16"),
    ],
)
def test_encoding(offered: object, chosen: str) -> None:
    assert (
        choose_encoding(InitializeParams(capabilities={"general": {"positionEncodings": offered}})) == chosen
    )


def test_initialize_params_are_taken_where_they_fit() -> None:
    given = {
        "processId": "one",
        "clientInfo": {"name": "vim", "version": None, "extra": 1},
        "capabilities": {"workspace": "yes", "general": {"a": {"b": 1}}},
        "workspaceFolders": [{"uri": "file:///a", "name": "a"}],
        "initializationOptions": {"trusted": True},
        "trace": 5,
        "rootUri": None,
        "locale": "de",
    }
    params = initialize_params(json.dumps(given).encode())
    assert params == snapshot(
        InitializeParams(
            process_id=None,
            client_info=ClientInfo(name="vim", version=None),
            locale="de",
            root_path=None,
            root_uri=None,
            initialization_options={"trusted": True},
            capabilities={"workspace": "yes", "general": {"a": {"b": 1}}},
            trace=None,
            workspace_folders=(WorkspaceFolder(uri="file:///a", name="a"),),
        )
    )
    assert [params.capability(path) for path in ("general.a.b", "workspace.x", "x.y", "general.a.b.c")] == [
        1,
        None,
        None,
        None,
    ]
