"""Search the files of a folder's knowledge base, as each chat turn does, and show what is indexed.

The files are those of `memory.knowledge.paths`. Both commands bring the index up to date first; daemons use
the same index.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from nexus_context.errors import Problem, RequestError
from nexus_context.files import real_path
from nexus_context.layers.walk import user_home
from nexus_daemon.cli import invocation, output
from nexus_daemon.cli.folder import absolute, folder_of, read
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.lsp.lsp_types import DEFAULT_ENCODING

if TYPE_CHECKING:
    from nexus_context.memory.knowledge import (
        EmbeddingSettings,
        KnowledgeIndex,
        Passage,
        Settings,
        Vectors,
    )
    from nexus_context.snapshot import Snapshot
    from nexus_context.tokens import TokenCounter

EPILOG = """\
examples:
  nexus knowledge query When is a rollback possible?
  nexus knowledge query 'roll back' --limit 2 --json
  nexus knowledge status

exit codes: 0 success, with or without a passage; 1 failure, or there is no knowledge base; 2 wrong usage
"""


def arguments(command: argparse.ArgumentParser) -> None:
    actions = command.add_subparsers(dest="action", required=True, metavar="ACTION")
    _query(_action(actions, "query", "print the passages that match a text, best first"))
    _action(actions, "status", "show which files are indexed and how they are searched")


def _action(actions: Any, name: str, text: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = actions.add_parser(
        name, help=text, description=f"{text[:1].upper()}{text[1:]}."
    )
    command.add_argument("--folder", default=".", metavar="PATH", help="the workspace folder (default: .)")
    command.add_argument("--json", action="store_true", help="print JSON")
    return command


def _query(command: argparse.ArgumentParser) -> None:
    command.add_argument("text", nargs="+", metavar="TEXT", help="words or a question, as a user's message")
    command.add_argument(
        "--limit", type=_number, metavar="N", help="at most N passages (default: memory.knowledge.top_k)"
    )
    command.add_argument(
        "--max-tokens",
        type=_number,
        metavar="N",
        help="at most N tokens of passages (default: memory.knowledge.max_tokens)",
    )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


def run(options: argparse.Namespace) -> int:
    folder = folder_of(absolute(options.folder))
    if folder is None:
        output.complain("knowledge", f"{options.folder} does not exist.")
        return 2
    snapshot = read(folder)
    actions: dict[str, Callable[[FolderKnowledge, Snapshot, argparse.Namespace], None]]
    actions = {"query": _print_passages, "status": _print_status}
    try:
        with open_knowledge("knowledge", str(folder), snapshot) as knowledge:
            if knowledge is None:
                output.complain("knowledge", _nothing(snapshot))
                return 1
            actions[options.action](knowledge, snapshot, options)
    except RequestError as error:
        output.complain("knowledge", str(error))
        return 1
    return 0


# ---------------------------------------------------------------- the knowledge base


class FolderKnowledge(msgspec.Struct, frozen=True):
    """The knowledge base of a folder, up to date. `problems` are those of its paths."""

    settings: "Settings"
    index: "KnowledgeIndex"
    vectors: "Vectors | None"
    problems: tuple[Problem, ...]

    def passages(
        self, text: str, counter: "TokenCounter", *, top_k: int | None = None, max_tokens: int | None = None
    ) -> "list[Passage]":
        """The passages that match a text; the limits default to the settings."""
        from nexus_context.memory import knowledge

        return knowledge.query(
            self.index,
            text,
            counter,
            top_k=self.settings.top_k if top_k is None else top_k,
            max_tokens=self.settings.max_tokens if max_tokens is None else max_tokens,
            accepts=self.settings.covers,
            vectors=self.vectors,
        )


@contextmanager
def open_knowledge(command: str, folder: str, snapshot: "Snapshot") -> "Iterator[FolderKnowledge | None]":
    """The knowledge base of a folder, brought up to date; None if the settings name no path.

    `command` is named in warnings. RequestError if the index cannot be used.
    """
    from nexus_context.memory import knowledge

    settings, problems = knowledge.settings_of(snapshot.layers, user_home(invocation.current().environ))
    if not settings.places:
        yield None
        return
    index = knowledge.KnowledgeIndex(knowledge.index_path(real_path(folder), invocation.current().environ))
    try:
        refreshed = knowledge.refresh(index, settings)
        vectors = None if settings.embeddings is None else _vectors(command, index, settings.embeddings)
        yield FolderKnowledge(settings, index, vectors, (*problems, *refreshed.problems))
    except (knowledge.IndexBusyError, knowledge.IndexLostError) as error:
        raise RequestError(f"{error}", code="knowledge") from None
    finally:
        index.close()


def _vectors(command: str, index: "KnowledgeIndex", embeddings: "EmbeddingSettings") -> "Vectors | None":
    from nexus_context.memory import knowledge

    try:
        model = knowledge.load_model(knowledge.find_model(embeddings.model))
        vectors = knowledge.Vectors(index, model, min_similarity=embeddings.min_similarity)
        vectors.refresh()
    except knowledge.EmbeddingError as error:
        output.complain(command, f"files are searched by words only: {error}")
        return None
    return vectors


def _nothing(snapshot: "Snapshot") -> str:
    place = "memory.knowledge.paths of .nexus3/config.json (docs/memory.md)"
    return f"{snapshot.folder} has no knowledge base; name its files in {place}."


# ---------------------------------------------------------------- actions


def _print_passages(knowledge: FolderKnowledge, snapshot: "Snapshot", options: argparse.Namespace) -> None:
    from nexus_context import assembly
    from nexus_daemon.api.knowledge import passage_results

    _, counter = assembly.model_of(snapshot, None)
    text = " ".join(options.text)
    passages = knowledge.passages(text, counter, top_k=options.limit, max_tokens=options.max_tokens)
    answer = passage_results(passages, Locator(snapshot.layers, DEFAULT_ENCODING))
    if options.json:
        output.json_value({"passages": answer})
        return
    if not passages:
        output.complain("knowledge", "no passage matches.")
    for passage, result in zip(passages, answer, strict=True):
        title = f"{passage.path}:{result.range.start.line + 1}"
        heading = f" › {passage.heading}" if passage.heading else ""
        meaning = f" (by {' and '.join(passage.matched_by)})" if "meaning" in passage.matched_by else ""
        output.line(f"{title}{heading}{meaning}")
        output.page(f"\n{passage.text.strip()}\n\n")


def _print_status(knowledge: FolderKnowledge, _: "Snapshot", options: argparse.Namespace) -> None:
    files, passages = knowledge.index.totals()
    vectors = knowledge.vectors
    state: dict[str, Any] = {
        "paths": [place.selection for place in knowledge.settings.places],
        "files": files,
        "passages": passages,
        "model": None if vectors is None else vectors.embedder.name,
        "vectors": None if vectors is None else vectors.count,
        "index": knowledge.index.location,
        "problems": [problem.message for problem in knowledge.problems],
    }
    if options.json:
        output.json_value(state)
        return
    for path in state["paths"]:
        output.line(f"path         {path}")
    output.line(f"files        {files:,}")
    output.line(f"passages     {passages:,}")
    output.line(f"searched by  {_search(state)}")
    output.line(f"index        {state['index']}")
    for message in state["problems"]:
        output.complain("knowledge", message)


def _search(state: dict[str, Any]) -> str:
    if state["model"] is None:
        return "words"
    return f"words and meaning ({state['model']}: {output.counted(state['vectors'], 'vector')})"
