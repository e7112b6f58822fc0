"""Agents, told as text, of a company, its backend and one service: who reads what, and who may what.

A step is a line that starts at the margin:

- `spawn NAME in FOLDER as ROLE below PARENT: TASK`: an agent is started; what it is and reads is listed.
  Before the colon may stand what it is given besides: `with tools=fs.*,web.get level=worker model=gpt-4o`.
- `view NAME in FOLDER as ROLE below PARENT: TASK`: the same, without starting it.
- `spawn NAME` and `view NAME`: as the settings say.
- `diff NAME OTHER`: what the one reads and the other does not, and the other way round.
- `may NAME`: its permissions, its tools by each agent's patterns, its servers, its model.
- `message NAME to OTHER`: whether it may be sent.
- `say NAME: TEXT`: the user says something to it; what its conversation and the others' cost is listed.
- `save FILE: TEXT`: the disk changes; the agents that see something else are listed with the first
  two lines of that.
- `dispose NAME`: an agent is ended; those that end with it are listed.

The indented lines below a step are what is there afterwards, worked out again and compared as a whole.
"""

import re
from collections.abc import Callable
from pathlib import Path
from textwrap import wrap
from typing import Any

from nexus_context.agents import Agent, AgentPool
from nexus_context.errors import RequestError
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative
from support.pools import pool_of

COMPANY = """
//- /home/.nexus3/NEXUS.md
Rules of the user.
//- /home/company/.nexus3/NEXUS.md
Rules of the company.
//- /home/company/.nexus3/config.json
{
  "provider": {"model": "gpt-4o"},
  "permissions": {"deny": ["network.post"]},
  "agents": {
    "lead": {
      "cwd": "backend",
      "role": "manager",
      "task": "Task: Release it.",
      "tools": ["fs.*", "tickets.*"]
    },
    "login": {"cwd": "backend/auth-service", "parent": "lead", "tools": ["fs.read", "tickets.find"]},
    "reviewer": {"parent": "login", "task": "Task: Review it.", "model": "gpt-4o-mini"}
  }
}
//- /home/company/.nexus3/mcp.json
{"servers": [{"name": "tickets", "url": "https://mcp.example/tickets"}]}
//- /home/company/.nexus3/AGENT.reviewer.md
Definition of the reviewer.
//- /home/company/.nexus3/skills/deploy/SKILL.md
---
name: deploy
description: Puts a service into production.
---
Push it.
//- /home/company/.nexus3/SOUL.md
Soul of the company.
//- /home/company/backend/AGENTS.md
Rules of the backend.
//- /home/company/backend/.nexus3/SOUL.md
Soul of the backend.
//- /home/company/backend/auth-service/.nexus3/NEXUS.md
Rules of the service.
@style.md
//- /home/company/backend/auth-service/.nexus3/style.md
Short names.
//- /home/company/backend/auth-service/.nexus3/config.json
{"permissions": {"level": "sandboxed", "allow": ["fs.*"]}}
//- /home/company/backend/auth-service/.nexus3/mcp.json
{"servers": [{"name": "keys", "url": "https://mcp.example/keys"}]}
//- /home/company/backend/auth-service/.nexus3/AGENT.md
Definition of the service's agents.
//- /home/company/backend/auth-service/.nexus3/CONTEXT.md
Context of the service.
//- /home/company/backend/auth-service/.nexus3/skills/rotate-key/SKILL.md
---
name: rotate-key
description: Replaces the key.
---
Make a new one.
//- /home/company/frontend/README.md
Readme of the frontend.
"""
BASE = "/home/company"
WIDTH = 100  # characters; a longer line goes on in the next one, indented further
STEP = re.compile(r"(spawn|view) (\S+) in (\S+) as (\w+) below (\S+?)(?: with (.*?))?: (.*)")
SHOWN = (
    "Definition of",
    "Soul of",
    "Context of",
    "Rules of",
    "Short names",
    "Readme of",
    "- deploy:",
    "- rotate-key:",
    "Task: ",
    "Alone",
)


def check(root: Path, scenario: str) -> None:
    """Play a scenario; it must come out as it is written."""
    assert play(write_fixture(COMPANY, root), scenario.strip()) == scenario.strip()


def play(fixture: Fixture, scenario: str) -> str:
    pool = pool_of(fixture, BASE)
    played: list[str] = []
    for step in scenario.splitlines():
        if step and not step.startswith(" "):
            lines = (wrap(line, WIDTH, subsequent_indent="  ") for line in done(fixture, pool, step))
            played += [step, *(f"  {line}" for wrapped in lines for line in wrapped), ""]
    return "\n".join(played).strip()


