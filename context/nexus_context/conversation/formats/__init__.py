"""An assembled conversation as the body of a request to OpenAI or Anthropic.

1. Order: tools, system prompt, history, current message (the order in which providers cache a prefix).
2. A broken history is repaired first (`repair`), so that each result directly follows its call.
3. Neighboring messages of one role become one message; empty ones are left out.
4. Tool names and call ids that a provider rejects are replaced: in definitions and calls alike, and in the
   same way each time.
5. Arguments are always a JSON object.
6. Text, images and documents take the provider's form. A part that the provider does not accept becomes a
   text that names it; reasoning that the provider did not sign itself is left out.
7. Every difference from what is stored is a `Repair`, for the caller to report.

Reading order: tool_definitions, openai_chat, anthropic.
"""

from nexus_context.conversation.formats.anthropic import anthropic
from nexus_context.conversation.formats.openai_chat import openai

__all__ = ["anthropic", "openai"]
