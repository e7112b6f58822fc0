"""Determines which files the settings `memory.knowledge` select, and which of these may be read.

1. A path is a file, a directory or a glob (`*`, `?`, `[…]`, `**`). In the global file it is relative to the
   global directory, elsewhere to the folder of its layer. Only the global file may use `~/`.
2. A directory selects every file in it with a text suffix (SUFFIXES), at any depth. Hidden names, tools'
   directories (SKIPPED) and directories behind symbolic links are not entered.
3. A workspace file may select only files beneath its own folder, after symbolic links are resolved. It may
   name only files with a text suffix, and of hidden directories only those of assistants: a repository must
   not bring its user's `.env` into the conversation.
4. A link in a directory that the global file names may lead only to files of that directory.
5. The walk of the disk returns files in the order of the settings, then by name, so that a limit always
   cuts at the same file: at most MOST_FILES files of MOST_DIRECTORIES directories. A limit, a missing path
   and an entry without a single file are reported.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from nexus_context.config.merge import Provenance
from nexus_context.disk.files import RealFiles, exists, is_dir, real_path
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.layer_types import GLOBAL, Layer, Layers
from nexus_context.folder.layers.text_reader import forbidden_link
from nexus_context.folder.layers.walk import ASSISTANT_DIRECTORIES, RealPath, within

SUFFIXES = (".md", ".markdown", ".txt", ".rst", ".adoc")
NAMED_SUFFIXES = (*SUFFIXES, ".mdx", ".mdc", ".text", ".asciidoc", ".org")
"""The suffixes of files that a workspace may name directly."""

SKIPPED = frozenset({"node_modules", "__pycache__"})
TOP_K = 5
MAX_TOKENS = 2_000
MIN_SIMILARITY = 0.15
"""Cosine below which a passage has nothing to do with a message; a property of the model."""

_WILD = ("*", "?", "[")


class KnowledgePath(msgspec.Struct, frozen=True):
    """The files that one entry of `memory.knowledge.paths` selects.

    `base` is an absolute path. For a glob it is the part before the first wildcard, and `pattern` has the
    other path components. Nothing outside the directory `root` is read, unless `root` is None. `layer` is the
    name of the settings layer that has the entry, and `directory` and `strict` are that layer's. The entry
    stands at `path` and `span`.
    """

    base: str
    pattern: tuple[str, ...]
    root: str | None
    layer: str
    directory: str
    path: str
    span: Span
    strict: bool = False

    @property
    def in_workspace(self) -> bool:
        """Whether the entry stands in a workspace file, and not in the global file."""
        return self.layer != GLOBAL

    @property
    def selection(self) -> str:
        """The absolute path or glob that the entry stands for."""
        return os.path.join(self.base, *self.pattern)

    def covers(self, path: str) -> bool:
        """Whether the entry selects a file at this absolute path. The disk is not checked."""
        if path == self.base:
            return not self.pattern and self._named(path)
        parts = self.below(path)
        if parts is None or parts[-1].startswith(".") or any(map(skipped, parts[:-1])):
            return False
        if self.pattern:
            return self._named(path) and _matches(parts, self.pattern)
        return path.lower().endswith(SUFFIXES)

    def enters(self, path: str) -> bool:
        """Whether the entry can select files in this directory, which is beneath `base`."""
        parts = self.below(path)
        if parts is None or any(map(skipped, parts)):
            return False
        return not self.pattern or _begins(parts, self.pattern)

    def below(self, path: str) -> tuple[str, ...] | None:
        """Return the components of a path relative to `base`. Return None if the path is not beneath
        `base`.
        """
        start = self.base.rstrip(os.sep) + os.sep
        return tuple(path[len(start) :].split(os.sep)) if path.startswith(start) else None

    def permits(self, path: str) -> bool:
        """Whether the path, with its symbolic links resolved, is at a place that may be read (rules 3
        and 4).
        """
        return self.reaches(real_path(path))

    def reaches(self, real: str) -> bool:
        """Whether this real path, without symbolic links, is at a place that may be read (rules 3 and 4)."""
        return self.root is None or within(real, real_path(self.root))

    def forbidden(self, path: str, real_path: RealPath) -> str | None:
        """Return why the file that `path` leads to must not be read, by rules 3 and 4. Return None if it may
        be read.
        """
        if self.root is None:
            return None
        real, root = real_path(path), real_path(self.root)
        if self.in_workspace:
            return forbidden_link(path, real, self.root, root)
        return None if within(real, root) else f"is a symbolic link that leads out of {self.root}"

    def _named(self, path: str) -> bool:
        return not self.in_workspace or path.lower().endswith(NAMED_SUFFIXES)


class EmbeddingSettings(msgspec.Struct, frozen=True):
    """The settings of the search by meaning. `path` and `span` are where it is switched on, or where its
    model is set.

    `model` is the absolute path of a model's directory, or None for the installed model.
    """

    model: str | None
    min_similarity: float
    path: str
    span: Span


class Settings(msgspec.Struct, frozen=True):
    """Which files are searched, and how much of them is added to a message. With `embeddings`, files are also
    searched by meaning.
    """

    places: tuple[KnowledgePath, ...] = ()
    top_k: int = TOP_K
    max_tokens: int = MAX_TOKENS
    embeddings: EmbeddingSettings | None = None

    def covers(self, path: str) -> bool:
        """Whether the settings select a file at this absolute path."""
        return any(knowledge_path.covers(path) for knowledge_path in self.places)


def settings_of(layers: Layers, user_home: str) -> tuple[Settings, tuple[Problem, ...]]:
    """Return the settings of a folder's layers, and a problem for each path that is ignored.

    The disk is checked only if paths are set.
    """
    section = layers.effective.get("/memory/knowledge")
    values: Mapping[str, Any] = section if isinstance(section, dict) else {}
    places: list[KnowledgePath] = []
    problems: list[Problem] = []
    for index, name in enumerate(values.get("paths") or ()):
        for entry in layers.effective.provenance.get(f"/memory/knowledge/paths/{index}", ()):
            layer = next((layer for layer in layers.layers if layer.name == entry.layer), None)
            if layer is None or entry.document is None or entry.ignored:
                continue
            knowledge_path = _knowledge_path(layer, str(name), entry, user_home)
            reason = _refusal(layer, knowledge_path)
            if reason is None:
                places.append(knowledge_path)
            else:
                problems.append(problem(knowledge_path, "config.scope", f"This path is ignored: {reason}."))
    top_k, max_tokens = values.get("top_k"), values.get("max_tokens")
    return Settings(
        tuple(places),
        TOP_K if top_k is None else top_k,
        MAX_TOKENS if max_tokens is None else max_tokens,
        embeddings=_embeddings(layers, user_home) if places else None,
    ), tuple(problems)


def _embeddings(layers: Layers, user_home: str) -> EmbeddingSettings | None:
    entries = {
        key: entry
        for key in ("enabled", "model")
        for entry in layers.effective.provenance.get(f"/memory/knowledge/embeddings/{key}", ())
        if entry.wins and entry.document is not None
    }
    switch, model = entries.get("enabled"), entries.get("model")
    if switch is None or switch.value is not True:
        return None
    similarity = layers.effective.get("/memory/knowledge/embeddings/min_similarity")
    minimum = MIN_SIMILARITY if similarity is None else float(similarity)
    layer = next((layer for layer in layers.layers if model is not None and layer.name == model.layer), None)
    if model is None or model.value is None or layer is None:
        return EmbeddingSettings(None, minimum, switch.path, switch.span)
    directory = _resolved(layer, str(model.value), user_home)
    return EmbeddingSettings(directory, minimum, model.path, model.span)


def settings_for(*paths: str, top_k: int = TOP_K, max_tokens: int = MAX_TOKENS) -> Settings:
    """Make the settings for a program. `paths` are absolute paths of files, directories or globs, and count
    as those of the global file.
    """
    places: list[KnowledgePath] = []
    for path in paths:
        if not os.path.isabs(path):
            raise ValueError(f"{path!r} must be an absolute path")
        base, pattern = _split_glob(os.path.normpath(path))
        root = base if pattern else None
        places.append(KnowledgePath(base, pattern, root, GLOBAL, directory=base, path=path, span=Span(0, 0)))
    return Settings(tuple(places), top_k=top_k, max_tokens=max_tokens)


def problem(knowledge_path: KnowledgePath, code: str, message: str) -> Problem:
    """Make a warning about an entry of `memory.knowledge.paths`."""
    return Problem(knowledge_path.path, knowledge_path.span, code, Severity.WARNING, message=message)


def skipped(name: str) -> bool:
    """Whether directories of this name are not entered."""
    return name.startswith(".") or name in SKIPPED


def _knowledge_path(layer: Layer, name: str, entry: Provenance, user_home: str) -> KnowledgePath:
    base, once = _split_glob(_resolved(layer, name, user_home))
    root: str | None = layer.directory
    if not layer.in_workspace:
        root = base if once else None
    return KnowledgePath(
        base=base,
        pattern=once,
        root=root,
        layer=layer.name,
        directory=layer.directory,
        path=entry.path,
        span=entry.span,
        strict=layer.strict,
    )


def _split_glob(path: str) -> tuple[str, tuple[str, ...]]:
    """The part of an absolute path before its first wildcard, and the other components."""
    steps = path.split(os.sep)
    wild = (at for at, step in enumerate(steps) if any(mark in step for mark in _WILD))
    wildcard_index = next(wild, len(steps))
    pattern = tuple(steps[wildcard_index:])
    once = tuple(step for at, step in enumerate(pattern) if step != "**" or pattern[at - 1 : at] != ("**",))
    return os.sep.join(steps[:wildcard_index]) or os.sep, once


def _resolved(layer: Layer, name: str, user_home: str) -> str:
    """The absolute path that a name in a layer's file stands for."""
    if layer.name != GLOBAL:
        return os.path.normpath(os.path.join(layer.directory, name))
    home = name.startswith("~/") or name == "~"
    return os.path.normpath(
        os.path.join(layer.config_directory, os.path.join(user_home, name[2:]) if home else name)
    )


