"""What `metadata` of `nexus/context/assemble` may hold: an open object, so no struct says it."""

from support.protocol_source import Field

INTRODUCTION = """\
#### Metadata

What `metadata` of the result may hold.
"""
METADATA = [
    Field(
        "tokens",
        "object of integer",
        None,
        "sums of `usage.rows` by category",
    ),
    Field(
        "stablePrefixTokens",
        "integer",
        None,
        "tokens of system prompt and tools, which stay the same each turn",
    ),
    Field(
        "prefixHash",
        "string",
        None,
        "SHA-256 of these; equal hashes are equal bytes",
    ),
    Field(
        "wantedPercent",
        "number",
        None,
        "how full the context would be had nothing been cut, in percent of `usage.available`: what "
        "triggers a compaction, at `compaction.threshold`",
    ),
    Field(
        "shouldCompact",
        "boolean",
        None,
        "whether a compaction is advised",
    ),
    Field(
        "compactionReason",
        "string",
        "null",
        "why: `token_limit`, `message_count` or `tool_count`",
    ),
    Field(
        "compaction",
        "object",
        "null",
        "the compaction that was due before this turn: `id`, `reached` (whether the turn is now below the "
        "threshold) and `receipt` (a [Receipt](#receipt)); or `reached` false and `problem`, why nothing "
        "was compacted; without `id` and `problem`, another window or request compacted it",
    ),
    Field(
        "truncated",
        "boolean",
        None,
        "whether messages of the session are not sent, or not whole",
    ),
    Field(
        "truncation",
        "object",
        "null",
        "`strategy`; `removedMessages`; `removedTokens` = `originalTokens` - `finalTokens`, of the "
        "history; `keptFromStart`, how many of the first messages are sent; `identifierTokens`, of the "
        "note with names and values; `shortened`, the indexes, among all messages of the session, of results "
        "that are sent shortened; `unreadMessages`, where there are any: of the removed ones, those that "
        "were not read, with their tokens as they were counted when they came",
    ),
    Field(
        "cache",
        "object",
        None,
        "what a provider can reuse of the request before: a [CacheReport](#cachereport)",
    ),
    Field(
        "toolsLeftOut",
        "object",
        "null",
        "names of tools that are not offered, each with the reason",
    ),
    Field(
        "repairs",
        "array of object",
        "null",
        "what a provider's body holds otherwise than it was given: `kind` (the same word for the same "
        "repair), `text` for people; `index?`, the place among the history that is sent, then the current "
        "message; `toolCallId?`; `given?` and `sent?`, a name or id before and after. With `neutral`: what "
        "a provider's body would need of the history, which is given as it came. At most 100, "
        "then one of the kind `more`",
    ),
    Field(
        "unsent",
        "array of string",
        "null",
        "what the body cannot hold, such as parameters that the model does not take",
    ),
    Field(
        "activeSkills",
        "array of string",
        None,
        "names of the skills whose text is in the system prompt",
    ),
    Field(
        "attachments",
        "array of object",
        "null",
        "what became of each of the request's `attachments`: `uri`, `label` (that of its row), `status`: "
        "`sent`, `shortened`, `in-prompt`, `no-room` or `unreadable` (so is what the folder must not read)",
    ),
    Field(
        "instructions",
        "array of object",
        "null",
        "what became of each instruction file of the folder that is for some files only: `uri`, `label`, "
        "`appliesTo` (its globs), `file?` (the turn's that fits), `status`: as of `attachments`, or "
        "`not-applied`",
    ),
    Field(
        "memory",
        "object",
        "null",
        "what is remembered, where there is anything: `included` and `dropped`, the labels of what was put "
        "before the user's message and of what there was no room for; `tokens`; `shortened?`, labels of what "
        "is sent shortened; `messages?`, ids of messages of agents that were delivered; `failures?`, what "
        "could not be asked, and why",
    ),
    Field(
        "contextJson",
        "object",
        None,
        "a record of this turn for ledgers",
    ),
    Field(
        "cached",
        "boolean",
        None,
        "whether the context was assembled before and nothing has changed since",
    ),
    Field(
        "assemblyMs",
        "number",
        None,
        "milliseconds that it took",
    ),
]
"""Each field, in the order of the table; the default `null` marks one that may be absent."""
