"""The daemon: a language server around `nexus_context`.

Whoever imports it imports nothing else: `__main__` cleans the search path first.
"""
