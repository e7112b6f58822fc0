"""The settings of `config.json`: one model a section, from which schema and reference are generated.

With `kinds` and `agent_schema` the only module that imports pydantic. At run time files are checked against
the generated schema (`check.py`), so only library users who want a typed `Config` pay for the import.
"""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from nexus_context.config.agent_schema import Agent
from nexus_context.config.kinds import (
    MAX_TOKENS,
    Count,
    EnvironmentName,
    Feature,
    InstructionFile,
    Level,
    PathText,
    Pattern,
    ProviderName,
    Ratio,
    Section,
    Strategy,
    Text,
    ThinkingLevel,
    Tokens,
    TokensOrNone,
    Url,
    without_comments,
)


class Provider(Section):
    """Who answers and who writes summaries. The address, the key and the headers have no effect yet."""

    name: ProviderName = Field(
        default="editor",
        description="The service that runs the model; `editor`: the model that the user picks in the editor.",
    )
    model: Text | None = Field(
        default=None,
        description="The model's name as its provider spells it; with `editor`, until one is picked.",
    )
    base_url: Url | None = Field(
        default=None,
        description="The API's address, for `openai-compatible` servers and proxies; global file only.",
    )
    api_key_env: EnvironmentName | None = Field(
        default=None,
        description="The environment variable with the API key, never the key itself; global file only.",
    )
    headers: Annotated[dict[str, str], BeforeValidator(without_comments)] = Field(
        default={},
        description="Extra HTTP headers of each request to the provider; global file only.",
    )


class Datetime(Section):
    """Where and how the model is told the time."""

    placement: Literal["event", "system", "off"] = Field(
        default="event",
        description="`event` puts the time into the last user message, `system` into the system prompt.",
    )
    format: Text | None = Field(
        default=None, description="A pattern such as `YYYY-MM-DD HH:mm`; unset, exactly that one."
    )
    timezone: Text | None = Field(
        default=None,
        description="An IANA time zone such as `Europe/Berlin`, `UTC` or `local`; unset, the local one.",
    )


