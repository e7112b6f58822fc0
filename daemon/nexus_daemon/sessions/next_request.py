"""What a conversation's next request is made with: the model that the user picked, and what is sent besides.

1. Where the settings leave the model to the editor, a request with a user's message says what it is made
   with. That holds from then on, for the conversation and for those of its folder that were not used yet
   (`session_options`).
2. The model and its window are settings of the snapshot that the conversation is looked at with. So whatever
   is counted of it, is counted for them.
3. A live agent that was asked to have a model goes on with that one, until a turn in its own conversation
   was made with another. For all else the folder's last one holds.
"""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.assembly import Options, Request
from nexus_context.config.picked_model import ModelChoice, leaves_model_to_editor
from nexus_context.errors import RequestError
from nexus_context.ledger.records import SessionOptions
from nexus_context.snapshot import Snapshot, for_choice
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

if TYPE_CHECKING:  # most conversations are of no agent
    from nexus_context.agents import Agent

logger = logging.getLogger(__name__)


class Besides(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What is sent besides the conversation, of a request's options."""

    additional_system_prompt: str | None = None
    additional_tools: Sequence[dict[str, Any]] = ()
    disabled_tools: Sequence[str] = ()
    memory_tools: bool = False


def choice_of(
    conversation: Conversation, ledger: FolderLedger | None, agent: "Agent | None" = None
) -> ModelChoice | None:
    """The picked model that the conversation is looked at with; None: the snapshot says which.

    No disk is read.
    """
    if ledger is None:
        return None
    own_only = agent is not None and _asks_for_model(agent)
    options = (ledger.own_options if own_only else ledger.options)(conversation.session)
    return None if options is None else options.choice


def snapshot_for(
    snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger | None, agent: "Agent | None" = None
) -> Snapshot:
    """The snapshot with the model of the conversation. It may have to be rendered: for worker threads."""
    return _rendered(snapshot, conversation, choice_of(conversation, ledger, agent))


def snapshot_for_turn(
    snapshot: Snapshot,
    conversation: Conversation,
    ledger: FolderLedger,
    options: Options,
    agent: "Agent | None",
) -> Snapshot:
    """A turn is made with these options: what they say of model, window and tools holds from now on.

    The snapshot with the model of the turn.
    """
    picked = _picked(snapshot, conversation, ledger, options)
    if picked is None:
        return snapshot_for(snapshot, conversation, ledger, agent)
    conversation.options = picked  # the ledger takes them for the conversation's with its next turn
    keep(conversation, ledger, picked)
    return _rendered(snapshot, conversation, picked.choice)


def besides(snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger | None) -> Options:
    """What is sent with each of the conversation's requests, as the last one had it."""
    options = None if ledger is None else ledger.options(conversation.session)
    if options is None or not leaves_model_to_editor(snapshot.effective):
        return Options()
    try:
        kept = msgspec.convert(options.besides or {}, Besides)
    except msgspec.ValidationError:  # a later version may keep more, or otherwise
        return Options()
    return Options(**msgspec.structs.asdict(kept))


def expected(
    snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger, options: Options
) -> tuple[Snapshot, Options]:
    """What the next turn is made with where a client expects these options, and the snapshot for it.

    What was picked, or held for the last turn, holds for the next. Where the settings choose the model, only
    the client's tools count.
    """
    if not leaves_model_to_editor(snapshot.effective):
        return snapshot, Options(memory_tools=options.memory_tools)
    if ledger.options(conversation.session) is not None:
        return snapshot, besides(snapshot, conversation, ledger)
    if options.model is None:
        return snapshot, options
    choice = ModelChoice(options.model, options.max_context_tokens)
    without_choice = msgspec.structs.replace(options, model=None, max_context_tokens=None)
    return _rendered(snapshot, conversation, choice), without_choice


def keep(conversation: Conversation, ledger: FolderLedger, options: SessionOptions) -> "Future[None] | None":
    """Use the conversation with these options from now on.

    The result is that of writing them; None: they are written.
    """
    if options == ledger.own_options(conversation.session) == ledger.own_options(None):
        return None
    writing = ledger.keep_options(conversation.session, options)
    writing.add_done_callback(_log_failure)
    return writing


def without_repetition(request: Request, snapshot: Snapshot) -> Request:
    """The request without a model and a window that are the snapshot's anyway: so it is what a look at it
    shows.
    """
    options, choice = request.options, snapshot.choice
    if choice is None or choice.model is None or not leaves_model_to_editor(snapshot.effective):
        return request
    if (options.model, options.max_context_tokens) != (choice.model, choice.max_tokens):
        return request
    plain = msgspec.structs.replace(options, model=None, max_context_tokens=None)
    return msgspec.structs.replace(request, options=plain)


def kept_with(conversation: Conversation, ledger: FolderLedger, changes: Mapping[str, Any]) -> Any:
    """What is sent besides, as it is kept, with some of it (by its names on the wire) replaced."""
    options = ledger.options(conversation.session)
    before = options.besides if options is not None and isinstance(options.besides, dict) else {}
    return msgspec.to_builtins(msgspec.convert({**before, **changes}, Besides)) or None


def _rendered(snapshot: Snapshot, conversation: Conversation, choice: ModelChoice | None) -> Snapshot:
    """The snapshot for a choice; of a conversation the last one is remembered."""
    if choice is None or choice == snapshot.choice:
        return snapshot
    rendered = conversation.rendered
    if rendered is None or rendered[0] is not snapshot or rendered[1].choice != choice:
        rendered = conversation.rendered = snapshot, for_choice(snapshot, choice)
    return rendered[1]


def _picked(
    snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger, options: Options
) -> SessionOptions | None:
    """What a turn with these options is made with; None: nothing is picked, now or before."""
    if not leaves_model_to_editor(snapshot.effective):
        return None
    sent, before = _kept(options), ledger.options(conversation.session)
    if options.model is not None:
        return SessionOptions(ModelChoice(options.model, options.max_context_tokens), sent)
    if before is None and sent is None:
        return None
    return SessionOptions(ModelChoice() if before is None else before.choice, sent)


def _kept(options: Options) -> Any:
    values = {name: getattr(options, name) for name in Besides.__struct_fields__}
    sent = {name: value for name, value in values.items() if value}  # an empty list is none
    return msgspec.to_builtins(Besides(**sent)) or None


def _asks_for_model(agent: "Agent") -> bool:
    from nexus_context.agents.spawn import requested_model

    return requested_model(agent) is not None


def _log_failure(writing: "Future[None]") -> None:
    error = None if writing.cancelled() else writing.exception()
    if isinstance(error, RequestError):
        logger.warning("the picked model holds in this process only: %s", error)
    elif error is not None:
        logger.error("the picked model is not written", exc_info=error)
