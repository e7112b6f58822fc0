"""What a prompt of another assistant gets of the folder's memory and knowledge, where that is switched on.

1. Passages come first, in at most SHARE of the tokens, from the index as it is: bringing it up to date comes
   after the answer. Then exchanges of other conversations of the folder in the ledger.
2. Nothing matches, nothing is added.
3. Only the folder that the assistant works in is searched: a path in its settings that leads elsewhere counts
   as little as in a chat of Nexus itself.
"""

from collections.abc import Mapping, Sequence

from nexus_context.errors import RequestError
from nexus_context.files import is_dir, real_path
from nexus_context.layers.walk import user_home
from nexus_context.ledger import open_ledger, opening
from nexus_context.memory import knowledge, queries
from nexus_context.memory.knowledge.terms import query_terms
from nexus_context.memory.levels import Levels
from nexus_context.memory.working import Entry
from nexus_context.prompt import texts
from nexus_context.redact import redact_message
from nexus_context.snapshot import Snapshot, load
from nexus_context.tokens import TokenCounter
from nexus_daemon.workspace.inputs import load_inputs

TOKENS = 1_000
SHARE = 0.6
MOST_ENTRIES = 5
MOST_WORDS = 12
_SHORTEST = 3  # words of a prompt that something is looked up for


def find_memory(
    prompt: str,
    folder: str,
    environ: Mapping[str, str],
    counter: TokenCounter,
    *,
    limit: int,
    besides: tuple[str, str],
) -> str:
    """What matches a prompt, in at most `limit` tokens; empty if nothing does.

    `besides` is the session itself, which the ledger may have: the assistant and the id.
    """
    words = query_terms(prompt)
    if len(words) < _SHORTEST or not is_dir(folder):
        return ""
    snapshot = load(folder, load_inputs(environ))
    head = texts.text("hook_memory_head").strip()
    room = limit - counter.count(head) - 2
    blocks = []
    passages = _passages(prompt, snapshot, environ, counter=counter, limit=int(room * SHARE))
    if passages:
        blocks.append(passages)
        room -= counter.count(passages) + 2
    entries = _entries(" ".join(words[:MOST_WORDS]), snapshot, environ, besides=besides)
    memory = _fitting(entries, counter, room)
    if memory:
        blocks.append(memory)
    text = "\n\n".join((head, *blocks)) if blocks else ""
    return text if counter.count(text) <= limit else ""


def refresh_knowledge(folder: str, environ: Mapping[str, str]) -> None:
    """Bring the index of a folder's knowledge base up to date, if it has one."""
    snapshot = load(folder, load_inputs(environ))
    settings, _ = knowledge.settings_of(snapshot.layers, user_home(environ))
    if not settings.places:
        return
    index = knowledge.KnowledgeIndex(knowledge.index_path(real_path(folder), environ))
    try:
        knowledge.refresh(index, settings)
    finally:
        index.close()


def _passages(
    prompt: str, snapshot: Snapshot, environ: Mapping[str, str], *, counter: TokenCounter, limit: int
) -> str:
    settings, _ = knowledge.settings_of(snapshot.layers, user_home(environ))
    if not settings.places:
        return ""
    index = knowledge.KnowledgeIndex(knowledge.index_path(real_path(snapshot.folder), environ))
    try:
        passages = knowledge.query(
            index, prompt, counter, top_k=settings.top_k, max_tokens=limit, accepts=settings.covers
        )
    except (knowledge.IndexBusyError, knowledge.IndexLostError):
        return ""
    finally:
        index.close()
    blocks: list[str] = []
    for passage in passages:
        block = f"{passage.path}:\n{passage.text.strip()}"
        if counter.count("\n\n".join((*blocks, block))) > limit:
            break
        blocks.append(block)
    return "\n\n".join(blocks)


def _entries(words: str, snapshot: Snapshot, environ: Mapping[str, str], *, besides: str) -> list[Entry]:
    """Exchanges of the folder's conversations that match."""
    try:
        ledger = open_ledger(snapshot.effective.get("/ledger/path"), environ=environ)
    except RequestError:
        return []
    try:
        workspace = opening.workspace_of(snapshot.folder)
        mirrored = ledger.mirrored_session(*besides)
        name = None if mirrored is None else mirrored.session
        entries = Levels(ledger).across(workspace, words, limit=2 * MOST_ENTRIES, besides=name)
        return [entry for entry in entries if entry.session != name][:MOST_ENTRIES]
    except RequestError:
        return []
    finally:
        ledger.close()


def _fitting(entries: Sequence[Entry], counter: TokenCounter, room: int) -> str:
    """As many entries as fit, the best ones."""
    for count in range(len(entries), 0, -1):
        text = redact_message(queries.rendered(entries[:count]))
        if counter.count(text) <= room:
            return text
    return ""
