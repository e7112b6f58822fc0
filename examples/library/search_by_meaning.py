"""Passages that are found by meaning, with a model on the disk."""

import tempfile
from pathlib import Path

from nexus_context import KnowledgeIndex, Vectors, get_token_counter
from nexus_context.memory import knowledge

folder = Path(tempfile.mkdtemp())
(folder / "docs").mkdir()
(folder / "docs" / "money.md").write_text("Customers get their money back within thirty days.\n")
(folder / "docs" / "pool.md").write_text("Each process keeps at most twenty connections.\n")

index = KnowledgeIndex(str(folder / "knowledge.db"))
knowledge.refresh(index, knowledge.settings_for(str(folder / "docs")))
vectors = Vectors(index, knowledge.load_model(knowledge.find_model()))
print(vectors.refresh().embedded, vectors.refresh().embedded)
counter = get_token_counter("gpt-4o")
for message in ("a refund for a client", "how many connections may a process have?"):
    (best, *_) = knowledge.query(index, message, counter, top_k=3, max_tokens=500, vectors=vectors)
    print(best.text.strip(), best.matched_by)

# It prints:
# 2 0
# Customers get their money back within thirty days. ('meaning',)
# Each process keeps at most twenty connections. ('words', 'meaning')
