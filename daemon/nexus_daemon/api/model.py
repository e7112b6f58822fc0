"""Answer `nexus/model/pick`: the user picks the model of a conversation before its next turn."""

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING

import msgspec

from nexus_context.config.picked_model import ModelChoice, leaves_model_to_editor
from nexus_context.errors import RequestError
from nexus_context.folder.snapshot import Snapshot
from nexus_context.ledger.records import SessionOptions
from nexus_daemon import protocol
from nexus_daemon.api.resolve import using, with_choice
from nexus_daemon.sessions import next_request, usage

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

LARGEST = (1 << 53) - 1
"""The largest whole number that every reader of JSON reads exactly. The ledger has room for it."""

PATIENCE_S = 2.0
"""Seconds for which the reply waits for the ledger; in this process the choice applies at once."""


async def pick(client: "Connection", params: protocol.PickParams) -> protocol.PickResult:
    """Pick the model of a conversation before its next turn. From now on all figures are for this model.

    The ledger stores the choice for the conversation. It also stores it as the folder's latest choice, which
    conversations without a turn use. Other windows follow. Without `model`, the conversation returns to the
    model of the settings. If the settings do not leave the model to the editor (`provider.name`), picking is
    an error.
    """
    async with using(client, params) as scope:
        conversation, ledger = scope.conversation, scope.ledger
        options = SessionOptions(
            _choice(scope.snapshot, params), next_request.besides_with(conversation, ledger, _tools(params))
        )
        conversation.turn.options = None  # of a turn that was never appended
        writing = next_request.pick_options(conversation, ledger, options)
        problem = None if writing is None else await _failure(writing)
        snapshot = await with_choice(client, scope.snapshot, conversation, ledger, agent=scope.agent)
        token_usage = await client.work(usage.read_usage, msgspec.structs.replace(scope, snapshot=snapshot))
    persists = problem is None and ledger.store.persists
    return protocol.PickResult(params.session, token_usage, persists, problem)


def _choice(snapshot: Snapshot, params: protocol.PickParams) -> ModelChoice:
    """The requested choice. RequestError if the settings do not allow one."""
    if not leaves_model_to_editor(snapshot.effective):
        name = snapshot.effective.get("/provider/name")
        raise RequestError(
            f"The settings name the provider {name}, so the setting provider.model decides the model. "
            "Change that setting, or set provider.name to editor.",
            code="model-of-settings",
        )
    if params.model is None:
        return ModelChoice()
    if not params.model.strip():
        raise RequestError("`model` is empty: name a model, or leave it out.", code="bad-option")
    if params.max_context_tokens is not None and not 1 <= params.max_context_tokens <= LARGEST:
        raise RequestError(
            f"`maxContextTokens` is {params.max_context_tokens}: it must be from 1 to {LARGEST}.",
            code="bad-option",
        )
    return ModelChoice(params.model, params.max_context_tokens)


def _tools(params: protocol.PickParams) -> dict[str, bool]:
    tools = {
        "memoryTools": params.memory_tools,
        "skillTools": params.skill_tools,
        "agentTools": params.agent_tools,
    }
    return {name: value for name, value in tools.items() if value is not None}


async def _failure(writing: "Future[None]") -> str | None:
    """Why the ledger does not have the choice; None if it has."""
    try:
        await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(writing)), PATIENCE_S)
    except TimeoutError:
        return "Another program is using the ledger; the choice is not written yet."
    except RequestError as error:
        return str(error)
    return None
