"""A bug that is met in one file costs that file, for as long as it lasts, and nothing else of the folder."""

import functools
import logging
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from nexus_context.disk import containment
from nexus_context.disk.containment import INTERNAL, contained
from nexus_context.errors import NexusError, Problem, Severity, Span
from nexus_context.folder.snapshot import Snapshot
from support.fixture import Fixture, write_fixture
from support.folders import load_folder

FOLDER = "/home/work/app"
CONFIG = f"{FOLDER}/.nexus3/config.json"
MCP = f"{FOLDER}/.nexus3/mcp.json"
NEXUS = f"{FOLDER}/NEXUS.md"
MORE = f"{FOLDER}/more.md"
AGENT = f"{FOLDER}/.nexus3/AGENT.md"
SECTION = f"{FOLDER}/section.md"
SKILL = f"{FOLDER}/.nexus3/skills/one/SKILL.md"
SKILLS = f"{FOLDER}/.nexus3/skills"
GLOBAL = "/home/.nexus3/config.json"
GLOBAL_MCP = "/home/.nexus3/mcp.json"
WORK = "/home/work/NEXUS.md"
USER = "/home/.nexus3/NEXUS.md"
TREE = f"""
//- {GLOBAL}
{{"context": {{"reserve_tokens": 111}}}}
//- {GLOBAL_MCP}
{{"mcpServers": {{"everywhere": {{"command": "python3"}}}}}}
//- {USER}
Rules of the user.
//- {WORK}
Rules of the ancestor.
//- {CONFIG}
{{
  "context": {{"keep_recent_turns": 7, "sections": [{{"name": "S", "file": "section.md"}}]}},
  "provider": {{"model": "gpt-4o"}},
  "agents": {{"helper": {{"role": "worker"}}}}
}}
//- {MCP}
{{"mcpServers": {{"here": {{"command": "python3"}}}}}}
//- {NEXUS}
Rules of the folder.
@more.md
//- {MORE}
More rules.
//- {SECTION}
Text of the section.
//- {AGENT}
Who the agent is.
//- {SKILL}
---
name: one
description: The first.
---
//- {FOLDER}/.nexus3/skills/two/SKILL.md
---
name: two
description: The second.
---
"""
SERVERS, SKILL_NAMES = frozenset(["here", "everywhere"]), frozenset(["one", "two"])
SENTENCES = {
    "user": "Rules of the user.",
    "ancestor": "Rules of the ancestor.",
    "folder": "Rules of the folder.",
    "more": "More rules.",
    "section": "Text of the section.",
    "agent": "Who the agent is.",
}

EVERYTHING = frozenset(["reserve", "turns", *SENTENCES]) | SERVERS | SKILL_NAMES


def served(snapshot: Snapshot) -> frozenset[str]:
    """What of the fixture is in force."""
    effective = snapshot.effective
    marks = {name for name, sentence in SENTENCES.items() if sentence in snapshot.prompt.text}
    marks |= {server.name for server in snapshot.layers.servers}
    marks |= {one.skill.name for one in snapshot.layers.skills}
    marks |= {"reserve"} if effective.get("/context/reserve_tokens") == 111 else set()
    marks |= {"turns"} if effective.get("/context/keep_recent_turns") == 7 else set()
    return frozenset(marks)


def internal(tree: Fixture, snapshot: Snapshot) -> set[str]:
    """The files, by their names in the fixture, of which a bug is reported."""
    bugs = [problem for problem in snapshot.problems if problem.code == INTERNAL]
    assert all(each.severity is Severity.ERROR and each.span == Span(0, 0) for each in bugs)
    assert len(bugs) == len({each.path for each in bugs}), bugs
    return {each.path.removeprefix(tree.root) for each in bugs}


