"""Names that say what something is: the words below hide a type, so that a stranger cannot grep for it."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (ROOT / "context" / "nexus_context", ROOT / "daemon" / "nexus_daemon")
VAGUE = {
    *("found", "known", "said", "made", "given", "told", "asked", "kept", "shown", "held", "seen", "looked"),
    *("wanted", "used", "acting", "living", "following", "remembered", "standing", "own"),
}
LOCALS_PER_1000_LINES = 4
OVERRIDES = {"parse_known_args"}  # methods of other libraries


def test_no_module_class_or_public_function_has_a_vague_name() -> None:
    vague = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in _files()
        for name in (path.stem, *_public_names(ast.parse(path.read_text(encoding="utf-8"))))
        if VAGUE & set(_words(name)) and name not in OVERRIDES
    ]
    assert vague == []


def test_locals_carry_the_word_of_their_type() -> None:
    counts: Counter[str] = Counter()
    lines = 0
    for path in _files():
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        vague = sum(name in VAGUE for name in _bound_names(ast.parse(text)))
        counts[str(path.relative_to(ROOT))] = vague
    rate = counts.total() * 1000 / lines
    assert rate <= LOCALS_PER_1000_LINES, f"{rate:.1f} in 1,000 lines; most in {counts.most_common(20)}"


@pytest.mark.parametrize("package", ["context", "daemon", "daemon/nexus_daemon/protocol"])
def test_a_class_has_its_name_to_itself(package: str) -> None:
    """So that its name alone finds it. What goes over the wire mirrors names of the library."""
    protocol = ROOT / "daemon" / "nexus_daemon" / "protocol"
    names = Counter(
        node.name
        for path in _files()
        if path.is_relative_to(ROOT / package)
        and (path.is_relative_to(protocol) == (protocol == ROOT / package))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def _files() -> Iterator[Path]:
    return (path for source in SOURCES for path in sorted(source.rglob("*.py")))


def _public_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            private = node.name.startswith("_") and not isinstance(node, ast.ClassDef)
            yield from () if private else (node.name,)


def _words(name: str) -> Iterator[str]:
    """The words of a name in either case: `read_found`, `ReadFound`."""
    word = ""
    for letter in name:
        if letter == "_" or letter.isupper():
            yield word.lower()
            word = ""
        word += letter.strip("_")
    yield word.lower()


def _bound_names(tree: ast.AST) -> Iterator[str]:
    """Names that parameters, assignments, loops and comprehensions bind; not attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
