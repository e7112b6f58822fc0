"""No setting without effect: each key of the schema changes something that a client of the daemon sees.

The same story is told twice in the same directory, without and with a setting. What differs from run to run
(ids, times) is masked. A new key of the schema fails here until it has a value that shows what it does.
"""

import asyncio
import contextlib
import json
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from nexus_context.config.generate import json_schema
from nexus_daemon.server import build
from support.desk import Desk
from support.fixture import write_fixture
from support.talk import HELLO, Talk, call, result
from support.waiting import wait_until

FILES = """\
//- /home/.nexus3/NEXUS.md
Be brief.
//- /home/p/q/r/s/NEXUS.md
You are in r.
//- /home/p/q/r/s/t/u/NEXUS.md
The gate is on the left.
//- /home/p/q/r/s/t/u/README.md
All about u.
//- /home/p/q/r/s/t/u/v/README.md
All about v.
//- /home/p/q/r/s/t/u/v/RULES.md
Whistle.
//- /home/p/q/r/s/t/u/v/.mcp.json
{"mcpServers": {"one": {"command": "one"}}}
//- /home/p/q/r/s/t/u/v/.vscode/mcp.json
{"servers": {"two": {"command": "two"}}}
//- /home/p/q/r/s/t/u/v/.nexus3/skills/open-gate/SKILL.md
---
name: open-gate
description: Opens the gate.
---
Push.
//- /home/p/q/r/s/t/u/v/.nexus3/skills/close-gate/SKILL.md
---
name: close-gate
description: Closes the gate.
---
Pull.
//- /home/more/skills/paint-gate/SKILL.md
---
name: paint-gate
description: Paints the gate.
---
Paint it green.
//- /home/p/q/r/s/t/u/v/docs/gate.md
# The gate

Where is the gate? It is behind the house, and its key hangs in the kitchen.

# The hinge

Where the gate hangs is the hinge, which wants oil where it turns.
"""
FOLDER = "/home/p/q/r/s/t/u/v"
GLOBAL = "/home/.nexus3/config.json"
BASE: dict[str, Any] = {
    "provider": {"name": "editor", "model": "gpt-4o"},
    "context": {"max_tokens": 3000, "reserve_tokens": 300, "keep_recent_turns": 1},
    "compaction": {"threshold": 0.95},
    "memory": {"knowledge": {"paths": ["~/p/q/r/s/t/u/v/docs"]}},
}
TOOLS = [
    {"name": name, "description": f"{name} a file.", "inputSchema": {"type": "object"}}
    for name in ("read", "write")
]
VALUES: dict[str, Any] = {
    "/provider/name": "anthropic",
    "/provider/model": "claude-sonnet-4-5",
    "/provider/base_url": "https://proxy.example/v1",
    "/provider/api_key_env": "GATE_KEY",
    "/provider/headers": {"X-Gate": "left"},
    "/context/ancestor_depth": 0,
    "/context/include_readme": True,
    "/context/readme_as_fallback": False,
    "/context/instruction_files": ["RULES.md"],
    "/context/max_tokens": 2500,
    "/context/reserve_tokens": 700,
    "/context/reserve_tool_tokens": 400,
    "/context/truncation_strategy": "recency",
    "/context/truncation_target": 1.0,
    "/context/keep_recent_turns": 8,
    "/context/pin_first": False,
    "/context/identifier_tokens": 0,
    "/context/cache_ttl": "1h",
    "/context/datetime/placement": "system",
    "/context/datetime/format": "dddd",
    "/context/datetime/timezone": "Asia/Tokyo",
    "/context/section_separator": "\n\n***\n\n",
    "/context/sections": [{"name": "Extra", "content": "Mind the step."}],
    "/context/git": False,
    "/context/replay": "plain",
    "/compaction/enabled": False,
    "/compaction/threshold": 0.3,
    "/compaction/message_threshold": 2,
    "/compaction/tool_call_threshold": 1,
    "/compaction/target": 0.3,
    "/compaction/overflow_target": 0.9,
    "/compaction/recent_preserve_ratio": 0.05,
    "/compaction/model": "small",
    "/compaction/instructions": "Keep every number.",
    "/parameters/temperature": 0.1,
    "/parameters/max_tokens": 123,
    "/parameters/top_p": 0.5,
    "/parameters/top_k": 7,
    "/parameters/thinking/level": "high",
    "/parameters/thinking/budget": 2000,
    "/permissions/level": "sandboxed",
    "/permissions/allow": ["read"],
    "/permissions/deny": ["write"],
    "/tools/disabled": ["write"],
    "/tools/summary": True,
    "/skills/enabled": False,
    "/skills/include": ["open-*"],
    "/skills/exclude": ["open-*"],
    "/skills/paths": ["~/more/skills"],
    "/memory/levels": ["L2", "L3"],
    "/memory/events": 0,
    "/memory/l1_messages": 30,
    "/memory/l2_limit": 1,
    "/memory/l3_limit": 0,
    "/memory/knowledge/paths": [],
    "/memory/knowledge/top_k": 1,
    "/memory/knowledge/max_tokens": 0,
    "/agents": {"helper": {"role": "manager", "system_prompt": "You help."}},
    "/models": {"gpt-4o": {"context_window": 2000}},
    "/mcp/read_mcp_json": False,
    "/mcp/read_vscode": False,
    "/ledger/path": "~/elsewhere.db",
    "/ledger/url": "postgres://example.invalid/x",
}
TOGETHER_WITH = {key: {"/provider/name": "openai"} for key in ("/provider/base_url", "/provider/headers")}
"""Other settings that a setting needs to have an effect."""
NOT_HERE = {
    "/tools/defer": "tests/daemon/servers/test_deferred_tools.py",
    "/check/ignore": "tests/cli/test_check_repository.py",
    "/views/show": "tests/daemon/api/test_view.py",
    "/views/conversations": "tests/cli/test_conversations_off.py",
    "/chat/max_steps": "tests/daemon/chat/test_send.py",
    "/chat/max_tokens": "tests/daemon/chat/test_send.py",
    "/chat/max_usd": "tests/daemon/chat/test_send.py",
    "/daemon/idle_minutes": "tests/e2e/test_shared_daemon.py",
    "/$schema": "names the schema for the editor",
    "/compaction/reload_prompt": "tests/daemon/sessions/test_model_summarizer.py",
    "/memory/knowledge/embeddings/enabled": "tests/daemon/workspace/test_knowledge.py",
    "/memory/knowledge/embeddings/model": "tests/daemon/workspace/test_knowledge.py",
    "/memory/knowledge/embeddings/min_similarity": "tests/daemon/workspace/test_knowledge.py",
}
MASKS = (
    (re.compile(r'"freshness": \{[^}]*\}'), "(freshness)"),
    (re.compile(r"\b[0-9a-f]{12,64}\b"), "#"),
    (re.compile(r'"id": "[0-9a-f]{8}-\d+"'), "(event)"),
    (re.compile(r"\d\d\d\d-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?([+-]\d\d:\d\d|Z)?"), "(time)"),
    (re.compile(r'"(assemblyMs|uptime\w*|pid|rssBytes|memory)": ?[\d.]+'), "(figure)"),
)


