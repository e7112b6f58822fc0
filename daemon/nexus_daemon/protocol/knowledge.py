"""`nexus/knowledge/*`: the passages of a folder's knowledge base."""

from typing import Annotated

from nexus_daemon.protocol.shapes import FolderParams, OneOf, Problem, Range, Sparse


class KnowledgeQueryParams(FolderParams, frozen=True, kw_only=True):
    """A search of the knowledge base."""

    query: str  # words or a question, as a user's message
    limit: int | None = None  # passages at most, from 1 to 100; null: `memory.knowledge.top_k`
    # tokens of all passages together, from 1; null: `memory.knowledge.max_tokens`
    max_tokens: int | None = None


class KnowledgePassage(Sparse, frozen=True, kw_only=True):
    """A passage of a file."""

    uri: str  # the file
    range: Range  # where in the file, as it is now
    heading: str = ""  # the titles above the passage, outermost first, with ` › ` between them
    text: str  # the passage, with each character of a literal secret replaced by `*`
    tokens: int  # tokens of path, heading and text
    score: float  # higher is better; comparable within one answer only
    matched_by: list[
        Annotated[str, OneOf("words", "meaning")]
    ]  # how it was found: by its `words`, its `meaning`
    cut: bool = False  # true: only its beginning fits, and a mark follows it


class KnowledgeQueryResult(Sparse, frozen=True):
    """The passages, and whether the index is up to date."""

    passages: list[KnowledgePassage]  # best first
    updating: bool = False  # true: files are being indexed; ask again for what is missing


class KnowledgeStatusResult(Sparse, frozen=True, kw_only=True):
    """What is indexed."""

    paths: list[str]  # the paths and patterns of the settings, absolute; none: there is no knowledge base
    files: int  # files in the index
    passages: int  # passages of these files
    index: str | None = None  # path of the index; absent if there is no knowledge base
    updating: bool = False  # true: files are being indexed or embedded
    model: str | None = None  # the model that searches by meaning; absent: only words are searched
    vectors: int | None = None  # different passages that the model has embedded, if there is one
    problems: list[Problem] = []  # of the paths and of the model
