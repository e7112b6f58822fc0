"""Finds out why a provider's cache did not have what had been sent before, and when it goes cold.

1. A request can read from the cache what the one before read and wrote. It is a miss if at least LEAST_LOST
   tokens of that are not read, or if nothing is. A smaller loss is the last block of a cache.
2. The cause is the first of these that holds: it is the first request; there was a compaction; the model
   changed; the version of the program changed; more time passed than the cache lives; the program sent other
   tools or another prompt; an instruction file was changed; else the beginning changed.
3. If the provider states a reason, it is believed: STATED has the causes by words in it, and without such a
   word the beginning changed. The reason is the detail, unless the cause is the tools or the time.
4. Anthropic keeps what is written for five minutes or an hour, as the usage tells; reading it starts that
   time again. OpenAI states no time: if more than IDLE_S passed without a request, that is taken for the
   cause.
"""

from collections.abc import Callable

import msgspec

from nexus_context.assistants.sessions.prices import TokenPrices, cold_price, limits_of, request_prices
from nexus_context.assistants.sessions.report import CacheMiss, CacheState, MissCause
from nexus_context.assistants.sessions.session_types import Usage
from nexus_context.assistants.sessions.steps import AssistantRequest

SHORT_S, HOUR_S = 300, 3_600
IDLE_S = 600
"""OpenAI's guide to prompt caching: prefixes stay for 5 to 10 minutes without a request, at most an hour."""
LEAST_LOST = 1_024  # tokens: providers cache in blocks, the shortest prefix has so many


STATED: dict[str, MissCause] = {"model": "model", "tool": "tools", "system": "tools", "expired": "idle"}
"""Causes by the words of the provider's reasons, such as `tools_changed`."""

FindChange = Callable[[float, float], str]
"""Which instruction file was written between two times; empty for none."""


class CacheSituation(msgspec.Struct):
    """What has happened in a conversation since its last request. It changes with every step."""

    last: AssistantRequest | None = None
    is_compacted: bool = False
    changed_file: str = ""
    changed_tools: bool = False

    def take_request(self, request: AssistantRequest, find_change: FindChange) -> CacheMiss | None:
        """Return the cache miss of a request, None if it is none. What happened before the request is then
        forgotten.
        """
        miss = self._miss(request, find_change)
        self.last, self.is_compacted, self.changed_file, self.changed_tools = request, False, "", False
        return miss

    def _miss(self, request: AssistantRequest, find_change: FindChange) -> CacheMiss | None:
        usage, last_request = request.usage, self.last
        prices = request_prices(request)
        new_tokens = usage.cache_write + usage.fresh
        if last_request is None:
            if not usage.cache_write and limits_of(request.model or "").provider == "anthropic":
                return None
            return CacheMiss(
                at=request.at, cause="first", tokens=new_tokens, cost_usd=_extra(prices, new_tokens)
            )
        cached = last_request.usage.cache_read + last_request.usage.cache_write or last_request.usage.sent
        lost = min(cached - usage.cache_read, new_tokens)
        is_whole = usage.cache_read == 0 and lost > 0 and last_request.usage.cache_write > 0
        if lost < LEAST_LOST and not is_whole:
            return None
        idle = max(request.at - last_request.at, 0.0)
        cause, detail = self._cause(last_request, request, idle)
        if cause == "rewritten" and (path := find_change(last_request.at, request.at)):
            cause, detail = "instructions", path
        return CacheMiss(
            at=request.at,
            cause=cause,
            tokens=lost,
            cost_usd=_extra(prices, lost),
            idle_s=idle,
            detail=detail,
        )

    def _cause(
        self, last_request: AssistantRequest, request: AssistantRequest, idle: float
    ) -> tuple[MissCause, str]:
        if self.is_compacted:
            return "compaction", ""
        if request.miss is not None:
            causes: list[MissCause] = [cause for word, cause in STATED.items() if word in request.miss]
            stated_cause = causes[0] if causes else "rewritten"
            return stated_cause, "" if stated_cause in ("tools", "idle") else request.miss
        if request.model != last_request.model:
            return "model", f"{last_request.model} → {request.model}"
        if request.version and last_request.version and request.version != last_request.version:
            return "version", f"{last_request.version} → {request.version}"
        lifetime = lifetime_of(last_request)
        if idle > (lifetime or IDLE_S):
            return "idle", ""
        if self.changed_tools:
            return "tools", ""
        if self.changed_file:
            return "instructions", self.changed_file
        return "rewritten", ""


def lifetime_of(request: AssistantRequest) -> int | None:
    """Return for how many seconds the cache keeps what a request sent. None if the provider does not say, or
    the program turned the cache off.
    """
    if limits_of(request.model or "").provider != "anthropic":
        return None
    if request.lifetime == "off":
        return None
    return HOUR_S if request.written_1h or request.lifetime == "1h" else SHORT_S


def cache_state(request: AssistantRequest, pending: float, lifetime_s: int | None) -> CacheState:
    """Compute what the turn after a request finds in the cache if it sends `pending` more tokens."""
    usage = request.usage
    again = usage.sent
    tokens = again + usage.output + round(pending)
    prices = request_prices(msgspec.structs.replace(request, usage=Usage(cache_read=tokens)))
    cold = cold_price(request, tokens, is_hour=lifetime_s == HOUR_S)
    return CacheState(
        lifetime_s=lifetime_s,
        cold_at=request.at + lifetime_s if lifetime_s is not None and request.at else None,
        next_tokens=tokens,
        warm_usd=None if prices is None or cold is None else again * prices.read + (tokens - again) * cold,
        cold_usd=None if cold is None else tokens * cold,
    )


def state_after_compaction(request: AssistantRequest, tokens: int, lifetime_s: int | None) -> CacheState:
    """Compute the cache state after a compaction. How much of the next turn is cached is not known then."""
    cold = cold_price(request, tokens, is_hour=lifetime_s == HOUR_S)
    return CacheState(
        lifetime_s=lifetime_s,
        cold_at=None,
        next_tokens=tokens,
        warm_usd=None,
        cold_usd=None if cold is None else tokens * cold,
    )


def _extra(prices: TokenPrices | None, tokens: int) -> float | None:
    return None if prices is None else max(prices.new - prices.read, 0.0) * tokens
