"""The log of all processes of Nexus: what is written, where, and how it is read.

Whatever is logged is handed to a thread: no record waits for a disk or for a reader of standard error.
"""
