"""Permission rules in words."""

import pytest

from nexus_context.assistants.views.rule_texts import describe_rule

SCRIPTS = "It counts wherever the command is in a script."
ALLOWED_SCRIPTS = "It allows a script only if each other command of the script is allowed, too."
IGNORED = "as a line of `.gitignore` does"
FIRST_WORDS = "Allows the command `git`, alone or with more arguments."
OTHERS = "Commands that no entry of this list allows are denied."
CORE = "Tools that this list does not name are denied."
LAST = "The last rule that matches decides."


@pytest.mark.parametrize(
    ("kind", "text", "sentences"),
    [
        ("deny", "Bash(git push)", f"Denies the command `git push`. {SCRIPTS}"),
        ("ask", "Bash(a *:*)", f"Asks before the command `a *`, alone or with more arguments. {SCRIPTS}"),
        (
            "allow",
            "Bash(a * b)",
            f"Allows the command `a * b`, where `*` is any text. {ALLOWED_SCRIPTS}",
        ),
        ("deny", "Bash", "Denies each call of the tool `Bash`. The model is not told of it."),
        ("allow", "mcp__a", "Allows each tool of the MCP server `a`."),
        ("allow", "mcp__a__b", "Allows the tool `b` of the MCP server `a`."),
        ("ask", "mcp__a__*", "Asks before each tool of the MCP server `a`."),
        ("allow", "Skill(x)", "Allows the skill `x`."),
        ("deny", "Skill(re:*)", "Denies skills whose name begins with `re`."),
        ("allow", "Task(x)", "Allows agents of the type `x`."),
        ("allow", "WebFetch(domain:a.b)", "Allows reads of web pages of the host `a.b`."),
        (
            "allow",
            "Edit(//etc/a)",
            f"Allows edits of files that match `/etc/a` {IGNORED}, from the root of the disk.",
        ),
        (
            "ask",
            "Read(~/a)",
            f"Asks before reads of files that match `~/a` {IGNORED}, from the home directory.",
        ),
        (
            "allow",
            "Edit(a/b)",
            f"Allows edits of files that match `a/b` {IGNORED}, from the folder.",
        ),
        ("allow", "(", "Claude Code ignores this rule."),
    ],
)
def test_a_rule_of_claude_code(kind: str, text: str, sentences: str) -> None:
    rule = describe_rule("claude-code", ("permissions", kind, 0), text)
    assert rule is not None
    assert rule.sentences == sentences


@pytest.mark.parametrize(
    ("path", "action", "sentences"),
    [
        (("permission",), "deny", f"Denies every tool. {LAST}"),
        (("permission", "edit"), "ask", f"Asks before each call of `edit`. {LAST}"),
        (
            ("permission", "bash", "ls *"),
            "deny",
            f"Denies the command `ls`, alone or with more arguments. {SCRIPTS} {LAST}",
        ),
        (
            ("permission", "bash", "ls:*"),
            "deny",
            f"Denies the command `ls:*`, where `*` is any text. {SCRIPTS} {LAST}",
        ),
        (("permission", "skill", "x"), "deny", f"Denies the skill `x`. {LAST}"),
        (("agent", "build", "permission", "lsp"), "allow", f"Allows each call of `lsp`. {LAST}"),
        (("agent", "build", "model"), "allow", None),
        (("permission", "edit"), "maybe", None),
        (("permission", "edit"), {"*": "ask"}, None),
    ],
)
def test_a_rule_of_opencode(path: tuple[str, ...], action: object, sentences: str | None) -> None:
    rule = describe_rule("opencode", path, action)
    assert (None if rule is None else rule.sentences) == sentences


@pytest.mark.parametrize(
    ("key", "text", "sentences"),
    [
        ("allowed", "read_file", "Allows each call of the tool `read_file`."),
        (
            "allowed",
            "ShellTool(git)",
            f"{FIRST_WORDS} {ALLOWED_SCRIPTS} {OTHERS}",
        ),
        (
            "core",
            "ShellTool",
            f"Allows each call of the tool `run_shell_command`. {CORE}",
        ),
        ("confirmationRequired", "web_fetch", "Asks before each call of the tool `web_fetch`."),
        (
            "exclude",
            "web_fetch",
            "Denies each call of the tool `web_fetch`. The model is not told of the tool.",
        ),
        ("discoveryCommand", "x", None),
    ],
)
def test_a_rule_of_gemini(key: str, text: str, sentences: str | None) -> None:
    rule = describe_rule("gemini", ("tools", key, 0), text)
    assert (None if rule is None else rule.sentences) == sentences


def test_other_settings_have_no_rules() -> None:
    assert describe_rule("claude-code", ("permissions", "additionalDirectories", 0), "x") is None
    assert describe_rule("codex", ("permissions", "allow", 0), "Bash") is None
