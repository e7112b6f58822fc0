"""`nexus show --agent`: what an agent would see, and what another does not."""

from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from support.commands import output_of, use_home
from support.fixture import Fixture, write_fixture

FIXTURE = """
//- /home/.nexus3/NEXUS.md
Rules of the user.
//- /home/a/.nexus3/NEXUS.md
Rules of the project.
//- /home/a/.nexus3/SOUL.md
Soul of the project.
//- /home/a/.nexus3/AGENT.writer.md
You write.
//- /home/a/.nexus3/config.json
{"provider": {"model": "gpt-4o"}, "agents": {"api": {"cwd": "api", "task": "Fix the API."}}}
//- /home/a/api/AGENTS.md
Rules of the API.
//- /home/a/api/.nexus3/SOUL.md
Soul of the API.
//- /home/other/x.txt
"""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    use_home(monkeypatch, tmp_path)
    return write_fixture(FIXTURE, tmp_path)


def check(tree: Fixture, capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What `nexus show /home/a` prints, the root's path left out."""
    given = [one.replace("{root}", tree.root) for one in arguments]
    shown = output_of(tree, capsys, "show", tree.path("/home/a"), *given, code=code)
    assert "\x1b" not in shown
    return shown


def test_an_agent_of_the_settings(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = check(tree, capsys, "--agent", "api")
    assert shown.startswith("## Subagent Configuration\nSource: /home/a/api/AGENTS.md\n\nRules of the API.\n")
    places = [shown.index(one) for one in ("Soul of the project.", "Rules of the user.", "Fix the API.")]
    assert places == sorted(places)
    assert "Soul of the API." not in shown
    assert "Soul of the API." in check(tree, capsys, "--agent", "api", "--role", "manager")
    assert "Find it." in check(tree, capsys, "--agent", "api", "--task", "Find it.")
    assert "## Subagent Configuration" not in check(
        tree, capsys, "--agent", "api", "--folder", "{root}/home/a"
    )


def test_an_agent_with_a_definition_of_its_own(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert "You write." in check(tree, capsys, "--agent", "writer")
    assert "AGENT.writer.md" in check(tree, capsys, "--agent", "writer", "--layers")
    assert "Subagent" in check(tree, capsys, "--agent", "api", "--tokens")
    assert '"systemPrompt"' in check(tree, capsys, "--agent", "api", "--format", "json")
    assert "── /home/a/api/AGENTS.md:1" in check(tree, capsys, "--agent", "api", "--source")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--agent", "nobody"], "nexus show: There is no agent 'nobody': config.json does not define it"),
        (["--folder", "{root}/home/none"], "/home/none, does not exist"),
        (["--folder", "{root}/home/other"], "/home/other, is outside every workspace folder"),
        (["--agent", "api", "--diff", "nobody"], "There is no agent 'nobody'"),
        (["--agent", "../x"], "'../x' is not a valid agent name"),
    ],
)
def test_what_cannot_be_shown(
    tree: Fixture, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert said in check(tree, capsys, *arguments, code=1)


def test_what_another_does_not_see(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    shown = check(tree, capsys, "--agent", "api", "--role", "manager", "--diff", "main").splitlines()
    heads = [shown.index(one) for one in ("Only api sees:", "Only main sees:", "Different:", "--- main")]
    only = [
        [line.split(maxsplit=1) for line in shown[start:end] if line.startswith("  ")]
        for start, end in pairwise(heads[:3])
    ]
    assert {"/home/a/api/AGENTS.md", "/home/a/api/.nexus3/SOUL.md", "Task"} <= {name for _, name in only[0]}
    assert "/home/a/.nexus3/SOUL.md" in {name for _, name in only[1]}
    assert all(int(count) > 0 for rows in only for count, _ in rows)
    cut = heads[3]
    assert shown[cut : cut + 2] == ["--- main", "+++ api"]
    assert {"+Rules of the API.", "-Soul of the project.", "+Soul of the API."} <= set(shown[cut:])
    assert check(tree, capsys, "--diff", "main") == "main and main see the same.\n"
    assert "+++ writer" in check(tree, capsys, "--agent", "writer", "--diff", "api")


def test_an_agent_below_another_of_the_settings(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    config = Path(tree.path("/home/a/.nexus3/config.json"))
    config.write_text('{"agents": {"api": {"cwd": "api", "role": "manager"}, "doc": {"parent": "api"}}}')
    shown = check(tree, capsys, "--agent", "doc")
    assert shown.startswith("## Parent Agent Configuration (api)\nSource: /home/a/api/AGENTS.md")
    assert 'Report to "api" only.' in shown
    config.write_text('{"agents": {"one": {"parent": "two"}, "two": {"parent": "one"}}}')
    said = (
        "nexus show: Agent 'two' would be below itself: two → one → two. Correct `parent` in /home/a/.nexus3/"
    )
    assert said in check(tree, capsys, "--agent", "two", code=1)


def test_the_same_agent_elsewhere(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--folder", "{root}/home/a", "--role", "manager", "--task", "Find\nit.", "--diff", "api"]
    shown = check(tree, capsys, "--agent", "api", *asked).splitlines()
    name = "api with --folder /home/a --role manager --task"
    assert [line for line in shown if line.startswith("Only ")] == [f"Only {name} sees:", "Only api sees:"]
    assert {"--- api", f"+++ {name}"} <= set(shown)
    one = check(tree, capsys, "--agent", "api", "--role", "worker", "--diff", "api")
    assert one == "api with --role worker and api see the same.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--agent", "main", "--role", "worker"], "--agent main is the folder itself: leave out --role"),
        (
            ["--agent", "main", "--folder", "x", "--task", "y"],
            "leave out --folder, --task, or name another",
        ),
        (["--diff", "api", "--format", "json"], "--diff compares two prompts: leave out --format."),
        (
            ["--diff", "api", "--tokens", "--source"],
            "--diff compares two prompts: leave out --tokens, --source.",
        ),
        (
            [
                "--diff",
                "api",
                "--layers",
                "--message",
                "x",
                "--skill",
                "y",
                "--budget",
                "9",
                "--strategy",
                "smart",
            ],
            "leave out --layers, --message, --skill, --budget, --strategy.",
        ),
        (
            ["--diff", "api", "--messages", "x", "--conversation", "1", "--no-folder"],
            "leave out --messages, --conversation, --no-folder.",
        ),
    ],
)
def test_options_that_do_not_go_together(
    tree: Fixture, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    shown = check(tree, capsys, *arguments, code=2)
    assert shown.startswith("nexus show: ")
    assert said in shown


def test_main_is_the_folder(tree: Fixture, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(tree, capsys, "--agent", "main") == check(tree, capsys)
    assert "+++ main" in check(tree, capsys, "--agent", "main", "--diff", "api", "--model", "gpt-4o")


def test_a_turn_of_an_agent_is_named_as_by_a_daemon(
    tree: Fixture, capsys: pytest.CaptureFixture[str]
) -> None:
    def named(*arguments: str) -> tuple[object, ...]:
        made = msgspec.json.decode(check(tree, capsys, *arguments, "--format", "json"))
        return made["session"], made.get("agent"), made["role"]

    assert named() == ("main", None, "unified")
    assert named("--agent", "main") == named()
    assert named("--agent", "api") == ("agent:api", "api", "worker")
    assert named("--role", "manager") == ("agent:agent", "agent", "manager")
