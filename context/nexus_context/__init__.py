"""Tells what an AI assistant sees in a folder, what it costs and why: the library, without an editor.

The names below are the public ones. Each is imported on its first use: `import nexus_context` costs nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nexus_context.agents import Agent, AgentPool
    from nexus_context.assembler import (
        ActiveSkill,
        AsyncContextAssembler,
        AsyncSessionStore,
        ContextAssembler,
        FolderSkills,
        LedgerStore,
        ModelContext,
        SessionStore,
        SkillProvider,
        ToolExecutor,
        ToolList,
        create_context_assembler,
    )
    from nexus_context.assistants.importing import Transcript, read_transcript
    from nexus_context.config.frames import ConfigError, format_frame
    from nexus_context.config.schema import Config
    from nexus_context.conversation.agent_result import ProviderUsage
    from nexus_context.conversation.budget import ContextConfig, TokenBudget, TokenUsage, UsageRow
    from nexus_context.conversation.compaction.detection import CompactionSettings
    from nexus_context.conversation.compaction.receipt import CompactionError, Receipt
    from nexus_context.conversation.compaction.run import CompactionResult, select_messages_for_compaction
    from nexus_context.conversation.compaction.summarizer import (
        Written,
        build_summarize_prompt,
        first_summary,
    )
    from nexus_context.conversation.message import Message, ToolCall
    from nexus_context.conversation.summary import create_summary_message
    from nexus_context.conversation.window import Budget
    from nexus_context.errors import ContextOverflowError, NexusError, Problem, RequestError, Severity, Span
    from nexus_context.folder.init import InitPlan, plan_init
    from nexus_context.folder.layers.walk import global_directory, user_home
    from nexus_context.folder.loading import load
    from nexus_context.folder.prompt.environment import Environment, detect
    from nexus_context.folder.prompt.render import Fragment, Prompt
    from nexus_context.folder.request_prompt import prompt_for
    from nexus_context.folder.snapshot import LoadInputs, Snapshot
    from nexus_context.ledger import open_ledger
    from nexus_context.ledger.records import Counted, DirectMessage, NewTurn
    from nexus_context.loader import (
        ContextLayer,
        ContextLoader,
        ContextSources,
        FilePromptSource,
        LoadedContext,
        LoadedPrompt,
        PromptLoader,
        PromptSource,
        get_system_info,
    )
    from nexus_context.memory.bus import EventBus
    from nexus_context.memory.events import Event
    from nexus_context.memory.item import MemoryItem
    from nexus_context.memory.knowledge import (
        Embedder,
        EmbeddingError,
        KnowledgeIndex,
        KnowledgePath,
        Passage,
        Vectors,
    )
    from nexus_context.memory.levels import Levels, MemorySettings
    from nexus_context.memory.sources import DirectSource, EventSource, KnowledgeSource, MemorySource
    from nexus_context.memory.task_context import (
        EventBusContextSource,
        MemoryContextSource,
        MemoryTools,
        Task,
        TaskContextManager,
    )
    from nexus_context.memory.working import Entry, WorkingMemory
    from nexus_context.tokens import (
        MinimalCounter,
        ModelLimits,
        SimpleTokenCounter,
        TiktokenCounter,
        TokenCounter,
        counter_for,
        get_model_limits,
        get_token_counter,
        supports_feature,
    )
    from nexus_context.turn.assembly import assemble, measure, usage_of
    from nexus_context.turn.cache import AssemblyCache
    from nexus_context.turn.manager import ContextManager
    from nexus_context.turn.prefix import CacheReport, compare
    from nexus_context.turn.request import AssembledContext, Options, Request

__all__ = [  # noqa: RUF022 (by module, in reading order)
    "NexusError",
    "Problem",
    "RequestError",
    "ContextOverflowError",
    "Severity",
    "Span",
    "ConfigError",
    "format_frame",
    "MinimalCounter",
    "ModelLimits",
    "SimpleTokenCounter",
    "TiktokenCounter",
    "TokenCounter",
    "counter_for",
    "get_model_limits",
    "get_token_counter",
    "supports_feature",
    "global_directory",
    "user_home",
    "Environment",
    "detect",
    "Fragment",
    "Prompt",
    "LoadInputs",
    "Snapshot",
    "load",
    "prompt_for",
    "Message",
    "ToolCall",
    "CompactionError",
    "CompactionResult",
    "CompactionSettings",
    "Receipt",
    "Budget",
    "ProviderUsage",
    "Transcript",
    "Written",
    "build_summarize_prompt",
    "create_summary_message",
    "first_summary",
    "read_transcript",
    "select_messages_for_compaction",
    "TokenBudget",
    "TokenUsage",
    "UsageRow",
    "ContextConfig",
    "ContextManager",
    "open_ledger",
    "Counted",
    "DirectMessage",
    "NewTurn",
    "Event",
    "EventBus",
    "MemoryItem",
    "MemorySettings",
    "Entry",
    "WorkingMemory",
    "Levels",
    "MemorySource",
    "DirectSource",
    "EventSource",
    "KnowledgeSource",
    "Task",
    "TaskContextManager",
    "MemoryContextSource",
    "EventBusContextSource",
    "MemoryTools",
    "KnowledgeIndex",
    "KnowledgePath",
    "Passage",
    "Embedder",
    "EmbeddingError",
    "Vectors",
    "CacheReport",
    "compare",
    "AssemblyCache",
    "AsyncContextAssembler",
    "AsyncSessionStore",
    "AssembledContext",
    "Options",
    "Request",
    "assemble",
    "measure",
    "usage_of",
    "ActiveSkill",
    "ContextAssembler",
    "FolderSkills",
    "LedgerStore",
    "ModelContext",
    "SessionStore",
    "SkillProvider",
    "ToolExecutor",
    "ToolList",
    "create_context_assembler",
    "Agent",
    "AgentPool",
    "Config",
    "ContextLayer",
    "ContextLoader",
    "ContextSources",
    "FilePromptSource",
    "LoadedContext",
    "LoadedPrompt",
    "PromptLoader",
    "PromptSource",
    "get_system_info",
    "InitPlan",
    "plan_init",
]

_MODULES = {
    "errors": "ContextOverflowError NexusError Problem RequestError Severity Span",
    "config.frames": "ConfigError format_frame",
    "tokens": "MinimalCounter ModelLimits SimpleTokenCounter TiktokenCounter TokenCounter counter_for "
    "get_model_limits get_token_counter supports_feature",
    "folder.layers.walk": "global_directory user_home",
    "folder.prompt.environment": "Environment detect",
    "folder.prompt.render": "Fragment Prompt",
    "folder.snapshot": "LoadInputs Snapshot",
    "folder.loading": "load",
    "folder.request_prompt": "prompt_for",
    "conversation.message": "Message ToolCall",
    "conversation.compaction.detection": "CompactionSettings",
    "conversation.summary": "create_summary_message",
    "conversation.compaction.run": "CompactionResult select_messages_for_compaction",
    "conversation.agent_result": "ProviderUsage",
    "assistants.importing": "Transcript read_transcript",
    "conversation.window": "Budget",
    "conversation.compaction.summarizer": "Written build_summarize_prompt first_summary",
    "conversation.compaction.receipt": "CompactionError Receipt",
    "conversation.budget": "ContextConfig TokenBudget TokenUsage UsageRow",
    "ledger": "open_ledger",
    "ledger.records": "Counted DirectMessage NewTurn",
    "memory.bus": "EventBus",
    "memory.events": "Event",
    "memory.item": "MemoryItem",
    "memory.working": "Entry WorkingMemory",
    "memory.levels": "Levels MemorySettings",
    "memory.task_context": "EventBusContextSource MemoryContextSource MemoryTools Task TaskContextManager",
    "memory.sources": "DirectSource EventSource KnowledgeSource MemorySource",
    "memory.knowledge": "Embedder EmbeddingError KnowledgeIndex KnowledgePath Passage Vectors",
    "turn.manager": "ContextManager",
    "turn.prefix": "CacheReport compare",
    "turn.cache": "AssemblyCache",
    "turn.request": "AssembledContext Options Request",
    "turn.assembly": "assemble measure usage_of",
    "assembler": (
        "ActiveSkill AsyncContextAssembler AsyncSessionStore ContextAssembler FolderSkills LedgerStore"
        " ModelContext SessionStore SkillProvider ToolExecutor ToolList create_context_assembler"
    ),
    "agents": "Agent AgentPool",
    "config.schema": "Config",
    "loader": "ContextLayer ContextLoader ContextSources FilePromptSource LoadedContext LoadedPrompt "
    "PromptLoader PromptSource get_system_info",
    "folder.init": "InitPlan plan_init",
}


def __getattr__(name: str) -> object:
    """The public name, from the module that owns it."""
    for module, names in _MODULES.items():
        if name in names.split():
            import importlib

            value: object = getattr(importlib.import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
