"""`nexus tokens --accuracy`: how wrong our counts have been."""

import json
import re
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from nexus_context.conversation.message import Message
from nexus_context.ledger import open_ledger
from nexus_context.ledger.records import Counted, NewTurn
from nexus_context.tokens.correction import UsageReport
from nexus_daemon.cli import main

TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:[\d.]+Z)?|\d{4}-\d\d-\d\d")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NEXUS_HOME", raising=False)


@pytest.fixture
def _reports(tmp_path: Path) -> None:
    ledger = open_ledger(str(tmp_path / "ledger.db"))
    figures = [("claude", 1180 + 10 * at) for at in range(9)] + [("gpt-5", 1000), ("", 1010)]
    for number, (family, reported) in enumerate(figures):
        report = UsageReport(family, reported=reported, estimated=1000, shown=1000)
        messages = (Counted(Message("user", "Hello"), 1),)
        ledger.append("/work", f"s{number}", NewTurn(messages=messages, counter="c", report=report))
    ledger.close()


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(["tokens", *arguments]) == code
    printed = capsys.readouterr()
    return TIME.sub("<time>", printed.out + printed.err)


@pytest.mark.usefixtures("_reports")
def test_a_row_for_each_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--accuracy") == snapshot("""\
                                                                             \n\
  models   samples   factor   error     p90   corrected    p90   since       \n\
 ─────────────────────────────────────────────────────────────────────────── \n\
  others       1/1        –    1.0%    1.0%           –      –   <time>  \n\
  claude       9/9     1.22   18.0%   20.6%        1.7%   3.4%   <time>  \n\
  gpt-5        1/1        –    0.0%    0.0%           –      –   <time>  \n\
                                                                             \n\
""")
    families = json.loads(run(capsys, "--accuracy", "--json"))["families"]
    assert families[1] == snapshot(
        {
            "family": "claude",
            "conversations": 9,
            "requests": 9,
            "factor": 1.22,
            "uncorrected": {"medianPercent": 18.0, "p90Percent": 20.6},
            "corrected": {"medianPercent": 1.7, "p90Percent": 3.4},
            "since": "<time>",
        }
    )


def test_nothing_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--accuracy") == snapshot(
        "No request can be compared with a provider's count yet. Sessions of Claude Code, Codex and opencode "
        "that nexus sessions keep reads count once they have grown by 2,000 tokens.\n"
    )
    assert json.loads(run(capsys, "--accuracy", "--json")) == {"families": []}


@pytest.mark.parametrize("arguments", [[], ["--json"], ["--accuracy", "x.md"], ["--json", "x.md"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "see nexus tokens --help" in run(capsys, *arguments, code=2)
