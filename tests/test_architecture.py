"""The invariants of ARCHITECTURE.md, each as a test: what a reader may rely on without looking."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CONTEXT = ROOT / "context" / "nexus_context"
DAEMON = ROOT / "daemon" / "nexus_daemon"

# reading order of the library: a module may import what comes before it, never what comes after
ORDER = [
    "errors",
    "text",
    "disk",
    "config",
    "tokens",
    "folder",
    "conversation",
    "ledger",
    "memory",
    "turn",
    "agents",
    "assistants",
    "assembler",
    "loader",
]
# the daemon, in the same way
DAEMON_ORDER = [
    "process",
    "protocol",
    "lsp",
    "features",
    "workspace",
    "sessions",
    "agents",
    "windows",
    "assistants",
    "api",
    "server",
    "shared",
    "cli",
    "__main__",
]
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
MAX_LINES = 600
MODULE = re.compile(r"nexus_(context|daemon)(\.\w+)+")


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


@pytest.mark.parametrize(
    ("package", "order"),
    [(CONTEXT, ORDER), (DAEMON, DAEMON_ORDER)],
    ids=["library", "daemon"],
)
def test_imports_point_one_way(package: Path, order: list[str]) -> None:
    """Imports in functions, for type checkers only, and by a module's name in a string count, too."""
    root = CONTEXT if package.is_relative_to(CONTEXT) else DAEMON
    prefix = ".".join(package.relative_to(root.parent).parts)
    wrong = []
    for name, _, tree in modules(package):
        place = order.index(name.split(".")[0]) if name else len(order)
        for imported in (*imports(tree), *names_of_modules(tree)):
            top = imported.removeprefix(f"{prefix}.").split(".")[0] if imported.startswith(prefix) else ""
            if top in order and order.index(top) > place:
                wrong.append(f"{name} imports {imported}")
    assert wrong == []


@pytest.mark.parametrize(
    ("package", "order"),
    [(CONTEXT, ORDER), (DAEMON, DAEMON_ORDER)],
    ids=["library", "daemon"],
)
def test_every_module_has_its_place_in_the_order(package: Path, order: list[str]) -> None:
    tops = {name.split(".")[0] for name, _, _ in modules(package)} - {""}
    assert tops - set(order) == set()


def test_only_files_reads_the_disk_and_only_the_ledger_writes() -> None:
    found = []
    for name, _, tree in modules(CONTEXT):
        # the ledger is the one package that writes: it keeps, sets aside and fixes its own file
        if name in ("disk.files", "config.generate") or name.startswith("ledger."):
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
        "nexus_daemon.lsp.convert",
        "nexus_daemon.protocol",
        "typing",
        "collections",
        "os.path",
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
def test_no_module_grows_past_what_a_reader_holds(package: Path) -> None:
    long = {
        name: count
        for name, path, _ in modules(package)
        if (count := len(path.read_text().splitlines())) > MAX_LINES
    }
    assert long == {}


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
