"""Messages between agents: priority, expiry and delivery."""

import tempfile
import time
from pathlib import Path

from nexus_context import open_ledger
from nexus_context.memory import node_messages

ledger = open_ledger(str(Path(tempfile.mkdtemp()) / "ledger.db"))
now = time.time()
sender = {"workspace": "/work/shop", "source": "planner", "target": "worker", "now": now}
for content, options in (("Read the plan.", {}), ("Stop.", {"priority": 0.9}), ("Old.", {"ttl": 60})):
    ledger.messages.send(node_messages.make(**sender, content=content, **options))

later = node_messages.inbox(ledger, "/work/shop", "worker", now=now + 61)
print([message.content for message in later])
print(node_messages.rendered(later[0]))
ledger.messages.delivered([later[0].id])
print(len(node_messages.inbox(ledger, "/work/shop", "worker", now=now + 61)))

# It prints:
# ['Stop.', 'Read the plan.']
# From planner, priority 0.9:
# Stop.
# 1
