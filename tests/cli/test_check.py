"""`nexus check`: the frames of problems, exit codes, and the formats for machines."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.cli import main
from support.commands import run_nexus, use_home
from support.fixture import Fixture, write_fixture

BROKEN = """
//- /home/a/.nexus3/config.json
{
  "_comment": "the example of the documentation",
  "_comment3": "",
  "_comment4": "",
  "_comment5": "",
  "_comment6": "",
  "_comment7": "",
  "_comment8": "",
  "_comment9": "",
  "_comment10": "",
  "_comment11": "",
  "_comment12": "",
  "_comment13": "",
  "model": "claude-3",
  trailing_comma: true,
}
"""
MIXED = """
//- /home/a/.nexus3/config.json
{
  "permissions": {"level": "trusted"},
  "tools": {"summery": true}
}
//- /home/a/.nexus3/mcp.json
{"servers": [{"name": "one", "command": ["npx", "-y", "some-package"]}]}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "home").mkdir()
    use_home(monkeypatch, tmp_path)


def check(
    fixture: str, root: Path, capsys: pytest.CaptureFixture[str], *arguments: str, at: str = "/home/a"
) -> tuple[int, str]:
    """Exit code and output of `nexus check`, the root's path left out."""
    tree = write_fixture(fixture, root)
    return run_nexus(capsys, "check", tree.path(at), *arguments, root=tree.root)[:2]


def test_the_frame_of_a_syntax_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(BROKEN, tmp_path, capsys) == snapshot(
        (
            1,
            """\
Configuration Error: Invalid JSON in /home/a/.nexus3/config.json

  Line 15, Column 3: Expecting property name enclosed in double quotes: write "trailing_comma".

  14 |   "model": "********",
  15 |   trailing_comma: true,
     |   ^
  16 | }

Fix the JSON syntax error and try again.

~/a/.nexus3/config.json:15:3 error [json.unquoted-key]

Configuration Error: Invalid JSON in /home/a/.nexus3/config.json

  Line 15, Column 23: Illegal trailing comma before end of object: remove it.

  14 |   "model": "********",
  15 |   trailing_comma: true,
     |                       ^
  16 | }

Fix the JSON syntax error and try again.

~/a/.nexus3/config.json:15:23 error [json.trailing-comma]

Configuration Error: Invalid setting in /home/a/.nexus3/config.json

  Line 14, Column 3: Unknown key "model" here: it belongs in "provider" or "compaction".

  13 |   "_comment13": "",
  14 |   "model": "********",
     |   ^
  15 |   trailing_comma: true,

Fix the setting and try again.

~/a/.nexus3/config.json:14:3 error [config.unknown-key]

3 errors and 0 warnings in 4 files of 2 layers.
""",
        )
    )


def test_everything_is_reported_not_only_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(MIXED, tmp_path, capsys) == snapshot(
        (
            1,
            """\
Configuration Error: Invalid setting in /home/a/.nexus3/config.json

  Line 3, Column 13: Unknown key "summery" in "tools": did you mean "summary"?

  2 |   "permissions": {"level": "*******"},
  3 |   "tools": {"summery": true}
    |             ^
  4 | }

Fix the setting and try again.

~/a/.nexus3/config.json:3:13 error [config.unknown-key]

Configuration Warning: MCP server in /home/a/.nexus3/mcp.json

  Line 1, Column 56: npx starts whatever version of this package is the newest at that moment. Write the version after its name, such as "@1.2.3".

  1 | {"servers": [{"name": "***", "command": ["***", "**", "some-package"]}]}
    |                                                        ^

~/a/.nexus3/mcp.json:1:56 warning [mcp.unpinned]

1 error and 1 warning in 5 files of 2 layers.
""",  # noqa: E501
        )
    )


@pytest.mark.parametrize(
    ("fixture", "arguments", "code"),
    [
        ("//- /home/a/NEXUS.md\nFine.\n", [], 0),
        ("//- /home/a/main.py\n", [], 0),
        ("//- /home/a/.nexus3/config.json\n{]\n", [], 1),
        ("//- /home/a/NEXUS.md\n@missing.md\n", [], 0),
        ("//- /home/a/NEXUS.md\n@missing.md\n", ["--strict"], 1),
        ("//- /home/.nexus3/config.json\n[]\n//- /home/a/x\n", [], 0),
        ("//- /home/b/x\n", [], 2),
    ],
)
def test_exit_codes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fixture: str, arguments: list[str], code: int
) -> None:
    assert check(fixture, tmp_path, capsys, *arguments)[0] == code


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="links and FIFOs of POSIX")
@pytest.mark.parametrize(
    ("make", "code"),
    [
        (lambda path: path.symlink_to(path.name), 1),
        (lambda path: path.write_text(""), 1),
        (lambda path: os.mkfifo(path), 1),
        (lambda path: path.symlink_to(path.parents[2]), 0),
    ],
    ids=["loop", "file", "FIFO", "leads out"],
)
def test_a_directory_that_nothing_can_be_read_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], object], code: int
) -> None:
    directory = tmp_path / "home/a/.nexus3"
    directory.parent.mkdir()
    make(directory)
    for at in ("/home/a", "/home/a/.nexus3") if code else ("/home/a",):
        found, shown = check("//- /home/a/NEXUS.md\nRules.\n", tmp_path, capsys, at=at)
        assert (found, "in /home/a/.nexus3\n" in shown, "Nothing in here is read: it is" in shown) == (
            code,
            True,
            True,
        )


