"""Compares globs with whole paths, which begin with `/`, as picomatch and minimatch do.

1. `*`, `?` and `[…]` stay within a name; `[^…]` negates, `[!…]` does not; names of sets such as `[[:alpha:]]`
   count. `**` as a whole name is any number of directories, and at the end nothing, too. Case counts.
2. `{a,b}`, `(a|b)`, `@(a|b)`, `?(…)`, `*(…)`, `+(…)` and `!(…)` are groups; `{a..c}` is a set. What is not
   closed is text. A `!` before all reverses the glob. `\\` is `/`.
3. A glob is a list of steps from the places in a path that were reached to the next ones, so nothing is tried
   twice. A glob of more than LONGEST characters, or of groups that nest more than DEEPEST, matches nothing.

Source: Claude Code 2.1.330, opencode 1.18.33, and their answers in `tests/assistants/spellings.jsonl`.
"""

import functools
import re
from collections.abc import Iterable
from typing import NamedTuple

LONGEST = 2_000
DEEPEST = 6

_RANGE = re.compile(r"\{[^{},]\.\.[^{},]\}")
_PLAIN_GROUP = re.compile(r"(?<![@?*+!])\(")
_OPENINGS = {"(": (")", "|"), "{": ("}", ",")}
_NAMED_SETS = {
    "alpha": str.isalpha,
    "digit": str.isdigit,
    "alnum": str.isalnum,
    "upper": str.isupper,
    "lower": str.islower,
    "space": str.isspace,
}


class _Step(NamedTuple):
    """One step. `kind`: text, any, set, star, directories, tail or group.

    `text` is a character, the inside of a set, or the sign of a group.
    """

    kind: str
    text: str = ""
    choices: tuple[tuple["_Step", ...], ...] = ()


class PathGlob:
    """One glob, read as picomatch does. With `is_minimatch`, `[!…]` negates, and `(a|b)` and a character
    behind a backslash are text.
    """

    def __init__(self, pattern: str, *, is_minimatch: bool = False) -> None:
        pattern = pattern.replace("\\", "" if is_minimatch else "/")
        if is_minimatch:
            pattern = _PLAIN_GROUP.sub("[(]", pattern).replace("[!", "[^")
        bare = pattern.lstrip("!")
        if bare.startswith("(") and bare != pattern:
            bare = f"!{bare}"
        self._is_reversed = (len(pattern) - len(bare)) % 2 == 1
        self._steps = _steps(bare, 0) if len(pattern) <= LONGEST else None

    def matches(self, path: str) -> bool:
        """Whether the glob matches an absolute path whose separators are `/`."""
        if self._steps is None:
            return False
        return (len(path) in _reached(self._steps, {0}, path)) != self._is_reversed


@functools.lru_cache(maxsize=256)
def _steps(pattern: str, depth: int) -> tuple[_Step, ...] | None:
    """The steps of a pattern or of a choice; None if it nests too deeply."""
    steps: list[_Step] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if (
            pattern.startswith("**", at)
            and pattern[at - 1 : at] in ("", "/")
            and pattern[at + 2 : at + 3] in ("", "/")
        ):
            is_tail = at + 2 >= len(pattern)
            if is_tail and steps and steps[-1] == _Step("text", "/"):
                steps.pop()
                steps.append(_Step("tail"))
            else:
                steps.append(_Step("rest" if is_tail else "directories"))
            at += 3
            continue
        sign = character if character in "@?*+!" and pattern[at + 1 : at + 2] == "(" else ""
        opening = at + len(sign)
        closing = _closing(pattern, opening) if pattern[opening] in _OPENINGS else -1
        inside = pattern[opening + 1 : closing]
        choices = _choices(inside, _OPENINGS[pattern[opening]][1]) if closing > 0 else []
        if _RANGE.fullmatch(pattern, opening, closing + 1):
            steps.append(_Step("set", f"{inside[0]}-{inside[-1]}"))
            at = closing + 1
            continue
        if len(choices) > 1 or (choices and pattern[opening] == "("):
            lists = tuple(
                choice_steps for text in choices if (choice_steps := _steps(text, depth + 1)) is not None
            )
            if depth == DEEPEST or len(lists) < len(choices):
                return None
            steps.append(_Step("group", sign or "@", lists))
            at = closing + 1
            continue
        end = _end_of_set(pattern, at) if character == "[" else -1
        if end > 0:
            steps.append(_Step("set", pattern[at + 1 : end]))
            at = end + 1
            continue
        kind = {"*": "star", "?": "any"}.get(character, "text")
        if kind != "star" or not steps or steps[-1].kind != "star":
            steps.append(_Step(kind, character))
        at += 1
    return tuple(steps)


