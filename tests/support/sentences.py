"""Messages cut into their sentences, so that each stands on a line of a test."""

import re


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return re.split(r'(?<=[.?]) (?=[A-Z`"\d])', text)
