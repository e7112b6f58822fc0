"""Files of Claude Code whose author meant something else than what Claude Code does."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Edit
from support.fixture import write_fixture
from support.sentences import sentences

AROUND = """
//- /home/x
//- /work/docs/style.md
Tabs.
//- /work/docs/scoped.md
---
paths: src/**
---
Scoped.
//- /work/AGENTS.md
Agents.
//- /work/packages/x/y.ts
"""


def check(name: str, text: str, root: Path) -> list[tuple[str, ...]]:
    """Problems of a file: the text in place, the message and the fix's title."""
    tree = write_fixture(AROUND, root)
    path = Path(tree.path(f"/work/{name}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    profile = read_profile("claude-code", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    return [
        (text[each.span.start : each.span.end], *sentences(each.message.replace(tree.root, "")))
        for each in profile.problems
        if each.path == str(path)
    ]


@pytest.mark.parametrize(
    "word",
    [
        *(
            "@testing-library/react",
            "@stripe/stripe-js@4",
            "@team/frontend",
            "@app.on_event",
            "@pytest.mark.x",
        ),
        *("@/components/Button.tsx", "@repo/ui/components/", "@someone", "@next/font", "@types/node.d.ts"),
        *("@angular/core", "@scope/package.js", "@media", "@param", "@docs/style.md"),
        *("@docs/no", "@packages/x", "@packages/sdk-core@2"),  # a scope that has the name of a directory
    ],
)
def test_words_that_are_no_imports(word: str, tmp_path: Path) -> None:
    assert check("CLAUDE.md", f"Use {word} here.\n", tmp_path) == []


@pytest.mark.parametrize(
    "word",
    [
        "@docs/scoped",
        "@docs/no.md",
        "@./no",
        "@../no/such",
        "@~/no.md",
        "@no.md",
        "@packages/no/such.ts",
    ],
)
def test_words_that_can_be_paths(word: str, tmp_path: Path) -> None:
    ((place, *said),) = check("CLAUDE.md", f"Use {word} here.\n", tmp_path)
    remedy = "Did you mean docs/scoped.md?" if "scoped" in word else "Correct the path, or add the file."
    assert (place, said[-1]) == (word, remedy)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "CLAUDE.md",
            "See @docs/scoped.md\n",
            snapshot(
                [
                    (
                        "@docs/scoped.md",
                        "scoped.md is sent with every request: Claude Code ignores `paths` of imports.",
                        "Put it into `.claude/rules`, and remove the import.",
                    )
                ]
            ),
        ),
        (
            ".claude/rules/a.md",
            "---\npaths: src/**\n---\nSee @../../docs/style.md\n",
            snapshot(
                [
                    (
                        "@../../docs/style.md",
                        "style.md is sent with every request: Claude Code ignores `paths` for imports.",
                        "Name the file without `@`, or put its text here.",
                    )
                ]
            ),
        ),
        (".claude/rules/a.md", "See @../../docs/style.md\n", snapshot([])),
        ("CLAUDE.md", "---\nWhat is sent:\n---\nNot the first lines.\n", snapshot([])),
        (
            "CLAUDE.md",
            "AGENTS.md",
            snapshot(
                [
                    (
                        "AGENTS.md",
                        "This file has only the words `AGENTS.md`, as a link that was checked out as a text.",
                        "Claude Code does not follow it.",
                        "Write `@AGENTS.md` to import that file.",
                    )
                ]
            ),
        ),
        ("CLAUDE.md", "docs/no.md", snapshot([])),
        (
            ".claude/rules/a.md",
            "---\nglobs: src/**\n---\nX\n",
            snapshot(
                [
                    (
                        "globs",
                        (
                            "`globs` is a field of Cursor: Claude Code ignores it, and sends this "
                            "rule with every request."
                        ),
                        "Use `paths` instead.",
                    )
                ]
            ),
        ),
        (
            ".claude/rules/a.md",
            "---\nalwaysApply: false\n---\nX\n",
            snapshot(
                [
                    (
                        "alwaysApply",
                        (
                            "`alwaysApply` is a field of Cursor: Claude Code ignores it, and sends this "
                            "rule with every request."
                        ),
                        "Use `paths` instead.",
                    )
                ]
            ),
        ),
        (
            ".claude/rules/a.md",
            "<!-- why -->\n---\npaths: src/**\n---\nX\n",
            snapshot([("---", "Front matter counts only in the first line.", "Put the comment below it.")]),
        ),
        (".claude/rules/a.md", "---\npaths: src/**\n---\nX\n", snapshot([])),
        (".claude/rules/a.md", "---\ndescription: which globs are good\n---\nX\n", snapshot([])),
    ],
)
def test_what_does_not_count(name: str, text: str, expected: list[tuple[str, ...]], tmp_path: Path) -> None:
    assert check(name, text, tmp_path) == expected


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        (
            "//- /CLAUDE.md\nAbove.\n//- /work/AGENTS.md\nX\n//- /home/x\n",
            snapshot(["../CLAUDE.md is read instead. Put a CLAUDE.md with `@AGENTS.md` beside this file."]),
        ),
        (
            "//- /work/CLAUDE.local.md\nMine.\n//- /work/AGENTS.md\nX\n//- /home/x\n",
            snapshot(["CLAUDE.local.md is read instead. Import this file there: `@AGENTS.md`."]),
        ),
        (
            (
                "//- /work/CLAUDE.md\nX\n//- /home/.claude/settings.json\n"
                '{"env": {"CLAUDE_CODE_DISABLE_CLAUDE_MDS": 1}}\n'
            ),
            snapshot(["`CLAUDE_CODE_DISABLE_CLAUDE_MDS` is set (~/.claude/settings.json:1)."]),
        ),
        (
            (
                "//- /work/CLAUDE.local.md\nX\n//- /home/x\n//- /work/.claude/settings.json\n"
                '{"claudeMdExcludes": [\n  "**/none.md",\n  "**/CLAUDE.local.md"\n]}\n'
            ),
            snapshot(["The setting `claudeMdExcludes` (.claude/settings.json:3) leaves it out."]),
        ),
        (
            (
                "//- /work/AGENTS.md\nX\n//- /home/.claude/settings.json\n"
                '{"pluginConfigs": {"agents-md@builtin": {"options": {\n"instructionFiles": "claude-md"}}}}\n'
            ),
            snapshot(["The setting `instructionFiles` (~/.claude/settings.json:2) says so."]),
        ),
    ],
)
def test_a_reason_names_what_decided(tree: str, expected: list[str], tmp_path: Path) -> None:
    fixture = write_fixture(tree, tmp_path)
    profile = read_profile("claude-code", Surroundings(fixture.path("/work"), fixture.path("/home"), {}))
    assert [each.reason for each in profile.ignored] == expected


