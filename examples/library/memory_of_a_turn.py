"""All sources of memory for one turn, in their final order."""

import tempfile
import time
from pathlib import Path

from nexus_context import (
    DirectSource,
    Event,
    EventBus,
    EventSource,
    KnowledgeIndex,
    KnowledgeSource,
    Levels,
    MemorySource,
    get_token_counter,
    open_ledger,
)
from nexus_context.memory import knowledge, node_messages, sources

folder = Path(tempfile.mkdtemp())
(folder / "plan.md").write_text("Release the shop on Friday.\n")
index, counter = KnowledgeIndex(str(folder / "knowledge.db")), get_token_counter("gpt-4o")
knowledge.refresh(index, knowledge.settings_for(str(folder / "plan.md")))
ledger, bus = open_ledger(str(folder / "ledger.db")), EventBus()
now = time.time()
ledger.messages.send(
    node_messages.make(workspace=str(folder), source="lead", target="worker", content="Hurry.", now=now)
)
bus.publish(
    str(folder), [Event(action="thinking", text="The tests are slow.", agent="tester", above=("worker",))]
)

chosen = [
    MemorySource(Levels(ledger)),
    DirectSource(ledger),
    EventSource(bus),
    KnowledgeSource(lambda text: knowledge.query(index, text, counter, top_k=3, max_tokens=500)),
]
query = sources.Query(workspace=str(folder), now=now, agent="worker", text="When is the release?")
items, failures = sources.gather(chosen, query)
for item in items:
    print(item.source, "|", item.text.splitlines()[-1])
print(failures)

# It prints:
# message | Hurry.
# event | tester (assistant): The tests are slow.
# knowledge | Release the shop on Friday.
# []
