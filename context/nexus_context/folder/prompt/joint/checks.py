"""Finds what is wrong with instructions that one request has together: repetitions and contradictions.

The problem is at the place that comes later: files of the user come first, then those of directories from the
outermost to the innermost, in the order of their paths. So it is the same for each program that sends both.
"""

import os
from collections.abc import Iterable, Iterator

from nexus_context.errors import Problem
from nexus_context.folder.prompt.joint.contradictions import find_contradictions
from nexus_context.folder.prompt.joint.repetitions import find_repetitions
from nexus_context.folder.prompt.joint.texts import JointText


def check_together(texts: Iterable[JointText]) -> Iterator[Problem]:
    """Yield the problems of files that are sent together. Each path may be there once."""
    ordered = sorted(
        texts,
        key=lambda joint_text: (not joint_text.is_users, joint_text.path.count(os.sep), joint_text.path),
    )
    yield from find_repetitions(ordered)
    yield from find_contradictions(ordered)
