"""Settings of other programs: what Nexus adds to them, and how it takes that away again to the byte.

Reading order: model, json_edits, toml_edits, programs, plan.
"""
