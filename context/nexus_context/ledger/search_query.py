"""Converts what people type into a search to an expression of SQLite's FTS5.

1. All words must occur. `"two words"` is a phrase, `word*` a prefix, `-word` or `-"two words"` must not
   occur. An unclosed quotation extends to the end.
2. There are no syntax errors and no operators of FTS5, because every term is quoted. A term without letters
   and digits is ignored. `--force` searches for the word `force`, because options are written like this.
3. A term that FTS5 splits (`read_file`, `a.py`) matches where its parts are adjacent.
4. An empty query, or one of exclusions only, finds nothing.
5. A prefix of one letter or digit, `a*`, is searched as that word alone, because most messages have words
   that begin with it.
6. In the index of parts, for text without spaces between words, a term matches anywhere in a run.
7. Only the first LONGEST code points and MOST_TERMS terms count, because the query may be a pasted page.
   Repeated terms count once. Only the MOST_PREFIXES longest prefixes count as prefixes; the others are words.
"""

import re
import unicodedata
from typing import NamedTuple

from nexus_context.ledger.part_index import phrase

LONGEST = 4096
"""Most code points of a query."""

MOST_TERMS = 64
"""Most terms of a query."""

MOST_PREFIXES = 4
"""Most prefixes in a query: each may match many words."""

_TERM = re.compile(r'(?P<minus>-?)(?:"(?P<quoted>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))(?P<star>\*?)')


_LETTER = re.compile(r"(?:\A|[\W_])[a-zA-Z0-9][\W_]*\Z")  # what ends with a word of one letter


class Term(NamedTuple):
    """A text to search for, or to exclude. If `prefix` is true, words that begin with its last word match,
    too.
    """

    text: str
    prefix: bool = False
    excluded: bool = False


def expression(query: str) -> str | None:
    """Return the FTS5 expression of a query. Return None if the query is empty or has only exclusions."""
    return _expression(terms(query))


def part_expression(query: str) -> str | None:
    """Return the expression of a query for the index of parts (`part_index`), or None as `expression`
    does.
    """
    return _expression([_part(term) for term in terms(query)])


def _expression(terms: list[Term]) -> str | None:
    required = [_quoted(term) for term in terms if not term.excluded]
    excluded = [_quoted(term) for term in terms if term.excluded]
    if not required:
        return None
    joined = " AND ".join(required)
    return f"({joined}) NOT ({' OR '.join(excluded)})" if excluded else joined


def has_prefix(expression: str) -> bool:
    """Whether an expression searches for a prefix."""
    return '"*' in expression


def terms(query: str) -> list[Term]:
    """Return the terms of a query in order, each once."""
    # without characters that SQLite cannot take: NUL and halves of surrogate pairs
    clean = query[:LONGEST].replace("\0", " ").encode(errors="replace").decode()
    parsed = (_term(match) for match in _TERM.finditer(clean))
    different = dict.fromkeys(term for term in parsed if any(map(_is_word, term.text)))
    distinct = list(different)[:MOST_TERMS]
    prefixes = sorted((term for term in distinct if term.prefix), key=lambda term: -len(term.text))
    few = set(prefixes[:MOST_PREFIXES])
    return list(dict.fromkeys(term if term in few else term._replace(prefix=False) for term in distinct))


def _term(match: re.Match[str]) -> Term:
    excluded = bool(match["minus"])
    text, prefix = match["quoted"], bool(match["star"])
    if text is None:  # the word keeps its stars, and `--force` its second dash
        text = match["word"].rstrip("*")
        prefix = text != match["word"]
        excluded = excluded and not text.startswith("-")
    return Term(text, prefix and not _LETTER.search(text), excluded)


def _part(term: Term) -> Term:
    text, goes_on = phrase(term.text)
    return term._replace(text=text, prefix=term.prefix or goes_on)


def _quoted(term: Term) -> str:
    return f'"{term.text}"' + ("*" if term.prefix else "")


def _is_word(char: str) -> bool:
    """Whether a character can be part of an indexed word: letters, digits, private use."""
    return unicodedata.category(char)[0] in "LN" or unicodedata.category(char) == "Co"
