"""Seed 001, "Local Init Command", with the MCP servers that the folder already has.

As SPEC decides, `nexus init` is a command, not `/init`. `plan_init` is its preview; `nexus init` writes the
plan.
"""

import json
import tempfile
from pathlib import Path

from nexus_context import plan_init

folder = Path(tempfile.mkdtemp()).resolve()
server = {"command": "github-mcp", "env": {"GITHUB_PASSWORD": "hunter2"}}
(folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"github": server}}))

plan = plan_init(str(folder), adopt=True)
files = {Path(path).name: text for path, text in plan.create}
print(list(files), list(json.loads(files["config.json"])))
print([line for line in files["NEXUS.md"].splitlines() if line.startswith("#")])
print(json.loads(files["mcp.json"])["servers"])
print([(one.name, one.variables) for one in plan.adopted], plan.left)
print(json.loads(dict(plan_init(str(folder)).create)[str(folder / ".nexus3" / "mcp.json")]))

# It prints:
# ['NEXUS.md', 'config.json', 'mcp.json'] ['_comment', 'provider', 'permissions']
# ['# Project Configuration', '## Overview', '## Key Files', '## Conventions', '## Notes']
# [{'name': 'github', 'command': ['github-mcp'], 'env': {'GITHUB_PASSWORD': '${GITHUB_PASSWORD}'}}]
# [('github', ('GITHUB_PASSWORD',))] ()
# {'servers': []}
