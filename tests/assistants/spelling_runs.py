"""Spellings of fields and globs that decide what a program sends, and what the real programs made of them.

1. `spellings.jsonl` has a row for each: `program`, `kind`, the `text`, and `sent`, what the program did.
2. `paths`: the front matter of a rule of Claude Code. `sent` is `always`, or the FILES after whose reading
   the rule follows; none of them: never.
3. `skill` and `agent`: the front matter of a file of one; `sent` is its line in the request, None without
   one.
4. `excludes` is one entry of `claudeMdExcludes`, `instructions` one of opencode.json; `sent` are the files of
   PLACES of which the text is sent.
5. All rows of a kind of rule 2 or 3 share a folder, so that a kind takes one run, or one for each of FILES.
"""

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from assistants import programs
from assistants.agreement import ROOT, extract_of
from assistants.extraction import extract
from assistants.provider_stand_in import ProviderStandIn, ScriptedCall
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.views.profile import read_profile

ROWS = Path(__file__).with_name("spellings.jsonl")
FILES = (
    "src/app.ts",
    "src/deep/b.tsx",
    "src/.hidden.ts",
    "SRC/App.TS",
    "docs/a b.md",
    "docs/[x].md",
    ".env",
    "top.py",
    "docs/x.md",
    "src/@(app|b).ts",
    "@src/a.ts",
    "~/src/a.ts",
    "src/** docs/a.md",
)
"""What Claude Code reads, one in each run."""
PLACES = (
    "CLAUDE.md",
    "CLAUDE.local.md",
    ".claude/rules/a.md",
    ".claude/rules/B.md",
    ".claude/rules/.c.md",
    ".claude/rules/in/d.md",
    "docs/e.md",
    "docs/.f.md",
    "docs/in/G.MD",
    "docs/in/h.txt",
    "i j.md",
)
"""The files beside an entry of a list of globs; each has its own name as its text."""
DIRECTORIES = {
    ("claude-code", "skill"): ".claude/skills/n{n}/SKILL.md",
    ("claude-code", "agent"): ".claude/agents/n{n}.md",
    ("codex", "skill"): ".agents/skills/n{n}/SKILL.md",
    ("opencode", "skill"): ".opencode/skills/n{n}/SKILL.md",
    ("opencode", "agent"): ".opencode/agents/n{n}.md",
    ("claude-code", "paths"): ".claude/rules/n{n}.md",
}
LISTS = {
    "excludes": (".claude/settings.json", "claudeMdExcludes"),
    "instructions": ("opencode.json", "instructions"),
}


def rows() -> list[dict[str, Any]]:
    """All rows."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]


def real_results(program: str, kind: str, texts: list[str]) -> list[Any]:
    """What the real program sends of each text of a kind."""
    with tempfile.TemporaryDirectory(prefix="spelling-") as directory:
        root = Path(directory).resolve()
        if kind in LISTS:
            results = []
            for text in texts:
                _write(program, kind, [text], root)
                sent = _request(program, root)
                results.append(None if sent is None else sorted(_placed(sent)))
            return results
        _write(program, kind, texts, root)
        if kind != "paths":
            entries = extract(program, _request(program, root)).entries
            return [_line(entries, number, root) for number in range(len(texts))]
        always = _marks(_request(program, root), len(texts))
        after: list[list[str]] = [[] for _ in texts]
        for file in FILES:
            call = ScriptedCall("Read", {"file_path": str(root / "work" / file)})
            for number in _marks(_request(program, root, call=call), len(texts)) - always:
                after[number].append(file)
        return ["always" if number in always else after[number] for number in range(len(texts))]


def predicted_results(program: str, kind: str, texts: list[str], root: Path) -> list[Any]:
    """What the profile says of each text: as `real_results`, but `later` or `never` for a rule."""
    if kind in LISTS:
        results = []
        for number, text in enumerate(texts):
            folder = root / str(number)
            _write(program, kind, [text], folder)
            results.append(sorted(_placed(extract_of(_profile(program, folder)).instructions or "")))
        return results
    _write(program, kind, texts, root)
    profile = _profile(program, root)
    if kind != "paths":
        return [_line(extract_of(profile).entries, number, root) for number in range(len(texts))]
    always = _marks(extract_of(profile).instructions or "", len(texts))
    later = {os.path.basename(each.path) for each in profile.later}
    return [
        "always" if number in always else "later" if f"n{number}.md" in later else "never"
        for number in range(len(texts))
    ]


def _profile(program: str, root: Path) -> Any:
    return read_profile(program, Surroundings(str(root / "work"), str(root / "home"), {}))


def _write(program: str, kind: str, texts: list[str], root: Path) -> None:
    """The folder of texts of a kind."""
    work = root / "work"
    (root / "home").mkdir(parents=True, exist_ok=True)
    if kind in LISTS:
        name, key = LISTS[kind]
        _write_file(work / name, json.dumps({key: [texts[0].replace(ROOT, str(root))]}))
        for directory in ("objects", "refs"):
            (work / ".git" / directory).mkdir(parents=True, exist_ok=True)
        _write_file(work / ".git/HEAD", "ref: refs/heads/main\n")
        for place in PLACES:
            _write_file(work / place, f"MK {place} KM\n")
        return
    for file in FILES if kind == "paths" else ():
        _write_file(work / file, "x\n")
    for number, text in enumerate(texts):
        name = DIRECTORIES[program, kind].format(n=number)
        _write_file(work / name, f"{text.replace('{n}', f'n{number}')}MK {number} KM\n")


def _write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


def _request(program: str, root: Path, call: ScriptedCall | None = None) -> Any:
    """The body of the last request with tools of a run, None without one."""
    one = programs.PROGRAMS[program]
    with ProviderStandIn(call) as provider:
        programs.run(
            one,
            programs.install(one),
            root / "work",
            home=root / "home",
            address=provider.address,
            environ={},
        )
        turns = [each.body for each in provider.requests if each.body.get("tools")]
    return turns[-1] if turns else None


def _marks(sent: Any, count: int) -> set[int]:
    """The numbers of the texts that are in a request."""
    text = json.dumps(sent)
    return {number for number in range(count) if f"MK {number} KM" in text}


def _placed(sent: Any) -> Iterator[str]:
    text = json.dumps(sent, ensure_ascii=False)
    return (place for place in PLACES if f"MK {place} KM" in text)


def _line(entries: tuple[str, ...], number: int, root: Path) -> str | None:
    """The entry of a text, which has `n` and its number for its name, or the text `id` and that."""
    name = f"n{number}"
    signs = (f" {name}:", f" {name} (", f"/{name}/", f">{name}<")
    found = (each for each in entries if any(sign in each for sign in signs))
    line = next(found, None)
    if line is None:
        return None
    return (
        (line if line.startswith(" ") else line.partition("\n")[0])
        .replace(str(root), ROOT)
        .replace(name, "{n}")
    )
