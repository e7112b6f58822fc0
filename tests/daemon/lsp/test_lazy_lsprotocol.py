"""lsprotocol's classes, finished lazily, are what they are when imported the plain way."""

import json
import subprocess
import sys

import pytest

# Prints one line per class: its fields, and what two samples of it look like in every way we use them.
DUMP = """
import enum, json, re, sys, typing
if sys.argv[1] == "lazy":
    import nexus_daemon
from lsprotocol import types
if sys.argv[1] == "lazy":
    marked = vars(types.Hover)["__attrs_attrs__"]
    assert type(marked).__name__ == "_Fields", "it was finished at import"
import attrs
from lsprotocol import converters

def sample(kind, full, depth=0):
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return args[0]
    if origin is typing.Union:
        options = [a for a in args if a is not type(None)]
        if type(None) in args and (not full or depth > 3):
            return None
        return sample(options[0], full, depth)
    if origin is tuple:
        return tuple(sample(a, full, depth + 1) for a in args)
    if origin is not None and issubclass(origin, typing.Sequence):
        return [] if depth > 3 else [sample(args[0], full, depth + 1)]
    if origin is not None:
        return {}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return next(iter(kind))
    if kind in (int, float, str, bool):
        return {int: 7, float: 1.5, str: "s", bool: True}[kind]
    if isinstance(kind, type) and attrs.has(kind):
        return make(kind, full, depth + 1)
    return None

def make(cls, full, depth=0):
    fields = attrs.fields(cls)
    given = {f.name: sample(f.type, full, depth) for f in fields if full or f.default is attrs.NOTHING}
    return cls(**{k: v for k, v in given.items() if v is not None or not full})

def attempt(f, *a):
    try:
        return f(*a)
    except Exception as error:
        return f"{type(error).__name__}"

converter = converters.get_converter()
for name, cls in sorted(types.ALL_TYPES_MAP.items()):
    if not (isinstance(cls, type) and attrs.has(cls)):
        continue
    row = [name]
    row += [[f.name, repr(f.type), repr(f.default), repr(f.validator), f.kw_only] for f in attrs.fields(cls)]
    row += [cls.__match_args__, cls.__hash__ is None, cls.__doc__]
    for full in (False, True):
        value = attempt(make, cls, full)
        if isinstance(value, str):
            row.append(value)
            continue
        plain = attempt(converter.unstructure, value)
        again = attempt(converter.structure, plain, cls)
        other = make(cls, full)
        row += [repr(value), value == other, value != other, value == 1, json.dumps(plain), repr(again)]
    print(re.sub(r" at 0x[0-9a-f]+", "", json.dumps(row)))
try:
    types.Position(line=-1, character=0)
except ValueError as error:
    print(error)
position = types.Position(1, 2)
try:
    position.line = "x"
except ValueError as error:
    print(error)
print(position < types.Position(2, 0), sorted([types.Position(2, 1), position]))
"""


def dump(mode: str, script: str = DUMP) -> list[str]:
    done = subprocess.run([sys.executable, "-c", script, mode], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_every_class_is_the_same() -> None:
    # in parallel: each takes seconds
    plain = subprocess.Popen(
        [sys.executable, "-c", "import lsprotocol.types\n" + DUMP, "eager"], stdout=subprocess.PIPE, text=True
    )
    lazy = dump("lazy")
    eager = plain.communicate()[0].splitlines()
    assert plain.returncode == 0
    assert len(lazy) == 554 + 3
    assert sum(isinstance(json.loads(row)[-1], str) for row in lazy[:554]) == 554
    for ours, theirs in zip(lazy, eager, strict=True):
        assert ours == theirs


THREADS = """
import sys, threading
import nexus_daemon
from lsprotocol import types
sys.setswitchinterval(1e-6)
wrong, gate = [], threading.Barrier(8)
def work():
    gate.wait()
    for name in ("CompletionItem", "Hover", "CodeAction", "Location", "Command"):
        cls = getattr(types, name)
        keys = {"CompletionItem": {"label": "x"}, "Hover": {"contents": "x"}, "CodeAction": {"title": "x"},
                "Location": {"uri": "x", "range": None}, "Command": {"title": "x", "command": "y"}}[name]
        try:
            one = cls(**keys)
            if one != cls(**keys) or name not in repr(one) and name != "Location":
                wrong.append(name)
            if any(isinstance(field.type, str) for field in cls.__attrs_attrs__):
                wrong.append(name + " unresolved")
        except Exception as error:
            wrong.append(f"{name} {error!r}")
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(wrong)
"""


def test_threads_may_meet_at_one_class() -> None:
    assert [dump("", THREADS) for _ in range(3)] == [["[]"]] * 3


SURPRISE = """
import logging, sys
logging.basicConfig(format="%(message)s", stream=sys.stdout)
from nexus_daemon.lsp import lazy_lsprotocol
lazy_lsprotocol._surprise = lambda module, marked: "a test says so"
from lsprotocol import converters, types
import attrs
print(attrs.define.__module__, isinstance(vars(types.Hover)["__attrs_attrs__"], tuple))
print(converters.get_converter().unstructure(types.Hover(contents="x")))
"""

SUBCLASS = """
import nexus_daemon
from lsprotocol import types
class Mine(types.Position):
    def __init__(self, line):
        super().__init__(line, 5)
print(repr(Mine(3)), type(Mine(4)).__name__, Mine(3) == types.Position(3, 5))
import copy, inspect
print(copy.deepcopy(types.Location("u", types.Range(types.Position(1, 2), types.Position(3, 4)))))
print(inspect.signature(types.ShowMessageParams))
"""


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        (
            SURPRISE,
            [
                "lsprotocol is not as expected (a test says so): importing it the slow way",
                "attr._next_gen True",
                "{'contents': 'x'}",
            ],
        ),
        (
            SUBCLASS,
            ["3:5 Mine True", "u:1:2-3:4", "(type: lsprotocol.types.MessageType, message: str) -> None"],
        ),
    ],
)
def test_what_else_may_happen(script: str, lines: list[str]) -> None:
    assert dump("", script) == lines
