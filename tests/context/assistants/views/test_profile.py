"""Profiles: what is left out and why, problems with their fixes, and who reads what."""

from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Profile, Surroundings
from nexus_context.assistants.views.profile import ASSISTANTS, read_profile
from nexus_context.assistants.views.readers import who_reads_what
from nexus_context.errors import Severity
from support.fixture import Fixture, write_fixture

FOLDER = """
//- /home/.claude/CLAUDE.md
The user's.
//- /home/work/.git/HEAD
ref: refs/heads/main
//- /home/work/.git/objects/x
//- /home/work/.git/refs/x
//- /home/work/CLAUDE.md
See @docs/style.md. And @docs/style.md, too: @no/such.md
//- /home/work/docs/style.md
Tabs.
//- /home/work/AGENTS.md
Agents.
//- /home/work/src/AGENTS.md
Nested.
//- /home/work/.cursor/rules/a.mdc
---
description: When you open the gate.
---
Rule of Cursor.
//- /home/work/.github/instructions/ts.instructions.md
---
applyTo: '**/*.ts'
---
TypeScript.
//- /home/work/GEMINI.md
Before @docs/style.md after.
"""


def surroundings(fixture: Fixture, folder: str = "/home/work") -> Surroundings:
    return Surroundings(fixture.path(folder), fixture.path("/home"), {})


def profile(fixture: Fixture, name: str, folder: str = "/home/work", **overlays: str) -> Profile:
    disk = Disk({fixture.path(path): text for path, text in overlays.items()})
    return read_profile(name, surroundings(fixture, folder), disk=disk)


def check(text: str, name: str, root: Path) -> dict[str, Any]:
    """What a profile says, with paths relative to the home."""
    fixture = write_fixture(text, root)
    home = fixture.path("/home") + "/"
    result = profile(fixture, name)
    return {
        "sent": [(part.path.removeprefix(home), part.scope) for part in result.parts if part.path],
        "later": [(each.path.removeprefix(home), each.when) for each in result.later],
        "ignored": [(each.path.removeprefix(home), each.reason) for each in result.ignored],
        "problems": [
            (each.path.removeprefix(home), int(each.severity), *each.message.replace(home, "").split(": "))
            for each in result.problems
            if each.severity <= 2
        ],
    }


def test_claude_code(tmp_path: Path) -> None:
    assert check(FOLDER, "claude-code", tmp_path) == snapshot(
        {
            "sent": [(".claude/CLAUDE.md", "user"), ("work/CLAUDE.md", "project")],
            "later": [],
            "ignored": [
                (
                    "work/AGENTS.md",
                    "CLAUDE.md is read instead. Import this file there: `@AGENTS.md`.",
                ),
                (
                    "work/GEMINI.md",
                    "Claude Code reads CLAUDE.md, not GEMINI.md.",
                ),
                (
                    "work/.cursor/rules/a.mdc",
                    "Claude Code reads CLAUDE.md, not rules of Cursor.",
                ),
                (
                    "work/.github/instructions/ts.instructions.md",
                    "Claude Code reads CLAUDE.md, not instructions of GitHub Copilot.",
                ),
                (
                    "work/src/AGENTS.md",
                    "CLAUDE.md is read instead. Put a CLAUDE.md with `@AGENTS.md` beside this file.",
                ),
            ],
            "problems": [
                (
                    "work/CLAUDE.md",
                    2,
                    "Claude Code reads `.` as part of the path. Put a space before it.",
                ),
                (
                    "work/CLAUDE.md",
                    2,
                    "Claude Code reads `,` as part of the path. Put a space before it.",
                ),
                (
                    "work/CLAUDE.md",
                    2,
                    "no/such.md does not exist. Correct the path, or add the file.",
                ),
            ],
        }
    )