def keys_of(section: dict[str, Any], at: str = "") -> Iterator[str]:
    """The pointers of all settings that are no sections."""
    for name, value in section["properties"].items():
        if "properties" in value:
            yield from keys_of(value, f"{at}/{name}")
        else:
            yield f"{at}/{name}"


def test_each_key_of_the_schema_is_shown_to_have_an_effect() -> None:
    keys = set(keys_of(json_schema()))
    assert VALUES.keys() | NOT_HERE.keys() == keys
    repository = Path(__file__).resolve().parents[2]
    shown = {place: key for key, place in NOT_HERE.items() if place.startswith("tests/")}
    for place, key in shown.items():
        assert key.rpartition("/")[2] in (repository / place).read_text(encoding="utf-8"), key


def merged(values: dict[str, Any]) -> dict[str, Any]:
    """The base settings with these ones set."""
    settings: dict[str, Any] = json.loads(json.dumps(BASE))
    for pointer, value in values.items():
        *parents, last = pointer.split("/")[1:]
        section = settings
        for parent in parents:
            section = section.setdefault(parent, {})
        section[last] = value
    return settings


@pytest.fixture(scope="module")
def root() -> Iterator[Path]:
    """One directory for all stories: token counts depend on the paths in a prompt."""
    with TemporaryDirectory(prefix="nexus-settings-") as directory:
        yield Path(directory) / "tree"


@pytest.fixture(scope="module")
def without(root: Path) -> dict[str, str]:
    """What a client sees with the base settings."""
    return asyncio.run(observe(root, BASE))


def test_the_same_settings_show_the_same(root: Path, without: dict[str, str]) -> None:
    assert asyncio.run(observe(root, BASE)) == without


