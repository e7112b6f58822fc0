"""`docs/checks.md` has every code that the source reports problems with, and no other."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
CODE = re.compile(r"(?:assistant|config|instructions|json|layer|mcp|prompt|skill)\.[a-z]+(?:-[a-z]+)*\Z")
FILE_NAMES = {"instructions.md", "config.json", "config.toml", "mcp.json"}
NO_PROBLEMS = {
    "config.frames",
    "config.schema",  # modules
    "assistant.message",  # a kind of record
    "assistant.required",
    "assistant.unknown-key",  # of findings, which become `assistant.no-effect`
}
BUILT = {  # of two words in the source
    "assistant": ("missing-file", "reads-otherwise", "repeated", "secret", "shadowed", "unknown-name"),
    "config": ("enum", "pattern", "range", "required", "too-long", "type", "unknown-key"),
    "json": (
        *("bracket", "extra-data", "lone-surrogate", "missing-colon", "missing-comma", "missing-value"),
        *("number-range", "property-name", "too-deep", "unclosed", "unescaped-quote", "unexpected"),
    ),
    "prompt": tuple(
        f"import-{each}"
        for each in ("cycle", "depth", "limit", "missing", "outside", "refused", "repeated", "unreadable")
    ),
    "skill": ("compatibility", "description", "license"),
}


def codes() -> Iterator[str]:
    """The words of the source that are codes."""
    for package in ("context", "daemon"):
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and CODE.match(node.value):
                    yield node.value


def test_every_code_is_documented() -> None:
    page = (ROOT / "docs/checks.md").read_text(encoding="utf-8")
    rows = "".join(line.partition(" | ")[0] for line in page.splitlines() if line.startswith("| `"))
    built = {f"{family}.{detail}" for family, details in BUILT.items() for detail in details}
    expected = ({"internal"} | built).union(codes()) - FILE_NAMES - NO_PROBLEMS
    assert set(re.findall(r"`([^`]+)`", rows)) == expected
