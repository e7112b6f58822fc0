"""Seed 004, token limit strategy and memory by session: the newest stay, and the model queries the rest."""

import asyncio
import tempfile
from pathlib import Path

from nexus_context import (
    Levels,
    MemoryContextSource,
    MemoryTools,
    Message,
    Task,
    TaskContextManager,
    get_token_counter,
    open_ledger,
)
from nexus_context.ledger.records import Counted, NewTurn

folder = tempfile.mkdtemp()
session = "session-2026-01-28"
ledger = open_ledger(str(Path(folder, "ledger.db")))
for number in range(1, 9):
    message = Message("user", f"msg{number}: always keep page {number}. " + "word " * 40)
    ledger.append(folder, session, NewTurn(messages=(Counted(message, 50),), counter="estimate"))
levels, counter = Levels(ledger), get_token_counter()


async def main() -> None:
    manager = TaskContextManager(
        token_counter=counter,
        sources=[MemoryContextSource(memory=levels, workspace=folder)],
        max_tokens=200,
        system_prompt="You are brief.",
    )
    messages = await manager.build_context(Task(parameters={"content": "Go on."}, session_id=session))
    kept = [message["content"].partition(":")[0] for message in messages]
    print(kept)
    assert kept == ["You are brief.", "msg6", "msg7", "msg8", "Go on."]
    assert counter.count_messages([Message(one["role"], one["content"]) for one in messages]) <= 200

    executor = MemoryTools(levels, workspace=folder)
    l2 = await executor.execute("query_l2_memory", {"limit": 10, "session_id": session})
    l3 = await executor.execute("query_l3_memory", {"limit": 20, "session_id": session})
    print(l2.splitlines()[1][:36])
    assert "always keep page 1." in l2
    assert "page 1" in l3


asyncio.run(main())
ledger.close()
