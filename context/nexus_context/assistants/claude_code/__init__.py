"""Claude Code: what it reads, and what its sessions hold."""
