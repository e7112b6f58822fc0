"""The settings of `config.json`: one model per section, from which schema and reference are generated.

The only module that imports pydantic. At run time files are checked against the generated schema
(`check.py`), so only library users who want a typed `Config` pay for the import.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from nexus_context.config.fast_check import COMMENT_PREFIX
from nexus_context.config.features import Feature

MAX_TOKENS = 100_000_000
MAX_PATH = 4096  # characters; file systems allow as many bytes
MAX_NAME = 255  # characters of a pattern or a file name


def without_comments(value: Any) -> Any:
    """Drop the keys that start with `_comment`: they are allowed in every object and mean nothing."""
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
MemoryLevel = Literal["L1", "L2", "L3", "L4"]


class SettingsSection(BaseModel):
    """Base of every object of the file: strict types, no unknown keys, comments dropped."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_comments(cls, data: Any) -> Any:
        return without_comments(data)


class ProviderSection(SettingsSection):
    """The provider that answers. Address, key and headers say where a request is sent (`endpoint`)."""

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


class DatetimeSection(SettingsSection):
    """Where and how the model gets the time."""

    placement: Literal["event", "system", "off"] = Field(
        default="event",
        description="`event` puts the time into the last user message, `system` into the system prompt.",
    )
    format: Text | None = Field(
        default=None,
        description=(
            "A pattern such as `YYYY-MM-DD HH:mm`; unset, exactly that one, or in the system prompt the date "
            "alone."
        ),
    )
    timezone: Text | None = Field(
        default=None,
        description="An IANA time zone such as `Europe/Berlin`, `UTC` or `local`; unset, the local one.",
    )


class CustomSection(SettingsSection):
    """A custom section of the system prompt: a name and either `content` or `file`."""

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


class ContextSection(SettingsSection):
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
    identifier_tokens: TokensOrNone | None = Field(
        default=None,
        description=(
            "The most tokens of a note with what failed last and with names and values from what was cut; 0 "
            "for none. Unset, it takes from a tenth of a small window to a quarter of a large one, at most "
            "16,000."
        ),
    )
    cache_ttl: Literal["5m", "1h"] = Field(
        default="5m",
        description=(
            "How long Anthropic keeps what it caches of a request. An hour costs twice the price of input to "
            "write, five minutes 1.25 times; reading costs the same, and renews the time."
        ),
    )
    datetime: DatetimeSection = Field(
        default_factory=DatetimeSection, description="Where and how the model gets the time."
    )
    section_separator: str = Field(
        default="\n\n---\n\n", description="The text between two sections of the system prompt."
    )
    sections: list[CustomSection] = Field(
        default=[],
        description="Custom sections of the system prompt: a name, a content or a file, a priority.",
    )
    git: bool = Field(
        default=True,
        description=(
            "Tell the model the git branch in the last user message; in a trusted folder the changed files, "
            "too."
        ),
    )
    replay: Literal["sent", "plain"] = Field(
        default="sent",
        description=(
            "How earlier user messages are sent: `sent` with the time, facts and memory that they were first "
            "sent with, so that providers' caches keep working; `plain` without."
        ),
    )


class CompactionSection(SettingsSection):
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


class ThinkingSection(SettingsSection):
    """How much the model reasons before it answers."""

    level: ThinkingLevel | None = Field(
        default=None, description="How much the model reasons before it answers."
    )
    budget: TokensOrNone | None = Field(
        default=None, description="The most tokens of reasoning in one answer."
    )


class ParameterSection(SettingsSection):
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
    thinking: ThinkingSection = Field(
        default_factory=ThinkingSection, description="How much the model reasons before it answers."
    )


class PermissionSection(SettingsSection):
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
            "Actions that are refused, as patterns; a refusal overrides a permission, and no other file can "
            "revoke it."
        ),
    )


class ToolSection(SettingsSection):
    """Tools that the model is offered."""

    disabled: list[Pattern] = Field(
        default=[],
        description="Tools that are never offered, by name or pattern such as `github.*`.",
    )
    summary: bool = Field(
        default=False, description="List the tools of a request, a line each, in its system prompt."
    )
    defer: Literal["auto", "never", "always"] = Field(
        default="auto",
        description=(
            "Whether MCP tools are sent only when the model looks for them: with `auto`, if all of them cost "
            "more than a tenth of the available tokens."
        ),
    )


