"""Finds and reads sessions of Claude Code; the format is that of 2.1.330, and older ones as far as they agree
with it.

1. The files are `projects/<folder>/<session>.jsonl` in `$CLAUDE_CONFIG_DIR` or `~/.claude`. In the
   directory's name, each UTF-16 unit except ASCII letters and digits is a hyphen, and a long name is cut. The
   session works in the folder that it was last moved to (`relocatedCwd`), else in the one of its records that
   the directory is named after, else in an existing folder that it is named after (the user moved both), else
   in any folder of its records.
2. Answers are records `assistant` whose message has the provider's `usage`: `input_tokens` counts only what
   was neither read from the cache nor written to it. Records of sub-agents (`isSidechain`) have a window of
   their own.
3. `cost-state` sums up the session so far, by model. Older versions do not write it.
4. After a compaction (`compact_boundary`), the window is what the compaction left, until the next answer.
5. Files `agent-*.jsonl` belong to sub-agents of another file's session.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from os.path import basename, join
from typing import Any

import msgspec

from nexus_context.assistants.claude_code.answers import request_of, usage_of_models
from nexus_context.assistants.claude_code.forks import note_root
from nexus_context.assistants.claude_code.records import UNPRICED, ClaudeCodeRecord
from nexus_context.assistants.reading.record_values import count, text
from nexus_context.assistants.sessions.session_types import (
    AssistantSession,
    Folders,
    FolderScope,
    Place,
    SessionSource,
    Usage,
    read_file,
)
from nexus_context.disk import files

NAME = "claude-code"
LONGEST_NAME = 200  # characters of a directory's name before it is cut
EARLIER = "what an earlier process of the session may have stated"
"""Versions before 2.1.277 count from zero when a session is resumed."""
_SUFFIX = ".jsonl"


def sources(place: Place, folder: Folders) -> Iterator[SessionSource]:
    """Yield the session files of some folders, or of all if `folder` is None. Files of sub-agents are left
    out.
    """
    for path, kind in entries(place, folder):
        if kind == "directory" or not path.endswith(_SUFFIX) or basename(path).startswith("agent-"):
            continue
        stamp = files.file_stamp(path)
        if stamp is not None:
            yield SessionSource(path, stamp, lambda path=path: read(path, folder))  # type: ignore[misc]


def entries(place: Place, folder: Folders) -> Iterator[tuple[str, files.Entry]]:
    """Yield the path and kind of each entry in the session directories of some folders, or of all if `folder`
    is None.
    """
    root = root_of(place)
    for name, kind in files.list_directory(root) or ():
        if kind != "file" and _may_be_within(name, folder):
            for entry, entry_kind in files.list_directory(join(root, name)) or ():
                yield join(root, name, entry), entry_kind


def _may_be_within(name: str, folder: Folders) -> bool:
    """Whether a directory of sessions may be named after one of the folders."""
    if isinstance(folder, FolderScope):
        is_parent = any(_is_name_of(name, parent) for parent in folder.parents)
        return is_parent or _may_be_within(name, folder.folder)
    return folder is None or name.startswith(directory_name(folder))


def root_of(place: Place) -> str:
    """Return the directory in which each folder has a directory for its sessions."""
    return join(place.environ.get("CLAUDE_CONFIG_DIR") or join(place.home, ".claude"), "projects")


def watched(place: Place, folder: str) -> tuple[str, ...]:
    """Return the directories in which sessions of a folder appear, each with a separator at its end."""
    root = root_of(place)
    return join(root, directory_name(folder), ""), join(root, "")


def directory_name(folder: str) -> str:
    """Return the name of the directory that has a folder's sessions. If the name is long, it is only the
    beginning.
    """
    return re.sub(r"[^a-zA-Z0-9]", lambda match: "--" if match[0] > "\uffff" else "-", folder)[:LONGEST_NAME]


def choose_folder(path: str, folders: Sequence[str]) -> str | None:
    """Choose the folder in which a session or sub-agent works from those that its records name (rule 1).
    `path` is its file.
    """
    for folder in dict.fromkeys(folders):
        if is_named_after(path, folder):
            return folder
    return (_existing_folder(_directory_of(path), "/") if folders else None) or next(iter(folders), None)


def is_named_after(path: str, folder: str) -> bool:
    """Whether the directory that holds a session's file is named after a folder."""
    return _is_name_of(_directory_of(path), folder)


