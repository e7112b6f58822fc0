"""Finds the settings in files that a nearer layer overrides: an editor greys them out."""

from collections.abc import Iterator

from nexus_context.config.merge import Effective
from nexus_context.errors import Problem, Related, Severity

OVERRIDDEN = "config.overridden"


def overridden_settings(effective: Effective) -> Iterator[Problem]:
    """Yield a hint at each value that a nearer layer overrides, with the value that counts."""
    for chain in effective.provenance.values():
        winner = next((entry for entry in reversed(chain) if entry.wins), None)
        if len(chain) < 2 or winner is None or winner.document is None:
            continue
        for entry in chain:
            if entry.wins or entry.ignored or entry.document is None:
                continue
            key = entry.document.key_span(entry.pointer) or entry.span
            related = Related(winner.path, winner.span, "This value is in force.")
            message = "This value does not count: a nearer layer sets the key, too."
            yield Problem(entry.path, key, OVERRIDDEN, Severity.HINT, message=message, related=(related,))
