"""Reads the texts of one load: unsaved text comes before the disk, and unchanged files are reused.

1. A file is read at most once per load. Every requested path is watched from then on.
2. A JSON file with an error is not used; its last good document is, if there was one.
3. A workspace file is refused if a symbolic link leads out of the opened folder (above it: out of the layer's
   directory) or to a hidden file. In a directory where others could have put it, it is also refused unless it
   belongs to this user or root.
4. The target of a symbolic link counts as the file itself: it is watched, and its unsaved text counts.
5. The file that is read is the one that rule 3 accepted, whatever others do to the folder meanwhile.
6. A bug in the work on one file is contained in it (`containment`): the file counts as unreadable, or as one
   with an error, by rule 2.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from nexus_context.config.check import check_config
from nexus_context.config.limits import bounded
from nexus_context.config.merge import ConfigLayer, Effective, Provenance, merge
from nexus_context.config.picked_model import ModelChoice, with_choice
from nexus_context.config.scope import restrict
from nexus_context.disk.containment import contained, met_bug, reported
from nexus_context.disk.deadline import Deadline
from nexus_context.disk.files import (
    BOM,
    JSON_LIMIT,
    PROMPT_LIMIT,
    FileRead,
    RealFiles,
    decode_utf8,
    exists,
    read_range,
)
from nexus_context.disk.ownership import trusted_read
from nexus_context.errors import Problem, Severity, Span
from nexus_context.folder.layers.layer_types import (
    AgentRemarks,
    CheckedDocument,
    DocumentServers,
    Layers,
    Listing,
    LoadMemory,
    MergedSettings,
    Presence,
    Remarks,
    Skipped,
    Status,
)
from nexus_context.folder.layers.walk import GIT, LayerPlace, RealPaths, within
from nexus_context.folder.skills import ReadSkill, read_skill
from nexus_context.text.json import JsonDocument, parse

_UNEXAMINED: str | None = "could not be examined"
UNSAVED: tuple[int, ...] = ()
"""Stamp of a text that comes from an editor."""

_MARK = "\ufeff"
_SURROGATE = re.compile("[\ud800-\udfff]")

_Result = TypeVar("_Result")
_Header = TypeVar("_Header")


class JsonFile(msgspec.Struct, frozen=True):
    """A JSON file of a layer.

    `in_force` is the document that counts: this text's, the last good one, or None.
    """

    path: str
    status: Status
    text: str | None
    in_force: JsonDocument | None


class Reading:
    """One load of a folder: the files read so far, and the previous load, which saves work."""

    def __init__(
        self,
        overlays: Mapping[str, str],
        previous: LoadMemory | None,
        changed: Collection[str] | None = None,
        deadline: Deadline | None = None,
        choice: ModelChoice | None = None,
        beside: LoadMemory | None = None,
    ) -> None:
        """Begin a load.

        `changed` are the only paths that can have changed since `previous`; if it is None, any may have.
        `deadline` may end the load; if it is None, the load never ends early. `choice` is the model that the
        user picked. `beside` is another load of the same folder: what is equal becomes the same object, and
        nothing else of it counts.
        """
        self._choice = choice
        self._deadline = deadline
        self.overlays = overlays
        self.changed = changed
        self.previous = previous or LoadMemory()
        self.beside = beside
        # where to look for the result of equal work
        self._memories = (self.previous,) if beside is None else (beside, self.previous)
        self.reads: dict[str, FileRead] = {}
        self.documents: dict[str, JsonDocument] = {}
        self.checked: dict[str, CheckedDocument] = {}
        self.good: dict[str, JsonDocument] = {}
        self.refusals: dict[str, str | None] = {}
        self.served: dict[str, DocumentServers] = {}
        self.merged: MergedSettings | None = None
        self.listings: dict[str, Listing] = {}
        self.skills: dict[str, ReadSkill] = {}
        self.remarks: dict[str, Remarks] = {}
        self.agents: AgentRemarks | None = None
        self.headers: dict[str, tuple[str, Any]] = {}
        self.presences: dict[str, Presence] = {}
        self.problems: list[Problem] = []
        self.skipped: list[Skipped] = []
        self.watch: set[str] = set()
        self.links: dict[str, str] = {}
        self.failed = False
        unchanged = changed is not None and not changed
        self.real_paths = RealPaths(self.previous.real_paths if unchanged else {})
        self.real_path = self.real_paths.__getitem__
        self.real_files = RealFiles()

    def memory(self) -> LoadMemory:
        """Return what the next load can use. If this one failed as a whole, only the last good documents."""
        if self.failed:
            return LoadMemory(good=self.good)
        return LoadMemory(*(getattr(self, name) for name in LoadMemory.__struct_fields__))

    def resume(self, layers: Layers) -> None:
        """Continue where the reading of these layers ended."""
        memory = self.previous
        self.reads, self.documents, self.good = dict(memory.reads), dict(memory.documents), dict(memory.good)
        self.checked, self.refusals, self.served = memory.checked, dict(memory.refusals), memory.served
        self.merged, self.listings, self.skills = memory.merged, memory.listings, memory.skills
        self.agents, self.headers, self.presences = memory.agents, memory.headers, dict(memory.presences)
        self.remarks, self.links = dict(memory.remarks), dict(layers.links)
        self.problems, self.skipped = list(layers.problems), list(layers.skipped)
        self.watch = set(layers.watch)

    def checkpoint(self, path: str) -> None:
        """Raise LoadStopped if the load has to end, before the work on `path`."""
        if self._deadline is not None:
            self._deadline.check(path)

    def contain(self, path: str, work: Callable[[], _Result], otherwise: _Result) -> _Result:
        """Return the result of `work` on one file or directory.

        If it fails, report that and return `otherwise`.
        """
        return reported(self.problems, path, work, otherwise)

    def is_anywhere(self, path: str) -> bool:
        """Whether a path exists on the disk or in an editor."""
        return path in self.overlays or exists(path)

    def read(self, path: str, limit: int = PROMPT_LIMIT) -> FileRead:
        """Read a file. Its problems are not reported yet."""
        read_before = self.reads.get(path)
        if read_before is not None:
            return read_before
        self.checkpoint(path)
        self.watch.add(path)
        unread = FileRead(path, "unreadable", None)
        read = self.contain(path, lambda: self._read(path, limit), unread)
        if (
            self.beside is not None
            and (other_read := self.beside.reads.get(path)) == read
            and other_read is not None
        ):
            read = other_read
        self.reads[path] = read
        return read

    def _read(self, path: str, limit: int) -> FileRead:
        read = self._read_at(path, self._real(path), limit)
        if read.moved:  # any resolved path may have changed, too
            self.real_paths.clear()
            read = self._read_at(path, self._real(path), limit)
        return read

    def _read_at(self, path: str, real: str, limit: int) -> FileRead:
        """The text of the file that lies at `real`, the resolved path."""
        previous = self.previous.reads.get(path)
        if previous is not None and previous.real != real:  # it was another file's text
            previous = None
        if previous is not None and previous.status == "unreadable" and not previous.problems:
            previous = None  # reading it failed
        overlay = self.overlays.get(path)
        paths: tuple[str, ...] = (path,)
        if real != path:
            self.watch.add(real)
            paths = (path, real)
            if overlay is None:
                overlay, self.links[real] = self.overlays.get(real), path
        if (
            previous is not None
            and self.changed is not None
            and not any(read_path in self.changed for read_path in paths)
        ):
            return previous
        if overlay is None:
            saved = previous if previous is not None and previous.stamp != UNSAVED else None
            return self.real_files.read(path, real, limit=limit, previous=saved)
        read = unsaved(path, overlay, limit, real)
        return previous if previous is not None and previous == read else read

    def _real(self, path: str) -> str:
        try:
            return self.real_path(path)
        except ValueError:  # such a path cannot exist; reading it reports that
            return path

    def is_there(self, place: LayerPlace, path: str, limit: int = PROMPT_LIMIT) -> bool:
        """Whether a layer has this file and may read it.

        A file that it may not read is reported as skipped.
        """
        read = self.read(path, limit)
        if read.status == "missing":
            return False
        if not place.in_workspace:
            return True
        if path not in self.refusals:
            reason = self.contain(path, lambda: self._refusal(place, path, read), _UNEXAMINED)
            self.refusals[path] = reason
            if reason is not None:
                self.skipped.append(Skipped(path, reason))
                message = f"The file is not read: it {reason}."
                self.problems.append(
                    Problem(path, Span(0, 0), "layer.refused", Severity.WARNING, message=message)
                )
        return self.refusals[path] is None

    def prompt_file(self, path: str) -> FileRead:
        """Read a file and report its problems."""
        read = self.read(path)
        self.problems.extend(read.problems)
        return read

    def document(self, path: str) -> JsonDocument | None:
        """Parse the present text of a JSON file. Without a text, report the reason and return None."""
        read = self.read(path, JSON_LIMIT)
        self.problems.extend(read.problems)
        text = read.text
        if read.status != "loaded" or text is None:
            return None
        for memory in self._memories:
            document = memory.documents.get(path)
            if document is not None and document.text == text:
                break
        else:
            self.checkpoint(path)
            document = self.contain(path, partial(parse, path, text), None)
        if document is not None:
            self.documents[path] = document
        return document

    def check(
        self, document: JsonDocument, check: Callable[[JsonDocument], tuple[Problem, ...]]
    ) -> tuple[Problem, ...]:
        """Return the problems that `check` finds in a document. They are computed once per document."""
        for memory in self._memories:
            checked = memory.checked.get(document.path)
            if checked is not None and checked.document is document and not met_bug(checked.problems):
                break
        else:
            self.checkpoint(document.path)
            problems = contained(document.path, lambda: check(document), _alone)
            checked = CheckedDocument(document, problems)
        self.checked[document.path] = checked
        return checked.problems

    def listing(self, directory: str, look: Callable[[str], Listing]) -> Listing:
        """Return what `look` finds in a directory, which is watched. Unsaved texts do not change it."""
        self.watch.update((directory, directory.rstrip(os.sep) + os.sep))
        previous = self.previous.listings.get(directory) if self.changed is not None else None
        listing = self.listings[directory] = previous if previous is not None else look(directory)
        return listing

    def presence(
        self, directory: str, names: tuple[str, ...], look: Callable[[str, tuple[str, ...]], Presence]
    ) -> Presence:
        """Return what `look` finds in a directory, and watch the paths that this depends on.

        Unsaved texts do not change it.
        """
        presence = self.previous.presences.get(directory) if self.changed is not None else None
        if presence is None or presence.names != names:
            presence = look(directory, names)
        self.presences[directory] = presence
        self.watch.update(presence.watch)
        return presence

    def served_before(self, path: str) -> list[DocumentServers]:
        """Return the servers that earlier loads, or the load `beside`, found in a file."""
        return [memory.served[path] for memory in self._memories if path in memory.served]

    def skill(self, path: str, text: str) -> ReadSkill:
        """Return the skill in a text. It is computed once per text."""
        for memory in self._memories:
            skill = memory.skills.get(path)
            if skill is not None and skill.text == text and not met_bug(skill.problems):
                break
        else:
            self.checkpoint(path)
            skill = contained(path, lambda: read_skill(path, text), partial(_unread_skill, path, text))
        self.skills[path] = skill
        return skill

    def remark(
        self, path: str, text: str, look: Callable[[str, str], Iterable[Problem]]
    ) -> tuple[Problem, ...]:
        """Return the problems that `look` finds in a text. They are computed once per text."""
        for memory in self._memories:
            remarks = memory.remarks.get(path)
            if remarks is not None and remarks.text == text and not met_bug(remarks.problems):
                break
        else:
            self.checkpoint(path)
            remarks = Remarks(text, contained(path, lambda: tuple(look(path, text)), _alone))
        self.remarks[path] = remarks
        return remarks.problems

    def header(self, path: str, text: str, look: Callable[[str, str], _Header]) -> _Header:
        """Return the front matter of a text as `look` reads it. It is computed once per text."""
        for memory in self._memories:
            header = memory.headers.get(path)
            if header is not None and header[0] == text:
                break
        else:
            header = text, look(path, text)
        self.headers[path] = header
        return header[1]

    def settle(self, path: str, document: JsonDocument | None, problems: tuple[Problem, ...]) -> JsonFile:
        """Report the problems of a JSON file, and decide which document counts."""
        read = self.reads[path]
        self.problems.extend(problems)
        if document is not None and all(problem.severity != Severity.ERROR for problem in problems):
            self.good[path] = document
            return JsonFile(path, "loaded", read.text, document)
        good = self.previous.good.get(path)
        if good is None or read.status == "missing":
            return JsonFile(path, "invalid" if read.status == "loaded" else read.status, read.text, None)
        self.good[path] = good
        return JsonFile(path, "stale", read.text, good)

    def is_as_read(self, path: str) -> bool:
        """Whether the present text of a JSON file is the one in force."""
        return path in self.good and self.documents.get(path) is self.good[path]

    def is_present(self, origin: Provenance) -> bool:
        """Whether a setting is in the present text of its file. That of a stale file may be gone from it."""
        return origin.document is not None and self.documents.get(origin.path) is origin.document

    def merge(
        self, counting: tuple[ConfigLayer, ...], present: tuple[ConfigLayer, ...], global_path: str
    ) -> MergedSettings:
        """Merge the settings of the documents in force.

        If every file is unchanged, return the previous result. `counting` are the layers with the documents
        in force, `present` those with the present texts. Problems are about the present texts, including
        broken ones: that is what people see.
        """
        self.checkpoint(global_path)
        merged_before = [memory.merged for memory in self._memories if memory.merged is not None]
        for earlier_merge in merged_before:
            reusable = not earlier_merge.unmerged and earlier_merge.choice == self._choice
            if reusable and _same(earlier_merge.layers, counting):
                merging = _Work((earlier_merge.effective, earlier_merge.excesses), counting)
                break
        else:
            merging = _of_layers(
                counting,
                lambda layers: bounded(self._merged(restrict(layers, global_path=global_path)[0])),
                () if self.previous.merged is None else self.previous.merged.layers,
            )
        for earlier_merge in merged_before:
            if not met_bug(earlier_merge.problems) and _same(earlier_merge.present, present):
                problems = earlier_merge.problems
                break
        else:
            checking = _of_layers(present, lambda layers: restrict(layers, global_path=global_path)[1])
            problems = (*checking.result, *checking.problems)
        effective, excesses = merging.result
        self.merged = merged = MergedSettings(
            layers=merging.layers,
            present=present,
            effective=effective,
            excesses=excesses,
            problems=problems,
            unmerged=merging.problems,
            choice=self._choice,
        )
        self.problems.extend(dict.fromkeys((*merged.problems, *merged.unmerged)))
        for excess in excesses:  # a stale file's list may be gone from its text
            if self.documents.get(excess.document.path) is excess.document:
                self.problems.append(excess.problem)
        return merged

    def _merged(self, layers: tuple[ConfigLayer, ...]) -> Effective:
        return with_choice(merge(layers), self._choice)

    def _refusal(self, place: LayerPlace, path: str, read: FileRead) -> str | None:
        unchanged = read.stamp != UNSAVED and self.previous.reads.get(path) is read
        earlier_refusal = self.previous.refusals.get(path, _UNEXAMINED)
        if unchanged and earlier_refusal != _UNEXAMINED:
            return earlier_refusal
        reason = forbidden_link(path, read.real or path, place.tree, self.real_path(place.tree))
        return reason or (trusted_read(read) if place.strict else None)


def check_settings(document: JsonDocument) -> tuple[Problem, ...]:
    """Return everything that is wrong with one settings file by itself."""
    syntax = [problem for problem in document.problems if problem.code != "json.empty"]
    return (*syntax, *check_config(document))


class _Work(NamedTuple, Generic[_Result]):
    """The result of the work on `layers`, and the problems of the layers with which it fails."""

    result: _Result
    layers: tuple[ConfigLayer, ...]
    problems: tuple[Problem, ...] = ()


def _of_layers(
    layers: tuple[ConfigLayer, ...],
    work: Callable[[tuple[ConfigLayer, ...]], _Result],
    previous_layers: tuple[ConfigLayer, ...] = (),
) -> _Work[_Result]:
    """Do the work on all layers. A layer with which it fails is replaced by its previous version,
    or dropped.
    """
    outcome = _attempt(layers, work) if layers else work(())
    if not isinstance(outcome, Problem):
        return _Work(outcome, layers)
    result, taken = work(()), layers[:0]
    problems: list[Problem] = []
    for layer in layers:
        path = layer.document.path
        for candidate in (
            layer,
            *(previous_layer for previous_layer in previous_layers if previous_layer.document.path == path),
        ):
            attempt = _attempt((*taken, candidate), work)
            if not isinstance(attempt, Problem):
                result, taken = attempt, (*taken, candidate)
                break
            if attempt not in problems:
                problems.append(attempt)
    return _Work(result, taken, tuple(problems))


def _attempt(
    layers: tuple[ConfigLayer, ...], work: Callable[[tuple[ConfigLayer, ...]], _Result]
) -> _Result | Problem:
    """The result of the work, or the problem of the last layer."""

    def attempt() -> _Result | Problem:
        return work(layers)

    return contained(layers[-1].document.path, attempt, lambda problem: problem)


def _unread_skill(path: str, text: str, problem: Problem) -> ReadSkill:
    directory = os.path.basename(os.path.dirname(path))
    return ReadSkill(text, directory, Span(0, 0), None, problems=(problem,))


def _alone(problem: Problem) -> tuple[Problem, ...]:
    return (problem,)


def _same(before: tuple[ConfigLayer, ...], now: tuple[ConfigLayer, ...]) -> bool:
    return len(before) == len(now) and all(
        a.name == b.name and a.document is b.document and a.depth == b.depth
        for a, b in zip(before, now, strict=True)
    )


def forbidden_link(path: str, real: str, tree: str, real_tree: str) -> str | None:
    """Return why a workspace file that lies at `real` must not be read as `path`. None if it may.

    It must lie beneath `tree`, so that no link leads out of it.
    """
    if not within(real, real_tree):
        return f"is a symbolic link that leads out of {tree}"
    *directories, name = os.path.relpath(real, real_tree).split(os.sep)
    # a repository must not bring its user's `.env` into the prompt
    if (name.startswith(".") and name != os.path.basename(path)) or GIT in directories:
        return f"is a symbolic link to {name if GIT not in directories else GIT}, which is hidden"
    return None


def _has_mark(real: str) -> bool:
    """Whether a file on the disk begins with a byte order mark."""
    try:
        return read_range(real, 0, len(BOM))[1] == BOM
    except (OSError, ValueError):
        return False


def unsaved(path: str, text: str, limit: int, real: str | None) -> FileRead:
    """Treat an editor's text by the rules for files. Lone surrogates, which no file can hold, are replaced.

    Most editors leave out the byte order mark that their file has, and write it again.
    """
    if real is not None and not text.startswith(_MARK) and _has_mark(real):
        text = _MARK + text
    try:
        data = text.encode()
    except UnicodeEncodeError:
        text = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)
        data = text.encode()
    if len(data) > limit:
        message = (
            f"The text is too large: {len(data):,} bytes, and at most {limit:,} are read. Make it shorter."
        )
        problem = Problem(path, Span(0, 0), "layer.too-large", Severity.ERROR, message=message)
        return FileRead(path, "too-large", None, (problem,), stamp=UNSAVED, real=real)
    return msgspec.structs.replace(decode_utf8(path, data), stamp=UNSAVED, real=real)
