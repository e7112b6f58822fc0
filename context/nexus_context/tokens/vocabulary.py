"""Loads the two tokenizer vocabularies from package data, never from the network.

1. `tiktoken` fetches its vocabularies over HTTP; the same files ship here, gzipped, and are checked
   against the SHA-256 that `tiktoken_ext/openai_public.py` pins.
2. A vocabulary is loaded on first use, once, whatever the number of threads.
3. It is then registered with tiktoken, so that `tiktoken.get_encoding` returns it without a download.
4. The pattern that splits a text into words is an equivalent, faster form of tiktoken's: counting takes half
   the time in cl100k, and somewhat less in o200k.
"""

import re
import threading
from typing import TYPE_CHECKING, NamedTuple

from nexus_context.errors import NexusError

if TYPE_CHECKING:
    import tiktoken


class VocabularyError(NexusError):
    """The installed vocabulary file is missing or damaged."""


def load_encoding(name: str) -> "tiktoken.Encoding":
    """Return the tiktoken encoding `name`. Any thread may call it; the first call takes 0.1 to 0.3 s of CPU,
    later ones are lookups.

    Raise ValueError if the name is not in `ENCODINGS`, and VocabularyError if the installed file is damaged.
    """
    encoding = _loaded.get(name)
    if encoding is not None:
        return encoding
    if name not in ENCODINGS:
        raise ValueError(f"unknown encoding {name!r}; choose one of: {', '.join(ENCODINGS)}")
    with _lock:
        if name not in _loaded:
            _loaded[name] = _build(name)
        return _loaded[name]


def is_loaded(name: str) -> bool:
    """Whether `load_encoding(name)` returns at once."""
    return name in _loaded


def loaded_encodings() -> tuple[str, ...]:
    """Return the names of the encodings that are in memory."""
    return tuple(_loaded)


class _Definition(NamedTuple):
    sha256: str
    pattern: str
    special_tokens: dict[str, int]


# Hashes, patterns and special tokens: tiktoken 0.14.0, tiktoken_ext/openai_public.py. They are copied because
# its functions download the files; a test compares them with the installed tiktoken.
DEFINITIONS = {
    "cl100k_base": _Definition(
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        pattern=r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"""
        r"""| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s""",
        special_tokens={
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": _Definition(
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        pattern="|".join(
            (
                r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
                r"""[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?""",
                r"""\p{N}{1,3}""",
                r""" ?[^\s\p{L}\p{N}]+[\r\n/]*""",
                r"""\s*[\r\n]+""",
                r"""\s+(?!\S)""",
                r"""\s+""",
            )
        ),
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}

ENCODINGS = tuple(DEFINITIONS)

_GZIP_WINDOW_BITS = 31  # zlib's value for "gzip header, largest window"

_loaded: "dict[str, tiktoken.Encoding]" = {}
_lock = threading.Lock()


def _build(name: str) -> "tiktoken.Encoding":
    import tiktoken
    import tiktoken.registry

    definition = DEFINITIONS[name]
    ranks = read_ranks(name, definition.sha256)
    encoding = tiktoken.Encoding(
        name,
        pat_str=_quick(definition.pattern),
        mergeable_ranks=ranks,
        special_tokens=definition.special_tokens,
    )
    # The Rust core has its own copy; Python's, of 12 to 25 MB, is no longer needed.
    ranks.clear()
    return tiktoken.registry.ENCODINGS.setdefault(name, encoding)


def _quick(pattern: str) -> str:
    """An equivalent pattern, with everything before the only look-ahead in one group.

    The engine (fancy-regex) compiles such a group to one finite automaton; otherwise it tries one alternative
    after the other. Automata have no possessive quantifiers. Without them the group matches the same: what
    follows each quantifier cannot match what it could give back, and `$` matches only at the end.
    """
    plain, look_ahead, tail = pattern.partition(r"|\s+(?!\S)")
    greedy = re.sub(r"([?*+]|\{1,3\})\+", r"\1", plain)
    return f"(?:{greedy}){look_ahead}{tail}"


def read_ranks(name: str, sha256: str) -> dict[bytes, int]:
    """Read a vocabulary file: return token bytes → rank. Raise VocabularyError if the file is missing or its
    SHA-256 is not `sha256`.
    """
    import hashlib
    import io
    import pkgutil
    import zlib
    from binascii import a2b_base64

    resource = f"data/{name}.tiktoken.gz"
    try:
        packed = pkgutil.get_data("nexus_context.tokens", resource)
        data = zlib.decompress(packed or b"", _GZIP_WINDOW_BITS)
    except (OSError, zlib.error) as error:
        raise VocabularyError(f"cannot read the vocabulary {resource}: {error}; reinstall nexusd") from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise VocabularyError(f"the vocabulary {resource} has a wrong SHA-256; reinstall nexusd")
    return {a2b_base64(line[: line.index(b" ")]): rank for rank, line in enumerate(io.BytesIO(data))}