def test_codex(tmp_path: Path) -> None:
    assert check(FOLDER, "codex", tmp_path) == snapshot(
        {
            "sent": [("work/AGENTS.md", "project")],
            "later": [],
            "ignored": [
                (".claude/CLAUDE.md", "Codex reads AGENTS.md, not CLAUDE.md."),
                ("work/CLAUDE.md", "Codex reads AGENTS.md, not CLAUDE.md."),
                ("work/GEMINI.md", "Codex reads AGENTS.md, not GEMINI.md."),
                (
                    "work/.cursor/rules/a.mdc",
                    "Codex reads AGENTS.md, not rules of Cursor.",
                ),
                (
                    "work/.github/instructions/ts.instructions.md",
                    "Codex reads AGENTS.md, not instructions of GitHub Copilot.",
                ),
                (
                    "work/src/AGENTS.md",
                    "Codex reads AGENTS.md of the folder where it runs, not of those below.",
                ),
            ],
            "problems": [],
        }
    )


def test_opencode(tmp_path: Path) -> None:
    assert check(FOLDER, "opencode", tmp_path) == snapshot(
        {
            "sent": [(".claude/CLAUDE.md", "user"), ("work/AGENTS.md", "project")],
            "later": [("work/src/AGENTS.md", "after a file in or below its directory is read")],
            "ignored": [
                ("work/CLAUDE.md", "opencode reads AGENTS.md in these directories, and then no CLAUDE.md."),
                ("work/GEMINI.md", "opencode reads AGENTS.md or CLAUDE.md, not GEMINI.md."),
                (
                    "work/.cursor/rules/a.mdc",
                    "opencode reads AGENTS.md or CLAUDE.md, not rules of Cursor.",
                ),
                (
                    "work/.github/instructions/ts.instructions.md",
                    "opencode reads AGENTS.md or CLAUDE.md, not instructions of GitHub Copilot.",
                ),
            ],
            "problems": [],
        }
    )


def test_gemini(tmp_path: Path) -> None:
    assert check(FOLDER, "gemini", tmp_path) == snapshot(
        {
            "sent": [
                ("work/GEMINI.md", "project"),
                ("work/docs/style.md", "import"),
                ("work/GEMINI.md", "project"),
            ],
            "later": [],
            "ignored": [
                (".claude/CLAUDE.md", "Gemini CLI reads GEMINI.md, not CLAUDE.md."),
                ("work/AGENTS.md", "Gemini CLI reads GEMINI.md, not AGENTS.md."),
                ("work/CLAUDE.md", "Gemini CLI reads GEMINI.md, not CLAUDE.md."),
                ("work/.cursor/rules/a.mdc", "Gemini CLI reads GEMINI.md, not rules of Cursor."),
                (
                    "work/.github/instructions/ts.instructions.md",
                    "Gemini CLI reads GEMINI.md, not instructions of GitHub Copilot.",
                ),
                ("work/src/AGENTS.md", "Gemini CLI reads GEMINI.md, not AGENTS.md."),
            ],
            "problems": [],
        }
    )


def test_copilot(tmp_path: Path) -> None:
    assert check(FOLDER, "copilot", tmp_path) == snapshot(
        {
            "sent": [
                ("work/AGENTS.md", "project"),
                ("work/CLAUDE.md", "project"),
                (".claude/CLAUDE.md", "user"),
            ],
            "later": [
                (
                    "work/.github/instructions/ts.instructions.md",
                    "with requests about files that match **/*.ts",
                )
            ],
            "ignored": [
                (
                    "work/GEMINI.md",
                    "VS Code does not read GEMINI.md; GitHub's agents and the Copilot command line do.",
                ),
                (
                    "work/.cursor/rules/a.mdc",
                    "GitHub Copilot reads its own files, AGENTS.md and CLAUDE.md, not rules of Cursor.",
                ),
                (
                    "work/src/AGENTS.md",
                    "VS Code does not read it: `chat.useNestedAgentsMdFiles` is off.",
                ),
            ],
            "problems": [],
        }
    )