class SkillSection(SettingsSection):
    """Skills (SKILL.md) that the model can use."""

    enabled: bool = Field(default=True, description="Look for skills and list them in the system prompt.")
    include: list[Pattern] = Field(
        default=[], description="Only skills of these names or patterns; empty, all of them."
    )
    exclude: list[Pattern] = Field(default=[], description="No skill of these names or patterns.")
    paths: list[PathText] = Field(
        default=[],
        description="More directories with skills, relative to the layer's; a workspace's must be in it.",
    )


class EmbeddingsSection(SettingsSection):
    """The search of the files by meaning."""

    enabled: bool = Field(
        default=False,
        description=(
            "Search the files by meaning, too, with a model on this machine; it must be installed: "
            '`pip install "nexusd[embeddings]"`.'
        ),
    )
    model: PathText | None = Field(
        default=None,
        description=(
            "The directory of a model in the form of model2vec, relative to the global directory; set it in "
            "the global file. Unset, the installed model."
        ),
    )
    min_similarity: Ratio = Field(
        default=0.15,
        description="The cosine from which a passage counts as similar; what fits depends on the model.",
    )


class KnowledgeSection(SettingsSection):
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
    embeddings: EmbeddingsSection = Field(
        default_factory=EmbeddingsSection, description="The search of the files by meaning."
    )


class MemorySection(SettingsSection):
    """What a request includes beyond the history."""

    levels: list[MemoryLevel] = Field(
        default=["L1"],
        description=(
            "Which levels come with a message: `L1` the newest messages, `L2` the working memory, `L3` the "
            "summaries, `L4` hits in other sessions. The model can query the others where tools for it are "
            "offered."
        ),
    )
    l1_messages: Count | None = Field(
        default=None, description="How many of the session's newest messages are always included."
    )
    l2_limit: Count | None = Field(
        default=None, description="How many important turns the session's working memory keeps."
    )
    l3_limit: Count | None = Field(default=None, description="How many summaries of the session are kept.")
    events: Count = Field(
        default=12,
        description=(
            "How many of the newest events come with a message: what agents below did, and what clients "
            "published; 0 for none."
        ),
    )
    knowledge: KnowledgeSection = Field(
        default_factory=KnowledgeSection, description="Files that are searched with each message."
    )


class AgentPermissionSection(SettingsSection):
    """What one agent may do; never more than its parent."""

    level: Level | None = Field(
        default=None, description="What the agent may do; unset, what its parent may."
    )
    allow: list[Pattern] = Field(
        default=[],
        description=(
            "Actions that are allowed, as patterns; ignored in a workspace file that allows more than the "
            "global `permissions.allow`, or than the global file allows an agent of this name."
        ),
    )
    deny: list[Pattern] = Field(default=[], description="Actions that are refused, as patterns.")


class AgentSection(SettingsSection):
    """A named subagent."""

    cwd: Text | None = Field(
        default=None,
        description=(
            "The agent's directory; its context is loaded from there. Relative to the layer's directory, in "
            "the global file to the folder."
        ),
    )
    role: Role | None = Field(
        default=None, description="What the agent is: `manager`, `worker` or `unified`."
    )
    parent: Text | None = Field(
        default=None, description="The agent that starts it, by name; unset, the folder's own, `main`."
    )
    task: Text | None = Field(default=None, description="What the agent is to do.")
    model: Text | None = Field(default=None, description="The agent's model; unset, the parent's.")
    tools: list[Pattern] | None = Field(
        default=None,
        description="The tools it is offered, by name or pattern; unset, the parent's, but no MCP server.",
    )
    permissions: AgentPermissionSection = Field(
        default_factory=AgentPermissionSection,
        description="What the agent may do; never more than its parent.",
    )


class ModelSection(SettingsSection):
    """Limits of one model that the registry lacks or has wrong."""

    context_window: Tokens | None = Field(default=None, description="Tokens of input and output together.")
    max_output: Tokens | None = Field(default=None, description="The most tokens of one answer.")
    supports: list[Feature] | None = Field(
        default=None,
        description=(
            "All that the model can do, instead of what Nexus knows of it. What is not listed is not sent: "
            "tools, images (`vision`), PDFs (`documents`), a thinking budget (`thinking`)."
        ),
    )


class McpSection(SettingsSection):
    """Other tools' MCP files that are read in addition to `.nexus3/mcp.json`."""

    read_mcp_json: bool = Field(
        default=True,
        description="Read the MCP servers of `.mcp.json` in the folder and at its repository's root.",
    )
    read_vscode: bool = Field(
        default=True, description="Read the MCP servers of `.vscode/mcp.json` in the folder."
    )


class CheckSection(SettingsSection):
    """What `nexus check` and editors do not tell."""

    ignore: list[PathText] = Field(
        default=[],
        description=(
            "Codes of problems, or patterns of codes, that are not reported; `CODE:GLOB` for some files. "
            "A comment `nexus: ignore CODE` does the same for its line and the next one."
        ),
    )


