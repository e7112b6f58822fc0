"""Loads a folder, or loads it again: from its files to a frozen snapshot.

1. Unsaved text counts before the disk; whatever is unchanged is reused from the previous snapshot.
2. The folder's prompt is rendered for the configured model, if any of its inputs changed. A request's prompt
   is rendered from the same inputs (`request_prompt`).
3. A bug in the work on one file becomes a problem of that file (`containment`). A bug in the work on all
   files becomes a problem of the folder, and the previous result, if any, stays.
4. The revision grows when a reader could see a difference.
"""

import functools
import os
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from nexus_context.config.merge import replaced
from nexus_context.disk.containment import contained
from nexus_context.disk.deadline import Deadline, LoadStopped
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.layer_types import Layers, Skipped
from nexus_context.folder.layers.read_layers import finish_layers, open_layers, unread_layers
from nexus_context.folder.layers.recheck import recheck
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.unread import unread_files
from nexus_context.folder.prompt.blocks import WORKER, AgentGrant, blocks_of, paths_of
from nexus_context.folder.prompt.environment import Environment
from nexus_context.folder.prompt.gather import PromptContents, gather
from nexus_context.folder.prompt.imports import imported_paths
from nexus_context.folder.prompt.render import Prompt, render
from nexus_context.folder.prompt.sections import PromptFacts
from nexus_context.folder.request_prompt import is_dated, window_of
from nexus_context.folder.snapshot import LoadInputs, Snapshot
from nexus_context.folder.trust import covers, trusted_folders

_Struct = TypeVar("_Struct", bound=msgspec.Struct)


OVERDUE = "layer.overdue"
"""The code of the problem that a load took too long."""


def load(
    folder: str,
    inputs: LoadInputs,
    *,
    previous: Snapshot | None = None,
    changed: Collection[str] | None = None,
    now: datetime | None = None,
    deadline: Deadline | None = None,
    beside: Snapshot | None = None,
) -> Snapshot:
    """Load a folder by its absolute path. Never raises for any content of its files.

    `changed` are the only paths whose unsaved text or file can have changed since `previous`; if it is None,
    any may have. `now` has a zone; it counts only with `datetime.placement = system`. `deadline` may end the
    load with LoadStopped. `beside` is a snapshot of the same folder with other inputs, as another window has
    it: whatever is equal is not done again and becomes the same objects. The result is the same without it.
    """
    grant = inputs.grant
    is_alone = grant is None and previous is not None and previous.agent == inputs.agent
    if is_alone and previous is not None and (typed := _typed(previous, inputs, changed)) is not None:
        return typed
    fallback = previous if is_alone and previous is not None and previous.folder == folder else None
    previous_layers = previous.layers if previous else None
    opened, reading = contained(
        folder,
        lambda: open_layers(
            folder,
            inputs,
            previous_layers,
            changed=changed,
            deadline=deadline,
            beside=None if beside is None else beside.layers,
        ),
        lambda problem: unread_layers(folder, inputs, fallback.layers if fallback else None, problem),
    )
    if grant is not None:
        opened = _granted(opened, grant)
    reading.checkpoint(folder)
    contents = contained(
        folder, lambda: _gathered(opened, reading, inputs), lambda problem: _ungathered(fallback, problem)
    )
    unread: tuple[Skipped, ...] = reading.contain(
        folder, lambda: _unread(reading, opened, contents, inputs.user_home), ()
    )
    layers = finish_layers(msgspec.structs.replace(opened, unread=unread), reading)
    if grant is not None:
        layers = msgspec.structs.replace(layers, texts={**grant.texts, **layers.texts})
    reading.checkpoint(folder)
    if beside is not None:
        memory = _sharing(layers.memory, beside.layers.memory)
        layers = _sharing(msgspec.structs.replace(layers, memory=memory), beside.layers)
        contents = _sharing(contents, beside.contents)
    alike = tuple(candidate for candidate in (beside, previous) if candidate is not None)
    prompt, contents = _rendered(alike, fallback, layers, contents, environment=inputs.environment, now=now)
    snapshot = Snapshot(
        folder=folder,
        revision=1,
        layers=layers,
        prompt=prompt,
        problems=(*layers.problems, *contents.problems),
        environment=inputs.environment,
        contents=contents,
        agent=inputs.agent,
        choice=inputs.choice,
    )
    return snapshot if previous is None else _revised(previous, snapshot)


def _typed(previous: Snapshot, inputs: LoadInputs, changed: Collection[str] | None) -> Snapshot | None:
    """The result of `keystroke`, if one unsaved text is all that changed."""
    if changed is None or len(changed) != 1:
        return None
    (path,) = changed
    overlays = inputs.overlays
    return keystroke(previous, path, overlays[path], home=inputs.home) if path in overlays else None


def _gathered(layers: Layers, reading: Reading, inputs: LoadInputs) -> PromptContents:
    return gather(
        layers,
        reading,
        user_home=inputs.user_home,
        environ=inputs.environ,
        grant=inputs.grant,
        load_vocabulary=inputs.load_vocabulary,
        trusted=_is_trusted(layers.folder, reading, inputs),
    )


def _is_trusted(folder: str, reading: Reading, inputs: LoadInputs) -> bool | None:
    if inputs.trusted is not None or inputs.trust_file is None:
        return inputs.trusted
    folders = trusted_folders(reading.read(inputs.trust_file).text)
    return covers(folders, reading.real_path(folder))


