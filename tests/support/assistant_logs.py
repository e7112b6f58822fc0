"""Transcripts of other assistants for tests, as their programs write them, in a home of their own."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import apsw

FOLDER = "/work/shop"
MODEL = "claude-sonnet-4-5"


class ClaudeLog:
    """A session file of Claude Code that grows. Each record follows the last one unless `parent` is given."""

    def __init__(
        self, home: Path, name: str, *, folder: str = FOLDER, agent: str | None = None, session: str = ""
    ) -> None:
        project = home / ".claude/projects" / "".join(c if c.isalnum() else "-" for c in folder)
        self.name = name
        self.path = project / f"{name}.jsonl"
        if agent is not None:
            self.path = project / session / "subagents" / f"agent-{agent}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.last: str | None = None
        self._about: dict[str, Any] = {"cwd": folder, "sessionId": session or name, "version": "2.1.330"}
        self._about |= {"isSidechain": agent is not None}
        if agent is not None:
            self._about["agentId"] = agent
        self._number = 0
        self._sent = 0

    def raw(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def put(self, kind: str, *, parent: Any = "", **values: Any) -> str:
        self._number += 1
        uuid = f"{self.name}-{self._number}"
        stamp = f"2026-11-20T10:{self._number // 60 % 60:02}:{self._number % 60:02}.000Z"
        record = {"parentUuid": self.last if parent == "" else parent, **self._about, "type": kind, **values}
        self.raw(json.dumps(record | {"uuid": uuid, "timestamp": stamp}).encode() + b"\n")
        self.last = uuid
        return uuid

    def user(self, text: str, **values: Any) -> str:
        return self.put("user", message={"role": "user", "content": text}, **values)

    def answer(self, *blocks: Any, message: str | None = None, sent: int = 0, **values: Any) -> str:
        """A record for each block, with the id of their message; a text is a block."""
        name = message or f"{self.name}-m{self._number}"
        self._sent = sent or self._sent + 100
        usage = {"input_tokens": 10, "cache_read_input_tokens": self._sent - 10, "output_tokens": 5}
        for block in blocks:
            content = [{"type": "text", "text": block} if isinstance(block, str) else block]
            about = {"id": name, "role": "assistant", "model": MODEL, "usage": usage}
            self.put("assistant", message={**about, "content": content}, **values)
        return name

    def result(self, call: str, text: str, **values: Any) -> str:
        block = {"type": "tool_result", "tool_use_id": call, "content": text}
        return self.put("user", message={"role": "user", "content": [block]}, **values)


def use(call: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Read", "input": arguments}


class CodexLog:
    """A rollout that grows."""

    def __init__(self, home: Path, name: str, *, folder: str = FOLDER, **meta: Any) -> None:
        self.path = home / ".codex/sessions/2026/11/20" / f"rollout-2026-11-20T10-00-00-{name}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.put("session_meta", id=name, cwd=folder, **meta)
        self.put("turn_context", cwd=folder, model="gpt-5")

    def put(self, kind: str, **payload: Any) -> None:
        record = {"timestamp": "2026-11-20T10:00:00.000Z", "type": kind, "payload": payload}
        with self.path.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")

    def user(self, text: str) -> None:
        content = [{"type": "input_text", "text": text}]
        self.put("response_item", type="message", role="user", content=content)

    def answer(self, text: str, *, sent: int = 100) -> None:
        content = [{"type": "output_text", "text": text}]
        self.put("response_item", type="message", role="assistant", content=content)
        self.count(sent)

    def call(self, name: str, *, sent: int = 100) -> None:
        self.put("response_item", type="function_call", call_id=name, name="shell", arguments="{}")
        self.count(sent)

    def result(self, name: str, text: str) -> None:
        self.put("response_item", type="function_call_output", call_id=name, output=text)

    def count(self, sent: int) -> None:
        usage = {"input_tokens": sent, "cached_input_tokens": 0, "output_tokens": 5}
        self.put("event_msg", type="token_count", info={"last_token_usage": usage})


class OpencodeDatabase:
    """The database of opencode, as far as sessions are read from it."""

    def __init__(self, home: Path) -> None:
        path = home / ".local/share/opencode/opencode.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.connection = apsw.Connection(str(path))
        self.connection.pragma("journal_mode", "wal")
        self.connection.execute(
            """
            CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT,
                title TEXT, version TEXT, revert TEXT, model TEXT, cost REAL, tokens_input INTEGER,
                tokens_output INTEGER, tokens_cache_read INTEGER, tokens_cache_write INTEGER,
                time_created INTEGER, time_updated INTEGER);
            CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,
                time_updated INTEGER, data TEXT);
            CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT,
                time_created INTEGER, time_updated INTEGER, data TEXT);
            """
        )
        self._time = 1_000

    def session(self, name: str, *, folder: str = FOLDER, parent: str | None = None) -> None:
        values = (name, parent, folder, f"title of {name}", "1.18.33", self._tick(), self._time)
        self.connection.execute(
            "INSERT INTO session (id, parent_id, directory, title, version, cost, tokens_input,"
            " tokens_output, tokens_cache_read, tokens_cache_write, time_created, time_updated)"
            " VALUES (?, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?, ?)",
            values,
        )

    def message(self, session: str, role: str, text: str) -> None:
        time = self._tick()
        name = f"msg_{time}"
        info = {"role": role, "time": {"created": time}, "modelID": "gpt-5"}
        self._put("message", (name, session, time, time, json.dumps(info)))
        part = {"type": "text", "text": text}
        self._put("part", (f"prt_{time}", name, session, time, time, json.dumps(part)))

    def answer(self, session: str, text: str, tokens: int) -> None:
        """An answer whose usage the session's row counts, too; it costs a cent."""
        self.message(session, "assistant", text)
        usage = {"tokens": {"input": tokens, "output": 0}, "cost": 0.01}
        self.connection.execute(
            "UPDATE message SET data = json_patch(data, ?) WHERE time_created = ? AND session_id = ?",
            (json.dumps(usage), self._time, session),
        )
        self.connection.execute(
            "UPDATE session SET tokens_input = tokens_input + ?, cost = cost + 0.01 WHERE id = ?",
            (tokens, session),
        )

    def fork(self, session: str, name: str) -> None:
        """A fork as opencode makes one: messages are copied with their times, the row counts them again."""
        self.session(name)
        for table in ("message", "part"):
            columns = "message_id || '-' || ?1, ?1" if table == "part" else "?1"
            self.connection.execute(
                f"INSERT INTO {table} SELECT id || '-' || ?1, {columns}, time_created, ?2, data FROM {table}"  # noqa: S608
                " WHERE session_id = ?3",
                (name, self._tick(), session),
            )
        self.connection.execute(
            "UPDATE session SET (tokens_input, cost) = (SELECT tokens_input, cost FROM session WHERE id = ?)"
            " WHERE id = ?",
            (session, name),
        )

    def _put(self, table: str, values: Iterable[Any]) -> None:
        row = tuple(values)
        self.connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608

    def _tick(self) -> int:
        self._time += 1
        return self._time