def test_a_field_is_found_where_it_stands(tmp_path: Path) -> None:
    text = "---\ndescription: which globs are good\nglobs: '*.py'\n---\nX\n"
    tree = write_fixture(AROUND, tmp_path)
    path = Path(tree.path("/work/.claude/rules/a.md"))
    path.parent.mkdir(parents=True)
    path.write_text(text)
    profile = read_profile("claude-code", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    (edit,) = [edit for each in profile.problems if each.fix for edit in each.fix.edits]
    assert text[: edit.span.start].endswith("are good\n")


@pytest.mark.parametrize(
    ("paths", "place", "said", "fixed"),
    [
        (
            "\n  - **/*.ts\n  - *.py",
            "*",
            "Claude Code cannot read this front matter, so it sends the rule with every request.",
            '\n  - "**/*.ts"\n  - "*.py"',
        ),
        (
            ' "a", "b"',
            ",",
            "Claude Code cannot read this front matter, so it sends the rule with every request.",
            None,
        ),
        (
            " ./src/**",
            "./src",
            "`./src` matches no file: Claude Code reads `paths` as lines of a .gitignore.",
            " src/**",
        ),
        (
            " [**/*.ts]",
            "[**/*.ts]",
            "`[**/*.ts]` matches no file: Claude Code reads `paths` as lines of a .gitignore.",
            None,
        ),
        (
            ' "src/**',
            '"src/**',
            "This quote does not end, so Claude Code reads it as part of the text of `paths`.",
            ' "src/**"',
        ),
        (
            " [src/**",
            "[src/**",
            "This bracket does not end, so Claude Code reads it as part of the text of `paths`.",
            " [src/**]",
        ),
        (" src/** docs/**", "src/** docs", "`src/** docs/**` is one glob for Claude Code.", None),
        (
            " '!src/**'",
            "!src",
            "`!src` matches no file: Claude Code reads `paths` as lines of a .gitignore.",
            None,
        ),
    ],
)
def test_paths_that_match_nothing(
    paths: str, place: str, said: str, fixed: str | None, tmp_path: Path
) -> None:
    text = f"---\npaths:{paths}\n---\nX\n"
    ((found, *sentences_, fix),) = check_fixed(text, tmp_path)
    assert (found, sentences_[0], fix) == (place, said, fixed and f"---\npaths:{fixed}\n---\nX\n")


@pytest.mark.parametrize(
    "paths", [" src/**, docs/**", " **/*.ts", " 'docs/a b.md'", " ['src/**', '!src/x/**']", " {a,b}/**"]
)
def test_paths_that_match_files(paths: str, tmp_path: Path) -> None:
    assert check(".claude/rules/a.md", f"---\npaths:{paths}\n---\nX\n", tmp_path) == []


def check_fixed(text: str, root: Path) -> list[tuple[str | None, ...]]:
    """Problems of a rule: the text in place, the message, and the rule with the fix."""
    tree = write_fixture(AROUND, root)
    path = Path(tree.path("/work/.claude/rules/a.md"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    profile = read_profile("claude-code", Surroundings(tree.path("/work"), tree.path("/home"), {}))
    return [
        (
            text[each.span.start : each.span.end],
            *sentences(each.message),
            None if each.fix is None else apply_edits(text, each.fix.edits),
        )
        for each in profile.problems
        if each.path == str(path)
    ]


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """A text with edits that do not overlap."""
    for edit in sorted(edits, key=lambda each: each.span.start, reverse=True):
        text = f"{text[: edit.span.start]}{edit.text}{text[edit.span.end :]}"
    return text


NO_MATTER = "Claude Code sees no front matter here, and sends the rule with every request."
UNREADABLE = "Claude Code cannot read this front matter: none of its fields counts."
NO_AGENT = "Claude Code skips this agent: it needs a `name` and a `description`, each a string."
SKILL, AGENT, RULE = ".claude/skills/s/SKILL.md", ".claude/agents/s.md", ".claude/rules/s.md"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (RULE, "\n---\npaths: src/**\n---\nX\n", NO_MATTER),
        (RULE, "---\npaths: src/**\nX\n", NO_MATTER),
        (RULE, "+++\npaths = 'src/**'\n+++\nX\n", NO_MATTER),
        (
            RULE,
            "---\npaths: 5\n---\nX\n",
            "`paths` is neither text nor a list, so the rule is sent with every request.",
        ),
        (
            RULE,
            "---\nPaths: src/**\n---\nX\n",
            "Claude Code ignores `Paths`: this rule is sent with every request.",
        ),
        (SKILL, "---\ndescription: 'open\nhooks: {}\n---\nX\n", UNREADABLE),
        (SKILL, "---\nname: s\ndescription: Open\nX\n", "This front matter does not end."),
        (
            SKILL,
            "---\nname: [open: now\ndescription: s\n---\nX\n",
            "This bracket does not end, so Claude Code reads it as part of the text of `name`.",
        ),
        (
            RULE,
            "---\ndescription: 'open\n---\nX\n",
            "Claude Code cannot read this front matter, so it sends the rule with every request.",
        ),
        (SKILL, "---\nDescription: Releases\n---\nX\n", "Claude Code ignores `Description`."),
        (
            SKILL,
            "---\ndescription: [a, b]\n---\nX\n",
            "This `description` is not text: the first line of the file is shown instead.",
        ),
        (AGENT, "---\nname: a\ndescription: 'open\n---\nX\n", UNREADABLE),
        (
            SKILL,
            "---\ndescription: a\nallowed-tools: [Read\n---\nX\n",
            "This bracket does not end, so Claude Code reads it as part of the text of `allowed-tools`.",
        ),
        (
            AGENT,
            "---\nname: a\ndescription: b\ntools: All tools\n---\nX\n",
            "Claude Code takes `All tools` for names of tools: the agent does not get it.",
        ),
        (AGENT, "---\nname: a\n---\nX\n", NO_AGENT),
        (AGENT, "---\nname: 5\ndescription: b\n---\nX\n", NO_AGENT),
    ],
)
def test_front_matter_that_does_not_count(name: str, text: str, said: str, tmp_path: Path) -> None:
    assert [message for _, message, *_ in check(name, text, tmp_path)] == [said]


@pytest.mark.parametrize("name", [RULE, SKILL, AGENT])
def test_an_open_bracket_in_a_field_that_nobody_heeds_is_not_reported(name: str, tmp_path: Path) -> None:
    text = "---\nname: s\ndescription: s\npaths: src/**\nnotes: [open\n---\nX\n"
    assert check(name, text, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            SKILL,
            "---\ndescription: Use '[this]: it helps\nhooks: {Stop: [{hooks: [{type: command}]}]}\n---\nX\n",
        ),
        (SKILL, "# Release\n\nX\n"),
        (AGENT, "# What the agents here are for\n"),
        (AGENT, "---\nname: a\ndescription: Reviews: all\n---\nX\n"),
        (RULE, "---\ndescription: Rules\n---\nX\n"),
    ],
)
def test_front_matter_that_counts(name: str, text: str, tmp_path: Path) -> None:
    assert check(name, text, tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            ".claude/rules/a.md",
            "---\npaths: !src/**\n---\nTabs.\n",
            (
                "!src/**",
                ("`!src/**` is a tag for YAML, so `paths` is empty and the rule is sent with every request."),
            ),
        ),
        (
            ".claude/rules/a.md",
            "---\nowner: mia\n---\npaths: src/**\n---\nTabs.\n",
            (
                "paths",
                ("The front matter ends above this line, so Claude Code sends the rule with every request."),
            ),
        ),
        (
            ".claude/skills/a/SKILL.md",
            "---\nname: a\ndescription:\n---\nShip it.\n",
            ("---", "This `description` is empty: the first line of the file is shown instead."),
        ),
        (
            ".claude/commands/a.md",
            '---\ndescription: " "\n---\nShip it.\n',
            ("---", "This `description` is empty: the first line of the file is shown instead."),
        ),
        (
            ".claude/agents/a.md",
            "\n---\nname: a\ndescription: b\n---\nShip it.\n",
            ("\n--", "Front matter counts only from the first line."),
        ),
        (
            ".claude/agents/a.md",
            "---\n---\nShip it.\n",
            ("---", "Claude Code skips this agent: it needs a `name` and a `description`, each a string."),
        ),
    ],
)
def test_fields_that_say_nothing(name: str, text: str, expected: tuple[str, str], tmp_path: Path) -> None:
    ((place, *said),) = check(name, text, tmp_path)
    assert (place, said[0]) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".claude/rules/a.md", "---\npaths: !src/** # not these\n---\nTabs.\n"),
        (".claude/rules/a.md", "---\r\nx: 1\r\n---\r\npaths:\r\n  - src/**\r\n---\r\nTabs.\r\n"),
        (".claude/rules/a.md", "---\nx: 1\n---\n\npaths: a\n\nowner: mia\n---\nTabs.\n"),
        (".claude/agents/a.md", "---\n# nothing yet\n---\nShip it.\n"),
        (".claude/skills/a/SKILL.md", "---\nname: a\ndescription: |\n\n---\nShip it.\n"),
    ],
)
def test_other_spellings_of_them(name: str, text: str, tmp_path: Path) -> None:
    assert len(check(name, text, tmp_path)) == 1


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (".claude/rules/a.md", "---\npaths: src/**\n---\nTabs.\n"),
        (".claude/rules/a.md", "---\nowner: mia\n---\npaths: are lines of a list.\n"),
        (".claude/rules/a.md", "---\nowner: mia\n---\nSay so:\n\npaths: src/**\n---\n"),
        (".claude/skills/a/SKILL.md", "---\nname: a\n---\nShip it.\n"),
        (".claude/agents/README.md", "# The agents\n\nEach has a file.\n"),
        (".claude/agents/README.md", "\n# The agents\n\n---\n\nEach has a file.\n"),
    ],
)
def test_fields_that_are_left_out_on_purpose(name: str, text: str, tmp_path: Path) -> None:
    assert check(name, text, tmp_path) == []