@contextmanager
def broken(name: str, path: str | None, error: type[Exception], good: str | None = None) -> Iterator[None]:
    """A function of the library raises where it is about a file, unless that has its good text.

    Without a path it raises whatever it is about.
    """
    original = pkgutil.resolve_name(f"nexus_context.{name}")

    def faulty(*arguments: Any, **named: Any) -> Any:
        values = (*arguments, *named.values())
        if path is None or (good not in arguments and any(_is_about(each, path, good) for each in values)):
            raise error("secret")
        return original(*arguments, **named)

    with mock.patch(f"nexus_context.{name}", faulty):
        yield


def _is_about(argument: Any, path: str, good: str | None) -> bool:
    if isinstance(argument, Problem):
        return False
    document = getattr(argument, "document", argument)
    if document == path or getattr(document, "path", None) == path:
        return good is None or getattr(document, "text", None) != good
    return isinstance(argument, tuple) and any(_is_about(each, path, good) for each in argument)


FILES = [
    # a function, the file that it is about, what is lost of the folder at the first load, who is reported
    ("disk.files.RealFiles.read", CONFIG, "turns section", CONFIG),
    ("folder.layers.text_reader.parse", CONFIG, "turns section", CONFIG),
    ("folder.layers.read_layers.check_settings", CONFIG, "turns section", CONFIG),
    ("folder.layers.text_reader.check_config", CONFIG, "turns section", CONFIG),
    ("folder.layers.text_reader.merge", CONFIG, "turns section", CONFIG),
    ("folder.layers.text_reader.restrict", CONFIG, "turns section", CONFIG),
    ("disk.files.RealFiles.read", GLOBAL, "reserve", GLOBAL),
    ("folder.layers.text_reader.parse", GLOBAL, "reserve", GLOBAL),
    ("folder.layers.text_reader.merge", GLOBAL, "reserve", GLOBAL),
    ("disk.files.RealFiles.read", MCP, "here", MCP),
    ("folder.layers.text_reader.parse", MCP, "here", MCP),
    ("folder.layers.servers.read_servers", MCP, "here", MCP),
    ("folder.layers.servers.syntax_problems", MCP, "here", MCP),
    ("folder.layers.servers.read_servers", GLOBAL_MCP, "everywhere", GLOBAL_MCP),
    ("disk.files.RealFiles.read", NEXUS, "folder more", NEXUS),
    # what cannot be examined is not read
    ("folder.layers.text_reader.trusted_read", WORK, "ancestor", WORK),
    ("folder.layers.text_reader.within", NEXUS, "folder more", NEXUS),
    # a file whose imports cannot be followed is in the prompt as it stands
    ("folder.prompt.imports._pieces", NEXUS, "more", NEXUS),
    ("folder.prompt.imports.import_tokens", "Rules of the folder.\n@more.md\n", "more", NEXUS),
    ("folder.prompt.imports._pieces", MORE, "", MORE),
    ("disk.files.RealFiles.read", MORE, "more", MORE),
    ("folder.prompt.imports._forbidden", MORE, "more", NEXUS),
    ("disk.files.RealFiles.read", AGENT, "agent", AGENT),
    ("folder.layers.bootstrap.LayerFile", AGENT, "agent", AGENT),
    ("disk.files.RealFiles.read", SKILL, "one", SKILL),
    ("folder.layers.text_reader.read_skill", SKILL, "one", SKILL),
    ("folder.layers.skills._file", SKILL, "one", SKILL),
    ("folder.layers.skills.list_skill_directory", SKILLS, "one two", SKILLS),
    ("folder.prompt.gather.hidden_text", NEXUS, "", NEXUS),
    ("folder.prompt.gather.hidden_text", SKILL, "", SKILL),
    ("folder.prompt.gather._secret_problems", MORE, "", MORE),
    ("folder.prompt.gather._section_pieces", CONFIG, "section", CONFIG),
    ("folder.prompt.gather.read_import", SECTION, "section", CONFIG),
]
RENDERED = "user ancestor folder more section agent"
STEPS = [
    # a step that looks at all files, and what is lost at the first load
    ("folder.layers.read_layers.unknown_model", ""),
    ("folder.layers.read_layers.agent_problems", ""),
    ("folder.layers.read_layers.instruction_names", ""),
    ("folder.layers.read_layers.find_bootstrap", "agent"),
    ("folder.layers.read_layers.find_servers", "here everywhere"),
    ("folder.layers.read_layers.find_skills", "one two"),
    ("folder.layers.skills._configured", ""),
    ("folder.layers.skills._say_what_is_astray", ""),
    ("folder.layers.skills._unmatched", ""),
    ("folder.layers.servers.shadow_hints", ""),
    ("folder.layers.walk.Walk.above", "ancestor"),
    ("folder.layers.walk.Walk.opened", " ".join(sorted(EVERYTHING))),
    ("folder.prompt.size.measure", ""),
    ("folder.prompt.gather._credentials", ""),
    ("folder.loading.gather", RENDERED),
    ("folder.loading.render", RENDERED),
]


