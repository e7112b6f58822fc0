"""Counts tokens, exactly and offline where the tokenizer is public, and knows the limits of models."""

from nexus_context.tokens.attribution import count_spans, part_tokens, span_units, whole_tokens
from nexus_context.tokens.counter import (
    ScaledCounter,
    SimpleTokenCounter,
    TiktokenCounter,
    TokenCounter,
    count_message,
    family_of_counter,
)
from nexus_context.tokens.models import (
    Lifetime,
    ModelLimits,
    counter_for,
    get_model_limits,
    get_token_counter,
    supports_feature,
)
from nexus_context.tokens.plain_counter import MinimalCounter, PlainCounter, complete
from nexus_context.tokens.vocabulary import is_loaded, load_encoding, loaded_encodings

__all__ = [
    "Lifetime",
    "MinimalCounter",
    "ModelLimits",
    "PlainCounter",
    "ScaledCounter",
    "SimpleTokenCounter",
    "TiktokenCounter",
    "TokenCounter",
    "complete",
    "count_message",
    "count_spans",
    "counter_for",
    "family_of_counter",
    "get_model_limits",
    "get_token_counter",
    "is_loaded",
    "load_encoding",
    "loaded_encodings",
    "part_tokens",
    "span_units",
    "supports_feature",
    "whole_tokens",
]
