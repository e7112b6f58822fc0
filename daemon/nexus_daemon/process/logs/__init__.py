"""Log what all processes of Nexus do, and read that log.

Each record is handed to a thread, so no code waits for a disk or for a reader of standard error.
"""
