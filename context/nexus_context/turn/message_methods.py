"""Provides the methods with which a program writes a conversation. All of them use `add`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nexus_context.conversation import coercion
from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.conversation.tool_pairs import is_answered_batch, missing_results, paired
from nexus_context.folder.prompt import texts


class MessageMethods(ABC):
    """Base class of `ContextManager` with a method for each kind of message, and methods that repair the
    history.
    """

    @property
    @abstractmethod
    def history(self) -> History:
        """All loaded messages since the last compaction."""

    @abstractmethod
    def add(self, messages: Iterable[Message]) -> None:
        """Add messages to the conversation."""

    @abstractmethod
    def _arrange(self, order: Sequence[int]) -> None:
        """Keep the messages of these indexes, in this order."""

    def add_user_message(self, content: str | Sequence[Any]) -> None:
        """Add a user message. `content` is a text, or parts such as `{"type": "text", "text": …}`."""
        self.add([Message("user", coercion.content_from(content))])

    def add_assistant_message(
        self,
        content: str | Sequence[Any] | None,
        tool_calls: Iterable[ToolCall | Mapping[str, Any]] | None = None,
    ) -> None:
        """Add the model's answer: its text and its tool calls. A call is `{"id", "name", "arguments"}`, or
        has OpenAI's form.
        """
        parts = None if content is None else coercion.content_from(content)
        self.add([Message("assistant", parts, coercion.tool_calls_from(tool_calls))])

    def add_tool_result(self, tool_call_id: str, name: str, result: Any) -> None:
        """Add the result of the tool call with this id. `result` is a text, parts, or a value that is sent as
        JSON.
        """
        call = coercion.text_from(tool_call_id, "tool_call_id")
        tool = coercion.text_from(name, "name")
        self.add([Message("tool", coercion.result_from(result), tool_call_id=call, name=tool)])

    # ------------------------------------------------------------ repairs

    def prune_unpaired_tool_results(self) -> int:
        """Drop results that do not follow their call, or that answer a call again. Return how many were
        dropped.

        A ledger still has the dropped results, so they are back when the session is read again.
        """
        self.history.needs_all()
        order = paired(self.history.messages)
        dropped = len(self.history) - len(order)
        self._arrange(order)
        return dropped

    def fix_orphaned_tool_calls(self) -> None:
        """Add a result to each call without one. Its text says that there was no result, as requests say
        anyway.
        """
        self.history.needs_all()
        missing = missing_results(self.history.messages)
        count_before = len(self.history)
        self.add([result for _, result in missing])
        if len(self.history) != count_before + len(missing):
            return  # another program wrote to the session: it was read anew
        sort_keys = [(index, 1) for index in range(count_before)] + [(position, 0) for position, _ in missing]
        self._arrange(sorted(range(len(sort_keys)), key=sort_keys.__getitem__))

    def ensure_assistant_after_tool_results(self) -> bool:
        """Add an assistant's note if the last messages are tool calls with all their results. Return whether
        it was added.

        Call it before the user's next message, not while a model is still calling tools.
        """
        is_added = is_answered_batch(self.history.messages)
        if is_added:
            self.add([Message("assistant", texts.text("results_end"))])
        return is_added
