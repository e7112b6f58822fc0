"""Read a folder's layers.

1. `context.ancestor_depth` comes from the local file, else the global one. If neither sets it, ancestors are
   read up to the root of the folder's repository, and at least up to DEFAULT_DEPTH.
2. The settings of all layers are merged; they define which instruction files, READMEs and MCP files are read.
3. A packaged default counts only if the global layer has no such file.
4. The folder is read for one agent, or for none; a named agent may have its own definition. If it has none
   and nothing can have changed, the previous layers are returned.
5. A directory in an opened folder is read with everything that the folder is read with, as deep as the
   folder's settings say.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import functools
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Literal

import msgspec

from nexus_context.config import fixes
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import ConfigLayer, Effective, merge
from nexus_context.config.picked_model import ModelChoice
from nexus_context.disk import files
from nexus_context.disk.deadline import Deadline
from nexus_context.disk.files import JSON_LIMIT
from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.agent_definitions import agent_problems
from nexus_context.folder.layers.bootstrap import AGENT_FILE, agent_file, find_bootstrap
from nexus_context.folder.layers.instructions import TOOL_DIRECTORIES, find_instructions, instruction_names
from nexus_context.folder.layers.layer_types import (
    DEFAULTS,
    GLOBAL,
    LOCAL,
    Layer,
    LayerFile,
    Layers,
    LayerSkill,
    Reach,
)
from nexus_context.folder.layers.servers import find_servers
from nexus_context.folder.layers.skills import find_skills
from nexus_context.folder.layers.text_reader import JsonFile, Reading, check_settings
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY, GIT, LayerPlace, Walk
from nexus_context.text.redact import redact
from nexus_context.tokens.models import UNKNOWN_WINDOW, get_model_limits, model_names

DEFAULTS_DIRECTORY = str(Path(__file__).parents[1] / "defaults")
DEFAULT_INSTRUCTIONS = "NEXUS.md"
DEFAULT_DEPTH = 2
MAX_DEPTH = 10


class LayerInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What the layers of a folder depend on besides its files.

    `home` is the global directory (`~/.nexus3`); the walk upwards ends at `user_home`. MCP servers would
    start with `environ`, and `which` resolves their commands to absolute paths. `overlays` maps absolute
    paths to unsaved text, which wins over the disk. `agent` names the agent that the folder is read for:
    `AGENT.<agent>.md` is its definition if a layer has one. `root` is the opened folder that contains the
    folder, or None if they are the same. `choice` is the model that the user picked in the editor. If
    `of_user` is false, the user's own files do not count, so that the layers are what the workspace alone
    says.
    """

    home: str
    user_home: str
    environ: Mapping[str, str]
    which: Callable[[str], str | None] | None = None
    overlays: Mapping[str, str] = {}
    agent: str | None = None
    root: str | None = None
    choice: ModelChoice | None = None
    of_user: bool = True


def read_layers(folder: str, inputs: LayerInputs, *, previous: Layers | None = None) -> Layers:
    """Read everything that the files of an absolute folder say. Never raises for any content of the files.

    `previous` is an earlier result: whatever is unchanged is reused, as is the last good value of a JSON file
    that broke since.
    """
    layers, reading = open_layers(folder, inputs, previous)
    return finish_layers(layers, reading)


def open_layers(
    folder: str,
    inputs: LayerInputs,
    previous: Layers | None = None,
    *,
    changed: Collection[str] | None = None,
    deadline: Deadline | None = None,
    beside: Layers | None = None,
) -> tuple[Layers, Reading]:
    """Return the layers, and the reading, which continues with the files that the layers import.

    `changed` are the only paths that can have changed since `previous`; if it is None, any path may have.
    `deadline` may end the reading with LoadStopped. For `beside` see `Reading`.
    """
    root = inputs.root or folder
    memory = None if previous is None else previous.memory
    if memory is not None and previous is not None and previous.root != root:
        memory = memory.of_files()  # other files may be read
    shared = None if beside is None else beside.memory
    reading = Reading(
        inputs.overlays, memory, changed, deadline=deadline, choice=inputs.choice, beside=shared
    )
    if previous is not None and changed is not None and not changed:
        definitions = _new_definitions(reading, previous, folder, inputs)
        if definitions is not None:
            reading.resume(previous)
            reading.watch.update(definitions)
            return previous, reading
    return _read_all(reading, folder, inputs), reading