def done(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    try:
        return DONE[step.partition(" ")[0]](fixture, pool, step)
    except RequestError as error:
        return [f"{error.code}: {relative(fixture, str(error))}"]


def started(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    start = pool.spawn if step.startswith("spawn") else pool.view_as
    asked = STEP.match(step)
    if asked is None:
        return state(start(step.partition(" ")[2]))
    _, name, folder, role, parent, given, task = asked.groups()
    return state(start(name, folder, role, f"Task: {task}", parent=parent, **options(given or "")))


def options(given: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in given.split():
        name, _, value = pair.partition("=")
        if name == "level":
            found["permissions"] = {"level": value}
        else:
            found[name] = value.split(",") if name == "tools" else value
    return found


def compared(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    one, other = (read(pool.get(name)) for name in step.split()[1:])
    return [
        *(f"+ {line}" for line in one if line not in other),
        *(f"- {line}" for line in other if line not in one),
    ]


def granted(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    agent = pool.get(step.split()[1])
    may = agent.permissions
    allowed, denied = (", ".join(patterns) or "-" for patterns in (may.allow, may.deny))
    servers = ", ".join(server.name for server in agent.snapshot.layers.servers) or "-"
    return [
        f"level {may.level}; allowed {allowed}; denied {denied}",
        f"tools {' within '.join(', '.join(patterns) for patterns in agent.tools[::-1]) or 'all'}",
        f"servers {servers}; model {agent.model}",
    ]


def messaged(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    _, source, _, target = step.split()
    pool.check_message(source, target)
    return ["it may"]


def said(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    name, _, text = step.removeprefix("say ").partition(": ")
    pool.get(name).conversation.add_user_message(text)
    shown = []
    for agent in pool.list():
        usage = agent.usage()
        history = usage.by_category().get("history", 0)
        shown.append(f"{agent.session}: {history} tokens of {usage.available:,} for {usage.model}")
    return shown


def disposed(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    return [" ".join(pool.dispose(step.partition(" ")[2]))]


def saved(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    path, _, text = step.removeprefix("save ").partition(": ")
    Path(fixture.path(f"{BASE}/{path}")).write_text(text + "\n")
    now = load_folder(fixture, BASE, previous=pool.main.snapshot)
    return [f"{one.id}: {', '.join(read(one)[:2])}" for one in pool.refresh(now)] or ["nobody sees it"]


DONE: dict[str, Callable[[Fixture, AgentPool, str], list[str]]] = {
    "spawn": started,
    "view": started,
    "diff": compared,
    "may": granted,
    "message": messaged,
    "say": said,
    "dispose": disposed,
    "save": saved,
}


def state(agent: Agent) -> list[str]:
    parent = agent.parent.id if agent.parent else "nobody"
    return [f"{agent.role} below {parent}, {agent.depth} deep, {agent.permissions.level}", *read(agent)]


def read(agent: Agent) -> list[str]:
    lines = [line.partition(" (/")[0] for line in agent.prompt.text.splitlines() if line.startswith(SHOWN)]
    assert len(lines) == len(set(lines)), "a file is in a prompt once"
    return lines


def test_a_company_its_backend_and_one_service(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
view auth in backend/auth-service as worker below main: Fix the login.
  worker below main, 1 deep, sandboxed
  Rules of the backend.
  Rules of the service.
  Short names.
  Context of the service.
  Soul of the company.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  - rotate-key: Replaces the key.
  Task: Fix the login.

spawn backend in backend as manager below main: Release it.
  manager below main, 1 deep, trusted
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  Task: Release it.

spawn auth in backend/auth-service as worker below backend: Fix the login.
  worker below backend, 2 deep, sandboxed
  Rules of the service.
  Short names.
  Context of the service.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  - rotate-key: Replaces the key.
  Task: Fix the login.

spawn tests in backend as worker below auth: Test the login.
  worker below auth, 3 deep, sandboxed
  Rules of the service.
  Short names.
  Context of the service.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  Task: Test the login.

spawn web in frontend as worker below main: Fix the page.
  worker below main, 1 deep, trusted
  Readme of the frontend.
  Soul of the company.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  Task: Fix the page.

spawn lead in backend as manager below auth: Lead.
  agent-role: Worker 'auth' may start only workers. Start 'lead' as a worker, or from its manager.

save backend/auth-service/.nexus3/style.md: Short names, always.
  auth: Rules of the service., Short names, always.
  tests: Rules of the service., Short names, always.

save backend/notes.md: Nothing.
  nobody sees it

dispose backend
  tests auth backend
""",
    )


def test_a_chain_of_the_settings_narrows_from_agent_to_agent(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
spawn login
  unknown-agent: The parent of agent 'login' is 'lead', which is defined in
    /home/company/.nexus3/config.json and is not started. Start it first.

spawn lead
  manager below main, 1 deep, trusted
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  Task: Release it.

spawn login
  worker below lead, 2 deep, sandboxed
  Rules of the service.
  Short names.
  Context of the service.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  - rotate-key: Replaces the key.

spawn reviewer
  worker below login, 3 deep, sandboxed
  Definition of the reviewer.
  Rules of the service.
  Short names.
  Context of the service.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  - rotate-key: Replaces the key.
  Task: Review it.

diff login lead
  + Rules of the service.
  + Short names.
  + Context of the service.
  + - rotate-key: Replaces the key.
  - Task: Release it.

diff reviewer login
  + Definition of the reviewer.
  + Task: Review it.

may lead
  level trusted; allowed -; denied network.post
  tools fs.*, tickets.*
  servers tickets; model gpt-4o

may login
  level sandboxed; allowed fs.*; denied network.post
  tools fs.read, tickets.find within fs.*, tickets.*
  servers tickets; model gpt-4o

may reviewer
  level sandboxed; allowed fs.*; denied network.post
  tools fs.read, tickets.find within fs.*, tickets.*
  servers -; model gpt-4o-mini

spawn tester in backend/auth-service as worker below login with level=trusted: Test it.
  agent-permissions: Agent 'tester' may not have the level "trusted": its parent has "sandboxed". Ask
    for "sandboxed" or less, or widen permissions.level of the parent.

spawn tester in backend/auth-service as worker below login with tools=fs.write: Test it.
  agent-tools: Agent 'tester' cannot be given the tool "fs.write": its parent 'login' has "fs.read" or
    "tickets.find". Choose among those.

spawn tester in backend/auth-service as worker below login with tools=fs.read model=gpt-4.1: Test it.
  worker below login, 3 deep, sandboxed
  Rules of the service.
  Short names.
  Context of the service.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  - rotate-key: Replaces the key.
  Task: Test it.

may tester
  level sandboxed; allowed fs.*; denied network.post
  tools fs.read within fs.read, tickets.find within fs.*, tickets.*
  servers -; model gpt-4.1

view head in backend/auth-service as manager below lead: Lead.
  manager below lead, 2 deep, sandboxed
  Rules of the service.
  Short names.
  Definition of the service's agents.
  Context of the service.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  - deploy: Puts a service into production.
  - rotate-key: Replaces the key.
  Task: Lead.

view head in backend/auth-service as manager below lead with system_prompt=Alone: Lead.
  manager below lead, 2 deep, sandboxed
  Alone
  - deploy: Puts a service into production.
  - rotate-key: Replaces the key.
  Task: Lead.

message reviewer to login
  it may

message reviewer to lead
  agent-message: Worker 'reviewer' reports to 'login' only. Send it there.

message lead to tester
  it may

message login to tester
  it may

say login: Compare the tokens in constant time.
  agent:lead: 0 tokens of 126,000 for gpt-4o
  agent:login: 11 tokens of 126,000 for gpt-4o
  agent:reviewer: 0 tokens of 126,000 for gpt-4o-mini
  agent:tester: 0 tokens of 1,045,576 for gpt-4.1

save backend/auth-service/.nexus3/config.json: {"permissions": {"level": "worker", "deny": ["fs.delete"]}}
  login: Rules of the service., Short names.
  reviewer: Definition of the reviewer., Rules of the service.
  tester: Rules of the service., Short names.

may login
  level worker; allowed -; denied network.post, fs.delete
  tools fs.read, tickets.find within fs.*, tickets.*
  servers tickets; model gpt-4o

save backend/.nexus3/config.json: {"permissions": {"deny": ["fs.read"]}}
  lead: Rules of the backend., Soul of the backend.
  login: Rules of the service., Short names.
  reviewer: Definition of the reviewer., Rules of the service.
  tester: Rules of the service., Short names.

may reviewer
  level worker; allowed -; denied network.post, fs.read, fs.delete
  tools fs.read, tickets.find within fs.*, tickets.*
  servers -; model gpt-4o-mini

dispose login
  reviewer tester login

say lead: Who is left?
  agent:lead: 8 tokens of 126,000 for gpt-4o
""",
    )
