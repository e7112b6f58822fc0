"""Loads a folder's context or prompt in one call, and fails fast: the library's simple interface.

`ContextLoader` raises the errors of all files as one `ConfigError`. `PromptLoader` is the two-layer form,
personal and project, with the same reading and the same texts.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from nexus_context.config.frames import ConfigError
from nexus_context.config.mcp import McpServer
from nexus_context.config.schema import Config
from nexus_context.disk.files import PROMPT_LIMIT, read_text
from nexus_context.errors import Severity, Span
from nexus_context.folder.layers.bootstrap import BOOTSTRAP_KINDS
from nexus_context.folder.layers.layer_types import ANCESTOR_PREFIX, DEFAULTS, GLOBAL, LOCAL, Layer, Layers
from nexus_context.folder.layers.read_layers import LayerInputs, open_layers
from nexus_context.folder.layers.walk import global_directory, user_home
from nexus_context.folder.loading import load
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.environment import Environment, detect
from nexus_context.folder.prompt.gather import gather
from nexus_context.folder.prompt.texts import Piece
from nexus_context.folder.snapshot import LoadInputs


class ContextSources(msgspec.Struct, frozen=True):
    """Where a context came from: the directories of the layers, and the files of each kind in layer order."""

    global_dir: Path | None
    ancestor_dirs: tuple[Path, ...]
    local_dir: Path | None
    prompt_sources: tuple[tuple[Path, str], ...]
    config_sources: tuple[Path, ...]
    mcp_sources: tuple[Path, ...]


class ContextLayer(msgspec.Struct, frozen=True):
    """One layer as its files say it, before the layers are merged.

    `name` is `global`, `ancestor:<directory>`, `local` or `defaults`; `path` is its directory `.nexus3`.
    `prompt` is the text of its instructions, `config` and `mcp` are the JSON objects of its files. Each is
    None if the layer has no such file.
    """

    name: str
    path: Path
    prompt: str | None = None
    config: dict[str, Any] | None = None
    mcp: dict[str, Any] | None = None


class LoadedContext(msgspec.Struct, frozen=True):
    """The context of a folder. `config` are the merged settings with their defaults.

    `layers` is what they were merged from, the most important last.
    """

    system_prompt: str
    config: Config
    mcp_servers: tuple[McpServer, ...]
    sources: ContextSources
    layers: tuple["ContextLayer", ...] = ()


class LoadedPrompt(msgspec.Struct, frozen=True):
    """A prompt of two layers, personal and project. A path is None if that layer has no file."""

    content: str
    personal_path: Path | None
    project_path: Path | None


class PromptSource(Protocol):
    """A source of a personal prompt."""

    def load(self) -> str | None:
        """Return the text, or None if there is none."""

    @property
    def path(self) -> Path | None:
        """The path of the file, or None if the source is not a file."""


class FilePromptSource:
    """A prompt in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> str | None:
        """Return the text of the file. None if it is missing or unusable."""
        read = read_text(str(self._path), limit=PROMPT_LIMIT)
        return read.text if read.status == "loaded" else None

    @property
    def path(self) -> Path | None:
        """The path of the file."""
        return self._path


class ContextLoader:
    """Loads the context of folders, with the user's own global directory. Nothing is kept between loads."""

    def __init__(
        self, *, environ: Mapping[str, str] | None = None, environment: Environment | None = None
    ) -> None:
        self._environ = os.environ if environ is None else environ
        self._environment = environment

    def load(self, cwd: Path, *, agent: str | None = None) -> LoadedContext:
        """Load the context of a folder, for the agent of this name or for none.

        Raises ConfigError if a configuration file has an error: its message has a frame of each. Raises
        ValueError if the path is not absolute.
        """
        snapshot = load(
            _absolute(cwd),
            LoadInputs(
                home=global_directory(self._environ),
                user_home=user_home(self._environ),
                environ=self._environ,
                environment=self._environment or detect("repl", environ=self._environ),
                agent=agent,
            ),
        )
        if any(problem.severity == Severity.ERROR for problem in snapshot.problems):
            raise ConfigError(snapshot.problems, snapshot.layers.texts)
        layers = snapshot.layers
        servers = tuple(server for server in layers.servers if server.shadowed_by is None)
        return LoadedContext(
            system_prompt=snapshot.prompt.text,
            config=Config.model_validate(layers.effective.values),
            mcp_servers=servers,
            sources=_sources(layers),
            layers=tuple(_context_layer(layer, layers) for layer in layers.layers),
        )


