"""Finds the session of Claude Code that another one was forked from, and what the two share; seen with
2.1.330.

1. A fork begins with copies of its origin's records, which keep their uuids. `/branch` marks them
   (`forkedFrom`); `--fork-session` marks none, and keeps the marks of earlier branches.
2. Sessions of a directory with the same first record are a family. A fork of a compacted session begins with
   the compaction, so sessions that have this record belong to its family, too. Of two sessions, the origin is
   the one that has nothing but what both have, or that goes on later than the other: who forks a session
   works in the fork.
3. After `--fork-session` the program goes on counting (`cost-state`) from what the origin had stated.
"""

import os
from collections.abc import Iterable
from functools import lru_cache
from os.path import basename, dirname, join
from typing import NamedTuple

import msgspec

from nexus_context.assistants.claude_code.answers import usage_of, usage_of_models
from nexus_context.assistants.claude_code.records import ClaudeCodeRecord
from nexus_context.assistants.reading.record_values import seconds
from nexus_context.assistants.sessions.record_reader import decode_line, read_marked
from nexus_context.assistants.sessions.session_types import AssistantSession, Usage, subtract_usage
from nexus_context.disk import files

_SUFFIX = ".jsonl"
_MARKS = (b'"uuid"', b'"cost-state"')
_HEAD = 64 * 1024  # bytes, in which the first record is
_BLOCK = 1 << 20  # bytes
MOST_ROOTS = 100_000
_roots: dict[str, str] = {}  # of the first record with a uuid, by path: it stays


_cut: set[str] = set()  # those that begin with a compaction


class OriginRecords(NamedTuple):
    """What a fork shares with its origin: the uuids of records, and the usage and cost that the origin had
    stated up to the fork.
    """

    uuids: frozenset[str] = frozenset()
    usage: Usage | None = None
    cost_usd: float = 0.0

    def subtract_stated(self, usage: Usage, cost_usd: float, own_tokens: int) -> tuple[Usage, float]:
        """Subtract the origin's usage and cost from a session's. Both stay unchanged if fewer tokens than the
        session's `own_tokens` would remain (rule 3).
        """
        if self.usage is None or usage.sent - self.usage.sent < own_tokens:
            return usage, cost_usd
        return subtract_usage(usage, self.usage), cost_usd - self.cost_usd


class _Record(NamedTuple):
    """A record with a uuid, or a statement (None). `sent` are the tokens that an answer was sent."""

    uuid: str | None
    at: float
    answer: str | None
    sent: int
    usage: Usage | None
    cost_usd: float


def note_root(path: str, record: ClaudeCodeRecord) -> None:
    """Remember the first record of the session file `path` that has a uuid; later records change nothing.
    Call it for each record while the beginning of the file is read.
    """
    if record.uuid is not None and path not in _roots:
        if len(_roots) >= MOST_ROOTS:
            _roots.clear()
            _cut.clear()
        _roots[path] = record.uuid
        if record.is_compaction:
            _cut.add(path)


def find_origins(paths: Iterable[str]) -> dict[str, str]:
    """Map the path of each fork to the path of its origin, among these session files. A file whose first
    record `note_root` was not told of is left out.
    """
    families: dict[tuple[str, str], list[str]] = {}
    for path in paths:
        root = _roots.get(path)
        if root is not None:
            families.setdefault((dirname(path), root), []).append(path)
    origins: dict[str, str | None] = {}
    for (directory, root), family in families.items():
        if not _cut.isdisjoint(family):
            family = _holders(directory, root, family)
        if len(family) > 1:
            origins |= {path: _nearest(path, family) for path in family if _roots.get(path) == root}
    return {path: origin for path, origin in origins.items() if origin is not None}


def find_origin(path: str) -> str | None:
    """Return the id of the session that a session was forked from, else None."""
    directory = dirname(path)
    try:
        changed = os.stat(directory).st_mtime_ns
    except OSError:
        return None
    root = _roots.get(path) or _read_root(path)
    family = _families(directory, changed).get(root, []) if root is not None else []
    if path in _cut and root is not None:
        family = _holders(directory, root, family)
    origin = _nearest(path, family) if len(family) > 1 else None
    return None if origin is None else id_of(origin)


def read_base(path: str, origin: str) -> OriginRecords:
    """Read what a fork shares with its origin; both are paths. Raise OSError if one of the files cannot be
    read.
    """
    own_records, origin_records = _records(path), _records(origin)
    uuids = _uuids(own_records) & _uuids(origin_records)
    end = _end_of(origin_records, uuids)
    later_at = next(
        (at for at, record in enumerate(origin_records) if at >= end and record.uuid), len(origin_records)
    )
    stated_record = next(
        (record for record in reversed(origin_records[:later_at]) if record.usage is not None), None
    )
    return (
        OriginRecords(uuids)
        if stated_record is None
        else OriginRecords(uuids, stated_record.usage, stated_record.cost_usd)
    )


def base_of(path: str, fork_of: str | None) -> OriginRecords:
    """Read what a session shares with the session `fork_of`. Empty if `fork_of` is None or its file cannot be
    read.
    """
    if fork_of is None:
        return OriginRecords()
    try:
        return read_base(path, join(dirname(path), fork_of + _SUFFIX))
    except OSError:
        return OriginRecords()