def _closing(pattern: str, opening: int) -> int:
    """Where a group ends; -1 if it does not."""
    depth, begin, end = 0, pattern[opening], _OPENINGS[pattern[opening]][0]
    for at in range(opening, len(pattern)):
        depth += (pattern[at] == begin) - (pattern[at] == end)
        if depth == 0:
            return at
    return -1


def _end_of_set(pattern: str, at: int) -> int:
    """Where a set ends that begins there; -1 if it does not."""
    at = pattern.find("]", at + 2)
    while at > 0 and pattern[at - 1] == ":" and pattern.find("]", at + 1) > 0:
        at = pattern.find("]", at + 1)
    return at


def _choices(inside: str, separator: str) -> list[str]:
    depth, choices = 0, [""]
    for character in inside:
        depth += (character in "({") - (character in ")}")
        if character == separator and depth == 0:
            choices.append("")
        else:
            choices[-1] += character
    return choices


def _reached(steps: tuple[_Step, ...], positions: Iterable[int], path: str) -> set[int]:
    """Match all steps from each of `positions`; returns the positions where the match can end."""
    reached = set(positions)
    for number, step in enumerate(steps):
        if not reached:
            break
        if step.kind == "group" and step.text == "!":
            remaining_steps = steps[number + 1 :]
            allowed_positions = {
                position
                for position in reached
                if not any(
                    len(path) in _reached((*choice, *remaining_steps), {position}, path)
                    for choice in step.choices
                )
            }
            reached = _within_name(allowed_positions, path)
        else:
            reached = _take_step(step, reached, path)
    return reached


def _take_step(step: _Step, reached: set[int], path: str) -> set[int]:
    """Match one step from each reached position; returns the positions behind it."""
    if step.kind == "star":
        return _within_name(reached, path)
    if step.kind == "directories":
        first_position = min(reached)
        return reached | {at + 1 for at in range(first_position, len(path)) if path[at] == "/"}
    if step.kind == "rest":
        return set(range(min(reached), len(path) + 1))
    if step.kind == "tail":
        slashes = [at for at in reached if path[at : at + 1] == "/"]
        return reached | set(range(min(slashes) + 1, len(path) + 1) if slashes else ())
    if step.kind == "group":
        reached_after = set(reached) if step.text in "?*" else set()
        added = reached
        while added:
            new_positions = {
                position for choice in step.choices for position in _reached(choice, added, path)
            }
            added = new_positions - reached_after if step.text in "*+" else set()
            reached_after |= new_positions
        return reached_after
    return {at + 1 for at in reached if at < len(path) and _fits(step, path[at])}


def _within_name(positions: set[int], path: str) -> set[int]:
    """Add to `positions` all that follow them up to the next `/`."""
    reached = set(positions)
    for position in sorted(positions):
        at = position
        while at < len(path) and path[at] != "/" and at + 1 not in reached:
            at += 1
            reached.add(at)
    return reached


def _fits(step: _Step, character: str) -> bool:
    if step.kind == "text":
        return step.text == character
    return character != "/" and (step.kind == "any" or _in_set(step.text, character))


def _in_set(inside: str, character: str) -> bool:
    is_negated = inside.startswith("^")
    inside = inside.removeprefix("^")
    is_member = False
    for name, holds in _NAMED_SETS.items():
        word = f"[:{name}:]"
        if word in inside:
            is_member = is_member or holds(character)
            inside = inside.replace(word, "")
    at = 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            is_member = is_member or inside[at] <= character <= inside[at + 2]
            at += 3
        else:
            is_member = is_member or inside[at] == character
            at += 1
    return is_member != is_negated
