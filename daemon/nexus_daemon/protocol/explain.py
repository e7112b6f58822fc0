"""`nexus/explain`: what the views of a folder do with a call, a setting, a line of a file, or a server."""

from typing import Annotated, Any

from nexus_daemon.protocol.assistant import NAMES
from nexus_daemon.protocol.shapes import FolderParams, OneOf, Range, Sparse, Wire

VERDICTS = OneOf("allowed", "asks", "denied")


class ExplainParams(FolderParams, frozen=True, kw_only=True):
    """What is asked about a folder."""

    # a call as a permission rule writes it: `Bash(npm test)`, `Read(.env)`, `mcp__notes__write`; a setting:
    # `permissions.allow`, `/context/max_tokens`; a line of a file, or a Markdown file: `AGENTS.md:14`; an MCP
    # server: `mcp:github`; anything else is a command of Bash
    what: str
    # one view instead of those that are in use in the folder: `claude-code`, `codex`, `opencode`, `gemini`,
    # `copilot`, `cursor` or `nexus`
    assistant: Annotated[str | None, NAMES] = None


class ExplainLink(Wire, frozen=True):
    """A place that has to do with the answer: a rule, a value of a setting, a file, the entry of a server."""

    uri: str  # the file
    range: Range  # where it stands in it
    # what stands there: a rule's kind and text, `deny Bash(rm:*)`; a setting's value, as JSON; else in words
    value: str
    wins: bool  # whether it decides, or counts


class ExplainAnswer(Sparse, frozen=True):
    """What one view does with it."""

    # `claude-code`, `codex`, `opencode`, `gemini`, `copilot`, `cursor` or `nexus`
    assistant: Annotated[str, NAMES]
    version: str  # the version whose behaviour this is
    reason: str  # why, in a sentence
    # of a call and a server: `allowed`, `asks` (the user is asked) or `denied`
    verdict: Annotated[str | None, VERDICTS] = None
    value: Any = None  # of a setting: the value in force; what may be secret is covered
    chain: list[ExplainLink] = []  # the places, the one that decides first
    # of a line: its cost where it is sent; of a file: its share of each request; of a server: its tools
    tokens: int | None = None
    exact: bool = True  # false: `tokens` is an estimate
    documentation: str | None = None  # of a setting: what it does
    offered: bool = True  # false: the model is not told of the tool
    part: str | None = None  # the command of a script that decides
    note: str | None = None  # what is to be known besides, such as what a rule does not stop


class ExplainResult(Wire, frozen=True):
    """What the views do with it."""

    answers: list[ExplainAnswer]  # of each view that has to do with it
