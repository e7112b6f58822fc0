"""Modules that are imported on first use: a reply or the first diagnostics would wait for them.

1. Modules of the library and of other distributions are attributes of this module: `lazy.git.read(...)`.
2. Modules of the daemon are attributes of their package, whose `__init__` calls `submodules`:
   `agents.registry.AgentRegistry(...)`.
3. Type checkers see plain imports, so that go-to-definition works.
"""

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import watchfiles as watchfiles

    from nexus_context import assembly as assembly
    from nexus_context.agents import directory_snapshots as directory_snapshots
    from nexus_context.assembly import git as git
    from nexus_context.memory import knowledge as knowledge
    from nexus_context.memory import node_messages as node_messages

_MODULES = {
    "assembly": "nexus_context.assembly",  # 100 ms
    "directory_snapshots": "nexus_context.agents.directory_snapshots",  # most folders have no agents
    "git": "nexus_context.assembly.git",  # with all of `assembly`
    "knowledge": "nexus_context.memory.knowledge",  # most folders have no knowledge base
    "node_messages": "nexus_context.memory.node_messages",  # 30 ms; agents rarely write to each other
    "watchfiles": "watchfiles",  # 60 ms
}


def submodules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return a `__getattr__` for a package: it imports one of these submodules when it is first used."""

    def import_submodule(name: str) -> ModuleType:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return importlib.import_module(f"{package}.{name}")

    return import_submodule


if not TYPE_CHECKING:

    def __getattr__(name: str) -> ModuleType:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return importlib.import_module(_MODULES[name])
