"""Broken settings of Claude Code and their corrected twins, beside what the real program did with each.

`claude_lints.jsonl` has what it did (`lint_runs`). Nothing that it heeds may be called dead, void, missing.
"""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from assistants import lint_runs, permission_runs
from nexus_context.assistants.claude_code import rules
from nexus_context.assistants.claude_code.bash_permissions import covers_command
from nexus_context.assistants.claude_code.hook_checks import check_hooks
from nexus_context.assistants.claude_code.permission_rules import (
    PermissionSettings,
    covers_path,
    read_permissions,
)
from nexus_context.assistants.claude_code.rule_syntax import parse_rule, rule_fault
from nexus_context.assistants.claude_code.settings import read_settings
from nexus_context.assistants.claude_code.shadowed_rules import find_shadowed
from nexus_context.assistants.copilot.settings import user_directory
from nexus_context.assistants.opencode import permission_checks
from nexus_context.assistants.opencode.permission_rules import matches
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.disk.files import real_path
from nexus_context.errors import Problem, Severity
from nexus_context.text.json import parse
from support.sentences import sentences

Row = dict[str, Any]
IGNORED = re.compile(r"ignores this (?:hook|value)|and ignores it\b")
DEAD = ("assistant.no-effect", "assistant.void", "assistant.shadowed", "assistant.missing-file")


def problems_of(root: Path, files: dict[str, Any], modes: dict[str, int] | None = None) -> list[Problem]:
    """What is wrong with the settings of a folder `work` with these files."""
    lint_runs.write_files(root, {"work/x": "", "home/x": "", **files}, modes)
    where = Surroundings(str(root / "work"), str(root / "home"), {})
    settings = read_settings(Disk(), where)
    return [*settings.problems, *rules.read_claude_code(Disk(), settings).problems]


def reported(problems: list[Problem], root: Path) -> list[tuple[str, str]]:
    """The code of each problem that is a warning or an error, and the text that it is about."""
    texts = {each.path: Path(each.path).read_text() for each in problems}
    return [
        (each.code.removeprefix("assistant."), texts[each.path][each.span.start : each.span.end])
        for each in problems
        if each.severity <= Severity.WARNING
    ]


def effect_of(row: Row) -> str:
    fault = rule_fault(row["rule"], row["list"])
    return "works" if fault is None else fault.effect.replace("gone", "matches-nothing")


def test_rules_are_judged_as_the_program_judges_them() -> None:
    rows = lint_runs.rows("rule")
    denied = {row["rule"]: row for row in rows if row["list"] == "deny"}
    wrong = [
        (row, effect_of(row))
        for row in rows
        if effect_of(row) != row["did"]
        # of rules that allow, the program does not say whether their tool exists
        and (row["list"], row["did"], effect_of(row)) != ("allow", "works", effect_of(denied[row["rule"]]))
    ]
    assert [row["rule"] for row, _ in wrong if row["rule"] != "BashOutput"] == []


def test_a_rule_that_is_proposed_is_right() -> None:
    proposed = [
        (row["list"], fault.meant)
        for row in lint_runs.rows("rule")
        if (fault := rule_fault(row["rule"], row["list"])) is not None and fault.meant is not None
    ]
    assert [each for each in proposed if rule_fault(each[1], each[0]) is not None] == []
    assert len(proposed) > 40


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        ("Bash:ls", "Bash(ls:*)"),
        ("Bash ls -la", "Bash(ls -la:*)"),
        ("Bash:rm:*", "Bash(rm:*)"),
        ("Read: .env", "Read(.env)"),
        ("WebFetch:domain:example.org", "WebFetch(domain:example.org)"),
        ("Bashh:ls", None),
    ],
)
def test_a_rule_without_parentheses_is_not_widened_to_its_tool(rule: str, meant: str | None) -> None:
    fault = rule_fault(rule, "deny")
    assert fault is not None
    assert (fault.effect, fault.meant) == ("matches-nothing", meant)


