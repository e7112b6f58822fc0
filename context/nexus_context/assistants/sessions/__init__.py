"""Reads the sessions of other assistants: what the readers of all programs share.

record         a record, whatever program wrote it
record_reader  the records of a file as it grows, and since its last compaction
record_format  records as messages, and where reading can resume
steps          what happens in a session, in words that all programs share
fold           steps → a report, with window_parts, cache_misses, tool_costs, prices and receipt
followed       a session as it grows
recall         what a summary of another assistant dropped
"""
