"""Reads what a folder says to a model: its layers, skills and prompt, frozen in a snapshot."""
