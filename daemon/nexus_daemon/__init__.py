"""Run the language server (the daemon) around the library `nexus_context`.

This file imports nothing, since `__main__` must clean the search path before any other import.
"""
