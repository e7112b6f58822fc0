"""How changes of files on disk are noticed: a watcher's view of its paths at one moment."""

from collections.abc import Iterable
from typing import Literal

import msgspec

State = Literal["watched", "polled", "unknown"]

_STATES: tuple[State, ...] = ("watched", "polled", "unknown")  # from most to least certain


class Freshness(msgspec.Struct, frozen=True):
    """How changes of a set of files are noticed; the least certain file counts.

    `watched`: the system reports changes. `polled`: Nexus checks every `every` seconds. `unknown`: changes
    after `since` (`time.time()`) may be unnoticed. `reasons` are clauses that say why files are not watched.
    """

    state: State
    since: float | None = None
    every: float | None = None
    reasons: tuple[str, ...] = ()


def least_certain(several: Iterable[Freshness]) -> Freshness:
    """Combine the freshness of several sets of files into one."""
    ordered = sorted(several, key=lambda one: _STATES.index(one.state), reverse=True)
    if not ordered:
        return Freshness("watched")
    return Freshness(
        state=ordered[0].state,
        since=min((one.since for one in ordered if one.since is not None), default=None),
        every=max((one.every for one in ordered if one.every is not None), default=None),
        reasons=tuple(dict.fromkeys(reason for one in ordered for reason in one.reasons)),
    )
