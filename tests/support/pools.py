"""A pool of agents for a folder of a fixture."""

from collections.abc import Sequence

from nexus_context.agents import AgentPool, Around
from support.fixture import Fixture
from support.folders import load_folder


def pool_of(fixture: Fixture, folder: str, *, roots: Sequence[str] = (), followed: bool = False) -> AgentPool:
    """The pool of a folder; folders are named by fixture path."""
    paths = [fixture.path(one) for one in roots]
    return AgentPool(load_folder(fixture, folder), around_of(fixture), roots=paths, followed=followed)


def around_of(fixture: Fixture) -> Around:
    """What the fixture's folders are loaded with."""
    return Around(fixture.path("/home/.nexus3"), fixture.path("/home"), {}, {})
