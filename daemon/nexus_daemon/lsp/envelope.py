"""Decode a body into a JSON-RPC message, and its parameters into the type that a handler takes.

A long body whose method is recognizable at its start is decoded in one pass, including its parameters: a
second pass over two megabytes takes half as long again. The messages of every session are structs
(`lsp_types`); other values of LSP are lsprotocol objects. Importing lsprotocol takes as long as the rest of
the start-up, so it is imported for the first feature that needs it.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from nexus_daemon.lsp import failures, framing
from nexus_daemon.lsp.failures import RpcError
from nexus_daemon.lsp.lsp_types import HOT, DidChangeParams

if TYPE_CHECKING:
    from cattrs import Converter

_TOKENS = frozenset(("workDoneToken", "partialResultToken"))
_URGENT = ("$/cancelRequest", "window/workDoneProgress/cancel", "exit")
LONG_BODY = 64 * 1024  # bytes
LARGEST = (1 << 31) - 1  # `integer` of LSP
_HEAD = 256  # bytes; what comes before the parameters is short
_METHOD = re.compile(rb'"method"\s*:\s*"([A-Za-z/]+)"')

Params = msgspec.Raw | msgspec.UnsetType


class Result(msgspec.Struct, frozen=True):
    """The reply to a request that succeeded."""

    jsonrpc: Literal["2.0"]
    id: framing.Id
    result: Any


class Error(msgspec.Struct, frozen=True):
    """The reply to a request that failed, or to a body that is not a request (`id` None)."""

    jsonrpc: Literal["2.0"]
    id: framing.Id | None
    error: dict[str, Any]


def read_envelope(
    body: framing.Body, types: Mapping[str, Callable[[], Any]]
) -> tuple[framing.Envelope, msgspec.Struct | None]:
    """Decode a message, and its parameters if both can be decoded in one pass.

    `types` maps methods to their parameter types. Raise `RpcError`, whose data is the id to reply to, if the
    body is not a JSON-RPC message.
    """
    try:
        if not body.isascii():
            body.decode()
        decoded = _in_one_pass(body, types)
        message: framing.Envelope = decoded[0] if decoded else framing.decode(body, framing.Envelope)
    except msgspec.ValidationError as error:
        raise RpcError(failures.INVALID_REQUEST, f"Not a JSON-RPC message: {error}", _id_of(body)) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RpcError(failures.PARSE_ERROR, f"Not JSON: {error}") from error
    message_id = None if isinstance(message.id, msgspec.UnsetType) else message.id
    if message.jsonrpc != "2.0":
        raise RpcError(failures.INVALID_REQUEST, 'A message needs `"jsonrpc": "2.0"`.', message_id)
    if message.id is None and not isinstance(message.method, msgspec.UnsetType):
        raise RpcError(failures.INVALID_REQUEST, "The id of a request must be a number or a string.")
    return message, decoded[1] if decoded else None


def is_urgent(body: framing.Body) -> bool:
    """Whether a message may end a request: a reply of the client, a cancellation or `exit`."""
    try:
        message, _ = read_envelope(body, {})
    except RpcError:
        return False
    return isinstance(message.method, msgspec.UnsetType) or message.method in _URGENT


def _in_one_pass(
    body: framing.Body, types: Mapping[str, Callable[[], Any]]
) -> tuple[framing.Envelope, msgspec.Struct] | None:
    """Return the message and its decoded parameters; None if one pass is impossible or slower."""
    may_have_halves = b"\\u" in body  # of surrogate pairs; an envelope of its own would not keep them
    if (len(body) < LONG_BODY and not may_have_halves) or not (
        method_match := _METHOD.search(body, 0, _HEAD)
    ):
        return None
    method = method_match[1].decode()
    kind = types[method]() if method in types else None
    if may_have_halves and method == "textDocument/didChange":
        kind = DidChangeParams
    if not _is_struct(kind):
        return None
    try:
        message = framing.decode(body, _typed(kind), keeps_halves=kind is DidChangeParams)
    except msgspec.DecodeError:
        return None  # decoding in two passes reports the mistake, with the id of the request
    if message.method != method:
        return None  # the name occurred inside the parameters
    return framing.Envelope(jsonrpc=message.jsonrpc, id=message.id, method=method), message.params


@cache
def _typed(kind: type[msgspec.Struct]) -> Any:
    needed: list[tuple[str, Any]] = [("jsonrpc", str), ("method", str), ("params", kind)]
    id_field: tuple[str, Any, Any] = ("id", framing.Id | msgspec.UnsetType, msgspec.UNSET)
    return msgspec.defstruct("Typed", [*needed, id_field], frozen=True)


def _id_of(body: framing.Body) -> framing.Id | None:
    try:
        message_id = framing.decode(body, dict[str, msgspec.Raw]).get("id")
        return None if message_id is None else cast("framing.Id", framing.decode(message_id, framing.Id))
    except msgspec.DecodeError:
        return None


def is_absent(raw: Params) -> bool:
    """Whether a part of a message is missing or null."""
    return isinstance(raw, msgspec.UnsetType) or bytes(memoryview(raw)[:5]) == b"null"


def _is_empty_array(raw: Params) -> bool:
    return not isinstance(raw, msgspec.UnsetType) and bytes(memoryview(raw)[:16]).replace(b" ", b"") == b"[]"


def params_of(raw: Params, kind: Any) -> Any:
    """Decode parameters into `kind`. Raise `RpcError` if they do not match.

    Missing parameters count as an empty object, and null for an optional field counts as absent. The tokens
    that LSP allows in any request (`workDoneToken`, `partialResultToken`) are ignored if `kind` does not have
    them.
    """
    if kind is None:
        return None
    if kind is msgspec.Raw and not isinstance(raw, msgspec.UnsetType):
        return raw  # decoding the envelope has checked that it is JSON
    if is_absent(raw):
        if kind is Any:
            return None
        raw = msgspec.Raw(b"{}")  # so that the message names what is missing
    elif kind is not Any and _is_empty_array(raw):
        raw = msgspec.Raw(b"{}")  # what a Lua client makes of an empty table
    try:
        return structure(cast("framing.Json", raw), kind)
    except msgspec.DecodeError as error:
        if isinstance(error, msgspec.ValidationError) and _is_struct(kind):
            struct = cast(type[msgspec.Struct], kind)
            cleaned = cast("framing.Json", raw)
            with suppress(msgspec.DecodeError, RecursionError):
                cleaned = _without_nulls(_without_tokens(cleaned, struct), struct)
                cleaned = msgspec.json.encode(_with_integers(framing.decode(cleaned, Any)))
            try:
                return framing.decode(cleaned, struct)
            except msgspec.DecodeError as fault:
                error = fault  # what is wrong besides nulls
        from nexus_daemon.lsp.invalid_params import describe  # rarely needed

        message = f"Invalid params: {describe(error, kind)}"
        raise RpcError(failures.INVALID_PARAMS, message) from error


def document_of(raw: Params | msgspec.Struct) -> str | None:
    """Return the URI of the document that parameters name, even if the rest of the parameters is not
    valid.
    """
    with suppress(msgspec.DecodeError, KeyError, TypeError):
        document = framing.decode(cast("framing.Json", raw), dict[str, Any])["textDocument"]
        return uri if isinstance(uri := document["uri"], str) else None
    return None


def _without_tokens(raw: framing.Json, struct: type[msgspec.Struct]) -> bytes:
    members = framing.decode(raw, dict[str, msgspec.Raw])
    ignored = _TOKENS - {field.encode_name for field in msgspec.structs.fields(struct)}
    return msgspec.json.encode({name: value for name, value in members.items() if name not in ignored})


def _without_nulls(raw: framing.Json, kind: type[msgspec.Struct]) -> bytes:
    """Remove nulls of fields that have a default and do not take null, also in nested structs."""
    members = framing.decode(raw, dict[str, msgspec.Raw])
    for field in msgspec.structs.fields(kind):
        name, inner = field.encode_name, _inner(field.type)
        if name not in members:
            continue
        if not is_absent(members[name]):
            if inner is not None:
                members[name] = msgspec.Raw(_without_nulls(members[name], inner))
        elif not field.required and field.type is not Any and NoneType not in get_args(field.type):
            del members[name]
    return msgspec.json.encode(members)


def _with_integers(value: Any) -> Any:
    """The value with integers for 5.0 and for 1.7976931348623157e+308, which is an editor's end of a line."""
    if isinstance(value, dict):
        return {name: _with_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_integers(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(max(-LARGEST, min(value, LARGEST)))
    return value


def _inner(kind: Any) -> type[msgspec.Struct] | None:
    """Return the struct of a field's type, which may allow null. None for any other type."""
    is_union = get_origin(kind) in (Union, UnionType)
    members = [member for member in (get_args(kind) if is_union else (kind,)) if member is not NoneType]
    return members[0] if len(members) == 1 and _is_struct(members[0]) else None


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


# ---------------------------------------------------------------- standard LSP values


def params_type(method: str) -> Any:
    """Return the type of a method's parameters: None if it has no parameters, `Any` for an unknown method."""
    if method in HOT:
        return HOT[method]
    from lsprotocol.types import METHOD_TO_TYPES

    return METHOD_TO_TYPES[method][2] if method in METHOD_TO_TYPES else Any


def structure(raw: framing.Json, kind: Any) -> Any:
    """Decode JSON into `kind`: an lsprotocol class, a struct, or anything that msgspec knows.

    Raise msgspec.ValidationError for JSON that does not match `kind`.
    """
    if not _is_lsprotocol(kind):
        return framing.decode(raw, kind, keeps_halves=kind is DidChangeParams)
    value = framing.decode(raw, dict[str, Any])
    try:
        return converter().structure(value, kind)
    except Exception as error:
        # the hooks of cattrs raise KeyError, TypeError or a group of errors
        raise msgspec.ValidationError(f"{_reason(error)} ({kind.__name__})") from error


def unstructure(value: Any) -> Any:
    """Return `value` with every lsprotocol object in it, at any depth of lists and dicts, as JSON values."""
    kind = type(value)
    if kind is list or kind is tuple:
        return [unstructure(item) for item in value]
    if kind is dict:
        return {key: unstructure(item) for key, item in value.items()}
    return converter().unstructure(value) if _is_lsprotocol(kind) else value


def _is_lsprotocol(kind: Any) -> bool:
    return hasattr(kind, "__attrs_attrs__")


@cache
def converter() -> "Converter":
    """Return the process's cattrs converter for lsprotocol."""
    from lsprotocol import converters

    return converters.get_converter()


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = f"missing {error}" if isinstance(error, KeyError) else str(error)
    notes = [note for note in getattr(error, "__notes__", ()) if "attribute" in note]
    return f"{text}: {notes[0].split('@')[-1].strip()}" if notes else text
