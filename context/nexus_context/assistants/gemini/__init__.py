"""Gemini CLI: what it reads, and what its sessions hold."""
