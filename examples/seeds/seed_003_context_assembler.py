"""The examples of the seed "Context Assembler", in Python: each asserts what its text promises."""

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nexus_context import (
    ActiveSkill,
    Message,
    RequestError,
    create_context_assembler,
    get_model_limits,
    supports_feature,
)


class Sessions:
    """The program's own session store."""

    def __init__(self) -> None:
        self.messages: dict[str, list[Message]] = {"session-123": [Message("user", "What is 2 + 2?")]}

    def get_messages(self, session_id: str) -> Sequence[Message]:
        return self.messages.get(session_id, [])

    def get_metadata(self, session_id: str) -> Mapping[str, Any]:
        return {"parameters": {"max_tokens": 4096}, "agent_parameters": {"temperature": 0.8}}

    def add_message(self, session_id: str, message: Message) -> None:
        self.messages.setdefault(session_id, []).append(message)


class Tools:
    """The program's own tool executor."""

    def list(self) -> Sequence[dict[str, Any]]:
        return [
            {"name": "fs.read", "annotations": {"readOnlyHint": True}},
            {"name": "fs.write"},
            {"name": "execute_code"},
        ]

    def get_for_model(self, options: Any) -> Sequence[dict[str, Any]]:
        return self.list()


class Skills:
    """The program's own skills."""

    def get_active_skills(self, agent_id: str | None, session_id: str) -> Sequence[ActiveSkill]:
        return [
            ActiveSkill("poetry", "Poetry", "You write sonnets.", priority=1),
            ActiveSkill(
                "math",
                "Mathematics",
                self.get_skill_instructions("math"),
                tools=tuple(self.get_skill_tools("math")),
                examples=("Calculate 2+2", "Solve equations"),
                priority=self.get_skill_priority("math"),
            ),
        ]

    def get_skill_instructions(self, skill_id: str) -> str:
        return "You are excellent at mathematics."

    def get_skill_tools(self, skill_id: str) -> Sequence[dict[str, Any]]:
        return [{"name": "calculate", "inputSchema": {"type": "object"}}]

    def get_skill_priority(self, skill_id: str) -> int:
        return 100


home = Path(tempfile.mkdtemp()).resolve()
folder = home / "work"
folder.mkdir()
(folder / "AGENTS.md").write_text("Answer in one sentence.\n")
(folder / ".nexus3").mkdir()
(folder / ".nexus3" / "AGENT.md").write_text("You are a helpful assistant.\n")
(folder / ".nexus3" / "AGENT.research.md").write_text("You are a researcher.\n")
(folder / ".nexus3" / "SOUL.md").write_text("You are kind.\n")
environ = {"NEXUS_HOME": str(home / "global"), "HOME": str(home)}
(home / "global").mkdir()
config = {
    "provider": {"model": "claude-3-7-sonnet"},
    "parameters": {"temperature": 0.7, "top_p": 0.9},
    "context": {"truncation_strategy": "smart", "reserve_tokens": 2000, "datetime": {"placement": "off"}},
    "compaction": {"threshold": 0.8, "message_threshold": 100},
}
sessions = Sessions()
assembler = create_context_assembler(
    sessions, Tools(), skill_provider=Skills(), folder=folder, config=config, environ=environ
)

# Quick start, Example 1: all parts of a context, in the order of the sections
context = assembler.assemble("session-123")
places = [
    context.system_prompt.index(text)
    for text in ("You are a helpful assistant.", "You are kind.", "Answer in one sentence.", "mathematics")
]
assert places == sorted(places)
assert context.messages[-1].content == "What is 2 + 2?"
assert [tool["name"] for tool in context.tools] == ["calculate", "execute_code", "fs.read", "fs.write"]
assert context.metadata.active_skills == ["Mathematics", "Poetry"]
assert context.metadata.session_id == "session-123"
assert context.metadata.model_id == "claude-3-7-sonnet"
estimate = context.metadata.token_estimate
assert sum(estimate[each] for each in ("system_prompt", "messages", "tools")) == estimate["total"]
assert (context.metadata.truncated, context.metadata.should_compact) == (False, False)

# 3. Bootstrap files: AGENT.research.md before AGENT.md
assert "You are a researcher." in assembler.assemble("session-123", "research").system_prompt

# 2. Model limits registry
limits = get_model_limits("claude-3-7-sonnet")
assert (limits.context_window, limits.can("tools"), limits.can("thinking")) == (200_000, True, True)
assert supports_feature("gpt-4o", "vision")
assert not supports_feature("gpt-4", "vision")

# 8. Defaults, Example 2: request over session over agent over system
context = assembler.assemble("session-123", model_id="gpt-4o", thinking_budget=10_000, thinking_level="high")
assert context.metadata.model_id == "gpt-4o"
assert context.parameters == {
    "temperature": 0.8,
    "max_tokens": 4096,
    "top_p": 0.9,
    "thinking": {"budget": 10_000, "level": "high"},
}
assert assembler.assemble("session-123", temperature=0.9, max_tokens=16).parameters["max_tokens"] == 16

# Example 3: sandbox mode
context = assembler.assemble(
    "session-123", sandbox_mode=True, permissions=["fs.*"], disabled_tools=["execute_code"]
)
assert [tool["name"] for tool in context.tools] == ["fs.read"]

# Example 4: skills filtering, and none
assert assembler.assemble("session-123", skill_filter=["math"]).metadata.active_skills == ["Mathematics"]
assert assembler.assemble("session-123", skip_skills=True).metadata.active_skills == []

# Example 5: check compaction
assert not assembler.check_compaction("session-123").needed
sessions.messages["long"] = [Message("user", f"Question {number}?") for number in range(120)]
check = assembler.check_compaction("long")
assert (check.needed, check.reason) == (True, "message_count")
assert check.current_tokens < check.threshold

# 7. Truncation
context = assembler.assemble("long", max_context_tokens=2_900, format="anthropic")
assert context.metadata.truncated
assert context.metadata.truncation_info is not None
assert context.metadata.truncation_info["removed_messages"] > 0
assert context.assembled.request is not None

# Example 6: cache management
before = assembler.get_cache_stats()
assert assembler.assemble("session-123").metadata.cached
assert assembler.get_cache_stats().hits == before.hits + 1
sessions.add_message("session-123", Message("assistant", "4."))
assert not assembler.assemble("session-123").metadata.cached  # a new message needs no invalidation
assembler.invalidate_cache("session-123")
assert not assembler.assemble("session-123").metadata.cached
stats = assembler.get_cache_stats()
assert stats.hit_rate == stats.hits / (stats.hits + stats.misses) > 0

# Error handling
for options, code in (
    ({"temperature": 5}, "bad-parameter"),
    ({"temprature": 1}, "bad-option"),
    ({"format": "xml"}, "unknown-format"),
):
    try:
        assembler.assemble("session-123", **options)
    except RequestError as error:
        assert error.code == code, error
    else:
        raise AssertionError(options)
print(json.dumps({"sections": len(places), "hit rate": round(stats.hit_rate, 2)}))
