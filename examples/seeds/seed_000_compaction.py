"""Seed 000, "Compaction": selection, the summary's prompt and message, and the reload of the system prompt.

As SPEC decides, the summary's message also says when it was made. `ContextManager.compact` does all of this
in one call, with a receipt and an undo.
"""

from nexus_context import (
    CompactionResult,
    ContextManager,
    PromptLoader,
    build_summarize_prompt,
    create_summary_message,
    get_token_counter,
    select_messages_for_compaction,
)

counter = get_token_counter()
context = ContextManager(counter=counter)
for number in range(1, 41):
    context.add_user_message(f"Question {number}: {'why ' * 20}")
    context.add_assistant_message(f"Answer {number}: {'so ' * 20}")

to_summarize, to_preserve = select_messages_for_compaction(
    messages=context.messages,
    token_counter=counter,
    available_budget=2000,  # budget for messages
    recent_preserve_ratio=0.25,  # keep 25 % of it for recent messages
)
print(len(to_summarize) + len(to_preserve), counter.count_messages(to_preserve) <= 500)

question = build_summarize_prompt(to_summarize, limit=800)
print(question.startswith("[user]\nQuestion 1:"), "at most 800 tokens" in question)

before = counter.count_messages(context.messages)
summary = create_summary_message("The user asked many questions.")
print(summary.role, summary.content.splitlines()[0], summary.content.splitlines()[-1])

# reload the system prompt, which picks up changes of NEXUS.md
context.apply_compaction(
    summary_message=summary,
    preserved_messages=to_preserve,
    new_system_prompt=PromptLoader().load().content,
)
after = context.get_token_usage()["messages"]
print(context.messages == [summary, *to_preserve], after < before)

# the same as one value
result = CompactionResult(
    summary_message=summary,
    preserved_messages=to_preserve,
    original_token_count=before,
    new_token_count=after,
)
print(result.messages == tuple(context.messages), result.original_token_count > result.new_token_count)

# It prints:
# 80 True
# True True
# user [CONTEXT SUMMARY] The user asked many questions.
# True True
# True True
