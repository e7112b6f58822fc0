"""The four levels of memory of a session."""

import tempfile
from pathlib import Path

from nexus_context import Levels, Message, ToolCall, open_ledger
from nexus_context.ledger.records import Counted, NewTurn

ledger = open_ledger(str(Path(tempfile.mkdtemp()) / "ledger.db"))
FOLDER = "/work/shop"


def append(session: str, *messages: Message) -> None:
    counted = tuple(Counted(message, 10) for message in messages)
    ledger.append(FOLDER, session, NewTurn(messages=counted, counter="estimate"))


append("monday", Message("user", "Never log card numbers."), Message("assistant", "Understood."))
call = ToolCall("call_1", "shell", {"command": "pytest tests/cart.py"})
append("tuesday", Message("user", "Run the tests."), Message("assistant", None, tool_calls=(call,)))
append("tuesday", Message("tool", "E   KeyError: 'total'\nexit code 1", tool_call_id="call_1", name="shell"))
append("tuesday", Message("user", "Hm."), Message("assistant", "The cart has no total."))

for field in ("name", "price", "total"):
    append("tuesday", Message("user", f"Add the {field}."), Message("assistant", "Added."))

levels = Levels(ledger)
print("L1", [entry.text for entry in levels.recent(FOLDER, "tuesday", limit=2)])
print("L2", [entry.text for entry in levels.important(FOLDER, "tuesday", limit=1)])
print("L3", [entry.text.splitlines()[2:4] for entry in levels.summaries(FOLDER, "tuesday", limit=1)])
print("L4", [(entry.session, entry.text) for entry in levels.across(FOLDER, "card numbers", limit=1)])

# It prints:
# L1 ['user: Add the total.', 'assistant: Added.']
# L2 ["user: Run the tests.\nKeyError: 'total' (in `pytest tests/cart.py`)"]
# L3 [['## Goal', '- Run the tests.']]
# L4 [('monday', 'user: Never log «card» «numbers».')]
