"""Mirrors the sessions of other assistants into the ledger: nothing is lost when these delete their files.

transcript_files  which files there are, and those of sub-agents
excerpts          a piece of a file as conversations, and where the next one begins
differences       a conversation beside what the ledger has of it
growth            what the provider's usages say about our counts
session_turns     conversations as turns for the ledger
existing_turns    what a conversation adds to its session
session_writer    what is new into the ledger
session_reader    conversations and turns of a file, without a ledger
word_matcher      the words of a query in texts and in files
file_search       messages in files that the ledger does not have
runs              all files, or one session, into a ledger
"""

from nexus_context.assistants.mirror.runs import MirrorSummary, mirror_files, mirror_session
from nexus_context.assistants.mirror.session_writer import FileOutcome

__all__ = ["FileOutcome", "MirrorSummary", "mirror_files", "mirror_session"]