def test_cursor(tmp_path: Path) -> None:
    assert check(FOLDER, "cursor", tmp_path) == snapshot(
        {
            "sent": [("work/AGENTS.md", "project"), ("work/.cursor/rules/a.mdc", "rule")],
            "later": [
                ("work/CLAUDE.md", "on Cursor's command line, not in its editor"),
                ("work/.cursor/rules/a.mdc", "when the model asks for it, by its description"),
                ("work/src/AGENTS.md", "after a file in or below its directory is read"),
            ],
            "ignored": [
                (
                    ".claude/CLAUDE.md",
                    "Cursor reads AGENTS.md and its own rules, not CLAUDE.md.",
                ),
                (
                    "work/GEMINI.md",
                    "Cursor reads AGENTS.md and its own rules, not GEMINI.md.",
                ),
                (
                    "work/.github/instructions/ts.instructions.md",
                    "Cursor reads AGENTS.md and its own rules, not instructions of GitHub Copilot.",
                ),
            ],
            "problems": [],
        }
    )


NESTED = "VS Code does not read it: `chat.useNestedAgentsMdFiles` is off."
OF_HERE = "Codex reads AGENTS.md of the folder where it runs, not of those below."


@pytest.mark.parametrize(
    ("name", "files", "reason", "is_problem"),
    [
        ("copilot", {"GEMINI.md": "G", "AGENTS.md": "A"}, None, False),
        ("copilot", {"a/GEMINI.md": "G", "AGENTS.md": "A"}, None, True),
        ("copilot", {"a/AGENTS.md": "N", "AGENTS.md": "A"}, NESTED, False),
        (
            "copilot",
            {"CLAUDE.md": "C", ".vscode/settings.json": '{"chat.useClaudeMdFile": false}'},
            None,
            False,
        ),
        (
            "claude-code",
            {"a/AGENTS.md": "N", "CLAUDE.md": "C"},
            "CLAUDE.md is read instead. Put a CLAUDE.md with `@AGENTS.md` beside this file.",
            True,
        ),
        (
            "claude-code",
            {"a/AGENTS.md": "N", "a/.claude/CLAUDE.md": "B", "CLAUDE.md": "C"},
            "a/.claude/CLAUDE.md is read instead. Import this file there: `@../AGENTS.md`.",
            True,
        ),
        (
            "claude-code",
            {".claude/AGENTS.md": "N", "CLAUDE.md": "C"},
            "CLAUDE.md is read instead. Import this file there: `@.claude/AGENTS.md`.",
            True,
        ),
        (
            "codex",
            {"CLAUDE.md": "Same.", "AGENTS.md": "Same."},
            "It has the same text as AGENTS.md, which is read.",
            False,
        ),
        ("codex", {"CLAUDE.md": "Sane.", "AGENTS.md": "Same."}, None, True),
        ("codex", {"CLAUDE.md": "", "AGENTS.md": ""}, None, True),
        (
            "claude-code",
            {"AGENTS.md": "Same.", "CLAUDE.md": "Same."},
            "It has the same text as CLAUDE.md, which is read.",
            False,
        ),
        (
            "opencode",
            {"CLAUDE.md": "@./AGENTS.md\n", "AGENTS.md": "A"},
            "It only imports AGENTS.md, which is read.",
            False,
        ),
        ("opencode", {"CLAUDE.md": "@AGENTS.md and more", "AGENTS.md": "A"}, None, True),
        ("codex", {"templates/web/AGENTS.md": "T", "AGENTS.md": "A"}, OF_HERE, False),
        ("codex", {"x/embed_templates/AGENTS.md": "T", "AGENTS.md": "A"}, OF_HERE, False),
        ("codex", {"skills/x/assets/AGENTS.md": "T", "AGENTS.md": "A"}, OF_HERE, False),
        ("codex", {"contemplate/AGENTS.md": "T", "AGENTS.md": "A"}, OF_HERE, True),
    ],
    ids=str,
)
def test_what_is_unread_on_purpose_is_no_problem(
    name: str, files: dict[str, str], reason: str | None, is_problem: bool, tmp_path: Path
) -> None:
    """The first file is not read."""
    path = next(iter(files))
    settings = "//- /home/work/.codex/config.toml\n\n//- /home/work/opencode.json\n{}\n"
    settings += "//- /home/work/.github/copilot-instructions.md\nX\n"
    text = settings + "".join(f"//- /home/work/{each}\n{content}\n" for each, content in files.items())
    fixture = write_fixture(text, tmp_path)
    result = profile(fixture, name)
    place = fixture.path(f"/home/work/{path}")
    reasons = {each.path: each.reason for each in result.ignored}
    assert place in reasons
    assert reason in (None, reasons[place])
    unread = [each.path for each in result.problems if each.code == "assistant.unread"]
    assert (place in unread) == is_problem


