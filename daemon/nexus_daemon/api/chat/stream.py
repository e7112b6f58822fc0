"""Send a turn to the client as it happens: `$/progress` with lists of items.

A provider may send hundreds of pieces of text a second. The first piece is sent at once. Later pieces are
collected until FRAME_S after the last message: people see no difference, and the client reads fewer messages.
"""

import asyncio
from typing import TYPE_CHECKING

import msgspec

from nexus_daemon.lsp.progress import PROGRESS
from nexus_daemon.protocol.chat import ChatItem, ChatParams

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

FRAME_S = 1 / 60


class ChatStream:
    """Sends the client the progress of one turn; without a `token` it sends nothing.

    Use it on the event loop.

    If `agent` is given, the turn is that of an agent within another turn. Then only its tool calls and their
    results are sent, each with the agent's name.
    """

    def __init__(self, client: "Connection", token: int | str | None, *, agent: str | None = None) -> None:
        self._client = client
        self._token = token
        self._agent = agent
        self._kind = ""
        self._texts: list[str] = []
        self._sent = 0.0  # when text was sent last, by the loop's clock
        self._timer: asyncio.TimerHandle | None = None

    def add_text(self, kind: str, text: str) -> None:
        """Send a piece of the answer or of the thinking (`kind`), within FRAME_S."""
        if self._token is None or self._agent is not None or not text:
            return
        if kind != self._kind:
            self.flush()
            self._kind = kind
        self._texts.append(text)
        if self._timer is None:
            loop = asyncio.get_running_loop()
            wait_s = self._sent + FRAME_S - loop.time()
            if wait_s <= 0:
                self.flush()
            else:
                self._timer = loop.call_later(wait_s, self.flush)

    def add(self, item: ChatItem) -> None:
        """Send an item now, after the text that waits."""
        self.flush()
        if self._agent is not None:
            if item.kind not in ("toolCall", "toolResult"):
                return
            item = msgspec.structs.replace(item, agent=self._agent)
        if self._token is not None:
            self._client.notify(PROGRESS, ChatParams(self._token, [item]))

    def flush(self) -> None:
        """Send the text that waits, if there is any."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._texts and self._token is not None:
            item = ChatItem(self._kind, text="".join(self._texts))
            self._texts.clear()
            self._sent = asyncio.get_running_loop().time()
            self._client.notify(PROGRESS, ChatParams(self._token, [item]))
