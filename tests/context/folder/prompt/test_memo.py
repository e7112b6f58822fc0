"""Cached results of texts: the values without the texts, up to a limit."""

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import Span
from nexus_context.folder.prompt import gather, memo
from nexus_context.folder.prompt.memo import TextMemo, TextSlice, whole
from support.fixture import write_fixture
from support.folders import load_folder

PARTS = st.builds(
    lambda text, start, length: TextSlice(text, Span(start, start + length)),
    st.text("aбc\ud800", max_size=4),
    st.integers(0, 4),
    st.integers(0, 4),
)


@given(st.lists(st.tuples(PARTS, st.booleans())))
def test_a_value_is_that_of_its_part(asked: list[tuple[TextSlice, bool]]) -> None:
    known = TextMemo[str]()
    for part, by in asked:
        assert known.of(part, str.upper if by else str.lower, by) == (
            part.cut().upper() if by else part.cut().lower()
        )


@given(st.integers(1, 6), st.lists(st.integers(0, 12)))
def test_as_many_as_are_walked_in_turn_are_known(most: int, before: list[int]) -> None:
    known, looked = TextMemo[str](), []

    def look(text: str) -> str:
        looked.append(text)
        return text

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memo, "MOST", most)
        for number in before:
            known.of(whole(f"{number}"), look)
            assert len(known) <= 2 * most
        for _ in range(3):
            now = len(looked)
            for number in range(most):
                known.of(whole(f"{number}"), look)
    assert looked[now:] == []


def test_no_text_is_kept() -> None:
    known = TextMemo[int]()
    known.of(whole("x" * 1_000_000), len)
    assert len(known) == 1
    assert len(pickle.dumps(known)) < 1_000


def test_only_what_is_edited_is_looked_at_for_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    for name in ("secrets_in_text", "hidden_text"):
        monkeypatch.setattr(gather, name, _counted(getattr(gather, name), looked))
    imports = "".join(f"@{at}.md\n" for at in range(100))
    files = "".join(f"//- /a/{at}.md\nFile {at}.\n" for at in range(100))
    inline = ", ".join(f'{{"name": "s{at}", "content": "{at}"}}' for at in range(100))
    config = f'//- /a/.nexus3/config.json\n{{"context": {{"sections": [{inline}]}}}}\n'
    fixture = write_fixture(f"//- /a/NEXUS.md\n{imports}{files}{config}", tmp_path)
    path = fixture.path("/a/7.md")
    snapshot = load_folder(fixture, "/a")
    assert len(looked) > 2 * 100 + 100
    looked.clear()
    changed = frozenset([path])
    load_folder(fixture, "/a", overlays={"/a/7.md": "Another."}, previous=snapshot, changed=changed)
    assert looked == ["Another."] * 2


def _counted(look: Callable[..., Any], looked: list[str]) -> Callable[..., Any]:
    def call(*given: str) -> Any:
        looked.append(given[-1])
        return look(*given)

    return call
