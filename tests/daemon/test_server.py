"""Every registered method, sent in every way that its kind, the time or its parameters forbid."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, NoReturn, cast

import msgspec
import pytest

from nexus_daemon.api.methods import FEATURES, METHODS
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.dispatch import NexusServer
from nexus_daemon.server import build
from support.talk import HELLO, Message, Talk, call, tell

NOT_INITIALIZED, INVALID_REQUEST, NOT_FOUND, INVALID_PARAMS = -32002, -32600, -32601, -32602
BUILTIN_REQUESTS = {"workspace/executeCommand": lsp_types.ExecuteCommandParams}
BUILTIN_NOTIFICATIONS = ("$/cancelRequest", "$/setTrace", "exit")
REQUESTS = [
    *(
        method
        for method in FEATURES
        if not method.startswith(("initialized", "textDocument/did", "workspace/did"))
    ),
    *BUILTIN_REQUESTS,
    *METHODS,
]
NOTIFICATIONS = [*(method for method in FEATURES if method not in REQUESTS), *BUILTIN_NOTIFICATIONS]
MISSING = object()
PARAMS: dict[str, object] = {
    "missing": MISSING,
    "null": None,
    "an empty object": {},
    "an empty array": [],
    "an array": [{"workspaceFolder": "file:///a", "session": "main"}],
    "a text": "main",
    "a number": 7,
    "true": True,
    "nulls": {"textDocument": None, "workspaceFolder": None, "event": None, "changes": None},
    "wrong types": {"textDocument": 5, "workspaceFolder": 5, "event": [], "changes": 5, "value": 5, "id": []},
}
SHUTDOWN = call("shutdown", "shutdown")
REFUSED: dict[str, tuple[list[Message], int]] = {
    "before initialize": ([], NOT_INITIALIZED),
    "after shutdown": ([HELLO, SHUTDOWN], INVALID_REQUEST),
}


class Case(msgspec.Struct, frozen=True):
    """What came of one message behind `before`: the replies to it, what ran, and what was logged."""

    codes: list[int | None]  # of each reply; None: a result
    executed: list[str]
    log: list[logging.LogRecord]


def check(before: list[Message], message: Message) -> Case:
    executed: list[str] = []

    def register(server: NexusServer) -> None:
        build(_no_daemon, server)
        for table in (server.protocol.features, server.protocol.commands):
            table.update({name: _record(executed, name) for name in table})
        for method in ("textDocument/didOpen", "textDocument/didChange", "$/cancelRequest", "$/setTrace"):
            # some of their effects show nowhere, so a public name would serve this test only
            server.protocol._notifications[method] = _record(executed, method)  # noqa: SLF001

    async def run() -> list[Message]:
        talk = Talk(register)
        talk.send(*before)
        await talk.settle()
        talk.writer.forget()
        executed.clear()
        talk.send(message)
        received = await talk.settle()
        talk.link.end(0, "over")
        return received

    with _LogRecords() as log:
        received = asyncio.run(run())
    assert all(each.get("id") == message.get("id") and "method" not in each for each in received)
    codes = [each["error"]["code"] if "error" in each else None for each in received]
    return Case(codes, executed, log)


def _no_daemon() -> NoReturn:
    raise AssertionError("the daemon was started")


def _record(executed: list[str], name: str) -> Callable[[Any], None]:
    return lambda _: executed.append(name)


class _LogRecords(logging.Handler):
    """Everything that is logged, warnings and worse, and Python's complaints of lost exceptions."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def __enter__(self) -> list[logging.LogRecord]:
        logging.getLogger().addHandler(self)
        return self.records

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)


def _with(message: Message, params: object) -> Message:
    return message if params is MISSING else {**message, "params": params}


