"""Tell which assistant a client is, by the name that it gives itself in `initialize`.

The names of Claude Code 2.1.330, Codex 0.169.0 and opencode 1.18.33 are as they were received.
"""


def assistant_of(client: str) -> str | None:
    """Return the assistant that the client's name stands for, if it has a profile. Else None."""
    from nexus_context.assistants.programs import PROGRAMS  # a server that was asked nothing needs none

    name = client.lower()
    return next((program.name for program in PROGRAMS.values() if name.startswith(program.client)), None)
