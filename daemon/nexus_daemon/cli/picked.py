"""The model that was picked last for a folder in an editor, for commands that show what the editor shows."""

import os
from collections.abc import Callable

from nexus_context.config.picked_model import ModelChoice, leaves_model_to_editor
from nexus_context.errors import RequestError
from nexus_context.files import exists
from nexus_context.snapshot import Snapshot, for_choice


def with_picked_model(snapshot: Snapshot, note: Callable[[str], None]) -> Snapshot:
    """The folder as an editor shows it, for the model that was picked last there; `note` is told which.

    As it is where the settings name a provider, nothing was picked, or the ledger cannot be read, which is
    noted, too. No ledger is begun.
    """
    if not leaves_model_to_editor(snapshot.effective):
        return snapshot
    try:
        choice = _last_choice(snapshot)
    except RequestError as error:
        note(f"which model was picked in the editor is not known: {error}")
        return snapshot
    if choice is None or choice.model is None:
        return snapshot
    note(f"for the model {choice.model}, which was picked last for this folder; --model names another")
    return for_choice(snapshot, choice)


def _last_choice(snapshot: Snapshot) -> ModelChoice | None:
    from nexus_context.ledger import open_ledger
    from nexus_context.ledger.opening import place, workspace_of

    path = snapshot.effective.get("/ledger/path")
    if snapshot.effective.get("/ledger/url") is not None or not exists(place(path, os.environ)):
        return None
    ledger = open_ledger(path, environ=os.environ)
    try:
        options = ledger.options(workspace_of(snapshot.folder)).get(None)
    finally:
        ledger.close()
    return None if options is None else options.choice