HERE = """
//- /home/a/.claude/CLAUDE.md
Rules.
//- /home/a/.nexus3/config.json
{"tools": {"summery": true}}
//- /home/a/.vscode/mcp.json
{"servers": {}}
//- /home/a/.mcp.json
{"mcpServers": {}}
//- /home/a/docs/unused.md
Nobody reads this.
//- /home/a/.nexus3/other.json
{]
//- /home/b/.agents/AGENTS.md
@rules/more.md
//- /home/b/.agents/rules/more.md
More.
"""


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/home/a/.claude/CLAUDE.md", 0),
        ("/home/a/.claude", 1),
        ("/home/a/.nexus3/config.json", 1),
        ("/home/a/.nexus3", 1),
        ("/home/a/.vscode/mcp.json", 0),
        ("/home/a/.vscode", 1),
        ("/home/a/.mcp.json", 0),
        ("/home/a/docs/../.mcp.json", 0),
        ("/home/b/.agents/AGENTS.md", 0),
        ("/home/b/.agents", 0),
        ("/home/a/docs/unused.md", 2),
        ("/home/a/.nexus3/other.json", 2),
        ("/home/a/docs", 1),  # a folder below, of which /home/a is an ancestor
    ],
)
def test_a_path_stands_for_the_folder_that_it_belongs_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], path: str, code: int
) -> None:
    assert main(["check", write_fixture(HERE, tmp_path).root + path]) == code
    shown = capsys.readouterr()
    assert ("summery" in shown.out) == (code == 1)
    assert ("nexus check: Nothing was checked: the folder " in shown.err) == (code == 2)


def test_a_wrong_argument_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["check", "--format", "xml"], ["check", "a", "b"], ["chekc"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("at", ["/home/a", "/home/a/.nexus3", "/home/a/.nexus3/config.json"])
def test_a_folder_or_one_of_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str) -> None:
    code, shown = check(BROKEN, tmp_path, capsys, at=at)
    assert (code, shown.count("Configuration Error")) == (1, 3)


def test_the_current_directory_is_the_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = write_fixture(BROKEN, tmp_path)
    monkeypatch.chdir(tree.path("/home/a"))
    assert main(["check"]) == 1
    assert "Line 15, Column 3" in capsys.readouterr().out


def test_levels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = {
        level: check(MIXED, tmp_path, capsys, "--level", level)[1].count("Configuration ")
        for level in ("error", "warning", "information", "hint")
    }
    assert shown["error"] < shown["warning"] <= shown["information"] <= shown["hint"]


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = check(MIXED, tmp_path, capsys, "--format", "json")
    problems = json.loads(shown)["problems"]
    assert code == 1
    assert [(one["severity"], one["code"], one["range"]["start"]) for one in problems] == snapshot(
        [
            (1, "config.unknown-key", {"line": 2, "character": 12}),
            (2, "mcp.unpinned", {"line": 0, "character": 55}),
        ]
    )
    assert problems[0]["uri"] == "file:///home/a/.nexus3/config.json"
    assert all(one["message"] for one in problems)


def test_json_of_nothing_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, shown = check("//- /home/a/NEXUS.md\nFine.\n", tmp_path, capsys, "--format", "json")
    assert (code, json.loads(shown)) == (0, {"problems": []})


