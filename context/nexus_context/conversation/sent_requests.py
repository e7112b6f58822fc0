"""Remembers the last requests of a conversation, and decides which of them added messages answer.

1. Each request has an id. The message to append before an answer carries this id (`Message.answers` of a user
   message). For a request without a message of its own, that message is empty and is not stored.
2. Messages without an id answer the newest request that the conversation still continues: preferably one
   whose current message is their first message, else one without such a message, else any. If the
   conversation continues none of them, because another window appended messages meanwhile, they answer the
   request whose current message is their first message. Then their reasoning is not bound to that request.
3. Only the MOST_REQUESTS newest requests are remembered. An answer to a forgotten request is marked with the
   request's id. What its reasoning is bound to is not known, so the reasoning is never sent.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from nexus_context.conversation.agent_result import RequestBasis
from nexus_context.conversation.bound_thinking import SentRequest, bind_answers, has_reasoning
from nexus_context.conversation.compaction.server import SplitTurn, split_turn
from nexus_context.conversation.frozen import Proposal
from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, sent_message

MOST_REQUESTS = 8
"""Requests that may be answered: more than any program has under way in one conversation."""


class AssembledRequest(NamedTuple):
    """A request, and the `message` for which it was made, as it is appended to the conversation.

    `proposal` is what later requests begin with if this one is answered, or None if it decides nothing. `at`
    is when the request was made.
    """

    id: str
    sent: SentRequest
    message: Message | None
    proposal: Proposal | None
    at: datetime
    basis: RequestBasis | None = None

    def begins_with(self, message: Message) -> bool:
        """Whether a message is the request's own current message, with or without the preamble before its
        text.
        """
        current = self.sent.current
        if current is None or self.message is None or self.sent.appended or message.role != "user":
            return False
        return sent_message(message) == current or (
            message.preamble is None and message.content in (self.message.content, current.content)
        )


class BoundTurn(NamedTuple):
    """The messages to append, with what their reasoning is bound to. `request` is the request that they
    answer, or None if it is unknown.

    `continued` is that request as the next messages continue it, or None if they do not continue it.
    """

    split: SplitTurn
    request: AssembledRequest | None = None
    continued: SentRequest | None = None


class SentRequests:
    """The last requests of one conversation by id, oldest first. Only one thread may use it at a time."""

    def __init__(self) -> None:
        self._by_id: dict[str, AssembledRequest] = {}
        self.last: SentRequest | None = None  # the newest one: its budget is that of the conversation

    def add(self, request: AssembledRequest) -> None:
        """Remember a request as the newest one. If there are too many, forget the oldest."""
        self._by_id.pop(request.id, None)
        self._by_id[request.id] = request
        self.last = request.sent
        if len(self._by_id) > MOST_REQUESTS:
            del self._by_id[next(iter(self._by_id))]

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._by_id

    def drop_proposals(self) -> None:
        """Forget the proposals of all requests, because the beginning of requests has changed."""
        for request in self._by_id.values():
            if request.proposal is not None:
                self._by_id[request.id] = request._replace(proposal=None)

    def settle(self, turn: BoundTurn) -> None:
        """Note that a turn was appended to the conversation."""
        if turn.request is not None and turn.continued is not None:
            self.add(turn.request._replace(sent=turn.continued, proposal=None))

    def bind(self, messages: Sequence[Message], history: History, answered: str | None = None) -> BoundTurn:
        """Bind messages to the request that they answer, so that they can be appended to a history.

        A compaction that the provider's server made is split off the messages. `answered` is the id of the
        request, if the messages do not carry it.
        """
        answered = _named_request(messages) or answered
        request = self.answered_by(messages, history, answered)
        if answered is not None:
            messages = [message for original in messages for message in _without_id(original)]
        split = split_turn(messages)
        if request is None:
            if answered is not None:
                split = split._replace(messages=[_forgotten(message, answered) for message in split.messages])
            return BoundTurn(split)
        follows = request.sent.is_followed_by(history)
        if answered is None and not follows:
            return BoundTurn(split, request)
        bound, continued = bind_answers(split.messages, request.sent, summary=split.summary, kept=split.kept)
        return BoundTurn(split._replace(messages=bound), request, continued if follows else None)

    def answered_by(
        self, messages: Sequence[Message], history: History, answered: str | None
    ) -> AssembledRequest | None:
        """Return the request that these messages answer (rule 2). Return None if it is unknown or
        forgotten.
        """
        answered = _named_request(messages) or answered
        if answered is not None or not self._by_id:
            return None if answered is None else self._by_id.get(answered)
        newest_first = list(reversed(self._by_id.values()))
        requests = [request for request in newest_first if request.sent.is_followed_by(history)]
        if len(requests) == 1 or not messages:
            return next(iter(requests), None)
        begun = (request for request in requests or newest_first if request.begins_with(messages[0]))
        other_requests = (
            request for request in requests if request.sent.appended or request.sent.current is None
        )
        return next(begun, None) or next(other_requests, None) or next(iter(requests), None)


def _named_request(messages: Sequence[Message]) -> str | None:
    """The id of the request that a user message says it belongs to."""
    for message in messages:
        if message.answers is not None and message.role == "user":
            return message.answers
    return None


def _without_id(message: Message) -> tuple[Message, ...]:
    """A message without the id of the request that it names; nothing if it holds nothing else."""
    if message.answers is None or message.role != "user":
        return (message,)
    if message.content is msgspec.UNSET and message.preamble is None:
        return ()
    return (msgspec.structs.replace(message, answers=None),)


def _forgotten(message: Message, request: str) -> Message:
    """An answer to a request that is not known any more; others unchanged."""
    is_answer = message.role == "assistant" and message.answers is None and has_reasoning(message)
    return msgspec.structs.replace(message, answers=request) if is_answer else message
