"""What people type into a search → an expression of SQLite's FTS5.

1. All words must occur. `"two words"` stand together, `word*` is a beginning, `-word` or `-"two words"` must
   not occur. A quotation that is not closed goes on to the end.
2. Nothing is a syntax error, and nothing is an operator of FTS5: every term is quoted. One that holds no
   letter and no digit is as if it were not there; `--force` looks for the word, as options are written so.
3. A term that FTS5 takes apart (`read_file`, `a.py`) is found where its parts stand together.
4. A query of nothing but exclusions, or of nothing, finds nothing.
5. A beginning of one letter or digit, `a*`, is that word alone: most messages have words that begin so.
6. In the index of parts, for text without spaces between words, a term is found wherever it stands in a run.
7. Only LONGEST code points and MOST_TERMS terms are regarded: the query may be a page that was pasted. What
   it says twice counts once. Of its beginnings the MOST_PREFIXES longest count; the others are words alone.
"""

import re
import unicodedata
from typing import NamedTuple

from nexus_context.ledger import unspaced_text

LONGEST = 4096
"""Code points of a query that are regarded."""

MOST_TERMS = 64
"""Terms of a query that are regarded."""

MOST_PREFIXES = 4
"""Beginnings of words in a query: each may stand for many words."""

_TERM = re.compile(r'(?P<minus>-?)(?:"(?P<quoted>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))(?P<star>\*?)')


_LETTER = re.compile(r"(?:\A|[\W_])[a-zA-Z0-9][\W_]*\Z")  # what ends with a word of one letter


class Term(NamedTuple):
    """One thing to look for, or to avoid. `prefix`: its last word may go on."""

    text: str
    prefix: bool = False
    excluded: bool = False


def expression(query: str) -> str | None:
    """The FTS5 expression of a query; None where there is nothing to look for."""
    return _expression(terms(query))


def part_expression(query: str) -> str | None:
    """As `expression`, for the index of what `spaceless` takes apart."""
    return _expression([_part(term) for term in terms(query)])


def _expression(found: list[Term]) -> str | None:
    wanted = [_quoted(term) for term in found if not term.excluded]
    unwanted = [_quoted(term) for term in found if term.excluded]
    if not wanted:
        return None
    made = " AND ".join(wanted)
    return f"({made}) NOT ({' OR '.join(unwanted)})" if unwanted else made


def has_prefix(made: str) -> bool:
    """Whether an expression of `expression` looks for the beginning of a word."""
    return '"*' in made


def terms(query: str) -> list[Term]:
    """What a query looks for, in its order, each once."""
    found = (_term(match) for match in _TERM.finditer(_clean(query[:LONGEST])))
    different = dict.fromkeys(term for term in found if any(map(_is_word, term.text)))
    kept = list(different)[:MOST_TERMS]
    prefixes = sorted((term for term in kept if term.prefix), key=lambda term: -len(term.text))
    few = set(prefixes[:MOST_PREFIXES])
    return list(dict.fromkeys(term if term in few else term._replace(prefix=False) for term in kept))


def _term(match: re.Match[str]) -> Term:
    excluded = bool(match["minus"])
    text, prefix = match["quoted"], bool(match["star"])
    if text is None:  # the pattern leaves a word its own stars, and `--force` the second dash
        text = match["word"].rstrip("*")
        prefix = text != match["word"]
        excluded = excluded and not text.startswith("-")
    return Term(text, prefix and not _LETTER.search(text), excluded)


def _part(term: Term) -> Term:
    text, goes_on = unspaced_text.phrase(term.text)
    return term._replace(text=text, prefix=term.prefix or goes_on)


def _quoted(term: Term) -> str:
    return f'"{term.text}"' + ("*" if term.prefix else "")


def _clean(query: str) -> str:
    """The query without what SQLite cannot take: NUL ends a text, half a surrogate pair is none."""
    return query.replace("\0", " ").encode(errors="replace").decode()


def _is_word(char: str) -> bool:
    """Whether a character can be part of a word in the index: letters, digits, characters of private use."""
    return unicodedata.category(char)[0] in "LN" or unicodedata.category(char) == "Co"
