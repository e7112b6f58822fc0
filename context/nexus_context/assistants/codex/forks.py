"""Finds where the own part of a forked rollout of Codex begins; a sub-agent may be a fork, too.

1. A fork begins with the records of its origin, stamped anew, or with none of them (`history_base`). What it
   has inherited ends with the last count of tokens (`token_count`) that the origin has, too. If the file of
   the origin is gone, it ends with what was stamped when the fork was made.
2. The fork goes on counting where its origin was. `ForkBase.sums` is what was counted before its first own
   request.
3. Its title is the first prompt after what it has inherited.
"""

from collections.abc import Iterator
from functools import lru_cache
from os.path import basename, join
from typing import Any

import msgspec

from nexus_context.assistants.codex.records import CodexRecord
from nexus_context.assistants.reading.record_values import field, objects_in, seconds, text, text_in
from nexus_context.assistants.sessions.record_reader import read_marked
from nexus_context.disk import files

DEEPEST = 4  # directories below `sessions`
_MARKS = (b"token_count", b'"user"', b'"session_meta"')
"""Of the records that count tokens, are of the user or begin the session."""


class ForkBase(msgspec.Struct, frozen=True):
    """What a fork has inherited: the number of its `token_count` records that are the origin's, the origin's
    last sums, and the fork's own first prompt.
    """

    counts: int = 0
    sums: dict[str, Any] = {}
    prompt: str | None = None


def list_rollouts(directory: str, depth: int = DEEPEST) -> Iterator[str]:
    """Yield the paths of the rollouts in a directory and below."""
    for name, kind in files.list_directory(directory) or ():
        path = join(directory, name)
        if kind == "directory":
            if depth:
                yield from list_rollouts(path, depth - 1)
        elif name.startswith("rollout-") and name.endswith((".jsonl", ".jsonl.zst")):
            yield path


@lru_cache(maxsize=500)
def find_rollout(path: str, thread: str) -> str | None:
    """Find the rollout of a thread in the store that holds `path`. Return its path, or None if there is
    none.
    """
    for name in ("sessions", "archived_sessions"):
        store_root, separator, _ = path.rpartition(f"/{name}/")
        if separator:
            rollouts = (
                rollout
                for store_name in ("sessions", "archived_sessions")
                for rollout in list_rollouts(join(store_root, store_name))
            )
            return next((rollout for rollout in rollouts if f"-{thread}." in basename(rollout)), None)
    return None


_bases: dict[tuple[str, str | None], ForkBase] = {}  # of forks with a request of their own: it stays


def read_base(path: str, origin: str | None) -> ForkBase:
    """Read what the fork in the file `path` has inherited from the file `origin`. If `origin` is None, it has
    inherited what was stamped before the fork was made.

    Raise OSError if a file cannot be read.
    """
    if (path, origin) in _bases:
        return _bases[path, origin]
    origin_keys = (
        None
        if origin is None
        else {_key(sums) for record in read_marked(origin, CodexRecord, _MARKS) if (sums := sums_of(record))}
    )
    counts, last_sums, prompt, created = 0, dict[str, Any](), None, 0.0
    for record in read_marked(path, CodexRecord, _MARKS):
        at, sums = seconds(record.value.get("timestamp")), sums_of(record)
        if record.kind == "session_meta":
            created = created or seconds(field(record.payload, "timestamp"))
        if text_in(record.payload, "role") == "user":
            prompt = prompt or words_of(record.payload)
        if not sums:
            continue
        if _key(sums) not in origin_keys if origin_keys is not None else at > created:
            last_usage = field(record.payload, "info", "last_token_usage")
            _bases[path, origin] = ForkBase(counts, last_sums or _less(sums, last_usage), prompt)
            return _bases[path, origin]
        counts, last_sums, prompt = counts + 1, sums, None
    return ForkBase(counts, last_sums, prompt)


def sums_of(record: CodexRecord) -> dict[str, Any] | None:
    """Return the tokens that a thread has counted so far, if a record states them, else None."""
    sums = (
        field(record.payload, "info", "total_token_usage") if record.payload_kind == "token_count" else None
    )
    return sums if isinstance(sums, dict) else None


def words_of(payload: Any) -> str | None:
    """Return what the user wrote in a message, else None. Codex also sends instructions and the environment
    in the user's name.
    """
    texts = (text(part.get("text")) for part in objects_in(field(payload, "content")))
    return next(
        (words for words in texts if words and not words.lstrip().startswith(("<", "# AGENTS.md"))), None
    )


def _key(sums: dict[str, Any]) -> tuple[Any, ...]:
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    return tuple(value if isinstance(value := sums.get(name), int) else None for name in names)


def _less(sums: dict[str, Any], usage: Any) -> dict[str, Any]:
    """The sums before a request: `sums` without the request's own `usage`."""
    names = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens")
    pairs = ((name, sums.get(name), field(usage, name)) for name in names)
    return {
        name: max(total - (request_tokens if isinstance(request_tokens, int) else 0), 0)
        for name, total, request_tokens in pairs
        if isinstance(total, int)
    }
