"""Map each method to its types and its handler, for what `initialize` offers and what `server` registers.

The reply to `initialize` needs only the names. The types and the handler of a request are imported when the
first such request arrives.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from nexus_daemon import api, protocol
from nexus_daemon.lsp.initialize import Offer
from nexus_daemon.process.version import __version__
from nexus_daemon.protocol.shapes import Wire

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)
Handler = Callable[["Connection", P], Awaitable[R]]


class Method:
    """A request.

    `types()` returns the types of its parameters and its result, `handler()` imports its handler.
    """

    def __init__(
        self, types: Callable[[], tuple[type[Wire], type[Wire]]], handler: Callable[[], Handler[Any, Any]]
    ) -> None:
        self._types = types
        self.handler = handler

    @property
    def types(self) -> tuple[type[Wire], type[Wire]]:
        return self._types()

    @property
    def params(self) -> type[Wire]:
        return self.types[0]


def _method(types: Callable[[], tuple[type[P], type[R]]], handler: Callable[[], Handler[P, R]]) -> Method:
    """A method whose handler takes these parameters and returns this result, as the type checker sees to."""
    return Method(types, handler)


METHODS: dict[str, Method] = {
    "nexus/context/assemble": _method(
        lambda: (protocol.AssembleParams, protocol.AssembledContext), lambda: api.context.assemble
    ),
    "nexus/context/preview": _method(
        lambda: (protocol.PreviewParams, protocol.Preview), lambda: api.context.preview
    ),
    "nexus/context/usage": _method(
        lambda: (protocol.UsageParams, protocol.TokenUsage), lambda: api.context.usage
    ),
    "nexus/context/layers": _method(
        lambda: (protocol.LayersParams, protocol.LayersResult), lambda: api.context.layers
    ),
    "nexus/config/effective": _method(
        lambda: (protocol.AgentViewParams, protocol.EffectiveResult), lambda: api.config.effective
    ),
    "nexus/session/create": _method(
        lambda: (protocol.CreateParams, protocol.SessionPlace), lambda: api.session.create
    ),
    "nexus/session/setParameters": _method(
        lambda: (protocol.SetParametersParams, protocol.SetParametersResult),
        lambda: api.session.set_parameters,
    ),
    "nexus/session/list": _method(
        lambda: (protocol.ListParams, protocol.ListResult), lambda: api.stored_sessions.list_sessions
    ),
    "nexus/session/find": _method(
        lambda: (protocol.FindParams, protocol.SessionInfo), lambda: api.stored_sessions.find
    ),
    "nexus/session/turns": _method(
        lambda: (protocol.TurnsParams, protocol.TurnsResult), lambda: api.stored_sessions.turns
    ),
    "nexus/session/append": _method(
        lambda: (protocol.AppendParams, protocol.AppendResult), lambda: api.session.append
    ),
    "nexus/session/messages": _method(
        lambda: (protocol.MessagesParams, protocol.MessagesResult), lambda: api.session.messages
    ),
    "nexus/session/transcript": _method(
        lambda: (protocol.TranscriptParams, protocol.TranscriptResult), lambda: api.session.transcript
    ),
    "nexus/session/fork": _method(
        lambda: (protocol.ForkParams, protocol.SessionPlace), lambda: api.session.fork
    ),
    "nexus/session/rename": _method(
        lambda: (protocol.RenameParams, protocol.SessionPlace), lambda: api.session.rename
    ),
    "nexus/session/clear": _method(
        lambda: (protocol.SessionParams, protocol.ClearResult), lambda: api.session.clear
    ),
    "nexus/session/delete": _method(
        lambda: (protocol.SessionParams, protocol.DeleteResult), lambda: api.session.delete
    ),
    "nexus/session/compact": _method(
        lambda: (protocol.CompactParams, protocol.CompactResult), lambda: api.session.compact
    ),
    "nexus/session/undoCompaction": _method(
        lambda: (protocol.UndoParams, protocol.UndoResult), lambda: api.session.undo_compaction
    ),
    "nexus/session/rebase": _method(
        lambda: (protocol.SessionParams, protocol.RebaseResult), lambda: api.session.rebase
    ),
    "nexus/session/receipt": _method(
        lambda: (protocol.ReceiptParams, protocol.ReceiptResult), lambda: api.stored_sessions.receipt
    ),
    "nexus/session/export": _method(
        lambda: (protocol.ExportParams, protocol.ExportResult), lambda: api.session.export
    ),
    "nexus/session/search": _method(
        lambda: (protocol.SearchParams, protocol.SearchResult), lambda: api.stored_sessions.search
    ),
    "nexus/session/focus": _method(
        lambda: (protocol.SessionParams, protocol.FocusResult), lambda: api.session.focus
    ),
    "nexus/chat/send": _method(
        lambda: (protocol.ChatSendParams, protocol.ChatSendResult), lambda: api.chat.send
    ),
    "nexus/model/pick": _method(lambda: (protocol.PickParams, protocol.PickResult), lambda: api.model.pick),
    "nexus/mcp/servers": _method(
        lambda: (protocol.ServersParams, protocol.ServersResult), lambda: api.mcp.servers
    ),
    "nexus/mcp/approve": _method(
        lambda: (protocol.ApproveParams, protocol.ServerInfo), lambda: api.mcp.approve
    ),
    "nexus/mcp/revoke": _method(lambda: (protocol.ServerParams, protocol.ServerInfo), lambda: api.mcp.revoke),
    "nexus/mcp/start": _method(lambda: (protocol.ServerParams, protocol.ServerInfo), lambda: api.mcp.start),
    "nexus/mcp/stop": _method(lambda: (protocol.ServerParams, protocol.ServerInfo), lambda: api.mcp.stop),
    "nexus/mcp/refresh": _method(
        lambda: (protocol.ServerParams, protocol.ServerInfo), lambda: api.mcp.refresh
    ),
    "nexus/mcp/login": _method(lambda: (protocol.ServerParams, protocol.ServerInfo), lambda: api.mcp.login),
    "nexus/mcp/logout": _method(lambda: (protocol.ServerParams, protocol.ServerInfo), lambda: api.mcp.logout),
    "nexus/mcp/search": _method(
        lambda: (protocol.ToolSearchParams, protocol.ToolSearchResult), lambda: api.mcp.search
    ),
    "nexus/mcp/prompt": _method(
        lambda: (protocol.ServerPromptParams, protocol.ServerPromptResult), lambda: api.mcp.prompt
    ),
    "nexus/mcp/resource": _method(
        lambda: (protocol.ServerResourceParams, protocol.ServerResourceResult), lambda: api.mcp.resource
    ),
    "nexus/mcp/call": _method(
        lambda: (protocol.ServerCallParams, protocol.ServerCallResult), lambda: api.mcp.call
    ),
    "nexus/memory/query": _method(
        lambda: (protocol.MemoryQueryParams, protocol.MemoryQueryResult), lambda: api.memory.query
    ),
    "nexus/memory/list": _method(
        lambda: (protocol.MemoryListParams, protocol.MemoryListResult), lambda: api.memory.list_entries
    ),
    "nexus/knowledge/query": _method(
        lambda: (protocol.KnowledgeQueryParams, protocol.KnowledgeQueryResult), lambda: api.knowledge.query
    ),
    "nexus/knowledge/status": _method(
        lambda: (protocol.FolderParams, protocol.KnowledgeStatusResult), lambda: api.knowledge.status
    ),
    "nexus/skill/read": _method(
        lambda: (protocol.SkillReadParams, protocol.SkillReadResult), lambda: api.skill.read
    ),
    "nexus/agent/spawn": _method(lambda: (protocol.SpawnParams, protocol.AgentInfo), lambda: api.agent.spawn),
    "nexus/agent/list": _method(
        lambda: (protocol.FolderParams, protocol.AgentListResult), lambda: api.agent.list_agents
    ),
    "nexus/agent/get": _method(lambda: (protocol.AgentParams, protocol.AgentDetails), lambda: api.agent.get),
    "nexus/agent/dispose": _method(
        lambda: (protocol.AgentParams, protocol.AgentDisposed), lambda: api.agent.dispose
    ),
    "nexus/agent/message": _method(
        lambda: (protocol.AgentMessageParams, protocol.AgentMessageResult), lambda: api.agent.message
    ),
    "nexus/agent/messages": _method(
        lambda: (protocol.AgentMessagesParams, protocol.AgentMessagesResult), lambda: api.agent.messages
    ),
    "nexus/agent/call": _method(
        lambda: (protocol.AgentCallParams, protocol.AgentCallResult), lambda: api.agent.call
    ),
    "nexus/explain": _method(
        lambda: (protocol.ExplainParams, protocol.ExplainResult), lambda: api.explain.explain
    ),
    "nexus/view/list": _method(
        lambda: (protocol.FolderParams, protocol.ViewListResult), lambda: api.view.list_views
    ),
    "nexus/assistant/list": _method(
        lambda: (protocol.NoParams, protocol.AssistantListResult), lambda: api.assistant.list_assistants
    ),
    "nexus/assistant/readers": _method(
        lambda: (protocol.FolderParams, protocol.AssistantReadersResult), lambda: api.assistant.readers
    ),
    "nexus/assistant/context": _method(
        lambda: (protocol.AssistantParams, protocol.AssistantContextResult), lambda: api.assistant.context
    ),
    "nexus/assistant/sessions": _method(
        lambda: (protocol.AssistantSessionsParams, protocol.AssistantSessionsResult),
        lambda: api.assistant_session.sessions,
    ),
    "nexus/assistant/session": _method(
        lambda: (protocol.AssistantSessionParams, protocol.AssistantSessionResult),
        lambda: api.assistant_session.session,
    ),
    "nexus/conversation/list": _method(
        lambda: (protocol.ConversationListParams, protocol.ConversationListResult),
        lambda: api.conversation.list_conversations,
    ),
    "nexus/conversation/search": _method(
        lambda: (protocol.ConversationSearchParams, protocol.ConversationSearchResult),
        lambda: api.conversation.search,
    ),
    "nexus/conversation/transcript": _method(
        lambda: (protocol.ConversationTranscriptParams, protocol.TranscriptResult),
        lambda: api.conversation.transcript,
    ),
    "nexus/event/publish": _method(
        lambda: (protocol.PublishParams, protocol.PublishResult), lambda: api.event.publish
    ),
    "nexus/event/list": _method(
        lambda: (protocol.EventListParams, protocol.EventListResult), lambda: api.event.list_events
    ),
    "nexus/tokens/count": _method(
        lambda: (protocol.CountParams, protocol.CountResult), lambda: api.tokens.count
    ),
    "nexus/workspace/init": _method(
        lambda: (protocol.InitParams, protocol.InitResult), lambda: api.workspace.init
    ),
    "nexus/debug/trace": _method(
        lambda: (protocol.TraceParams, protocol.TraceResult), lambda: api.debug.trace
    ),
    "nexus/status": _method(lambda: (protocol.NoParams, protocol.Status), lambda: api.status.status),
}
"""Every `nexus/*` request of a client. `docs/protocol.md` is generated from it."""

DOCUMENT_FEATURES: dict[str, Any] = {
    "textDocument/completion": {"triggerCharacters": ['"', ":", ",", "@", "(", "/", "{", "."]},
    "textDocument/definition": {},
    "textDocument/documentHighlight": {},
    "textDocument/documentLink": {"resolveProvider": False},
    "textDocument/documentSymbol": {},
    "textDocument/foldingRange": {},
    "textDocument/hover": {},
    "textDocument/implementation": {},
    "textDocument/inlayHint": {"resolveProvider": False},
    "textDocument/prepareRename": None,
    "textDocument/references": {},
    "textDocument/rename": {"prepareProvider": True},
    "textDocument/selectionRange": {},
    "textDocument/semanticTokens/full": {
        "legend": {"tokenTypes": ["namespace"], "tokenModifiers": []},
        "full": True,
    },
    "workspace/symbol": {"resolveProvider": False},
    "workspace/textDocumentContent": None,
    "workspace/willRenameFiles": {"filters": [{"scheme": "file", "pattern": {"glob": "**/*"}}]},
}
"""The methods that `documents` answers, with their options."""

FEATURES: dict[str, Any] = {
    "initialize": None,
    "initialized": None,
    "shutdown": None,
    "workspace/didChangeWorkspaceFolders": None,
    "workspace/didChangeWatchedFiles": None,
    "textDocument/didOpen": None,
    "textDocument/didChange": None,
    "textDocument/didClose": None,
    "textDocument/codeAction": {"codeActionKinds": ["quickfix", "refactor.extract"]},
    "textDocument/codeLens": {"resolveProvider": False},
    "textDocument/diagnostic": {
        "interFileDependencies": True,
        "workspaceDiagnostics": True,
        "identifier": "nexus",
    },
    "workspace/diagnostic": None,
    **DOCUMENT_FEATURES,
}
"""Every LSP method that the server handles, with its options."""

OFFER = Offer(
    name="nexus",
    version=__version__,
    features=FEATURES | dict.fromkeys(METHODS),
    commands=tuple(method.replace("/", ".") for method in METHODS),
)
