"""A provider's prompt cache as Anthropic describes it: how much of a request is read from it, at what price.

1. A request is a sequence of blocks. Two breakpoints: the last block, and the end of the system prompt.
2. At a breakpoint the cache holds everything up to it, if that is at least MINIMUM_TOKENS, and for ever.
3. A request reads the longest prefix that was held before: at each breakpoint up to LOOKBACK blocks are
   tried, from the breakpoint backwards.
4. What is read costs READ of a plain token, the rest is written and costs WRITE.
"""

from collections.abc import Sequence

from benchmarks.conversation.facts import Block

MINIMUM_TOKENS = 1_024
LOOKBACK = 20  # blocks
WRITE = 1.25
READ = 0.1


class PromptCache:
    """What the provider holds of one conversation."""

    def __init__(self) -> None:
        self._held: set[int] = set()

    def send(self, blocks: Sequence[Block], system_blocks: int) -> tuple[int, int]:
        """Tokens of a request, and how many of them are read; `system_blocks` are the system prompt's."""
        prefix, tokens = 0, 0
        prefixes: list[tuple[int, int]] = []
        for said, size in blocks:
            prefix, tokens = hash((prefix, said)), tokens + size
            prefixes.append((prefix, tokens))
        breakpoints = {len(prefixes), system_blocks} - {0}
        read = max((self._longest(prefixes[:end]) for end in breakpoints), default=0)
        for end in breakpoints:
            if prefixes[end - 1][1] >= MINIMUM_TOKENS:
                self._held.add(prefixes[end - 1][0])
        return tokens, read

    def _longest(self, prefixes: Sequence[tuple[int, int]]) -> int:
        for prefix, tokens in reversed(prefixes[-LOOKBACK:]):
            if tokens >= MINIMUM_TOKENS and prefix in self._held:
                return tokens
        return 0


def cost(sent: int, read: int) -> float:
    """The price of `sent` tokens, `read` of them from the cache, in plain tokens."""
    return WRITE * (sent - read) + READ * read
