"""The folders that the assistants run in. Each is one string; `/home` is the home, `/work` the project.

FOREIGN has folders that others thought of, each with its source: public reports, and the examples of the
rules of agnix 0.59.3 (MIT or Apache-2.0), the broken and the corrected one. LISTED has folders whose skills,
commands, agents, styles and plugins a program lists.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

FOREIGN = Path(__file__).with_name("foreign_folders.jsonl")
LISTED = Path(__file__).with_name("listed_folders.jsonl")
ALL = ("claude-code", "codex", "opencode", "gemini")
GIT = """\
//- /work/.git/HEAD
ref: refs/heads/main
//- /work/.git/objects/
//- /work/.git/refs/
"""
LOCAL_SETTINGS = """\
//- /work/.claude/settings.local.json
{"claudeMdExcludes": ["**/work/CLAUDE.md"]}
//- /work/CLAUDE.md
MK_root
//- /work/sub/CLAUDE.md
MK_sub
"""


class Case(NamedTuple):
    """A folder. `directory` is where the program runs; `environ` may use `{root}`.

    `as_stored`: the program reads a directory in the order in which the file system has it.
    """

    name: str
    files: str
    directory: str = "/work"
    environ: Mapping[str, str] = {}
    programs: tuple[str, ...] = ALL
    as_stored: bool = False


def _recorded_cases(path: Path) -> Iterator[Case]:
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        programs, as_stored = tuple(row["programs"]), row.get("as_stored", False)
        yield Case(row["name"], row["files"], row["directory"], row["environ"], programs, as_stored)


def _setting(program: str, path: str, text: str) -> Case:
    """A folder whose one setting changes the program's own prompt or tools."""
    return Case(f"own prompt and tools under {text}", f"{GIT}//- /work/{path}\n{text}\n", programs=(program,))


OWN_SETTINGS = tuple(
    _setting(*row)
    for row in (
        ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Agent(*)"]}}'),
        ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Bash"]}}'),
        ("claude-code", ".claude/settings.json", '{"permissions": {"deny": ["Bash(rm *)", "mcp__box"]}}'),
        ("claude-code", ".claude/settings.json", '{"permissions": {"defaultMode": "plan"}}'),
        ("claude-code", ".claude/settings.json", '{"permissions": {"defaultMode": "acceptEdits"}}'),
        ("opencode", "opencode.json", '{"permission": {"bash": "deny"}}'),
        ("opencode", "opencode.json", '{"permission": "deny"}'),
        ("opencode", "opencode.json", '{"permission": {"task": {"*": "deny"}}}'),
        ("opencode", "opencode.json", '{"permission": {"bash": {"rm *": "deny"}}}'),
        ("opencode", "opencode.json", '{"tools": {"webfetch": false}}'),
        ("codex", ".codex/config.toml", "features.shell_tool = false"),
        ("codex", ".codex/config.toml", 'sandbox_mode = "read-only"'),
        ("gemini", ".gemini/settings.json", '{"tools": {"core": ["read_file"]}}'),
        ("gemini", ".gemini/settings.json", '{"tools": {"exclude": ["web_fetch"]}}'),
        ("gemini", ".gemini/settings.json", '{"general": {"defaultApprovalMode": "auto_edit"}}'),
    )
)