@pytest.mark.parametrize(
    ("kind", "rule", "meant"),
    [
        ("ask", "Skill(greet)", "Skill"),
        ("ask", "Skill(greet *)", "Skill"),
        ("ask", "Agent(helper)", "Agent"),
        ("ask", "Agent(help*)", "Agent"),
        ("deny", "Skill(gr*)", "Skill(gr:*)"),
        ("deny", "Skill(*eet)", None),
        ("deny", "Skill(g*t)", None),
        ("deny", "Agent(help*)", None),
        ("deny", "Agent(helper:*)", None),
        ("deny", "Agent(helper *)", None),
    ],
)
def test_a_rule_for_skills_or_agents_whose_calls_went_on(kind: str, rule: str, meant: str | None) -> None:
    fault = rule_fault(rule, kind)
    assert fault is not None
    assert (fault.effect, fault.meant) == ("matches-nothing", meant)


def test_a_path_is_no_rule() -> None:
    fault = rule_fault("/docs/a.md", "deny")
    assert fault is not None
    assert sentences(fault.reason) == [
        "Claude Code has no tool `/docs/a.md`.",
        "A rule for a file is `Read(/docs/a.md)` or `Edit(/docs/a.md)`.",
    ]


@pytest.mark.parametrize(
    "rule", ["Skill", "Skill(*)", "Skill(greet)", "Skill(gr:*)", "Skill(gre *)", "Skill(:*)", "Agent(helper)"]
)
def test_a_rule_for_skills_or_agents_that_denies(rule: str) -> None:
    assert rule_fault(rule, "deny") is None


@pytest.mark.parametrize("row", lint_runs.rows("settings"), ids=lambda row: json.dumps(row["settings"])[:80])
def test_what_is_said_of_rules_is_what_a_call_shows(row: Row, tmp_path: Path) -> None:
    files = {permission_runs.LAYERS[layer]: each for layer, each in row["settings"].items()}
    files = json.loads(json.dumps(files).replace("{work}", str(tmp_path / "work")))
    codes = {code for code, _ in reported(problems_of(tmp_path, files), tmp_path)}
    assert sorted(codes) == row["codes"]


@pytest.mark.parametrize("row", lint_runs.rows("hook"), ids=str)
def test_a_hook_that_ran_is_never_called_dead(row: Row, tmp_path: Path) -> None:
    hook = {"type": "command", "command": "true"} | ({"if": row["if"]} if "if" in row else {})
    group = {"hooks": [hook]} | ({"matcher": row["matcher"]} if "matcher" in row else {})
    problems = problems_of(tmp_path, {"work/.claude/settings.json": {"hooks": {row["hook"]: [group]}}})
    dead = [each for each in problems if "never runs" in each.message]
    assert bool(dead) == (row["did"] == "did not run" and not row.get("right"))
    assert bool(problems) == (bool(dead) or "is not heeded" in row)


@pytest.mark.parametrize("row", lint_runs.rows("hooks"), ids=lambda row: json.dumps(row["hooks"])[:80])
def test_hooks_void_a_file_or_are_left_out_as_in_the_program(row: Row, tmp_path: Path) -> None:
    problems = problems_of(tmp_path, {"work/.claude/settings.json": row["hooks"]})
    codes = {each.code for each in problems}
    left_out = [each for each in problems if IGNORED.search(each.message)]
    assert ("assistant.void" in codes) == (row["did"] == "void")
    assert bool(left_out) == (row["did"] == "left-out")


@pytest.mark.parametrize("row", lint_runs.rows("script"), ids=lambda row: json.dumps(row))
def test_a_script_that_stops_a_call_is_never_called_missing(row: Row, tmp_path: Path) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": row["script"]}]}]}
    files = {"work/.claude/settings.json": {"hooks": hooks}, **{f"work/{each}": "" for each in row["files"]}}
    modes = {f"work/{name}": int(mode, 8) for name, mode in row["files"].items()}
    codes = [code for code, _ in reported(problems_of(tmp_path, files, modes), tmp_path)]
    fails = row["did"] == "failed" or "python3" in row["script"]  # which ends with 2 without its script
    assert codes == (["missing-file"] if fails else [])


