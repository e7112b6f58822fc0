"""Add memory and knowledge of the folder to a prompt of another assistant, if that is switched on.

1. Passages come first, in at most SHARE of the tokens, from the index as it is after a tenth of a second.
   Then come exchanges of other conversations of the folder in the ledger.
2. If nothing matches, nothing is added.
3. Only the folder that the assistant works in is searched. A path in its settings that leads outside the
   folder is ignored, as in a chat of Nexus itself.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nexus_context.errors import RequestError
from nexus_context.folder.prompt import texts
from nexus_context.memory import queries
from nexus_context.memory.knowledge import Passage
from nexus_context.memory.knowledge.terms import query_terms
from nexus_context.memory.working import Entry
from nexus_context.text.redact import redact_message
from nexus_context.tokens import TokenCounter

if TYPE_CHECKING:  # the daemon calls this through `hook_folders`
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.daemon import Daemon
    from nexus_daemon.windows.live_folder import LiveFolder

TOKENS = 1_000
SHARE = 0.6
MOST_ENTRIES = 5
MOST_WORDS = 12
_SHORTEST = 3  # words of a prompt that something is looked up for


async def find_memory(
    daemon: "Daemon",
    folder: "LiveFolder",
    prompt: str,
    counter: TokenCounter,
    *,
    limit: int,
    besides: tuple[str, str],
) -> str:
    """Return what matches a prompt in a folder, in at most `limit` tokens. Empty if nothing matches.

    `besides` is the (assistant, id) of the session itself, which is left out if the ledger has it.
    """
    words = query_terms(prompt)
    if len(words) < _SHORTEST:
        return ""
    snapshot = await folder.current()
    head = texts.text("hook_memory_head").strip()
    available_tokens = limit - await daemon.workers.read(counter.count, head) - 2
    passages = await folder.knowledge.query(prompt, counter, max_tokens=int(available_tokens * SHARE))
    try:
        ledger = await daemon.ledgers.of(snapshot, folder)
    except RequestError:  # requests for a conversation report it
        ledger = None

    def compose() -> str:
        blocks = [head]
        passage_block = _fitting_passages(passages, counter, int(available_tokens * SHARE))
        if passage_block:
            blocks.append(passage_block)
        remaining_tokens = available_tokens - sum(counter.count(block) + 2 for block in blocks[1:])
        entries = [] if ledger is None else _entries(ledger, " ".join(words[:MOST_WORDS]), besides)
        memory = _fitting_entries(entries, counter, remaining_tokens)
        if memory:
            blocks.append(memory)
        text = "\n\n".join(blocks) if len(blocks) > 1 else ""
        return text if counter.count(text) <= limit else ""

    return await daemon.workers.read(compose)


def _fitting_passages(passages: Sequence[Passage], counter: TokenCounter, max_tokens: int) -> str:
    blocks: list[str] = []
    for passage in passages:
        block = f"{passage.path}:\n{passage.text.strip()}"
        if counter.count("\n\n".join((*blocks, block))) > max_tokens:
            break
        blocks.append(block)
    return "\n\n".join(blocks)


def _entries(ledger: "FolderLedger", words: str, besides: tuple[str, str]) -> list[Entry]:
    """Exchanges of the folder's conversations that match."""
    try:
        mirrored = ledger.store.mirrors.find(*besides)
        name = None if mirrored is None else mirrored.session
        entries = ledger.levels.across(ledger.workspace, words, limit=2 * MOST_ENTRIES, besides=name)
    except RequestError:
        return []
    return [entry for entry in entries if entry.session != name][:MOST_ENTRIES]


def _fitting_entries(entries: Sequence[Entry], counter: TokenCounter, max_tokens: int) -> str:
    """Render as many of the best entries as fit."""
    for count in range(len(entries), 0, -1):
        text = redact_message(queries.rendered(entries[:count]))
        if counter.count(text) <= max_tokens:
            return text
    return ""