def check(root: Path, name: str, path: str | None, error: type[Exception]) -> tuple[set[str], set[str]]:
    """What is lost at the first load while a function raises, and who is reported.

    Where it raises later, it costs nothing that has a last good value. It is reported with every load, and is
    over when the function does its work again.
    """
    tree = write_fixture(TREE, root)
    at = path and (tree.path(path) if path.startswith("/") else path)
    healthy = load_folder(tree, FOLDER)
    with broken(name, at, error):
        first = load_folder(tree, FOLDER)
        again = load_folder(tree, FOLDER, previous=first)
    for _ in range(2):
        assert (served(again), internal(tree, again)) == (served(first), internal(tree, first))
        with broken(name, at, error):
            again = load_folder(tree, FOLDER, previous=again, changed=frozenset([tree.path(WORK)]))
    # all files are other ones, with the same values
    edits = {each.removeprefix(tree.root): f"{text}\n" for each, text in tree.files.items()}
    with broken(name, at, error, tree.files.get(at or "")):
        later = load_folder(tree, FOLDER, overlays=edits, previous=healthy)
    assert served(later) >= served(first)
    if path in (CONFIG, MCP, GLOBAL, GLOBAL_MCP) and not name.startswith("folder.prompt."):
        assert served(later) == EVERYTHING
    for before in (first, later):
        fixed = load_folder(tree, FOLDER, overlays=edits, previous=before)
        assert (served(fixed), internal(tree, fixed)) == (EVERYTHING, set())
    return set(EVERYTHING - served(first)), internal(tree, first)


def test_nothing_is_lost_of_a_folder_without_a_bug(tmp_path: Path) -> None:
    tree = write_fixture(TREE, tmp_path)
    healthy = load_folder(tree, FOLDER)
    assert (served(healthy), internal(tree, healthy)) == (EVERYTHING, set())


@pytest.mark.parametrize(("name", "path", "lost", "reported"), FILES)
def test_a_bug_in_one_file(tmp_path: Path, name: str, path: str, lost: str, reported: str) -> None:
    assert check(tmp_path, name, path, ZeroDivisionError) == (set(lost.split()), {reported})


@pytest.mark.parametrize(("name", "lost"), STEPS)
def test_a_bug_in_what_looks_at_all_files(tmp_path: Path, name: str, lost: str) -> None:
    assert check(tmp_path, name, None, ZeroDivisionError) == (set(lost.split()), {FOLDER})


@pytest.mark.parametrize(
    "error", [KeyError, RecursionError, MemoryError, OSError, UnicodeError, AssertionError]
)
def test_any_exception(tmp_path: Path, error: type[Exception]) -> None:
    assert check(tmp_path, "folder.layers.text_reader.parse", MCP, error) == ({"here"}, {MCP})