def _refusal(layer: Layer, knowledge_path: KnowledgePath) -> str | None:
    if not layer.in_workspace:
        return None
    if not within(knowledge_path.base, layer.directory) or not knowledge_path.permits(knowledge_path.base):
        return (
            f"it leads out of {layer.directory}. A file of a workspace may name what is beneath its folder "
            "only; name other files in the global config.json"
        )
    components = os.path.relpath(knowledge_path.base, layer.directory).split(os.sep)
    hidden = [
        component
        for component in components
        if component.startswith(".") and component not in (os.curdir, *ASSISTANT_DIRECTORIES)
    ]
    if hidden:
        allowed = ", ".join(ASSISTANT_DIRECTORIES)
        return f"{hidden[0]} is hidden, and of hidden directories only {allowed} are read. Move the files"
    if not knowledge_path.pattern and not _may_be_named(knowledge_path.base):
        return f"a workspace names only directories and files that end in {', '.join(NAMED_SUFFIXES)}"
    return None


def _may_be_named(path: str) -> bool:
    """Whether it is not a file, or one that a workspace may name."""
    return path.lower().endswith(NAMED_SUFFIXES) or is_dir(path) or not exists(path)


def _matches(components: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path matches; all possible next steps are tried in parallel, so no `**` restarts."""
    next_steps = _next_steps(pattern, 0)
    for component in components:
        steps, next_steps = next_steps, set()
        for at in steps:
            if at < len(pattern) and pattern[at] == "**":
                next_steps |= _next_steps(pattern, at)
            elif at < len(pattern) and fnmatchcase(component, pattern[at]):
                next_steps |= _next_steps(pattern, at + 1)
        if not next_steps:
            return False
    return len(pattern) in next_steps


def _next_steps(pattern: tuple[str, ...], at: int) -> set[int]:
    """The step at an index, and the next one if that step may be empty; no two `**` are adjacent."""
    return {at, at + 1} if pattern[at : at + 1] == ("**",) else {at}


def _begins(components: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path that begins with `components` can match."""
    for component, step in zip(components, pattern, strict=False):
        if step == "**":
            return True
        if not fnmatchcase(component, step):
            return False
    return len(components) < len(pattern)


MOST_FILES = 20_000
MOST_DIRECTORIES = 20_000


class WalkedFiles(msgspec.Struct):
    """The selected files by path, each with the entry that selects it. Also the directories that were listed,
    and problems.
    """

    files: dict[str, KnowledgePath]
    directories: dict[str, None]
    problems: list[Problem]


def walk(settings: Settings, stopped: Callable[[], bool]) -> WalkedFiles:
    """Find every readable file that the settings select. When `stopped` returns true, return the files found
    so far.
    """
    walked = WalkedFiles({}, {}, [])
    for knowledge_path in settings.places:
        empty = True
        for path in _walked_paths(knowledge_path, walked, stopped):
            empty = False
            if path in walked.files:
                continue
            if len(walked.files) >= MOST_FILES:
                walked.problems.append(_too_many(knowledge_path, f"{MOST_FILES:,} files are indexed"))
                return walked
            walked.files[path] = knowledge_path
        if len(walked.directories) >= MOST_DIRECTORIES:
            walked.problems.append(
                _too_many(knowledge_path, f"{MOST_DIRECTORIES:,} directories are looked through")
            )
            return walked
        if empty and not stopped():
            walked.problems.append(_nothing(knowledge_path))
    return walked


def _walked_paths(
    knowledge_path: KnowledgePath, walked: WalkedFiles, stopped: Callable[[], bool]
) -> Iterator[str]:
    real = real_path(knowledge_path.base)
    if not knowledge_path.reaches(real):
        return
    if not is_dir(knowledge_path.base):
        walked.directories[os.path.dirname(knowledge_path.base)] = None
        if exists(knowledge_path.base) and knowledge_path.covers(knowledge_path.base):
            yield knowledge_path.base
        return
    files = RealFiles()
    waiting = [(knowledge_path.base, real)]
    while waiting and not stopped() and len(walked.directories) < MOST_DIRECTORIES:
        directory, real = waiting.pop()
        walked.directories[directory] = None
        subdirectories = []
        for name, kind in files.list_directory(real) or ():
            path = os.path.join(directory, name)
            if kind == "directory":
                if knowledge_path.enters(path):
                    subdirectories.append((path, os.path.join(real, name)))
            elif knowledge_path.covers(path) and (
                kind == "file" or (kind == "link" and _linked(knowledge_path, path))
            ):
                yield path
        waiting += reversed(subdirectories)


def _linked(knowledge_path: KnowledgePath, path: str) -> bool:
    """Whether a link's target may be read: rule 4, even without a limit."""
    limited = (
        knowledge_path
        if knowledge_path.root is not None
        else msgspec.structs.replace(knowledge_path, root=knowledge_path.base)
    )
    return not is_dir(path) and limited.permits(path)


def _too_many(knowledge_path: KnowledgePath, limit: str) -> Problem:
    message = f"There are too many files: only the first {limit}. Name fewer directories, or use patterns."
    return problem(knowledge_path, "config.knowledge", message)


def _nothing(knowledge_path: KnowledgePath) -> Problem:
    location = knowledge_path.selection
    if not exists(knowledge_path.base):
        return problem(
            knowledge_path, "config.knowledge", f"{location} does not exist. Create it or correct the path."
        )
    return problem(
        knowledge_path, "config.knowledge", f"There are no text files at {location}. Correct the path."
    )
