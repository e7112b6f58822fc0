"""Reads transcripts of conversations, in the formats of various programs, as neutral messages.

Reading order: transcript, which tries the formats of `transcripts/` and of the programs' rooms; jsonl, our
own; importers, which write what was read to the ledger.
"""

from nexus_context.assistants.importing.transcript import LIMIT, Transcript, joined, read_transcript
from nexus_context.assistants.transcripts.conversation import Answer, Conversation, Format
from nexus_context.assistants.transcripts.records import LeftOut
from nexus_context.text.read_limits import GZIP

__all__ = [
    "GZIP",
    "LIMIT",
    "Answer",
    "Conversation",
    "Format",
    "LeftOut",
    "Transcript",
    "joined",
    "read_transcript",
]