def test_a_keystroke_in_a_broken_file(tmp_path: Path) -> None:
    """The short way, which reads no file, leaves it to the load to report the bug."""
    tree = write_fixture(TREE, tmp_path)
    text, changed = tree.files[tree.path(CONFIG)], frozenset([tree.path(CONFIG)])
    before = load_folder(tree, FOLDER)
    for end in (",", ", ", ",  "):
        with broken("folder.layers.recheck.parse", tree.path(CONFIG), KeyError):
            before = load_folder(
                tree, FOLDER, overlays={CONFIG: text + end}, previous=before, changed=changed
            )
        assert (served(before), internal(tree, before)) == (EVERYTHING, set())
    with broken("folder.layers.text_reader.check_config", tree.path(CONFIG), KeyError):
        typed = load_folder(tree, FOLDER, overlays={CONFIG: text + ",x"}, previous=before, changed=changed)
    assert served(typed) == EVERYTHING
    assert internal(tree, typed) == {CONFIG}


def test_what_is_read_after_a_folder_could_not_be(tmp_path: Path) -> None:
    """No file is taken from before that was changed while nothing could be read."""
    tree = write_fixture(TREE, tmp_path)
    healthy = load_folder(tree, FOLDER)
    Path(tree.path(NEXUS)).write_text("Rules of tomorrow.\n")
    with broken("folder.layers.walk.Walk.opened", None, OSError):
        failed = load_folder(tree, FOLDER, previous=healthy, changed=frozenset([tree.path(NEXUS)]))
    assert (served(failed), internal(tree, failed)) == (EVERYTHING, {FOLDER})
    later = load_folder(tree, FOLDER, previous=failed, changed=frozenset([tree.path(SKILL)]))
    assert internal(tree, later) == set()
    assert "Rules of tomorrow." in later.prompt.text


@pytest.mark.parametrize(
    ("step", "folder", "agent"),
    [
        ("folder.layers.walk.Walk.opened", "/home/work", None),
        ("folder.layers.walk.Walk.opened", FOLDER, "helper"),
        ("folder.loading.gather", "/home/work", None),
        ("folder.loading.gather", FOLDER, "helper"),
        ("folder.loading.render", "/home/work", None),
    ],
)
def test_nobody_is_served_what_is_of_another(
    tmp_path: Path, step: str, folder: str, agent: str | None
) -> None:
    """What was before is kept for the same folder and agent only."""
    tree = write_fixture(TREE, tmp_path)
    healthy = load_folder(tree, FOLDER)
    with broken(step, None, OSError):
        other = load_folder(tree, folder, previous=healthy, agent=agent)
    assert internal(tree, other) == {folder}
    assert not any(sentence in other.prompt.text for sentence in SENTENCES.values())


def test_the_problem_as_a_whole(caplog: pytest.LogCaptureFixture) -> None:
    """The stack is logged once, without what the exception says: that may be a part of the file."""

    def fail() -> str:
        raise KeyError("secret")

    problems = [contained(f"/{name}", fail, lambda problem: problem) for name in "ab"]
    assert problems[0] == Problem(
        "/a",
        Span(0, 0),
        "internal",
        Severity.ERROR,
        "Nexus failed on this file (KeyError). This is a bug in Nexus, not your mistake. All other files are "
        "in force; of this one, its last good content, if there was one. Undo the last change to work around "
        "it, and report it with the stack in the log (`nexus logs`).",
    )
    (record,) = caplog.records
    assert (record.levelno, record.name) == (logging.ERROR, "nexus_context.disk.containment")
    assert record.getMessage().startswith("a bug met in /a: KeyError\n")
    assert 'raise KeyError("secret")' in record.getMessage().splitlines()[-1]
    assert "KeyError: " not in record.getMessage()


def test_what_nexus_raises_on_purpose_passes() -> None:
    def refuse() -> None:
        raise NexusError("The installation is incomplete.")

    with pytest.raises(NexusError, match="incomplete"):
        contained("/a", refuse, lambda _: None)


def test_what_is_remembered_as_logged_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containment, "MOST_PLACES", 2)
    for number in range(5):
        code = compile("\n" * number + "1 / 0", "<bug>", "eval")
        contained("/a", functools.partial(eval, code), lambda _: None)
    assert len(containment.logged_places) <= 2
