"""Seed 000, "With Session Logger" and "Temporal Context".

As SPEC decides, the ledger keeps what the seed's `SessionLogger` logs: `ledger=`, `folder=` and `session=`
take the place of `logger=`. Each message is stored before it is in memory; what a cut leaves out stays in
the ledger.
"""

import tempfile
from pathlib import Path

from nexus_context import ContextConfig, ContextManager, open_ledger

with tempfile.TemporaryDirectory() as state:
    logger = open_ledger(str(Path(state) / "ledger.db"))
    context = ContextManager(config=ContextConfig(), ledger=logger, folder="/work/castle", session="main")
    context.set_system_prompt("You are helpful.")
    context.add_user_message("Hello!")  # stored
    context.add_assistant_message(None, [{"id": "c1", "name": "read", "arguments": {"path": "a.py"}}])
    context.add_tool_result("c1", "read", "x = 1")
    stored = logger.history("/work/castle", "main").messages
    print([one.message.role for one in stored])

    # the session's start is in the history; the time of day is in the last user message of each request
    messages = context.build_messages()
    print(
        messages[1].content[:18],
        "|",
        messages[2].content[:14],
        messages[2].content[-8:].split(),
        messages[-1].role,
    )

    again = ContextManager(ledger=logger, folder="/work/castle", session="main")
    print(again.messages == context.messages)
    logger.close()

# It prints:
# ['user', 'user', 'assistant', 'tool']
# [Session started:  | Current time:  ['Hello!'] tool
# True
