"""Reads conversations in files: what the readers of all formats share, and formats without a live program."""