MISSING = ["missing-file"]


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("A='/x/y z' B=2 ./gone.sh", MISSING),
        ("A='/x/y' ./here.sh", []),
        ("A=./gone.sh", []),
        ("A='/x/y' python3 ./gone.py", MISSING),
        ("A=$(./gone.sh) ./here.sh", []),
        ("'./gone there.sh' --x", MISSING),
        ("./gone.sh; true", []),
        ("./$NAME.sh", []),
        ("SECRET=1 ./here.sh", []),
        ("AGENT_TOKEN=$OTHER ./here.sh", []),
        ("A=1 AGENT_TOKEN='9f86d081884c7d659a2feaa0c55ad015' ./here.sh", ["secret"]),
        ("export API_KEY=9f86d081884c7d659a2feaa0c55ad015 && ./here.sh", ["secret"]),
    ],
)
def test_what_a_command_runs_and_assigns(command: str, codes: list[str], tmp_path: Path) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]}
    files = {"work/.claude/settings.json": {"hooks": hooks}, "work/here.sh": ""}
    problems = problems_of(tmp_path, files, {"work/here.sh": 0o755})
    assert [code for code, _ in reported(problems, tmp_path)] == codes
    assert "9f86d081" not in "".join(each.message for each in problems)


@pytest.mark.parametrize(
    ("rule", "meant"),
    [
        ("Write(/tmp)", "Edit(//tmp/**)"),
        ("Write(/home/ana/notes/)", "Edit(//home/ana/notes/**)"),
        ("Write(/etc/*.conf)", "Edit(//etc/*.conf)"),
        ("Glob(/Users/ana/a.md)", "Read(//Users/ana/a.md)"),
        ("Read(/var/log:*)", "Read(//var/log/**)"),
        ("Write(/src)", "Edit(/src)"),
        ("Write(/templates)", "Edit(/templates)"),
        ("Write(//tmp/**)", "Edit(//tmp/**)"),
        ("Write(~/tmp)", "Edit(~/tmp)"),
    ],
)
def test_a_path_from_the_root_of_the_file_system_begins_with_two_slashes(rule: str, meant: str) -> None:
    fault = rule_fault(rule, "deny")
    assert fault is not None
    assert (fault.meant, "single `/`" in fault.reason) == (meant, meant[5:] != rule.partition("(")[2])


@pytest.mark.parametrize("row", lint_runs.rows("plugin"), ids=lambda row: json.dumps(row["plugin"])[-80:])
def test_a_plugin_is_refused_as_the_program_refuses_it(row: Row, tmp_path: Path) -> None:
    files = {f"work/{name}": each for name, each in {**lint_runs.PLUGIN, **row["plugin"]}.items()}
    codes = {code for code, _ in reported(problems_of(tmp_path, files), tmp_path)}
    assert ("void" in codes) == (row["did"] == "nothing")
    if row["did"] == "command, skill, agent, hook":
        assert not codes & {"void"}
    else:
        assert codes


NAMES = {
    "work/.mcp.json": {"mcpServers": {"notes": {"command": "true"}}},
    "home/.claude.json": {"mcpServers": {"my tickets": {"command": "true"}}},
    "work/.claude/skills/deploy/SKILL.md": "---\ndescription: x\n---\n",
    "work/.claude/commands/ship.md": "x",
    "work/.claude/agents/a.md": "---\nname: reviewer\ndescription: x\n---\n",
}


@pytest.mark.parametrize(
    ("broken", "twin"),
    [
        ({"permissions": {"deny": ["mcp__note__write"]}}, {"permissions": {"deny": ["mcp__notes__write"]}}),
        ({"permissions": {"allow": ["mcp__Notes"]}}, {"permissions": {"allow": ["mcp__notes"]}}),
        (
            {"permissions": {"allow": ["mcp__my_ticket__a"]}},
            {"permissions": {"allow": ["mcp__my_tickets__a"]}},
        ),
        ({"permissions": {"allow": ["Skill(deplay)"]}}, {"permissions": {"allow": ["Skill(deploy)"]}}),
        ({"permissions": {"deny": ["Agent(Reviewer)"]}}, {"permissions": {"deny": ["Agent(reviewer)"]}}),
        ({"permissions": {"deny": ["Task(reviewr)"]}}, {"permissions": {"deny": ["Agent(reviewer)"]}}),
        ({"disabledMcpjsonServers": ["note"]}, {"disabledMcpjsonServers": ["notes"]}),
        ({"enabledMcpjsonServers": ["Notes"]}, {"enabledMcpjsonServers": ["notes"]}),
        ({"skillOverrides": {"deplo": "off"}}, {"skillOverrides": {"deploy": "off"}}),
        ({"permissions": {"deny": ["Agent(explore)"]}}, {"permissions": {"deny": ["Agent(Explore)"]}}),
    ],
    ids=str,
)
def test_a_name_that_is_almost_a_files(broken: Row, twin: Row, tmp_path: Path) -> None:
    path = "work/.claude/settings.json"
    problems = problems_of(tmp_path, {**NAMES, path: broken})
    assert [code for code, _ in reported(problems, tmp_path)] == ["unknown-name"]
    (problem,) = (each for each in problems if each.fix is not None)
    text = Path(problem.path).read_text()
    for edit in problem.fix.edits if problem.fix is not None else ():
        text = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert json.loads(text) == twin
    assert reported(problems_of(tmp_path, {**NAMES, path: twin}), tmp_path) == []


