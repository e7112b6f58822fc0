"""The folders and the measures of `benchmarks/agents`."""

import sys
from pathlib import Path

import pytest

# a test's own folder is on the path, the repository's root need not be
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.agents import measures, workspace
from benchmarks.promises import Benchmark, Run, measure


def test_a_service_has_three_layers_twenty_skills_and_five_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "REST_S", 0)
    company = workspace.write(tmp_path, 2)
    snapshot = company.load(company.services[1])
    read = [layer.name for layer in snapshot.layers.layers if any(file.text for file in layer.files)]
    assert read == ["defaults", "global", "ancestor:company", "local"]
    assert len(snapshot.layers.skills) == 20
    titles = [line for line in snapshot.prompt.text.splitlines() if line.startswith("# More rules")]
    assert len(titles) == 5
    assert snapshot.problems == ()
    files = [
        path
        for path in company.home.rglob("*.*")
        if path.is_file() and company.services[0] not in path.parents
    ]
    assert company.read_files(company.services[1]) == sum(path.stat().st_size for path in files)


@pytest.mark.parametrize("benchmark", [measures.library, measures.many])
def test_everything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, benchmark: Benchmark
) -> None:
    monkeypatch.setattr(workspace, "REST_S", 0)
    monkeypatch.setattr(Run, "pick", lambda self, *, full, quick: 3)
    rows = list(measure(benchmark, Run(tmp_path, is_quick=True)))
    assert [row.reason for row in rows] == [""] * len(benchmark.promises)