def _new_definitions(
    reading: Reading, previous: Layers, folder: str, inputs: LayerInputs
) -> list[str] | None:
    """Where an agent's definition could be, if `previous` holds for that agent, too; None if it does not."""
    if not _is_as_read(previous, folder, inputs.root or folder, inputs.choice):
        return None
    definitions = _definitions(previous, inputs.agent)
    return None if any(reading.is_anywhere(path) for path in definitions or ()) else definitions


def _read_all(reading: Reading, folder: str, inputs: LayerInputs) -> Layers:
    """The layers, read file by file. A bug in one step costs the results of that step only."""
    root = inputs.root or folder
    places, configs, reach = _places(reading, folder, root, inputs)
    effective = _settings(reading, places, configs, root, home=inputs.home)
    contain = functools.partial(reading.contain, folder)
    no_files: list[list[LayerFile]] = [[] for _ in places]
    no_servers: tuple[tuple[McpServer, ...], list[list[LayerFile]]] = (), no_files
    no_skills: tuple[list[list[LayerFile]], tuple[LayerSkill, ...]] = no_files, ()
    reading.problems.extend(contain(lambda: tuple(unknown_model(reading, effective)), ()))
    names = contain(lambda: instruction_names(reading, effective), [DEFAULT_INSTRUCTIONS])
    instructions = _instructions(reading, places, names, effective)
    bootstrap = contain(lambda: find_bootstrap(reading, places, inputs.agent), no_files)
    search = functools.cache(
        inputs.which or functools.partial(files.which, search=inputs.environ.get("PATH", ""))
    )
    servers, mcp_files = contain(
        lambda: find_servers(reading, places, effective, environ=inputs.environ, which=search), no_servers
    )
    reading.problems.extend(contain(lambda: tuple(agent_problems(reading, effective, places, servers)), ()))
    settings = [
        [LayerFile("config", config.path, config.status, config.text)] if config else [] for config in configs
    ]
    unlisted = (DEFAULTS,) if inputs.of_user else (DEFAULTS, GLOBAL)
    layer_places = [
        place if any(file_lists) or not (place.optional or place.name in unlisted) else None
        for place, *file_lists in zip(places, settings, instructions, mcp_files, strict=True)
    ]
    skill_files, skills = contain(
        lambda: find_skills(reading, layer_places, effective, inputs.user_home), no_skills
    )
    listed = zip(*(instructions, bootstrap, settings, mcp_files, skill_files), strict=True)
    layers = Layers(
        folder=folder,
        root=root,
        layers=tuple(
            _layer(place, *of_place)
            for place, of_place in zip(layer_places, listed, strict=True)
            if place is not None
        ),
        effective=effective,
        servers=servers,
        memory=reading.memory(),
        skills=skills,
        reach=reach,
    )
    return finish_layers(layers, reading)


def unread_layers(
    folder: str, inputs: LayerInputs, previous: Layers | None, problem: Problem
) -> tuple[Layers, Reading]:
    """Return the layers of a folder that could not be read at all: the previous ones, or none.

    The reading reports `problem`. The next load reads everything again.
    """
    reading = Reading(inputs.overlays, None)
    if previous is not None:
        reading = Reading(inputs.overlays, previous.memory, ())
        reading.resume(previous)
    reading.problems = [
        *(earlier_problem for earlier_problem in reading.problems if earlier_problem != problem),
        problem,
    ]
    reading.watch.update((folder + os.sep, os.path.join(folder, CONFIG_DIRECTORY, "")))
    reading.failed = True
    if previous is not None:
        return previous, reading
    layers = Layers(
        folder=folder,
        root=inputs.root or folder,
        layers=(),
        effective=merge(()),
        servers=(),
        memory=reading.memory(),
    )
    return layers, reading


def _is_as_read(layers: Layers, folder: str, root: str, choice: ModelChoice | None) -> bool:
    """Whether the layers are what the folder's files say, without what an agent was granted."""
    merged = layers.memory.merged
    if merged is None or merged.choice != choice:
        return False
    return layers.folder == folder and layers.root == root and merged.effective is layers.effective


