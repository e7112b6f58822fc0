"""Files that are typed, key by key, by every slip of the keyboard: nothing raises, nothing is misplaced."""

import logging
import tempfile
from pathlib import Path

from support.typing_checks import check_session
from torture.figures import Figure, Outcome, Watch, nothing_wrong

STEPS = 50
"""Typing states of one session."""


def run(count: int, first: int = 0) -> Outcome:
    """So many typing states, in sessions of STEPS; `first` is the number of the first session."""
    watch = Watch()
    states, wrong = 0, []
    logging.disable(logging.CRITICAL)
    try:
        for seed in range(first, first - (-count // STEPS)):
            with tempfile.TemporaryDirectory(prefix="nexus-typing-") as root:
                try:
                    states += check_session(Path(root), seed, STEPS)
                except Exception as error:  # noqa: BLE001 - each is counted
                    wrong.append(f"session {seed}: {type(error).__name__}: {str(error)[:200]}")
    finally:
        logging.disable(logging.NOTSET)
    figures = (
        Figure("typing states", states, at_least=count),
        Figure("sessions with an exception or a difference", len(wrong), at_most=0),
        nothing_wrong(wrong),
    )
    return Outcome("typing", figures, tuple(wrong), seconds=watch.seconds)
