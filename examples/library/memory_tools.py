"""The tools with which a model asks for memory."""

import tempfile
from pathlib import Path

from nexus_context import Levels, Message, open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.memory import queries

ledger = open_ledger(str(Path(tempfile.mkdtemp()) / "ledger.db"))
message = Counted(Message("user", "Never touch sign() in auth/tokens.py."), 10)
ledger.append("/work/shop", "monday", NewTurn(messages=(message,), counter="estimate"))

print([tool["name"] for tool in queries.definitions()])
arguments = '{"query": "sign", "limit": 3}'  # as the model wrote them
answer = queries.run("query_l4_memory", arguments, levels=Levels(ledger), workspace="/work/shop")
print(answer.splitlines()[-1])

# It prints:
# ['query_l2_memory', 'query_l3_memory', 'query_l4_memory']
# user: Never touch «sign»() in auth/tokens.py.