@pytest.mark.parametrize(
    "name",
    [
        "mcp__plugin_x_note",
        "mcp__claude_ai_Notes",
        "mcp__github",
        "Skill(my:deploy)",
        "Agent(other)",
        "mcp__*",
    ],
)
def test_a_name_that_may_be_of_others_is_not_reported(name: str, tmp_path: Path) -> None:
    settings = {"permissions": {"deny": [name]}, "enabledMcpjsonServers": ["elsewhere"]}
    problems = problems_of(tmp_path, {**NAMES, "work/.claude/settings.json": settings})
    assert reported(problems, tmp_path) == []


def test_the_messages(tmp_path: Path) -> None:
    settings = {
        "permissions": {
            "allow": ["bash(ls:*)", "Bash(rm x)", "Bash(git * push)", "Bash(npm:*)", "Bash(npm test)"],
            "deny": ["Bash(rm:*)", "Write(a/**)", "Bsh"],
            "defaultMode": "bypassPermissions",
        },
        "hooks": {
            "PreToolUse": [
                {"matcher": "bash|Edit", "hooks": [{"type": "command", "command": ".claude/hooks/gard.sh"}]},
                {"matcher": "Bash(git:*)", "hooks": [{"type": "command", "command": "true", "if": "git *"}]},
            ],
            "SessionStart": [{"matcher": "Startup", "hooks": [{"type": "command"}]}],
        },
        "allow": [],
    }
    files = {"work/.claude/settings.json": settings, "work/.claude/hooks/guard.sh": ""}
    problems = problems_of(tmp_path, files)
    text = (tmp_path / "work/.claude/settings.json").read_text()
    assert [
        (text[each.span.start : each.span.end], *sentences(each.message)) for each in problems
    ] == snapshot(
        [
            ("{", 'Claude Code ignores this hook: Item 1 of "hooks" needs "command".'),
            (
                '"allow"',
                "Claude Code 2.1.330 has no setting `allow`: it has no effect.",
                "It belongs in `permissions`.",
            ),
            (
                '"Write(a/**)"',
                "This rule matches nothing.",
                "Rules for paths are those for Edit, which count for every tool that writes files.",
                "Write `Edit(a/**)`.",
            ),
            ('"Bsh"', "This rule matches nothing.", "Claude Code has no tool `Bsh`.", "Write `Bash`."),
            (
                '"bash(ls:*)"',
                "Claude Code ignores this rule.",
                "The name of a tool begins with a capital letter.",
                "Write `Bash(ls:*)`.",
            ),
            (
                '"Bash(git * push)"',
                "`*` before the rest of the command is any option of `git`, too.",
                "Write what you mean.",
            ),
            (
                '"bypassPermissions"',
                "Claude Code ignores `bypassPermissions` here.",
                "To turn it on, set it in the user's settings.",
            ),
            (
                "bash",
                "`bash` is no tool: this hook never runs for it.",
                "Names are compared as a whole.",
                "Write `Bash`.",
            ),
            (
                '".claude/hooks/gard.sh"',
                ".claude/hooks/gard.sh does not exist, so this command fails.",
                "Did you mean `guard.sh`?",
            ),
            (
                '"Bash(git:*)"',
                "`Bash(git:*)` matches no tool: this hook never runs.",
                "Write `Bash`, and the rule as `if`.",
            ),
            (
                '"git *"',
                "This hook never runs: `git *` is not a permission rule.",
                "Write one such as `Bash(git *)`.",
            ),
            (
                "Startup",
                "`Startup` is no cause of SessionStart: this hook never runs for it.",
                "Names are compared as a whole.",
                "Write `startup`.",
            ),
            ('"Bash(rm x)"', "This rule never decides: `Bash(rm:*)` in `deny` covers it, and counts first."),
            (
                '"Bash(npm test)"',
                "This rule says nothing new: `Bash(npm:*)` covers it.",
                "Remove one of them.",
            ),
        ]
    )


