"""Which assistant a client is, by the name that it gives itself in `initialize`.

The names of Claude Code 2.1.330, Codex 0.169.0 and opencode 1.18.33 are as they were received.
"""

_BEGINNINGS = (
    ("claude-code", "claude-code"),
    ("codex", "codex"),
    ("opencode", "opencode"),
    ("gemini-cli", "gemini"),
    ("visual studio code", "copilot"),
    ("cursor", "cursor"),
)
"""How the name of a client begins, in lower case, and the assistant."""


def assistant_of(client: str) -> str | None:
    """The assistant with a profile; None for any other client."""
    name = client.lower()
    return next((assistant for beginning, assistant in _BEGINNINGS if name.startswith(beginning)), None)
