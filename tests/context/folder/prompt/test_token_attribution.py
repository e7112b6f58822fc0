"""What each fragment and each kind of text of a prompt costs: figures by part, which sum to the whole."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import Span
from nexus_context.folder.prompt.blocks import OWN_TEXTS
from nexus_context.folder.prompt.render import Fragment, Prompt, tiled
from nexus_context.folder.prompt.sections import Part
from nexus_context.folder.prompt.texts import Piece
from nexus_context.folder.prompt.token_attribution import PARTS, fragment_tokens, row_key, tokens_by_part
from nexus_context.tokens import ScaledCounter, SimpleTokenCounter, TiktokenCounter, TokenCounter
from nexus_context.turn.assembly import measure
from nexus_context.turn.manager import ContextManager
from nexus_context.turn.request import Options, Request
from support.fixture import write_fixture
from support.folders import load_folder

O200K = TiktokenCounter("o200k_base")
CONFIG = '//- /home/a/.nexus3/config.json\n{"provider": {"model": "gpt-4o"}SETTINGS}\n'
SKILL = (
    "//- /home/a/.nexus3/skills/dive/SKILL.md\n---\nname: dive\ndescription: Dives deep.\n---\n# How\nDown.\n"
)


def check(root: Path, files: str, expected: dict[str, int], *, more: str = "", **options: object) -> None:
    """Tokens of each part but Nexus's own, which has the paths; the parts sum to the rows of the prompt."""
    fixture = write_fixture(CONFIG.replace("SETTINGS", more) + files, root)
    snapshot = load_folder(fixture, "/home/a")
    request = Request(options=Options(**options))  # type: ignore[arg-type]
    usage = measure(snapshot, ContextManager(), request=request).usage
    parts = {one.part: one.tokens for one in usage.parts}
    assert list(parts) == list(PARTS)
    assert sum(parts.values()) == usage.by_category()["system"]
    assert all(one.exact for one in usage.parts)
    own = parts.pop("nexus")
    assert own > 0
    assert {part: tokens for part, tokens in parts.items() if tokens} == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ("", {}),  # the defaults that Nexus ships are its own
        ("//- /home/a/NEXUS.md\nBe brief.\n", {"instructions": 3}),
        ("//- /home/.nexus3/NEXUS.md\nBe brief.\n//- /home/a/NEXUS.md\nBe kind.\n", {"instructions": 6}),
        ("//- /home/a/NEXUS.md\nSee @b.md there.\n//- /home/a/b.md\nBe brief.\n", {"instructions": 6 + 3}),
        ("//- /home/a/.nexus3/SOUL.md\nBe brief.\n", {"instructions": 3}),
        ('//- /home/a/.mcp.json\n{"mcpServers": {"git": {"command": "git-mcp"}}}\n', {"tools": 10}),
    ],
)
def test_whose_text_it_is(tmp_path: Path, files: str, expected: dict[str, int]) -> None:
    check(tmp_path, files, expected)


def test_the_list_of_skills(tmp_path: Path) -> None:
    row = f"- dive: Dives deep. ({tmp_path}/home/a/.nexus3/skills/dive/SKILL.md)"
    check(tmp_path, SKILL, {"skills": O200K.count(row)})


def test_what_a_request_adds(tmp_path: Path) -> None:
    files = "//- /home/a/NEXUS.md\nBe brief.\n"
    tool = {"name": "look", "description": "Looks."}
    expected = {"instructions": 3 + 8, "tools": 9}
    check(
        tmp_path,
        files,
        expected,
        more=', "tools": {"summary": true}',
        additional_system_prompt="Be kind.",
        additional_tools=[tool],
    )


class Letters(TokenCounter):
    """An unknown counter, whose counts do not add up."""

    name = "letters"
    exact = False

    def count(self, text: str) -> int:
        return -(-len(text) // 3)

    def count_messages(self, messages: object) -> int:
        raise NotImplementedError

    def __hash__(self) -> int:
        return 1


COUNTERS: list[TokenCounter] = [O200K, ScaledCounter(O200K, 1.18), SimpleTokenCounter(), Letters()]
PIECES = st.builds(
    Piece,
    st.text("ab #\n.é中😀", min_size=1, max_size=30),
    st.sampled_from([None, "/a/NEXUS.md", "/a/b.md", f"{OWN_TEXTS}/active.md"]),
    st.sampled_from([Span(0, 0), Span(3, 9)]),
    st.booleans(),
)
SECTIONS = st.sampled_from(["layers", "skills", "mcp", "tools", "additional", "subagent", "environment"])
LAYERS = st.sampled_from([None, "defaults", "local"])
RUNS = st.builds(Part, SECTIONS, LAYERS, st.sampled_from("AB"), st.lists(PIECES, max_size=4))


@pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
@given(runs=st.lists(RUNS, max_size=8))
def test_fragments_and_parts_sum_to_the_prompt(counter: TokenCounter, runs: list[Part]) -> None:
    prompt = tiled(runs)
    tokens = fragment_tokens(prompt, counter)
    assert all(count >= 0 for count in tokens)
    assert sum(tokens) == sum(tokens_by_part(prompt, counter).values()) == counter.count(prompt.text)


@pytest.mark.parametrize("counter", COUNTERS[:3], ids=lambda counter: counter.name)
@given(before=st.text("ab #.", max_size=60), text=st.text("ab #\n.é中", min_size=1, max_size=200))
def test_a_file_costs_the_same_wherever_it_stands(counter: TokenCounter, before: str, text: str) -> None:
    """For estimates, too: the rest of rounding goes to the text of no layer."""

    def cost(front: str) -> int:
        pieces = [Part("layers", None, "Front", [Piece(f"{front}\n\n")])]
        prompt = tiled([*pieces, Part("layers", "local", "Project", [Piece(f"x{text}", "/a/NEXUS.md")])])
        return sum(
            count
            for one, count in zip(prompt.fragments, fragment_tokens(prompt, counter), strict=True)
            if one.layer
        )

    assert cost(before) == cost("")


def test_rows_of_one_file_are_rounded_once() -> None:
    """Three fragments of 1.18 tokens are 3 tokens of one text; the rest belongs to no layer."""
    pieces = [Piece("a", "/a/NEXUS.md"), Piece(".", "/a/b.md"), Piece("b", "/a/NEXUS.md")]
    fragments = [Fragment("environment", None, "Environment", Span(0, 2), None, Span(0, 0))]
    for at, piece in enumerate(pieces):
        fragments.append(Fragment("layers", "local", "P", Span(at + 2, at + 3), piece.path, Span(at, at + 1)))
    prompt = Prompt("x\na.b", tuple(fragments))
    counter = SimpleTokenCounter()  # 4 characters a token: 5 of them are 2
    assert fragment_tokens(prompt, counter) == (2, 0, 0, 0)
    assert row_key(fragments[1]) == row_key(fragments[3]) != row_key(fragments[2])