def _definitions(layers: Layers, agent: str | None) -> list[str] | None:
    """Where an agent's own definition could be; None if the layers already have one."""
    files = (file.path for layer in layers.layers for file in layer.files if file.kind == "agent")
    if any(os.path.basename(path) != AGENT_FILE for path in files):
        return None
    name = agent_file(agent)
    return [] if name is None else [os.path.join(layer.config_directory, name) for layer in layers.layers]


def finish_layers(layers: Layers, reading: Reading) -> Layers:
    """Return the layers with everything that the reading has gathered so far."""
    reading.real_files.close()
    texts = {
        path: read.text
        for path, read in reading.reads.items()
        if read.text is not None and reading.refusals.get(path) is None  # refused texts are shown to nobody
    }
    return msgspec.structs.replace(
        layers,
        skipped=tuple(reading.skipped),
        problems=tuple(reading.problems),
        documents=reading.documents,
        texts=texts,
        good=reading.good,
        watch=tuple(sorted(path for path in reading.watch if not path.startswith(DEFAULTS_DIRECTORY))),
        memory=reading.memory(),
        links=reading.links,
    )


def _places(
    reading: Reading, folder: str, root: str, inputs: LayerInputs
) -> tuple[list[LayerPlace], list[JsonFile | None], Reach]:
    """All places in layer order, the settings file of each, and how far up they reach."""
    home = inputs.home
    walk = Walk(home=home, user_home=inputs.user_home, overlays=inputs.overlays, real_path=reading.real_path)
    opened = walk.opened(folder, root)
    user = LayerPlace(GLOBAL, os.path.dirname(home), walk.user_directory() if inputs.of_user else None)
    packaged = LayerPlace(DEFAULTS, DEFAULTS_DIRECTORY, DEFAULTS_DIRECTORY)
    opened_configs = [_read_config(reading, place) for place in opened]
    root_place = walk.root_of(opened, root)
    roots = [config for place, config in zip(opened, opened_configs, strict=True) if place is root_place]
    user_config = _read_config(reading, user)
    counts = user_config is not None and user_config.in_force is not None
    packaged_config = None if counts else _read_config(reading, packaged)
    depth = _configured_depth([*roots, user_config, packaged_config])
    repository = _repository(reading, walk, root)
    if depth is None:
        depth = max(DEFAULT_DEPTH, len(repository))
    nothing: list[LayerPlace] = []
    places_above = reading.contain(root, lambda: walk.above(root, depth), nothing)
    higher = dict.fromkeys([*(place.directory for place in reversed(places_above)), *repository])
    levels_up = {directory: len(os.path.relpath(root, directory).split(os.sep)) for directory in higher}
    reach = Reach(
        (
            *((place.directory, 0) for place in reversed(opened)),
            *sorted(levels_up.items(), key=itemgetter(1)),
        ),
        depth,
        walk.stop,
    )
    reading.skipped.extend(walk.skipped)
    reading.problems.extend(walk.problems)
    places = [packaged, user, *places_above, *opened]
    above_configs = [_read_config(reading, place) for place in places_above]
    configs = [packaged_config, user_config, *above_configs, *opened_configs]
    for place in places[1:]:
        _watch_directories(reading, place)
    # a refused file may be readable after a chmod
    reading.watch.update(skipped.path for skipped in reading.skipped)
    return places, configs, reach


def _read_config(reading: Reading, place: LayerPlace) -> JsonFile | None:
    """The settings file of a place; None where it may not be read."""
    if place.config_directory is None:
        return None
    path = os.path.join(place.config_directory, "config.json")
    if not reading.is_there(place, path, JSON_LIMIT):
        missing = reading.refusals.get(path) is None and not place.optional
        return JsonFile(path, "missing", None, None) if missing else None
    document = reading.document(path)
    return reading.settle(path, document, reading.check(document, check_settings) if document else ())


def _layer(place: LayerPlace, *files: list[LayerFile]) -> Layer:
    config_directory = place.config_directory or os.path.join(place.directory, CONFIG_DIRECTORY)
    listed = tuple(file for file_list in files for file in file_list)
    return Layer(
        place.name, place.directory, config_directory, listed, opened=place.opened, strict=place.strict
    )


def _repository(reading: Reading, walk: Walk, root: str) -> list[str]:
    """The directories above the opened folder up to its repository's root; empty without a repository."""
    directories = walk.up_to_repository(root, MAX_DEPTH)
    reading.watch.update(os.path.join(directory, GIT) for directory in directories)
    in_repository = directories and reading.is_anywhere(os.path.join(directories[-1], GIT))
    return directories[1:] if in_repository else []


