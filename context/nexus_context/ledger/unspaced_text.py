"""Text in scripts that put no spaces between words, taken apart so that every part of a run is found.

1. A run is a longest row of characters of such a script. It stands in the index as its pairs of neighbours
   and its last character: `漢字テスト` as `漢字 字テ テス スト ト`.
2. What a run holds is a phrase of pairs: `字テス` is `字テ テス`. One character is a beginning: `字*`.
3. Other words of the same message stand beside the runs, so that `Pythonで` is found by `python`.
4. Characters are NFKC: half-width and full-width forms, and accents written apart, are the same.

Only messages that hold a run are taken apart; the index of all others is not concerned.
"""

import re
import unicodedata

_SCRIPTS = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Lao
    "\u0f40-\u0fbc"  # Tibetan
    "\u1000-\u103f\u1050-\u109f\ua9e0-\ua9ef\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7fb"  # Hangul: particles are written behind words without a space
    "\u1780-\u17d3"  # Khmer
    "\u1950-\u19df\u1a20-\u1aad"  # Tai
    "\u1b05-\u1b4c\ua984-\ua9c0"  # Balinese, Javanese
    "\u3005-\u3007\u3041-\u309f\u30a1-\u30ff\u31f0-\u31ff\uff66-\uffdc"  # Kana, and half-width forms
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
_RUN = re.compile(f"[{_SCRIPTS}]+")


def has_run(text: str) -> bool:
    """Whether a text holds a character of such a script."""
    return not text.isascii() and _RUN.search(text) is not None


def split_runs(text: str) -> str | None:
    """What stands in the index for a message; None where it holds no run."""
    if not has_run(text):
        return None
    return _RUN.sub(lambda run: f" {_pairs(run[0], last=True)} ", unicodedata.normalize("NFKC", text))


def phrase(text: str) -> tuple[str, bool]:
    """What to look for in the index for a part of a message, and whether its last word goes on there."""
    normal = unicodedata.normalize("NFKC", text).replace('"', " ")
    pieces = _RUN.sub(lambda run: f" {_pairs(run[0], last=run.end() < len(normal))} ", normal)
    return pieces.strip(), bool(_RUN.search(normal[-1:])) and not _RUN.search(normal[-2:-1])


def from_bytes(data: bytes) -> str | None:
    """As `split_runs`, for UTF-8 that may be damaged."""
    return None if data.isascii() else split_runs(data.decode(errors="replace"))


def _pairs(run: str, *, last: bool) -> str:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return " ".join([*pairs, run[-1]] if last or not pairs else pairs)
