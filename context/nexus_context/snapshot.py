"""What is known of one folder at one moment: layers, settings, prompt and problems, frozen and complete.

1. Files are read, unsaved text first; what is unchanged since the previous snapshot is taken from it.
2. The prompt of the folder is rendered with the configured model; a request's own is rendered from the same.
3. The revision grows when anything that a reader could see differs.
"""

import os
from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from nexus_context.config.merge import Effective
from nexus_context.errors import Problem
from nexus_context.layers.model import Layers
from nexus_context.layers.read import Surroundings, open_layers, with_reading
from nexus_context.layers.recheck import recheck
from nexus_context.prompt.contents import Contents, gather
from nexus_context.prompt.environment import Environment
from nexus_context.prompt.render import Prompt, render
from nexus_context.prompt.sections import Facts
from nexus_context.tokens.models import resolve


class Snapshot(msgspec.Struct, frozen=True):
    """One folder. `revision` counts from 1; `prompt_for` renders from `environment` and `contents`."""

    folder: str
    revision: int
    layers: Layers
    prompt: Prompt
    problems: tuple[Problem, ...]
    environment: Environment
    contents: Contents

    @property
    def effective(self) -> Effective:
        """The merged settings."""
        return self.layers.effective


def load(
    folder: str,
    *,
    home: str,
    user_home: str,
    environment: Environment,
    overlays: Mapping[str, str],
    environ: Mapping[str, str],
    previous: Snapshot | None = None,
    changed: Collection[str] | None = None,
    now: datetime | None = None,
) -> Snapshot:
    """Load a folder by its absolute path; never raises for anything that its files may be.

    `home` is the global directory, `user_home` the user's home directory, `overlays` unsaved text by
    absolute path. `changed` are the only paths whose unsaved text or file can have changed since `previous`;
    None: look at everything. `now` has a zone; it counts only with `datetime.placement = system`.
    """
    if previous is not None and changed is not None and len(changed) == 1:
        (path,) = changed
        typed = keystroke(previous, path, overlays[path], home=home) if path in overlays else None
        if typed is not None:
            return typed
    around = Surroundings(home, user_home, overlays, environ)
    opened, reading = open_layers(folder, around, previous.layers if previous else None, changed)
    contents = gather(opened, reading, user_home)
    layers = with_reading(opened, reading)
    facts = Facts(window=_window(layers.effective, None), now=now)
    prompt = render(layers, contents, environment=environment, facts=facts)
    problems = (*layers.problems, *contents.problems)
    revision = 1
    if previous is not None:
        same = previous.problems == problems and previous.prompt == prompt and _same(previous.layers, layers)
        revision = previous.revision if same else previous.revision + 1
    return Snapshot(folder, revision, layers, prompt, problems, environment, contents)


def keystroke(previous: Snapshot, path: str, text: str, *, home: str) -> Snapshot | None:
    """The next snapshot where `text`, unsaved, is all that changed and changes only its own problems.

    None where the folder has to be loaded. Reads no file.
    """
    layers = recheck(previous.layers, path, text, global_path=os.path.join(home, "config.json"))
    if layers is None:
        return None
    problems = (*layers.problems, *previous.contents.problems)
    return msgspec.structs.replace(previous, revision=previous.revision + 1, layers=layers, problems=problems)


def prompt_for(
    snapshot: Snapshot,
    *,
    model: str | None = None,
    additional: str | None = None,
    now: datetime | None = None,
) -> Prompt:
    """The prompt of one request: with its model, its additional text and, where set so, the date."""
    placement = (snapshot.effective.get("/context/datetime") or {}).get("placement")
    dated = now is not None and placement == "system"
    if model is None and not additional and not dated:
        return snapshot.prompt
    facts = Facts(model, _window(snapshot.effective, model), additional, now)
    return render(snapshot.layers, snapshot.contents, environment=snapshot.environment, facts=facts)


def _window(effective: Effective, requested: str | None) -> int | None:
    """Tokens of the context window; None where the model or its window is not known."""
    limit = effective.get("/context/max_tokens")
    name = requested or effective.get("/provider/model")
    if limit is not None or name is None:
        return limit if isinstance(limit, int) else None
    limits = resolve(name, effective.get("/models") or {})
    return limits.context_window if limits.known else None


def _same(before: Layers, now: Layers) -> bool:
    """Whether two loads of a folder show the same."""
    return (
        before.layers == now.layers
        and before.skipped == now.skipped
        and before.servers == now.servers
        and before.texts == now.texts
        and (before.effective is now.effective or before.effective.values == now.effective.values)
    )
