"""Knows what Cursor reads."""
