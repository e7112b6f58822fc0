"""Splits text in scripts without spaces between words, so that every part of a run can be found.

1. A run is a maximal sequence of characters of such a script. It is indexed as its pairs of neighbors and its
   last character: `漢字テスト` as `漢字 字テ テス スト ト`.
2. A part of a run is a phrase of pairs: `字テス` is `字テ テス`. A single character is a prefix: `字*`.
3. Other words of the same message are indexed beside the runs, so that `python` finds `Pythonで`.
4. Characters are NFKC: half-width and full-width forms, and combining accents, are equal.

Only messages with a run are split; the index of all others is not affected.
"""

import re
import unicodedata

_SCRIPTS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Lao
    "\u0f40-\u0fbc"  # Tibetan
    "\u1000-\u103f\u1050-\u109f\ua9e0-\ua9ef\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7fb"  # Hangul: particles follow words without a space
    "\u1780-\u17d3"  # Khmer
    "\u1950-\u19df\u1a20-\u1aad"  # Tai
    "\u1b05-\u1b4c\ua984-\ua9c0"  # Balinese, Javanese
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uffdc"  # Kana, and half-width forms
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_RUN = re.compile(f"[{_SCRIPTS}]+")


def has_run(text: str) -> bool:
    """Whether a text has a character of such a script."""
    return not text.isascii() and _RUN.search(text) is not None


def split_runs(text: str) -> str | None:
    """The index entry of a message; None if it has no run."""
    if not has_run(text):
        return None
    return _RUN.sub(lambda run: f" {_pairs(run[0], last=True)} ", unicodedata.normalize("NFKC", text))


def phrase(text: str) -> tuple[str, bool]:
    """The search phrase for a part of a message, and whether its last word is a prefix."""
    normal = unicodedata.normalize("NFKC", text).replace('"', " ")
    pieces = _RUN.sub(lambda run: f" {_pairs(run[0], last=run.end() < len(normal))} ", normal)
    return pieces.strip(), bool(_RUN.search(normal[-1:])) and not _RUN.search(normal[-2:-1])


def from_bytes(data: bytes) -> str | None:
    """As `split_runs`, for UTF-8 that may be damaged."""
    return None if data.isascii() else split_runs(data.decode(errors="replace"))


def _pairs(run: str, *, last: bool) -> str:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return " ".join([*pairs, run[-1]] if last or not pairs else pairs)