@pytest.mark.parametrize(
    ("above", "severity"),
    [("/home/CLAUDE.md", Severity.WARNING), ("/home/mono/CLAUDE.md", Severity.INFORMATION)],
)
def test_a_file_above_the_project_keeps_the_projects_own_from_being_read(
    above: str, severity: Severity, tmp_path: Path
) -> None:
    git = "//- /home/mono/.git"
    text = f"{git}/HEAD\nref: refs/heads/main\n{git}/objects/x\n{git}/refs/x\n"
    fixture = write_fixture(text + f"//- /home/mono/work/AGENTS.md\nA\n//- {above}\nC\n", tmp_path)
    surroundings = Surroundings(fixture.path("/home/mono/work"), fixture.path("/root"), {})
    (problem,) = read_profile("claude-code", surroundings).problems
    assert (problem.path, problem.code, problem.severity) == (
        fixture.path("/home/mono/work/AGENTS.md"),
        "assistant.unread",
        severity,
    )
    assert "CLAUDE.md is read instead." in problem.message


def test_codex_tells_what_it_never_reads(tmp_path: Path) -> None:
    lines = "".join(f"Rule {number:04}: the gate stays closed.\n" for number in range(1_000))
    text = "//- /home/work/AGENTS.md\n" + lines + "//- /home/work/CLAUDE.md\nNot for Codex.\n"
    assert check(text, "codex", tmp_path) == snapshot(
        {
            "sent": [("work/AGENTS.md", "project")],
            "later": [],
            "ignored": [("work/CLAUDE.md", "Codex reads AGENTS.md, not CLAUDE.md.")],
            "problems": [
                (
                    "work/AGENTS.md",
                    1,
                    "Cut at 32,768 bytes",
                    "lines 964–1000 are never read. Shorten it, or raise `project_doc_max_bytes`.",
                )
            ],
        }
    )


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        (
            "claude-code",
            "//- /home/work/CLAUDE.md\n@a.md\n//- /home/work/a.md\n@CLAUDE.md\n",
            ["CLAUDE.md imports this file in turn, so this import adds nothing. Remove one of the two."],
        ),
        (
            "gemini",
            "//- /home/work/GEMINI.md\n@a.md\n//- /home/work/a.md\nA @a.md\n",
            ["work/a.md imports this file, so Gemini CLI leaves it out. Remove one of the imports."],
        ),
        (
            "opencode",
            '//- /home/work/opencode.json\n{"instructions": ["a.md", "no/*.md"]}\n//- /home/work/a.md\nA.\n',
            ["No file matches no/*.md", "opencode reads nothing for it. Correct the path."],
        ),
        ("claude-code", "//- /home/work/CLAUDE.md\nmail @someone about @types\n", []),
    ],
)
def test_what_brings_nothing_is_a_problem(name: str, text: str, messages: list[str], tmp_path: Path) -> None:
    problems = check(text, name, tmp_path)["problems"]
    assert [message for _, _, *parts in problems for message in parts] == messages


def test_a_pattern_for_everything_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nexus_context.assistants.opencode import rules, visits

    monkeypatch.setattr(rules, "MOST_VISITS", 3)
    monkeypatch.setattr(visits, "MOST_VISITS", 3)
    files = "".join(f"//- /home/work/{name}.txt\n{name}\n" for name in "abcde")
    text = "//- /home/work/.git/HEAD\nref: x\n//- /home/work/.git/objects/x\n//- /home/work/.git/refs/x\n"
    text += '//- /home/work/opencode.json\n{"instructions": ["**/*.md"]}\n' + files
    assert check(text, "opencode", tmp_path)["problems"] == [
        ("work/opencode.json", 2, "**/*.md is looked for in more than 3 files, where Nexus stops.")
    ]


