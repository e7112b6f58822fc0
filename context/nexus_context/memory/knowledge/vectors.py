"""Computes the vectors of the passages, and finds those that are nearest to a message.

1. A passage is embedded with the titles above it. Its vector is stored at length 1, as 16-bit floats.
2. A refresh embeds only passages without a vector of this model. A damaged vector counts as missing.
3. At most MOST_VECTORS passages are embedded: they are in memory, 4 bytes a number, and all are compared with
   a message. That takes 2 ms for 50,000 passages of 256 numbers.
4. A search uses what the last refresh loaded: it never waits for the model or for a refresh.
"""

import hashlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from nexus_context.memory.knowledge.embedder import Embedder, EmbeddingError
from nexus_context.memory.knowledge.file_selection import MIN_SIMILARITY
from nexus_context.memory.knowledge.passage_index import IndexLostError, KnowledgeIndex, PassageHit

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

MOST_VECTORS = 100_000
BATCH = 256
"""Passages that are embedded and written at once."""
LONGEST_MESSAGE = 4_000
"""Characters of a message that are embedded: the first and the last, where people state their request."""


class Loaded(NamedTuple):
    """The vectors in memory. `rows` has a row for each digest."""

    digests: list[bytes]
    rows: "NDArray[numpy.float32]"


class VectorRefresh(NamedTuple):
    """The result of a refresh: how many passages were embedded, and whether there are more passages than
    MOST_VECTORS.
    """

    embedded: int
    is_limited: bool


class Vectors:
    """The vectors of an index, made by one model. Every method may block, and any thread may call it."""

    def __init__(
        self, index: KnowledgeIndex, embedder: Embedder, *, min_similarity: float = MIN_SIMILARITY
    ) -> None:
        self.embedder = embedder
        self.min_similarity = min_similarity
        self._index = index
        self._size = 2 * embedder.dimensions  # bytes of a vector
        key = embedder.name.encode("utf-8", "surrogateescape")
        self._model = hashlib.blake2b(key, digest_size=8).digest()
        self._refreshing = threading.Lock()
        self._loaded: Loaded | None = None
        self._complete: tuple[int, int] | None = None  # the state of the index of which nothing is missing
        self._last = VectorRefresh(0, is_limited=False)  # the result of refreshing that state again

    @property
    def count(self) -> int:
        """The number of different passages whose vectors the last refresh loaded."""
        return 0 if self._loaded is None else len(self._loaded.digests)

    def refresh(self, *, stopped: Callable[[], bool] = lambda: False) -> VectorRefresh:
        """Embed the passages without a vector, drop the vectors without a passage, and load the rest.

        `stopped` is called between two batches; when it returns true, the refresh ends, and what is done by
        then stays done. Raise EmbeddingError if the model fails, IndexBusyError if another process holds the
        index, and IndexLostError if the index was emptied meanwhile.
        """
        with self._refreshing:
            if self._loaded is not None and self._complete == self._index.change():
                return self._last
            self._complete = None
            self._index.drop_vectors(self._model, self._damaged())
            digests, is_limited = self._index.without_vector(self._model, self._size, MOST_VECTORS)
            embedded = 0
            try:
                for start in range(0, len(digests), BATCH):
                    if stopped():
                        break
                    embedded += self._embed_passages(digests[start : start + BATCH])
            finally:
                change = self._index.change()
                self._loaded = self._load()
            if not stopped():
                self._complete, self._last = change, VectorRefresh(0, is_limited)
            return VectorRefresh(embedded, is_limited)

    def nearest(self, message: str, limit: int) -> list[PassageHit]:
        """Return the passages whose meaning is nearest to a message, the nearest first. Their `score` is the
        cosine.

        The result is empty before the first refresh. Raise EmbeddingError if the model fails.
        """
        import numpy

        loaded = self._loaded
        if loaded is None or not loaded.digests or limit < 1:
            return []
        half = LONGEST_MESSAGE // 2
        text = message if len(message) <= LONGEST_MESSAGE else f"{message[:half]}\n{message[-half:]}"
        similarities = numpy.vecdot(loaded.rows, self._embed([text])[0])  # `@` starts threads for it
        count = min(limit, len(similarities))
        best = numpy.argpartition(-similarities, count - 1)[:count]
        hits = [
            hit
            for row in best
            if similarities[row] >= self.min_similarity
            for hit in self._index.with_digest(loaded.digests[row], float(similarities[row]))
        ]
        return sorted(hits, key=lambda hit: (-hit.score, hit.path, hit.span))[:limit]

    def _embed_passages(self, digests: Sequence[bytes]) -> int:
        import numpy

        texts = self._index.texts(digests)  # some may be gone by now
        if texts:
            rows = self._embed(
                [f"{heading}\n{text}" if heading else text for heading, text in texts.values()]
            )
            encoded = (row.tobytes() for row in rows.astype(numpy.float16))
            self._index.write_vectors(self._model, dict(zip(texts, encoded, strict=True)))
        return len(texts)

    def _embed(self, texts: Sequence[str]) -> "NDArray[numpy.float32]":
        """The vectors of the texts, of length 1; that of a text without a direction is zero."""
        import numpy

        name = self.embedder.name
        try:
            rows = numpy.asarray(self.embedder.embed(texts), dtype=numpy.float32)
        except Exception as error:
            raise EmbeddingError(f"the model {name} failed: {error!r}") from error
        shape = (len(texts), self.embedder.dimensions)
        if rows.shape != shape:
            raise EmbeddingError(
                f"the model {name} returned numbers of shape {rows.shape} instead of {shape}"
            )
        if not numpy.isfinite(rows).all():
            raise EmbeddingError(f"the model {name} returned numbers that are not finite")
        lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
        lengths[lengths == 0] = 1
        normalized: NDArray[numpy.float32] = rows / lengths
        return normalized

    def _damaged(self) -> list[bytes]:
        """The digests of stored vectors that are not numbers."""
        import numpy

        loaded = self._load()
        return [loaded.digests[row] for row in numpy.flatnonzero(~numpy.isfinite(loaded.rows).all(axis=1))]

    def _load(self) -> Loaded:
        import numpy

        try:
            stored = [row for row in self._index.vectors(self._model) if len(row[1]) == self._size]
        except IndexLostError:
            stored = []
        data = b"".join(vector for _, vector in stored)
        rows = numpy.frombuffer(data, dtype=numpy.float16).reshape(-1, self.embedder.dimensions)
        return Loaded([digest for digest, _ in stored], rows.astype(numpy.float32))
