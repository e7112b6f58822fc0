"""The decisions of Codex, opencode and Gemini CLI: as the real programs were seen to decide."""

import json
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from assistants import permission_askers
from assistants.permission_runs import filled
from nexus_context.assistants.permissions.decision import NOT_STARTED, Decision, ExplainedCall
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import MOST_BYTES, Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, Surroundings
from nexus_context.assistants.views.permissions import explain_calls
from nexus_context.errors import RequestError

NAMES = ("codex", "opencode", "gemini")
Row = dict[str, Any]


def read_row(program: str, root: Path, row: Row) -> tuple[Disk, AssistantSettings, dict[str, str]]:
    """The settings of a row in files below `root`, and what its placeholders stand for."""
    places = permission_askers.write_folder(root, row)
    disk = Disk()
    surroundings = Surroundings(places["{work}"], places["{home}"], {"TMPDIR": "/tmp"})
    return disk, PROGRAMS[program].settings(disk, surroundings), places


def decided(program: str, root: Path, settings: dict[str, Any], **call: str) -> Decision:
    row = {"settings": settings, "call": call}
    disk, read, places = read_row(program, root, row)
    return decide(program, disk, read, row, places)


def decide(
    program: str, disk: Disk, settings: AssistantSettings, row: Row, places: dict[str, str]
) -> Decision:
    inputs = json.loads(filled(json.dumps(row["call"]), places))
    reader = PROGRAMS[program].permissions
    if settings.stop is not None:
        return NOT_STARTED
    return reader.decide(reader.read(settings, disk), ExplainedCall(inputs.pop("tool"), inputs))


def disagreements(program: str, root: Path) -> Iterator[str]:
    groups = groupby(permission_askers.rows(program), lambda row: [row["settings"], row.get("git")])
    for index, (_, group) in enumerate(groups):
        listed = list(group)
        disk, settings, places = read_row(program, root / str(index), listed[0])
        for row in listed:
            decision = decide(program, disk, settings, row, places)
            made = str(decision.outcome) if decision.is_offered else "not offered"
            outcome = "not started" if decision == NOT_STARTED else made
            if outcome != row["outcome"]:
                yield f"{row['call']} under {row['settings']}: {outcome}: {decision.reason}"


@pytest.mark.parametrize("program", NAMES)
def test_the_decisions_are_those_of_the_program(program: str, tmp_path: Path) -> None:
    assert list(disagreements(program, tmp_path)) == []


@pytest.mark.parametrize("program", NAMES)
def test_a_rule_that_decides_is_never_called_dead(program: str, tmp_path: Path) -> None:
    """The decisions are those of the real program; a problem is at the rule, or at its key."""
    groups = groupby(permission_askers.rows(program), lambda row: [row["settings"], row.get("git")])
    deciding, dead = 0, set[str]()
    for index, (_, group) in enumerate(groups):
        listed = list(group)
        disk, settings, places = read_row(program, tmp_path / str(index), listed[0])
        rules = [decide(program, disk, settings, row, places).rule for row in listed]
        deciding += sum(rule is not None for rule in rules)
        sent = PROGRAMS[program].instructions.read(disk, settings)
        for problem in sent.problems:
            if problem.code in ("assistant.shadowed", "assistant.repeated"):
                text = disk.text(problem.path) or ""
                dead.add(text[problem.span.start : problem.span.end])
                assert not [
                    rule
                    for rule in rules
                    if rule is not None
                    and rule.path == problem.path
                    and text[problem.span.end : rule.span.end].strip(": ")
                    in ("", text[rule.span.start : rule.span.end])
                    and problem.span.start <= rule.span.start
                ]
    assert deciding > 50 and dead


@pytest.mark.parametrize(
    ("program", "path", "text", "chosen", "shadowed"),
    [
        (
            "codex",
            "home/.codex/rules/a.rules",
            '# mine\nprefix_rule(["git"])\nprefix_rule(pattern=["git", "push"], decision="forbidden")\n',
            'prefix_rule(pattern=["git", "push"], decision="forbidden")',
            ["git"],
        ),
        (
            "opencode",
            "work/opencode.json",
            '{"permission": {"bash": {\n"git *": "allow",\n"git push*": "deny"}}}',
            '"deny"',
            ["bash git *"],
        ),
        (
            "gemini",
            "work/.gemini/settings.json",
            '{"tools": {\n"allowed": ["run_shell_command(git push)"],\n"exclude": ["run_shell_command"]}}',
            '"run_shell_command"',
            [],
        ),
    ],
)
def test_a_decision_names_its_rule_its_place_and_what_that_shadows(
    program: str, path: str, text: str, chosen: str, shadowed: list[str], tmp_path: Path
) -> None:
    decision = decided(program, tmp_path, {path: text}, tool="Bash", command="git push origin")
    assert decision.outcome == "denied"
    assert decision.rule is not None and decision.rule.path == str(tmp_path / path)
    assert text[decision.rule.span.start : decision.rule.span.end] == chosen
    assert [rule.text for rule in decision.shadowed] == shadowed


