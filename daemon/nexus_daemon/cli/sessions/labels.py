"""Words and times as people read them."""

from datetime import datetime


def local(stamp: str) -> str:
    """A time as people here read it; what is no time as it is."""
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return stamp
    return f"{moment.astimezone():%Y-%m-%d %H:%M}"


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
