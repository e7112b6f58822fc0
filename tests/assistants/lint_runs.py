"""Broken settings of Claude Code and their corrected twins, and what the real program did with each.

`claude_lints.jsonl` has a row for each, of one of these kinds; `did` is what the program did:

rule      a rule in one list: by `claude doctor` left-out, matches-nothing, reads-otherwise, or works
settings  permissions and a call: the outcome, as in `claude_permissions.jsonl`
hook      the matcher and the `if` of a hook: whether it ran in a session in which `echo hi` was called
hooks     settings with hooks: void (the file), left-out, or works
script    the command of a hook that stops every call, and the modes of its files: failed, or stopped the call
plugin    the files of a plugin: which of its parts reached the request
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from assistants import permission_runs, programs
from assistants.provider_stand_in import ProviderStandIn, answer_text, answer_tool_use

ROWS = Path(__file__).with_name("claude_lints.jsonl")
OTHERS = Path(__file__).with_name("other_lints.jsonl")
"""Rows of Codex and Gemini CLI, where `did` is stops, ran or did not run (the hook), or works."""
TWINS = Path(__file__).with_name("twin_lints.jsonl")
"""Broken files of all programs and their corrected twins, with the codes of the former.

`seen` says by what they are known: a run of the program, its source, or its documentation.
"""
KINDS = ("rule", "settings", "hook", "hooks", "script", "plugin")
CALL = ("Bash", {"command": "echo hi", "description": "Say hi"})
PLUGIN = {
    "commands/c.md": "---\ndescription: MARK_command\n---\nx\n",
    "skills/s/SKILL.md": "---\ndescription: MARK_skill\n---\nx\n",
    "agents/a.md": "---\nname: a\ndescription: MARK_agent\n---\nx\n",
    "hooks/hooks.json": {
        "hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch {log}"}]}]}
    },
}
"""What each plugin has, besides the files of its row."""
_SKIPPED = re.compile(r'permissions\.(\w+): Invalid permission rule "(.*?)" was skipped', re.DOTALL)
_UNMATCHED = re.compile(
    r'Permission (\w+) rule "(.*?)" (?:matches no known tool|targets \w+ as a raw)', re.DOTALL
)
_WARNED = re.compile(r"Permission (\w+) rule \(\S+\): (.*?\)) (is not matched|mixes|has an? )", re.DOTALL)


def rows(kind: str) -> list[dict[str, Any]]:
    """The rows of a kind."""
    return [row for row in map(json.loads, ROWS.read_text().splitlines()) if kind in row]


def real_results(kind: str, listed: list[dict[str, Any]]) -> Iterator[str]:
    """What the real program does with each row of a kind."""
    if kind == "rule":
        said = _rules_in_doctor(listed)
        yield from (said.get((row["list"], row["rule"]), "works") for row in listed)
    elif kind == "settings":
        yield from (outcome for _, outcome in permission_runs.run_rows(listed))
    elif kind == "hook":
        yield from _hooks_that_run(listed)
    elif kind == "hooks":
        yield from (_effect_of_hooks(row["hooks"]) for row in listed)
    elif kind == "script":
        yield from map(_effect_of_script, listed)
    else:
        yield from (parts_of_plugin(row["plugin"]) for row in listed)


def write_files(root: Path, files: dict[str, Any], modes: dict[str, int] | None = None) -> None:
    """Write files below `root`: texts, or values as JSON."""
    for name, value in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        path.chmod((modes or {}).get(name, 0o644))


def _doctor(settings: dict[str, Any]) -> str:
    program = programs.PROGRAMS["claude-code"]
    with tempfile.TemporaryDirectory(prefix="lints-") as directory:
        root = Path(directory).resolve()
        write_files(root, {"work/.claude/settings.json": settings, "home/.claude.json": _trusting(root)})
        return subprocess.run(
            ["nice", str(programs.install(program)), "doctor"],
            cwd=root / "work",
            env={
                "PATH": programs.search_path(),
                "HOME": f"{root}/home",
                **program.environ("http://127.0.0.1:9"),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=permission_runs.LONGEST_S,
            check=False,
        ).stdout


def _trusting(root: Path) -> dict[str, Any]:
    return {"projects": {f"{root}/work": {"hasTrustDialogAccepted": True}}}


def _rules_in_doctor(listed: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    lists: dict[str, list[str]] = {}
    for row in listed:
        lists.setdefault(row["list"], []).append(row["rule"])
    text = _doctor({"permissions": lists})
    said = dict.fromkeys(_SKIPPED.findall(text), "left-out")
    for kind, rule, what in _WARNED.findall(text):
        said[kind, rule] = "matches-nothing" if what.startswith("is not") else "reads-otherwise"
    said.update(((kind, rule), "matches-nothing") for kind, rule in _UNMATCHED.findall(text))
    return said


def _effect_of_hooks(settings: dict[str, Any]) -> str:
    """Whether a file with these settings counts, by a rule in it that the doctor warns of where it does."""
    text = _doctor({"permissions": {"deny": ["Nope"]}, **settings})
    if 'rule "Nope" matches no known tool' not in text:
        return "void"
    return "left-out" if "ignored" in text else "works"


def _hooks_that_run(listed: list[dict[str, Any]]) -> Iterator[str]:
    hooks: dict[str, list[dict[str, Any]]] = {}
    for index, row in enumerate(listed):
        hook = {"type": "command", "command": f"echo {index} >> {{log}}"}
        hook |= {"if": row["if"]} if "if" in row else {}
        group = {"hooks": [hook]} | ({"matcher": row["matcher"]} if "matcher" in row else {})
        hooks.setdefault(row["hook"], []).append(group)
    log, _ = _turn({"hooks": hooks, "permissions": {"allow": ["Bash"]}}, {"work/CLAUDE.md": "x\n"})
    ran = set(log.split())
    yield from ("ran" if str(index) in ran else "did not run" for index in range(len(listed)))


def _effect_of_script(row: dict[str, Any]) -> str:
    hook = {"type": "command", "command": row["script"]}
    settings = {"hooks": {"PreToolUse": [{"hooks": [hook]}]}, "permissions": {"allow": ["Bash"]}}
    files = {f"work/{name}": "#!/bin/sh\nexit 2\n" for name in row["files"]}
    _, requests = _turn(
        settings, files, {f"work/{name}": int(mode, 8) for name, mode in row["files"].items()}
    )
    return "failed" if '"content": "hi"' in requests else "stopped the call"


def _turn(
    settings: dict[str, Any], files: dict[str, Any], modes: dict[str, int] | None = None
) -> tuple[str, str]:
    """One turn with a call of Bash: what hooks wrote into `{log}`, and the requests."""
    program = programs.PROGRAMS["claude-code"]
    with tempfile.TemporaryDirectory(prefix="lints-") as directory:
        root = Path(directory).resolve()
        log = root / "log"
        text = json.dumps(settings).replace("{log}", str(log))
        written = {"work/.claude/settings.json": text, "home/.claude.json": _trusting(root), **files}
        write_files(root, written, modes)
        calls = [CALL]

        def answers(_: str, body: dict[str, Any]) -> bytes:
            if calls and body.get("tools"):
                return answer_tool_use(body, "toolu_hook", *calls.pop())
            return answer_text(body)

        with ProviderStandIn(answers=answers) as provider:
            programs.run(
                program,
                programs.install(program),
                root / "work",
                home=root / "home",
                address=provider.address,
                environ={},
            )
            requests = json.dumps([request.body for request in provider.requests])
        return log.read_text() if log.exists() else "", requests


def parts_of_plugin(files: dict[str, Any]) -> str:
    """The parts of a plugin that a session has: `command`, `skill`, `agent`, `hook`."""
    program = programs.PROGRAMS["claude-code"]
    with tempfile.TemporaryDirectory(prefix="lints-") as directory, ProviderStandIn() as provider:
        root = Path(directory).resolve()
        log = root / "log"
        write_files(root / "plugin", {**PLUGIN, **files})
        for path in (root / "plugin").rglob("*.json"):
            path.write_text(path.read_text().replace("{log}", str(log)))
        write_files(root, {"work/x": "", "home/x": ""})
        subprocess.run(
            ["nice", str(programs.install(program)), "-p", "--plugin-dir", str(root / "plugin"), "Hi."],
            cwd=root / "work",
            env={"PATH": programs.search_path(), "HOME": f"{root}/home", **program.environ(provider.address)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=permission_runs.LONGEST_S,
            check=False,
            preexec_fn=lambda: os.nice(5),
        )
        sent = json.dumps([request.body for request in provider.requests])
        parts = [each for each in ("command", "skill", "agent") if f"MARK_{each}" in sent]
        return ", ".join([*parts, *(["hook"] if log.exists() else [])]) or "nothing"


def disagreements(kinds: Iterable[str]) -> Iterator[str]:
    """Rows with which the real program does something else than what is recorded."""
    for kind in kinds:
        listed = rows(kind)
        for row, did in zip(listed, real_results(kind, listed), strict=True):
            if did != row["did"]:
                yield f"{row}: the program did {did!r}"
