"""A class has a name of its own, so that a stranger finds it by its name."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (ROOT / "context" / "nexus_context", ROOT / "daemon" / "nexus_daemon")


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
