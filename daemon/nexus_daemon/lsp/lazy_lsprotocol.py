"""Finishes lsprotocol's attrs classes on first use instead of at import, for a fast start-up.

Importing `lsprotocol.types` builds 554 attrs classes, which takes two thirds of the time to import pygls; one
session uses a few dozen of them. How it works:

1. `install` puts a finder in front of `sys.meta_path`; nothing happens until lsprotocol is imported.
2. While `lsprotocol.types` runs, `attrs.define` only marks that module's classes.
3. The first call of a class, or the first access to its `__attrs_attrs__`, finishes it in place:
   `attrs.define` with `slots=False` (so the class keeps its identity) and with its field types resolved.
4. If the module is not as expected, it runs again the plain way: slower, never wrong.
"""

import gc
import logging
import sys
import threading
import typing
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_TYPES = "lsprotocol.types"
_HOOKS = "lsprotocol._hooks"
_lock = threading.RLock()
_names: dict[str, Any] = {}
logger = logging.getLogger(__name__)


def install() -> None:
    """Make the next import of `lsprotocol.types` lazy; no effect once it is imported."""
    if _TYPES not in sys.modules and not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finds the real module, with a loader that runs it lazily."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in (_TYPES, _HOOKS):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = typing.cast("Any", _Loader(spec.loader))
        return spec


class _Loader:
    def __init__(self, real: Any) -> None:
        self._real = real

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return typing.cast("ModuleType | None", self._real.create_module(spec))

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        if module.__name__ == _TYPES:
            _run_types(self._real, module)
            return
        self._real.exec_module(module)
        if _names:
            # get_converter would otherwise finish every class to resolve its types, which step 3 has done
            vars(module)["_resolved_forward_references"] = True


def _run_types(loader: Any, module: ModuleType) -> None:
    before = dict(vars(module))
    collecting = gc.isenabled()
    gc.disable()
    try:
        marked = _run_marked(loader, module)
        reason = _surprise(module, marked)
        if reason is None:
            return
    finally:
        if collecting:
            # the new objects stay for good: exclude them from collections
            gc.freeze()
            gc.enable()
    logger.warning("lsprotocol is not as expected (%s): importing it the slow way", reason)
    _names.clear()
    vars(module).clear()
    vars(module).update(before)
    loader.exec_module(module)


def _run_marked(loader: Any, module: ModuleType) -> list[type]:
    import attrs

    real = attrs.define
    marked: list[type] = []

    def define(maybe_cls: type | None = None, **options: Any) -> Any:
        # another thread may be defining its own classes
        if maybe_cls is None or options or maybe_cls.__module__ != _TYPES:
            return real(maybe_cls, **options)
        marked.append(maybe_cls)
        setattr(maybe_cls, "__attrs_attrs__", _FIELDS)  # noqa: B010 - mypy knows no such attribute
        setattr(maybe_cls, "__init__", _INIT)  # noqa: B010
        return maybe_cls

    vars(attrs)["define"] = define  # pyright: ignore[reportIndexIssue] - a module's is a dict
    try:
        loader.exec_module(module)
    finally:
        vars(attrs)["define"] = real  # pyright: ignore[reportIndexIssue]
    return marked


def _surprise(module: ModuleType, marked: list[type]) -> str | None:
    """Return why `module` cannot be finished lazily, or None when it can."""
    names = getattr(module, "ALL_TYPES_MAP", None)
    if not isinstance(names, dict) or not marked:
        return "no ALL_TYPES_MAP or no attrs classes"
    if any(cls.__bases__ != (object,) or names.get(cls.__name__) is not cls for cls in marked):
        return "a class has a base or another name"
    _names.update(names)
    try:
        probe = module.Position(line=1, character=2)
        good = repr(probe) == "1:2" and probe == module.Position(1, 2) and probe < module.Position(2, 0)
    except (AttributeError, NameError, TypeError, ValueError) as error:
        return f"Position: {error}"
    return None if good else "Position behaves differently"


class _Fields:
    """Placeholder for `__attrs_attrs__` of an unfinished class."""

    def __get__(self, instance: object, owner: type) -> Any:
        _finish(_holder(owner, "__attrs_attrs__", self))
        return owner.__attrs_attrs__  # type: ignore[attr-defined]


class _Init:
    """Placeholder for `__init__` of an unfinished class."""

    def __get__(self, instance: object, owner: type) -> Any:
        # `inspect.signature` of Python 3.13 binds it to the class itself
        holder = _holder(instance if isinstance(instance, type) else owner, "__init__", self)
        _finish(holder)
        return vars(holder)["__init__"].__get__(instance, owner)


_FIELDS = _Fields()
_INIT = _Init()


def _holder(owner: type, name: str, mark: object) -> type:
    """Return the class of the hierarchy that has `mark`; `owner` if another thread just removed the mark."""
    return next((cls for cls in owner.__mro__ if vars(cls).get(name) is mark), owner)


def _finish(cls: type) -> None:
    import attrs

    def resolve(_: type, fields: list[Any]) -> list[Any]:
        # resolve before the fields are visible, so that no thread sees an unresolved one
        hints = typing.get_type_hints(cls, globalns=_names, localns={})
        return [field.evolve(type=hints[field.name]) for field in fields]

    with _lock:
        if vars(cls).get("__attrs_attrs__") is not _FIELDS:
            return
        # attrs publishes __attrs_attrs__ first and __init__ after __eq__ and __repr__
        attrs.define(cls, slots=False, init=True, field_transformer=resolve)
        setattr(cls, "__attrs_types_resolved__", cls)  # noqa: B010
