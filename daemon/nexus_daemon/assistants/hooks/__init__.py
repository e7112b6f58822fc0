"""What the hooks of other assistants tell the daemon, and what it answers.

Reading order: hook_event, running, loaded_files, session_facts, mirror, memory_answer, handler.
"""
