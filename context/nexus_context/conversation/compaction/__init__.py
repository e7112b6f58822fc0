"""Replaces old messages by a summary. A receipt says what is lost, when and by whom it was made, and how to
undo it.
"""
