"""The assembler as one object for programs: sources in, contexts out, with a cache and its statistics.

Reading order: sources (what a program may replace, and our own), facade.
"""

from nexus_context.assembler.facade import (
    CompactionCheck,
    ContextAssembler,
    ContextMetadata,
    ModelContext,
    create_context_assembler,
)
from nexus_context.assembler.sources import (
    ActiveSkill,
    FolderSkills,
    LedgerStore,
    SessionStore,
    SkillProvider,
    ToolExecutor,
    ToolList,
)

__all__ = [
    "ActiveSkill",
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
