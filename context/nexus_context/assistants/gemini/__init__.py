"""Knows what Gemini CLI reads, and what its sessions hold."""
