"""List, find and search conversations as the ledger has them, without locking them."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from nexus_context.assistants.tracking.conversations import related_folders
from nexus_context.config.picked_model import ModelChoice, with_choice
from nexus_context.errors import RequestError
from nexus_context.folder import loading
from nexus_context.folder.snapshot import Snapshot
from nexus_context.text.decoding import convert_to
from nexus_context.tokens import SimpleTokenCounter, TokenCounter
from nexus_daemon import protocol
from nexus_daemon.api.resolve import folder_ledger
from nexus_daemon.lsp import convert
from nexus_daemon.sessions.session_names import find_session, name_of

if TYPE_CHECKING:
    from nexus_context.ledger.records import Hit, Session
    from nexus_daemon.sessions.ledger_writer import FolderLedger
    from nexus_daemon.windows.connection import Connection

MOST_TURNS = 1_000


async def list_sessions(client: "Connection", params: protocol.ListParams) -> protocol.ListResult:
    """List the conversations of a folder, or of all folders, with their totals, the last changed first.

    In a list of all folders, `exact` is only false for estimates, and no picked model is named.
    """
    if params.workspace_folder is None:
        return protocol.ListResult(await list_all(client, uris_of(client)))
    infos = await _infos(client, params.workspace_folder)
    sessions = await client.read(infos.ledger.store.sessions, infos.ledger.workspace)
    return protocol.ListResult([infos.of(session) for session in sessions])


async def list_all(client: "Connection", uris: Mapping[str, str]) -> list[protocol.SessionInfo]:
    """List the conversations of all folders.

    `uris` maps the ledger's names of folders to their URIs, if known.
    """
    ledger = await ledger_of(client, None)
    return await client.read(lambda: [_foreign_info(session, uris) for session in ledger.store.sessions()])


async def find(client: "Connection", params: protocol.FindParams) -> protocol.SessionInfo:
    """Find the conversation that a person means by its name, its id, or the beginning of one of them.

    If there is none, or if several begin so, it is an error with the names that may be meant.
    """
    infos = await _infos(client, params.workspace_folder)
    ledger = infos.ledger
    return infos.of(await client.read(find_session, ledger.store, ledger.workspace, params.session))


async def turns(client: "Connection", params: protocol.TurnsParams) -> protocol.TurnsResult:
    """Return the turns of a conversation as they are stored, for programs: nothing is covered or shortened.

    `nexus/session/transcript` is for people.
    """
    if params.first < 1:
        raise RequestError(f"`first` is {params.first}: it must be at least 1.", code="bad-option")
    if not 1 <= params.limit <= MOST_TURNS:
        raise RequestError(
            f"`limit` is {params.limit}: it must be from 1 to {MOST_TURNS:,}.", code="bad-option"
        )
    ledger = await folder_ledger(client, params.workspace_folder)
    stored_turns = await client.read(_read_turns, ledger, params)
    return protocol.TurnsResult(params.session, stored_turns)


def _read_turns(ledger: "FolderLedger", params: protocol.TurnsParams) -> list[protocol.StoredTurn]:
    head = ledger.store.head(ledger.workspace, params.session)
    turn_count = max(0, (0 if head is None else head.seq) - params.first + 1)
    stored_turns = ledger.store.turns(ledger.workspace, params.session, last=turn_count)
    page = islice(stored_turns, params.limit)
    return [convert_to(msgspec.structs.asdict(turn), protocol.StoredTurn) for turn in page]


async def receipt(client: "Connection", params: protocol.ReceiptParams) -> protocol.ReceiptResult:
    """Return the receipt of a compaction as it was written, even if the compaction was undone since.

    An id finds the compaction in any conversation of the folder. Without an id, the receipt is that of the
    last compaction of the conversation.
    """
    ledger = await folder_ledger(client, params.workspace_folder)
    stored_receipt = await client.read(
        ledger.store.pages.receipt, ledger.workspace, params.session, params.compaction
    )
    receipt = convert_to(stored_receipt.receipt, protocol.Receipt)
    return protocol.ReceiptResult(
        session=stored_receipt.session, receipt=receipt, in_force=stored_receipt.in_force
    )


async def search(client: "Connection", params: protocol.SearchParams) -> protocol.SearchResult:
    """Find messages that contain all words, best first, in the conversations of one folder or of all.

    Compacted and cleared messages are also found. The search ignores case and accents.
    """
    if params.limit < 1:
        raise RequestError(f"`limit` is {params.limit}: it must be at least 1.", code="bad-option")
    ledger = await ledger_of(client, params.workspace_folder)
    workspace = None if params.workspace_folder is None else ledger.workspace
    parents: tuple[str, ...] = ()
    if workspace is not None and params.above:
        home = client.folders.load_inputs.user_home
        parents = (await client.read(related_folders, workspace, str(home))).parents
    session = params.session
    if session is not None and workspace is not None:
        session = (await client.read(find_session, ledger.store, workspace, session)).name
    elif session is not None:
        session = await client.read(name_of, ledger.store, session)
    hits = await client.read(
        ledger.store.pages.search,
        params.query,
        workspace=workspace,
        inside=params.inside,
        parents=parents,
        session=session,
        limit=params.limit,
    )
    uris = uris_of(client)
    return protocol.SearchResult([_hit(hit, uris) for hit in hits])


async def ledger_of(client: "Connection", uri: str | None) -> "FolderLedger":
    """Return the ledger of the folder that contains the URI.

    Without a URI, return one that can read all folders.
    """
    if uri is not None:
        return await folder_ledger(client, uri)
    return await client.daemon.ledgers.of(await _some_snapshot(client))


async def _some_snapshot(client: "Connection") -> Snapshot:
    """Any snapshot: the user's own settings are the same in every folder."""
    for folder in client.folders:
        return await folder.current()
    inputs = client.folders.load_inputs
    return await client.work(loading.load, inputs.user_home, inputs)


