"""A summary by a model of your own, from plan to compaction."""

from datetime import datetime

from nexus_context import (
    Budget,
    CompactionSettings,
    ContextConfig,
    ContextManager,
    Options,
    Request,
    Written,
    assemble,
    get_token_counter,
)

counter = get_token_counter()
noon = datetime(2026, 11, 22, 12, 0).astimezone()
chat = ContextManager(ContextConfig(max_tokens=2_000, reserve_tokens=500), counter=counter)
for day in range(1, 41):
    chat.add_user_message(f"Day {day}: the wind is from {'north' if day % 2 else 'west'}. Log it.")
    chat.add_assistant_message("Logged.")


def ask_a_model(messages, limit):
    """An answer of at most `limit` tokens to `messages`; the last of them is the instruction."""
    asked = ContextManager(model="gpt-4o", counter=counter)
    asked.add(messages[:-1])
    options = Options(parameters={"max_tokens": limit})
    turn = assemble(None, asked, Request(messages[-1], format="openai", options=options), now=noon)
    print("asked with", len(turn.request["messages"]), "messages of", turn.request["model"])
    # return client.chat.completions.create(**turn.request).choices[0].message.content
    return "The user logs the wind each day: north on odd days, west on even ones."


budget = Budget(available=1_500, fixed=0)  # fixed: what system prompt and tools take
plan = chat.plan_compaction(counter, budget, settings=CompactionSettings(instructions="Keep the wind."))
request = plan.request(chat.build_messages())
print(len(plan.replaced), len(plan.preserved), "Keep the wind." in request.messages[-1].content)

text = ask_a_model(request.messages, request.limit)
result = plan.finish(Written(text, "my model"), counter=counter, made_at=noon)
chat.apply(result, counter)  # until chat.undo_compaction()
print(result.receipt.summarizer, result.reached, len(chat))
print(text in chat.messages[0].content)

# It prints:
# 60 20 True
# asked with 81 messages of gpt-4o
# my model True 21
# True