CASES = (
    Case("nothing", "//- /work/README.md\n# Gate\n"),
    Case(
        "a subfolder under the local settings of the repository's root",
        GIT + LOCAL_SETTINGS,
        directory="/work/sub",
        programs=("claude-code",),
    ),
    Case(
        "a subfolder under the local settings of a directory that is no repository",
        LOCAL_SETTINGS,
        directory="/work/sub",
        programs=("claude-code",),
    ),
    *OWN_SETTINGS,
    Case(
        "one file of each name",
        GIT
        + """\
//- /work/CLAUDE.md
Claude: the gate is red.
//- /work/AGENTS.md
Agents: the gate is green.
//- /work/GEMINI.md
Gemini: the gate is blue.
//- /work/.github/copilot-instructions.md
Copilot: the gate is white.
//- /work/.cursorrules
Cursor: the gate is black.
//- /work/CONTEXT.md
Context: the gate is grey.
""",
    ),
    Case("CLAUDE.md alone", GIT + "//- /work/CLAUDE.md\nThe gate is red.\n"),
    Case("AGENTS.md alone", GIT + "//- /work/AGENTS.md\nThe gate is green.\n"),
    Case("CONTEXT.md alone", GIT + "//- /work/CONTEXT.md\nThe gate is grey.\n"),
    Case(
        "nested, run at the root",
        GIT
        + """\
//- /work/CLAUDE.md
Root of Claude.
//- /work/AGENTS.md
Root of agents.
//- /work/src/CLAUDE.md
Nested for Claude.
//- /work/src/AGENTS.md
Nested for agents.
""",
    ),
    Case(
        "nested, run in the nested folder",
        GIT
        + """\
//- /CLAUDE.md
Above the repository, for Claude.
//- /AGENTS.md
Above the repository, for agents.
//- /work/CLAUDE.md
Root of Claude.
//- /work/AGENTS.md
Root of agents.
//- /work/src/CLAUDE.md
Nested for Claude.
//- /work/src/AGENTS.md
Nested for agents.
//- /work/src/deep/x.py
pass
//- /work/src/deep/AGENTS.md
Deep for agents.
""",
        directory="/work/src/deep",
    ),
    Case(
        "no repository, run in a nested folder",
        """\
//- /work/CLAUDE.md
Root of Claude.
//- /work/AGENTS.md
Root of agents.
//- /work/src/AGENTS.md
Nested for agents.
//- /work/src/CLAUDE.md
Nested for Claude.
""",
        directory="/work/src",
    ),
    Case(
        "files of the user",
        GIT
        + """\
//- /home/.claude/CLAUDE.md
The user's own, for Claude.
//- /home/.codex/AGENTS.md
The user's own, for Codex.
//- /home/.config/opencode/AGENTS.md
The user's own, for opencode.
//- /work/CLAUDE.md
Of the project, for Claude.
//- /work/AGENTS.md
Of the project, for agents.
""",
    ),
    Case(
        "the user's CLAUDE.md alone",
        GIT
        + """\
//- /home/.claude/CLAUDE.md
The user's own, for Claude.
""",
    ),
    Case(
        "configuration directories from variables",
        GIT
        + """\
//- /home/.claude/CLAUDE.md
Not this one.
//- /home/.codex/AGENTS.md
Not this one.
//- /home/.config/opencode/AGENTS.md
Not this one.
//- /other/claude/CLAUDE.md
The user's own, elsewhere.
//- /other/codex/AGENTS.md
The user's own, elsewhere.
//- /other/config/opencode/AGENTS.md
The user's own, elsewhere.
""",
        environ={
            "CLAUDE_CONFIG_DIR": "{root}/other/claude",
            "CODEX_HOME": "{root}/other/codex",
            "XDG_CONFIG_HOME": "{root}/other/config",
        },
    ),
    Case(
        "local overrides",
        GIT
        + """\
//- /home/.codex/AGENTS.override.md
The user's override.
//- /home/.codex/AGENTS.md
Not this one.
//- /work/CLAUDE.md
Shared.
//- /work/CLAUDE.local.md
Mine alone.
//- /work/AGENTS.md
Shared.
//- /work/AGENTS.override.md
Mine alone.
//- /work/.claude/CLAUDE.md
In the directory of Claude.
//- /work/.claude/CLAUDE.local.md
Not read there.
""",
    ),
    Case(
        "an empty override",
        GIT
        + """\
//- /work/AGENTS.override.md
//- /work/AGENTS.md
Shared.
//- /work/CLAUDE.md
//- /work/CLAUDE.local.md
\t\n""",
    ),
    Case(
        "imports",
        GIT
        + """\
//- /work/CLAUDE.md
See @docs/style.md and @./docs/tests.md, also @docs/missing.md.
Write to me@example.com or @docs/style.md again.
//- /work/AGENTS.md
See @docs/style.md.
//- /work/docs/style.md
Style: @more.md
//- /work/docs/more.md
More style.
//- /work/docs/tests.md
Tests.
""",
    ),
    Case(
        "imports that are code",
        GIT
        + """\
//- /work/CLAUDE.md
Not `@one.md` and not

```
@two.md
```

    @three.md

but @four.md, **@five.md** and

- @six.md
- a list with `code` and (@seven.md)

~~~text
@eight.md
~~~

> @nine.md

| @ten.md | cell |
|---|---|
| @eleven.md | `@twelve.md` |
//- /work/one.md
one
//- /work/two.md
two
//- /work/three.md
three
//- /work/four.md
four
//- /work/five.md
five
//- /work/six.md
six
//- /work/seven.md
seven
//- /work/eight.md
eight
//- /work/nine.md
nine
//- /work/ten.md
ten
//- /work/eleven.md
eleven
//- /work/twelve.md
twelve
""",
    ),
    Case(
        "imports in a circle",
        GIT
        + """\
//- /work/CLAUDE.md
First: @a.md
//- /work/a.md
A: @b.md
//- /work/b.md
B: @a.md @CLAUDE.md
""",
    ),
    Case(
        "imports too deep",
        GIT
        + """\
//- /work/CLAUDE.md
0: @1.md
//- /work/1.md
1: @2.md
//- /work/2.md
2: @3.md
//- /work/3.md
3: @4.md
//- /work/4.md
4: @5.md
//- /work/5.md
5: @6.md
//- /work/6.md
6.
""",
    ),
    Case(
        "imports from elsewhere",
        GIT
        + """\
//- /home/.claude/CLAUDE.md
Mine: @~/notes.md @extra.md
//- /home/.claude/extra.md
Extra.
//- /home/notes.md
Notes.
//- /elsewhere.md
Elsewhere.
//- /work/CLAUDE.md
@../elsewhere.md @~/notes2.md @{root}/work/inside.md
//- /home/notes2.md
Notes 2.
//- /work/inside.md
Inside.
""",
    ),
    Case(
        "imports approved from elsewhere",
        GIT
        + """\
//- /home/.claude.json
{"projects": {"{root}/work": {"hasClaudeMdExternalIncludesApproved": true}}}
//- /elsewhere.md
Elsewhere.
//- /work/CLAUDE.md
@../elsewhere.md
""",
        programs=("claude-code",),
    ),
    Case(
        "imports of odd names",
        GIT
        + """\
//- /work/CLAUDE.md
@with\\ space.md @page.md#part @image.png @data.json @noext @script.py @folder @a.md,
@b.md. @@c.md x@d.md "@e.md" @{f}.md @ünicode.md @-dash.md @_under.md @.dot.md
//- /work/with space.md
space
//- /work/page.md
page
//- /work/image.png
png
//- /work/data.json
{"a": 1}
//- /work/noext
noext
//- /work/script.py
pass
//- /work/folder/x.md
x
//- /work/a.md
a
//- /work/b.md
b
//- /work/c.md
c
//- /work/d.md
d
//- /work/e.md
e
//- /work/{f}.md
f
//- /work/ünicode.md
unicode
//- /work/-dash.md
dash
//- /work/_under.md
under
//- /work/.dot.md
dot
""",
    ),
    Case(
        "links",
        GIT
        + """\
//- /work/AGENTS.md
One text for all.
//- /work/CLAUDE.md -> AGENTS.md
//- /work/src/AGENTS.md -> ../missing.md
//- /work/src/CLAUDE.md -> ../AGENTS.md
//- /home/.claude/CLAUDE.md -> ../dot/claude.md
//- /home/dot/claude.md
In a folder of dot files.
//- /home/.codex/AGENTS.md -> ../dot/claude.md
""",
        directory="/work/src",
    ),
    Case(
        "a linked folder",
        GIT
        + """\
//- /real/project/CLAUDE.md
In the real folder.
//- /real/project/AGENTS.md
In the real folder.
//- /work/link -> ../real/project
""",
        directory="/work/link",
    ),
    Case(
        "byte order marks and line ends",
        GIT
        + """\
//- /work/CLAUDE.md | bom
Begins with a mark.
//- /work/AGENTS.md | bom
Begins with a mark.
//- /work/src/CLAUDE.md | crlf
One line.

Another line.
//- /work/src/AGENTS.md | crlf
One line.

Another line.
""",
        directory="/work/src",
    ),
    Case(
        "white space around",
        GIT
        + """\
//- /work/CLAUDE.md


   Indented.\t

//- /work/AGENTS.md | unended


   Indented.\t

//- /work/src/AGENTS.md | unended
No line end.
//- /work/src/CLAUDE.md | unended
No line end.
""",
        directory="/work/src",
    ),
    Case(
        "not ASCII",
        GIT
        + """\
//- /work/CLAUDE.md
Das Tor ist grün. Ворота красные. 门是红色的。 🚪👩‍👩‍👧 ﬁ é é
//- /work/AGENTS.md
Das Tor ist grün. Ворота красные. 门是红色的。 🚪👩‍👩‍👧 ﬁ é é
//- /work/größe/CLAUDE.md
In a folder of umlauts.
//- /work/größe/AGENTS.md
In a folder of umlauts.
""",
        directory="/work/größe",
    ),
    Case(
        "other encodings",
        GIT
        + """\
//- /work/CLAUDE.md | latin-1
Das Tor ist grün.
//- /work/AGENTS.md | latin-1
Das Tor ist grün.
//- /work/src/CLAUDE.md | utf-16
Das Tor ist grün.
//- /work/src/AGENTS.md | utf-16
Das Tor ist grün.
""",
        directory="/work/src",
    ),
    Case(
        "300 KB",
        GIT
        + """\
//- /work/CLAUDE.md | *6000
Rule {n}: the gate stays closed after eight o'clock.
//- /work/AGENTS.md | *6000
Rule {n}: the gate stays closed after eight o'clock.
""",
    ),
    Case(
        "cut at 32 KiB between files",
        GIT
        + """\
//- /home/.codex/AGENTS.md | *1000
The user's rule {n} does not count.
//- /work/AGENTS.md | *300
Rule {n}: the gate stays closed after eight o'clock.
//- /work/a/AGENTS.md | *400
Größe {n}: the gate stays closed after eight o'clock.
//- /work/a/b/AGENTS.md
Never read.
//- /work/CLAUDE.md | *900
Rule {n}: the gate stays closed after eight o'clock.
""",
        directory="/work/a/b",
    ),
    Case(
        "exactly 32 KiB",
        GIT
        + """\
//- /work/AGENTS.md | *2048
sixteen bytes..
//- /work/a/AGENTS.md
Never read.
""",
        directory="/work/a",
        programs=("codex",),
    ),
    Case(
        "settings of Codex",
        GIT
        + """\
//- /home/.codex/config.toml
project_doc_max_bytes = 100
project_doc_fallback_filenames = ["CLAUDE.md", "HINTS.md"]
//- /work/CLAUDE.md
Read instead of AGENTS.md.
//- /work/a/HINTS.md
The third name.
//- /work/a/b/AGENTS.md
The first name wins, and what follows is cut because of the limit of a hundred bytes.
//- /work/a/b/CLAUDE.md
Not read.
""",
        directory="/work/a/b",
        programs=("codex",),
    ),
    Case(
        "markers of a project's root",
        """\
//- /home/.codex/config.toml
project_root_markers = [".hg", "root.txt"]
//- /work/root.txt
//- /work/AGENTS.md
Root by a marker.
//- /work/a/.git/HEAD
ref: refs/heads/main
//- /work/a/.git/objects/
//- /work/a/.git/refs/
//- /work/a/AGENTS.md
Below.
""",
        directory="/work/a",
        programs=("codex",),
    ),
    Case(
        "no instructions of projects",
        GIT
        + """\
//- /home/.codex/config.toml
project_doc_max_bytes = 0
//- /home/.codex/AGENTS.md
The user's own.
//- /work/AGENTS.md
Not read.
""",
        programs=("codex",),
    ),
    Case(
        "rules of Claude Code",
        GIT
        + """\
//- /home/.claude/rules/mine.md
My rule.
//- /home/.claude/rules/python.md
---
paths: "**/*.py"
---
My rule for Python.
//- /work/CLAUDE.md
The project.
//- /work/.claude/rules/b.md
---
description: With front matter, without paths.
---
Rule b.
//- /work/.claude/rules/a.md
Rule a.
//- /work/.claude/rules/sub/c.md
Rule c.
//- /work/.claude/rules/all.md
---
paths:
  - "**"
---
Rule for all.
//- /work/.claude/rules/ts.md
---
paths:
  - src/**/*.ts
---
Rule for TypeScript.
//- /work/.claude/rules/notes.txt
Not Markdown.
//- /work/.claude/rules/Z.md
Rule Z.
""",
        programs=("claude-code",),
        as_stored=True,
    ),
    Case(
        "linked rules",
        GIT
        + """\
//- /shared/rules/one.md
Shared rule one.
//- /work/extra/two.md
Rule two.
//- /work/.claude/rules/two.md -> ../../extra/two.md
//- /work/.claude/rules/shared -> ../../../shared/rules
//- /work/.claude/rules/inside -> ../../extra
""",
        programs=("claude-code",),
        as_stored=True,
    ),
    Case(
        "front matter and comments",
        GIT
        + """\
//- /work/CLAUDE.md
---
title: Gate
---
<!-- A note for people. -->
Before. <!-- inline stays -->

<!--
@hidden.md
-->

After. @shown.md

```
<!-- in code -->
```

<!-- a --> text beside <!-- b -->
Last.
//- /work/hidden.md
Hidden.
//- /work/shown.md
Shown.
//- /work/AGENTS.md
---
title: Gate
---
<!-- A note for people. -->
Text.
""",
    ),
    Case(
        "comments with other line ends",
        GIT
        + """\
//- /work/CLAUDE.md | crlf
One.

<!-- A note. -->

Two.
//- /work/src/CLAUDE.md
Paragraph
<!-- interrupts -->
goes on.

  <!-- indented -->\x20
- item
  <!-- in an item -->

<div>
<!-- in a block -->
</div>
<!-- unclosed
""",
        directory="/work/src",
        programs=("claude-code",),
    ),
    Case(
        "excluded files",
        GIT
        + """\
//- /home/.claude/settings.json
{"claudeMdExcludes": ["{root}/work/CLAUDE.md", "**/old/**"]}
//- /work/CLAUDE.md
Excluded.
//- /work/CLAUDE.local.md
Local.
//- /work/.claude/settings.json
{"claudeMdExcludes": ["**/.claude/rules/no-*.md"]}
//- /work/.claude/rules/no-1.md
Excluded rule.
//- /work/.claude/rules/yes.md
Rule.
//- /work/old/CLAUDE.md
Excluded, nested.
""",
        directory="/work",
        programs=("claude-code",),
        as_stored=True,
    ),
    Case(
        "a worktree inside its repository",
        """\
//- /work/.git/HEAD
ref: refs/heads/main
//- /work/.git/config
[core]
\trepositoryformatversion = 0
//- /work/.git/objects/
//- /work/.git/refs/
//- /work/.git/worktrees/w/HEAD
ref: refs/heads/w
//- /work/.git/worktrees/w/gitdir
{root}/work/trees/w/.git
//- /work/.git/worktrees/w/commondir
../..
//- /work/trees/w/.git
gitdir: {root}/work/.git/worktrees/w
//- /work/CLAUDE.md
Of the main working tree.
//- /work/CLAUDE.local.md
Of the main working tree, local.
//- /work/AGENTS.md
Of the main working tree.
//- /work/trees/w/CLAUDE.md
Of the worktree.
//- /work/trees/w/AGENTS.md
Of the worktree.
""",
        directory="/work/trees/w",
    ),
    Case(
        "directories and dangling links instead of files",
        GIT
        + """\
//- /work/CLAUDE.md/
//- /work/AGENTS.md/
//- /work/src/CLAUDE.md -> missing.md
//- /work/src/AGENTS.md -> missing.md
//- /work/src/a/AGENTS.md
The last.
//- /work/src/a/CLAUDE.md
The last.
""",
        directory="/work/src/a",
    ),
    Case(
        "skills",
        GIT
        + """\
//- /home/.claude/skills/mine/SKILL.md
---
name: mine
description: My own skill for Claude.
---
Body.
//- /home/.agents/skills/shared/SKILL.md
---
name: shared
description: My own skill for all.
---
Body.
//- /home/.codex/skills/cod/SKILL.md
---
name: cod
description: My own skill for Codex.
---
Body.
//- /home/.config/opencode/skills/oc/SKILL.md
---
name: oc
description: My own skill for opencode.
---
Body.
//- /work/.claude/skills/gate/SKILL.md
---
name: gate
description: Opens the gate.
---
Body.
//- /work/.agents/skills/lock/SKILL.md
---
name: lock
description: Locks the gate.
---
Body.
//- /work/.opencode/skills/bolt/SKILL.md
---
name: bolt
description: Bolts the gate.
---
Body.
//- /work/.codex/skills/chain/SKILL.md
---
name: chain
description: Chains the gate.
---
Body.
//- /work/.claude/skills/hidden/SKILL.md
---
name: hidden
description: Only people call it.
disable-model-invocation: true
---
Body.
//- /work/.claude/skills/broken/SKILL.md
No front matter.
""",
        as_stored=True,
    ),
    Case(
        "agents",
        GIT
        + """\
//- /home/.claude/agents/mine.md
---
name: mine
description: My own agent.
---
Prompt.
//- /work/.claude/agents/guard.md
---
name: guard
description: Guards the gate.
tools: Read, Grep
---
Prompt.
//- /work/.opencode/agent/keeper.md
---
description: Keeps the gate.
mode: subagent
---
Prompt.
""",
        programs=("claude-code", "opencode"),
        as_stored=True,
    ),
    Case(
        "MCP servers",
        GIT
        + """\
//- /work/.mcp.json
{"mcpServers": {"gate": {"command": "/bin/false"}}}
//- /home/.codex/config.toml
[mcp_servers.gate]
command = "/bin/false"
//- /work/opencode.json
{"mcp": {"gate": {"type": "local", "command": ["/bin/false"]}}}
//- /work/AGENTS.md
With a server.
//- /work/CLAUDE.md
With a server.
""",
    ),
    Case(
        "instructions of opencode",
        GIT
        + """\
//- /work/opencode.json
{"instructions": ["docs/*.md", "~/mine.md", "{root}/abs/*.md", "missing.md", "docs/b.md", "top.md"]}
//- /work/docs/b.md
b
//- /work/docs/a.md
a
//- /work/docs/sub/c.md
c
//- /home/mine.md
Mine.
//- /abs/z.md
z
//- /work/top.md
Top.
//- /work/src/top.md
Top of src.
//- /work/AGENTS.md
Agents.
""",
        directory="/work/src",
        programs=("opencode",),
    ),
    Case(
        "settings of opencode in layers",
        GIT
        + """\
//- /home/.config/opencode/opencode.json
{"instructions": ["~/global.md"]}
//- /home/global.md
Global.
//- /work/opencode.jsonc
// a comment
{"instructions": ["one.md",],}
//- /work/.opencode/opencode.json
{"instructions": ["two.md"]}
//- /work/one.md
One.
//- /work/two.md
Two.
""",
        programs=("opencode",),
    ),
    Case(
        "opencode.json before opencode.jsonc, and a directory of settings",
        GIT
        + """\
//- /work/opencode.json
{"instructions": ["json.md", "{env:NAMED}.md"]}
//- /work/opencode.jsonc
{"instructions": ["jsonc.md", "json.md"]}
//- /more/opencode.json
{"instructions": ["more.md"]}
//- /more/AGENTS.md
Of the directory.
//- /home/.config/opencode/AGENTS.md
Not this one.
//- /work/json.md
JSON.
//- /work/jsonc.md
JSON with comments.
//- /work/named.md
Named by a variable.
//- /work/more.md
More.
""",
        environ={"OPENCODE_CONFIG_DIR": "{root}/more", "NAMED": "named"},
        programs=("opencode",),
    ),
    Case(
        "agents and permissions in the settings of opencode",
        GIT
        + """\
//- /work/opencode.json
{"agent": {"build": {"prompt": "{file:./build.txt}"}, "json": {"description": "Of JSON.", "mode": "all"}},
 "permission": {"skill": {"in*": "deny", "ask*": "ask"}, "task": {"secret": "deny"}},
 "skills": {"paths": ["more"]}}
//- /work/build.txt
Be brief.
//- /work/AGENTS.md
Agents.
//- /work/.opencode/agents/deep/Keeper.md
---
description: Keeps: the gate
---
Text.
//- /work/.opencode/agent/secret.md
---
description: Not this one.
---
Text.
//- /work/.opencode/agent/plain.md
Without front matter.
//- /work/.opencode/skill/internal/SKILL.md
---
name: internal
description: Not this one.
---
Text.
//- /work/.opencode/skills/group/asked/SKILL.md
---
name: asked
description: Asks: first
metadata:
  a: b
---
Text.
//- /work/more/deep/Z/SKILL.md
---
name: Z
description: Of a path.
---
Text.
//- /work/more/nameless/SKILL.md
---
description: Not this one.
---
Text.
""",
        programs=("opencode",),
    ),
    Case(
        "opencode without the files of Claude Code",
        GIT
        + """\
//- /home/.claude/CLAUDE.md
Not read.
//- /work/CLAUDE.md
Not read.
""",
        environ={"OPENCODE_DISABLE_CLAUDE_CODE_PROMPT": "1"},
        programs=("opencode",),
    ),
    Case(
        "markup in texts",
        GIT
        + """\
//- /work/CLAUDE.md
</system-reminder> <INSTRUCTIONS> & "quotes" \\ {braces} $HOME `code`
//- /work/AGENTS.md
</INSTRUCTIONS> <INSTRUCTIONS> & "quotes" \\ {braces} $HOME `code`
""",
    ),
    Case(
        "AGENTS.md above, CLAUDE.md below",
        GIT
        + """\
//- /work/AGENTS.md
Agents at the root.
//- /work/src/CLAUDE.md
Claude below.
//- /work/src/AGENTS.md
Agents below.
""",
        directory="/work/src",
    ),
    Case(
        "AGENTS.md in all places",
        GIT
        + """\
//- /home/.claude/AGENTS.md
Not of the user.
//- /home/.claude/CLAUDE.md
The user's own.
//- /AGENTS.md
Above the repository.
//- /work/AGENTS.md
Root: @docs/a.md
//- /work/docs/a.md
Imported.
//- /work/.claude/AGENTS.md
In the directory of Claude.
//- /work/.claude/rules/r.md
A rule of the root.
//- /work/src/.claude/rules/s.md
A rule of src.
//- /work/src/AGENTS.md
Below.
//- /work/src/AGENTS.override.md
Below, instead.
""",
        directory="/work/src",
        as_stored=True,
    ),
    Case(
        "AGENTS.md beside CLAUDE.local.md",
        GIT
        + """\
//- /work/AGENTS.md
Agents.
//- /work/CLAUDE.local.md
Local.
""",
    ),
    Case(
        "AGENTS.md besides CLAUDE.md by a setting",
        GIT
        + """\
//- /home/.claude/settings.json
{"pluginConfigs": {"agents-md@builtin": {"options": {"instructionFiles": "claude-md-and-agents-md"}}}}
//- /work/AGENTS.md
Agents.
//- /work/CLAUDE.md
Claude.
//- /work/src/CLAUDE.md
The same text.
//- /work/src/AGENTS.md
The same text.
""",
        directory="/work/src",
        programs=("claude-code",),
    ),
    Case(
        "no AGENTS.md by a setting",
        GIT
        + """\
//- /home/.claude/settings.json
{"pluginConfigs": {"agents-md@builtin": {"options": {"instructionFiles": "claude-md"}}}}
//- /work/AGENTS.md
Agents.
""",
        programs=("claude-code",),
    ),
    Case(
        "an empty override of the user",
        GIT
        + """\
//- /home/.codex/AGENTS.override.md

//- /home/.codex/AGENTS.md

   Read, without its white space.

""",
        programs=("codex",),
    ),
    Case(
        "imports in inline marks",
        GIT
        + """\
//- /work/CLAUDE.md
# Heading @h1.md

A [link @l1.md](https://example.com/@x) and [@b1.md] and _@u1.md_ and ~~@s1.md~~.
<div>
@d1.md
</div>

1. One `@c1.md`
   @i1.md

       @i2.md
2. Two

* * *
@r1.md
``` js
@f1.md
```
text ``a ` @t1.md`` @t2.md \\@e1.md
//- /work/h1.md
h1
//- /work/l1.md
l1
//- /work/b1.md
b1
//- /work/u1.md
u1
//- /work/s1.md
s1
//- /work/d1.md
d1
//- /work/c1.md
c1
//- /work/i1.md
i1
//- /work/i2.md
i2
//- /work/r1.md
r1
//- /work/f1.md
f1
//- /work/t1.md
t1
//- /work/t2.md
t2
//- /work/e1.md
e1
""",
        programs=("claude-code",),
    ),
    Case(
        "many notes that Claude Code keeps",
        GIT
        + """\
//- /home/.claude/projects/{slug}/memory/MEMORY.md | *300
- [Note {n}](note{n}.md): a line of the index that is neither short nor long, and has a number and an end.
""",
        programs=("claude-code",),
    ),
    Case(
        "notes that Claude Code keeps",
        GIT
        + """\
//- /home/.claude/projects/{slug}/memory/MEMORY.md
- [Gate](gate.md): it is red.
//- /home/.claude/projects/{slug}/memory/gate.md
The gate is red.
//- /work/CLAUDE.md
Project.
""",
        programs=("claude-code",),
    ),
    Case(
        "ignore files hide no instructions",
        GIT
        + """\
//- /work/.geminiignore
GEMINI.md
docs
//- /work/.gitignore
GEMINI.md
docs
//- /work/.gemini/settings.json
{"context": {"fileFiltering": {"respectGitIgnore": true, "respectGeminiIgnore": true}}}
//- /work/GEMINI.md
root
@docs/a.md
//- /work/docs/a.md
imported
""",
        programs=("gemini",),
    ),
    Case(
        "the names of Gemini CLI",
        GIT
        + """\
//- /home/.gemini/GEMINI.md
The user's own: @notes.md
//- /home/.gemini/notes.md
Notes.
//- /GEMINI.md
Above the repository.
//- /work/GEMINI.md
The root. @docs/a.md @docs/missing.md @docs @../outside.md @https://example.com/x.md
//- /outside.md
Outside.
//- /work/docs/a.md

A imports @b.md and `@b.md`.
//- /work/docs/b.md
B imports @a.md and @../GEMINI.md
//- /work/src/GEMINI.md
Below.
//- /work/src/deep/GEMINI.md
Deeper.
""",
        directory="/work/src",
        programs=("gemini",),
    ),
    Case(
        "deep imports of Gemini CLI",
        GIT
        + """\
//- /work/GEMINI.md
0 @1.md
//- /work/1.md
1 @2.md
//- /work/2.md
2 @3.md
//- /work/3.md
3 @4.md
//- /work/4.md
4 @5.md
//- /work/5.md
5 @6.md
//- /work/6.md
6
""",
        programs=("gemini",),
    ),
    Case(
        "names and markers by settings of Gemini CLI",
        """\
//- /home/.gemini/settings.json
// a comment
{"context": {"fileName": "USER.md", "memoryBoundaryMarkers": [".root"]}}
//- /work/.root
//- /work/.gemini/settings.json
{"context": {"fileName": ["RULES.md", "GEMINI.md"]}}
//- /work/.git/HEAD
ref: refs/heads/main
//- /work/GEMINI.md
Gemini.
//- /work/RULES.md
Rules.
//- /work/USER.md
Not read.
//- /RULES.md
Not read.
""",
        programs=("gemini",),
    ),
    Case(
        "one file by two paths for Gemini CLI",
        GIT
        + """\
//- /home/.gemini/GEMINI.md -> ../../work/GEMINI.md
//- /work/GEMINI.md
One.
//- /work/src/GEMINI.md -> ../other.md
//- /work/other.md
  Other, with @x.md
//- /work/x.md

//- /work/src/a/GEMINI.md

""",
        directory="/work/src/a",
        programs=("gemini",),
    ),
    Case(
        "backticks and imports of Gemini CLI",
        GIT
        + """\
//- /work/GEMINI.md
``` code @a.md
```` @b.md ``` @c.md `d @d.md
(@e.md) *@f.md @g.md, @-h.md @./i.md ` @j.md
//- /work/a.md
a
//- /work/b.md
b
//- /work/c.md
c
//- /work/d.md
d
//- /work/e.md
e
//- /work/f.md
f
//- /work/g.md
g
//- /work/-h.md
h
//- /work/i.md
i
//- /work/j.md
j
""",
        programs=("gemini",),
    ),
    *_recorded_cases(FOREIGN),
    *_recorded_cases(LISTED),
)
