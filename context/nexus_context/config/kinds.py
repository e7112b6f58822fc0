"""The kinds of values in `config.json`, and the base of its objects: what `schema` is made of."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from nexus_context.config.fast_check import COMMENT_PREFIX

MAX_TOKENS = 100_000_000
MAX_PATH = 4096  # characters, as many as file systems take bytes
MAX_NAME = 255  # characters of a pattern, as of a file name


def without_comments(value: Any) -> Any:
    """Leave out the keys that start with `_comment`: they are allowed in every object and mean nothing."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if not str(key).startswith(COMMENT_PREFIX)}


Text = Annotated[str, Field(min_length=1)]
PathText = Annotated[str, Field(min_length=1, max_length=MAX_PATH)]
InstructionFile = Annotated[
    str,
    Field(
        min_length=1,
        max_length=MAX_NAME,
        pattern=r"^([^/\\]+|\.github/copilot-instructions\.md|\.github/instructions/[^/\\]*\.instructions\.md)$",
    ),
]
EnvironmentName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
Url = Annotated[str, Field(pattern=r"^https?://[^/?#\s]+[^\s]*$")]
Pattern = Annotated[str, Field(max_length=MAX_NAME, pattern=r"^[!-~]+$")]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
TokensOrNone = Annotated[int, Field(ge=0, le=MAX_TOKENS)]
Count = Annotated[int, Field(ge=0, le=100_000)]
Ratio = Annotated[float, Field(ge=0.0, le=1.0)]

ProviderName = Literal["anthropic", "openai", "google", "openai-compatible", "editor", "none"]
Level = Literal["yolo", "trusted", "sandboxed", "worker"]
Role = Literal["manager", "worker", "unified"]
Strategy = Literal["oldest_first", "smart", "middle_out", "sliding", "simple", "recency"]
ThinkingLevel = Literal["off", "minimal", "low", "medium", "high"]
Feature = Literal["tools", "vision", "thinking"]


class Section(BaseModel):
    """Base of every object of the file: strict types, no unknown key, comments dropped."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_comments(cls, data: Any) -> Any:
        return without_comments(data)
