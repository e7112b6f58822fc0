"""Unknown fields and wrong types in parameters of every `nexus/*` method are errors that name the field."""

import json
import types
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec
import pytest
from inline_snapshot import snapshot

from nexus_daemon.api.methods import METHODS
from nexus_daemon.lsp.envelope import params_of
from nexus_daemon.lsp.failures import INVALID_PARAMS, RpcError

FOLDER = {"workspaceFolder": "file:///a"}


def check(method: str, params: object) -> str:
    with pytest.raises(RpcError) as error:
        params_of(msgspec.Raw(json.dumps(params).encode()), METHODS[method].params)
    assert error.value.code == INVALID_PARAMS
    return error.value.message.removeprefix("Invalid params: ")


def test_what_is_wrong_is_named() -> None:
    assemble = "nexus/context/assemble"
    cases = [
        check(assemble, {**FOLDER, "options": {"paramters": {}}}),
        check(assemble, {**FOLDER, "attachments": [{"uri": "a"}, {"uri": "b", "txt": ""}]}),
        check(assemble, {**FOLDER, "message": {"role": "user", "content": "x", "tool_calls": []}}),
        check("nexus/context/preview", {**FOLDER, "agent": None, "sandbox": True}),
        check("nexus/tokens/count", {"workspaceFolder": None}),
        check(assemble, {**FOLDER, "options": {"memoryTools": "yes"}}),
        check("nexus/context/usage", {**FOLDER, "nextTurn": {"options": {"Model": "gpt-4o"}}}),
        check(
            "nexus/session/append",
            {
                **FOLDER,
                "messages": [
                    {"role": "assistant", "toolCalls": [{"id": "1", "name": "f", "args": {}}]},
                ],
            },
        ),
        check("nexus/session/append", {**FOLDER, "messages": [], "providerUsage": {"input_tokens": 1}}),
        check("nexus/status", {"verbose": True}),
        check("nexus/session/search", {"query": "x", "limit": "20"}),
    ]
    assert cases == snapshot(
        [
            "Unknown field `options.paramters`: did you mean `parameters`?",
            "Unknown field `attachments[1].txt`: did you mean `text`?",
            "Unknown field `message.tool_calls`: did you mean `toolCalls`?",
            "Unknown field `sandbox`: known are `workspaceFolder`, `agent`, `assistant`, `viewAs`.",
            "Unknown field `workspaceFolder`: known are `texts`, `uris`, `model`, `encoding`.",
            "Expected `bool`, got `str` - at `$.options.memoryTools`",
            "Unknown field `nextTurn.options.Model`: did you mean `model`?",
            "Unknown field `messages[0].toolCalls[0].args`: known are `id`, `name`, `arguments`.",
            "Unknown field `providerUsage.input_tokens`: did you mean `inputTokens`?",
            "Unknown field `verbose`: there are no fields.",
            "Expected `int`, got `str` - at `$.limit`",
        ]
    )


@pytest.mark.parametrize("method", METHODS)
def test_every_object_refuses_fields_that_it_does_not_have(method: str) -> None:
    for place in _objects(METHODS[method].params):
        message = check(method, place.params({"noSuchField": 1}))
        assert message.startswith(f"Unknown field `{place.path}noSuchField`: "), message


@pytest.mark.parametrize("method", METHODS)
def test_every_field_refuses_another_type(method: str) -> None:
    for place in _objects(METHODS[method].params):
        for field in msgspec.structs.fields(place.kind):
            wrong = _wrong(field.type)
            if wrong is not None:
                message = check(method, place.params({field.encode_name: wrong}))
                assert message.endswith(f" - at `$.{place.path}{field.encode_name}`"), message


class _Object(NamedTuple):
    """An object somewhere in a method's parameters; `params` puts fields into it."""

    path: str
    kind: type[msgspec.Struct]
    params: Callable[[dict[str, Any]], dict[str, Any]]


def _objects(kind: type[msgspec.Struct]) -> Iterator[_Object]:
    required = {one.encode_name: _example(one.type) for one in msgspec.structs.fields(kind) if one.required}
    yield _Object("", kind, lambda fields: {**required, **fields})
    for field in msgspec.structs.fields(kind):
        for part in _parts(field.type):
            items = get_origin(part) in (list, tuple)
            inner = get_args(part)[0] if items else part
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                for one in _objects(inner):
                    yield _nested(field.encode_name, one, required, items=items)


def _nested(name: str, inner: _Object, required: dict[str, Any], *, items: bool) -> _Object:
    def params(fields: dict[str, Any]) -> dict[str, Any]:
        value = inner.params(fields)
        return {**required, name: [value] if items else value}

    return _Object(f"{name}[0]." * items + f"{name}." * (not items) + inner.path, inner.kind, params)


def _parts(kind: Any) -> tuple[Any, ...]:
    """The types of a union, else the type itself."""
    if hasattr(kind, "__metadata__"):
        return _parts(get_args(kind)[0])
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _example(kind: Any) -> Any:
    first = _parts(kind)[0]
    if first is str:
        return "x"
    origin = get_origin(first)
    if origin is Literal:
        return get_args(first)[0]
    return {list: [], tuple: [], dict: {}}.get(origin, 1)


def _wrong(kind: Any) -> Any:
    """A value that no type of the field takes; None: it takes anything."""
    taken = {get_origin(one) or one for one in _parts(kind)}
    if Any in taken:
        return None
    if list in taken or tuple in taken:
        return True
    return next((value for value in (True, [1], 1) if type(value) not in taken), None)


@pytest.mark.parametrize("method", METHODS)
def test_the_tokens_of_lsp_are_no_unknown_fields(method: str) -> None:
    params = METHODS[method].params
    fields = msgspec.structs.fields(params)
    tokens = {"workDoneToken": 1, "partialResultToken": "p"}
    for field in fields:  # a request that streams its answer takes one
        tokens.pop(field.encode_name, None)
    required = {field.encode_name: _example(field.type) for field in fields if field.required}
    given = msgspec.Raw(json.dumps(required | tokens).encode())
    assert params_of(given, params) == params_of(msgspec.Raw(json.dumps(required).encode()), params)