ODD = st.text(alphabet=st.sampled_from('Bash Read()[]{}*:\\/"\n\t\0é!~$|mcp__x,.'), max_size=30)


@given(st.lists(ODD, max_size=12), st.sampled_from(["allow", "ask", "deny"]))
def test_no_rule_is_too_odd(texts: list[str], kind: str) -> None:
    for text in texts:
        fault = rule_fault(text, kind)
        if fault is not None and fault.effect == "left-out":
            assert parse_rule(text, kind) is None


@given(st.text(alphabet=st.sampled_from("Bash|,()[]*+?\\\0 ./$'\"`{}~"), max_size=30))
def test_no_hook_is_too_odd(text: str) -> None:
    group = {"matcher": text, "hooks": [{"type": "command", "command": text, "if": text}]}
    document = parse("/work/.claude/settings.json", json.dumps({"hooks": {"PreToolUse": [group]}}))
    where = Surroundings("/work", "/home", {})
    for problem in check_hooks(document, document.value["hooks"], Disk(within=["/work"]), where):
        assert 0 <= problem.span.start <= problem.span.end <= len(document.text)


COMMANDS = st.builds(
    lambda words, end: f"Bash({' '.join(words)}{end})",
    st.lists(st.sampled_from(["rm", "git", "git push", "rmdir", "x", "-f"]), min_size=1, max_size=3),
    st.sampled_from(["", ":*", " *", "*", " * y"]),
)
PATHS = st.builds(
    lambda tool, start, names, end: f"{tool}({start}{'/'.join(names)}{end})",
    st.sampled_from(["Read", "Edit"]),
    st.sampled_from(["", "./", "/", "~/", "//"]),
    st.lists(st.sampled_from(["a", "b", ".env", "A"]), min_size=1, max_size=3),
    st.sampled_from(["", "/**", "/*", ".ts"]),
)
OTHERS = st.sampled_from(
    [
        "Bash",
        "Bash(*)",
        "Read",
        "mcp__a",
        "mcp__a__b",
        "mcp__a__*",
        "WebFetch(domain:x.y)",
        "WebFetch",
        "Agent(a)",
    ]
)
RULES = st.lists(COMMANDS | PATHS | OTHERS, max_size=6)


def settings_of(root: Path, **lists: list[str]) -> PermissionSettings:
    lint_runs.write_files(root, {"work/.claude/settings.json": {"permissions": lists}})
    where = Surroundings(str(root / "work"), str(root / "home"), {})
    return read_permissions(read_settings(Disk(), where), real_path)


@given(RULES, RULES, RULES)
@example([], [], ["Read(/a/*)", "Read(//a)"])
def test_a_rule_is_shadowed_only_by_one_that_covers_all_it_is_about(
    tmp_path_factory: pytest.TempPathFactory, allow: list[str], ask: list[str], deny: list[str]
) -> None:
    settings = settings_of(tmp_path_factory.getbasetemp(), allow=allow, ask=ask, deny=deny)
    for rule, by in find_shadowed(settings):
        if rule.tool == "Bash" and rule.pattern is not None and by.pattern is not None:
            for command in (rule.pattern.replace(":*", end).replace("*", end) for end in ("", " x", "x y")):
                assert not covers_command(rule.pattern, command) or covers_command(by.pattern, command)
        elif rule.tool in ("Read", "Edit") and rule.pattern is not None and by.pattern is not None:
            for path in ("a", "a/b", "b/.env", "a/b/x", "b/A/x", ".env/c", "a.ts"):
                for base in (settings.folder, settings.user_home, ""):
                    place = f"{base}/{path}"
                    assert not covers_path(rule, place, settings) or covers_path(by, place, settings)


