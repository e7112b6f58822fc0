"""`nexus explain`: what an assistant does with a call in a folder, by which rule."""

import json
from pathlib import Path

import pytest

from support.commands import output_of, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/a/.claude/settings.json
{
  "permissions": {
    "allow": ["Bash(npm run *)", "Bash(rm *)"],
    "deny": ["Bash(rm -rf *)", "Read(./.env)"]
  }
}
//- /home/a/deploy.sh
#!/bin/sh
npm run build && git push
rm -rf dist
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


def explained(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    folder = tree.path("/home/a")
    text = output_of(tree, capsys, "explain", "--folder", folder, "--for", "claude-code", *arguments)
    return "\n".join(line.strip() for line in text.splitlines()[1:])


def test_a_call_has_its_verdict_its_rule_and_what_that_does_not_stop(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = "~/a/.claude/settings.json"
    assert explained(tree, capsys, "Bash(npm run x)") == (
        f"allowed  `Bash(npm run *)` allows it.\n{settings}:3: allow Bash(npm run *) (decides)"
    )
    assert explained(tree, capsys, "git push") == "asks     No rule allows `git push`."
    denied = explained(tree, capsys, "Read(.env)").splitlines()
    assert denied[:2] == ["denied   `Read(./.env)` denies it.", f"{settings}:4: deny Read(./.env) (decides)"]
    assert "does not stop" in denied[2]


def test_each_command_of_a_script_is_explained(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    lines = explained(tree, capsys, "--file", tree.path("/home/a/deploy.sh")).splitlines()
    verdicts = [line for line in lines if line.startswith(("allowed", "asks", "denied"))]
    assert verdicts == ["asks     npm run build && git push", "denied   rm -rf dist"]


def test_json_is_the_result_of_the_request(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    text = output_of(
        tree, capsys, "explain", "--folder", tree.path("/home/a"), "--format", "json", "rm -rf x"
    )
    answer, *others = json.loads(text)["answers"]
    verdicts = {each["assistant"]: each["verdict"] for each in others}
    assert verdicts == {"codex": "asks", "opencode": "allowed", "gemini": "asks"}
    assert (answer["assistant"], answer["verdict"], answer["part"]) == ("claude-code", "denied", "rm -rf x")
    decides, shadowed = answer["chain"][0], answer["chain"][1:]
    assert (decides["value"], decides["wins"], decides["range"]["start"]["line"]) == (
        "deny Bash(rm -rf *)",
        True,
        3,
    )
    assert {link["value"] for link in shadowed} == {"allow Bash(rm *)"}


def test_a_file_that_counts_for_nothing_is_named(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    Path(tree.path("/home/a/.claude/settings.json")).write_text(
        '{"permissions": {"deny": ["Read(.env)"]}, "model": 5}'
    )
    verdict, note = explained(tree, capsys, "Read(.env)").splitlines()
    assert verdict.startswith("allowed ")
    assert note.startswith("Nothing of ") and note.endswith("settings.json counts: `nexus check` says why.")


def test_each_program_names_its_own_rule_and_what_that_does_not_stop(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {
        "opencode.json": '{"permission": {"bash": {\n"git *": "allow",\n"git push*": "deny"}}}',
        ".gemini/settings.json": '{"tools": {\n"allowed": ["run_shell_command(git)"]}}',
        "../.codex/rules/a.rules": '# mine\nprefix_rule(["git", "push"], "forbidden")\n',
    }
    for name, text in files.items():
        path = Path(tree.path("/home/a")) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    text = output_of(tree, capsys, "explain", "--folder", tree.path("/home/a"), "git push && ls")
    lines = [line.strip() for line in text.splitlines()]
    assert "~/.codex/rules/a.rules:2: deny git push (decides)" in lines
    assert "~/a/opencode.json:3: deny bash git push* (decides)" in lines
    assert "~/a/.gemini/settings.json:2: deny tools.allowed has no other command (decides)" in lines
    assert sum("does not stop" in line for line in lines) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ([], 2, "name a call"),
        (["ls", "--file", "x"], 2, "name a call"),
        ([" "], 1, "Name a call"),
        (["--file", "missing.sh"], 1, "missing.sh"),
        (["ls", "--folder", "missing"], 2, "missing does not exist"),
    ],
)
def test_wrong_usage_says_what_is_right(
    tree: Fixture, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, words: str
) -> None:
    assert words in output_of(tree, capsys, "explain", *arguments, code=code)
