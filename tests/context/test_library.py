"""The library's public names, and the programs of docs/library.md, docs/memory.md and `examples/library`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import nexus_context
from nexus_context.loader import ContextLoader, PromptLoader
from support.embeddings import IS_INSTALLED

DOCS = Path(__file__).resolve().parents[2] / "docs"


def check(root: Path, code: str) -> str:
    """The output of a Python program that runs in an empty home directory."""
    environ = {"HOME": str(root), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True, check=True).stdout


def test_the_import_costs_nothing(tmp_path: Path) -> None:
    code = "import sys; before = set(sys.modules); import nexus_context; print(set(sys.modules) - before)"
    assert check(tmp_path, code) == "{'nexus_context'}\n"


@pytest.mark.parametrize("name", nexus_context.__all__)
def test_every_public_name_is_there(name: str) -> None:
    owner = getattr(nexus_context, name)
    assert owner.__name__ == name
    assert name in dir(nexus_context)


def test_another_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'loads'"):
        nexus_context.loads  # noqa: B018


def test_all_names_can_be_imported_at_once(tmp_path: Path) -> None:
    code = "from nexus_context import *; print(ContextLoader.__name__, assemble.__name__)"
    assert check(tmp_path, code) == "ContextLoader assemble\n"


EXAMPLE = re.compile(r"```python\n(.*?)```.*?```text\n(.*?)```", re.DOTALL)
PAGES = {name: (DOCS / name).read_text(encoding="utf-8") for name in ("library.md", "memory.md")}
EXAMPLES = [example for page in PAGES.values() for example in EXAMPLE.findall(page)]
PROGRAMS = sorted((DOCS.parent / "examples" / "library").glob("*.py"))
PRINTS = "\n# It prints:\n"


@pytest.mark.parametrize(("code", "shown"), EXAMPLES, ids=lambda text: text.splitlines()[-1][:40])
def test_an_example_of_the_documentation_prints_what_it_says(tmp_path: Path, code: str, shown: str) -> None:
    if "find_model()" in code and not IS_INSTALLED:
        pytest.skip("wordllama is not built for this platform")
    assert check(tmp_path, code) == shown


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.stem))
def test_a_program_prints_what_it_says(tmp_path: Path, program: Path) -> None:
    code, _, comment = program.read_text(encoding="utf-8").partition(PRINTS)
    if "find_model()" in code and not IS_INSTALLED:
        pytest.skip("wordllama is not built for this platform")
    expected = "".join(f"{line.removeprefix('#').removeprefix(' ')}\n" for line in comment.splitlines())
    assert expected
    assert check(tmp_path, code) == expected


def test_the_pages_name_every_program() -> None:
    pages = "".join(PAGES.values())
    assert [path.name for path in PROGRAMS if f"(../examples/library/{path.name})" not in pages] == []


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())
def test_no_example_of_the_documentation_is_left_out(page: str) -> None:
    assert len(EXAMPLE.findall(page)) == page.count("```python")


def test_a_relative_folder_is_refused() -> None:
    for load in (ContextLoader(environ={}).load, lambda cwd: PromptLoader(environ={}).load(cwd=cwd)):
        with pytest.raises(ValueError, match="must be an absolute path, not 'project'"):
            load(Path("project"))


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: str(page.name))
def test_what_the_documentation_imports_is_there(page: Path) -> None:
    for line in re.findall(
        r"^ *(from nexus_context[\w.]* import [^(\n#]+)", page.read_text("utf-8"), re.MULTILINE
    ):
        exec(line, {})  # noqa: S102 - a line of our own page
