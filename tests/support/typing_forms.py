"""Valid files of every kind that the daemon reads, which the grammar of typing states begins with."""

import json
from typing import Any, NamedTuple


class Form(NamedTuple):
    """A kind of file: where it is in the fixture, and valid texts of it."""

    path: str
    texts: tuple[str, ...]

    @property
    def is_json(self) -> bool:
        return self.path.endswith(".json")


FOLDER = "/home/work/app"
CONFIG_PATH = f"{FOLDER}/.nexus3/config.json"
GLOBAL_CONFIG_PATH = "/home/.nexus3/config.json"
MCP_PATH = f"{FOLDER}/.nexus3/mcp.json"

_SETTINGS: dict[str, Any] = {
    "provider": {
        "name": "openai-compatible",
        "model": "gpt-4o",
        "base_url": "http://127.0.0.1:8080/v1",
        "api_key_env": "APP_KEY",
        "headers": {"x-team": "a b", "_comment": 1},
    },
    "context": {
        "ancestor_depth": 1,
        "instruction_files": ["NEXUS.md", "AGENTS.md", "é.md"],
        "max_tokens": 9000,
        "reserve_tokens": 9000,
        "datetime": {"timezone": "Europe/Berlin", "placement": "system"},
        "sections": [
            {"name": "Style", "content": "Be brief.\nBe kind.", "priority": 5},
            {"name": "More", "file": "more.md"},
        ],
    },
    "models": {"m": {"context_window": 8000}, "n": {"context_window": -1, "tokenizer": "x"}},
    "agents": {
        "_comment": {"x": 1},
        "lead": {"role": "manager", "tools": ["read_*", "mcp__db"], "permissions": {"level": "trusted"}},
        "helper": {"parent": "lead", "role": "worker", "cwd": "sub", "tools": ["read_file"], "task": "Look"},
        "lost": {"parent": "nobody", "role": "wrker"},
        "a": {"parent": "b"},
        "b": {"parent": "a", "permissions": {"level": "yolo", "allow": ["git *"]}},
    },
    "permissions": {"level": "sandboxed", "allow": ["read_*", "git *"], "deny": ["rm"]},
    "tools": {"disabled": ["write_*"], "summary": True},
    "skills": {"include": ["o*", "x"], "exclude": ["two"], "paths": ["more-skills", "../out"]},
    "compaction": {"threshold": 0.8, "target": 0.9},
    "mcp": {"read_vscode": True},
    "ledger": {"path": "/x", "url": "sqlite:"},
    "knowledge": {"paths": ["docs"]},
}
_SERVER: dict[str, Any] = {
    "command": "python3",
    "args": ["-m", "server", "${HOME:-x}", "${input:token}"],
    "env": {"TOKEN": "${APP_TOKEN}", "N": 1, "X": None},
    "cwd": "${workspaceFolder}/sub",
}
_REMOTE: dict[str, Any] = {
    "type": "http",
    "url": "https://host/${PART:-p}?x=1",
    "headers": {"Authorization": "Bearer ${T}"},
}
_INPUTS = [{"id": "token", "type": "promptString", "description": "d", "password": True}]
_CLAUDE = {"mcpServers": {"db": _SERVER, "web": _REMOTE, "off": {"command": "x", "disabled": True}}}
_VSCODE = {"inputs": _INPUTS, "servers": {"db": _SERVER, "web": {**_REMOTE, "type": "sse"}}}
_LIST = {
    "servers": [
        {"name": "db", **_SERVER, "enabled": False},
        {"name": "db", **_REMOTE, "transport": "http"},
        {"name": "both", "command": ["python3", "-V"], "url": "http://x"},
    ]
}
_SKILL = """\
---
name: one
description: >-
  Fills forms, and
  reads them.
license: "MIT"
allowed-tools: Bash(git:*, git diff:*) Read [x
metadata:
  priority: 10
  tags: [a, 'b', "c"]
  examples: |
    Which commit?
    Write it.
compatibility: any
---

# One

Text of the skill with a key sk-ant-api03-abcdefghijklmnop and @more.md.
"""
_LISTED_SKILL = (
    "---\nname: 'one'\ndescription: Fills: forms\nallowed-tools: [Read, Bash(git:*, x)]\n---\nText.\n"
)
_INSTRUCTIONS = """\
# Rules of the folder

Read @more.md and @./sub/deep.md, not `@code.md`, nor @nobody.

@more.md

| a | b |
|---|---|
| @sub/deep.md | x |

```python
@decorator
```

<!-- @comment.md: a note \u200b\u202e -->
<div style="display:none">hidden</div>

1. One
   - two\\ words @~/x.md @/etc/passwd @../out.md
"""


def _written(value: Any) -> tuple[str, ...]:
    """A value as people and programs write it."""
    return (
        json.dumps(value, indent=2),
        json.dumps(value),
        json.dumps(value, indent="\t", ensure_ascii=False).replace("\n", "\r\n"),
    )


FORMS: dict[str, Form] = {
    "config": Form(
        CONFIG_PATH, (*_written(_SETTINGS), *(json.dumps({key: _SETTINGS[key]}) for key in _SETTINGS))
    ),
    "global config": Form(GLOBAL_CONFIG_PATH, _written(_SETTINGS)),
    "mcp": Form(MCP_PATH, (*_written(_CLAUDE), *_written(_VSCODE), *_written(_LIST))),
    "global mcp": Form("/home/.nexus3/mcp.json", _written(_CLAUDE | _LIST)),
    "project mcp": Form(f"{FOLDER}/.mcp.json", _written(_CLAUDE)),
    "vscode mcp": Form(f"{FOLDER}/.vscode/mcp.json", ("// x\n" + _written(_VSCODE)[0], _written(_VSCODE)[1])),
    "skill": Form(
        f"{FOLDER}/.nexus3/skills/one/SKILL.md", (_SKILL, _LISTED_SKILL, _SKILL.replace("\n", "\r\n"))
    ),
    "instructions": Form(f"{FOLDER}/NEXUS.md", (_INSTRUCTIONS, _INSTRUCTIONS.replace("\n", "\r\n"))),
    "agent": Form(f"{FOLDER}/.nexus3/AGENT.md", ("# Who\n\nYou are @more.md.\n", _INSTRUCTIONS)),
    "import": Form(f"{FOLDER}/more.md", ("More. @NEXUS.md @sub/deep.md\n", _INSTRUCTIONS)),
}

TREE = f"""
//- /home/.nexus3/NEXUS.md
Rules of the user.
//- /home/work/NEXUS.md
Rules of the ancestor.
//- {FOLDER}/sub/deep.md
Deep. @../more.md
//- {FOLDER}/.nexus3/skills/two/SKILL.md
---
name: two
description: The second.
---
"""
"""The files beside those of the forms."""
