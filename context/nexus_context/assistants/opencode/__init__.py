"""Knows what opencode reads, and what its sessions hold."""
