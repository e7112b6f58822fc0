"""Provides what a turn is told beside its history: levels of a ledger, events, knowledge, and messages
between agents.

item           one item put before the user's message
events         what agents did, as messages
bus            the newest events of each workspace, and who hears of new ones
node_messages  messages from one agent to another
working        the turns of a session that matter (L2), and its summaries
subjects       what a sentence is about, so that a later one replaces it
levels         L1 to L4 over a ledger
queries        the levels as tools that a model calls
task_context   the messages of one task, from these sources
sources        where items come from, and `gather`
knowledge/     files that are searched with each message
"""
