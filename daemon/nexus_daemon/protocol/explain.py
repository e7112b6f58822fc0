"""`nexus/explain`: what assistants let a model do in a folder."""

from typing import Annotated

from nexus_daemon.protocol.assistant import NAMES
from nexus_daemon.protocol.shapes import FolderParams, OneOf, Range, Sparse, Wire

VERDICTS = OneOf("allowed", "asks", "denied")


class ExplainParams(FolderParams, frozen=True, kw_only=True):
    """A call of a tool in a folder."""

    # the call as a permission rule writes it: `Bash(npm test)`, `Read(.env)`, `mcp__notes__write`; anything
    # else is a command of Bash
    what: str
    # one assistant instead of all that are known for this: `claude-code`, `codex`, `opencode`, `gemini`,
    # `copilot` or `cursor`
    assistant: Annotated[str | None, NAMES] = None


class ExplainLink(Wire, frozen=True):
    """A rule of a settings file that is about the call."""

    uri: str  # the file
    range: Range  # where the rule stands in it
    value: str  # its kind and text: `deny Bash(rm:*)`
    wins: bool  # whether it decides


class ExplainAnswer(Sparse, frozen=True):
    """What one assistant does with the call."""

    # the assistant: `claude-code`, `codex`, `opencode`, `gemini`, `copilot` or `cursor`
    assistant: Annotated[str, NAMES]
    version: str  # the version of it that was asked how it decides
    verdict: Annotated[str, VERDICTS]  # `allowed`, `asks` (the user is asked) or `denied`
    reason: str  # why, in a sentence
    chain: list[ExplainLink] = []  # the rules about the call, the one that decides first
    offered: bool = True  # false: the model is not told of the tool
    part: str | None = None  # the command of a script that decides
    note: str | None = None  # what the rule does not stop


class ExplainResult(Wire, frozen=True):
    """What assistants do with the call."""

    answers: list[ExplainAnswer]  # of each assistant
