"""What `initialize` takes and answers."""

import json
import re
from typing import Any, cast

import pytest
from inline_snapshot import snapshot
from lsprotocol import types
from pygls.capabilities import ServerCapabilitiesBuilder
from pygls.lsp import get_method_options_type

from nexus_daemon.api.methods import OFFER
from nexus_daemon.lsp import envelope, failures, lsp_types
from nexus_daemon.lsp.initialize import FOR_PEOPLE, choose_encoding, initialize_result
from nexus_daemon.lsp.lsp_types import ClientInfo, InitializeParams, WorkspaceFolder, initialize_params
from nexus_daemon.process.version import PROTOCOL


def check(client: dict[str, Any]) -> dict[str, Any]:
    """The capabilities that a client is offered, compared with what pygls derives from the same table."""
    result = initialize_result(OFFER, InitializeParams(capabilities=client))
    capabilities: dict[str, Any] = result["capabilities"]
    converter = envelope.converter()
    features = dict(OFFER.features)
    if "diagnosticProvider" not in capabilities:  # each problem would be shown twice
        del features["textDocument/diagnostic"], features["workspace/diagnostic"]
    if "implementationProvider" not in capabilities:  # without virtual documents it leads nowhere
        del features["textDocument/implementation"]
    builder = ServerCapabilitiesBuilder(
        converter.structure(client, types.ClientCapabilities),
        set(features),
        {
            feature: converter.structure(options, cast("type[Any]", get_method_options_type(feature)))
            for feature, options in features.items()
            if options is not None
        },
        sorted(OFFER.commands if "experimental" in client else FOR_PEOPLE),
        types.TextDocumentSyncKind.Incremental,
        position_encoding=capabilities["positionEncoding"],
    )
    derived = converter.unstructure(builder.build())  # type: ignore[no-untyped-call]
    # the defaults, which pygls writes out
    assert derived["textDocumentSync"].pop("save") is False
    assert derived["semanticTokensProvider"].pop("documentSelector") is None  # of a registration
    if not derived["workspace"]["fileOperations"]:
        del derived["workspace"]["fileOperations"]
    assert {**derived, "experimental": {"nexus": {"protocol": PROTOCOL}}} == capabilities
    return capabilities


@pytest.mark.parametrize(
    "client",
    [
        {},
        {"experimental": {"nexus": {}}},
        {"general": {"positionEncodings": ["utf-8"]}},
        {"textDocument": {"rename": {"prepareSupport": True}, "diagnostic": {}}},
        {"workspace": {"fileOperations": {"willRename": True}}},
        {"workspace": {"workspaceFolders": False, "fileOperations": {"didCreate": True}}},
        {"workspace": {"textDocumentContent": {"dynamicRegistration": True}}},
    ],
)
def test_capabilities_are_those_that_pygls_derives(client: dict[str, Any]) -> None:
    assert check(client)["codeActionProvider"] == {"codeActionKinds": ["quickfix", "refactor.extract"]}


def test_virtual_documents_are_offered_at_once_to_a_client_that_registers_nothing() -> None:
    client = InitializeParams(capabilities={"workspace": {"textDocumentContent": {}}})
    workspace = initialize_result(OFFER, client)["capabilities"]["workspace"]
    assert workspace["textDocumentContent"] == {"schemes": ["nexus-context"]}  # pygls does not derive it


@pytest.mark.parametrize(
    ("capabilities", "is_offered"),
    [
        ({"workspace": {"textDocumentContent": {}}}, True),
        ({"workspace": {"textDocumentContent": {}}, "experimental": {"nexus": {}}}, False),
        ({}, False),
    ],
)
def test_where_a_line_lands_is_offered_with_virtual_documents(
    capabilities: dict[str, Any], is_offered: bool
) -> None:
    result = initialize_result(OFFER, InitializeParams(capabilities=capabilities))
    assert ("implementationProvider" in result["capabilities"]) is is_offered


def test_notifications_are_those_of_lsp() -> None:
    names = {name for name, (_, reply, *_) in types.METHOD_TO_TYPES.items() if reply is None}
    assert names == lsp_types.NOTIFICATIONS


def test_error_codes_are_those_of_lsp() -> None:
    codes = types.ErrorCodes, types.LSPErrorCodes
    of_lsp = {
        re.sub("(?<=[a-z])(?=[A-Z])", "_", code.name).upper(): code.value for kind in codes for code in kind
    }
    of_lsp["NOT_INITIALIZED"] = of_lsp["SERVER_NOT_INITIALIZED"]
    ours = {
        name: value for name, value in vars(failures).items() if name.isupper() and isinstance(value, int)
    }
    assert ours == {name: of_lsp[name] for name in ours}


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
