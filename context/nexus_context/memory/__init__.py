"""What is remembered beyond the history: levels of a ledger, events, knowledge, messages between agents.

item       what is put before the user's message
events     what agents did, as messages; a bus that keeps the newest
direct     messages from one agent to another
working    which turns of a session matter (L2), and its summaries
levels     L1 to L4 over a ledger
queries    the same as tools that a model calls
sources    where items come from, and `gather`
knowledge/ files that are searched with each message
"""
