"""Files that take much of the model's window: told with their share, never cut."""

import time
from pathlib import Path

import pytest

from nexus_context.errors import Severity
from nexus_context.prompt import size
from nexus_context.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative

FOLDER = "/home/c/a"
LINE = "Always write the tests first.\n"  # 30 characters, 7.5 tokens by the estimate
CONFIG = '{"provider": {"model": "claude-sonnet-4-20250514"}}'  # a window of 200,000


def check(
    root: Path, lengths: dict[str, int], expected: dict[str, list[str]], *, config: str = CONFIG
) -> tuple[Fixture, Snapshot]:
    """Files of so many lines; what is said of each, as far as it is in the message."""
    text = f"//- {FOLDER}/.nexus3/config.json\n{config}\n"
    text += "".join(f"//- {path}\n{LINE * lines}" for path, lines in lengths.items())
    fixture = write_fixture(text, root)
    snapshot = load_folder(fixture, FOLDER)
    problems = [problem for problem in snapshot.problems if problem.code == "prompt.size"]
    assert [relative(fixture, problem.path) for problem in problems] == list(expected)
    for problem, words in zip(problems, expected.values(), strict=True):
        assert problem.severity is Severity.WARNING
        assert [word for word in words if word not in problem.message] == []
    # nothing is cut
    assert snapshot.prompt.text.count(LINE.strip()) == sum(lengths.values())
    return fixture, snapshot


@pytest.mark.parametrize(
    ("lengths", "expected", "config"),
    [
        ({f"{FOLDER}/AGENTS.md": 2_600}, {}, CONFIG),
        (
            {f"{FOLDER}/AGENTS.md": 10_240},  # 300 KiB
            {f"{FOLDER}/AGENTS.md": ["AGENTS.md takes about 76,800 tokens", "38% of the window of 200,000"]},
            CONFIG,
        ),
        (  # where the model is not known, the usual window
            {f"{FOLDER}/AGENTS.md": 10_240},
            {f"{FOLDER}/AGENTS.md": ["60% of the window of 128,000"]},
            "{}",
        ),
        (
            {f"{FOLDER}/AGENTS.md": 200},
            {f"{FOLDER}/AGENTS.md": ["about 1,500 tokens", "15% of the window of 10,000"]},
            '{"context": {"max_tokens": 10000}}',
        ),
        (  # none of them alone, all together; the longest is named
            {
                f"{FOLDER}/AGENTS.md": 2_400,
                f"{FOLDER}/.nexus3/SOUL.md": 2_500,
                "/home/c/NEXUS.md": 2_300,
            },
            {f"{FOLDER}/.nexus3/SOUL.md": ["The 3 files", "about 54,000 tokens", "27% of the window"]},
            CONFIG,
        ),
        (  # one alone is enough to say
            {f"{FOLDER}/AGENTS.md": 6_000, "/home/c/NEXUS.md": 2_300},
            {f"{FOLDER}/AGENTS.md": ["22%"]},
            CONFIG,
        ),
    ],
)
def test_a_long_file_is_told(
    tmp_path: Path, lengths: dict[str, int], expected: dict[str, list[str]], config: str
) -> None:
    check(tmp_path, lengths, expected, config=config)


def test_an_import_is_a_file_of_its_own(tmp_path: Path) -> None:
    text = (
        f"//- {FOLDER}/.nexus3/config.json\n{CONFIG}\n//- {FOLDER}/NEXUS.md\n@long.md\n//- {FOLDER}/long.md\n"
    )
    fixture = write_fixture(text + LINE * 4_000, tmp_path)
    found = [problem for problem in load_folder(fixture, FOLDER).problems if problem.code == "prompt.size"]
    assert [relative(fixture, problem.path) for problem in found] == [f"{FOLDER}/long.md"]


def test_the_warning_moves_with_the_model_and_the_text(tmp_path: Path) -> None:
    path, config = f"{FOLDER}/AGENTS.md", f"{FOLDER}/.nexus3/config.json"
    fixture, before = check(tmp_path, {path: 4_000}, {path: ["15%"]})
    wide = '{"provider": {"model": "gpt-4.1"}}'  # a window of more than a million
    now = load_folder(fixture, FOLDER, overlays={config: wide}, previous=before)
    assert "prompt.size" not in [problem.code for problem in now.problems]
    now = load_folder(fixture, FOLDER, overlays={path: LINE}, previous=before)
    assert "prompt.size" not in [problem.code for problem in now.problems]


def test_short_files_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "_estimate", lambda _: pytest.fail("counted"))
    check(tmp_path, {f"{FOLDER}/AGENTS.md": 900, "/home/c/NEXUS.md": 500}, {})


def test_typing_in_a_long_file_stays_quick(tmp_path: Path) -> None:
    path = f"{FOLDER}/AGENTS.md"
    fixture, snapshot = check(tmp_path, {path: 10_240}, {path: ["38%"]})
    best = 1.0
    for number in range(5):
        began = time.perf_counter()
        overlays = {path: LINE * 10_240 + str(number)}
        changed = frozenset([fixture.path(path)])
        snapshot = load_folder(fixture, FOLDER, overlays=overlays, previous=snapshot, changed=changed)
        best = min(best, time.perf_counter() - began)
    assert best < 0.25
