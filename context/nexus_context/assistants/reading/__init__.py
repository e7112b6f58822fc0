"""Reads the files of other assistants: what the rooms of all programs share."""
