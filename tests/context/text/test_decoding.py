"""Typed values from JSON, also where several threads meet at a type that nobody has used yet."""

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from nexus_context.text.decoding import convert_to, decode_as

MEET = """
import sys, threading
from nexus_context.text.decoding import convert_to, decode_as
import msgspec

sys.setswitchinterval(1e-6)
for number in range(60):
    fields = [(f"field{index}", "int | str | None", None) for index in range(12)]  # texts take long to learn
    module = {"__module__": "builtins"}
    structs = [msgspec.defstruct("Struct", fields, namespace=module)]
    for _ in range(30):
        inner = ("inner", structs[-1])
        structs.append(msgspec.defstruct("Struct", [inner, *fields], namespace=module))
    data = b'{"inner":' * 30 + b"{}" + b"}" * 30
    met = threading.Barrier(4)
    found = []

    def read(kind, value):
        met.wait()
        found.append(decode_as(data, kind) if value is None else convert_to(value, kind))

    value = msgspec.json.decode(data)
    jobs = [(structs[-1], None), (structs[-1], value), (structs[-1], None), (structs[-2], value["inner"])]
    threads = [threading.Thread(target=read, args=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
"""


def test_threads_may_meet_at_a_new_type() -> None:
    ended = subprocess.run([sys.executable, "-c", MEET], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


class Point(msgspec.Struct):
    across: int
    down: int = 0


@pytest.mark.parametrize(
    ("data", "kind", "expected"),
    [(b'{"across":1}', Point, Point(1)), ("[1,2]", list[int], [1, 2]), (b"{}", dict[str, Any], {})],
)
def test_a_value_has_the_type_that_was_asked_for(data: Any, kind: Any, expected: object) -> None:
    assert decode_as(data, kind) == expected
    assert convert_to(msgspec.json.decode(data), kind) == expected


def test_another_value_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="across"):
        decode_as(b'{"across":"x"}', Point)
    with pytest.raises(msgspec.ValidationError, match="across"):
        convert_to({"across": "x"}, Point)
