"""A conversation that is a session of a ledger, continued by a second object."""

import tempfile
from datetime import UTC, datetime
from pathlib import Path

from nexus_context import ContextManager, open_ledger

noon = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)  # leave both out, and the computer's clock is used
with tempfile.TemporaryDirectory() as state:
    ledger = open_ledger(str(Path(state) / "ledger.db"))
    chat = ContextManager(
        ledger=ledger, folder="/work/castle", session="gate", started=noon, clock=lambda: noon
    )
    chat.add_user_message("Where is the gate?")
    chat.add_assistant_message("Behind the north wall.")

    again = ContextManager(ledger=ledger, folder="/work/castle", session="gate", clock=lambda: noon)
    again.add_user_message("Is it open?")
    for message in again.build_messages():
        print(message.role, "|", message.content.replace("\n", " "))
    print(again.get_token_usage()["messages"], len(ledger.history("/work/castle", "gate").messages))
    ledger.close()

# It prints:
# user | [Session started: 2026-11-22 12:00 (local)]
# user | Current time: 2026-11-22 12:00 (UTC+00:00)  Where is the gate?
# assistant | Behind the north wall.
# user | Current time: 2026-11-22 12:00 (UTC+00:00)  Is it open?
# 90 4
