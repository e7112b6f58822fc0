"""`nexus/tokens/*`: token counts."""

from nexus_daemon.protocol.shapes import Params, Problem, Sparse


class CountParams(Params, frozen=True):
    """Texts and files to count."""

    texts: list[str] = []  # texts to count
    uris: list[str] = []  # files to count; for an open one its unsaved text
    model: str | None = None  # count for this model
    encoding: str | None = None  # the encoding if there is no `model`; null: `o200k_base`


class CountResult(Sparse, frozen=True):
    """Token counts, in the order of the parameters."""

    encoding: str  # an encoding such as `o200k_base`, or the name of an estimate
    exact: bool  # false: an estimate
    counts: list[int]  # tokens of each text, then of each file
    total: int  # their sum
    problems: list[Problem] = []  # files that are not UTF-8, whose counts cover what could be read
