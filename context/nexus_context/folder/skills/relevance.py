"""Finds the skills that a task is about, by their words.

1. A skill is about a task if the task has a word of its name, or a telling word of its description.
2. A word tells something if fewer than half of the skills have it in their descriptions. Words such as "when"
   and "file", and those of fewer than four letters, tell nothing.
3. Where no skill is about the task, nothing is known: all of them may be.
"""

import re
from collections import Counter
from collections.abc import Sequence

from nexus_context.folder.skills.skill import Skill

_WORD = re.compile(r"[^\W_]{4,}")
_END = re.compile(r"(?:ing|ed|es|s)$")
_SILENT_WORDS = """
about after also always before between code does each every file first from have into just make more most need
never only other over project skill some such task than that their them then there these they this tool user
using want what when where which while with work would write your
"""
_SILENT = frozenset(_SILENT_WORDS.split())


def about_task(skills: Sequence[Skill], task: str) -> tuple[Skill, ...]:
    """Return the skills that a task is about, in their order. If there is none, return all of them."""
    task_words = _words(task)
    descriptions = [_words(skill.description) for skill in skills]
    counts = Counter(word for words in descriptions for word in words)
    matching = tuple(
        skill
        for skill, words in zip(skills, descriptions, strict=True)
        if task_words & _words(skill.name.replace("-", " "))
        or any(2 * counts[word] < max(len(skills), 3) for word in task_words & words)
    )
    return matching or tuple(skills)


def _words(text: str) -> set[str]:
    words = (word.lower() for word in _WORD.findall(text))
    return {_END.sub("", word) for word in words if word not in _SILENT}
