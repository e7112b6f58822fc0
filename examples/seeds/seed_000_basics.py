"""Seed 000, "Basic Context Management", "Check Token Usage" and "HTTP Server Mode".

The names of `nexus3.context` are those of `nexus_context`. As SPEC decides, a message says when the session
began only if the program says so (`started=`), and the time of day goes into the last user message, not
into the prompt.
"""

from nexus_context import ContextConfig, ContextManager, PromptLoader, get_system_info

# load the system prompt
loader = PromptLoader()
prompt = loader.load()

# create the context manager
config = ContextConfig(max_tokens=8000, reserve_tokens=2000)
context = ContextManager(config)
context.set_system_prompt(prompt.content)
context.set_tool_definitions([{"name": "read", "description": "Reads a file."}])

# add messages
context.add_user_message("Hello!")
context.add_assistant_message("Hi there!")

# build for the API call
messages = context.build_messages()
tools = context.get_tool_definitions()
print([message.role for message in messages], [tool["name"] for tool in tools])

usage = context.get_token_usage()
print(
    usage["total"] == usage["system"] + usage["tools"] + usage["messages"],
    usage["budget"],
    usage["available"],
)
if context.is_over_budget():
    print("Context will be truncated on next build_messages()")

# for a server: other facts about the system
result = loader.load(is_repl=False)
print(result.content.endswith(get_system_info(is_repl=False)), result.content == prompt.content)

# It prints:
# ['system', 'user', 'assistant'] ['read']
# True 8000 6000
# True False
