"""The files of records, a line each, that other programs append to: what every reader of them shares.

values       JSON values that may be anything
record       a record, whatever program wrote it
claude_code, codex, gemini: what a record of each program says
reader       the records of a file as it grows, and since its last compaction
"""
