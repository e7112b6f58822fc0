"""What requests cost, by the prices in the registry of models; US dollars."""

import functools
from typing import NamedTuple

from nexus_context.assistants.sessions.model import Usage
from nexus_context.tokens.models import ModelLimits, get_model_limits

_PER = 1_000_000


class TokenPrices(NamedTuple):
    """Prices of one token of a request: read from the cache, new (written or not), and of the answer."""

    read: float
    new: float
    output: float

    def cost(self, usage: Usage) -> float:
        """The cost of a request with this usage, which the price of new tokens was made for."""
        new = usage.fresh + usage.cache_write
        return usage.cache_read * self.read + new * self.new + usage.output * self.output


@functools.lru_cache(maxsize=64)
def limits_of(model: str) -> ModelLimits:
    """The registry's limits and prices of a model."""
    return get_model_limits(model)


def request_prices(model: str | None, usage: Usage, written_1h: int = 0) -> TokenPrices | None:
    """The prices for a request; None for a model without prices.

    New tokens have one price: the mean of those that were written for five minutes, for an hour, and neither.
    """
    limits = limits_of(model or "")
    if limits.input_price is None or limits.output_price is None:
        return None
    fresh, hour = limits.input_price, limits.write_price("1h") or limits.input_price
    short = limits.write_price("5m") or fresh
    hours = min(written_1h, usage.cache_write)
    new = usage.fresh + usage.cache_write
    paid = usage.fresh * fresh + hours * hour + (usage.cache_write - hours) * short
    read = fresh if limits.cached_input_price is None else limits.cached_input_price
    return TokenPrices(read / _PER, (paid / new if new else fresh) / _PER, limits.output_price / _PER)


def cold_price(model: str | None, *, is_hour: bool) -> float | None:
    """The price of a token that is sent to a cold cache."""
    price = limits_of(model or "").write_price("1h" if is_hour else "5m")
    return None if price is None else price / _PER
