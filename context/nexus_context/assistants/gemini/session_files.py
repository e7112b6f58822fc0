"""Finds and reads sessions of Gemini CLI; the format is that of 0.61.0.

1. The files are `.gemini/tmp/<project>/chats/session-*.jsonl` in `$GEMINI_CLI_HOME` or the user's home. The
   file `.project_root` in the project's directory names the folder. The files of sub-agents are
   `chats/<session>/<id>.jsonl`.
2. The first record has `sessionId`, `projectHash` and `startTime`. A message has an `id` and is written again
   as it grows; the last record of it counts. `{"$set": {…}}` changes what the first record says, and
   `messages` in it replaces all messages. `{"$rewindTo": id}` takes back the message with this id and those
   behind it.
3. An answer (`gemini`) has `tokens`: `input` includes what was `cached`, `output` is without `thoughts`.
4. A text that begins with a slash or a question mark is a command, which is not sent to the model. Texts that
   begin with `<session_context>` or `<hook_context>` are the program's own.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from os.path import basename, dirname, join
from typing import Any

import msgspec

from nexus_context.assistants.gemini.records import ADDED, COMMANDS, SNAPSHOT, GeminiRecord
from nexus_context.assistants.reading.record_values import count, text, text_in
from nexus_context.assistants.sessions.session_types import (
    AssistantSession,
    Folders,
    Place,
    SessionSource,
    Usage,
    is_within,
    read_file,
)
from nexus_context.disk import files
from nexus_context.disk.files import JSON_LIMIT, read_text

NAME = "gemini"
_SUFFIX = ".jsonl"
_CHATS = "chats"


def sources(place: Place, folder: Folders) -> Iterator[SessionSource]:
    """Yield the session files of some folders, or of all if `folder` is None."""
    for path in list_files(place, folder):
        stamp = files.file_stamp(path)
        if stamp is not None:
            yield SessionSource(path, stamp, lambda path=path: read(path, folder))  # type: ignore[misc]


def list_files(place: Place, folder: Folders) -> Iterator[str]:
    """Yield the files of sessions and of their sub-agents in some folders, or in all if `folder` is None."""
    for project in _projects(place):
        if folder is None or is_within(_project_root(project), folder):
            yield from _chats(join(project, _CHATS), depth=1)


def _projects(place: Place) -> Iterator[str]:
    root = root_of(place)
    for name, kind in files.list_directory(root) or ():
        if kind != "file":
            yield join(root, name)


def _chats(directory: str, depth: int) -> Iterator[str]:
    for name, kind in files.list_directory(directory) or ():
        path = join(directory, name)
        if kind == "directory":
            if depth:
                yield from _chats(path, depth - 1)
        elif name.endswith(_SUFFIX):
            yield path


def root_of(place: Place) -> str:
    """Return the directory in which each project has a directory."""
    return join(place.environ.get("GEMINI_CLI_HOME") or place.home, ".gemini", "tmp")


def watched(place: Place, folder: str) -> Iterator[str]:
    """Yield the directories in which sessions of a folder appear. The directories of projects that name no
    folder yet are among them.
    """
    yield join(root_of(place), "")
    for project in _projects(place):
        project_root = _project_root(project)
        if project_root is None:
            yield join(project, "")
        elif is_within(project_root, folder):
            yield join(project, _CHATS, "")


def folder_of(path: str) -> str | None:
    """Return the folder in which the session of a file works, None if its project names none."""
    return _project_root(dirname(_chats_of(path)))


def parent_of(path: str) -> str | None:
    """Return the id of the session whose sub-agent wrote a file. Return None for the file of a session."""
    directory = dirname(path)
    return None if directory == _chats_of(path) else basename(directory)


def _chats_of(path: str) -> str:
    directory = dirname(path)
    return directory if basename(directory) == _CHATS else dirname(directory)


def _project_root(directory: str) -> str | None:
    return text((read_text(join(directory, ".project_root"), limit=JSON_LIMIT).text or "").strip())


def read(path: str, folder: Folders) -> list[AssistantSession]:
    """Read the session of a file. Empty if it works in another folder."""
    begin = partial(_from_start, path)
    return read_file(path, folder, GeminiRecord, begin=begin, complete=_from_end)


def _from_start(path: str, first_records: Iterable[GeminiRecord], changed: str) -> AssistantSession | None:
    session = prompt = None
    for record in first_records:
        if record.session is not None and session is None:
            session = AssistantSession(
                assistant=NAME,
                id=record.session,
                path=path,
                folder=folder_of(path),
                started=text_in(record.value, "startTime"),
                changed=changed,
                parent=parent_of(path),
            )
        elif text_in(record.value, "type") == "user":
            texts = texts_of(record.value.get("content"))
            prompt = next((words for words in texts if is_prompt(words)), None)
        if session is not None and prompt is not None:
            return msgspec.structs.replace(session, prompt=prompt)
    return session


def _from_end(session: AssistantSession, last_records: Iterable[GeminiRecord]) -> AssistantSession:
    changes: dict[str, Any] = {}
    for record in last_records:
        time, model = text_in(record.value, "timestamp"), text_in(record.value, "model")
        if time is not None:
            changes.setdefault("changed", time)
        if record.value.get("type") == "gemini" and model is not None:
            changes.setdefault("model", model)
        usage = usage_of(record.value.get("tokens"))
        if usage is not None:
            changes["last"] = usage
            break
    return msgspec.structs.replace(session, **changes)


def usage_of(tokens: Any) -> Usage | None:
    """Read the token counts of an answer. Return None if there are none."""
    if not isinstance(tokens, dict):
        return None
    cached = count(tokens, "cached")
    return Usage(
        fresh=max(count(tokens, "input") - cached, 0),
        cache_read=cached,
        output=count(tokens, "output") + count(tokens, "thoughts"),
    )


def texts_of(content: Any) -> list[str]:
    """List the texts in the content of a message; blank ones are left out."""
    parts = content if isinstance(content, list) else [content]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return [words for words in texts if isinstance(words, str) and words.strip()]


def is_prompt(words: str) -> bool:
    """Whether a text of a message is the user's own and is sent to the model."""
    return not words.lstrip().startswith((*COMMANDS, *ADDED, SNAPSHOT))
