"""Streamed requests to a model provider, through the provider's own SDK.

Reading order: target, answer, provider_error, streaming; then what is imported late with an SDK: sdk, and a
module for each API: anthropic_messages, openai_chat, openai_responses, gemini.

1. `Provider.stream` sends a body that Nexus assembled in the format that FORMATS names, and yields what
   comes: deltas of text and thinking for people, at last an Answer, whose message goes into the conversation
   as it is.
2. Every failure is a ProviderError, whose text is for the user. No key, header value or query is in it.
3. A key goes to the target's address and nowhere else: no redirect is followed. Of the environment an SDK
   gets proxies and certificates, but no keys, addresses or headers.
"""

from nexus_daemon.providers.answer import AnswerItem as AnswerItem
from nexus_daemon.providers.answer import ModelAnswer as ModelAnswer
from nexus_daemon.providers.answer import TextDelta as TextDelta
from nexus_daemon.providers.answer import ThinkingDelta as ThinkingDelta
from nexus_daemon.providers.provider_error import ProviderError as ProviderError
from nexus_daemon.providers.streaming import Provider as Provider
from nexus_daemon.providers.target import FORMATS as FORMATS
from nexus_daemon.providers.target import Target as Target

Answer = ModelAnswer
