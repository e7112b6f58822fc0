"""Knows what GitHub Copilot reads."""
