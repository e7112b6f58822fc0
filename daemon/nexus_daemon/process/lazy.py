"""Import modules on first use, so that a reply or the first diagnostics do not wait for them.

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

    from nexus_context.agents import directory_snapshots as directory_snapshots
    from nexus_context.agents import spawn as spawn
    from nexus_context.agents import tool_calls as tool_calls
    from nexus_context.conversation import sent_requests as sent_requests
    from nexus_context.conversation.compaction import extractive as extractive
    from nexus_context.conversation.compaction import run
    from nexus_context.conversation.compaction import summarizer as summarizer
    from nexus_context.ledger import opening as opening
    from nexus_context.memory import bus as bus
    from nexus_context.memory import events as events
    from nexus_context.memory import knowledge as knowledge
    from nexus_context.memory import levels as levels
    from nexus_context.memory import node_messages as node_messages
    from nexus_context.memory import queries, sources
    from nexus_context.turn import assembly as assembly
    from nexus_context.turn import endpoint as endpoint
    from nexus_context.turn import git as git
    from nexus_context.turn import manager as manager
    from nexus_context.turn import models as models

    compaction_run, memory_queries, memory_sources = run, queries, sources

_MODULES = {
    "assembly": "nexus_context.turn.assembly",  # 100 ms
    "bus": "nexus_context.memory.bus",  # with `events`
    "compaction_run": "nexus_context.conversation.compaction.run",  # 50 ms; compactions are rare
    "directory_snapshots": "nexus_context.agents.directory_snapshots",  # most folders have no agents
    "endpoint": "nexus_context.turn.endpoint",  # with `assembly`
    "events": "nexus_context.memory.events",  # 50 ms: with `conversation` and the ledger's records
    "extractive": "nexus_context.conversation.compaction.extractive",  # with `compaction_run`
    "git": "nexus_context.turn.git",  # with `assembly`
    "knowledge": "nexus_context.memory.knowledge",  # most folders have no knowledge base
    "levels": "nexus_context.memory.levels",  # 50 ms
    "manager": "nexus_context.turn.manager",  # 20 ms
    "models": "nexus_context.turn.models",  # with `assembly`
    "sent_requests": "nexus_context.conversation.sent_requests",  # with the manager
    "memory_queries": "nexus_context.memory.queries",  # with `levels`
    "memory_sources": "nexus_context.memory.sources",  # with `levels`
    "node_messages": "nexus_context.memory.node_messages",  # 30 ms; agents rarely write to each other
    "opening": "nexus_context.ledger.opening",  # 80 ms: SQLite
    "spawn": "nexus_context.agents.spawn",  # most folders have no agents
    "summarizer": "nexus_context.conversation.compaction.summarizer",  # with `compaction_run`
    "tool_calls": "nexus_context.agents.tool_calls",  # most models start no agents
    "watchfiles": "watchfiles",  # 60 ms
}


def submodules(package: str, *names: str) -> Callable[[str], ModuleType]:
    """Return a `__getattr__` for a package, which imports each of these submodules when it is first used."""

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
