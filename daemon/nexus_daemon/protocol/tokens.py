"""`nexus/tokens/*`: counts."""

from nexus_daemon.protocol.shapes import Problem, Sparse, Wire


class CountParams(Wire, frozen=True):
    """What to count, and how."""

    texts: list[str] = []  # texts to count
    uris: list[str] = []  # files to count; the unsaved text of an open one
    model: str | None = None  # count as this model does
    encoding: str | None = None  # without a model: count with this encoding, else `o200k_base`


class CountResult(Sparse, frozen=True):
    """Token counts, in the order of the parameters."""

    encoding: str  # an encoding such as `o200k_base`, or the name of an estimate
    exact: bool  # false: an estimate
    counts: list[int]  # tokens of each text, then of each file
    total: int  # their sum
    problems: list[Problem] = []  # files that are not UTF-8: their counts are of what could be read
