"""Answers `search_knowledge` with passages of a folder's knowledge base, as `nexus knowledge query` does."""

from pathlib import Path

from nexus_context.errors import RequestError
from nexus_daemon import protocol
from nexus_daemon.cli.folder import short_path
from nexus_daemon.cli.knowledge import settled_status
from nexus_daemon.cli.mcp.call_scope import CallScope
from nexus_daemon.cli.mcp.pages import ToolAnswer
from nexus_daemon.lsp.convert import uri_to_path

MOST_PASSAGES = 40
MOST_TOKENS = 20_000
_NOTHING = (
    "This folder has no knowledge base. The user can name its files in `memory.knowledge.paths` of "
    ".nexus3/config.json."
)


def search_knowledge(scope: CallScope) -> ToolAnswer:
    """Return the passages that match, best first."""
    from nexus_daemon.api import knowledge  # the daemon, which other tools do not need
    from nexus_daemon.cli.asking import reading

    with reading("mcp", Path(scope.folder)) as client:
        if not settled_status(client).paths:
            raise RequestError(_NOTHING, code="knowledge")
        params = protocol.KnowledgeQueryParams(
            client.uri, query=scope.arguments["query"], limit=MOST_PASSAGES, max_tokens=MOST_TOKENS
        )
        passages = client.ask(knowledge.query, params).passages
    if not passages:
        return ToolAnswer("No passage of the knowledge base matches. Try fewer or other words.")
    return ToolAnswer(
        "Passages of the knowledge base, best first:", tuple(_passage(passage, scope) for passage in passages)
    )


def _passage(passage: protocol.KnowledgePassage, scope: CallScope) -> str:
    path = short_path(uri_to_path(passage.uri) or passage.uri, scope.folder)
    heading = f" › {passage.heading}" if passage.heading else ""
    return f"\n{path}:{passage.range.start.line + 1}{heading}\n{passage.text.strip()}"
