"""Agents, told as text, of a company, its backend and one service: who reads what, and who may what.

A step is a line that starts at the margin:

- `spawn NAME in FOLDER as ROLE below PARENT: TASK`: an agent is started; what it may and reads is listed.
- `view NAME in FOLDER as ROLE below PARENT: TASK`: the same, without starting it.
- `save FILE: TEXT`: the disk changes; the agents that see something else are listed with the first
  two lines of that.
- `dispose NAME`: an agent is ended; those that end with it are listed.

The indented lines below a step are what is there afterwards, worked out again and compared as a whole.
"""

import re
from pathlib import Path

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
{"permissions": {"level": "sandboxed"}}
//- /home/company/frontend/README.md
Readme of the frontend.
"""
BASE = "/home/company"
STEP = re.compile(r"(spawn|view) (\S+) in (\S+) as (\w+) below (\S+): (.*)")
SHOWN = ("Rules of", "Soul of", "Short names", "Readme of", "Task: ")


def check(root: Path, scenario: str) -> None:
    """Play a scenario; it must come out as it is written."""
    assert play(write_fixture(COMPANY, root), scenario.strip()) == scenario.strip()


def play(fixture: Fixture, scenario: str) -> str:
    pool = pool_of(fixture, BASE)
    played: list[str] = []
    for step in scenario.splitlines():
        if step and not step.startswith(" "):
            played += [step, *(f"  {line}" for line in done(fixture, pool, step)), ""]
    return "\n".join(played).strip()


def done(fixture: Fixture, pool: AgentPool, step: str) -> list[str]:
    started = STEP.match(step)
    if started is not None:
        verb, name, folder, role, parent, task = started.groups()
        start = pool.spawn if verb == "spawn" else pool.view_as
        try:
            return state(start(name, folder, role, f"Task: {task}", parent))
        except RequestError as error:
            return [f"{error.code}: {relative(fixture, str(error))}"]
    verb, _, rest = step.partition(" ")
    if verb == "dispose":
        return [" ".join(pool.dispose(rest))]
    path, _, text = rest.partition(": ")
    Path(fixture.path(f"{BASE}/{path}")).write_text(text + "\n")
    now = load_folder(fixture, BASE, previous=pool.main.snapshot)
    return [f"{one.id}: {', '.join(read(one)[:2])}" for one in pool.refresh(now)] or ["nobody sees it"]


def state(agent: Agent) -> list[str]:
    parent = agent.parent.id if agent.parent else "nobody"
    return [f"{agent.role} below {parent}, {agent.depth} deep, {agent.permissions.level}", *read(agent)]


def read(agent: Agent) -> list[str]:
    return [line for line in agent.prompt.text.splitlines() if line.startswith(SHOWN)]


def test_a_company_its_backend_and_one_service(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
view auth in backend/auth-service as worker below main: Mend the login.
  worker below main, 1 deep, sandboxed
  Rules of the backend.
  Rules of the service.
  Short names.
  Soul of the company.
  Rules of the user.
  Rules of the company.
  Task: Mend the login.

spawn backend in backend as manager below main: Release it.
  manager below main, 1 deep, trusted
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  Task: Release it.

spawn auth in backend/auth-service as worker below backend: Mend the login.
  worker below backend, 2 deep, sandboxed
  Rules of the service.
  Short names.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  Task: Mend the login.

spawn tests in backend as worker below auth: Test the login.
  worker below auth, 3 deep, sandboxed
  Rules of the service.
  Short names.
  Rules of the backend.
  Soul of the backend.
  Rules of the user.
  Rules of the company.
  Task: Test the login.

spawn web in frontend as worker below main: Mend the page.
  worker below main, 1 deep, trusted
  Readme of the frontend.
  Soul of the company.
  Rules of the user.
  Rules of the company.
  Task: Mend the page.

spawn lead in backend as manager below auth: Lead.
  agent-role: Worker 'auth' may start workers only, no manager. Start 'lead' as a worker or from its manager.

save backend/auth-service/.nexus3/style.md: Short names, always.
  auth: Rules of the service., Short names, always.
  tests: Rules of the service., Short names, always.

save backend/notes.md: Nothing.
  nobody sees it

dispose backend
  tests auth backend
""",
    )
