"""Commands and the picked model: `nexus show` shows what the editor shows, `nexus check` says what it
counts.
"""

from pathlib import Path

import pytest

from nexus_context.config.picked_model import ModelChoice
from nexus_context.ledger import open_ledger
from nexus_context.ledger.location import workspace_of
from nexus_context.ledger.records import SessionOptions
from nexus_daemon.cli import main
from support.commands import use_home
from support.fixture import Fixture, write_fixture

LONG = "Always write the tests first.\n" * 5_000  # 30,000 tokens
PICKED = ModelChoice("house-model", 60_000)
NOTE = "nexus show: for the model house-model, last picked for this folder; --model names another.\n"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_home(monkeypatch, tmp_path)
    return tmp_path / "state"


def folder(root: Path, config: str) -> Fixture:
    return write_fixture(f"//- /home/a/.nexus3/config.json\n{config}\n//- /home/a/AGENTS.md\n{LONG}", root)


def pick(tree: Fixture, choice: ModelChoice) -> None:
    ledger = open_ledger()
    ledger.options.keep(workspace_of(tree.path("/home/a")), "main", SessionOptions(choice))
    ledger.close()


@pytest.mark.parametrize(
    ("config", "choice", "arguments", "title", "note"),
    [
        ("{}", PICKED, (), "of 58,000 tokens for house-model", NOTE),
        ("{}", None, (), "of ≈126,000 tokens (no model is set)", ""),
        ("{}", ModelChoice(), (), "of ≈126,000 tokens (no model is set)", ""),
        ("{}", PICKED, ("--model", "o3"), "of 198,000 tokens for o3", ""),
        ('{"provider": {"model": "o3"}}', PICKED, (), "of 58,000 tokens for house-model", NOTE),
        ('{"provider": {"name": "openai", "model": "o3"}}', PICKED, (), "of 198,000 tokens for o3", ""),
    ],
)
def test_show_is_for_the_model_that_the_editor_shows(
    tmp_path: Path,
    state: Path,
    capsys: pytest.CaptureFixture[str],
    config: str,
    choice: ModelChoice | None,
    arguments: tuple[str, ...],
    title: str,
    note: str,
) -> None:
    tree = folder(tmp_path, config)
    if choice is not None:
        pick(tree, choice)
    assert main(["show", tree.path("/home/a"), "--tokens", *arguments]) == 0
    shown = capsys.readouterr()
    assert title in shown.out.splitlines()[0]
    notes = shown.err.splitlines(keepends=True)
    whose = "nexus show: this is Nexus's own prompt. Codex: "  # AGENTS.md is there
    assert "".join(line for line in notes if not line.startswith(whose)) == note
    assert state.exists() is (choice is not None)  # nothing is begun for it


def test_show_without_a_ledger_that_can_be_read(
    tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = folder(tmp_path, "{}")
    pick(tree, PICKED)
    (state / "ledger.db").write_bytes(b"not a ledger" * 100)
    assert main(["show", tree.path("/home/a"), "--tokens"]) == 0
    shown = capsys.readouterr()
    assert "(no model is set)" in shown.out.splitlines()[0]


@pytest.mark.parametrize(
    ("config", "last"),
    [
        ("{}", "The window is a guess: no model is set. "),
        ('{"provider": {"model": "o3"}}', "The window is that of o3, the model of the settings. "),
    ],
)
def test_check_goes_by_the_files_alone_and_says_so(
    tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str], config: str, last: str
) -> None:
    tree = folder(tmp_path, config)
    outputs = []
    for choice in (None, PICKED):
        if choice is not None:
            pick(tree, choice)
        assert main(["check", tree.path("/home/a")]) == 1  # Codex cuts so long a file
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    assert outputs[0].splitlines()[-1] == last + "An editor counts for the model that is picked there."
