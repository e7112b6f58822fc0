"""A configured model that is not in the registry: its window is a guess, which deserves a hint.

1. The problem is about the `provider.model` in force, at its value. There is none if `models` or
   `context.max_tokens` set a size.
2. Services that can run any model (`openai-compatible`, the editor's own) get a hint, others a note.
3. A stale file gets no problem: its value may be gone from its text.
"""

import functools
from collections.abc import Iterator

from nexus_context.config import fixes
from nexus_context.config.merge import Effective
from nexus_context.errors import Problem, Severity
from nexus_context.layers.text_reader import Reading
from nexus_context.redact import redact
from nexus_context.tokens.models import UNKNOWN_WINDOW, model_names, resolve

LISTED = ("anthropic", "openai", "google")
"""Providers whose models should be in the registry."""


def unknown_model(reading: Reading, effective: Effective) -> Iterator[Problem]:
    """The hint, if there is one."""
    name = effective.get("/provider/model")
    if not isinstance(name, str) or effective.get("/context/max_tokens") is not None:
        return
    if resolve(name, effective.get("/models") or {}).known:
        return
    origin = next((entry for entry in effective.provenance["/provider/model"] if entry.wins), None)
    if origin is None or origin.document is None or not reading.is_present(origin):
        return
    near = _near(name)
    meant = f"did you mean {fixes.quoted(near)}? Otherwise set" if near else "set"
    message = (
        f"{redact(fixes.quoted(name))} is not in the list of known models, so its window is taken as "
        f"{UNKNOWN_WINDOW:,} tokens: {meant} models.<name>.context_window."
    )
    severity = Severity.INFORMATION if effective.get("/provider/name") in LISTED else Severity.HINT
    fix = fixes.replace(origin.document, origin.pointer, fixes.quoted(near)) if near else None
    yield Problem(origin.path, origin.span, "config.unknown-model", severity, message=message, fix=fix)


@functools.lru_cache(maxsize=16)
def _near(name: str) -> str | None:
    """Cached, since every change of any file of the folder requests it."""
    return fixes.meant(name.rpartition("/")[2], model_names())
