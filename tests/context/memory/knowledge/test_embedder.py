"""The models on this machine: found without importing, loaded without a network, or a clear error."""

import importlib.util
import json
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy
import pytest

from nexus_context.memory.knowledge import (
    EmbeddingError,
    KnowledgeIndex,
    Vectors,
    find_model,
    load_model,
    query,
    refresh,
    settings_for,
)
from nexus_context.memory.knowledge import embedder as module
from nexus_context.tokens import SimpleTokenCounter
from support.embeddings import needs_model

UNKNOWN = "[UNK]"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a model must be on the disk")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """As if these distributions were not installed."""
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in names else real(name))


def check(message: str, directory: Path | None = None) -> None:
    """The error of a model that cannot be found or loaded."""
    with pytest.raises(EmbeddingError) as raised:
        load_model(find_model(None if directory is None else str(directory)))
    assert str(raised.value) == message


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model in the form of model2vec."""
    from model2vec import StaticModel
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = {UNKNOWN: 0, "red": 1, "scarlet": 2, "blue": 3}
    tokenizer = Tokenizer(WordLevel(words, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Whitespace()
    rows = numpy.array([[0, 0], [1, 0], [0.9, 0.1], [0, 1]], numpy.float32)
    directory = tmp_path_factory.mktemp("model")
    StaticModel(rows, tokenizer).save_pretrained(directory)
    return directory


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "numpy", "model2vec")
    check('numpy and model2vec are not installed. Run: pip install "nexusd[embeddings]"')
    monkeypatch.undo()
    without(monkeypatch, "model2vec")
    check('model2vec is not installed. Run: pip install "nexusd[embeddings]"')


def test_without_the_installed_model(monkeypatch: pytest.MonkeyPatch, saved: Path) -> None:
    without(monkeypatch, "wordllama")
    check(
        'no model is installed. Run: pip install "nexusd[embeddings]". Where wordllama is not available, '
        "name a model's directory in memory.knowledge.embeddings.model of the global config.json"
    )
    assert load_model(find_model(str(saved))).dimensions == 2


@needs_model
def test_an_installed_model_without_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BUNDLED_FILES", ("weights/other", "tokenizers/other"))
    directory = Path(str(importlib.util.find_spec("wordllama").origin)).parent  # type: ignore[union-attr]
    check(
        f"{directory}/weights/other is missing in this version of wordllama. "
        'Run: pip install "nexusd[embeddings]"'
    )


def test_a_directory_without_a_model(tmp_path: Path, saved: Path) -> None:
    check(f"{tmp_path}/none is not a directory. Correct memory.knowledge.embeddings.model", tmp_path / "none")
    directory = tmp_path / "model"
    shutil.copytree(saved, directory)
    (directory / "tokenizer.json").unlink()
    check(
        f"{directory} has no tokenizer.json. Name a directory with a model in the form of model2vec: "
        "model.safetensors, tokenizer.json, config.json",
        directory,
    )
    (directory / "tokenizer.json").write_text("{}")
    with pytest.raises(
        EmbeddingError, match=f"^the model in {directory} cannot be loaded: .+. Replace its files$"
    ):
        load_model(find_model(str(directory)))
    (directory / "model.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(
        EmbeddingError, match=f"^the model in {directory} cannot be loaded: .+. Replace its files$"
    ):
        load_model(find_model(str(directory)))


def test_a_model_in_a_directory(saved: Path) -> None:
    model = load_model(find_model(str(saved)))
    vectors = numpy.asarray(model.embed(["red", "scarlet", "blue red"]))
    assert [[round(float(each), 2) for each in row] for row in vectors] == [[1, 0], [0.9, 0.1], [0.5, 0.5]]
    assert numpy.asarray(model.embed([])).shape == (0, 2)
    assert load_model(find_model(str(saved))) is model


def test_new_files_are_another_model(saved: Path, tmp_path: Path) -> None:
    directory = tmp_path / "model"
    shutil.copytree(saved, directory)
    before = find_model(str(directory))
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps(config | {"normalize": True}))
    after = find_model(str(directory))
    assert (before.name == after.name, load_model(before) is load_model(after)) == (False, False)


@needs_model
def test_the_installed_model(tmp_path: Path) -> None:
    model = load_model(find_model())
    assert (model.name.split()[0], model.dimensions) == ("wordllama", 256)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("The cat purrs on the sofa.\n")
    (docs / "b.md").write_text("Customers get their money back within thirty days.\n")
    (docs / "c.md").write_text("The database keeps at most twenty connections.\n")
    index = KnowledgeIndex(str(tmp_path / "index.db"))
    refresh(index, settings_for(str(docs)))
    vectors = Vectors(index, model)
    assert vectors.refresh().embedded == 3
    passages = query(
        index, "a refund for a client", SimpleTokenCounter(), top_k=1, max_tokens=100, vectors=vectors
    )
    assert [(Path(each.path).name, each.matched_by) for each in passages] == [("b.md", ("meaning",))]
    index.close()


class CountingModel:
    """A model of model2vec, as far as it is used, that notices threads."""

    dim = 2

    def __init__(self) -> None:
        self.at_work = 0
        self.batches: list[int] = []

    def encode(self, texts: list[str], *, use_multiprocessing: bool) -> Any:
        self.at_work += 1
        time.sleep(0.001)
        assert (self.at_work, use_multiprocessing) == (1, False)
        self.batches.append(len(texts))
        self.at_work -= 1
        return numpy.ones((len(texts), 2))


def test_threads_take_turns_after_each_batch() -> None:
    counting = CountingModel()
    model = module.StaticEmbedder("counting", counting)
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(model.embed, [["text"] * 70] * 8))
    assert [len(result) for result in results] == [70] * 8
    assert sorted(counting.batches) == [6] * 8 + [32] * 16
