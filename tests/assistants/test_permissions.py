"""The decisions of Claude Code: as the real program was seen to decide (`claude_permissions.jsonl`)."""

import json
import os
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from assistants import permission_runs
from nexus_context.assistants.claude_code.permission_rules import PermissionSettings, read_permissions
from nexus_context.assistants.claude_code.permissions import decide
from nexus_context.assistants.claude_code.settings import read_settings
from nexus_context.assistants.claude_code.skills import find_guarded_skills
from nexus_context.assistants.permissions.decision import Decision, ExplainedCall
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.permissions import explain_calls
from nexus_context.disk.files import real_path
from nexus_context.errors import RequestError
from support.fixture import write_fixture

SHARED = Path(__file__).parents[3] / "shared" / "cases" / "permissions.json"
Row = dict[str, Any]


def settings_of(root: Path, row: Row) -> tuple[PermissionSettings, dict[str, str]]:
    """The settings of a row in files below `root`, and what its placeholders stand for."""
    places = permission_runs.write_folder(root, row)
    settings = read_settings(Disk(), Surroundings(places["{work}"], places["{home}"], {}))
    options = row.get("options", {})
    arguments = options.get("args", [])
    mode = arguments[1] if arguments[:1] == ["--permission-mode"] else None
    trusted = options.get("trusted", True)
    read = read_permissions(settings, real_path, trusted=trusted, mode=mode)
    return replace(read, guarded_skills=find_guarded_skills(Disk(), settings)), places


def decided(settings: PermissionSettings, row: Row, places: dict[str, str]) -> Decision:
    inputs = json.loads(permission_runs.filled(json.dumps(row["call"]), places))
    return decide(settings, ExplainedCall(inputs.pop("tool"), inputs))


def disagreements(root: Path, rows: list[Row]) -> Iterator[str]:
    groups = groupby(rows, lambda row: json.dumps([row["settings"], row.get("options")]))
    for index, (_, group) in enumerate(groups):
        listed = list(group)
        settings, places = settings_of(root / str(index), listed[0])
        for row in listed:
            decision = decided(settings, row, places)
            outcome = decision.outcome if decision.is_offered else "not offered"
            if outcome != row["outcome"]:
                yield f"{row['call']} under {row['settings']}: {outcome}: {decision.reason}"


def test_the_decisions_are_those_of_the_program(tmp_path: Path) -> None:
    assert list(disagreements(tmp_path, permission_runs.rows())) == []


@pytest.mark.skipif(not SHARED.exists(), reason="not in a clone")
def test_the_decisions_are_those_that_others_saw(tmp_path: Path) -> None:
    rows = json.loads(SHARED.read_text())["rows"]
    known = [row for row in rows if "--allowedTools" not in row.get("options", {}).get("args", [])]
    assert list(disagreements(tmp_path, known)) == []


def permitted(tmp_path: Path, command: str, **permissions: Any) -> Decision:
    row: Row = {
        "settings": {"project": {"permissions": permissions}},
        "call": {"tool": "Bash", "command": command},
    }
    return decided(*(settings_of(tmp_path, row))[:1], row, {})


def test_a_decision_names_its_rule_its_line_and_what_that_rule_shadows(tmp_path: Path) -> None:
    decision = permitted(tmp_path, "ls && rm x", allow=["Bash(rm *)"], deny=["Bash(rm:*)"])
    assert decision.rule is not None
    text = Path(decision.rule.path).read_text()
    assert text[decision.rule.span.start : decision.rule.span.end] == '"Bash(rm:*)"'
    assert [rule.text for rule in decision.shadowed] == ["Bash(rm *)"]
    assert (decision.outcome, decision.part) == ("denied", "rm x")
    assert decision.reason == "`Bash(rm:*)` denies `rm x`."


@pytest.mark.parametrize("tool", ["Bash", "Read", "Write", "WebFetch", "mcp__a__b", "mcp__", "Nonsense", ""])
@pytest.mark.parametrize(
    "value", ["", "\0", "'", "a" * 200_000, "$(" * 5_000, "(" * 50_000, "\udc80", "a\n" * 3]
)
def test_no_call_is_too_odd(tmp_path: Path, tool: str, value: str) -> None:
    rules = [
        "Bash(",
        "Bash()",
        "Bash(*a*a*a*a*a*a*a*a*a*b)",
        "Read(" + "*a" * 50 + ")",
        "mcp__(x)",
        "Read([)",
        "(",
        "",
    ]
    row: Row = {"settings": {"project": {"permissions": {"deny": rules, "allow": ["Bash(x)"]}}}, "call": {}}
    settings, _ = settings_of(tmp_path, row)
    inputs = dict.fromkeys(("command", "file_path", "url"), value)
    assert decide(settings, ExplainedCall(tool, inputs)).outcome in ("asks", "allowed", "denied")


def test_a_call_of_ten_thousand_words_is_asked_about(tmp_path: Path) -> None:
    command = " ".join(["touch", *(f"f{index}" for index in range(10_000))])
    assert permitted(tmp_path, command, allow=["Bash(touch:*)"]).outcome == "asks"
    assert permitted(tmp_path / "b", command[:10_000], allow=["Bash(touch:*)"]).outcome == "allowed"


@pytest.mark.skipif(os.name == "nt", reason="its paths have no such links")
def test_very_many_rules_are_read_and_a_file_that_is_not_read_decides_nothing(tmp_path: Path) -> None:
    rules = [f"Bash(tool{index}:*)" for index in range(80_000)]
    assert permitted(tmp_path, "tool79999 x", allow=rules).outcome == "allowed"
    file = tmp_path / "work" / ".claude" / "settings.json"
    file.write_text(json.dumps({"permissions": {"deny": rules * 20}}))
    surroundings = Surroundings(str(tmp_path / "work"), str(tmp_path / "home"), {})
    with pytest.raises(RequestError, match="too large"):
        explain_calls(
            [ExplainedCall("Bash", {"command": "tool0"})], Disk(), surroundings, assistants=["claude-code"]
        )


@pytest.mark.parametrize("unit", ["${", "<<<", "$(", "# x\n", "-kk ", "<<'A'\n", "`"])
def test_a_long_hostile_command_is_decided_in_time(unit: str, tmp_path: Path) -> None:
    write_fixture('//- /w/.claude/settings.json\n{"permissions": {"deny": ["Bash(rm:*)"]}}\n', tmp_path)
    surroundings = Surroundings(str(tmp_path / "w"), str(tmp_path), {}, trusted=True)
    permissions = read_permissions(read_settings(Disk(), surroundings), real_path)
    start = time.thread_time()
    decide(permissions, ExplainedCall("Bash", {"command": "timeout " + unit * 15_000}))
    assert time.thread_time() - start < 4
