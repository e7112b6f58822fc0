"""Which files the settings `memory.knowledge` mean, and which of them may be read.

1. A path is a file, a directory or a glob (`*`, `?`, `[…]`, `**`), relative to the folder of the layer that
   names it: of the global file to the global directory. `~/` stands for the home directory in the global
   file only.
2. Of a directory everything in it with a text suffix (SUFFIXES) is meant, however deep. What is hidden,
   what tools put there (SKIPPED) and directories behind symbolic links are not entered.
3. A file of a workspace reaches files beneath its own folder only, symbolic links resolved; text files by
   their suffix, and of hidden directories those for assistants only: a repository must not bring the `.env`
   of its user into the conversation.
4. A link in a directory that the global file names leads to files of that directory only.
"""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from nexus_context.config.merge import Provenance
from nexus_context.errors import Problem, Severity, Span
from nexus_context.files import exists, is_dir, real_path
from nexus_context.layers.model import GLOBAL, Layer, Layers
from nexus_context.layers.text_reader import forbidden_link
from nexus_context.layers.walk import ASSISTANT_DIRECTORIES, RealPath, within

SUFFIXES = (".md", ".markdown", ".txt", ".rst", ".adoc")
NAMED_SUFFIXES = (*SUFFIXES, ".mdx", ".mdc", ".text", ".asciidoc", ".org")
"""What a workspace may name one by one."""

SKIPPED = frozenset({"node_modules", "__pycache__"})
TOP_K = 5
MAX_TOKENS = 2_000

_WILD = ("*", "?", "[")


class KnowledgePath(msgspec.Struct, frozen=True):
    """The files that one entry of `memory.knowledge.paths` means.

    `base` is absolute, of a glob what stands before the first wildcard; `pattern` are the rest's path
    components. Nothing outside `root`, a directory, is read; None: there is no such limit. `layer` and
    `directory` are the layer that names it; `strict` as there. `path` and `span` are where the entry stands.
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
        """Whether a file of a workspace names it."""
        return self.layer != GLOBAL

    def covers(self, path: str) -> bool:
        """Whether a file at this absolute path is meant, if there is one; the disk is not looked at."""
        if path == self.base:
            return not self.pattern and self._named(path)
        parts = self.below(path)
        if parts is None or parts[-1].startswith(".") or any(map(skipped, parts[:-1])):
            return False
        if self.pattern:
            return self._named(path) and _matches(parts, self.pattern)
        return path.lower().endswith(SUFFIXES)

    def enters(self, path: str) -> bool:
        """Whether files beneath this directory, which is beneath `base`, can be meant."""
        parts = self.below(path)
        if parts is None or any(map(skipped, parts)):
            return False
        return not self.pattern or _begins(parts, self.pattern)

    def below(self, path: str) -> tuple[str, ...] | None:
        """The components of a path beneath `base`."""
        start = self.base.rstrip(os.sep) + os.sep
        return tuple(path[len(start) :].split(os.sep)) if path.startswith(start) else None

    def permits(self, path: str) -> bool:
        """Whether the file leads nowhere that it must not: rules 3 and 4."""
        return self.reaches(real_path(path))

    def reaches(self, real: str) -> bool:
        """As `permits`, of a path with its links resolved."""
        return self.root is None or within(real, real_path(self.root))

    def forbidden(self, path: str, real_path: RealPath) -> str | None:
        """Reason why a file must not be read for where its links lead, or None: rules 3 and 4."""
        if self.root is None:
            return None
        real, root = real_path(path), real_path(self.root)
        if self.in_workspace:
            return forbidden_link(path, real, self.root, root)
        return None if within(real, root) else f"is a symbolic link that leads out of {self.root}"

    def _named(self, path: str) -> bool:
        return not self.in_workspace or path.lower().endswith(NAMED_SUFFIXES)


class Settings(msgspec.Struct, frozen=True):
    """What is searched, and how much of it goes with a message."""

    places: tuple[KnowledgePath, ...] = ()
    top_k: int = TOP_K
    max_tokens: int = MAX_TOKENS

    def covers(self, path: str) -> bool:
        """Whether a file at this absolute path is meant, if there is one."""
        return any(place.covers(path) for place in self.places)


def settings_of(layers: Layers, user_home: str) -> tuple[Settings, tuple[Problem, ...]]:
    """The settings of a folder's layers, and which of their paths do not count, and why.

    Looks at the disk only where paths are set.
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
            place = _place(layer, str(name), entry, user_home)
            reason = _refusal(layer, place)
            if reason is None:
                places.append(place)
            else:
                problems.append(problem(place, "config.scope", f"This path is ignored: {reason}."))
    top_k, most = values.get("top_k"), values.get("max_tokens")
    return Settings(
        tuple(places), TOP_K if top_k is None else top_k, MAX_TOKENS if most is None else most
    ), tuple(problems)


