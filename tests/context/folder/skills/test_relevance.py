"""Which skills a task is about."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from nexus_context.folder.skills.relevance import about_task
from nexus_context.folder.skills.skill import read_skill
from nexus_context.turn.assembly import assemble
from nexus_context.turn.request import Options, Request
from support.fixture import write_fixture
from support.pools import pool_of

SKILLS = {
    "pdf-forms": "Fills the fields of PDF forms.",
    "git-log": "Reads the history of a repository.",
    "deploy": "Releases the service to staging and production.",
    "release-notes": "Writes the notes of a release from the history.",
}


def skill_file(name: str, description: str) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Fill in the form of the tax office.", "pdf-forms"),
        ("Deploy the API.", "deploy"),
        ("Put the service on staging.", "deploy"),
        ("Write the release notes for 2.0.", "release-notes"),
        ("Look through the history of the repository.", "git-log"),
        ("Use the pdf-forms skill.", "pdf-forms"),
        ("Refactor the login.", "pdf-forms git-log deploy release-notes"),
        ("Do it with this code when you can.", "pdf-forms git-log deploy release-notes"),
        ("", "pdf-forms git-log deploy release-notes"),
    ],
)
def test_skills_of_a_task(task: str, expected: str) -> None:
    skills = [
        read_skill(f"/s/{name}/SKILL.md", skill_file(name, text)).skill for name, text in SKILLS.items()
    ]
    found = about_task([skill for skill in skills if skill is not None], task)
    assert [skill.name for skill in found] == expected.split()


def test_a_worker_is_offered_the_skills_of_its_task(tmp_path: Path) -> None:
    files = "".join(
        f"//- /home/a/.nexus3/skills/{name}/SKILL.md\n{skill_file(name, text)}"
        for name, text in SKILLS.items()
    )
    pool = pool_of(write_fixture(f"//- /home/a/NEXUS.md\nRules.\n{files}", tmp_path), "/home/a")
    assert all(f"- {name}:" in pool.main.snapshot.prompt.text for name in SKILLS)
    worker = pool.spawn("worker", task="Deploy the API.")
    assert [name for name in SKILLS if f"- {name}:" in worker.snapshot.prompt.text] == ["deploy"]
    assert "Skills: 1 (deploy)" in worker.snapshot.prompt.text
    manager = pool.spawn("boss", role="manager", task="Deploy the API.")
    assert all(f"- {name}:" in manager.snapshot.prompt.text for name in SKILLS)
    request = Request(options=Options(skills=["git-log"]))  # asked for by name
    turn = assemble(worker.snapshot, worker.conversation, request, now=datetime(2026, 11, 20, tzinfo=UTC))
    assert "## Skill: git-log" in turn.prompt.text
