"""Nexus imports nothing from the folder that it is started in, however it is started."""

import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest

from nexus_daemon import __main__ as entry
from support.client import Client
from support.editor import environ

PLANTED = "import os\nos.write(2, b'PLANTED ' + __name__.encode() + b'\\n')\nos._exit(66)\n"
SCRIPT = str(Path(sys.executable).with_name("nexus.exe" if os.name == "nt" else "nexus"))


def _imported_first() -> set[str]:
    """What `python -m` has imported when the first line of the module runs."""
    with tempfile.TemporaryDirectory() as empty:
        (Path(empty) / "probe.py").write_text("import sys\nprint(*sys.modules)\n", encoding="utf-8")
        command = [sys.executable, "-m", "probe"]
        done = subprocess.run(command, cwd=empty, capture_output=True, text=True, check=True)
        return {name.partition(".")[0] for name in done.stdout.split()}


# without -P these, and Nexus itself, may come from the folder before a line of ours runs
RUNPY = {*_imported_first(), "nexus_daemon"}
# whoever has the folder in PYTHONPATH reads these at start-up, and the script itself reads Nexus
SITE = {"encodings", "sitecustomize", "usercustomize", "_distutils_hack", "nexus_daemon"}

MODULE = [sys.executable, "-m", "nexus_daemon"]
SAFE_MODULE = [sys.executable, "-P", "-m", "nexus_daemon"]
ISOLATED = [sys.executable, "-I", "-m", "nexus_daemon"]  # what the VS Code extension starts
COMMAND = [SCRIPT]  # what a shell starts
NEOVIM = Path(__file__).parents[2] / "editors" / "neovim" / "lsp" / "nexus.lua"


def _neovim() -> dict[str, str]:
    """The variables that the Neovim plugin sets for the command."""
    table = re.search(r"cmd_env = \{(.*?)\}", NEOVIM.read_text(encoding="utf-8"))
    assert table is not None
    return dict(re.findall(r"(\w+) = '(.*?)'", table[1]))


WAYS: dict[str, tuple[list[str], dict[str, str], set[str]]] = {
    "python -m": (MODULE, {}, RUNPY),
    "python -m, PYTHONSAFEPATH": (MODULE, {"PYTHONSAFEPATH": "1"}, set()),
    "python -P -m": (SAFE_MODULE, {}, set()),
    "python -I -m": (ISOLATED, {"PYTHONPATH": os.pathsep}, set()),
    "nexus": (COMMAND, {}, set()),
    "Neovim, PYTHONPATH is the folder": (COMMAND, {"PYTHONPATH": "{work}", **_neovim()}, set()),
    "nexus, PYTHONPATH ends with a separator": (COMMAND, {"PYTHONPATH": f"/nowhere{os.pathsep}"}, SITE),
    "nexus, PYTHONPATH is one separator": (COMMAND, {"PYTHONPATH": os.pathsep}, SITE),
    "nexus, PYTHONPATH is a dot": (COMMAND, {"PYTHONPATH": "."}, SITE),
    "nexus, PYTHONPATH is above": (COMMAND, {"PYTHONPATH": os.path.join("..", "work")}, SITE),
    "nexus, PYTHONPATH is the folder": (COMMAND, {"PYTHONPATH": "{work}"}, SITE),
    "nexus, PYTHONPATH is in the folder": (COMMAND, {"PYTHONPATH": os.path.join("{work}", "src")}, SITE),
}


