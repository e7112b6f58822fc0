"""`search_knowledge`: passages of a folder's knowledge base, as `nexus knowledge query` finds them."""

from pathlib import Path

from nexus_context import assembly
from nexus_context.errors import RequestError
from nexus_context.files import PROMPT_LIMIT, read_text
from nexus_context.lines import LineIndex
from nexus_context.memory.knowledge import Passage
from nexus_daemon.cli.folder import read, short_path
from nexus_daemon.cli.knowledge import open_knowledge
from nexus_daemon.cli.mcp.answer_call import CallScope
from nexus_daemon.cli.mcp.pages import ToolAnswer

MOST_PASSAGES = 40
MOST_TOKENS = 20_000
_NOTHING = (
    "This folder has no knowledge base. The user can name its files in `memory.knowledge.paths` of "
    ".nexus3/config.json."
)


def search_knowledge(scope: CallScope) -> ToolAnswer:
    """The answer: passages, best first."""
    query = scope.arguments["query"]
    snapshot = read(Path(scope.folder))
    _, counter = assembly.model_of(snapshot, None)
    with open_knowledge("knowledge", scope.folder, snapshot) as knowledge:
        if knowledge is None:
            raise RequestError(_NOTHING, code="knowledge")
        passages = knowledge.passages(query, counter, top_k=MOST_PASSAGES, max_tokens=MOST_TOKENS)
    if not passages:
        return ToolAnswer("No passage of the knowledge base matches. Try fewer or other words.")
    return ToolAnswer(
        "Passages of the knowledge base, best first:", tuple(_passage(each, scope) for each in passages)
    )


def _passage(passage: Passage, scope: CallScope) -> str:
    text = read_text(passage.path, limit=PROMPT_LIMIT).text
    line = "" if text is None else f":{LineIndex(text).position(passage.span.start)[0] + 1}"
    heading = f" › {passage.heading}" if passage.heading else ""
    return f"\n{short_path(passage.path, scope.folder)}{line}{heading}\n{passage.text.strip()}"
