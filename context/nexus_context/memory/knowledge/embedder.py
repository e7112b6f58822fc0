"""Turns texts into vectors: defines the protocol, and finds and loads the models on this machine.

1. A model is a directory in model2vec's form (`model.safetensors`, `tokenizer.json`, `config.json`), or the
   one that the distribution wordllama contains. Of wordllama, only the two data files are used.
2. Nothing is ever downloaded: a model is looked for on the disk before the library hears of it.
3. The libraries are imported with the first model, since they take 0.3 s. A model is loaded once per process.
"""

import importlib.util
import os
import threading
from collections.abc import Sequence
from typing import Any, Protocol, cast

import msgspec

from nexus_context.disk.files import file_stamp, is_dir
from nexus_context.errors import NexusError

INSTALL = 'pip install "nexusd[embeddings]"'
TEXTS_AT_ONCE = 32
"""Texts that a model embeds before another thread gets its turn: about 10 ms."""

_LIBRARIES = ("numpy", "model2vec")
_BUNDLED = "wordllama"
_MODEL_FILES = ("model.safetensors", "tokenizer.json", "config.json")
_BUNDLED_FILES = (
    os.path.join("weights", "l2_supercat_256.safetensors"),
    os.path.join("tokenizers", "l2_supercat_tokenizer_config.json"),
)
_MOST_MODELS = 2  # kept in memory, about 60 MB each


class EmbeddingError(NexusError):
    """A model cannot be used. The message says why and what to do."""


class Embedder(Protocol):
    """Turns texts into vectors. Its methods may block, and any thread may call them.

    `name` identifies the model and its version: if it changes, everything is embedded again.
    """

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return one vector of `dimensions` numbers for each text. Only the directions of the vectors
        matter.
        """
        ...


class ModelFiles(msgspec.Struct, frozen=True):
    """A model on the disk. `name` changes when its files change.

    `weights` and `tokenizer` are the paths of its files. Both are None if `directory` is in the form of
    model2vec.
    """

    name: str
    directory: str
    weights: str | None = None
    tokenizer: str | None = None


def find_model(directory: str | None = None) -> ModelFiles:
    """Return the model in a directory, given by its absolute path. If `directory` is None, return the model
    that is installed.

    It imports no library and does not read the model. Raise EmbeddingError if the model or a library is
    missing.
    """
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise EmbeddingError(f"{' and '.join(missing)} {verb} not installed. Run: {INSTALL}")
    return _bundled_model() if directory is None else _model_in(directory)


def load_model(files: ModelFiles) -> Embedder:
    """Return the model, loading it if it is not in memory, which takes half a second. Raise EmbeddingError if
    it cannot be loaded.
    """
    with _loading:
        model = _models.pop(files, None)
        if model is None:
            model = _load(files)
        _models[files] = model  # the last used one is the last
        while len(_models) > _MOST_MODELS:
            del _models[next(iter(_models))]
        return model


def _bundled_model() -> ModelFiles:
    from importlib import metadata  # 15 ms

    spec = importlib.util.find_spec(_BUNDLED)
    if spec is None or spec.origin is None:
        raise EmbeddingError(
            f"no model is installed. Run: {INSTALL}. Where {_BUNDLED} is not available, name a "
            "model's directory in memory.knowledge.embeddings.model of the global config.json"
        )
    directory = os.path.dirname(spec.origin)
    weights, tokenizer = (os.path.join(directory, name) for name in _BUNDLED_FILES)
    for path in (weights, tokenizer):
        if file_stamp(path) is None:
            raise EmbeddingError(f"{path} is missing in this version of {_BUNDLED}. Run: {INSTALL}")
    name = f"{_BUNDLED} {metadata.version(_BUNDLED)}"
    return ModelFiles(name, directory, weights, tokenizer)


def _model_in(directory: str) -> ModelFiles:
    if not is_dir(directory):
        raise EmbeddingError(f"{directory} is not a directory. Correct memory.knowledge.embeddings.model")
    stamps: list[str] = []
    for name in _MODEL_FILES:
        stamp = file_stamp(os.path.join(directory, name))
        if stamp is None:
            raise EmbeddingError(
                f"{directory} has no {name}. Name a directory with a model in the form of model2vec: "
                f"{', '.join(_MODEL_FILES)}"
            )
        stamps.append("-".join(map(str, stamp)))
    return ModelFiles(f"{directory} {' '.join(stamps)}", directory)


class StaticEmbedder:
    """Uses a model of model2vec as an `Embedder`."""

    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self.dimensions = int(model.dim)
        self._model = model
        self._turn = threading.Lock()  # its tokenizer must not be used by two threads

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        import numpy

        batches = [numpy.zeros((0, self.dimensions), numpy.float32)]
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            with self._turn:
                batches.append(
                    self._model.encode(list(texts[start : start + TEXTS_AT_ONCE]), use_multiprocessing=False)
                )
        return cast("Sequence[Sequence[float]]", numpy.concatenate(batches))


def _load(files: ModelFiles) -> Embedder:
    try:
        from model2vec import StaticModel

        if files.weights is None or files.tokenizer is None:
            return StaticEmbedder(files.name, StaticModel.from_pretrained(files.directory))
        from safetensors import safe_open
        from tokenizers import Tokenizer

        with safe_open(files.weights, framework="numpy") as tensors:
            vectors = tensors.get_tensor("embedding.weight")
        return StaticEmbedder(files.name, StaticModel(vectors, Tokenizer.from_file(files.tokenizer)))
    except Exception as error:
        raise EmbeddingError(
            f"the model in {files.directory} cannot be loaded: {error}. Replace its files"
        ) from error


_loading = threading.Lock()
_models: dict[ModelFiles, Embedder] = {}
