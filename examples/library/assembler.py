"""Contexts from a session store, tools and a folder, cached."""

import tempfile
from pathlib import Path

from nexus_context import Message, ToolList, create_context_assembler

folder = Path(tempfile.mkdtemp()).resolve()
(folder / "AGENTS.md").write_text("Answer in one sentence.\n")


class Sessions:
    """Two methods make a session store; `LedgerStore` is the one of a ledger."""

    def get_messages(self, session_id):
        return [Message("user", "Where is the gate?")]

    def get_metadata(self, session_id):
        return {"parameters": {"temperature": 0.5}}


settings = {"provider": {"model": "gpt-4o"}, "context": {"datetime": {"placement": "off"}}}
tools = ToolList([{"name": "fs.read"}, {"name": "fs.write"}])
assembler = create_context_assembler(Sessions(), tools, folder=folder, config=settings)

context = assembler.assemble("main", disabled_tools=["fs.write"], max_tokens=100)
print("one sentence" in context.system_prompt, [message.role for message in context.messages])
print([tool["name"] for tool in context.tools], context.parameters)
print(context.metadata.model_id, context.metadata.should_compact, context.metadata.cached)
print(assembler.assemble("main", disabled_tools=["fs.write"], max_tokens=100).metadata.cached)
print(assembler.get_cache_stats().hit_rate, assembler.check_compaction("main").needed)

# It prints:
# True ['user']
# ['fs.read'] {'temperature': 0.5, 'max_tokens': 100}
# gpt-4o False False
# True
# 0.5 False
