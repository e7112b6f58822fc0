"""A body → a JSON-RPC message, its parameters → the type that a handler takes."""

from typing import Any, Literal, cast

import msgspec

from nexus_daemon import wire
from nexus_daemon.connection import failures, standard
from nexus_daemon.connection.failures import RpcError

Params = msgspec.Raw | msgspec.UnsetType


class Result(msgspec.Struct, frozen=True):
    """The reply to a request that went well."""

    jsonrpc: Literal["2.0"]
    id: wire.Id
    result: Any


class Error(msgspec.Struct, frozen=True):
    """The reply to a request that failed, or to what is no request (`id` None)."""

    jsonrpc: Literal["2.0"]
    id: wire.Id | None
    error: dict[str, Any]


def read_envelope(body: bytes) -> wire.Envelope:
    """Decode a message; raise `RpcError`, whose data is the id to answer with."""
    try:
        if not body.isascii():
            body.decode()
        message: wire.Envelope = wire.decode(body, wire.Envelope)
    except msgspec.ValidationError as error:
        raise RpcError(failures.INVALID_REQUEST, f"Not a JSON-RPC message: {error}", _id_of(body)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RpcError(failures.PARSE_ERROR, f"Not JSON: {error}") from error
    known = None if isinstance(message.id, msgspec.UnsetType) else message.id
    if message.jsonrpc != "2.0":
        raise RpcError(failures.INVALID_REQUEST, 'A message needs `"jsonrpc": "2.0"`.', known)
    if message.id is None and not isinstance(message.method, msgspec.UnsetType):
        raise RpcError(failures.INVALID_REQUEST, "The id of a request must be a number or a string.")
    return message


def _id_of(body: bytes) -> wire.Id | None:
    try:
        found = wire.decode(body, dict[str, msgspec.Raw]).get("id")
        return None if found is None else cast("wire.Id", wire.decode(found, wire.Id))
    except msgspec.DecodeError:
        return None


def is_absent(raw: Params) -> bool:
    """Return whether a part is missing or null."""
    return isinstance(raw, msgspec.UnsetType) or bytes(memoryview(raw)[:5]) == b"null"


def params_of(raw: Params, kind: Any) -> Any:
    """Decode parameters into `kind`; missing ones count as an empty object. Raises `RpcError`."""
    if kind is None:
        return None
    if kind is msgspec.Raw and not isinstance(raw, msgspec.UnsetType):
        return raw  # the envelope has seen to it that it is JSON
    if is_absent(raw):
        if kind is Any:
            return None
        raw = msgspec.Raw(b"{}")  # so that the message names what is missing
    try:
        return standard.structure(cast("wire.Json", raw), kind)
    except msgspec.DecodeError as error:
        raise RpcError(failures.INVALID_PARAMS, f"Invalid params: {error}") from error
