"""Settings of other programs: what Nexus adds to them, and how it takes that away again to the byte.

Reading order: model, entries, json_edits, toml_edits, plan. What is written for a program, its room says.
"""
