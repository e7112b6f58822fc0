"""Seed 001: the layers of a folder, their merge, the labelled prompt, and a subagent's own directory."""

import json
import os
import tempfile
from pathlib import Path

from nexus_context import (
    AgentPool,
    Config,
    ContextLoader,
    LoadInputs,
    detect,
    global_directory,
    load,
    user_home,
)

company = Path(tempfile.mkdtemp()).resolve() / "company"
service = company / "backend" / "auth-service"
for folder, text, config, servers in (
    (company, "You work at Acme Corp.", {"tools": {"disabled": ["rm"]}}, [{"name": "db", "command": ["db"]}]),
    (company / "backend", "This is the backend monorepo.", {"provider": {"model": "gpt-4o"}}, []),
    (
        service,
        "The auth-service handles authentication.",
        {"tools": {"disabled": ["curl"]}},
        [{"name": "db", "url": "http://localhost:9000"}],
    ),
):
    layer = folder / ".nexus3"
    layer.mkdir(parents=True)
    (layer / "NEXUS.md").write_text(text)
    (layer / "config.json").write_text(json.dumps(config))
    (layer / "mcp.json").write_text(json.dumps({"servers": servers}))

context = ContextLoader().load(service)
print(isinstance(context.config, Config), context.config.provider.model, context.config.tools.disabled)
for layer in context.layers[-3:]:
    print(layer.name, "|", layer.prompt)
print([(server.name, server.origin, server.type) for server in context.mcp_servers])
print([path.name for path in context.sources.ancestor_dirs], context.sources.local_dir == service / ".nexus3")
for line in context.system_prompt.splitlines():
    if line.startswith(("# System", "## Ancestor", "## Project", "## MCP")):
        print(line)

# a subagent gets its own directory's context
inputs = LoadInputs(
    home=global_directory(os.environ),
    user_home=user_home(os.environ),
    environ=os.environ,
    environment=detect("server", environ=os.environ),
)
pool = AgentPool(load(str(company), inputs), inputs, roots=[str(company)])
worker = pool.spawn("worker", "backend/auth-service")
print(
    worker.prompt.text.startswith("## Subagent Configuration"),
    worker.prompt.text.count("You work at Acme Corp."),
)

# It prints:
# True gpt-4o ['rm', 'curl']
# ancestor:company | You work at Acme Corp.
# ancestor:backend | This is the backend monorepo.
# local | The auth-service handles authentication.
# [('db', 'local', 'http')]
# ['company', 'backend'] True
# # System Configuration
# ## Ancestor Configuration (company)
# ## Ancestor Configuration (backend)
# ## Project Configuration
# ## MCP Servers
# True 1
