"""Limit how many memory arenas glibc's malloc may have in this process.

By default it makes one for each thread, up to eight for each processor, and each keeps the free space between
its blocks. With the threads of the workers, a daemon that is busy for hours would hold far more memory than
it uses.
"""

import sys

MOST_ARENAS = 2
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h


def limit_arenas() -> None:
    """Limit the arenas that malloc makes from now on. No effect with other C libraries than glibc."""
    if sys.platform != "linux":
        return
    import ctypes

    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_ARENA_MAX, MOST_ARENAS)
