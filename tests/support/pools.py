"""A pool of agents for a folder of a fixture."""

from collections.abc import Sequence

from nexus_context.agents import AgentPool
from nexus_context.folder.snapshot import LoadInputs
from support.fixture import Fixture
from support.folders import load_folder, load_inputs


def pool_of(fixture: Fixture, folder: str, *, roots: Sequence[str] = (), followed: bool = False) -> AgentPool:
    """The pool of a folder; folders are named by fixture path."""
    paths = [fixture.path(one) for one in roots]
    return AgentPool(load_folder(fixture, folder), inputs_of(fixture), roots=paths, followed=followed)


def inputs_of(fixture: Fixture) -> LoadInputs:
    """What the fixture's folders are loaded with."""
    return load_inputs(fixture.path("/home"))
