"""Answer `nexus/knowledge/*`: the passages of a folder's knowledge base."""

from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_daemon import protocol
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.process import lazy
from nexus_daemon.sessions import results, turn_memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nexus_context.memory.knowledge import Passage
    from nexus_daemon.windows.connection import Connection

MOST_PASSAGES = 100


async def query(client: "Connection", params: protocol.KnowledgeQueryParams) -> protocol.KnowledgeQueryResult:
    """Return the passages of the knowledge base that a chat turn with this message would get, best first.

    The files of `memory.knowledge.paths` are searched by words, and by meaning if the settings say so. The
    answer waits at most 0.1 seconds for a new or changed index. If there are no paths or no match, there are
    no passages.
    """
    _check(params)
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    with client.daemon.workers.counting():
        _, counter = await client.work(lazy.models.model_of, snapshot, None)
        passages = await folder.knowledge.query(
            params.query, counter, top_k=params.limit, max_tokens=params.max_tokens
        )
    locate = Locator(snapshot.layers, client.capabilities.position_encoding)
    answer = await client.read(passage_results, passages, locate)
    return protocol.KnowledgeQueryResult(answer, updating=folder.knowledge.is_updating)


async def status(client: "Connection", params: protocol.FolderParams) -> protocol.KnowledgeStatusResult:
    """Return what the knowledge base has indexed, and whether it is searched by meaning.

    This starts the index.
    """
    folder = client.folders.at(params.workspace_folder)
    snapshot = await folder.current()
    try:
        state = await folder.knowledge.state()
    except (lazy.knowledge.IndexBusyError, lazy.knowledge.IndexLostError) as error:
        raise RequestError(f"The index cannot be read now: {error}. Try again.", code="knowledge") from None
    locate = Locator(snapshot.layers, client.capabilities.position_encoding)
    return protocol.KnowledgeStatusResult(
        paths=list(state.paths),
        files=state.files,
        passages=state.passages,
        index=state.index,
        updating=folder.knowledge.is_updating,
        model=state.model,
        vectors=None if state.model is None else state.vectors,
        problems=await client.read(results.problems, locate, folder.knowledge.problems),
    )


def passage_results(passages: "Sequence[Passage]", locate: Locator) -> list[protocol.KnowledgePassage]:
    """Build the protocol's form of passages. Reads their files to find the lines."""
    locate = turn_memory.locator_of(locate, lazy.memory_sources.passage_items(passages))
    return [
        protocol.KnowledgePassage(
            uri=locate.uri(passage.path),
            range=locate.range(passage.path, passage.span),
            heading=passage.heading,
            text=passage.text,
            tokens=passage.tokens,
            score=round(passage.score, 6),
            matched_by=list(passage.matched_by),
            cut=passage.cut,
        )
        for passage in passages
    ]


def _check(params: protocol.KnowledgeQueryParams) -> None:
    if not params.query.strip():
        raise RequestError("query is empty; give words or a question.", code="bad-option")
    if params.limit is not None and not 1 <= params.limit <= MOST_PASSAGES:
        raise RequestError(
            f"limit is {params.limit}; it must be a whole number from 1 to {MOST_PASSAGES}.",
            code="bad-option",
        )
    if params.max_tokens is not None and params.max_tokens < 1:
        raise RequestError(
            f"maxTokens is {params.max_tokens}; it must be a whole number of at least 1.", code="bad-option"
        )
