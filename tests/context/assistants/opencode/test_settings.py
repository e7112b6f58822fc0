"""What opencode refuses of its settings, what it ignores, and what it takes of them; by runs of 1.18.33."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_fixture

GIT = "//- /work/.git/HEAD\nref: x\n//- /work/.git/objects/x\n//- /work/.git/refs/x\n//- /home/x\n"
IGNORED = "opencode ignores this. Unknown key"
MEANT = 'did you mean "instructions"?'
OTHERS_SERVERS = (
    "opencode ignores `mcpServers` and starts none of its servers. Write them under `mcp`, each with "
    '`"type": "local"` and `command` as a list, or `"type": "remote"` and `url`.'
)


def check(files: str, root: Path, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What opencode sends in `/work`: the words of files, its servers, and problems with their texts."""
    tree = write_fixture(GIT + files, root)
    variables = {name: value.replace("{root}", tree.root) for name, value in (environ or {}).items()}
    profile = read_profile("opencode", Surroundings(tree.path("/work"), tree.path("/home"), variables))
    return {
        "sent": [part.text.split("\n")[-2:][0] for part in profile.parts],
        "servers": [f"{each.name} {each.start}" for each in profile.servers],
        "problems": [
            (
                each.code.removeprefix("assistant."),
                each.path.removeprefix(tree.root),
                profile.texts.get(each.path, "")[slice(*each.span)],
                each.message.removeprefix("opencode does not start: "),
            )
            for each in profile.problems
            if each.code != "assistant.unread"
        ],
    }


@pytest.mark.parametrize(
    ("settings", "place", "message"),
    [
        ('{"instructions": ["a.md"] "x": 1}', None, "this file is not valid JSON."),
        (" \n", "", "the file is blank."),
        ("[]", "[]", "the file must be an object."),
        ('{"instructions": "a.md"}', '"a.md"', '"instructions" must be a list, not text.'),
        ('{"mcp": null}', "null", '"mcp" must be an object, not null.'),
        ('{"mcp": {"a": {"type": "local", "command": "npx x"}}}', '"npx x"', '"command" must be a list'),
        ('{"mcp": {"a": {"command": ["x"]}}}', '"a"', '"a" needs `"type": "local"` with `command`'),
        ('{"mcp": {"a": {"type": "stdio", "command": ["x"]}}}', '"a"', '"a" needs `"type": "local"`'),
        ('{"mcp": {"a": {"type": "remote"}}}', "{", '"a" needs "url".'),
        ('{"mcp": {"a": {"type": "local", "command": ["x"], "enabled": "yes"}}}', '"yes"', '"enabled" must'),
        (
            '{"mcp": {"a": {"type": "local", "command": ["x"], "environment": {"PORT": 1}}}}',
            "1",
            '"PORT" must be text, not a whole number.',
        ),
        ('{"permissions": {"bash": "ask"}}', '"permissions"', "`permissions` is of opencode 2."),
        ('{"permission": {"bash": "maybe"}}', '"maybe"', '"bash" is not a valid permission'),
        (
            '{"permission": {"todowrite": {"*": "ask"}}}',
            '{"*": "ask"}',
            '"todowrite" must be ask, allow or deny',
        ),
        ('{"agent": {"x": {"mode": "sub"}}}', '"sub"', '"mode" must be subagent, primary or all.'),
        ('{"share": true}', "true", '"share" must be manual, auto or disabled, not true or false.'),
        ('{"username": "{file:no.txt}"}', "{file:no.txt}", "{file:no.txt} names a file that does not exist."),
    ],
)
def test_settings_that_stop_opencode(settings: str, place: str | None, message: str, tmp_path: Path) -> None:
    result = check(f"//- /work/opencode.json\n{settings}\n//- /work/AGENTS.md\nAgents.\n", tmp_path)
    ((code, path, text, first),) = result["problems"]
    assert (code, path, result["sent"], result["servers"]) == ("stops", "/work/opencode.json", [], [])
    assert place is None or text == place
    assert first.startswith(message)


