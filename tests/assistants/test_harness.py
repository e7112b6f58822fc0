"""The parts of `make test-assistants` that need no program: the stand-in, case folders, extraction."""

import contextlib
import http.client
import json
import os
from pathlib import Path
from typing import Any

import pytest

from assistants import programs
from assistants.case_folders import write_case
from assistants.extraction import Extract, extract
from assistants.provider_stand_in import ANSWER, ProviderStandIn


def post(address: str, path: str, body: dict[str, Any]) -> str:
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=30)
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse().read().decode()


def check_folder(text: str, root: Path) -> dict[str, bytes | str]:
    """The files of a case folder: their bytes, or the target of a link."""
    write_case(text, root)
    return {
        str(path.relative_to(root)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("path", ["/v1/messages?beta=true", "/v1/responses", "/v1/chat/completions"])
@pytest.mark.parametrize("stream", [True, False])
def test_the_stand_in_answers_and_records(path: str, stream: bool) -> None:
    body = {"model": "m", "stream": stream}
    with ProviderStandIn() as provider:
        answer = post(provider.address, path, body)
    assert (ANSWER in answer, provider.requests) == (True, [(path.partition("?")[0], body)])


def test_two_stand_ins_have_ports_of_their_own() -> None:
    with ProviderStandIn() as one, ProviderStandIn() as other:
        post(one.address, "/v1/messages", {"model": "one"})
        assert (len(one.requests), len(other.requests), one.address == other.address) == (1, 0, False)


def test_a_case_folder(tmp_path: Path) -> None:
    text = """
    //- /a.md | *2
    Line {n} of {root}
    //- /b.md | bom crlf
    ü
    //- /c.md | latin-1 unended
    ü
    //- /d/link.md -> ../a.md
    //- /{slug}/e.md
    //- /empty/
    """
    slug = "".join(each if each.isalnum() else "-" for each in f"{tmp_path}/work")
    assert check_folder(text, tmp_path) == {
        "a.md": f"Line 0 of {tmp_path}\nLine 1 of {tmp_path}\n".encode(),
        "b.md": b"\xef\xbb\xbf\xc3\xbc\r\n",
        "c.md": b"\xfc",
        "d/link.md": "../a.md",
        f"{slug}/e.md": b"",
    }


def test_the_instructions_of_claude_code() -> None:
    instructions = "<system-reminder>\nCodebase and user instructions are shown below. X\n</system-reminder>"
    skills = (
        "<system-reminder>\nThe following skills are available for use with the Skill tool:\n\n"
        "- gate: Opens.\n- own: Theirs.\n</system-reminder>"
    )
    body = {
        "system": [{"type": "text", "text": "You are."}],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": instructions}]},
            {"role": "system", "content": skills},
        ],
    }
    assert extract("claude-code", body) == Extract("user", instructions, ("- gate: Opens.", "- own: Theirs."))


def test_the_instructions_of_codex() -> None:
    skills = (
        "<skills_instructions>\n### Skill roots\n- `r0` = `/h/.codex/skills/.system`\n- `r1` = `/w/skills`\n"
        "### Available skills\n- own: Theirs. (file: r0/own/SKILL.md)\n"
        "- lock: Locks. (file: r1/lock/SKILL.md)\n"
    )
    instructions = "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nX\n</INSTRUCTIONS>"
    body = {
        "instructions": "You are # AGENTS.md instructions",
        "input": [
            {"role": "developer", "content": [{"type": "input_text", "text": skills}]},
            {"role": "user", "content": [{"type": "input_text", "text": instructions}]},
        ],
    }
    entries = ("- lock: Locks. (file: /w/skills/lock/SKILL.md)",)
    assert extract("codex", body) == Extract("user", instructions, entries)


def test_the_instructions_of_opencode() -> None:
    skill = "  <skill>\n    <name>gate</name>\n  </skill>"
    tail = "Skills provide specialized instructions and workflows for specific tasks.\n"
    system = f"You are.\n<env>\n</env>\nInstructions from: /w/AGENTS.md\nX\n\n{tail}{skill}"
    body = {"messages": [{"role": "system", "content": system}, {"role": "user", "content": "?"}]}
    instructions = "Instructions from: /w/AGENTS.md\nX\n"
    assert extract("opencode", body) == Extract("system", instructions, (skill,))


@pytest.mark.parametrize("name", list(programs.PROGRAMS))
def test_without_npm_the_message_says_what_to_install(name: str, tmp_path: Path) -> None:
    program = programs.PROGRAMS[name]
    with pytest.raises(programs.MissingToolError) as caught:
        programs.install(program, cache=tmp_path / "cache", search=str(tmp_path))
    message = (
        f"{name} {program.version} is not installed, and npm is missing. Install Node.js 20 or later with "
        "npm, then run this again."
    )
    assert (str(caught.value), (tmp_path / "cache").exists()) == (message, False)
