"""Adds what Nexus needs to settings of other programs, and takes it away again to the byte.

Reading order: model, entries, json_edits, toml_edits, plan. What is written for a program, its room says.
"""
