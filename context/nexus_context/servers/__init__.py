"""Describes MCP servers: what starting one would do, what the user approved, and what it offers.

Reading order: launch, approvals, definitions, changes, offered.

Nothing here starts a program or opens a connection; the daemon does (`nexus_daemon.servers`).
"""
