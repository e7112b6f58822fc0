"""Seed 000, "With AgentPool (Multi-Agent)".

As SPEC decides, a pool belongs to a folder, `spawn` replaces `create`, and each agent reads its own
directory. The agent's context is `agent.conversation`.
"""

import os
import tempfile
from pathlib import Path

from nexus_context import AgentPool, LoadInputs, detect, global_directory, load, user_home

folder = Path(tempfile.mkdtemp()).resolve()
(folder / "NEXUS.md").write_text("Answer in one sentence.\n")
(folder / "auth").mkdir()
(folder / "auth" / "NEXUS.md").write_text("Never log a token.\n")

# the shared components
inputs = LoadInputs(
    home=global_directory(os.environ),
    user_home=user_home(os.environ),
    environ=os.environ,
    environment=detect("server", environ=os.environ),
)
pool = AgentPool(load(str(folder), inputs), inputs, roots=[str(folder)])

# an agent with a context of its own
agent = pool.spawn("worker-1", "auth")
agent.conversation.add_user_message("Fix the login.")
agent.conversation.set_tool_definitions([{"name": "read", "description": "Reads a file."}])
usage = agent.conversation.get_token_usage()
print(usage == agent.usage(), usage["messages"], [message.role for message in agent.conversation.messages])
text = agent.conversation.build_messages()[0].content
print("Never log a token." in text, "Answer in one sentence." in text)

# an agent with another system prompt
custom = pool.spawn("custom-worker", system_prompt="You are a specialized assistant.")
print(custom.conversation.system_prompt.startswith("You are a specialized assistant."))

# It prints:
# True 8 ['user']
# True True
# True