@pytest.mark.parametrize("fixture", [MIXED, BROKEN, "//- /home/a/NEXUS.md\nFine.\n"])
def test_sarif(tmp_path: Path, capsys: pytest.CaptureFixture[str], fixture: str) -> None:
    """What the SARIF 2.1.0 schema and GitHub's upload require."""
    log = json.loads(check(fixture, tmp_path, capsys, "--format", "sarif")[1])
    assert (log["version"], log["$schema"].endswith("sarif-2.1.0.json")) == ("2.1.0", True)
    (run,) = log["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "nexus"
    rules = [rule["id"] for rule in driver["rules"]]
    assert len(rules) == len(set(rules))
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note")
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["artifactLocation"] in (
            {"uri": ".nexus3/config.json", "uriBaseId": "%SRCROOT%"},
            {"uri": ".nexus3/mcp.json", "uriBaseId": "%SRCROOT%"},
        )
        region = place["region"]
        assert all(region[key] >= 1 for key in ("startLine", "startColumn", "endLine", "endColumn"))
        start, end = (region["startLine"], region["startColumn"]), (region["endLine"], region["endColumn"])
        assert start <= end
    expected: dict[str, Any] = {MIXED: 2, BROKEN: 3}
    assert len(run["results"]) == expected.get(fixture, 0)


@pytest.mark.parametrize(
    ("here", "root", "own", "above"),
    [
        ("/home/x/a b", "/home/x/a%20b/", ".nexus3/config.json", None),
        ("/home/x", "/home/x/", "a%20b/.nexus3/config.json", ".nexus3/config.json"),
        ("/elsewhere", "/home/x/a%20b/", ".nexus3/config.json", None),
        (None, "/home/x/a%20b/", ".nexus3/config.json", None),
    ],
)
def test_sarif_names_files_relative_to_the_source_root(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    here: str | None,
    root: str,
    own: str,
    above: str | None,
) -> None:
    """The root is the checked folder, or the current directory where that is around it."""
    tree = write_fixture(
        """
        //- /home/x/.nexus3/config.json
        {"a": 1}
        //- /home/x/a b/.nexus3/config.json
        {"b": 1}
        //- /elsewhere/file
        """,
        tmp_path,
    )
    monkeypatch.chdir(tree.path(here) if here else "/")
    main(["check", tree.path("/home/x/a b"), "--format", "sarif"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": f"file://{tree.root}{root}"}}
    places = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]
        for result in run["results"]
        if result["ruleId"] == "config.unknown-key"
    ]
    absolute = {"uri": f"file://{tree.root}/home/x/.nexus3/config.json"}
    assert places == [
        absolute if above is None else {"uri": above, "uriBaseId": "%SRCROOT%"},
        {"uri": own, "uriBaseId": "%SRCROOT%"},
    ]


def test_github(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tree = write_fixture(MIXED, tmp_path)
    monkeypatch.chdir(tree.path("/home/a"))
    main(["check", "--format", "github"])
    error, warning = capsys.readouterr().out.splitlines()
    place, _, message = error.removeprefix("::error ").partition("::")
    assert place.split(",") == [
        "file=.nexus3/config.json",
        "line=3",
        "col=13",
        "endLine=3",
        "endColumn=22",
        "title=config.unknown-key",
    ]
    assert message.startswith('Unknown key "summery"')
    assert warning.startswith("::warning file=.nexus3/mcp.json,line=1,col=56,")


def test_github_escapes_what_could_end_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fixture = '//- /home/a/.nexus3/config.json\n{"50%\\n::error::x": 1}\n'
    for line in check(fixture, tmp_path, capsys, "--format", "github")[1].splitlines():
        assert line.startswith("::error file=")
        assert line.count("::") <= 2 or "::error::x" in line.split("::", 2)[2]


def test_a_secret_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret = "sk-proj-" + "a1B2c3D4" * 5
    server = f'{{"name": "x", "env": {{"OPENAI_API_KEY": "{secret}"}}}}'
    tree = write_fixture(f'//- /home/a/.nexus3/mcp.json\n{{"servers": [{server}]}}\n', tmp_path)
    for form in ("text", "json", "sarif", "github"):
        main(["check", tree.path("/home/a"), "--format", form])
        assert secret not in capsys.readouterr().out


def run(tree: Fixture, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A real process, its output piped, with the user's directory in the fixture."""
    env = {**os.environ, "HOME": tree.path("/home"), "COLUMNS": "100", "TERM": "xterm-256color"}
    return subprocess.run(
        [sys.executable, "-m", "nexus_daemon", *command],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        **options,
    )


def test_a_real_process(tmp_path: Path) -> None:
    tree = write_fixture(BROKEN, tmp_path)
    done = run(tree, "check", cwd=tree.path("/home/a"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "\x1b" not in done.stdout
    assert done.stdout.startswith("Configuration Error: Invalid JSON in ")


def test_a_reader_that_has_seen_enough(tmp_path: Path) -> None:
    tree = write_fixture(MIXED, tmp_path)
    env = {**os.environ, "HOME": tree.path("/home")}
    command = [sys.executable, "-m", "nexus_daemon", "show", tree.path("/home/a"), "--format", "json"]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
