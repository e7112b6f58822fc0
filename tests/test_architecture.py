"""The invariants of ARCHITECTURE.md, each as a test: what a reader may rely on without looking."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONTEXT = ROOT / "context" / "nexus_context"
DAEMON = ROOT / "daemon" / "nexus_daemon"

# methods that open, list or write something on the disk; `files.read_text` is called by its bare name
DISK = {
    "open",
    "scandir",
    "listdir",
    "read_text",
    "read_bytes",
    "write_text",
    "write_bytes",
    "unlink",
    "mkdir",
}
MODULE = re.compile(r"nexus_(context|daemon)(\.\w+)+")
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module", autouse=True)
def _trees_for_this_module() -> Iterator[None]:
    """A million objects that each collection of garbage would walk through."""
    yield
    tree_of.cache_clear()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def modules(package: Path) -> Iterator[tuple[str, Path, ast.Module]]:
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package).with_suffix("")
        name = ".".join(part for part in relative.parts if part != "__init__")
        yield name, path, tree_of(path)


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def names_of_modules(tree: ast.AST) -> Iterator[str]:
    """Strings that name a module, as `import_module` and pytest's monkeypatch take them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            yield node.value


def test_the_library_knows_nothing_of_lsp_or_the_daemon() -> None:
    banned = ("pygls", "lsprotocol", "nexus_daemon")
    found = [
        (name, imported)
        for name, _, tree in modules(CONTEXT)
        for imported in imports(tree)
        if imported.split(".")[0] in banned
    ]
    assert found == []


def rooms(package: Path) -> list[str]:
    """The rooms of a package, in the order of the picture in ARCHITECTURE.md."""
    picture = PAGE.split("```")[1]
    _, _, part = picture.partition(f"{package.parent.name}/{package.name}/")
    lines = part.splitlines()[1:]
    return [line.split()[0].rstrip("/").removesuffix(".py") for line in takewhile(is_room, lines)]


def is_room(line: str) -> bool:
    return line.startswith("  ")


@pytest.mark.parametrize("package", [CONTEXT, DAEMON], ids=lambda path: path.name)
def test_imports_point_up_in_the_picture(package: Path) -> None:
    """Imports in functions, for type checkers only, and by a module's name in a string count, too."""
    order, wrong = rooms(package), []
    for name, _, tree in modules(package):
        place = order.index(name.split(".")[0]) if name else len(order)
        for imported in (*imports(tree), *names_of_modules(tree)):
            top = imported.removeprefix(f"{package.name}.").split(".")[0]
            if imported.startswith(f"{package.name}.") and top in order and order.index(top) > place:
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


@pytest.mark.parametrize("package", [CONTEXT, DAEMON], ids=lambda path: path.name)
def test_the_picture_shows_every_room(package: Path) -> None:
    assert {name.split(".")[0] for name, _, _ in modules(package)} - {""} == set(rooms(package))


def section(title: str) -> str:
    """A section of ARCHITECTURE.md, by its heading."""
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, title
    return rest.partition("\n## ")[0]


def test_the_page_is_short() -> None:
    terms = re.findall(r"^- \*\*(.+?)\*\*: (.+)$", section("Glossary"), re.MULTILINE)
    assert len(PAGE.split()) <= 1_500
    assert 0 < len(terms) <= 40
    assert [term for term, _ in terms] == sorted(term for term, _ in terms)
    assert PAGE.rstrip().endswith(terms[-1][1])


def test_the_walks_name_modules_that_exist() -> None:
    walks = section("Five walks")
    assert walks.count("\n- **") == 5
    names = {name.partition(".")[0] for name in re.findall(r"`([\w/.]+)`", walks) if "nexus/" not in name}
    names -= {"test_the_walks_name_modules_that_exist"}
    modules_by_name = {
        "/".join(path.with_suffix("").parts[-count:])
        for package in (CONTEXT, DAEMON)
        for path in (*package.rglob("*.py"), *(path.parent for path in package.rglob("__init__.py")))
        for count in (1, 2)
    }
    assert len(names) > 20
    assert names - modules_by_name == set()


def test_each_invariant_names_its_test() -> None:
    items = re.split(r"^\d+\. ", section("Invariants"), flags=re.MULTILINE)[1:]
    assert len(items) > 20
    wrong = []
    for item in items:
        tests = re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", item)
        for path, name in tests:
            text = (ROOT / (path or "tests/test_architecture.py")).read_text(encoding="utf-8")
            if f"def {name}(" not in text:
                wrong.append(name)
        if not tests:
            wrong.append(item)
    assert wrong == []


@pytest.mark.parametrize("package", [CONTEXT, DAEMON], ids=lambda path: path.name)
def test_nothing_imports_in_a_circle(package: Path) -> None:
    """Neither modules nor rooms, at any depth. Late imports count, those for type checkers alone do not."""
    known = {f"{package.name}.{name}".rstrip(".") for name, _, _ in modules(package)}
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for name, _, tree in modules(package):
        module = f"{package.name}.{name}".rstrip(".")
        for target in known.intersection(targets_at_run_time(tree, known)):
            room, one, other = meeting_place(module, target)
            if one != other:
                graphs[room][one].add(other)
    circles = {}
    for room, graph in graphs.items():
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            circles[room] = error.args[1]
    assert circles == {}


