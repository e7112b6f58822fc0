"""Cursor: what it reads."""
