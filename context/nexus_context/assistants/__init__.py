"""What other assistants read in a folder: a module for each, its rules as data.

Reading order: model, disk, settings, working_tree, front_fields, then the programs (claude_markdown,
claude_extras, claude_code; codex_skills, codex; opencode_skills, opencode; gemini, copilot, cursor), then
instruction_files, mcp_servers, profile and readers.
"""

ASSISTANT_NAMES = ("claude-code", "codex", "opencode", "gemini", "copilot", "cursor")
"""The assistants that have profiles, in the order of columns."""