def _is_name_of(directory: str, folder: str) -> bool:
    name = directory_name(folder)
    return directory == name or (len(name) == LONGEST_NAME and directory.startswith(name))


def _directory_of(path: str) -> str:
    return path.replace("\\", "/").rpartition("/projects/")[2].partition("/")[0]


@lru_cache(maxsize=1_000)
def _existing_folder(name: str, parent: str) -> str | None:
    """The folder on the disk that a directory is named after."""
    for entry, kind in files.list_directory(parent) or ():
        folder = join(parent, entry)
        begin = directory_name(folder)
        if kind != "file" and (name == begin or name.startswith(f"{begin}-")):
            existing_folder = folder if name == begin else _existing_folder(name, folder)
            if existing_folder is not None:
                return existing_folder
    return None


def read(path: str, folder: Folders) -> list[AssistantSession]:
    """Read the session of a file. Empty if it works in another folder or has no message."""
    titles: dict[int, str] = {}
    begin, complete = partial(_from_start, path, titles), partial(_from_end, titles)
    return read_file(path, folder, ClaudeCodeRecord, begin=begin, complete=complete, moves=True)


def _from_start(
    path: str, titles: dict[int, str], first_records: Iterable[ClaudeCodeRecord], changed: str
) -> AssistantSession | None:
    """Read from the first records where the session works and what the user wanted."""
    prompt = version = started = None
    folders: list[str] = []
    fork_of = None
    for record in first_records:
        fork_of = fork_of or record.fork_of
        note_root(path, record)
        titles.update(record.titles)
        folders += [record.folder] if record.folder is not None else []
        version = text(record.value.get("version")) or version
        started = started or text(record.value.get("timestamp"))
        is_own = record.value.get("isMeta") is True or record.is_summary
        if record.kind == "user" and prompt is None and not is_own:
            prompt = _words(record)
        if folders and prompt and is_named_after(path, folders[-1]):
            break
    folder = choose_folder(path, folders)
    if folder is None:
        return None
    return AssistantSession(
        assistant=NAME,
        id=basename(path).removesuffix(_SUFFIX),
        path=path,
        folder=folder,
        prompt=prompt,
        version=version,
        started=started,
        changed=changed,
        fork_of=fork_of,
    )


def _from_end(
    titles: dict[int, str], session: AssistantSession, last_records: Iterable[ClaudeCodeRecord]
) -> AssistantSession:
    """Add what the last records say."""
    changes: dict[str, Any] = {}
    later_titles: dict[int, str] = {}
    for record in last_records:
        later_titles = record.titles | later_titles
        if record.relocated is not None:
            changes.setdefault("folder", record.relocated)
        time, cost = text(record.value.get("timestamp")), record.total_cost_usd
        if time is not None and "changed" not in changes:
            changes |= {"changed": time, "version": text(record.value.get("version")) or session.version}
        if cost is not None and "cost_usd" in changes:
            changes["lacks"] = (*changes["lacks"], EARLIER)
            break
        if cost is not None:
            lacks = (UNPRICED,) if record.has_unpriced_model else ()
            changes |= {"cost_usd": cost, "total": usage_of_models(record.model_usage), "lacks": lacks}
        prompt = text(record.value.get("lastPrompt"))
        if prompt is not None and session.prompt is None:
            changes.setdefault("prompt", prompt)
        if record.is_compaction and "last" not in changes:
            tokens_after = count(record.compact_metadata, "postTokens")
            changes["last"] = Usage(fresh=tokens_after) if tokens_after else None
        if record.kind == "assistant" and not record.is_sidechain and record.usage:
            changes.setdefault("last", request_of(record, record.usage, "").usage)
            if "model" not in changes:
                changes |= {"model": record.model, "window": record.stated_window}
            if "cost_usd" not in changes or record.counts_on:
                break
    titles |= later_titles
    if titles:
        changes["prompt"] = titles[max(titles)]
    return msgspec.structs.replace(session, **changes)


def _words(record: ClaudeCodeRecord) -> str | None:
    """The text of a message of the user; none of what Claude Code wraps in tags (commands, reminders)."""
    texts = (text(block.get("text")) for block in record.blocks if block.get("type") == "text")
    return next((words for words in texts if words and not words.lstrip().startswith("<")), None)
