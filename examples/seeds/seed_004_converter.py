"""Seed 004, message converter: what a task is as a message."""

from nexus_context import Message, Task
from nexus_context.memory.task_context import message_of_task

thinking = Task(action="node.thinking", parameters={"content": "I need to..."})
execute = Task(action="execute", parameters={"content": "Read file X"})
call = Task(action="node.tool_call", parameters={"tool_name": "read_file"})
result = Task(action="node.tool_result", parameters={"content": "long"})

assert message_of_task(thinking) == Message("assistant", "I need to...")
assert message_of_task(execute) == Message("user", "Read file X")
assert message_of_task(call) == Message("assistant", "[Calling read_file()]")
assert message_of_task(result) is None
print("converted")