def meeting_place(one: str, other: str) -> tuple[str, str, str]:
    """The innermost package that has both modules, and what of it each of them is in; itself: `__init__`."""
    parts, others = one.split("."), other.split(".")
    depth = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(parts, others, strict=False)))
    names = [each[depth] if len(each) > depth else "__init__" for each in (parts, others)]
    return ".".join(parts[:depth]), names[0], names[1]


def targets_at_run_time(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules that a module imports, late or not, unless only for type checkers."""
    for statement in tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                yield from (name if name in known else node.module for name in names)


def test_only_files_reads_the_disk_and_only_the_ledger_writes() -> None:
    found = []
    for name, _, tree in modules(CONTEXT):
        # the ledger is the one package that writes: it keeps, sets aside and fixes its own file
        # the text of a compressed file goes to a temporary file
        if name in ("disk.files", "disk.zstd", "config.generate") or name.startswith("ledger."):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func
                opened = isinstance(called, ast.Name) and called.id == "open"
                if opened or (isinstance(called, ast.Attribute) and called.attr in DISK):
                    found.append(f"{name}:{node.lineno}")
    assert found == []


def test_msgspec_learns_types_in_one_place() -> None:
    """Elsewhere two threads could meet at a type that is being learned: the process would end."""
    found = []
    for package in (CONTEXT, DAEMON):
        for name, _, tree in modules(package):
            for node in ast.walk(tree):
                if (
                    name != "text.decoding"
                    and isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                ):
                    called = ast.unparse(node.func)
                    has_type = any(keyword.arg == "type" for keyword in node.keywords)
                    learns = called == "msgspec.json.Decoder" and (has_type or node.args)
                    if (
                        learns
                        or called == "msgspec.convert"
                        or (called == "msgspec.json.decode" and has_type)
                    ):
                        found.append(f"{name}:{node.lineno}")
    assert found == []


def test_only_server_registers_lsp_methods() -> None:
    found = [
        name
        for name, _, tree in modules(DAEMON)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("feature", "custom")
        and name != "server"
    ]
    assert found == []


def test_every_command_prints_through_the_door() -> None:
    """`cli/output` alone knows `print` and rich's Console; `cli/invocation` says what its streams are."""
    found = [
        f"{name}:{node.lineno}"
        for name, _, tree in modules(DAEMON / "cli")
        if name not in ("output", "invocation", "warm")
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr", "__stdout__", "__stderr__"))
        or (isinstance(node, ast.Name) and node.id == "print")
        or (isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Console")
    ]
    assert found == []


def test_features_are_pure() -> None:
    # os.path computes with texts
    allowed = (
        "nexus_context",
        "nexus_daemon.features",
        "nexus_daemon.lsp.convert",
        "nexus_daemon.protocol",
        "typing",
        "collections",
        "os.path",
        "itertools",
        "msgspec",
        "re",
    )
    found = [
        (name, imported)
        for name, _, tree in modules(DAEMON / "features")
        for imported in imports(tree)
        if name and not imported.startswith(allowed)
    ]
    asynchronous = [
        (name, node.name)
        for name, _, tree in modules(DAEMON / "features")
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncFunctionDef)
    ]
    assert (found, asynchronous) == ([], [])


def test_the_working_directory_never_matters_below_the_command_line() -> None:
    found = [
        (name, node.lineno)
        for package in (CONTEXT, DAEMON)
        for name, _, tree in modules(package)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("cwd", "getcwd", "chdir")
        and ast.unparse(node.value) in ("os", "Path")
        and not name.startswith("cli")
        and name
        not in (
            "__main__",
            "shared.mcp_server.process",
            "shared.process",
            "shared.command_client",
        )  # which see to it
    ]
    assert found == [("loader", line) for name, line in found if name == "loader"]


def test_commands_know_the_process_that_they_run_for_from_their_invocation() -> None:
    """Else a command in the shared daemon would read the daemon's environment or working directory."""
    process = {"os", "os.path", "sys", "shutil", "Path"}
    owned = ("environ", "getenv", "getcwd", "cwd", "abspath", "get_terminal_size")
    uses = [
        f"{name}: {ast.unparse(node)}"
        for name, _, tree in modules(DAEMON / "cli")
        if name not in ("invocation", "warm")
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in owned and ast.unparse(node.value) in process
    ]
    assert uses == []


@pytest.mark.parametrize("package", [CONTEXT, DAEMON], ids=lambda path: path.name)
def test_every_module_says_in_one_line_what_it_is(package: Path) -> None:
    silent = [
        name for name, path, tree in modules(package) if path.read_text() and not ast.get_docstring(tree)
    ]
    assert silent == []


def test_context_and_daemon_are_no_packages_themselves() -> None:
    assert [
        str(path) for path in (CONTEXT.parent / "__init__.py", DAEMON.parent / "__init__.py") if path.exists()
    ] == []


def test_no_call_has_more_than_four_positional_arguments() -> None:
    """Past that a reader counts; functions of any number of arguments of one kind excepted."""
    variadic = {"OneOf", "Text.assemble", "_type", "_only"}
    calls = [
        f"{name}:{node.lineno}"
        for package in (CONTEXT, DAEMON)
        for name, _, tree in modules(package)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) not in variadic
        if sum(not isinstance(argument, ast.Starred) for argument in node.args) > 4
    ]
    assert calls == []
