"""Files as they are while they are typed: nothing raises or is misplaced, no short way says something else.

The short form of `python -m tests.torture --only typing_states`; on a desk each run draws new sessions.
"""

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from support.fixture import write_fixture
from support.folders import load_folder
from support.mutated_folders import MutatedFolder
from support.typing_checks import check_documents, check_folder, check_session, check_snapshot
from support.typing_forms import FOLDER, FORMS, TREE
from support.typing_states import LONGEST, states

SESSIONS = st.integers(0, 2**32)
UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]  # a smaller number is no simpler session
JSON_FORMS = [name for name, form in FORMS.items() if form.is_json]


@settings(max_examples=60, phases=UNSHRUNK)
@given(SESSIONS)
def test_sessions(seed: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        check_session(Path(root), seed, 12)


@settings(max_examples=60, phases=UNSHRUNK)
@given(SESSIONS, st.sampled_from(JSON_FORMS))
def test_documents(seed: int, name: str) -> None:
    check_documents(states(FORMS[name], seed, 25))


@settings(max_examples=20, phases=UNSHRUNK)
@given(SESSIONS)
def test_mutated_folders(seed: int) -> None:
    with tempfile.TemporaryDirectory() as root:
        folder = MutatedFolder(Path(root), seed)
        for _ in range(25):
            check_snapshot(folder.load())


@pytest.mark.parametrize("name", JSON_FORMS)
def test_every_prefix(name: str) -> None:
    """All that a file is while it is written from its beginning to its end."""
    shortest = min(FORMS[name].texts, key=len)
    check_documents(shortest[:end] for end in range(0, len(shortest), len(shortest) // 100 + 1))


HALVES = [
    ("mcp", '{"servers":{"db":{"command":"x"}}, "servers"}'),
    ("mcp", '{"mcpServers":{"db":{"command":"x"}}, "mcpServers":'),
    ("mcp", '{"servers":[{"name":"db","command":"x"}], "servers"}'),
    ("global mcp", '{"mcpServers":{"db":{"command":"x"}, "db"}, "mcpServers"}'),
    ("config", '{"context":{"zz":1},"context"}'),
    ("global config", '{"context":{"zz":1},"context"}'),
    (
        "config",
        '{"agents":{"a":{"tools":[1],"tools"}},"agents":,"context":{"sections":[{"name":1}],"sections"}}',
    ),
    ("config", '{"context":{"sections":[{"name":"S","file":"no.md"}]}}'),
]


@pytest.mark.parametrize(("name", "text"), HALVES)
def test_a_key_that_is_typed_again(tmp_path: Path, name: str, text: str) -> None:
    """At the first load, and among other states of the file."""
    tree = write_fixture(TREE, tmp_path)
    form = FORMS[name]
    check_documents([text])
    check_snapshot(load_folder(tree, FOLDER, overlays={form.path: text}))
    others = [other for each, other in HALVES if each == name]
    check_folder(tree, form, [form.texts[0], text, *others, form.texts[1], text])


def test_the_grammar_has_what_it_is_for() -> None:
    """Sessions are the same each time; they leave the valid text, and stay within bounds."""
    for name, form in FORMS.items():
        texts = [text for seed in range(30) for text in states(form, seed, 40)]
        assert texts == [text for seed in range(30) for text in states(form, seed, 40)]
        assert len(set(texts)) > len(texts) // 2
        assert max(map(len, texts)) < 20 * LONGEST, name
    typed = "".join(text for seed in range(60) for text in states(FORMS["mcp"], seed, 40))
    for part in (",,", "//", "/*", "\ud800", "\0", "[[[[[", "<<<<<<<", "\u201c"):
        assert part in typed
    for half in (r'[{,]\s*"\w+"\s*[},]', r'"\w+":\s*[},]', r'"\w+" "', r'("\w+": \S+,)\s*\1'):
        assert re.search(half, typed), half
