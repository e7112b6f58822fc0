"""Manage the process: its version, its clients, its logs and traces, and what is imported late."""
