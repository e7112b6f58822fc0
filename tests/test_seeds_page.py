"""docs/seeds.md: its tests and paths exist, and it has a row for each heading of the seed documents."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

import nexus_context
from nexus_daemon import protocol
from nexus_daemon.api.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
SEEDS = ROOT.parent / "shared" / "seeds"
DOCUMENTS = (
    ("Context module", "000_*.txt"),
    ("Context management plan", "001_*.txt"),
    ("Context assembly (broker)", "002_*.txt"),
    ("Context assembler", "003_*.txt"),
    ("Context management (Loom)", "004_*.txt"),
)
PACKAGES = (ROOT / "context" / "nexus_context", ROOT / "daemon" / "nexus_daemon")
NOT_YET = "**Not yet"
TOP_LEVEL = {path.name for path in ROOT.iterdir() if path.is_dir()}


class Row(msgspec.Struct, frozen=True):
    """A row of a table: a document's heading, where it is in Nexus, and what shows it."""

    document: str
    heading: str
    place: str
    shown_by: str


def _rows() -> Iterator[Row]:
    document = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            document = line[3:]
        elif line.startswith("|") and not line.startswith(("|---", "|Heading|")):
            heading, place, shown_by = line.removeprefix("|").removesuffix("|").split("|")
            yield Row(document, heading, place, shown_by)


ROWS = tuple(_rows())


def check(path_and_test: str) -> str | None:
    """What is wrong with `path`, `path::test` or `path::Class::test`; None where it exists."""
    path, *names = path_and_test.split("::")
    if not (ROOT / path).exists():
        return f"{path} does not exist"
    if names and names[-1] not in _functions(path):
        return f"{path} has no {names[-1]}"
    return None


@cache
def _functions(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def _paths(text: str) -> list[str]:
    """The code spans that are paths of the repository, and the targets of links to other pages."""
    spans = [span for span in re.findall(r"`([^`]+)`", text) if span.partition("/")[0] in TOP_LEVEL]
    return spans + [f"docs/{target}" for target in re.findall(r"\]\(([^)#]+\.md)", text)]


def test_what_the_page_names_exists() -> None:
    introduction = PAGE.partition("\n- ")[0]
    paths = [path for row in ROWS for path in _paths(f"{row.place} {row.shown_by}")] + _paths(introduction)
    assert len(paths) > 200
    assert [problem for problem in map(check, paths) if problem] == []


def test_a_name_that_does_not_exist_is_noticed() -> None:
    here = "tests/test_seeds_page.py"
    assert check(f"{here}::test_what_the_page_names_exists") is None
    assert check(f"{here}::test_of_nothing") == f"{here} has no test_of_nothing"
    assert check("docs/nothing.md") == "docs/nothing.md does not exist"
    assert _paths("`docs/x.md`, `nexus show`, `a/b` and [y](y.md#z)") == ["docs/x.md", "docs/y.md"]


def test_each_row_names_a_test_or_promises_nothing() -> None:
    for row in ROWS:
        shown_by = _paths(row.shown_by)
        if row.place == "—":
            assert row.shown_by == "—", row
        else:
            assert shown_by, row
            assert row.shown_by == "<br>".join(f"`{path}`" for path in shown_by), row
            assert all("::test_" in path or path.startswith("examples/") for path in shown_by), row


def test_requests_on_the_page_are_requests_of_the_daemon() -> None:
    methods = set(re.findall(r"`(nexus/[a-zA-Z/]+)`", PAGE))
    assert methods
    assert methods - {*METHODS, *protocol.QUESTIONS, *protocol.NOTIFICATIONS} == set()


def test_names_for_programs_are_those_that_the_product_does_not_use() -> None:
    _, _, section = PAGE.partition("## Names for programs")
    listed = {
        name for line in section.splitlines() for name in re.findall(r"`(\w+)`", line.partition(":")[0])
    }
    modules = [path for part in ("context", "daemon") for path in (ROOT / part).rglob("*.py")]
    texts = [path.read_text(encoding="utf-8") for path in modules if path.name != "__init__.py"]
    words = Counter(word for text in texts for word in set(re.findall(r"\w+", text)))
    assert listed == {name for name in nexus_context.__all__ if words[name] == 1}


def test_names_on_the_page_are_names_of_the_code() -> None:
    spans = {span for row in ROWS for span in re.findall(r"`([^`]+)`", row.place.partition(NOT_YET)[0])}
    names = {span for span in spans if re.fullmatch(r"[A-Z]\w+|[a-z]+_\w+", span)}
    assert len(names) > 40
    assert names - _names_of_the_code() == set()


def _names_of_the_code() -> set[str]:
    """Packages, classes, functions, fields and parameters; without parsing, which would take seconds."""
    names = {package.name for package in PACKAGES}
    for package in PACKAGES:
        for path in package.rglob("*.py"):
            names.update(re.findall(r"(?:class |def )(\w+)", text := path.read_text(encoding="utf-8")))
            names.update(re.findall(r"^[^#\"']*?\b(\w+): ", text, re.MULTILINE))
    return names


def test_what_is_not_done_is_listed_at_the_top() -> None:
    head = PAGE.partition("\n## ")[0]
    listed = re.findall(r"^- \[(.+?)\]\(#[^)]+\) › \*(.+?)\*: ", head, re.MULTILINE)
    assert listed == [(row.document, row.heading) for row in ROWS if NOT_YET in row.place]


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the seed documents are not beside the checkout")
@pytest.mark.parametrize(("title", "pattern"), DOCUMENTS, ids=[pattern[:3] for _, pattern in DOCUMENTS])
def test_each_heading_of_a_document_has_its_row(title: str, pattern: str) -> None:
    (path,) = SEEDS.glob(pattern)
    headings = list(_headings(path.read_text(encoding="utf-8")))
    assert len(headings) > 20
    assert [row.heading for row in ROWS if row.document == title] == headings


def test_each_row_belongs_to_a_document() -> None:
    assert {row.document for row in ROWS} == {title for title, _ in DOCUMENTS}


def _headings(text: str) -> Iterator[str]:
    """The headings outside of code fences, in order."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and re.match(r"#+ ", line):
            yield _repaired(line.lstrip("#").strip())


def _repaired(heading: str) -> str:
    """A heading as it was written: one document was read in the wrong encoding before it was saved."""
    try:
        return heading.encode("cp1252").decode("utf-8")
    except UnicodeError:
        return heading
