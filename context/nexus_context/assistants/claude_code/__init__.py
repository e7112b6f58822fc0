"""Knows what Claude Code reads, and what its sessions hold."""
