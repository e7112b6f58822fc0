"""Editing, told as text, of a company, its backend and one service: break, fix, keep the last good value.

A step is a line that starts at the margin:

- `load`: the folder is loaded for the first time.
- `type FILE: OLD => NEW`: the editor replaces a text, unsaved.
- `save FILE: OLD => NEW`: the disk changes.
- `close FILE`: the editor forgets its unsaved text.

The indented lines below a step are what is there afterwards, worked out again and compared as a whole.
"""

from pathlib import Path

from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, relative

COMPANY = """
//- /home/.nexus3/NEXUS.md
Rules of the user.
//- /home/company/.nexus3/NEXUS.md
Rules of the company.
//- /home/company/.nexus3/config.json
{
  "provider": {"model": "gpt-4o"},
  "context": {"reserve_tokens": 4000}
}
//- /home/company/backend/AGENTS.md
Rules of the backend.
//- /home/company/backend/auth-service/.nexus3/NEXUS.md
Rules of the service.
@style.md
//- /home/company/backend/auth-service/.nexus3/style.md
Short names.
//- /home/company/backend/auth-service/.nexus3/config.json
{
  "context": {"reserve_tokens": 1000}
}
"""
BASE = "/home/company"
FOLDER = f"{BASE}/backend/auth-service"


def check(root: Path, scenario: str) -> None:
    """Play a scenario; it must come out as it is written."""
    assert play(write_fixture(COMPANY, root), scenario.strip()) == scenario.strip()


def play(fixture: Fixture, scenario: str) -> str:
    unsaved: dict[str, str] = {}
    snapshot: Snapshot | None = None
    played: list[str] = []
    for step in scenario.splitlines():
        if not step or step.startswith(" "):
            continue
        verb, _, rest = step.partition(" ")
        name, _, change = rest.partition(": ")
        path = f"{BASE}/{name}"
        if verb == "close":
            del unsaved[path]
        elif verb != "load":
            old, new = change.split(" => ")
            disk = Path(fixture.path(path))
            text = unsaved.get(path, disk.read_text()) if verb == "type" else disk.read_text()
            assert old in text
            if verb == "type":
                unsaved[path] = text.replace(old, new)
            else:
                disk.write_text(text.replace(old, new))
        snapshot = load_folder(fixture, FOLDER, overlays=unsaved, previous=snapshot)
        played += [step, *(f"  {line}" for line in state(fixture, snapshot)), ""]
    return "\n".join(played).strip()


def state(fixture: Fixture, snapshot: Snapshot) -> list[str]:
    """Revision, the rules in the prompt, one setting and who sets it, broken files, problems."""
    rules = [
        line for line in snapshot.prompt.text.splitlines() if line.startswith(("Rules of", "Short names"))
    ]
    (winner,) = [one for one in snapshot.effective.provenance["/context/reserve_tokens"] if one.wins]
    lines = [
        f"revision {snapshot.revision}",
        " | ".join(rules),
        f"reserve_tokens {winner.value} of {winner.layer}",
    ]
    for layer in snapshot.layers.layers:
        lines += [
            f"{file.status} {shown(fixture, file.path)}"
            for file in layer.files
            if file.status not in ("loaded", "missing")
        ]
    lines += [f"{one.code} {shown(fixture, one.path)}" for one in snapshot.problems]
    return lines


def shown(fixture: Fixture, path: str) -> str:
    return relative(fixture, path).removeprefix(f"{BASE}/")


def test_break_mend_and_the_last_good_value(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
load
  revision 1
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 1000 of local

type backend/auth-service/.nexus3/config.json: 1000} => 1000
  revision 2
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 1000 of local
  stale backend/auth-service/.nexus3/config.json
  json.unclosed backend/auth-service/.nexus3/config.json

type backend/auth-service/.nexus3/config.json: 1000 => 1500}
  revision 3
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 1500 of local

close backend/auth-service/.nexus3/config.json
  revision 4
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 1000 of local

save backend/auth-service/.nexus3/config.json: "reserve_tokens": 1000 => "keep_recent_turns": 5
  revision 5
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 4000 of ancestor:company
""",
    )


def test_a_broken_company_file_does_not_hide_the_service(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
load
  revision 1
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 1000 of local

type .nexus3/config.json: "gpt-4o" => gpt-4o
  revision 2
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 1000 of local
  stale .nexus3/config.json
  json.unquoted-string .nexus3/config.json

type backend/auth-service/.nexus3/NEXUS.md: @style.md => @stile.md
  revision 3
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service.
  reserve_tokens 1000 of local
  stale .nexus3/config.json
  json.unquoted-string .nexus3/config.json
  prompt.import-missing backend/auth-service/.nexus3/NEXUS.md

type .nexus3/config.json: gpt-4o => "gpt-4o"
  revision 4
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service.
  reserve_tokens 1000 of local
  prompt.import-missing backend/auth-service/.nexus3/NEXUS.md

close backend/auth-service/.nexus3/NEXUS.md
  revision 5
  Rules of the user. | Rules of the company. | Rules of the backend. | Rules of the service. | Short names.
  reserve_tokens 1000 of local
""",
    )
