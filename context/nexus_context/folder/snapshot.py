"""A folder at one moment: layers, settings, prompt and problems, frozen and complete.

1. Unsaved text counts before the disk; whatever is unchanged is reused from the previous snapshot.
2. The folder's prompt is rendered for the configured model, if any of its inputs changed. A request's prompt
   is rendered from the same inputs.
3. A bug in the work on one file becomes a problem of that file (`containment`). A bug in the work on all
   files becomes a problem of the folder, and the previous result, if any, stays.
4. The revision grows when a reader could see a difference.
"""

import functools
import os
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TypedDict, TypeVar, Unpack

import msgspec

from nexus_context.config.merge import Effective, replaced
from nexus_context.config.picked_model import ModelChoice, with_choice
from nexus_context.disk.containment import contained
from nexus_context.disk.deadline import Deadline, LoadStopped
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.model import Layers, LayerSkill, Skipped
from nexus_context.folder.layers.read_layers import LayerInputs, finish_layers, open_layers, unread_layers
from nexus_context.folder.layers.recheck import recheck
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.unread import unread_files
from nexus_context.folder.prompt import sections
from nexus_context.folder.prompt.blocks import UNIFIED, WORKER, AgentGrant, blocks_of, paths_of
from nexus_context.folder.prompt.environment import Environment
from nexus_context.folder.prompt.gather import PromptContents, gather
from nexus_context.folder.prompt.imports import imported_paths
from nexus_context.folder.prompt.render import Prompt, render
from nexus_context.folder.prompt.sections import PromptFacts, activated_skills
from nexus_context.folder.trust import covers, trusted_folders
from nexus_context.tokens.models import get_model_limits

_Struct = TypeVar("_Struct", bound=msgspec.Struct)

OVERDUE = "layer.overdue"
"""The code of the problem that a load took too long."""


class Snapshot(msgspec.Struct, frozen=True):
    """One folder, for one agent or for none.

    `revision` counts from 1. `prompt_for` renders from `environment` and `contents`, unless the prompt
    `is_fixed`: then every request has the same. `choice` is the picked model that the snapshot is for; None:
    the settings' model.
    """

    folder: str
    revision: int
    layers: Layers
    prompt: Prompt
    problems: tuple[Problem, ...]
    environment: Environment
    contents: PromptContents
    agent: str | None = None
    is_fixed: bool = False
    choice: ModelChoice | None = None

    @property
    def effective(self) -> Effective:
        """The merged settings."""
        return self.layers.effective

    @property
    def role(self) -> str:
        """The role of the agent: manager, worker or unified, which the folder's own agent is."""
        grant = self.contents.grant
        return UNIFIED if grant is None else grant.role


