"""GitHub Copilot: what it reads."""