def id_of(path: str) -> str:
    """Return the id of the session that a file holds."""
    return basename(path).removesuffix(_SUFFIX)


def link_forks(sessions: list[AssistantSession]) -> list[AssistantSession]:
    """Return the sessions with `fork_of` set for forks. The origin's usage and cost are subtracted from a
    fork's.
    """
    origins = find_origins(session.path for session in sessions)
    return [
        _own_part(session, origins[session.path]) if session.path in origins else session
        for session in sessions
    ]


def _own_part(session: AssistantSession, origin: str) -> AssistantSession:
    try:
        base, own_tokens = read_base(session.path, origin), dict[str | None, int]()
        for record in _records(session.path):
            if record.sent and record.uuid not in base.uuids:
                own_tokens[record.answer] = max(record.sent, own_tokens.get(record.answer, 0))
    except OSError:  # it was removed
        return session
    total, cost = session.total, session.cost_usd
    if total is not None and cost is not None:
        total, cost = base.subtract_stated(total, cost, sum(own_tokens.values()))
    return msgspec.structs.replace(session, fork_of=id_of(origin), total=total, cost_usd=cost)


def _nearest(path: str, family: Iterable[str]) -> str | None:
    """Find the origin of a session: the member of its family that shares the most records with it."""
    try:
        mine = _records(path)
        common_counts = [
            (_common(mine, _records(candidate), path, candidate), candidate)
            for candidate in family
            if candidate != path
        ]
    except OSError:  # it was removed
        return None
    common, origin = max(common_counts, default=(0, ""))
    return origin if common else None


def _common(mine: tuple[_Record, ...], theirs: tuple[_Record, ...], path: str, candidate: str) -> int:
    """Count the records that a session shares with a possible origin; 0 if the candidate is the fork."""
    uuids, their_uuids = _uuids(mine), _uuids(theirs)
    own_start, their_start = (
        min(
            (record.at for record in records[_end_of(records, uuids & their_uuids) :] if record.uuid),
            default=None,
        )
        for records in (mine, theirs)
    )
    if own_start is None and their_start is None:
        return len(uuids) if candidate < path else 0
    is_origin = their_start is None or (own_start is not None and own_start < their_start)
    return len(uuids & their_uuids) if is_origin else 0


def _end_of(records: tuple[_Record, ...], shared: frozenset[str]) -> int:
    """The index behind the last shared record. Records before the first shared one may be compacted."""
    return max((at for at, record in enumerate(records, 1) if record.uuid in shared), default=0)


def _uuids(records: Iterable[_Record]) -> frozenset[str]:
    return frozenset(record.uuid for record in records if record.uuid)


@lru_cache(maxsize=100)
def _families(directory: str, _changed: int) -> dict[str, list[str]]:
    """The sessions of a directory by their first record."""
    families: dict[str, list[str]] = {}
    for name, kind in files.list_directory(directory) or ():
        path = join(directory, name)
        if kind != "directory" and name.endswith(_SUFFIX) and not name.startswith("agent-"):
            root = _roots.get(path) or _read_root(path)
            if root is not None:
                families.setdefault(root, []).append(path)
    return families


def _holders(directory: str, uuid: str, family: Iterable[str]) -> list[str]:
    """The family, and the other sessions of a directory that have a record."""
    paths = [
        join(directory, name)
        for name, kind in files.list_directory(directory) or ()
        if kind != "directory" and name.endswith(_SUFFIX) and not name.startswith("agent-")
    ]
    return list(dict.fromkeys((*family, *(path for path in paths if _has(path, uuid)))))


def _has(path: str, uuid: str) -> bool:
    stamp = files.file_stamp(path)
    return stamp is not None and _find_text(path, stamp, uuid.encode())


@lru_cache(maxsize=10_000)
def _find_text(path: str, _stamp: tuple[int, ...], text: bytes) -> bool:
    """Whether a file has a text. It is not decoded: every session of a directory may be searched."""
    position, tail = 0, b""
    try:
        while data := files.read_range(path, position, _BLOCK)[1]:
            if text in tail + data:
                return True
            position, tail = position + len(data), data[-len(text) :]
    except OSError:  # it was removed
        return False
    return False


def _read_root(path: str) -> str | None:
    try:
        _, data = files.read_range(path, 0, _HEAD)
    except OSError:
        return None
    for line in data.split(b"\n")[:-1]:
        record = decode_line(line, ClaudeCodeRecord) if b'"uuid"' in line else None
        if record is not None and record.uuid is not None:
            note_root(path, record)
            return record.uuid
    return None


def _records(path: str) -> tuple[_Record, ...]:
    stamp = files.file_stamp(path)
    if stamp is None:
        raise FileNotFoundError(path)
    return _read_records(path, stamp)


@lru_cache(maxsize=100)
def _read_records(path: str, _stamp: tuple[int, ...]) -> tuple[_Record, ...]:
    return tuple(
        _record(record) for record in read_marked(path, ClaudeCodeRecord, _MARKS) if not record.is_sidechain
    )


def _record(record: ClaudeCodeRecord) -> _Record:
    cost = record.total_cost_usd
    return _Record(
        record.uuid,
        seconds(record.value.get("timestamp")),
        record.message_id,
        sent=usage_of(record.usage).sent if record.usage else 0,
        usage=None if cost is None else usage_of_models(record.model_usage),
        cost_usd=cost or 0.0,
    )
