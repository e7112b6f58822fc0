"""A turn that is stored once, found by its words, and restored."""

import tempfile
from pathlib import Path

from nexus_context import ContextManager, Counted, Message, NewTurn, get_token_counter, open_ledger

counter = get_token_counter()
messages = [Message("user", "Where is the gate?"), Message("assistant", "Behind the north wall.")]
counted = tuple(Counted(message, counter.count_messages([message])) for message in messages)

with tempfile.TemporaryDirectory() as state:
    ledger = open_ledger(str(Path(state) / "ledger.db"))  # without a path: the user's own
    first = ledger.append(
        "/work/castle", "main", NewTurn(messages=counted, counter=counter.name, key="turn-1")
    )
    again = ledger.append(
        "/work/castle", "main", NewTurn(messages=counted, counter=counter.name, key="turn-1")
    )
    print(first.head.messages, again.repeated, again.turn == first.turn)
    print([hit.snippet for hit in ledger.pages.search("north")])

    history = ledger.history("/work/castle", "main").messages
    chat = ContextManager(counter=counter)
    chat.restore(
        [one.message for one in history], tokens=[one.tokens for one in history], counter=counter.name
    )
    print([message.content for message in chat.messages])
    ledger.close()

# It prints:
# 2 True True
# ['Behind the «north» wall.']
# ['Where is the gate?', 'Behind the north wall.']
