"""Globs of `applyTo`: what they mean, as VS Code has it, and that nothing takes long."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.config.globs import MOST_PATTERNS, Globs, GlobsError


def check(globs: str, path: str, *, fits: bool) -> None:
    assert Globs(globs).matches(path) is fits


@pytest.mark.parametrize(
    ("globs", "path", "fits"),
    [
        ("**", "/a/b.py", True),
        ("**/*", "/a/b.py", True),
        ("*", "/a/b.py", True),
        ("*.py", "/a/b.py", True),
        ("*.py", "/a/b.pyi", False),
        ("**/*.py", "/b.py", True),
        ("src/**/*.py", "/w/src/a/b.py", True),
        ("src/**/*.py", "/w/src/b.py", True),
        ("src/**/*.py", "/w/asrc/b.py", False),
        ("src/*.py", "/w/src/a/b.py", False),
        ("src/**", "/w/src/a/b.py", True),
        ("src/**", "/w/src", True),
        ("/src/*.py", "/w/src/b.py", False),
        ("/w/src/*.py", "/w/src/b.py", True),
        ("**/*.{ts,tsx}", "/w/b.tsx", True),
        ("**/*.{ts,tsx}", "/w/b.js", False),
        ("**/{a,b/{c,d}}/*.md", "/w/b/d/x.md", True),
        ("**/{a,b/{c,d}}/*.md", "/w/b/x.md", False),
        ("**/*.ts, **/*.py", "/w/b.py", True),
        (" **/*.ts ,, ", "/w/b.py", False),
        ("", "/w/b.py", False),
        ("**/[a-c]?.PY", "/w/Bx.py", True),
        ("**/[^a-c]?.py", "/w/bx.py", False),
        ("**/[!a-c]?.py", "/w/dx.py", True),
        ("**/{a.py", "/w/{a.py", True),
        ("[,a].py", "/w/,.py", True),
        ("a**b.py", "/w/axxb.py", True),
        ("a**b.py", "/w/a/b.py", False),
        ("**/**/a", "/x/a", True),
        ("a/", "/w/a", True),
    ],
)
def test_what_a_glob_means(globs: str, path: str, *, fits: bool) -> None:
    check(globs, path, fits=fits)


def test_the_first_matching_path_is_returned() -> None:
    assert Globs("*.py").matching(["/a.md", "/b.py", "/c.py"]) == "/b.py"
    assert Globs("*.py").matching([]) is None


@pytest.mark.parametrize(
    "globs", ["{a,b}" * 9, "x" * 20_000, ",".join(f"a{n}" for n in range(MOST_PATTERNS + 1))]
)
def test_too_many_are_refused(globs: str) -> None:
    with pytest.raises(GlobsError):
        Globs(globs)


_TEXT = st.text("ab/*?{},[]!^. \\é", max_size=40)


@given(_TEXT, _TEXT)
def test_any_text_is_either_globs_or_refused_with_a_reason(globs: str, path: str) -> None:
    try:
        parsed = Globs(globs)
    except GlobsError as error:
        assert str(error)
    else:
        assert parsed.matches(path) == parsed.matches(path.upper())


@given(st.lists(st.text("abc.é", min_size=1, max_size=5), min_size=1, max_size=6))
def test_a_path_fits_itself_and_every_glob_that_leaves_names_open(names: list[str]) -> None:
    path = f"/{'/'.join(names)}"
    for globs in (
        path,
        names[-1],
        f"**/{names[-1]}",
        f"{names[0]}/**",
        "/**",
        f"/{'/'.join('*' for _ in names)}",
    ):
        check(globs, path, fits=True)


def test_no_path_and_glob_take_long() -> None:
    """As a rule 0.2 s; trying each `**` and `*` anew would not end."""
    started = time.thread_time()
    check("**/a/" * 300 + "c", "/" + "a/" * 1_000 + "b", fits=False)
    check("*a" * 2_000 + "c", "/" + "a" * 4_000, fits=False)
    assert time.thread_time() - started < 10
