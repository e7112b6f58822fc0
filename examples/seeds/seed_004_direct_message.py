"""Seed 004, direct messages: one stands before the task of the agent that it is for, until it expires."""

import asyncio
import time

from nexus_context import EventBus, EventBusContextSource, Task, TaskContextManager, get_token_counter
from nexus_context.memory.task_context import event_of

direct_msg = Task(
    task_id="task-123:event:node.message",
    source_agent="agent-a",
    target_agent="agent-b",
    action="node.message",
    parameters={
        "content": "Please focus on the database migration plan.",
        "priority": 0.8,
        "ttl_seconds": 600,
        "target_node_id": "agent-b",
        "parent_task_id": "task-123",
        "metadata": {"reason": "handoff"},
    },
)
expired = Task(
    action="node.message",
    source_agent="agent-a",
    target_agent="agent-b",
    parameters={"content": "Too late.", "ttl_seconds": 1},
    created=time.time() - 60,
)
event_bus = EventBus()
event_bus.publish("", [event_of(direct_msg), event_of(expired)])
manager = TaskContextManager(
    token_counter=get_token_counter(), sources=[EventBusContextSource(event_bus=event_bus)]
)

task = Task(parameters={"content": "What next?"}, target_agent="agent-b")
messages = asyncio.run(manager.build_context(task))
print(messages[0]["content"])
assert messages == [
    {
        "role": "user",
        "content": "From agent-a, task task-123, priority 0.8:\nPlease focus on the database migration plan.",
    },
    {"role": "user", "content": "What next?"},
]
others = asyncio.run(manager.build_context(Task(parameters={"content": "Hm?"}, target_agent="agent-c")))
assert others == [{"role": "user", "content": "Hm?"}]
