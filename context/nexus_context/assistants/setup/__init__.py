"""Adds what Nexus needs to settings of other programs, and takes it away again to the byte.

Reading order: setup_types, entries, json_edits, toml_edits, plan. The room of each program says what is
written for it.
"""