def modules() -> set[str]:
    """Everything that could be planted: the standard library, and all packages that are installed."""
    site = Path(subprocess.__file__).parent, *(Path(entry) for entry in sys.path if "site-packages" in entry)
    installed = {each.stem.partition(".")[0] for place in site[1:] for each in place.glob("[a-z_]*")}
    return {name for name in {*sys.stdlib_module_names, *installed} if name.isidentifier()}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose every module ends the process; so does each below `src`, and each package `nexus_*`."""
    work = tmp_path_factory.mktemp("planted") / "work"
    names = {*modules(), "nexus_context", "nexus_daemon", "sitecustomize", "usercustomize"} - {
        "sys",
        "builtins",
    }
    for place in (work, work / "src"):
        place.mkdir(parents=True)
        for name in names:
            (place / f"{name}.py").write_text(PLANTED, encoding="utf-8")
    return work


def check(planted: Path, way: str, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    command, variables, allowed = WAYS[way]
    hidden = _hide(planted, allowed)
    try:
        return subprocess.run(
            [*command, *arguments],
            cwd=planted,
            env=_environment(planted, variables),
            capture_output=True,
            timeout=60,
            check=False,
        )
    finally:
        _show(hidden)


def _environment(planted: Path, variables: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    given = {name: value.format(work=planted) for name, value in variables.items()}
    return inherited | environ(planted.parent / "home") | given


def _hide(planted: Path, names: set[str]) -> list[Path]:
    """Take the modules away that no program of ours can keep off."""
    files = [place / f"{name}.py" for place in (planted, planted / "src") for name in names]
    hidden = [each for each in files if each.exists()]
    for each in hidden:
        each.rename(each.with_suffix(".off"))
    return hidden


def _show(hidden: list[Path]) -> None:
    for each in hidden:
        each.with_suffix(".off").rename(each)


@pytest.mark.parametrize(
    ("way", "arguments"),
    [*((way, "show .") for way in WAYS), *(("python -m", each) for each in ("check .", "sessions list"))],
)
def test_a_command_imports_nothing_of_the_folder(planted: Path, way: str, arguments: str) -> None:
    done = check(planted, way, *arguments.split())
    assert b"PLANTED" not in done.stderr + done.stdout
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize("way", WAYS)
def test_a_daemon_imports_nothing_of_the_folder(planted: Path, way: str) -> None:
    command, variables, allowed = WAYS[way]
    hidden = _hide(planted, allowed)
    environment = _environment(planted, {"PYTHONPATH": "", "PYTHONSAFEPATH": "", **variables})
    try:
        with Client([*command, "serve"], cwd=planted, env=environment) as client:
            client.initialize(planted.as_uri())
            place = {"workspaceFolder": planted.as_uri()}
            said = [{"role": "user", "content": "漢字 and words"}]
            client.request("nexus/session/append", {**place, "messages": said})
            requests = {
                "context/assemble": {"message": "Hello"},
                "session/search": {"query": "words"},
                "session/export": {},
            }
            for method, params in requests.items():
                client.request(f"nexus/{method}", {**place, **params})
            spot = {"line": 0, "character": 0}
            action = {
                "textDocument": {"uri": (planted / "NEXUS.md").as_uri()},
                "range": {"start": spot, "end": spot},
                "context": {"diagnostics": []},
            }
            client.request("textDocument/codeAction", action)
            client.request("shutdown")
            client.notify("exit")
            assert client.wait_exit() == 0
            assert "PLANTED" not in client.stderr
    finally:
        _show(hidden)


def test_planted_modules_would_be_noticed(planted: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import yaml"],
        cwd=planted,
        env=_environment(planted, {}),
        capture_output=True,
        timeout=60,
        check=False,
    )
    # which module comes first depends on what this Python imports for `-c`
    assert (done.returncode, done.stderr.split()[0]) == (66, b"PLANTED")


@pytest.mark.parametrize(
    ("before", "python_path", "left"),
    [
        ([""], "", []),
        (["."], "", []),
        (["{here}"], "", []),
        (["{here}/src", "{here}/a/b"], "", []),
        (["{here}-other", "/opt/lib"], "", ["{here}-other", "/opt/lib"]),
        (["/opt/lib", "{above}"], "/opt/lib:..", ["/opt/lib"]),
        (["{above}"], "{above}", ["{above}"]),  # it is named as it is, and is not the working directory
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths as of POSIX")
def test_what_is_left(
    before: list[str], python_path: str, left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    names = {"here": str(here), "above": str(tmp_path)}
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", python_path.format(**names))
    library = os.path.dirname(os.__file__)
    behind = [library, str(here), entry.__file__.rpartition("/nexus_daemon/")[0]]
    monkeypatch.setattr(sys, "path", [*(each.format(**names) for each in before), *behind])
    entry.clean_path()
    assert sys.path == [*(each.format(**names) for each in left), *behind]


def test_nexus_itself_stays_importable(tmp_path: Path) -> None:
    """Started in the directory that holds the package, it is imported from there, and nothing else is."""
    own = Path(entry.__file__).parents[1]
    code = textwrap.dedent("""
        import sys
        sys.path.insert(0, "")
        from nexus_daemon import __main__ as entry
        sys.path = [entry for entry in sys.path if not entry.endswith("daemon")]
        entry.clean_path()
        print(sys.path[-1])
        import nexus_daemon.process.version
    """)
    done = subprocess.run([sys.executable, "-c", code], cwd=own, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(own)
