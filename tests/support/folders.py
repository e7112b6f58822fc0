"""Load a folder of a fixture: the home directory is `/home`, the global directory `/home/.nexus3`."""

from collections.abc import Mapping
from datetime import datetime

from nexus_context.config.picked_model import ModelChoice
from nexus_context.layers import Layers, read_layers
from nexus_context.prompt.environment import Environment
from nexus_context.snapshot import Snapshot, load
from support.fixture import Fixture

HOST = Environment(host="box", os="Debian GNU/Linux 12", arch="x86_64", terminal=None, mode="Editor")


def load_folder(
    fixture: Fixture,
    folder: str,
    *,
    overlays: Mapping[str, str] | None = None,
    previous: Snapshot | None = None,
    changed: frozenset[str] | None = None,
    now: datetime | None = None,
    agent: str | None = None,
    root: str | None = None,
    choice: ModelChoice | None = None,
) -> Snapshot:
    """The snapshot of a folder; overlays, and the opened folder that it is in, are named by fixture path."""
    return load(
        fixture.path(folder),
        home=fixture.path("/home/.nexus3"),
        user_home=fixture.path("/home"),
        environment=HOST,
        overlays={fixture.path(path): text for path, text in (overlays or {}).items()},
        environ={},
        previous=previous,
        changed=changed,
        now=now,
        agent=agent,
        root=None if root is None else fixture.path(root),
        choice=choice,
    )


def layers_of(
    fixture: Fixture,
    folder: str,
    *,
    overlays: Mapping[str, str] | None = None,
    previous: Layers | None = None,
) -> Layers:
    """The layers of a folder; overlays are named by fixture path."""
    return read_layers(
        fixture.path(folder),
        home=fixture.path("/home/.nexus3"),
        user_home=fixture.path("/home"),
        overlays={fixture.path(path): text for path, text in (overlays or {}).items()},
        environ={},
        previous=previous,
    )


def relative(fixture: Fixture, text: str) -> str:
    """The text with the fixture's root left out of its paths."""
    return text.replace(fixture.root.rstrip("/"), "")
