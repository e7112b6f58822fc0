"""Other assistants: what each reads in a folder, and what its sessions hold, as data and pure functions.

Reading order: reading, transcripts and sessions, which the programs share; a room for each program;
importing, tracking, views, mirror and setup, which are for all of them.
"""

ASSISTANT_NAMES = ("claude-code", "codex", "opencode", "gemini", "copilot", "cursor")
"""The assistants that have profiles, in the order of columns."""