class LoadInputs(LayerInputs, frozen=True, kw_only=True):
    """What the snapshot of a folder depends on besides its files; see `LayerInputs` for the rest.

    `grant` is what the agent has from the agents above it. `load_vocabulary`: a large file may cause a first
    vocabulary to be loaded, which takes 0.1 to 0.3 s; otherwise `contents.waits_for` names the vocabulary.
    `trusted` is whether the user trusts the folder, as the host knows; None: the `trust_file` says so, and
    without one the question does not arise.
    """

    environment: Environment
    grant: AgentGrant | None = None
    load_vocabulary: bool = True
    trusted: bool | None = None
    trust_file: str | None = None


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
    """Load a folder by its absolute path; never raises for any content of its files.

    `changed` are the only paths whose unsaved text or file can have changed since `previous`; None: any may
    have. `now` has a zone; it counts only with `datetime.placement = system`. `deadline` may end the load
    with LoadStopped. `beside` is a snapshot of the same folder with other inputs, as another window has it:
    whatever is equal is not done again and becomes the same objects. The result is the same without it.
    """
    grant = inputs.grant
    is_alone = grant is None and previous is not None and previous.agent == inputs.agent
    if is_alone and previous is not None and (typed := _typed(previous, inputs, changed)) is not None:
        return typed
    last = previous if is_alone and previous is not None and previous.folder == folder else None
    before = previous.layers if previous else None
    opened, reading = contained(
        folder,
        lambda: open_layers(
            folder,
            inputs,
            before,
            changed=changed,
            deadline=deadline,
            beside=None if beside is None else beside.layers,
        ),
        lambda problem: unread_layers(folder, inputs, last.layers if last else None, problem),
    )
    if grant is not None:
        opened = _granted(opened, grant)
    reading.checkpoint(folder)
    contents = contained(
        folder, lambda: _gathered(opened, reading, inputs), lambda problem: _ungathered(last, problem)
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
    alike = tuple(one for one in (beside, previous) if one is not None)
    prompt, contents = _rendered(alike, last, layers, contents, environment=inputs.environment, now=now)
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
    same = {
        name: getattr(other, name)
        for name in value.__struct_fields__
        if getattr(value, name) == getattr(other, name)
    }
    return msgspec.structs.replace(value, **same)


def _revised(previous: Snapshot, snapshot: Snapshot) -> Snapshot:
    """The snapshot with its revision: one more than the previous one's if a reader could see a difference."""
    is_same = (
        previous.problems == snapshot.problems
        and previous.prompt == snapshot.prompt
        and _same(previous.layers, snapshot.layers)
    )
    return msgspec.structs.replace(snapshot, revision=previous.revision + (not is_same))


def overdue(snapshot: Snapshot, stopped: LoadStopped) -> Snapshot:
    """The last good snapshot of a folder that took too long to load again, with a problem that says so."""
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
        *paths_of(each.block for each in contents.conditional),
        *paths_of(contents.sections),
    }
    return unread_files(reading, layers, in_prompt, functools.partial(imported_paths, user_home=user_home))


def _rendered(
    alike: Sequence[Snapshot],
    last: Snapshot | None,
    layers: Layers,
    contents: PromptContents,
    *,
    environment: Environment,
    now: datetime | None,
) -> tuple[Prompt, PromptContents]:
    """The prompt, rendered unless a snapshot of `alike` has the same inputs; the last one, and a problem,
    where rendering fails.
    """
    for one in alike:
        if now is None and _as_before(one, layers, contents, environment):
            return one.prompt, contents

    def rendered() -> tuple[Prompt, PromptContents]:
        facts = PromptFacts(window=_window(layers.effective, None), now=now)
        return render(layers, contents, environment=environment, facts=facts), contents

    def report(problem: Problem) -> tuple[Prompt, PromptContents]:
        prompt = last.prompt if last is not None else Prompt("", ())
        return prompt, msgspec.structs.replace(contents, problems=(*contents.problems, problem))

    return contained(layers.folder, rendered, report)


def _ungathered(last: Snapshot | None, problem: Problem) -> PromptContents:
    """The last contents, or empty ones, where they could not be gathered."""
    before = last.contents if last is not None else PromptContents((), (), (), ())
    problems = (*(each for each in before.problems if each != problem), problem)
    return msgspec.structs.replace(before, problems=problems)


def for_choice(snapshot: Snapshot, choice: ModelChoice | None) -> Snapshot:
    """The same folder for another picked model: its settings and its prompt. None: as it is.

    Problems and revision stay the same. Reads no file.
    """
    if choice is None or choice == snapshot.choice:
        return snapshot
    effective = with_choice(snapshot.effective, choice)
    if effective is snapshot.effective:
        return msgspec.structs.replace(snapshot, choice=choice)
    layers = msgspec.structs.replace(snapshot.layers, effective=effective)
    prompt = snapshot.prompt
    if not snapshot.is_fixed:
        facts = PromptFacts(window=_window(effective, None))
        prompt = render(layers, snapshot.contents, environment=snapshot.environment, facts=facts)
    return msgspec.structs.replace(snapshot, layers=layers, prompt=prompt, choice=choice)


