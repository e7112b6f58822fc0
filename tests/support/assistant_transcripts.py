"""Transcripts of Claude Code and Codex, with records as the programs of 2026-11 write them."""

import json
import os
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Record = dict[str, Any]

FOLDER = "/home/ana/shop"
BEGUN = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
SONNET = "claude-sonnet-4-5"
SESSION = "eccfd4a0-c552-490f-a185-42de97381828"
RULES = "# Rules\n\nNever log a secret."


def lines(records: Iterable[Record | bytes]) -> bytes:
    """The file of some records, compact as the programs write them; bytes are a line as it is."""
    encoded = (
        one if isinstance(one, bytes) else json.dumps(one, separators=(",", ":")).encode() for one in records
    )
    return b"".join(line + b"\n" for line in encoded)


def write(path: Path, records: Iterable[Record | bytes], *, minute: float = 0.0) -> Path:
    """Write a transcript that changed so many minutes after BEGUN."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(records))
    at = (BEGUN + timedelta(minutes=minute)).timestamp()
    os.utime(path, (at, at))
    return path


def time_at(minute: float) -> str:
    """The time so many minutes after BEGUN, as records have it."""
    return (BEGUN + timedelta(minutes=minute)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Claude:
    """Makes records of a session of Claude Code. `minute` is the time of the next one."""

    def __init__(self, folder: str = FOLDER, *, model: str = SONNET, session: str = SESSION) -> None:
        self.folder = folder
        self.model = model
        self.session = session
        self.version = "2.1.330"
        self.minute = 0.0
        self._records = 0
        self._answers = 0
        self._prefix = "" if session == SESSION else f"{session}-"  # only a fork has the uuids of another one

    def record(self, kind: str, **values: Any) -> Record:
        """A record of any kind."""
        self._records += 1
        about = {
            "uuid": f"{self._prefix}u{self._records}",
            "timestamp": time_at(self.minute),
            "cwd": self.folder,
            "sessionId": self.session,
            "version": self.version,
            "isSidechain": False,
        }
        return {"type": kind, **about, **values}

    def asks(self, content: Any, **values: Any) -> Record:
        """A message of the user."""
        return self.record("user", message={"role": "user", "content": content}, **values)

    def returns(self, call: str, text: Any, **values: Any) -> Record:
        """The result of a call."""
        part = {"type": "tool_result", "tool_use_id": call, "content": text, **values}
        return self.record("user", message={"role": "user", "content": [part]})

    def answers(
        self,
        *blocks: Record | str,
        read: int = 0,
        write: int = 0,
        fresh: int = 10,
        output: int = 20,
        hour: bool = False,
        usage: Record | None = None,
        message: Record | None = None,
        **values: Any,
    ) -> list[Record]:
        """An answer: a record for each block, all with the same id and usage. A text is a block."""
        self._answers += 1
        counted = {
            "input_tokens": fresh,
            "cache_creation_input_tokens": write,
            "cache_read_input_tokens": read,
            "cache_creation": {
                "ephemeral_5m_input_tokens": 0 if hour else write,
                "ephemeral_1h_input_tokens": write if hour else 0,
            },
            "output_tokens": output,
            **(usage or {}),
        }
        about = {"id": f"msg_{self._answers}", "type": "message", "role": "assistant", "model": self.model}
        about |= message or {}
        values.setdefault("requestId", f"req_{self._answers}")
        parts = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        return [
            self.record(
                "assistant",
                message={**about, "content": [part], "usage": counted},
                **values,
            )
            for part in parts
        ]

    def attaches(self, kind: str, text: str, **values: Any) -> Record:
        """Something that the program adds to a request."""
        return self.record(
            "attachment",
            attachment={"type": kind, **values},
            rendered=[{"content": text}],
            renderedRole="user",
        )

    def loads(self, path: str, text: str = RULES) -> Record:
        """An instruction file."""
        file = {"path": path, "type": "Project", "content": text}
        return self.attaches("instructions", text, files=[file])

    def compacts(self, summary: str, *, before: int, after: int, trigger: str = "auto") -> list[Record]:
        """A compaction."""
        about = {"trigger": trigger, "preTokens": before, "postTokens": after}
        boundary = self.record("system", subtype="compact_boundary", compactMetadata=about)
        return [boundary, self.asks(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)]

    def sums_up(self, cost: float, **usage: int) -> Record:
        """The program's own sums."""
        return {"type": "cost-state", "totalCostUSD": cost, "modelUsage": {self.model: usage}}

    def path(self, home: Path) -> Path:
        """Where the session is."""
        name = "".join(one if one.isascii() and one.isalnum() else "-" for one in self.folder)
        return home / ".claude" / "projects" / name / f"{self.session}.jsonl"


