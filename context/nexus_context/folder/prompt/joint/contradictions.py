"""Finds claims of files that are sent together and cannot both be followed.

1. Claims are compared within a file, and between files that are for the same directory. What the user's files
   say counts everywhere, but may well differ from the project's: that is an information, not a warning.
2. Each pair of values of a topic and scope is one problem, at the later place.
3. A topic has at most MOST_VALUES, so the work is linear. At most MOST_PROBLEMS are told.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.folder.prompt.joint.claims import InstructionClaim, contradict, read_claims
from nexus_context.folder.prompt.joint.texts import JointText, LineNumbers

CONTRADICTION = "instructions.contradiction"
MOST_PROBLEMS = 50
MOST_VALUES = 20
_MOST_RELATED = 10

_PlacedClaim = tuple[JointText, InstructionClaim]


def find_contradictions(files: Sequence[JointText]) -> Iterator[Problem]:
    """Return the problems of files, which are in the order of their importance.

    Each path may be there once.
    """
    return islice(_contradictions(files), MOST_PROBLEMS)


def _contradictions(files: Sequence[JointText]) -> Iterator[Problem]:
    lines = LineNumbers()
    reported: set[tuple[str, Span, str, Span]] = set()
    topics: dict[tuple[str, frozenset[str]], dict[tuple[str, bool, bool], list[_PlacedClaim]]] = {}
    forbidden = {claim.topic for file in files for claim in read_claims(file.text) if claim.forbids}
    for file in files:
        for claim in read_claims(file.text):
            if (claim.is_clause and claim.topic not in forbidden) or not file.sends(claim.span):
                continue
            values = topics.setdefault((claim.topic, claim.scope), {})
            value = (claim.value, claim.forbids, claim.implied)
            if value not in values and len(values) < MOST_VALUES:
                for placed_claims in values.values():
                    opposed = [placed for placed in placed_claims if _are_opposed(placed, (file, claim))]
                    pairs = {
                        (file.path, claim.span, other_file.path, other_claim.span)
                        for other_file, other_claim in opposed
                    }
                    if opposed and not pairs & reported:
                        yield _contradiction(file, claim, opposed, lines)
                    reported |= pairs
            if value in values or len(values) < MOST_VALUES:
                values.setdefault(value, []).append((file, claim))


def _are_opposed(placed: _PlacedClaim, other_placed: _PlacedClaim) -> bool:
    (file, claim), (other_file, other_claim) = placed, other_placed
    is_same = file is other_file and claim.span == other_claim.span
    meet = file.is_users or other_file.is_users or file.directory == other_file.directory
    return meet and not is_same and contradict(claim, other_claim)


def _contradiction(
    file: JointText, claim: InstructionClaim, opposed: Sequence[_PlacedClaim], lines: LineNumbers
) -> Problem:
    other_file, other_claim = opposed[0]
    location = lines.describe(other_file, other_claim.span, file)
    is_users = file.is_users or other_file.is_users
    return Problem(
        file.path,
        claim.span,
        CONTRADICTION,
        Severity.INFORMATION if is_users else Severity.WARNING,
        message=(
            f"This contradicts {location}, which is sent with it: {_words(claim)} here, "
            f"{_words(other_claim)} there. Keep one of them, or say what each is for."
        ),
        related=tuple(
            Related(related_file.path, related_claim.span, f"Here it is {_words(related_claim)}.")
            for related_file, related_claim in opposed[:_MOST_RELATED]
        ),
    )


def _words(claim: InstructionClaim) -> str:
    value = claim.value.replace(">=", "at least ")
    if claim.is_clause:
        return f'"{"never" if claim.forbids else "do"}"'
    return f"not {value}" if claim.forbids else value
