"""Knows what Codex reads, and what its sessions hold."""
