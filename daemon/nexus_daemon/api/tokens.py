"""Answer `nexus/tokens/count`: exact counts or labelled estimates of texts and files."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from nexus_context.disk import cancellation, files
from nexus_context.errors import Problem, RequestError
from nexus_context.tokens import TokenCounter, counter_for, get_token_counter
from nexus_context.tokens.vocabulary import ENCODINGS
from nexus_daemon import protocol
from nexus_daemon.lsp import convert
from nexus_daemon.sessions import results

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

DEFAULT_ENCODING = "o200k_base"


async def count(client: "Connection", params: protocol.CountParams) -> protocol.CountResult:
    """Count the tokens of texts and files. Nothing is sent anywhere."""
    overlays = dict(client.folders.overlays)
    return await client.read(count_texts, params, overlays, client.capabilities.position_encoding)


def count_texts(
    params: protocol.CountParams, overlays: Mapping[str, str], position_encoding: str
) -> protocol.CountResult:
    """Count each text, then each URI's text. An open document's unsaved text wins over the disk.

    A file that is not UTF-8 is counted as far as it can be decoded: the count is inexact, and a problem
    reports it.
    """
    counter = _counter(params)
    reads = [_read(uri, overlays) for uri in params.uris]
    counts = []
    for text in (*params.texts, *(file_read.text or "" for file_read in reads)):
        cancellation.check()
        counts.append(counter.count(text))
    odd = {problem: None for file_read in reads for problem in not_utf8(file_read)}
    locate = convert.Locator(
        convert.Texts({file_read.path: file_read.text or "" for file_read in reads}), position_encoding
    )
    return protocol.CountResult(
        encoding=counter.name,
        exact=counter.exact and not odd,
        counts=counts,
        total=sum(counts),
        problems=results.problems(locate, odd),
    )


def not_utf8(file_read: files.FileRead) -> list[Problem]:
    """Return the problems that say that a file's text is a guess at its bytes."""
    return [problem for problem in file_read.problems if problem.code == "layer.encoding"]


def _counter(params: protocol.CountParams) -> TokenCounter:
    """Return the counter of the model, else of the named encoding, else of the default encoding."""
    if params.model is not None:
        return counter_for(params.model)
    name = params.encoding or DEFAULT_ENCODING
    if name not in ENCODINGS:
        names = ", ".join(ENCODINGS)
        raise RequestError(f"Unknown encoding {name!r}. Known encodings: {names}.", code="unknown-encoding")
    return get_token_counter(encoding=name)


def _read(uri: str, overlays: Mapping[str, str]) -> files.FileRead:
    path = convert.uri_to_path(uri)
    if path is None:
        raise RequestError(f"{uri} is not a file URI.", code="not-a-file-uri")
    if path in overlays:
        return files.FileRead(path, "loaded", overlays[path])
    file_read = files.read_text(path, limit=files.JSON_LIMIT)
    if file_read.text is None:
        why = file_read.problems[0].message if file_read.problems else "The file does not exist."
        raise RequestError(f"Cannot count {uri}: {why}", code="unreadable", problems=file_read.problems)
    return file_read
