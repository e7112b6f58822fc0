"""Choose what a conversation's next request is made with: the picked model, and what is sent beside the
messages.

1. If the settings leave the model to the editor, a request with a user's message names the model. From then
   on it applies to the conversation, and to those conversations of its folder that have no turn
   (`ledger_writer`).
2. The model and its window become settings of the conversation's snapshot, so every figure is for them.
3. A live agent that was started with a model keeps it until a turn in its own conversation names another. In
   all other cases the model that was last used in the folder applies.
"""

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.config.picked_model import ModelChoice, leaves_model_to_editor
from nexus_context.conversation.tools import name_of
from nexus_context.errors import RequestError
from nexus_context.folder.request_prompt import for_choice
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.records import SessionOptions
from nexus_context.text.decoding import convert_to
from nexus_context.turn.request import Options, Request
from nexus_daemon.process import lazy
from nexus_daemon.sessions.conversations import Conversation
from nexus_daemon.sessions.ledger_writer import FolderLedger

if TYPE_CHECKING:  # most conversations are of no agent
    from nexus_context.agents import Agent
    from nexus_daemon.sessions.scope import SessionScope

logger = logging.getLogger(__name__)


class SentBesides(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The options of a request that say what is sent beside the messages."""

    additional_system_prompt: str | None = None
    additional_tools: Sequence[dict[str, Any]] = ()
    disabled_tools: Sequence[str] = ()
    memory_tools: bool = False
    skill_tools: bool = False
    agent_tools: bool = False


_EXPECTED = (
    *SentBesides.__struct_fields__,
    *("server_tools", "tool_format", "skills", "skip_skills", "skill_filter"),
)


def choice_of(
    conversation: Conversation, ledger: FolderLedger | None, agent: "Agent | None" = None
) -> ModelChoice | None:
    """Return the picked model of the conversation, without reading the disk.

    None if the snapshot's own model applies.
    """
    if ledger is None:
        return None
    has_model = agent is not None and lazy.spawn.requested_model(agent) is not None
    options = (ledger.session_options if has_model else ledger.options)(conversation.session)
    return None if options is None else options.choice


def snapshot_for(
    snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger | None, agent: "Agent | None" = None
) -> Snapshot:
    """Return the snapshot with the model of the conversation.

    Call it in a worker thread, since rendering is slow.
    """
    return _rendered(snapshot, conversation, choice_of(conversation, ledger, agent))


def snapshot_for_turn(scope: "SessionScope", options: Options) -> Snapshot:
    """Return the snapshot with the model of a turn.

    The model, window and tools of `options` apply to the conversation from now on.
    """
    snapshot, conversation, ledger = scope.snapshot, scope.conversation, scope.ledger
    picked = _picked(snapshot, conversation, ledger, options)
    if picked is None:
        return snapshot_for(snapshot, conversation, ledger, scope.agent)
    conversation.turn.options = picked  # the ledger takes them as the conversation's with its next turn
    pick_options(conversation, ledger, picked)
    return _rendered(snapshot, conversation, picked.choice)


def options_beside(snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger | None) -> Options:
    """Return the options that each request of the conversation sends beside the messages.

    They are those of the last request that set them. Empty if the settings choose the model.
    """
    options = None if ledger is None else ledger.options(conversation.session)
    if options is None or not leaves_model_to_editor(snapshot.effective):
        return Options()
    try:
        besides = convert_to(options.besides or {}, SentBesides)
    except msgspec.ValidationError:  # a later version of Nexus may write other fields
        return Options()
    return Options(**msgspec.structs.asdict(besides))


def options_of_look(snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger | None) -> Options:
    """Predict what the next request sends beside the messages: the same as the last request.

    After a restart only the tools of the last request are known.
    """
    options, last_options = options_beside(snapshot, conversation, ledger), conversation.last_options
    frozen = conversation.manager.frozen
    if frozen is None:
        return options
    if last_options is not None:
        last_options = with_turn_tools(last_options, conversation.last_turn_tools)
        return msgspec.structs.replace(options, **{name: getattr(last_options, name) for name in _EXPECTED})
    names = {name_of(tool) for tool in options.additional_tools}
    frozen_tools = [tool for tool in frozen.latest.tools if name_of(tool) not in names]
    return msgspec.structs.replace(options, additional_tools=[*options.additional_tools, *frozen_tools])


def expected(scope: "SessionScope", options: Options) -> tuple[Snapshot, Options]:
    """Return the snapshot and options of the next turn, if a client expects it to have `options`.

    Options that were picked, or that the last turn had, apply to the next turn. If the settings choose the
    model, only the client's tools count.
    """
    snapshot, conversation, ledger = scope.snapshot, scope.conversation, scope.ledger
    if not leaves_model_to_editor(snapshot.effective):
        tools = ("memory_tools", "skill_tools", "agent_tools")
        return snapshot, Options(**{name: getattr(options, name) for name in tools})
    if ledger.options(conversation.session) is not None:
        return snapshot, options_beside(snapshot, conversation, ledger)
    if options.model is None:
        return snapshot, options
    choice = ModelChoice(options.model, options.max_context_tokens)
    without_choice = msgspec.structs.replace(options, model=None, max_context_tokens=None)
    return _rendered(snapshot, conversation, choice), without_choice


def with_turn_tools(options: Options, tools: Sequence[dict[str, Any]]) -> Options:
    """Add tools that only this turn has to the options. They never become the conversation's."""
    if not tools:
        return options
    return msgspec.structs.replace(options, additional_tools=[*options.additional_tools, *tools])


def without_turn_tools(options: Options, tools: Sequence[dict[str, Any]]) -> Options:
    """Undo `with_turn_tools`: remove these tools from the end of the options."""
    own_tools = options.additional_tools[: len(options.additional_tools) - len(tools)]
    return msgspec.structs.replace(options, additional_tools=own_tools)


def pick_options(
    conversation: Conversation, ledger: FolderLedger, options: SessionOptions
) -> "Future[None] | None":
    """Use these options for the conversation from now on.

    The future is done when they are written. None if the ledger has them already.
    """
    if options == ledger.session_options(conversation.session) == ledger.session_options(None):
        return None
    writing = ledger.put_options(conversation.session, options)
    writing.add_done_callback(_log_failure)
    return writing


def without_repetition(request: Request, snapshot: Snapshot) -> Request:
    """Remove the model and window from a request if they are the snapshot's anyway.

    Its figures then equal those of a request that names neither.
    """
    options, choice = request.options, snapshot.choice
    if choice is None or choice.model is None or not leaves_model_to_editor(snapshot.effective):
        return request
    if (options.model, options.max_context_tokens) != (choice.model, choice.max_tokens):
        return request
    plain = msgspec.structs.replace(options, model=None, max_context_tokens=None)
    return msgspec.structs.replace(request, options=plain)


def besides_with(conversation: Conversation, ledger: FolderLedger, changes: Mapping[str, Any]) -> Any:
    """Return the stored fields sent beside the messages, with `changes` (by wire name) applied."""
    options = ledger.options(conversation.session)
    stored_besides = options.besides if options is not None and isinstance(options.besides, dict) else {}
    return msgspec.to_builtins(convert_to({**stored_besides, **changes}, SentBesides)) or None


def _rendered(snapshot: Snapshot, conversation: Conversation, choice: ModelChoice | None) -> Snapshot:
    """The snapshot for a choice. A conversation keeps its last one."""
    if choice is None or choice == snapshot.choice:
        return snapshot
    rendered = conversation.turn.rendered
    if rendered is None or rendered[0] is not snapshot or rendered[1].choice != choice:
        rendered = conversation.turn.rendered = snapshot, for_choice(snapshot, choice)
    return rendered[1]


def _picked(
    snapshot: Snapshot, conversation: Conversation, ledger: FolderLedger, options: Options
) -> SessionOptions | None:
    """Return the model and other options that a turn picks. None if nothing is or was picked."""
    if not leaves_model_to_editor(snapshot.effective):
        return None
    besides, stored_options = _besides(options), ledger.options(conversation.session)
    if options.model is not None:
        return SessionOptions(ModelChoice(options.model, options.max_context_tokens), besides)
    if stored_options is None and besides is None:
        return None
    return SessionOptions(ModelChoice() if stored_options is None else stored_options.choice, besides)


def _besides(options: Options) -> Any:
    values = {name: getattr(options, name) for name in SentBesides.__struct_fields__}
    filled_fields = {name: value for name, value in values.items() if value}
    return msgspec.to_builtins(SentBesides(**filled_fields)) or None


def _log_failure(writing: "Future[None]") -> None:
    error = None if writing.cancelled() else writing.exception()
    if isinstance(error, RequestError):
        logger.warning("the picked model holds in this process only: %s", error)
    elif error is not None:
        logger.error("writing the picked model failed", exc_info=error)
