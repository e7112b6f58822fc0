"""Matches names with patterns such as `fs.read` or `network.*`.

A list is compared at once, never in pairs.

1. Patterns are those of `fnmatch`: `*` is any text, `?` one character, `[…]` one of a set.
2. Names without wildcards are looked up. All other patterns of a list are one automaton, whose states are the
   bits of one number: a state says how much of a pattern a text has matched so far. Each character moves all
   states at once (Baeza-Yates and Gonnet, "A new approach to text searching", 1992), so there is no
   backtracking, whatever the patterns are.
3. A step is one character and one word of states: WORD characters of the patterns. A name takes as many steps
   as it has characters times the words of the list.
4. Comparing two lists takes as many steps as one of them has characters times the words of the other. That is
   the only product here, and it has a limit: past MOST_STEPS the answer is the conservative one, "not
   covered" and "may meet". So exceeding the limit never allows more.
"""

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence

NOTHING = ("[]",)
"""A list of patterns that matches no name, where an empty list would mean everything."""

WORD = 64
"""Characters of patterns that one step compares."""
MOST_STEPS = 2_000_000
"""Steps in which the patterns of another list are compared with one list: less than 0.1 s."""

_WILD = re.compile(r"[*?[]")


class Patterns:
    """A list of patterns. `steps` counts the steps that comparing other patterns with it has taken."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.steps = 0
        self._patterns = dict.fromkeys(patterns)

    def naming(self, name: str) -> str | None:
        """Return one of the patterns that match a name. None if there is none."""
        if name in self._patterns and not _WILD.search(name):
            return name
        return next(self._wild.patterns(self._wild.run(name)), None) if self._wild.width else None

    def matches(self, name: str) -> bool:
        """Whether one of the patterns matches a name."""
        return self.naming(name) is not None

    def fitting(self, names: Iterable[str]) -> set[str]:
        """Return the patterns that match at least one of the names."""
        fitting, states = set[str](), 0
        for name in names:
            if name in self._patterns:
                fitting.add(name)
            if self._wild.width:
                states |= self._wild.run(name)
        return {pattern for pattern in fitting if not _WILD.search(pattern)}.union(
            self._wild.patterns(states)
        )

    def cover(self, pattern: str) -> bool:
        """Whether one of these patterns certainly matches every name that `pattern` matches."""
        if pattern in self._patterns or "*" in self._patterns:
            return True
        if (
            "?" in pattern
            or "[" in pattern
            or not self._wild.width
            or not self._may_step(pattern, self._wild)
        ):
            return False
        # a `*` in the narrow pattern has to meet a `*` in the wide one; NULs stand for it
        covering = self._wild.patterns(self._wild.run(pattern.replace("*", "\0\0")))
        # what matches one character could meet that `*`, which may match nothing or another character
        asks = "?[\0" if "*" in pattern else "["
        return any(not any(character in wide_pattern for character in asks) for wide_pattern in covering)

    def meet(self, pattern: str) -> bool:
        """Whether some name could match both `pattern` and one of these patterns.

        A character set in `pattern` counts as `?`.
        """
        if not _WILD.search(pattern):
            return self.matches(pattern)
        return not self._may_step(pattern, self._all) or self._all.meets(pattern)

    @functools.cached_property
    def _wild(self) -> "_Automaton":
        return _Automaton([pattern for pattern in self._patterns if _WILD.search(pattern)])

    @functools.cached_property
    def _all(self) -> "_Automaton":
        return _Automaton([*self._patterns])

    def _may_step(self, pattern: str, automaton: "_Automaton") -> bool:
        steps = self.steps + len(pattern) * (1 + automaton.width // WORD)
        if steps > MOST_STEPS:
            return False
        self.steps = steps
        return True


class _Automaton:
    """The states of all patterns in a row.

    A pattern has one for its beginning and one after each of its characters and sets, from the lowest bit up;
    the bit above these is never a state. A `*` is a state that stays.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._list = patterns
        self._ends: list[int] = []
        self._at: dict[str, list[int]] = {}  # the states after each character or set
        firsts: list[int] = []
        stays: list[int] = []
        state = 0
        for pattern in patterns:
            firsts.append(state)
            for item in _items(pattern):
                if item == "*":
                    stays.append(state)
                else:
                    state += 1
                    self._at.setdefault(item, []).append(state)
            self._ends.append(state)
            state += 2
        self.width = state
        self._sets = [(_ranges(item), item) for item in self._at if len(item) > 1]
        self._masks: dict[str, int] = {}
        self._first, self._stay, self._last = map(self._bits, (firsts, stays, self._ends))
        self._any = self._bits(self._at.get("?", ()))

    def run(self, text: str) -> int:
        """The last states of the patterns that match a text."""
        states, stay = self._first, self._stay
        for character in text:
            states = (states << 1) & self._mask(character) | states & stay
            if not states:
                break
        return states & self._last

    def meets(self, pattern: str) -> bool:
        """Whether some text that a pattern matches leads to a last state."""
        beyond = self._last << 1
        states, stay = self._first, self._stay
        for item in _items(pattern):
            # all states of a pattern above its lowest; what is borrowed ends at the bit above
            if item == "*":
                states = (states | (beyond - states)) & ~beyond
            elif item == "?" or len(item) > 1:
                states = (states << 1) & ~beyond | states & stay
            else:
                states = (states << 1) & self._mask(item) | states & stay
            if not states:
                return False
        return states & self._last != 0

    def patterns(self, states: int) -> Iterator[str]:
        """The patterns whose last states these are, in their order."""
        while states:
            lowest = states & -states
            yield self._list[bisect_left(self._ends, lowest.bit_length() - 1)]
            states ^= lowest

    def _mask(self, character: str) -> int:
        """The states after this character, and after all wildcards that match it."""
        mask = self._masks.get(character)
        if mask is None:
            accepting = [
                item for (negated, ranges), item in self._sets if _holds(ranges, character) != negated
            ]
            next_states = [state for item in (character, *accepting) for state in self._at.get(item, ())]
            mask = self._masks[character] = self._any | self._bits(next_states)
        return mask

    def _bits(self, states: Iterable[int]) -> int:
        data = bytearray(self.width // 8 + 1)
        for state in states:
            data[state >> 3] |= 1 << (state & 7)
        return int.from_bytes(data, "little")


def servers_named(tool: str) -> list[str]:
    """Return the pattern of the MCP server in a pattern of tools: the part before the tool's name.

    The list is empty if there is no such part.
    """
    if tool == "*":
        return ["*"]
    if tool.startswith("mcp__"):
        return [tool.removeprefix("mcp__").partition("__")[0]]
    server, dot, _ = tool.rpartition(".")
    return [server] if dot else []


def literally(name: str) -> str:
    """Return the pattern that matches only this name."""
    return _WILD.sub(lambda match: f"[{match[0]}]", name)


def _items(pattern: str) -> Iterator[str]:
    """A pattern's characters, wildcards and sets in order; a `[` that is not closed is a character."""
    at, last_bracket = 0, pattern.rfind("]")
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "[" and at < last_bracket:
            closed = pattern.find("]", at + (3 if pattern[at + 1] == "!" else 2)) + 1
            end = closed or end
        yield pattern[at:end]
        at = end


_Ranges = list[tuple[str, str]]


def _ranges(item: str) -> tuple[bool, _Ranges]:
    """A set such as `[!a-z_]`: whether it means all others, and its first and last characters."""
    body = item[1:-1]
    negated = body.startswith("!")
    body = body[negated:]
    ranges: _Ranges = []
    at = 0
    while at < len(body):
        step = 3 if body[at + 1 : at + 2] == "-" and at + 2 < len(body) else 1
        ranges.append((body[at], body[at + step - 1]))
        at += step
    return negated, ranges


def _holds(ranges: _Ranges, character: str) -> bool:
    return any(low <= character <= high for low, high in ranges)