class CustomSection(Section):
    """A section of one's own in the system prompt: a name and either `content` or `file`."""

    name: Text = Field(description="The section's heading.")
    content: Text | None = Field(default=None, description="The section's text; either this or `file`.")
    file: Text | None = Field(
        default=None,
        description="A file with the text, relative to the layer's directory; either this or `content`.",
    )
    priority: Annotated[int, Field(ge=0, le=10_000)] = Field(
        default=300,
        description="Where it goes, high first: AGENT.md 1000, SOUL.md 900, CONTEXT.md 800, the layers 700.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> "CustomSection":
        if (self.content is None) == (self.file is None):
            raise ValueError("exactly one of content and file")
        return self


class Context(Section):
    """What is read into the context, and how it is kept within the window."""

    ancestor_depth: Annotated[int, Field(ge=0, le=10)] = Field(
        default=2,
        description=(
            "How many directories above the folder may be layers; local or global file only. Unset, 2, "
            "or as many as lead to the root of the folder's repository, at most 10."
        ),
    )
    include_readme: bool = Field(
        default=False, description="Always add README.md after a layer's instruction file."
    )
    readme_as_fallback: bool = Field(
        default=True, description="Use README.md where a directory has no instruction file."
    )
    instruction_files: list[InstructionFile] = Field(
        default=["NEXUS.md", "AGENTS.md", "CLAUDE.md"],
        description=(
            "File names of instructions; in each directory the first that exists is read. Beside it, if they "
            "are listed, the files of GitHub Copilot: `.github/copilot-instructions.md`, and "
            "`.github/instructions/*.instructions.md` as far as their `applyTo` says."
        ),
    )
    max_tokens: Tokens | None = Field(
        default=None, description="The most tokens of one request; unset, the model's whole window."
    )
    reserve_tokens: TokensOrNone = Field(default=2000, description="Tokens kept free for the answer.")
    reserve_tool_tokens: TokensOrNone = Field(default=0, description="Tokens kept free for tool results.")
    truncation_strategy: Strategy = Field(
        default="oldest_first",
        description="Which messages leave first when the history is too long; `smart` is `oldest_first`.",
    )
    truncation_target: Annotated[float, Field(ge=0.1, le=1.0)] = Field(
        default=0.6,
        description="The share of the budget that a cut goes down to; 1.0 cuts to just fitting.",
    )
    keep_recent_turns: Count = Field(
        default=3, description="How many of the newest turns a cut leaves whole where they fit."
    )
    pin_first: bool = Field(
        default=True, description="Keep the user's first message, whatever else a cut leaves out."
    )
    identifier_tokens: TokensOrNone = Field(
        default=600,
        description="The most tokens of a note with names and values from what was cut; 0 for none.",
    )
    datetime: Datetime = Field(
        default_factory=Datetime, description="Where and how the model is told the time."
    )
    section_separator: str = Field(
        default="\n\n---\n\n", description="The text between two sections of the system prompt."
    )
    sections: list[CustomSection] = Field(
        default=[],
        description="Sections of your own in the system prompt: a name, a content or a file, a priority.",
    )
    git: bool = Field(
        default=True,
        description=(
            "Tell the model the git branch in the last user message; in a trusted folder the changed files, "
            "too."
        ),
    )


class Compaction(Section):
    """When and how old turns are replaced by a summary."""

    enabled: bool = Field(
        default=True, description="Replace old turns by a summary when the context fills up."
    )
    threshold: Ratio = Field(
        default=0.8, description="The share of the budget at which old turns are summarized."
    )
    message_threshold: Annotated[int, Field(ge=1, le=MAX_TOKENS)] = Field(
        default=100,
        description="The number of messages from which a compaction is advised, not started.",
    )
    tool_call_threshold: Annotated[int, Field(ge=1, le=MAX_TOKENS)] = Field(
        default=50,
        description="The number of tool calls from which a compaction is advised, not started.",
    )
    target: Ratio = Field(default=0.6, description="The share of the budget that a compaction goes down to.")
    overflow_target: Ratio = Field(
        default=0.4,
        description="The same share, after the provider refused a request as too long.",
    )
    recent_preserve_ratio: Ratio = Field(
        default=0.25, description="The share of the budget that the newest turns keep word for word."
    )
    reload_prompt: bool = Field(
        default=True, description="Read the instruction files again after a compaction."
    )
    model: Text | None = Field(
        default=None,
        description="The summary's model, for summarizers that are models; unset, the provider's.",
    )
    instructions: Text | None = Field(
        default=None,
        description=(
            "What the summary must keep, in your words, for summarizers that are models. The embedded, "
            "extractive one does not read it; pins say what that keeps."
        ),
    )


class Thinking(Section):
    """How much the model reasons before it answers."""

    level: ThinkingLevel | None = Field(
        default=None, description="How much the model reasons before it answers."
    )
    budget: TokensOrNone | None = Field(
        default=None, description="The most tokens of reasoning in one answer."
    )


class Parameters(Section):
    """Sampling parameters of each request; unset, the provider's own defaults."""

    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = Field(
        default=None, description="How freely the model picks words: 0 the likeliest, 2 the freest."
    )
    max_tokens: Tokens | None = Field(default=None, description="The most tokens of one answer.")
    top_p: Ratio | None = Field(
        default=None, description="The model picks among the likeliest words that add up to this probability."
    )
    top_k: Annotated[int, Field(ge=1, le=MAX_TOKENS)] | None = Field(
        default=None, description="The model picks among this many of the likeliest words."
    )
    thinking: Thinking = Field(
        default_factory=Thinking, description="How much the model reasons before it answers."
    )


class Permissions(Section):
    """What agents may do."""

    level: Level = Field(
        default="trusted",
        description=(
            "What agents may do, widest first; a workspace file may only narrow the global level. At "
            "`sandboxed` only tools are offered that say that they only read, at `worker` of these only "
            "those that do not say that they reach outside."
        ),
    )
    allow: list[Pattern] = Field(
        default=[],
        description=(
            "Actions that are allowed, as patterns such as `fs.read` or `network.*`; empty, all are. Ignored "
            "in a workspace file that allows more than the global one's list."
        ),
    )
    deny: list[Pattern] = Field(
        default=[],
        description=(
            "Actions that are refused, as patterns; a refusal beats a permission, and no other file takes it "
            "back."
        ),
    )


class Tools(Section):
    """Tools that the model is offered."""

    disabled: list[Pattern] = Field(
        default=[],
        description="Tools that are never offered, by name or pattern such as `github.*`.",
    )
    summary: bool = Field(
        default=False, description="List the tools of a request, a line each, in its system prompt."
    )


class Skills(Section):
    """Skills (SKILL.md) that the model is told of."""

    enabled: bool = Field(default=True, description="Look for skills and list them in the system prompt.")
    include: list[Pattern] = Field(
        default=[], description="Only skills of these names or patterns; empty, all of them."
    )
    exclude: list[Pattern] = Field(default=[], description="No skill of these names or patterns.")
    paths: list[PathText] = Field(
        default=[],
        description="More directories with skills, relative to the layer's; a workspace's must be in it.",
    )


class Knowledge(Section):
    """Files that are searched with each message."""

    paths: list[PathText] = Field(
        default=[], description="Text files, directories or globs, relative to the folder of the layer."
    )
    top_k: Annotated[int, Field(ge=1, le=1000)] = Field(
        default=5, description="How many passages are added to a message."
    )
    max_tokens: TokensOrNone = Field(
        default=2000, description="The most tokens of passages in one message; 0 for none."
    )


class Memory(Section):
    """What is remembered beyond the history."""

    l1_messages: Count | None = Field(
        default=None, description="How many of the session's newest messages are always included."
    )
    l2_limit: Count | None = Field(
        default=None, description="How many important turns the session's working memory keeps."
    )
    l3_limit: Count | None = Field(default=None, description="How many summaries of the session are kept.")
    knowledge: Knowledge = Field(
        default_factory=Knowledge, description="Files that are searched with each message."
    )


class ModelLimits(Section):
    """Limits of one model, where the registry has none or wrong ones."""

    context_window: Tokens | None = Field(default=None, description="Tokens of input and output together.")
    max_output: Tokens | None = Field(default=None, description="The most tokens of one answer.")
    supports: list[Feature] | None = Field(default=None, description="What the model can do.")


class Mcp(Section):
    """Other tools' MCP files that are read along with `.nexus3/mcp.json`."""

    read_mcp_json: bool = Field(
        default=True,
        description="Read the MCP servers of `.mcp.json` in the folder and at its repository's root.",
    )
    read_vscode: bool = Field(
        default=True, description="Read the MCP servers of `.vscode/mcp.json` in the folder."
    )


class Ledger(Section):
    """Where sessions are stored; global file only."""

    path: Text | None = Field(
        default=None,
        description="The SQLite file of the sessions; unset, one in your state directory; global file only.",
    )
    url: Text | None = Field(default=None, description="A team's ledger instead of a file; global file only.")


class Config(Section):
    """Settings of Nexus; every one is optional, and the files of all layers extend each other."""

    schema_uri: str | None = Field(
        default=None,
        alias="$schema",
        description="The JSON Schema of this file, for editors; it is not a setting.",
    )
    provider: Provider = Field(default_factory=Provider, description="Who answers and who writes summaries.")
    context: Context = Field(
        default_factory=Context,
        description="What is read into the context, and how it is kept within the window.",
    )
    compaction: Compaction = Field(
        default_factory=Compaction, description="When and how old turns are replaced by a summary."
    )
    parameters: Parameters = Field(
        default_factory=Parameters,
        description="Sampling parameters of each request; unset, the provider's defaults.",
    )
    permissions: Permissions = Field(default_factory=Permissions, description="What agents may do.")
    tools: Tools = Field(default_factory=Tools, description="Tools that the model is offered.")
    skills: Skills = Field(default_factory=Skills, description="Skills (SKILL.md) that the model is told of.")
    memory: Memory = Field(default_factory=Memory, description="What is remembered beyond the history.")
    agents: Annotated[dict[str, Agent], BeforeValidator(without_comments)] = Field(
        default={}, description="Named subagents, which are started by name."
    )
    models: Annotated[dict[str, ModelLimits], BeforeValidator(without_comments)] = Field(
        default={},
        description="Limits of models, where the registry has none or wrong ones, by model name.",
    )
    mcp: Mcp = Field(
        default_factory=Mcp, description="Other tools' MCP files that are read along with `.nexus3/mcp.json`."
    )
    ledger: Ledger = Field(
        default_factory=Ledger,
        description="Where sessions are stored; global file only. `url` is an error for now.",
    )