class PromptLoader:
    """Combines a personal and a project prompt with facts about the system."""

    def __init__(
        self,
        personal_sources: Sequence[PromptSource] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._personal = personal_sources
        self._environ = os.environ if environ is None else environ

    def load(self, is_repl: bool = True, cwd: Path | None = None) -> LoadedPrompt:
        """Return the prompt for a folder, by default the process's working directory.

        The personal part is the first source with a text. Without sources it is the global instruction file,
        else the packaged one. Unusable files count as missing. ValueError if `cwd` is not absolute.
        """
        folder = _absolute(Path.cwd() if cwd is None else cwd)
        home = user_home(self._environ)
        inputs = LayerInputs(home=global_directory(self._environ), user_home=home, environ=self._environ)
        layers, reading = open_layers(folder, inputs)
        contents = gather(
            _without_bootstrap(layers), reading, user_home=home, environ={}, load_vocabulary=False
        )
        blocks = contents.blocks
        personal, personal_path = self._personal_text(
            [(block.pieces, block.path) for block in blocks if block.layer.name in (GLOBAL, DEFAULTS)]
        )
        project = [block for block in blocks if block.layer.name == LOCAL]
        groups = [
            texts.fill("personal", {"content": personal}) if personal else [],
            *(texts.fill("project", {"content": block.pieces}) for block in project[:1]),
        ]
        parts = ["".join(piece.text for piece in group) for group in groups if group]
        content = "\n\n".join([*parts, get_system_info(is_repl, Path(folder), environ=self._environ)])
        return LoadedPrompt(content, personal_path, Path(project[0].path) if project else None)

    def _personal_text(
        self, candidates: Sequence[tuple[Sequence[Piece], str]]
    ) -> tuple[Sequence[Piece], Path | None]:
        if self._personal is None:
            return (candidates[0][0], Path(candidates[0][1])) if candidates else ((), None)
        for source in self._personal:
            text = texts.unix_lines(source.load() or "").strip()
            if text:
                return [Piece(text, str(source.path or ""), Span(0, 0))], source.path
        return (), None


def _absolute(folder: Path) -> str:
    if not folder.is_absolute():
        raise ValueError(
            f"the folder must be an absolute path, not {str(folder)!r}: write Path({str(folder)!r}).resolve()"
        )
    return str(folder)


def _without_bootstrap(layers: Layers) -> Layers:
    """The layers without bootstrap files, which this interface does not use, as their imports would count."""
    replace = msgspec.structs.replace
    kept_layers = [
        replace(layer, files=tuple(file for file in layer.files if file.kind not in BOOTSTRAP_KINDS))
        for layer in layers.layers
    ]
    return replace(layers, layers=tuple(kept_layers), skills=())


def get_system_info(
    is_repl: bool = True, cwd: Path | None = None, *, environ: Mapping[str, str] | None = None
) -> str:
    """Return the prompt's section about the machine: folder, system, terminal, mode.

    It does not say the time. `cwd` is the folder, by default the process's working directory. ValueError if
    it is not absolute.
    """
    folder = _absolute(Path.cwd() if cwd is None else cwd)
    host = detect("repl" if is_repl else "server", environ=os.environ if environ is None else environ)
    values = {"folder": folder, "os": host.os, "terminal": host.terminal, "mode": host.mode}
    pieces = texts.fill(
        "system", {key: None if value is None else [Piece(value)] for key, value in values.items()}
    )
    return "".join(piece.text for piece in pieces)


def _context_layer(layer: Layer, layers: Layers) -> ContextLayer:
    """The files of a layer that count."""
    loaded = [file for file in layer.files if file.status == "loaded"]

    def text(*kinds: str) -> str | None:
        return next((file.text for file in loaded if file.kind in kinds), None)

    def value(kind: str) -> dict[str, Any] | None:
        own_files = (file for file in loaded if file.kind == kind and Path(file.path).parent == path)
        document = next((layers.documents.get(file.path) for file in own_files), None)
        return document.value if document is not None and isinstance(document.value, dict) else None

    path = Path(layer.config_directory)
    return ContextLayer(
        layer.name, path, prompt=text("instructions", "readme"), config=value("config"), mcp=value("mcp")
    )


def _sources(layers: Layers) -> ContextSources:
    present = [layer for layer in layers.layers if any(file.status != "missing" for file in layer.files)]

    def directory(name: str) -> Path | None:
        return next((Path(layer.config_directory) for layer in present if layer.name == name), None)

    def paths(*kinds: str) -> list[tuple[Path, str]]:
        return [
            (Path(file.path), layer.name)
            for layer in layers.layers
            for file in layer.files
            if file.kind in kinds and file.status == "loaded"
        ]

    return ContextSources(
        global_dir=directory(GLOBAL),
        ancestor_dirs=tuple(
            Path(layer.directory) for layer in layers.layers if layer.name.startswith(ANCESTOR_PREFIX)
        ),
        local_dir=directory(LOCAL),
        prompt_sources=tuple(paths(*BOOTSTRAP_KINDS, "instructions", "readme")),
        config_sources=tuple(path for path, _ in paths("config")),
        mcp_sources=tuple(path for path, _ in paths("mcp")),
    )
