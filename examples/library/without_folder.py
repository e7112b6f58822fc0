"""A conversation without a folder: cuts, names of what was cut, a summary and its undo."""

from datetime import datetime

from nexus_context import ContextConfig, ContextManager

chat = ContextManager(ContextConfig(max_tokens=2_000, reserve_tokens=500))
chat.set_system_prompt("You keep a ship's log.")
for day in range(1, 61):
    chat.add_user_message(f"Day {day}: we are at waypoint WP-{day:03}. Log it.")
    call = {"id": f"call_{day}", "name": "log", "arguments": {"waypoint": f"WP-{day:03}"}}
    chat.add_assistant_message(None, [call])
    chat.add_tool_result(f"call_{day}", "log", "ok")
    chat.add_assistant_message("Logged.")

# what is sent fits: cut at the start of a turn, with the names of what was cut
print(len(chat), chat.is_over_budget())
sent = chat.build_messages()
print(len(sent), chat.is_over_budget())
for message in sent[:4]:
    print(message.role, "|", message.content[:72])
for row in chat.get_token_usage().rows:
    print(row.tokens, row.label)

# a summary for what is old, a receipt of what is nowhere any more, and the way back
receipt = chat.compact(made_at=datetime(2026, 11, 22, 9, 30), pins=["Never log WP-013."])
print(receipt.summarizer, receipt.replaced_messages, receipt.tokens_before > receipt.tokens_after)
print(chat.messages[0].content.splitlines()[0], len(chat), receipt.lost.counts)
chat.undo_compaction()
print(len(chat))

# It prints:
# 240 True
# 59 False
# system | You keep a ship's log.
# user | Day 1: we are at waypoint WP-001. Log it.
# user | [EARLIER CONTEXT] 183 earlier messages are not shown. Names and values f
# user | Day 47: we are at waypoint WP-047. Log it.
# 11 system prompt
# 19 1 message from the beginning
# 153 names and values of 183 messages not sent
# 672 56 messages
# extractive 212 True
# [CONTEXT SUMMARY] 29 {'identifiers': 25}
# 240