def seconds_for(settings: PermissionSettings) -> float:
    """The time to look for shadowed rules, the shortest of several."""
    times = []
    for _ in range(3):
        start = time.process_time()
        assert list(find_shadowed(settings)) == []
        times.append(time.process_time() - start)
    return min(times)


def test_the_time_for_rules_grows_with_their_number_only(tmp_path: Path) -> None:
    """16 times the rules take about 16 times as long; a comparison of all pairs would take 256 times."""
    spent = {}
    for number in (250, 4_000):
        commands = [f"Bash(c{index}:*)" for index in range(number)]
        paths = [f"Read(d/{index}/**)" for index in range(number)]
        deny = [*(f"Bash(c{index} x:*)" for index in range(number)), *(f"{each[:-4]}/x)" for each in paths)]
        spent[number] = seconds_for(settings_of(tmp_path, allow=[*commands, *paths], deny=deny))
    assert spent[4_000] < 64 * spent[250]


def test_four_megabytes_of_rules_are_read_in_seconds(tmp_path: Path) -> None:
    rules = [f"Bash(c{index} {'y' * 60}:*)" for index in range(48_000)]
    deny = [f"Read(a/{index}/**)" for index in range(5_000)]
    lint_runs.write_files(
        tmp_path, {"work/.claude/settings.json": {"permissions": {"allow": rules, "deny": deny}}}
    )
    settings = read_settings(Disk(), Surroundings(str(tmp_path / "work"), str(tmp_path / "home"), {}))
    assert settings.problems == ()
    long = "Bash(" + "a* " * 1_000_000 + ")"
    assert (
        problems_of(tmp_path, {"work/.claude/settings.json": {"permissions": {"deny": [long, "(" * 10_000]}}})
        != []
    )


OTHERS_ROWS = [json.loads(line) for line in lint_runs.OTHERS.read_text().splitlines()]


@pytest.mark.parametrize("row", OTHERS_ROWS, ids=lambda row: f"{row['program']}: {row['text'][:90]}")
def test_settings_of_other_programs(row: Row, tmp_path: Path) -> None:
    lint_runs.write_files(tmp_path, {"work/x": "", "home/x": "", row["path"]: row["text"]})
    where = Surroundings(str(tmp_path / "work"), str(tmp_path / "home"), {}, trusted=True)
    settings = PROGRAMS[row["program"]].settings(Disk(), where)
    codes = {each.code for each in settings.problems if "yolo" not in row["text"]}  # of which Gemini warns
    expected = {"stops": {"assistant.stops"}, "did not run": {"assistant.no-effect"}}
    assert codes == expected.get(row["did"], set())


TWINS = [json.loads(line) for line in lint_runs.TWINS.read_text().splitlines()]


@pytest.mark.parametrize("row", TWINS, ids=lambda row: f"{row['program']}: {row['broken']}"[:120])
def test_broken_settings_and_their_twins(row: Row, tmp_path: Path) -> None:
    for name, codes in (("broken", row["codes"]), ("twin", [])):
        root = tmp_path / name
        where = Surroundings(str(root / "work"), str(root / "home"), {}, trusted=True)
        code = str(Path(user_directory(where)).relative_to(root))
        files = json.dumps({"work/x": "", "home/x": "", **row.get("files", {}), **row[name]})
        files = files.replace("{code}", code)
        lint_runs.write_files(root, json.loads(files.replace("{root}", str(root))))
        problems = read_profile(row["program"], where, counted=False).problems
        assert [code for code, _ in reported(list(problems), root)] == codes
        for problem in problems:
            if problem.fix is not None and len(codes) == 1:
                text = Path(problem.path).read_text()
                for edit in problem.fix.edits:
                    text = text[: edit.span.start] + edit.text + text[edit.span.end :]
                twin = row["twin"][str(Path(problem.path).relative_to(root))]
                assert text == twin.replace("{root}", str(root))


@given(
    *2 * [st.text(alphabet="ab *?", max_size=6)], st.lists(st.text(alphabet="ab ", max_size=3), min_size=6)
)
def test_a_rule_of_opencode_is_covered_only_by_one_that_matches_all_of_it(
    pattern: str, other: str, fillings: list[str]
) -> None:
    if permission_checks.covers(pattern, other):
        text = "".join(fillings.pop() if each in "*" else "a" if each == "?" else each for each in other)
        assert not matches(other, text) or matches(pattern, text)
