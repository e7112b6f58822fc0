"""Seed 004, basic usage, sources, sessions and knowledge: the messages for a task."""

import asyncio
import tempfile
from pathlib import Path

from nexus_context import (
    Event,
    EventBus,
    EventBusContextSource,
    KnowledgeIndex,
    Levels,
    MemoryContextSource,
    Message,
    Task,
    TaskContextManager,
    get_token_counter,
    open_ledger,
)
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.memory import knowledge

folder = tempfile.mkdtemp()
session = "session-2026-01-28"
counter = get_token_counter()

# a session with one turn, an event of it, and a file to search
ledger = open_ledger(str(Path(folder, "ledger.db")))
turn = [Message("user", "Never log a password."), Message("assistant", "Understood.")]
ledger.append(folder, session, NewTurn(messages=tuple(Counted(one, 5) for one in turn), counter="estimate"))
event_bus = EventBus()
event_bus.publish(
    folder,
    [
        Event(action="tool_call", tool="ls", session=session),
        Event(action="thinking", text="Elsewhere.", session="x"),
    ],
)
Path(folder, "data.md").write_text("The file data.txt has one price per line.\n")
index = KnowledgeIndex(str(Path(folder, "knowledge.db")))
knowledge.refresh(index, knowledge.settings_for(str(Path(folder, "data.md"))))

context_manager = TaskContextManager(
    token_counter=counter,
    sources=[
        MemoryContextSource(memory=Levels(ledger), workspace=folder),
        EventBusContextSource(event_bus=event_bus, workspace=folder),
    ],
    max_tokens=4000,
    system_prompt="You are a helpful AI assistant",
    knowledge_base=index,
)
current_task = Task(
    task_id="task_123",
    action="execute",
    parameters={"content": "Read file data.txt"},
    session_id=session,
)
messages = asyncio.run(context_manager.build_context(current_task))
for message in messages:
    print(f"{message['role']}: {message['content'].splitlines()[-1]}")
assert [message["role"] for message in messages] == [
    "system",
    "user",
    "assistant",
    "assistant",
    "system",
    "user",
]
assert messages[1]["content"] == "Never log a password."
assert messages[3]["content"] == "[Calling ls()]"
assert "one price per line" in messages[4]["content"]
assert messages[-1] == {"role": "user", "content": "Read file data.txt"}
ledger.close()
