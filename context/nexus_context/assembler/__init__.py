"""Offers the assembler as one object for programs: it reads from their sources, returns contexts, caches them
and counts cache hits.

Reading order: sources (what a program may replace, and our own), records (what a session store has), facade.
"""

from nexus_context.assembler.facade import (
    AsyncContextAssembler,
    CompactionCheck,
    ContextAssembler,
    ContextMetadata,
    ModelContext,
    create_context_assembler,
)
from nexus_context.assembler.sources import (
    ActiveSkill,
    AsyncSessionStore,
    FolderSkills,
    LedgerStore,
    SessionStore,
    SkillProvider,
    ToolExecutor,
    ToolList,
)

__all__ = [
    "ActiveSkill",
    "AsyncContextAssembler",
    "AsyncSessionStore",
    "CompactionCheck",
    "ContextAssembler",
    "ContextMetadata",
    "FolderSkills",
    "LedgerStore",
    "ModelContext",
    "SessionStore",
    "SkillProvider",
    "ToolExecutor",
    "ToolList",
    "create_context_assembler",
]
