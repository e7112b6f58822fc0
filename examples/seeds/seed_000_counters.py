"""Seed 000, "Custom Token Counter" and "TokenCounter Protocol": `count` and `count_messages` are enough."""

from nexus_context import ContextManager, SimpleTokenCounter, TiktokenCounter, get_token_counter

# auto-select, the simple one, and one encoding
print(get_token_counter().name, get_token_counter(use_tiktoken=False).name)
counter = TiktokenCounter(encoding_name="cl100k_base")
print(counter.count("Hello, world!"), SimpleTokenCounter().count("Hello, world!"))


class WordCounter:
    """A counter of one's own."""

    def count(self, text: str) -> int:
        return len(text.split())

    def count_messages(self, messages: list) -> int:
        return sum(4 + self.count(message.content) for message in messages)


context = ContextManager(counter=WordCounter())
context.add_user_message("Where is the gate?")
usage = context.get_token_usage()
print(usage["total"], usage.total, sum(row.tokens for row in usage.rows), usage.exact)

# It prints:
# cl100k_base characters
# 4 4
# 8 8 8 False
