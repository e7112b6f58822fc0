"""Load a folder of a fixture: the home directory is `/home`, the global directory `/home/.nexus3`."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from nexus_context.config.picked_model import ModelChoice
from nexus_context.folder.layers import Layers, read_layers
from nexus_context.folder.loading import load
from nexus_context.folder.prompt.environment import Environment
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from support.fixture import Fixture, write_fixture

HOST = Environment(host="box", os="Debian GNU/Linux 12", arch="x86_64", terminal=None, mode="Editor")


def load_inputs(user_home: str, **others: Any) -> LoadInputs:
    """What folders are loaded with, where the global directory is `.nexus3` in the home directory."""
    values = {"environ": {}, "environment": HOST, **others}
    return LoadInputs(home=f"{user_home}/.nexus3", user_home=user_home, **values)


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
    inputs = load_inputs(
        fixture.path("/home"),
        overlays={fixture.path(path): text for path, text in (overlays or {}).items()},
        agent=agent,
        root=None if root is None else fixture.path(root),
        choice=choice,
    )
    return load(fixture.path(folder), inputs, previous=previous, changed=changed, now=now)


def load_configured(root: Path, config: str = "{}", files: str = "") -> Snapshot:
    """The snapshot of the folder /home/a with these settings, and with the files of a fixture."""
    text = f"//- /home/a/.nexus3/config.json\n{config}\n{files}"
    return load_folder(write_fixture(text, root), "/home/a")


def layers_of(
    fixture: Fixture,
    folder: str,
    *,
    overlays: Mapping[str, str] | None = None,
    previous: Layers | None = None,
) -> Layers:
    """The layers of a folder; overlays are named by fixture path."""
    texts = {fixture.path(path): text for path, text in (overlays or {}).items()}
    inputs = load_inputs(fixture.path("/home"), overlays=texts)
    return read_layers(fixture.path(folder), inputs, previous=previous)


def relative(fixture: Fixture, text: str) -> str:
    """The text with the fixture's root left out of its paths."""
    return text.replace(fixture.root.rstrip("/"), "")
