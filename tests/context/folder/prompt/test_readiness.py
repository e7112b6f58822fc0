"""What keeps skills and servers from working, where people and models see it."""

import json
from pathlib import Path

import msgspec
import pytest

from nexus_context.folder.loading import load
from nexus_context.folder.prompt.readiness import skill_needs
from nexus_context.folder.skills.skill import read_skill
from nexus_context.folder.snapshot import Snapshot
from nexus_context.folder.trust import trusted_folders
from support.fixture import write_fixture
from support.folders import load_inputs

SKILLS = """
//- /home/a/NEXUS.md
Rules.
//- /home/a/.nexus3/skills/mail/SKILL.md
---
name: mail
description: Sends mail.
metadata:
  category: communication
  programs: sh, no-such-program
  variables: MAIL_KEY
---
Send it.
//- /home/a/.nexus3/skills/chat/SKILL.md
---
name: chat
description: Writes to the chat.
metadata:
  category: communication
  programs: sh
---
Write it.
//- /home/a/.nexus3/skills/plan/SKILL.md
---
name: plan
description: Plans.
---
Plan it.
//- /home/a/.nexus3/mcp.json
{"mcpServers": {
  "here": {"command": "sh"},
  "gone": {"command": "no-such-program", "args": ["--token", "s3cr3t"]},
  "keyed": {"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${MCP_KEY}"}},
  "off": {"command": "no-such-program", "enabled": false}
}}
"""


def loaded(root: Path, **environ: str) -> Snapshot:
    fixture = write_fixture(SKILLS, root)
    inputs = load_inputs(fixture.path("/home"), environ=environ)
    return load(fixture.path("/home/a"), inputs)


def test_the_prompt_tells_categories_and_what_is_not_ready(tmp_path: Path) -> None:
    text = loaded(tmp_path, PATH="/usr/bin:/bin").prompt.text
    assert "Skills: 3 (plan; communication: chat, mail)" in text
    assert (
        "Skills that are not ready: mail: program no-such-program is missing, variable MAIL_KEY is not set"
        in text
    )
    assert "| here | stdio | local | configured |" in text
    assert "| gone | stdio | local | its program is missing |" in text
    assert "| keyed | http | local | variable MCP_KEY is not set |" in text
    assert "| off | stdio | local | disabled |" in text


def test_with_what_they_need_they_are_ready(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "no-such-program").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "no-such-program").chmod(0o755)
    text = loaded(
        tmp_path / "home", PATH=f"{tmp_path}/bin:/usr/bin:/bin", MAIL_KEY="x", MCP_KEY="y"
    ).prompt.text
    assert "not ready" not in text
    assert "is missing" not in text


def test_without_a_path_nothing_is_known_of_programs(tmp_path: Path) -> None:
    text = loaded(tmp_path, MAIL_KEY="x", MCP_KEY="y").prompt.text
    assert ("not ready" in text, "is missing" in text) == (False, False)


@pytest.mark.parametrize(
    ("metadata", "needs"),
    [
        ("", ""),
        ("  programs: ''", ""),
        (
            "  programs: no-such-a no-such-b,no-such-c",
            "program no-such-a is missing, program no-such-b is missing, program no-such-c is missing",
        ),
        ("  variables: A\n  programs: sh", "variable A is not set"),
        ("  variables: A, A", "variable A is not set"),
    ],
)
def test_what_a_skill_names(metadata: str, needs: str) -> None:
    head = f"metadata:\n{metadata}\n" if metadata else ""
    skill = read_skill("/s/x/SKILL.md", f"---\nname: x\ndescription: X.\n{head}---\nDo it.\n").skill
    assert skill is not None
    assert skill_needs(skill, {"PATH": "/usr/bin:/bin"}) == needs


def test_only_so_much_is_looked_for_and_told() -> None:
    names = " ".join(f"no-such-{number}-{'x' * 80}" for number in range(30))
    text = f"---\nname: x\ndescription: X.\nmetadata:\n  programs: {names}\n---\nDo it.\n"
    skill = read_skill("/s/x/SKILL.md", text).skill
    assert skill is not None
    needs = skill_needs(skill, {"PATH": "/usr/bin"})
    assert (needs.count("is missing"), len(needs) < 2_000) == (20, True)


def test_a_long_name_is_looked_for_as_it_is() -> None:
    name = "A" * 80
    text = f"---\nname: x\ndescription: X.\nmetadata:\n  variables: {name}\n---\nDo it.\n"
    skill = read_skill("/s/x/SKILL.md", text).skill
    assert skill is not None
    assert skill_needs(skill, {name: "set"}) == ""


GLOBAL_SERVER = """
//- /home/.nexus3/mcp.json
{"mcpServers": {"mine": {"command": "sh"}}}
"""


def trusting(root: Path, trusted: bool | None, *folders: str) -> Snapshot:
    fixture = write_fixture(SKILLS + GLOBAL_SERVER, root)
    file = root / "trusted-folders.json"
    file.write_text(json.dumps({"folders": [fixture.path(folder) for folder in folders]}))
    environ = {"PATH": "/usr/bin:/bin", "MAIL_KEY": "x", "MCP_KEY": "y"}
    inputs = load_inputs(fixture.path("/home"), environ=environ)
    inputs = msgspec.structs.replace(inputs, trusted=trusted, trust_file=str(file))
    return load(fixture.path("/home/a"), inputs)


@pytest.mark.parametrize(
    ("trusted", "folders", "is_ready"),
    [
        (None, (), False),
        (None, ("/home/a",), True),
        (None, ("/home",), True),
        (None, ("/home/a/b", "/home/aa"), False),
        (False, ("/home/a",), False),  # the client's word counts first
        (True, (), True),
    ],
)
def test_an_untrusted_folder_starts_nothing_of_its_own(
    tmp_path: Path, trusted: bool | None, folders: tuple[str, ...], is_ready: bool
) -> None:
    snapshot = trusting(tmp_path, trusted, *folders)
    text = snapshot.prompt.text
    assert snapshot.contents.trusted == is_ready
    assert ("| here | stdio | local | untrusted folder |" in text) != is_ready
    assert ("chat: untrusted folder" in text) != is_ready
    assert "plan: untrusted" not in text  # it needs no program
    assert "| mine | stdio | global | configured |" in text


@pytest.mark.parametrize("text", ["", "{", "[]", '{"folders": 1}', '{"folders": [1]}', "\x00"])
def test_a_damaged_list_trusts_nothing(text: str) -> None:
    assert trusted_folders(text) == ()