@pytest.mark.parametrize(
    "rules",
    [
        'for tool in ["ls"]:\n    prefix_rule(pattern=[tool], decision="forbidden")\n',
        'BAD = "forbidden"\nprefix_rule(pattern=["ls"], decision=BAD)\n',
        "[" * 500 + "]" * 500,
    ],
)
def test_rules_that_only_a_run_of_their_program_gives_are_not_guessed_at(rules: str, tmp_path: Path) -> None:
    decision = decided("codex", tmp_path, {"home/.codex/rules/a.rules": rules}, tool="Bash", command="ls")
    assert (decision.outcome, "not known" in decision.reason) == ("asks", True)


ODD = [
    *("(", "", "[", "*a" * 60, "?", "\\", "a\0b", '"', "{", "run_shell_command(", "run_shell_command(()"),
    *("ünï 規則 🧪", "-", "--", "$(x)", "`", "\n", "*", "mcp__", "mcp_*", "~", "$HOME", "a" * 5_000),
]
HOSTILE: dict[str, dict[str, Any]] = {
    "codex": {
        "home/.codex/rules/a.rules": "".join(f"prefix_rule(pattern=[{json.dumps(each)}])\n" for each in ODD)
    },
    "opencode": {
        "work/opencode.json": {
            "permission": {"bash": dict.fromkeys(ODD, "deny"), **dict.fromkeys(ODD, "ask")}
        }
    },
    "gemini": {
        "work/.gemini/settings.json": {
            "tools": {"allowed": ODD, "exclude": ODD[:10]},
            "mcp": {"excluded": ODD},
        },
        "home/.gemini/policies/a.toml": "".join(
            f'[[rule]]\ntoolName = "run_shell_command"\n{key} = {json.dumps(each)}\n'
            'decision = "deny"\npriority = 1\n'
            for key in ("commandPrefix", "argsPattern")
            for each in ODD
            if "\0" not in each
        ),
    },
}
VALUES = [
    "",
    "\0",
    "'",
    "a" * 200_000,
    "$(" * 5_000,
    "(" * 50_000,
    "\udc80",
    "a\n" * 9,
    "ls " + "x " * 10_000,
]


@pytest.mark.parametrize("program", NAMES)
def test_no_rule_and_no_call_is_too_odd(program: str, tmp_path: Path) -> None:
    disk, settings, _ = read_row(program, tmp_path, {"settings": HOSTILE[program]})
    reader = PROGRAMS[program].permissions
    permissions = reader.read(settings, disk)
    for tool in ("Bash", "Read", "Write", "WebFetch", "Skill", "mcp__a__b", "mcp__", "Nonsense", ""):
        for value in VALUES:
            inputs: dict[str, Any] = dict.fromkeys(("command", "file_path", "url", "skill"), value)
            decision = reader.decide(permissions, ExplainedCall(tool, inputs))
            assert decision.outcome in ("asks", "allowed", "denied")


MANY = 20_000
LARGE: dict[str, dict[str, Any]] = {
    "codex": {
        "home/.codex/rules/a.rules": "".join(
            f'prefix_rule(pattern=["tool{index}", "with", "words"], decision="forbidden")  # {"j" * 40}\n'
            for index in range(MANY)
        )
    },
    "opencode": {
        "work/opencode.json": {
            "permission": {"bash": {f"tool{index} with words * {'j' * 60}": "deny" for index in range(MANY)}}
        }
    },
    "gemini": {
        "work/.gemini/settings.json": {
            "tools": {"allowed": [f"run_shell_command(tool{index} {'j' * 60})" for index in range(MANY)]}
        }
    },
}


def test_a_file_of_rules_that_is_not_read_decides_nothing(tmp_path: Path) -> None:
    rules = "# x\n" * (MOST_BYTES // 4 + 1)
    disk, settings, _ = read_row("codex", tmp_path, {"settings": {"home/.codex/rules/a.rules": rules}})
    call = ExplainedCall("Bash", {"command": "ls"})
    with pytest.raises(RequestError, match="too large"):
        explain_calls([call], disk, settings.where, assistants=["codex"])


@pytest.mark.parametrize("program", NAMES)
def test_a_decision_does_not_wait_for_very_many_rules(program: str, tmp_path: Path) -> None:
    disk, settings, _ = read_row(program, tmp_path, {"settings": LARGE[program]})
    reader = PROGRAMS[program].permissions
    read = reader.read(settings, disk)
    begin = time.perf_counter()
    for command in ("tool1 with words", " && ".join(["ls"] * 50)):
        assert reader.decide(read, ExplainedCall("Bash", {"command": command})).outcome in (
            "allowed",
            "asks",
            "denied",
        )
    assert time.perf_counter() - begin < 10