def _configured_depth(configs: list[JsonFile | None]) -> int | None:
    """The ancestor depth of the first of these files that sets one; None if none does."""
    for config in configs:
        value = config.in_force.value if config is not None and config.in_force is not None else None
        context = value.get("context") if isinstance(value, dict) else None
        depth = context.get("ancestor_depth") if isinstance(context, dict) else None
        if type(depth) is int and 0 <= depth <= MAX_DEPTH:
            return depth
    return None


def _settings(
    reading: Reading, places: list[LayerPlace], configs: list[JsonFile | None], root: str, home: str
) -> Effective:
    read = [(place, config) for place, config in zip(places, configs, strict=True) if config is not None]
    counting = tuple(
        ConfigLayer(place.name, config.in_force, depth=_depth_of(place, root), folder=root)
        for place, config in read
        if config.in_force is not None
    )
    present = tuple(
        ConfigLayer(place.name, reading.documents[config.path], depth=_depth_of(place, root), folder=root)
        for place, config in read
        if config.path in reading.documents
    )
    return reading.merge(counting, present, os.path.join(home, "config.json")).effective


def _depth_of(place: LayerPlace, root: str) -> Literal["sets", "inside", "above"]:
    if place.directory == root:
        return "sets"
    return "inside" if place.opened else "above"


def _instructions(
    reading: Reading, places: list[LayerPlace], names: list[str], effective: Effective
) -> list[list[LayerFile]]:
    """The instruction files of each place; the packaged one only if the global layer has none."""
    nothing: list[LayerFile] = []
    files = [
        reading.contain(
            place.directory,
            functools.partial(find_instructions, reading, place, names, effective=effective),
            nothing,
        )
        for place in places[1:]
    ]
    if any(file.status != "missing" for file in files[0]):
        return [[], *files]
    return [find_instructions(reading, places[0], [DEFAULT_INSTRUCTIONS], effective), *files]


def _watch_directories(reading: Reading, place: LayerPlace) -> None:
    """Watch the directories where a file of the layer can appear, and those that can appear themselves."""
    if place.config_directory is not None:
        reading.watch.add(place.config_directory)
    if place.in_workspace:
        reading.watch.add(place.directory)
        reading.watch.update(os.path.join(place.directory, name) for name in TOOL_DIRECTORIES.values())
    if place.name == LOCAL:
        reading.watch.add(os.path.join(place.directory, ".vscode"))


LISTED = ("anthropic", "openai", "google")
"""Providers whose models should be in the registry."""


def unknown_model(reading: Reading, effective: Effective) -> Iterator[Problem]:
    """Yield a hint if the configured model is not in the registry, so that its window is a guess.

    1. The problem is about the `provider.model` in force, at its value. There is none if `models` or
       `context.max_tokens` set a size.
    2. Services that can run any model (`openai-compatible`, the editor's own) get a hint, others a note.
    3. A stale file gets no problem: its value may be gone from its text.
    """
    name = effective.get("/provider/model")
    if not isinstance(name, str) or effective.get("/context/max_tokens") is not None:
        return
    if get_model_limits(name, effective.get("/models") or {}).known:
        return
    origin = next((entry for entry in effective.provenance["/provider/model"] if entry.wins), None)
    if origin is None or origin.document is None or not reading.is_present(origin):
        return
    near = _near(name)
    meant = f"did you mean {fixes.quoted(near)}? Otherwise set" if near else "set"
    message = (
        f"{redact(fixes.quoted(name))} is not in the list of known models, so its window is taken as "
        f"{UNKNOWN_WINDOW:,} tokens: {meant} models.<name>.context_window."
    )
    severity = Severity.INFORMATION if effective.get("/provider/name") in LISTED else Severity.HINT
    fix = fixes.replace(origin.document, origin.pointer, fixes.quoted(near)) if near else None
    yield Problem(origin.path, origin.span, "config.unknown-model", severity, message=message, fix=fix)


@functools.lru_cache(maxsize=16)
def _near(name: str) -> str | None:
    """Cached, since every change of any file of the folder requests it."""
    return fixes.meant(name.rpartition("/")[2], model_names())
