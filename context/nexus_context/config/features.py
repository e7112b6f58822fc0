"""Names the features of models, for the registry, the setting `models` and requests."""

from typing import Literal, get_args

Feature = Literal["tools", "parallel_tools", "vision", "documents", "prompt_caching", "thinking", "json"]
FEATURES: tuple[Feature, ...] = get_args(Feature)