def calls(name: str, call: str = "toolu_1", **arguments: Any) -> Record:
    """A block of an answer that calls a tool."""
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def thinks(text: str) -> Record:
    """A block of thinking."""
    return {"type": "thinking", "thinking": text, "signature": "c2ln"}


class Codex:
    """Makes records of a rollout of Codex."""

    def __init__(self, folder: str = FOLDER, *, model: str = "gpt-5", session: str = "01a2") -> None:
        self.folder = folder
        self.model = model
        self.session = session
        self.minute = 0.0
        self._answers = 0
        self._sums = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "total_tokens": 0}

    def record(self, kind: str, **payload: Any) -> Record:
        """A record of any kind."""
        return {"timestamp": time_at(self.minute), "type": kind, "payload": payload}

    def begins(self) -> list[Record]:
        """The first records."""
        about = {"id": self.session, "cwd": self.folder, "timestamp": time_at(0), "cli_version": "0.169.0"}
        return [
            self.record("session_meta", **about),
            self.record("turn_context", model=self.model, cwd=self.folder),
        ]

    def says(self, text: str, *, role: str = "user", kind: str = "user.text", **values: Any) -> Record:
        """A message."""
        about = {"content_item_kinds": [kind]}
        content = [{"type": "output_text" if role == "assistant" else "input_text", "text": text}]
        return self.record(
            "response_item",
            type="message",
            role=role,
            content=content,
            internal_chat_message_metadata_passthrough=about,
            **values,
        )

    def loads(self, text: str = RULES) -> Record:
        """Its instructions."""
        words = f"# AGENTS.md instructions for {self.folder}\n\n<INSTRUCTIONS>\n{text}\n</INSTRUCTIONS>"
        return self.says(words, kind="agents_md.instructions")

    def calls(self, name: str, call: str = "call_1", **arguments: Any) -> Record:
        """A call of a tool."""
        encoded = json.dumps(arguments)
        return self.record("response_item", type="function_call", name=name, call_id=call, arguments=encoded)

    def returns(self, call: str, text: str) -> Record:
        """The result of a call."""
        return self.record("response_item", type="function_call_output", call_id=call, output=text)

    def uses(self, sent: int, *, cached: int = 0, output: int = 20, records: bool = True) -> list[Record]:
        """The usage of a request, which comes after its answer."""
        self._answers += 1
        last = {
            "input_tokens": sent,
            "cached_input_tokens": cached,
            "cache_write_input_tokens": 0,
            "output_tokens": output,
            "total_tokens": sent + output,
        }
        self._sums = {name: count + last[name] for name, count in self._sums.items()}
        info = {
            "total_token_usage": self._sums,
            "last_token_usage": last,
            "model_context_window": 258_400,
        }
        record = self.record("token_usage_record", response_id=f"resp_{self._answers}", usage=last)
        return [*([record] if records else []), self.record("event_msg", type="token_count", info=info)]

    def compacts(self, summary: str) -> Record:
        """A compaction."""
        item = self.says(summary, kind="compaction.summary")["payload"]
        return self.record("compacted", message=summary, replacement_history=[item])

    def path(self, home: Path) -> Path:
        """Where the rollout is."""
        day = home / ".codex" / "sessions" / "2026" / "11" / "23"
        return day / f"rollout-2026-11-23T09-00-00-{self.session}.jsonl"


def example_session(folder: str = FOLDER) -> tuple[Claude, list[Record]]:
    """A session with all that a report shows."""
    claude = Claude(folder)
    records = [
        claude.asks("Never change a published price. Where is the total cached?"),
        claude.loads(f"{folder}/CLAUDE.md"),
        *claude.answers(
            thinks("The cache may be in the shop package."),
            calls("Read", "toolu_1", file_path=f"{folder}/src/total_cache.py"),
            calls("mcp__tickets__find_ticket", "toolu_2", query="SHOP-4711"),
            write=22_000,
            output=120,
        ),
        claude.returns("toolu_1", "def cached_total(order): ...\n" * 60),
        claude.returns("toolu_2", "SHOP-4711: the total is stale for 300 seconds\n" * 20),
    ]
    claude.minute = 1
    records += claude.answers("It is cached in src/total_cache.py.", read=22_000, write=900, output=40)
    claude.minute = 12
    records += [claude.asks("Fix SHOP-4711."), *claude.answers("Done.", write=23_000, output=30)]
    claude.minute = 13
    records += claude.compacts(
        "The user asked about the cached total.", before=23_040, after=900, trigger="manual"
    )
    claude.minute = 14
    records += [claude.asks("Go on."), claude.loads(f"{folder}/CLAUDE.md")]
    records += claude.answers("I go on.", read=18_000, write=1_400, output=25)
    return claude, records