def _valid(method: str, params: object) -> bool:
    """Whether a request's parameters fit, by the declared type alone."""
    if method == "shutdown":
        return True  # it has none; whatever a client sends instead means nothing
    kind = BUILTIN_REQUESTS.get(method) or (
        METHODS[method].params if method in METHODS else lsp_types.HOT.get(method)
    )
    value = {} if params in (MISSING, None, []) else params
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def test_the_tables_have_all_methods() -> None:
    talk_features = {*FEATURES, *METHODS}
    assert talk_features <= {*REQUESTS, *NOTIFICATIONS}
    assert {"initialize", "shutdown", "nexus/session/delete", "textDocument/codeAction"} <= {*REQUESTS}
    assert {"textDocument/didOpen", "workspace/didChangeWorkspaceFolders"} <= {*NOTIFICATIONS}


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("method", REQUESTS)
def test_a_request_without_an_id_is_ignored_with_one_line(method: str, params: str) -> None:
    for before in ([], [HELLO], [HELLO, SHUTDOWN]):
        case = check(before, _with(tell(method), PARAMS[params]))
        assert (case.codes, case.executed) == ([], [])
        assert [each.getMessage() for each in case.log] == [
            f"ignored {method}: it is a request, and came without an id"
        ]
        assert not any(each.exc_info for each in case.log)


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("method", NOTIFICATIONS)
def test_a_notification_with_an_id_is_answered_and_not_executed(method: str, params: str) -> None:
    for before, code in ([[HELLO], NOT_FOUND], *REFUSED.values()):
        case = check(cast("list[Message]", before), _with(call(5, method), PARAMS[params]))
        assert (case.codes, case.executed, case.log) == ([code], [], [])


@pytest.mark.parametrize("time", REFUSED)
@pytest.mark.parametrize("method", REQUESTS)
def test_a_request_at_the_wrong_time_is_refused(method: str, time: str) -> None:
    before, code = REFUSED[time]
    if method == "initialize" and not before:
        return  # this is its time
    for params in PARAMS.values():
        case = check(before, _with(call(5, method), params))
        assert (case.codes, case.executed, case.log) == ([code], [], [])


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("method", NOTIFICATIONS)
def test_a_notification_at_the_wrong_time_is_dropped(method: str, params: str) -> None:
    for before in ([], [HELLO, SHUTDOWN]):
        case = check(before, _with(tell(method), PARAMS[params]))
        late = ["$/cancelRequest"] if before and method == "$/cancelRequest" else []
        assert case.codes == []
        assert case.executed in ([], late)  # what still runs may be cancelled
        assert not any(each.exc_info for each in case.log)


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("method", [each for each in REQUESTS if each != "initialize"])
def test_a_request_with_parameters_that_do_not_fit_is_refused(method: str, params: str) -> None:
    case = check([HELLO], _with(call(5, method), PARAMS[params]))
    valid = _valid(method, PARAMS[params])
    assert (case.codes, case.log) == ([None if valid else INVALID_PARAMS], [])
    assert case.executed == ([method] if valid else [])


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("method", [each for each in NOTIFICATIONS if each != "exit"])
def test_a_notification_with_parameters_that_do_not_fit_is_ignored(method: str, params: str) -> None:
    case = check([HELLO], _with(tell(method), PARAMS[params]))
    assert case.codes == []
    assert not any(each.exc_info for each in case.log)
    ignored = [each.getMessage().startswith(f"ignored the notification {method}: ") for each in case.log]
    assert (ignored, bool(case.executed)) in [([True], False), ([], True), ([], False)]
    if isinstance(PARAMS[params], str | int) and method in (*FEATURES, "$/cancelRequest", "$/setTrace"):
        assert ignored == [True]


@pytest.mark.parametrize("params", PARAMS)
def test_initialize_is_taken_once(params: str) -> None:
    first = check([], _with(call(5, "initialize"), PARAMS[params]))
    taken = isinstance(PARAMS[params], dict)
    assert first.codes == [None if taken else INVALID_PARAMS]
    assert first.executed == (["initialize"] if taken else [])
    again = check([HELLO], _with(call(5, "initialize"), PARAMS[params]))
    assert (again.codes, again.executed, again.log) == ([INVALID_REQUEST], [], [])