@pytest.mark.parametrize("pointer", VALUES)
def test_a_setting_has_an_effect(root: Path, without: dict[str, str], pointer: str) -> None:
    others = TOGETHER_WITH.get(pointer, {})
    base = asyncio.run(observe(root, merged(others))) if others else without
    with_setting = asyncio.run(observe(root, merged({**others, pointer: VALUES[pointer]})))
    assert [name for name, text in with_setting.items() if base.get(name) != text]


async def observe(root: Path, settings: dict[str, Any]) -> dict[str, str]:
    """What a client of a daemon with these global settings sees, masked, by request."""
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    tree = write_fixture(FILES, root)
    Path(tree.path(GLOBAL)).write_text(json.dumps(settings), encoding="utf-8")
    git = Path(tree.path(f"{FOLDER}/.git"))
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    desk = Desk(tree)
    talk = Talk(partial(build, lambda: desk.daemon))
    params = {**HELLO["params"], "workspaceFolders": [{"uri": desk.uri(FOLDER), "name": "v"}]}
    params["capabilities"] = {"experimental": {"nexus": {"modelComplete": True}}}
    talk.send({**HELLO, "params": params})
    questions: list[Any] = []
    answering = asyncio.create_task(_answer(talk, questions))
    try:
        observed = await _requests(desk, talk)
    finally:
        answering.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await answering
        await desk.daemon.close()
    observed["questions"] = questions
    return {name: _masked(root, value) for name, value in observed.items()}


async def _answer(talk: Talk, questions: list[Any]) -> None:
    """Be the client's model."""
    answered: set[Any] = set()
    while True:
        asked = [one for one in talk.writer.messages() if one.get("method") == "nexus/model/complete"]
        for question in asked:
            if question["id"] not in answered:
                answered.add(question["id"])
                instruction = question["params"]["messages"][-1]
                questions.append([question["params"].get("model"), instruction])
                talk.send(result(question["id"], {"content": "## Goal\nFind the gate.", "model": "m"}))
        await asyncio.sleep(0.01)


async def _requests(desk: Desk, talk: Talk) -> dict[str, Any]:
    observed: dict[str, Any] = {}
    folder = {"workspaceFolder": desk.uri(FOLDER)}

    async def ask(name: str, method: str, **params: Any) -> None:
        number = len(observed) + 1
        talk.send(call(number, f"nexus/{method}", {**folder, **params} if method != "status" else {}))
        reply = await desk.reply(talk, number)
        observed[name] = reply.get("result", reply.get("error"))

    await wait_until(lambda: len(desk.daemon.windows.folders))
    options = {"additionalTools": TOOLS, "memoryTools": True, "skills": ["open-gate"]}
    question = {"message": "Where is the gate, and who has the key?", "options": options}
    await ask("layers", "context/layers")
    await ask("preview", "context/preview")
    for number in range(24):
        tool_call = {"id": f"c{number}", "name": "read", "arguments": {"path": f"docs/gate_{number}.md"}}
        turn = [
            {
                "role": "user",
                "content": f"Always read page {number} first; the code is gate_{number}_{number * 7919}.",
            },
            {"role": "assistant", "content": None, "toolCalls": [tool_call]},
            {"role": "tool", "toolCallId": f"c{number}", "content": f"The gate has {number} bars. " * 6},
            {"role": "assistant", "content": f"Decided: bar {number} is painted green."},
        ]
        await ask(f"append {number}", "session/append", messages=turn)
        if number == 1:
            await ask("small", "context/assemble", **question)
    await ask("usage", "context/usage")
    await ask("turn", "context/assemble", **question)
    await ask("body", "context/assemble", **question, format="openai")
    await ask("cached body", "context/assemble", **question, format="anthropic")
    await ask("event", "event/publish", kind="gate.opened", data={"content": "The gate is open."})
    await ask("with event", "context/assemble", **question)
    answered = [
        {"role": "user", "content": question["message"]},
        {"role": "assistant", "content": "Sir Bors has it."},
    ]
    await ask("answer", "session/append", messages=answered)
    await ask("replayed", "context/assemble", message="Is he at home?")
    await ask("fork", "session/fork", to="other")
    await ask("compact", "session/compact")
    await ask("overflow", "session/compact", session="other", overflow=True)
    await ask("compacted", "session/messages")
    for level in ("l2", "l3"):
        await ask(level, "memory/query", tool=f"query_{level}_memory", arguments={})
    await ask("spawn", "agent/spawn", agentId="helper", cwd=desk.uri(FOLDER))
    await ask("agent", "context/preview", agent="helper")
    await ask("status", "status")
    return observed


def _masked(root: Path, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace(str(root), "")
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text
