"""Take what the hooks of other assistants tell the daemon, and answer it.

Reading order: hook_event, running, loaded_files, session_facts, mirror, memory_answer, handler.
"""
