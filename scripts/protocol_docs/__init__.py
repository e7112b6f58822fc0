"""The page of the protocol and the TypeScript types: from the structs, the handlers and a real daemon.

Reading order: source, metadata, examples, page, typescript. `scripts/update_pages.py` writes the files.
"""
