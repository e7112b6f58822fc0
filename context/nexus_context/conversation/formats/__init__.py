"""An assembled conversation as the body of a provider's request: OpenAI's or Anthropic's.

1. Order: tools, system prompt, history, current message (the order in which providers cache a prefix).
2. A broken history is repaired first (`repair`), so each result stands right after its call.
3. Neighbouring messages of one role become one message; those that say nothing are left out.
4. Names of tools and ids of calls that a provider refuses get another form: the same one in definitions and
   calls, and the same one each time.
5. Arguments are a JSON object, whatever they come as.
6. Text, images and documents are put into the provider's own form. A part that the provider does not take
   becomes a text that says what stood there; reasoning that it did not sign itself is left out.
7. Whatever is sent otherwise than it was given is said, for the caller to report.

Reading order: said, naming, tools, chat_completions, messages.
"""

from nexus_context.conversation.formats.anthropic import anthropic
from nexus_context.conversation.formats.openai_chat import openai

__all__ = ["anthropic", "openai"]
