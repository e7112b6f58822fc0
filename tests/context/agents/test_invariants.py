"""Invariants of every tree of agents: no file repeats, every character has its source, permissions only
narrow.
"""

import os
import tempfile
from fnmatch import fnmatchcase
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.agents import AgentPermissions, AgentPool
from nexus_context.agents.permissions import narrow
from nexus_context.config.patterns import Patterns
from nexus_context.config.scope import LEVELS
from nexus_context.disk.files import real_path
from nexus_context.errors import RequestError
from nexus_context.folder.prompt.blocks import OWN_TEXTS
from support.fixture import Fixture, write_fixture
from support.pools import pool_of

FOLDERS = ("co", "co/a", "co/a/b", "co/c")
NAMES = (
    "AGENTS.md",
    ".nexus3/NEXUS.md",
    ".nexus3/SOUL.md",
    ".nexus3/AGENT.md",
    ".nexus3/CONTEXT.md",
    "shared.md",
)
WORDS = ("fs.read", "fs.write", "net.get", "x")
PATTERNS = ("*", "fs.*", "fs.read", "*.get", "f?.read", "net.*", "x", "[fx]*")

files = st.sets(st.tuples(st.sampled_from(FOLDERS), st.sampled_from(NAMES)), min_size=1, max_size=12)
links = st.lists(st.tuples(st.sampled_from(FOLDERS), st.sampled_from(FOLDERS)), max_size=2)
spawns = st.lists(
    st.tuples(st.sampled_from(FOLDERS), st.sampled_from(("manager", "worker", "unified")), st.integers(0, 4)),
    min_size=1,
    max_size=5,
)
patterns = st.lists(st.sampled_from(PATTERNS), max_size=2).map(tuple)
some = st.builds(AgentPermissions, st.sampled_from(LEVELS), patterns, patterns)


def made(root: Path, present: set[tuple[str, str]], linked: list[tuple[str, str]]) -> Fixture:
    text = "".join(
        f"//- /home/{folder}/{name}\n<{folder}/{name}>\n@shared.md\n" for folder, name in sorted(present)
    )
    tree = write_fixture(text + "".join(f"//- /home/{folder}/x.txt\n" for folder in FOLDERS), root)
    for folder, target in linked:
        here = Path(tree.path(f"/home/{folder}/AGENTS.md"))
        if not os.path.lexists(here) and folder != target:
            here.symlink_to(tree.path(f"/home/{target}/AGENTS.md"))
    return tree


def grown(pool: AgentPool, tree: Fixture, wanted: list[tuple[str, str, int]]) -> None:
    for number, (folder, role, above) in enumerate(wanted):
        parent = f"n{above}" if above < number and f"n{above}" in pool else "main"
        try:
            pool.spawn(f"n{number}", tree.path(f"/home/{folder}"), role, parent=parent)
        except RequestError as error:
            assert error.code in ("agent-role", "agent-depth")


@settings(max_examples=40, deadline=None)
@given(files, links, spawns)
def test_a_file_is_in_a_prompt_once(
    present: set[tuple[str, str]], linked: list[tuple[str, str]], wanted: list[tuple[str, str, int]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        tree = made(Path(root), present, linked)
        pool = pool_of(tree, "/home/co")
        grown(pool, tree, wanted)
        for agent in pool.list():
            prompt = agent.prompt
            assert (
                "".join(prompt.text[one.span.start : one.span.end] for one in prompt.fragments) == prompt.text
            )
            for folder, name in present:
                assert prompt.text.count(f"<{folder}/{name}>") <= 1
            verbatim = [
                (real_path(one.path), one.source)
                for one in prompt.fragments
                if one.verbatim and one.path is not None and not one.path.startswith(OWN_TEXTS)
            ]
            assert len(verbatim) == len(set(verbatim))
            for one in prompt.fragments:
                if one.verbatim and one.path in agent.snapshot.layers.texts:
                    source = agent.snapshot.layers.texts[one.path][one.source.start : one.source.end]
                    assert source == prompt.text[one.span.start : one.span.end]


@given(some, some)
def test_what_two_allow_is_never_more_than_either(one: AgentPermissions, other: AgentPermissions) -> None:
    both = narrow(one, other)
    assert LEVELS.index(both.level) == min(LEVELS.index(one.level), LEVELS.index(other.level))
    for word in WORDS:
        if may(both, word):
            assert may(one, word)
            assert may(other, word)


@given(st.sampled_from(PATTERNS), st.sampled_from(PATTERNS), st.sampled_from(WORDS))
def test_patterns_say_what_names_do(one: str, other: str, word: str) -> None:
    if fnmatchcase(word, one):
        assert not Patterns((other,)).cover(one) or fnmatchcase(word, other)
        assert not fnmatchcase(word, other) or Patterns((other,)).meet(one)


@settings(max_examples=30, deadline=None)
@given(st.lists(some, min_size=1, max_size=5))
def test_no_agent_may_more_than_one_above_it(wanted: list[AgentPermissions]) -> None:
    with tempfile.TemporaryDirectory() as root:
        pool = pool_of(write_fixture("//- /home/co/x.txt\n", Path(root)), "/home/co")
        parent = pool.main
        for number, one in enumerate(wanted):
            asked = {"level": one.level, "allow": list(one.allow), "deny": list(one.deny)}
            try:
                parent = pool.spawn(f"n{number}", parent=parent.id, permissions=asked)
            except RequestError as error:
                assert error.code == "agent-permissions"
        for agent in pool.list():
            above = agent.parent
            while above is not None:
                assert LEVELS.index(agent.permissions.level) <= LEVELS.index(above.permissions.level)
                for word in WORDS:
                    assert may(above.permissions, word) or not may(agent.permissions, word)
                above = above.parent


def may(permissions: AgentPermissions, word: str) -> bool:
    denied = any(fnmatchcase(word, one) for one in permissions.deny)
    return not denied and (not permissions.allow or any(fnmatchcase(word, one) for one in permissions.allow))