def _sharing(value: _Struct, other: _Struct) -> _Struct:
    """The value with those fields of the other that are equal."""
    equal_fields = {
        name: getattr(other, name)
        for name in value.__struct_fields__
        if getattr(value, name) == getattr(other, name)
    }
    return msgspec.structs.replace(value, **equal_fields)


def _revised(previous: Snapshot, snapshot: Snapshot) -> Snapshot:
    """The snapshot with its revision: one more than the previous one's if a reader could see a difference."""
    is_same = (
        previous.problems == snapshot.problems
        and previous.prompt == snapshot.prompt
        and _same(previous.layers, snapshot.layers)
    )
    return msgspec.structs.replace(snapshot, revision=previous.revision + (not is_same))


def overdue(snapshot: Snapshot, stopped: LoadStopped) -> Snapshot:
    """Return the last good snapshot of a folder that took too long to load again.

    It has a problem that says so.
    """
    if any(problem.code == OVERDUE for problem in snapshot.problems):
        return snapshot
    message = (
        f"Loading the folder was stopped here after {stopped.seconds:g} s; what was read before stays in "
        "force. Make its files fewer or smaller. The folder is loaded again when one of them changes."
    )
    problem = Problem(stopped.path, Span(0, 0), OVERDUE, Severity.ERROR, message=message)
    return msgspec.structs.replace(
        snapshot, revision=snapshot.revision + 1, problems=(*snapshot.problems, problem)
    )


def _unread(
    reading: Reading, layers: Layers, contents: PromptContents, user_home: str
) -> tuple[Skipped, ...]:
    """The known instruction files that exist and are not in the prompt."""
    in_prompt = {
        *paths_of((*contents.bootstrap, *contents.blocks, *blocks_of(contents.above))),
        *paths_of(conditional.block for conditional in contents.conditional),
        *paths_of(contents.sections),
    }
    return unread_files(reading, layers, in_prompt, functools.partial(imported_paths, user_home=user_home))


def _rendered(
    alike: Sequence[Snapshot],
    fallback: Snapshot | None,
    layers: Layers,
    contents: PromptContents,
    *,
    environment: Environment,
    now: datetime | None,
) -> tuple[Prompt, PromptContents]:
    """Render the prompt, unless a snapshot of `alike` has the same inputs.

    If rendering fails, the prompt of `fallback` is returned, with a problem.
    """
    for snapshot in alike:
        if now is None and _as_before(snapshot, layers, contents, environment):
            return snapshot.prompt, contents

    def rendered() -> tuple[Prompt, PromptContents]:
        facts = PromptFacts(window=window_of(layers.effective, None), now=now)
        return render(layers, contents, environment=environment, facts=facts), contents

    def report(problem: Problem) -> tuple[Prompt, PromptContents]:
        prompt = fallback.prompt if fallback is not None else Prompt("", ())
        return prompt, msgspec.structs.replace(contents, problems=(*contents.problems, problem))

    return contained(layers.folder, rendered, report)


def _ungathered(fallback: Snapshot | None, problem: Problem) -> PromptContents:
    """The last contents, or empty ones, where they could not be gathered."""
    contents = fallback.contents if fallback is not None else PromptContents((), (), (), ())
    problems = (
        *(earlier_problem for earlier_problem in contents.problems if earlier_problem != problem),
        problem,
    )
    return msgspec.structs.replace(contents, problems=problems)


def keystroke(previous: Snapshot, path: str, text: str, *, home: str) -> Snapshot | None:
    """Return the next snapshot if an unsaved text changes nothing but its own file's problems.

    None if the folder has to be loaded. Reads no file.
    """
    global_path = os.path.join(home, "config.json")
    layers = contained(
        path,
        lambda: recheck(previous.layers, path, text, global_path=global_path),
        lambda _: None,  # the load that follows meets the same bug and reports it
    )
    if layers is None:
        return None
    problems = (*layers.problems, *previous.contents.problems)
    return msgspec.structs.replace(previous, revision=previous.revision + 1, layers=layers, problems=problems)


def _granted(layers: Layers, grant: AgentGrant) -> Layers:
    """The layers with the granted servers and settings in place of the folder's."""
    effective = replaced(layers.effective, "agent", grant.settings)
    task = grant.task if grant.role == WORKER else None
    return msgspec.structs.replace(layers, servers=grant.servers, effective=effective, task=task)


def _as_before(
    snapshot: Snapshot, layers: Layers, contents: PromptContents, environment: Environment
) -> bool:
    """Whether all inputs of a prompt without a date are unchanged."""
    return (
        not is_dated(layers.effective)
        and snapshot.folder == layers.folder
        and snapshot.layers.effective is layers.effective
        and snapshot.layers.skills == layers.skills
        and snapshot.layers.servers == layers.servers
        and snapshot.layers.texts == layers.texts
        and snapshot.contents == contents
        and snapshot.environment == environment
    )


def _same(before: Layers, now: Layers) -> bool:
    """Whether two loads of a folder are the same to a reader."""
    return (
        before.layers == now.layers
        and before.not_read == now.not_read
        and before.servers == now.servers
        and before.texts == now.texts
        and (before.effective is now.effective or before.effective.values == now.effective.values)
    )