def test_no_file_is_called_unread_by_a_program_that_does_not_start(tmp_path: Path) -> None:
    tree = write_fixture("//- /work/opencode.json\n[]\n//- /work/AGENTS.md\nAgents.\n//- /home/x\n", tmp_path)
    profile = read_profile("opencode", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    assert [each.code for each in profile.problems] == ["assistant.stops"]


@pytest.mark.parametrize(
    ("settings", "problems", "servers"),
    [
        ('{// c\n"username": "x", /* d */ "instructions": [],}', [], []),
        ("", [], []),
        ('{"theme": 3, "agent": {"build": {"own": 1}}, "mcp": {}}', [], []),
        ('{"instruction": ["a.md"]}', [f'"instruction": {IGNORED} "instruction" here: {MEANT}'], []),
        ('{"mcpServers": {"a": {"command": "x"}}}', [f'"mcpServers": {OTHERS_SERVERS}'], []),
        (
            '{"mcp": {"a": {"type": "local", "command": ["x"], "env": {"A": "secret"}}}}',
            [f'"env": {IGNORED} "env" in "a": remove it. Variables are in `environment`.'],
            ["a starts"],
        ),
        (
            '{"mcp": {"a": {"type": "local", "command": "x", "enabled": true}}}',
            ['"x": opencode does not start this server: "command" must be a list, not text.'],
            ["a off"],
        ),
        ('{"mcp": {"a": {"type": "local", "command": ["x"], "disabled": true}}}', [], ["a off"]),
        ('{"mcp": {"servers": {"a": {"type": "local", "command": ["x"]}}}}', [], ["a starts"]),
        ('{"mcp": {"a": {"enabled": false}}}', [], ["a off"]),
        (
            '{"plugin": ["p"]}',
            ['"plugin": `plugin` may add to what opencode sends. Nexus does not show that.'],
            [],
        ),
        ('{"username": "a", "username": "b"}', None, []),
    ],
)
def test_settings_that_opencode_takes(
    settings: str, problems: list[str] | None, servers: list[str], tmp_path: Path
) -> None:
    line = settings and f"{settings}\n"  # a file of one line end is not empty
    result = check(f"//- /work/opencode.json\n{line}//- /work/AGENTS.md\nAgents.\n", tmp_path)
    assert result["servers"] == servers
    assert result["sent"] == ["Agents."]
    found = [f"{text}: {message}" for code, _, text, message in result["problems"]]
    assert {code for code, *_ in result["problems"]} <= {"no-effect", "not-modelled"}
    assert found == problems if problems is not None else len(found) == 1


def test_the_order_of_settings(tmp_path: Path) -> None:
    files = "".join(
        f'//- {path}\n{{"instructions": ["{name}.md"], "username": "{name}"}}\n//- /work/{name}.md\n{name}\n'
        for path, name in (
            ("/home/.config/opencode/opencode.json", "replaced"),
            ("/home/.config/opencode/opencode.jsonc", "user"),
            ("/work/opencode.json", "json"),
            ("/work/opencode.jsonc", "jsonc"),
            ("/work/.opencode/opencode.json", "dot"),
            ("/more/opencode.json", "more"),
        )
    )
    environ = {
        "OPENCODE_CONFIG_DIR": "{root}/more",
        "OPENCODE_CONFIG_CONTENT": json.dumps({"instructions": ["json.md", "last.md"]}),
    }
    files += "//- /work/last.md\nlast\n//- /more/AGENTS.md\nOf more.\n"
    files += "//- /home/.config/opencode/AGENTS.md\nNot this one.\n"
    assert check(files, tmp_path, environ) == {
        "sent": ["Of more.", "user", "json", "jsonc", "dot", "more", "last"],
        "servers": [],
        "problems": [],
    }


def test_references_to_variables_and_files(tmp_path: Path) -> None:
    files = """
//- /work/opencode.json
{
  // {file:nothing.txt}
  "instructions": ["{env:NAME}.md", "no{env:UNSET}ne.md"],
  "agent": {"build": {"prompt": "{file:./build.txt}"}},
  "mcp": {"a": {"type": "local", "command": ["x"], "timeout": "{env:SECRET}"}}
}
//- /work/build.txt
 Be "brief".
//- /work/a.md
A.
//- /work/sub/opencode.json
{"mcp": {"a": {"type": "local", "command": ["x"], "timeout": {env:SECRET}}}}
"""
    tree = write_fixture(GIT + files, tmp_path)
    where = Surroundings(tree.path("/work"), tree.path("/home"), {"NAME": "a", "SECRET": "4711"})
    settings = PROGRAMS["opencode"].settings(Disk(), where)
    assert "4711" not in repr(settings.problems)
    assert [each.code for each in settings.problems] == ["assistant.stops"]
    assert settings.value("agent", "build", "prompt") == 'Be "brief".'
    assert settings.value("instructions") == ["a.md", "none.md"]


def test_agents_and_commands(tmp_path: Path) -> None:
    files = """
//- /work/opencode.json
{"agent": {"build": {"prompt": "Be brief."}, "off": {"disable": true, "description": "Off."}},
 "permission": {"task": {"den*": "deny"}}}
//- /work/.opencode/agent/Keeper.md
---
description: Keeps: the gate
mode: subagent
---
Text.
//- /work/.opencode/agents/deep/any.md
No front matter.
//- /work/.opencode/agent/main.md
---
description: Main.
mode: primary
---
//- /work/.opencode/agent/denied.md
---
description: Denied.
---
"""
    assert check(files, tmp_path)["sent"] == [
        "Be brief.",
        "- deep/any: This subagent should only be called manually by the user.",
        "- Keeper: Keeps: the gate",
    ]


@pytest.mark.parametrize(
    ("path", "field", "message"),
    [
        ("agent/a", "tools: Read, Write", '"tools" must be an object, not text.'),
        ("agents/a", "mode: sub", '"mode" must be subagent, primary or all.'),
        ("agent/a", "temperature: '0.1'", '"temperature" must be a number, not text.'),
        ("command/a", "subtask: 3", '"subtask" must be true or false, not a whole number.'),
    ],
)
def test_a_field_of_the_wrong_type_stops_opencode(
    path: str, field: str, message: str, tmp_path: Path
) -> None:
    files = f"//- /work/.opencode/{path}.md\n---\ndescription: D.\n{field}\n---\nText.\n"
    assert check(files, tmp_path)["problems"] == [
        ("stops", f"/work/.opencode/{path}.md", field.partition(":")[0], message)
    ]


def test_skills_that_are_not_listed(tmp_path: Path) -> None:
    def skill(path: str, fields: str) -> str:
        return f"//- /{path}/SKILL.md\n---\n{fields}\n---\nText.\n"

    files = (
        "//- /work/opencode.json\n"
        '{"permission": {"skill": {"*": "allow", "in*": "deny"}}, "skills": ["more"]}\n'
        + skill("work/.opencode/skill/internal", "name: internal\ndescription: Denied.")
        + skill("work/.opencode/skills/group/inner-x", "name: X\ndescription: Use this: deep")
        + skill("work/.claude/skills/unnamed", "description: Without a name.")
        + skill("work/.opencode/skills/broken", "name: [broken\ndescription: D.")
        + skill("work/more/a/b", "name: b\ndescription: Elsewhere.\nmetadata:\n  a: b")
    )
    tree = write_fixture(GIT + files, tmp_path)
    profile = read_profile("opencode", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    listed = [part.text.split("\n")[1:3] for part in profile.parts]
    assert listed == [
        ["    <name>b</name>", "    <description>Elsewhere.</description>"],
        ["    <name>X</name>", "    <description>Use this: deep</description>"],
    ]
    assert [(each.path.removeprefix(f"{tree.root}/work/"), each.reason) for each in profile.ignored] == [
        (".claude/skills/unnamed/SKILL.md", "opencode lists skills with a `name` and a `description`."),
        (".opencode/skill/internal/SKILL.md", "`permission.skill` denies internal."),
        (".opencode/skills/broken/SKILL.md", "opencode lists skills with a `name` and a `description`."),
    ]


def test_an_entry_that_matches_no_file_is_shown_in_its_place(tmp_path: Path) -> None:
    tree = write_fixture(GIT + '//- /work/opencode.json\n{"instructions": ["no.md"]}\n', tmp_path)
    profile = read_profile("opencode", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    (problem,) = profile.problems
    assert profile.texts[problem.path][problem.span.start : problem.span.end] == '"no.md"'