def test_files_beyond_what_nexus_reads_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nexus_context.assistants.reading import disk

    monkeypatch.setattr(disk, "MOST_BYTES", 30)
    text = (
        "//- /home/work/CLAUDE.md\n@a.md @b.md\n//- /home/work/a.md\nShort.\n//- /home/work/b.md\n" + "x" * 40
    )
    result = check(text, "claude-code", tmp_path)
    assert result["sent"] == [("work/CLAUDE.md", "project"), ("work/a.md", "import")]
    assert [(path, level) for path, level, *_ in result["problems"]] == [("work/b.md", 2)]


def test_the_fix_of_an_import_that_ends_a_sentence(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/work/CLAUDE.md\nSee @a.md.\n//- /home/work/a.md\nA.\n", tmp_path)
    (problem,) = profile(fixture, "claude-code").problems
    assert problem.fix is not None
    (edit,) = problem.fix.edits
    text = fixture.files[problem.path]
    fixed = text[: edit.span.start] + edit.text + text[edit.span.end :]
    assert fixed == "See @a.md .\n"
    sent = [part.path for part in profile(fixture, "claude-code", **{"/home/work/CLAUDE.md": fixed}).parts]
    assert sent == [None, fixture.path("/home/work/CLAUDE.md"), fixture.path("/home/work/a.md"), None]


@pytest.mark.parametrize("name", tuple(PROGRAMS))
def test_every_known_file_is_sent_or_has_a_reason(name: str, tmp_path: Path) -> None:
    fixture = write_fixture(FOLDER, tmp_path)
    result = who_reads_what(surroundings(fixture))
    for row in result.files:
        use = row.uses[name]
        is_import = row.path.endswith("style.md")
        assert use.use == "sent" or use.reason or is_import, (row.path, use)


def test_every_rule_has_a_source() -> None:
    for assistant in ASSISTANTS:
        for rule in assistant.rules:
            by_program = rule.source == f"{assistant.title} {assistant.version}"
            assert rule.source.startswith("https://") or (by_program and assistant.verified == "run")


def test_a_nested_file_brings_its_imports(tmp_path: Path) -> None:
    """Claude Code expands the imports of a nested CLAUDE.md when it sends that; each file once."""
    text = """
//- /home/work/CLAUDE.md
Root.
//- /home/work/a/CLAUDE.md
@AGENTS.md
//- /home/work/a/AGENTS.md
Agents of a: @deep.md
//- /home/work/a/deep.md
Deep.
//- /home/work/b/.claude/CLAUDE.md
@../AGENTS.md
//- /home/work/b/AGENTS.md
Agents of b.
//- /home/work/c/AGENTS.md
Agents of c.
//- /home/work/d/CLAUDE.md
<!-- nothing -->
"""
    result = check(text, "claude-code", tmp_path)
    assert result == snapshot(
        {
            "sent": [("work/CLAUDE.md", "project")],
            "later": [
                ("work/a/CLAUDE.md", "after a file in or below its directory is read"),
                ("work/a/AGENTS.md", "with a/CLAUDE.md, which imports it"),
                ("work/a/deep.md", "with a/AGENTS.md, which imports it"),
                ("work/b/.claude/CLAUDE.md", "after a file in or below b is read"),
                ("work/b/AGENTS.md", "with b/.claude/CLAUDE.md, which imports it"),
            ],
            "ignored": [
                (
                    "work/c/AGENTS.md",
                    "CLAUDE.md is read instead. Put a CLAUDE.md with `@AGENTS.md` beside this file.",
                ),
                ("work/d/CLAUDE.md", "It has no text that is sent."),
            ],
            "problems": [],
        }
    )


def test_no_nested_file_is_read_where_claude_code_reads_none(tmp_path: Path) -> None:
    settings = '{"env": {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1"}}'
    text = f"//- /home/work/.claude/settings.json\n{settings}\n//- /home/work/a/CLAUDE.md\nA.\n"
    assert profile(write_fixture(text, tmp_path), "claude-code").later == ()