def _hit(hit: "Hit", uris: Mapping[str, str]) -> protocol.SearchHit:
    return protocol.SearchHit(
        workspace_folder=uri_of(hit.workspace, uris),
        session=hit.session,
        turn=hit.turn,
        seq=hit.seq,
        position=hit.position,
        role=hit.role,
        snippet=hit.snippet,
        created=hit.created,
        thread=hit.turn.rpartition("-")[0],
        assistant=hit.assistant,
    )


class _Infos(msgspec.Struct, frozen=True):
    """Describes the conversations of a folder."""

    ledger: "FolderLedger"
    counter_of: Callable[[ModelChoice], TokenCounter]

    def of(self, session: "Session") -> protocol.SessionInfo:
        options = self.ledger.session_options(session.name)
        choice = ModelChoice() if options is None else options.choice
        counter = self.counter_of(choice)
        return msgspec.structs.replace(
            _info(session),
            exact=counter.exact and session.counters <= {counter.name},
            model=choice.model,
            max_context_tokens=choice.max_tokens,
        )


async def _infos(client: "Connection", uri: str) -> _Infos:
    folder = client.folders.at(uri)
    snapshot = await folder.current()
    return _Infos(await client.daemon.ledgers.of(snapshot, folder), _counters_of(snapshot))


def _foreign_info(session: "Session", uris: Mapping[str, str]) -> protocol.SessionInfo:
    """A conversation of a folder that may not be open."""
    info = _info(session)
    uri = uri_of(session.workspace, uris)
    return msgspec.structs.replace(info, exact=not info.estimated, workspace_folder=uri)


def _info(session: "Session") -> protocol.SessionInfo:
    origin = session.origin
    return protocol.SessionInfo(
        session=session.name,
        thread=session.head.thread,
        turns=session.head.seq,
        messages=session.head.messages,
        tokens=session.sent_tokens,
        created=session.created,
        updated=session.updated,
        last_turn=session.last_turn,
        agent=session.agent,
        forked_from=session.forked_from,
        estimated=SimpleTokenCounter.name in session.counters,
        parameters=dict(session.parameters),
        origin=None if origin is None else protocol.SessionOrigin(**msgspec.structs.asdict(origin)),
    )


def uris_of(client: "Connection") -> dict[str, str]:
    """Return the URIs of this window's folders, by the folders' names in the ledger."""
    return {folder.ledger.workspace: folder.uri for folder in client.folders if folder.ledger is not None}


def uri_of(workspace: str, uris: Mapping[str, str]) -> str:
    """Return the URI of a folder by its name in the ledger, as the window spells it if the folder is open."""
    return uris.get(workspace) or convert.path_to_uri(workspace)


def _counters_of(snapshot: Snapshot) -> Callable[[ModelChoice], TokenCounter]:
    """The counter of each model that was picked, else of the folder's; each is looked up once."""
    from nexus_context.turn.models import model_in  # an empty list needs none

    counters: dict[ModelChoice, TokenCounter] = {}

    def counter_of(choice: ModelChoice) -> TokenCounter:
        if choice not in counters:
            picked_choice = None if choice.model is None else choice
            _, counters[choice] = model_in(with_choice(snapshot.effective, picked_choice))
        return counters[choice]

    return counter_of
