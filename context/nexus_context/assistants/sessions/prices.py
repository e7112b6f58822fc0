"""Computes what requests cost in US dollars, by the prices in the registry of models.

1. A price is a function of the whole usage: of the tokens by kind and by how long they stay in the cache, of
   the length of the request, of what multiplies all prices (`modes`), and of the searches on the web.
2. If another model, such as an adviser, did part of the request, that part costs what that model costs.
3. A cost that the program states for a request is believed.
4. What the registry has no price for is named in `lacks`. The request costs at least the sum then.
"""

import functools
from typing import NamedTuple

import msgspec

from nexus_context.assistants.sessions.session_types import AssistantSession, Usage
from nexus_context.assistants.sessions.steps import AssistantRequest, BilledUsage
from nexus_context.tokens.models import ModelLimits, get_model_limits

_PER = 1_000_000
NO_SUM = "conversations of which no cost is known"
ALL_ALIKE = "a price of each request: all are taken for such as the last one"


class TokenPrices(NamedTuple):
    """The price in US dollars of one token that is read from the cache, one that is new, and one of the
    answer.
    """

    read: float
    new: float
    output: float

    def cost(self, usage: Usage) -> float:
        """Return the cost of a usage in US dollars. `new` must be the mean price for this very usage."""
        new_tokens = usage.fresh + usage.cache_write
        return usage.cache_read * self.read + new_tokens * self.new + usage.output * self.output


class RequestPrice(NamedTuple):
    """What a request cost, in US dollars; None if nothing is known. `lacks` says what the cost does not
    include.
    """

    usd: float | None
    lacks: tuple[str, ...] = ()


@functools.lru_cache(maxsize=64)
def limits_of(model: str) -> ModelLimits:
    """Return the limits and prices that the registry has for a model."""
    return get_model_limits(model)


def price(request: AssistantRequest) -> RequestPrice:
    """Compute the cost of all that was billed for a request. A cost that the program states is believed."""
    if request.cost_usd is not None:
        return RequestPrice(request.cost_usd)
    costs, lacks = [], list[str]()
    for billed_usage in request.billed:
        name, limits, prices = (
            billed_usage.model or "a model without a name",
            limits_of(billed_usage.model or ""),
            _prices(billed_usage),
        )
        if prices is None:
            lacks.append(f"no price of {name}")
            continue
        costs.append(prices.cost(billed_usage.usage) + billed_usage.searches * (limits.search_price or 0.0))
        lacks += [
            f"no price of {mode} for {name}"
            for mode in billed_usage.modes
            if mode not in limits.price_factors
        ]
        if billed_usage.searches and limits.search_price is None:
            lacks.append(f"no price of web searches for {name}")
    return RequestPrice(sum(costs) if costs else None, tuple(lacks))


def price_sum(model: str | None, total: Usage) -> RequestPrice:
    """Compute the cost of many requests together at the usual prices. Surcharges of single requests are not
    known.
    """
    limits = limits_of(model or "")
    prices = _prices(
        BilledUsage(model, Usage(fresh=total.fresh, cache_write=total.cache_write)), is_long=False
    )
    if prices is None:
        return RequestPrice(None, (f"no price of {model or 'a model without a name'}",))
    is_dearer = limits.long_context is not None and total.sent > limits.long_context.above
    return RequestPrice(prices.cost(total), ("what long requests cost more",) if is_dearer else ())


def price_session(session: AssistantSession) -> RequestPrice:
    """Return what a session cost: what its program states, else its sum at the prices of its last model."""
    if session.cost_usd is not None:
        return RequestPrice(session.cost_usd, session.lacks)
    if session.total is None:
        return RequestPrice(None, (NO_SUM,))
    cost = price_sum(session.model, session.total)
    is_exact = session.total in (Usage(), session.last)  # no request, or only one
    return cost if is_exact or cost.usd is None else RequestPrice(cost.usd, (*cost.lacks, ALL_ALIKE))


def request_prices(request: AssistantRequest) -> TokenPrices | None:
    """Return the prices of the tokens in a request's window, None for a model without prices."""
    return _prices(BilledUsage(request.model, request.usage, request.written_1h, request.modes))


def cold_price(request: AssistantRequest, tokens: int, *, is_hour: bool) -> float | None:
    """Return the price of one new token if the next request sends so many tokens to a cold cache. None for a
    model without prices.
    """
    written = Usage(cache_write=tokens)
    prices = _prices(BilledUsage(request.model, written, tokens if is_hour else 0, request.modes))
    return None if prices is None else prices.new


def _prices(billed_usage: BilledUsage, *, is_long: bool = True) -> TokenPrices | None:
    """The prices of tokens that were billed together; None for a model without prices.

    New tokens have one price: the mean of those that were written for five minutes, for an hour, and neither.
    """
    usage, model = billed_usage.usage, billed_usage.model or ""
    limits = limits_of(model)
    long = limits.long_context
    if is_long and long is not None and usage.sent > long.above:
        limits = _long_limits(model)
    if limits.input_price is None or limits.output_price is None:
        return None
    fresh, hour = limits.input_price, limits.write_price("1h") or limits.input_price
    short = limits.write_price("5m") or fresh
    hours = min(billed_usage.written_1h, usage.cache_write)
    new_tokens = usage.fresh + usage.cache_write
    paid = usage.fresh * fresh + hours * hour + (usage.cache_write - hours) * short
    read = fresh if limits.cached_input_price is None else limits.cached_input_price
    per = 1 / _PER
    is_fast = model.endswith("-fast") and limits.name != model  # a name of Claude Code
    for mode in dict.fromkeys((*billed_usage.modes, *(("fast",) if is_fast else ()))):
        per *= limits.price_factors.get(mode, 1.0)
    return TokenPrices(
        read * per, (paid / new_tokens if new_tokens else fresh) * per, limits.output_price * per
    )


@functools.lru_cache(maxsize=64)
def _long_limits(model: str) -> ModelLimits:
    """A model's limits with the prices of a long request."""
    limits = limits_of(model)
    prices = {} if limits.long_context is None else msgspec.structs.asdict(limits.long_context)
    stated = {name: price for name, price in prices.items() if price is not None and name != "above"}
    return msgspec.structs.replace(limits, **stated)
