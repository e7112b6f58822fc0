"""Read the payload of a hook, whatever the program calls its events and fields.

The fields were recorded from Claude Code 2.1.330, Codex 0.169.0 and Gemini CLI 0.61.0, which have almost the
same ones. For opencode, the plugin that `nexus setup opencode` writes sends them.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from nexus_context.text.decoding import decode_as

Kind = Literal["start", "turn", "end", "loaded", "compacting", "summary", "compacted", "prompt"]
KINDS: Mapping[str, Kind] = {
    "SessionStart": "start",
    "session.created": "start",
    "Stop": "turn",
    "AfterAgent": "turn",
    "session.idle": "turn",
    "SessionEnd": "end",
    "session.deleted": "end",
    "InstructionsLoaded": "loaded",
    "PreCompact": "compacting",
    "SubagentStop": "summary",
    "PostCompact": "compacted",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
}
LONGEST = 4_096  # characters of a path or an id


class HookCall(msgspec.Struct, frozen=True):
    """One call of `nexus hook`. `environ` has the variables that say where programs keep their files."""

    assistant: str
    event: str
    options: tuple[str, ...]
    payload: bytes
    environ: Mapping[str, str]

    @property
    def kind(self) -> Kind | None:
        return KINDS.get(self.event)

    @property
    def tokens(self) -> int | None:
        """Return the value of the option --tokens. None if it is missing or not a whole number."""
        for name, value in zip(self.options, self.options[1:], strict=False):
            if name == "--tokens" and value.isascii() and value.isdecimal():
                return int(value)
        return None

    @property
    def memory(self) -> bool:
        return "--memory" in self.options


class HookPayload(msgspec.Struct, frozen=True):
    """The fields of a payload that Nexus reads. A program may send others."""

    session_id: str = ""
    transcript_path: str | None = None
    folder: str = msgspec.field(default="", name="cwd")
    source: str = ""
    file_path: str = ""
    memory_type: str = ""
    load_reason: str = ""
    parent_file_path: str | None = None
    trigger_file_path: str | None = None
    globs: Any = None
    agent_type: str | None = None
    last_assistant_message: str | None = None
    compact_summary: str | None = None
    prompt: str = ""
    pid: int = 0  # of the program, where it says


def read_payload(data: bytes) -> HookPayload | None:
    """Parse a payload. None if it is not valid, names no session, or has a path that is too long."""
    try:
        payload = decode_as(data, HookPayload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    paths = (payload.session_id, payload.folder, payload.file_path, payload.transcript_path or "")
    return payload if payload.session_id and all(len(path) <= LONGEST for path in paths) else None