class ViewsSection(SettingsSection):
    """Which assistants editors and commands speak of."""

    show: Literal["auto", "nexus", "claude-code", "codex", "opencode", "gemini", "copilot", "cursor"] = Field(
        default="auto",
        description=(
            "The assistant that is shown where there is room for one. `auto`: the one that runs in the "
            "folder, else the one that was used there last, else one that has files there."
        ),
    )
    conversations: bool = Field(
        default=True,
        description=(
            "Whether Nexus reads the conversations of other programs in the folder. `false`: it opens and "
            "lists none of their session files; what the ledger keeps of them stays. `false` in the global "
            "file holds in all folders."
        ),
    )


class LedgerSection(SettingsSection):
    """Where sessions are stored; global file only."""

    path: Text | None = Field(
        default=None,
        description="The SQLite file of the sessions; unset, one in your state directory; global file only.",
    )
    url: Text | None = Field(default=None, description="A team's ledger instead of a file; global file only.")


class ChatSection(SettingsSection):
    """The most that one turn through the provider may use; global file only."""

    max_steps: Annotated[int, Field(ge=1, le=10_000)] = Field(
        default=50,
        description="Requests of one turn to the provider; the model's calls of tools lead to more of them.",
    )
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] = Field(
        default=2_000_000,
        description="Tokens of one turn, sent and answered, from the provider's cache or not.",
    )
    max_usd: Annotated[float, Field(ge=0.0001, le=10_000)] = Field(
        default=5.0,
        description="US dollars of one turn, at list prices; a model without a price has the other limits.",
    )


class DaemonSection(SettingsSection):
    """The daemon that all windows share; global file only."""

    idle_minutes: Annotated[float, Field(ge=0, le=10_080)] = Field(
        default=30.0,
        description=(
            "Minutes without a window or command after which the shared daemon ends; 0: it never does. "
            "Global file only."
        ),
    )


class Config(SettingsSection):
    """Settings of Nexus; all are optional, and the files of all layers are merged."""

    schema_uri: str | None = Field(
        default=None,
        alias="$schema",
        description="The JSON Schema of this file, for editors; it is not a setting.",
    )
    provider: ProviderSection = Field(
        default_factory=ProviderSection,
        description=(
            "The provider that answers chats (`nexus/chat/send`) and writes summaries. Clients may send what "
            "Nexus assembles themselves: address, key variable and headers are `endpoint` of "
            "`nexus/context/assemble`, and `nexus status` shows them."
        ),
    )
    context: ContextSection = Field(
        default_factory=ContextSection,
        description="What is read into the context, and how it is kept within the window.",
    )
    compaction: CompactionSection = Field(
        default_factory=CompactionSection, description="When and how old turns are replaced by a summary."
    )
    parameters: ParameterSection = Field(
        default_factory=ParameterSection,
        description="Sampling parameters of each request; unset, the provider's defaults.",
    )
    permissions: PermissionSection = Field(
        default_factory=PermissionSection, description="What agents may do."
    )
    tools: ToolSection = Field(default_factory=ToolSection, description="Tools that the model is offered.")
    skills: SkillSection = Field(
        default_factory=SkillSection, description="Skills (SKILL.md) that the model can use."
    )
    memory: MemorySection = Field(
        default_factory=MemorySection, description="What a request includes beyond the history."
    )
    agents: Annotated[dict[str, AgentSection], BeforeValidator(without_comments)] = Field(
        default={}, description="Named subagents, which are started by name."
    )
    models: Annotated[dict[str, ModelSection], BeforeValidator(without_comments)] = Field(
        default={},
        description="Limits of models that the registry lacks or has wrong, by model name.",
    )
    mcp: McpSection = Field(
        default_factory=McpSection,
        description="Other tools' MCP files that are read in addition to `.nexus3/mcp.json`.",
    )
    views: ViewsSection = Field(
        default_factory=ViewsSection, description="Which assistants editors and commands speak of."
    )
    check: CheckSection = Field(
        default_factory=CheckSection, description="What `nexus check` and editors do not tell."
    )
    chat: ChatSection = Field(
        default_factory=ChatSection,
        description="The most that one turn through the provider may use; global file only.",
    )
    ledger: LedgerSection = Field(
        default_factory=LedgerSection,
        description="Where sessions are stored; global file only. `url` is an error for now.",
    )
    daemon: DaemonSection = Field(
        default_factory=DaemonSection,
        description="The daemon that all windows share; global file only.",
    )
