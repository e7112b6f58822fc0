"""`nexus/tokens/count`: texts and files → exact counts or labelled estimates."""

from collections.abc import Mapping

from nexus_context import files
from nexus_context.errors import RequestError
from nexus_context.tokens import TokenCounter, counter_for, get_token_counter
from nexus_context.tokens.vocabulary import ENCODINGS
from nexus_daemon import convert, protocol

DEFAULT_ENCODING = "o200k_base"


def count(params: protocol.CountParams, overlays: Mapping[str, str]) -> protocol.CountResult:
    """Count each text, then each URI's text; an open document's unsaved text wins over the disk."""
    counter = _counter(params)
    texts = [*params.texts, *(_read(uri, overlays) for uri in params.uris)]
    counts = [counter.count(text) for text in texts]
    return protocol.CountResult(encoding=counter.name, exact=counter.exact, counts=counts, total=sum(counts))


def _counter(params: protocol.CountParams) -> TokenCounter:
    """The model's own counter, else that of the named encoding, else of the newest one."""
    if params.model is not None:
        return counter_for(params.model)
    name = params.encoding or DEFAULT_ENCODING
    if name not in ENCODINGS:
        known = ", ".join(ENCODINGS)
        raise RequestError(f"Unknown encoding {name!r}. Known encodings: {known}.", code="unknown-encoding")
    return get_token_counter(encoding=name)


def _read(uri: str, overlays: Mapping[str, str]) -> str:
    path = convert.uri_to_path(uri)
    if path is None:
        raise RequestError(f"{uri} is not a file URI.", code="not-a-file-uri")
    if path in overlays:
        return overlays[path]
    read = files.read_text(path, limit=files.JSON_LIMIT)
    if read.text is None:
        why = read.problems[0].message if read.problems else "The file does not exist."
        raise RequestError(f"Cannot count {uri}: {why}", code="unreadable", problems=read.problems)
    return read.text
