"""Numbers of any size in a request: the reply is a result or says what is wrong, and is no internal error."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nexus_daemon.api.methods import METHODS
from protocol_docs.examples import load
from support.client import ReplyError
from support.editor import Editor, editor_in

HOME = "/home/ana/company/backend/auth-service"
LARGE = (2**63 - 1, 2**63, -(2**63) - 1, 2**70)
ABSENT: dict[str, Any] = {
    "message": {"role": "user", "content": "Hello"},
    "providerUsage": {"inputTokens": 1, "outputTokens": 1},
}
"""What the examples lack."""
SLOW = ("nexus/debug/trace", "nexus/workspace/init")


def check(editor: Editor, method: str, params: dict[str, Any]) -> str:
    """The code of the error reply; an empty text if there is none."""
    try:
        editor.request(method, params)
    except ReplyError as error:
        return str(error.error["data"]["code"])
    return ""


def places(types: Any) -> Iterator[tuple[str, ...]]:
    """Where parameters of these types may have a number."""
    for field in msgspec.structs.fields(types):
        options = getattr(field.type, "__args__", (field.type,))
        if int in options or float in options:
            yield (field.encode_name,)
        for inner in options:
            if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
                yield from ((field.encode_name, *place) for place in places(inner))


def with_number(params: Any, place: tuple[str, ...], number: int) -> Any:
    """The parameters with a number at a place; in a list, in its first item."""
    if isinstance(params, list):
        return [with_number(params[0], place, number), *params[1:]]
    name, *rest = place
    if not rest:
        return {**params, name: number}
    inner = params.get(name)
    if not isinstance(inner, (dict, list)):
        inner = ABSENT.get(name, {})
    return {**params, name: with_number(inner, tuple(rest), number)}


@pytest.mark.parametrize("number", LARGE)
def test_a_number_of_any_size_is_answered(tmp_path: Path, number: int) -> None:
    root = tmp_path / "work"
    root.mkdir()
    examples = msgspec.json.encode(load()["requests"]).decode()
    requests = msgspec.json.decode(examples.replace(HOME, str(root)))
    codes = {}
    with editor_in(tmp_path / "home", root) as editor:
        editor.ask("session/append", root, messages=[{"role": "user", "content": "Hello"}])
        for method, example in requests.items():
            for place in places(METHODS[method].params) if method not in SLOW else ():
                params = with_number(example["params"], place, number)
                codes[method, *place] = check(editor, method, params)
    assert {place for place, code in codes.items() if code == "internal-error"} == set()
    assert len(codes) > 15
