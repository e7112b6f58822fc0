"""The folders that are measured: a company with rules, and services in it with rules of their own.

Each service is read in three layers (global, company, its own), with 20 skills (14 of them the company's) and
5 imports (2 of them the company's): 30 files of 2 to 4 KB.
"""

import os
import time
from pathlib import Path

import msgspec

from nexus_context.agents import AgentPool
from nexus_context.folder.loading import load
from nexus_context.folder.prompt.environment import Environment
from nexus_context.folder.snapshot import LoadInputs, Snapshot

SHARED_SKILLS, OWN_SKILLS = 14, 6
SHARED_IMPORTS, OWN_IMPORTS = 2, 3
REST_S = 2.2  # until files count as at rest and are not opened again
HOST = Environment(host="box", os="Debian GNU/Linux 12", arch="x86_64", terminal=None, mode="Editor")


class Workspace(msgspec.Struct, frozen=True):
    """A made company on the disk, with the user's home directory above it."""

    home: Path
    company: Path
    services: tuple[Path, ...]

    @property
    def inputs(self) -> LoadInputs:
        """What its folders are loaded with."""
        home = str(self.home)
        return LoadInputs(home=f"{home}/.nexus3", user_home=home, environ={}, environment=HOST)

    def load(self, folder: Path) -> Snapshot:
        """The snapshot of a folder for no agent."""
        return load(str(folder), self.inputs)

    def pool(self, folder: Path) -> AgentPool:
        """A pool without agents for a folder."""
        return AgentPool(self.load(folder), self.inputs)

    def read_files(self, service: Path) -> int:
        """Read what an agent of a service is made of: the files of the user, the company and the service."""
        roots = (self.home / ".nexus3", self.company / ".nexus3", service / ".nexus3")
        return sum(len(path.read_bytes()) for root in roots for path in root.rglob("*.*"))


def write(root: Path, services: int) -> Workspace:
    """Writes the company and waits until its files are at rest."""
    home, company = root / "home", root / "home" / "company"
    _write(home / ".nexus3/NEXUS.md", _prose("Rules of the user", 40))
    shared = _layer(company, "company", SHARED_SKILLS, SHARED_IMPORTS)
    _write(company / ".nexus3/config.json", b'{"provider": {"model": "gpt-4o"}}\n')
    folders = tuple(company / f"service-{number:03}" for number in range(services))
    for folder in folders:
        written = shared + _layer(folder, folder.name, OWN_SKILLS, OWN_IMPORTS)
        _write(folder / ".nexus3/config.json", b'{"context": {"keep_recent_turns": 4}}\n')
        assert written == SHARED_SKILLS + OWN_SKILLS + SHARED_IMPORTS + OWN_IMPORTS
    os.sync()
    time.sleep(REST_S)
    return Workspace(home, company, folders)


def _layer(directory: Path, name: str, skills: int, imports: int) -> int:
    """One layer; how many skills and imports it has."""
    own = directory / ".nexus3"
    named = [f"{name}-rules-{number}.md" for number in range(imports)]
    instructions = _prose(f"Rules of {name}", 40) + "".join(f"@{each}\n" for each in named).encode()
    _write(own / "NEXUS.md", instructions)
    for each in named:
        _write(own / each, _prose(f"More rules, {each}", 40))
    for number in range(skills):
        skill = f"{name}-skill-{number}"
        front = f"---\nname: {skill}\ndescription: Does what {skill} is for, whenever a task needs it.\n---\n"
        _write(own / "skills" / skill / "SKILL.md", front.encode() + _prose(f"Steps of {skill}", 60))
    return skills + imports


def _prose(title: str, lines: int) -> bytes:
    rows = (f"- {title}, point {number}: say what was done, and where.\n" for number in range(lines))
    return "".join([f"# {title}\n\n", *rows]).encode()


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
