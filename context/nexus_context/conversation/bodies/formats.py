"""Renders an assembled conversation as the body of a request to OpenAI (two formats), Anthropic or Google.

1. The order is: tools, system prompt, history, current message. In this order providers cache a prefix.
2. A broken history is repaired first (`repair`), so that each result directly follows its call.
3. Neighboring messages of one role become one message if the provider requires that. Empty messages are left
   out.
4. Tool names and call ids that a provider rejects are replaced. A name is replaced in definitions and calls
   alike, and in the same way each time.
5. Arguments are always a JSON object.
6. Text, images and documents take the provider's form. A part that the provider does not accept becomes a
   text that names it.
7. Reasoning and compactions that the same provider made are sent back unchanged. Reasoning of other providers
   is left out, and their compactions become texts.
8. Every difference from what is stored is a `Repair`, for the caller to report.
9. `server_rules` lists what a server refuses although its types allow it, and what is sent instead.

Reading order: server_rules, tool_definitions, preparation, server_tools, client_items, openai_chat,
openai_responses, anthropic, gemini.
"""

from nexus_context.conversation.bodies.anthropic import anthropic
from nexus_context.conversation.bodies.gemini import gemini, unnamed_calls, without_naming
from nexus_context.conversation.bodies.openai_chat import openai
from nexus_context.conversation.bodies.openai_responses import openai_responses

__all__ = ["anthropic", "gemini", "openai", "openai_responses", "unnamed_calls", "without_naming"]
