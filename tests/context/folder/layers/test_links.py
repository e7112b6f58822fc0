"""Links that form circles or lead out: an instruction file, its imports, persona, skills."""

import os
import sys
import time
from pathlib import Path

import pytest

from support.fixture import write_fixture
from support.folders import load_folder, relative

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")

FOLDER = "/home/c/a"
RULES = f"//- {FOLDER}/NEXUS.md\nRules.\n"


@pytest.mark.parametrize(
    ("text", "links", "expected", "shown"),
    [
        (  # the file itself
            f"//- {FOLDER}/x\n",
            {f"{FOLDER}/AGENTS.md": "AGENTS.md"},
            [f"{FOLDER}/AGENTS.md layer.unreadable"],
            [],
        ),
        (
            f"//- {FOLDER}/x\n",
            {f"{FOLDER}/AGENTS.md": "b.md", f"{FOLDER}/b.md": "AGENTS.md"},
            [f"{FOLDER}/AGENTS.md layer.unreadable"],
            [],
        ),
        (  # a chain of links that ends is a file
            f"//- {FOLDER}/docs/end.md\nText.\n",
            {f"{FOLDER}/AGENTS.md": "docs/l0", **{f"{FOLDER}/docs/l{n}": f"l{n + 1}" for n in range(20)}}
            | {f"{FOLDER}/docs/l20": "end.md"},
            [],
            ["Text."],
        ),
        (  # its directory
            RULES,
            {f"{FOLDER}/.nexus3": ".nexus3", f"{FOLDER}/.agents": ".agents"},
            [f"{FOLDER}/.nexus3 layer.unreadable"],
            ["Rules."],
        ),
        (  # an import of a loop, and of the importing file by another name
            f"//- {FOLDER}/NEXUS.md\nRules.\n@loop.md\n@same.md\n@d/d/d/NEXUS.md\n",
            {f"{FOLDER}/loop.md": "loop.md", f"{FOLDER}/same.md": "NEXUS.md", f"{FOLDER}/d": "."},
            [
                f"{FOLDER}/NEXUS.md prompt.import-unreadable",
                f"{FOLDER}/NEXUS.md prompt.import-cycle",
                f"{FOLDER}/NEXUS.md prompt.import-cycle",
            ],
            ["Rules.", "@loop.md", "@same.md", "@d/d/d/NEXUS.md"],
        ),
        (  # two files that import each other by links
            (
                f"//- {FOLDER}/NEXUS.md\n@x.md\n//- {FOLDER}/x.md\nText x.\n@y.md\n"
                f"//- {FOLDER}/z.md\nText z.\n@x.md\n"
            ),
            {f"{FOLDER}/y.md": "z.md"},
            [f"{FOLDER}/y.md prompt.import-cycle"],
            ["Text x.", "Text z.", "@x.md"],
        ),
        (  # persona and a bootstrap directory
            RULES,
            {f"{FOLDER}/.nexus3/SOUL.md": "SOUL.md", f"{FOLDER}/.nexus3/CONTEXT.md": "/secret.md"},
            [f"{FOLDER}/.nexus3/SOUL.md layer.unreadable"],
            ["Rules."],
        ),
        (  # skills
            f"{RULES}//- /outside/SKILL.md\n---\nname: x\ndescription: Text.\n---\n",
            {
                f"{FOLDER}/.nexus3/skills/loop": "loop",
                f"{FOLDER}/.nexus3/skills/up": "..",
                f"{FOLDER}/.nexus3/skills/out": "/outside",
                f"{FOLDER}/.agents/skills": "skills",
            },
            [
                f"{FOLDER}/.nexus3/skills/loop/SKILL.md layer.unreadable",
                f"{FOLDER}/.nexus3/skills/out/SKILL.md layer.refused",
            ],
            ["Rules."],
        ),
    ],
)
def test_circles_end(
    tmp_path: Path, text: str, links: dict[str, str], expected: list[str], shown: list[str]
) -> None:
    """Load a folder with links: the codes of its problems by file, and the lines of its own files' text."""
    fixture = write_fixture(text, tmp_path)
    for path, target in links.items():
        at = Path(fixture.path(path))
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(fixture.path(target) if os.path.isabs(target) else target)
    began = time.thread_time()
    snapshot = load_folder(fixture, FOLDER)
    assert time.thread_time() - began < 2
    found = [f"{relative(fixture, one.path)} {one.code}" for one in snapshot.problems]
    assert sorted(found) == sorted(expected)
    own = [line for line in snapshot.prompt.text.splitlines() if line.startswith(("Rules", "Text", "@"))]
    assert own == shown
