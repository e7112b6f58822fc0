"""Checks regular expressions of JavaScript, as far as Python can."""

import re

_REFUSALS = ("nothing", "missing ), unt", "unterminated c", "unbalanced", "bad escape (end", "min repeat")
"""How Python begins what it says of expressions that JavaScript refuses, too."""
_WARNED = ("[[", "--", "&&", "~~", "||")  # Python warns of these in a set


def is_valid_expression(text: str) -> bool:
    """Whether JavaScript may accept a regular expression. False only if it is known to refuse it."""
    if any(sign in text for sign in _WARNED):
        return True
    try:
        re.compile(text)
    except re.error as error:
        return not error.msg.startswith(_REFUSALS) or "[]" in text or "[^]" in text
    except (RecursionError, OverflowError):
        return True
    return re.match(r"\(\?[a-zA-Z]+\)", text) is None
