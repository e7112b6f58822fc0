"""The folders, the measures and the promises of `benchmarks/agents`."""

import sys
from pathlib import Path

import pytest

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.agents import report, runner, targets, workspace
from benchmarks.agents.measures import Rounds, Spawning
from benchmarks.agents.runner import Outcome
from benchmarks.agents.worker import DIRECTORIES, FOLDERS, Many
from benchmarks.conversation.speed import Times

TINY = Rounds(spawns=2, previews=2, folders=3, agents=2)


def times(p95: float) -> Times:
    return Times(10, 1_000.0, p95, 1_000.0, 2 * p95)


def test_a_service_has_three_layers_twenty_skills_and_five_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "REST_S", 0)
    made = workspace.made(tmp_path, 2)
    snapshot = made.load(made.services[1])
    read = [layer.name for layer in snapshot.layers.layers if any(file.text for file in layer.files)]
    assert read == ["defaults", "global", "ancestor:company", "local"]
    assert len(snapshot.layers.skills) == 20
    titles = [line for line in snapshot.prompt.text.splitlines() if line.startswith("# More rules")]
    assert len(titles) == 5
    assert snapshot.problems == ()


def test_everything_is_measured() -> None:
    outcome = runner.run(TINY)
    assert outcome.spawning is not None
    assert outcome.spawning.other.n == TINY.spawns
    assert {way: (each.folders, each.agents, each.spawn.n) for way, each in outcome.many.items()} == {
        FOLDERS: (3, 6, 6),
        DIRECTORIES: (3, 6, 6),
    }
    # the same files are in each prompt, whichever way its agent came to them; only headings differ
    assert outcome.many[FOLDERS].text == pytest.approx(outcome.many[DIRECTORIES].text, rel=0.05)
    verdicts = list(targets.verdicts(outcome))
    assert "not run" not in {verdict.result for verdict in verdicts}
    text = report.markdown("today agents", {"CPU": "one"}, verdicts, outcome)
    assert "| 3 × 2, directories of one folder" in text


def test_promises() -> None:
    many = Many(folders=200, agents=1_000, seconds=10.5, loading=1.0, spawn=times(1), kilobytes=60, text=1)
    outcome = Outcome(Spawning(times(19_000), times(20_001), times(1)), {FOLDERS: many})
    found = {verdict.promise: (verdict.value, verdict.result) for verdict in targets.verdicts(outcome)}
    assert found == {
        "spawn in the workspace folder, p95": (19.0, "pass"),
        "spawn in another directory, p95": (20.001, "MISS"),
        "spawn by a daemon, durable, p95": (None, "not run"),
        "load and spawn 200 × 5, a pool each": (10.5, "MISS"),
        "memory of each of 200 × 5, a pool each": (60, "pass"),
        "load and spawn many, directories of one folder": (None, "not run"),
        "memory of each of many, directories of one folder": (None, "not run"),
        "preview of a folder, p95": (None, "not run"),
        "preview as an agent, p95": (None, "not run"),
        "the first time, which makes it, p95": (None, "not run"),
        "preview by a daemon, a folder, p95": (None, "not run"),
        "preview by a daemon, an agent, p95": (None, "not run"),
        "preview by a daemon, not started, p95": (None, "not run"),
        "the first time by a daemon, p95": (None, "not run"),
    }