def keystroke(previous: Snapshot, path: str, text: str, *, home: str) -> Snapshot | None:
    """The next snapshot if the unsaved `text` is the only change and affects only the file's own problems.

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


class PromptOptions(TypedDict, total=False):
    """What one request changes in the prompt.

    `tools` are the request's, names with descriptions. `skip_skills` leaves out all skills; `skill_filter`
    leaves out all but those that these names or patterns match. The prompt contains the texts of `skills`.
    `timezone` is that of the date, in place of the settings'.
    """

    model: str | None
    additional: str | None
    now: datetime | None
    timezone: str | None
    skip_skills: bool
    skill_filter: Sequence[str] | None
    skills: Sequence[str]
    tools: Sequence[tuple[str, str]]


def prompt_for(snapshot: Snapshot, **options: Unpack[PromptOptions]) -> Prompt:
    """The prompt of one request. It holds the date only with `datetime.placement = system`.

    Raises RequestError for an active skill that the folder does not have or the request leaves out.
    """
    skill_filter = options.get("skill_filter")
    is_dated = options.get("now") is not None and _is_dated(snapshot.effective)
    changes = [options.get(name) for name in ("model", "additional", "skip_skills", "skills", "tools")]
    if snapshot.is_fixed or not (is_dated or skill_filter is not None or any(changes)):
        return snapshot.prompt
    facts = PromptFacts(
        model=options.get("model"),
        window=_window(snapshot.effective, options.get("model")),
        additional=options.get("additional"),
        now=options.get("now"),
        timezone=options.get("timezone"),
        skip_skills=options.get("skip_skills", False),
        skill_filter=None if skill_filter is None else tuple(skill_filter),
        skills=tuple(options.get("skills", ())),
        tools=tuple(options.get("tools", ())),
    )
    return render(snapshot.layers, snapshot.contents, environment=snapshot.environment, facts=facts)


def active_skills(
    snapshot: Snapshot,
    names: Sequence[str],
    *,
    skip_skills: bool = False,
    skill_filter: Sequence[str] | None = None,
) -> tuple[LayerSkill, ...]:
    """The active skills of a request, in the order of the prompt; RequestError as for `prompt_for`."""
    only = None if skill_filter is None else tuple(skill_filter)
    facts = PromptFacts(skip_skills=skip_skills, skill_filter=only, skills=tuple(names))
    return activated_skills(snapshot.layers, facts)


def offered_skills(
    snapshot: Snapshot, *, skill_filter: Sequence[str] | None = None
) -> tuple[LayerSkill, ...]:
    """The skills that a request lists in the prompt, in its order."""
    only = None if skill_filter is None else tuple(skill_filter)
    return tuple(sections.offered_skills(snapshot.layers, PromptFacts(skill_filter=only)))


def skill_text(snapshot: Snapshot, name: str) -> str:
    """The text of a skill, as an active one has it in the prompt; RequestError, code unknown-skill."""
    skills = active_skills(snapshot, [name])
    return "".join(
        piece.text for part in sections.skill_bodies(snapshot.layers, skills) for piece in part.pieces
    )


def _granted(layers: Layers, grant: AgentGrant) -> Layers:
    """The layers with the granted servers and settings in place of the folder's."""
    effective = replaced(layers.effective, "agent", grant.settings)
    task = grant.task if grant.role == WORKER else None
    return msgspec.structs.replace(layers, servers=grant.servers, effective=effective, task=task)


def _window(effective: Effective, requested: str | None) -> int | None:
    """Tokens of the context window; None where the model or its window is unknown."""
    limit = effective.get("/context/max_tokens")
    name = requested or effective.get("/provider/model")
    if limit is not None or name is None:
        return limit if isinstance(limit, int) else None
    limits = get_model_limits(name, effective.get("/models") or {})
    return limits.context_window if limits.known else None


def _is_dated(effective: Effective) -> bool:
    """Whether the system prompt holds the date."""
    return (effective.get("/context/datetime") or {}).get("placement") == "system"


def _as_before(before: Snapshot, layers: Layers, contents: PromptContents, environment: Environment) -> bool:
    """Whether all inputs of a prompt without a date are unchanged."""
    return (
        not _is_dated(layers.effective)
        and before.folder == layers.folder
        and before.layers.effective is layers.effective
        and before.layers.skills == layers.skills
        and before.layers.servers == layers.servers
        and before.layers.texts == layers.texts
        and before.contents == contents
        and before.environment == environment
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
