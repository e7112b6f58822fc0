"""Send streamed requests to a model provider, through the provider's own SDK.

Reading order: target, answer, provider_error, streaming; then what is imported late with an SDK: sdk, and a
module for each API: anthropic_messages, openai_chat, openai_responses, gemini.

1. `Provider.stream` sends a body that Nexus assembled in the format that FORMATS names. It yields deltas of
   text and thinking for people, and at last a ModelAnswer, whose message goes into the conversation as it is.
2. Every failure is a ProviderError, whose text is for the user. It contains no key, header value or query.
3. A key is sent only to the target's address: no redirect is followed. An SDK takes proxies and certificates
   from the environment, but no keys, addresses or headers.
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