def problem(place: KnowledgePath, code: str, message: str) -> Problem:
    """What is wrong with an entry."""
    return Problem(place.path, place.span, code, Severity.WARNING, message=message)


def skipped(name: str) -> bool:
    """Whether a directory of this name is not entered."""
    return name.startswith(".") or name in SKIPPED


def _place(layer: Layer, name: str, entry: Provenance, user_home: str) -> KnowledgePath:
    start = layer.directory
    if layer.name == GLOBAL:
        start = layer.config_directory
        name = os.path.join(user_home, name[2:]) if name.startswith("~/") or name == "~" else name
    steps = os.path.normpath(os.path.join(start, name)).split(os.sep)
    wild = (at for at, step in enumerate(steps) if any(mark in step for mark in _WILD))
    first = next(wild, len(steps))
    base, pattern = os.sep.join(steps[:first]) or os.sep, tuple(steps[first:])
    once = tuple(step for at, step in enumerate(pattern) if step != "**" or pattern[at - 1 : at] != ("**",))
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


def _refusal(layer: Layer, place: KnowledgePath) -> str | None:
    if not layer.in_workspace:
        return None
    if not within(place.base, layer.directory) or not place.permits(place.base):
        return (
            f"it leads out of {layer.directory}. A file of a workspace may name what is beneath its folder "
            "only; name other files in the global config.json"
        )
    parts = os.path.relpath(place.base, layer.directory).split(os.sep)
    hidden = [
        part for part in parts if part.startswith(".") and part not in (os.curdir, *ASSISTANT_DIRECTORIES)
    ]
    if hidden:
        allowed = ", ".join(ASSISTANT_DIRECTORIES)
        return f"{hidden[0]} is hidden, and of hidden directories only {allowed} are read. Move the files"
    if not place.pattern and not _may_be_named(place.base):
        return f"a workspace names only directories and files that end in {', '.join(NAMED_SUFFIXES)}"
    return None


def _may_be_named(path: str) -> bool:
    """Whether it is no file, or one that a workspace may name."""
    return path.lower().endswith(NAMED_SUFFIXES) or is_dir(path) or not exists(path)


def _matches(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path fits; each part is tried with all steps that may come next: no `**` starts over."""
    next_steps = _after(pattern, 0)
    for part in parts:
        steps, next_steps = next_steps, set()
        for at in steps:
            if at < len(pattern) and pattern[at] == "**":
                next_steps |= _after(pattern, at)
            elif at < len(pattern) and fnmatchcase(part, pattern[at]):
                next_steps |= _after(pattern, at + 1)
        if not next_steps:
            return False
    return len(pattern) in next_steps


def _after(pattern: tuple[str, ...], at: int) -> set[int]:
    """The step at a place, and those after it if it stands for nothing; no two `**` follow each other."""
    return {at, at + 1} if pattern[at : at + 1] == ("**",) else {at}


def _begins(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a path that begins with `parts` can match."""
    for part, step in zip(parts, pattern, strict=False):
        if step == "**":
            return True
        if not fnmatchcase(part, step):
            return False
    return len(parts) < len(pattern)
