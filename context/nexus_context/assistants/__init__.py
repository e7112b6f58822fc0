"""Knows what other assistants read in a folder, and what their sessions hold, as data and pure functions.

Reading order: reading, transcripts, sessions and setup, which the programs share; a room for each program,
which is a package; programs, where they are registered; importing, tracking, views and mirror, which are for
all of them.
"""
