"""What each heading and import of an instruction file costs: lenses by line, and that their figures agree."""

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nexus_context.config.picked_model import ModelChoice
from nexus_context.conversation.times import local_time
from nexus_context.folder.prompt.file_parts import PlacedFile, Share, counted_shares, placed, shares
from nexus_context.folder.prompt.token_attribution import tokens_by_path
from nexus_context.folder.request_prompt import for_choice
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import ScaledCounter, SimpleTokenCounter, TiktokenCounter, TokenCounter
from nexus_context.turn.models import model_of
from nexus_daemon.api import context
from nexus_daemon.features.code_lens import code_lenses, tokens_text
from nexus_daemon.lsp.convert import Locator, path_to_uri
from support.fixture import Fixture, write_fixture
from support.folders import load_folder

NOTHING = "it is empty, or the prompt has all of it through another file"
CURSOR = "it is an instruction file of Cursor"
FIRST, IMPORT = "NEXUS.md, AGENTS.md, CLAUDE.md", "Write @CLAUDE.md in AGENTS.md to read it, too"
BELOW = "it is for packages/api"
SKILL = "//- /a/.nexus3/skills/dive/SKILL.md\n---\nname: dive\ndescription: Dives.\n---\n# How$0\nDown.\n"
# a request may take 2,000 of the 4,000: the rest is for the answer
MODEL = '//- /a/.nexus3/config.json\n{"provider": {"model": "MODEL"}, "context": {"max_tokens": 4000}MORE}\n'


def lenses(fixture: Fixture, encoding: str = "utf-16") -> list[tuple[str, str]]:
    """Place and title of the lenses of the file with the cursor; the tokens of all of it as N."""
    snapshot = load_folder(fixture, "/a")
    path = fixture.cursor_path or ""
    found = lenses_of(snapshot, path, encoding)
    told = [(place(one["range"]), one["command"]["title"]) for one in found]
    tokens, imported = tokens_of(snapshot, path)
    if told and tokens is not None:  # they depend on the length of the file's path
        counter = model_of(snapshot, None)[1]
        first, rest = told[0][1].split(" · ", 1)
        assert first == "Nexus: " + tokens_text(tokens + imported, counter) + (
            f", {imported} of them imported" if imported else ""
        )
        percent, of = rest.split(" of ", 1)
        assert percent == f"{(tokens + imported) / 20:.1f} %"
        told[0] = (told[0][0], f"N{f', {imported} imported' if imported else ''} · P of {of}")
    return told


def lenses_of(snapshot: Snapshot, path: str, encoding: str) -> list[Any]:
    found: list[Any] = msgspec.to_builtins(code_lenses(snapshot, path, encoding, folder="file:///a"))
    return found


def counted(fixture: Fixture, more: str = "") -> list[tuple[str, str | None]]:
    """The place of each lens of the file with the cursor, and the prompt's text that it counts."""
    snapshot = load_folder(fixture, "/a")
    path = fixture.cursor_path or ""
    lenses: list[tuple[str, str | None]] = []
    for one in lenses_of(snapshot, path, "utf-32"):
        assert one["command"]["command"] == "nexus.showInContext"
        [target] = one["command"]["arguments"]
        assert target["workspaceFolder"] == "file:///a"
        assert target["source"] == {"uri": path_to_uri(path), "range": one["range"]}
        span = target.get("prompt")
        lenses.append((place(one["range"]), None if span is None else cut(snapshot.prompt.text, span)))
    return lenses


def cut(text: str, where: dict[str, dict[str, int]]) -> str:
    """A range of a text, in characters."""
    starts = [0, *(at + 1 for at, one in enumerate(text) if one == "\n")]
    begin, end = (starts[where[key]["line"]] + where[key]["character"] for key in ("start", "end"))
    return text[begin:end]


def tokens_of(snapshot: Snapshot, path: str) -> tuple[int | None, int]:
    """What `nexus/context/layers` says of a file, and of what it imports."""
    layers = context.build_layers(snapshot, Locator(snapshot.layers, "utf-8"), local_time()).layers
    uri = Locator(snapshot.layers, "utf-8").uri(path)
    file = next((file for layer in layers for file in layer.files if file.uri == uri), None)
    if file is None:
        return None, 0
    return file.tokens, sum(one.tokens or 0 for one in file.imports or ())


def place(where: dict[str, dict[str, int]]) -> str:
    start, end = where["start"], where["end"]
    return f"{start['line']}:{start['character']}-{end['character']}"


def check(
    root: Path,
    text: str,
    expected: list[tuple[str, str]],
    *,
    encoding: str = "utf-16",
    model: str = "gpt-4o",
    more: str = "",
) -> None:
    config = MODEL.replace("MODEL", model).replace("MORE", more)
    assert lenses(write_fixture(config + text, root), encoding) == expected


RULES = """\
//- /a/NEXUS.md
$0# Rules
Be brief.
## Style
@style.md
See @more.md there.
```
# no heading
@no-import.md
```
# End
Stop.
//- /a/style.md
No tabs. None at all.
//- /a/more.md
## Deep
More.
"""


def test_a_file_its_headings_and_its_imports(tmp_path: Path) -> None:
    expected = [
        ("0:0-0", "N, 12 imported · P of 2k · sent with every request"),
        ("0:0-7", "40 tokens"),
        ("2:0-8", "34 tokens"),
        ("3:0-9", "7 tokens imported"),
        ("4:4-12", "5 tokens imported"),
        ("9:0-5", "5 tokens"),
    ]
    check(tmp_path, RULES, expected)


def test_a_lens_leads_to_what_it_counts(tmp_path: Path) -> None:
    fixture = write_fixture(MODEL.replace("MORE", "") + RULES, tmp_path)
    style, more = "No tabs. None at all.", "## Deep\nMore."
    code = "```\n# no heading\n@no-import.md\n```\n"
    below = f"## Style\n{style}\nSee @more.md there.\n{more}\n{code}"
    rules = f"# Rules\nBe brief.\n{below}"
    frame = f"## Project Configuration\nSource: {tmp_path}/a/NEXUS.md\n\n"
    assert counted(fixture) == [
        ("0:0-0", f"{frame}{rules}# End\nStop."),
        ("0:0-7", rules),
        ("2:0-8", below),
        ("3:0-9", style),
        ("4:4-12", more),
        ("9:0-5", "# End\nStop."),
    ]


def test_what_is_not_in_the_prompt_is_nowhere_in_it(tmp_path: Path) -> None:
    """Of a skill the description is there, not yet its text."""
    fixture = write_fixture(MODEL.replace("MORE", "") + SKILL, tmp_path / "skill")
    [(_, described), heading] = counted(fixture)
    assert described is not None
    assert "Dives." in described
    assert heading == ("4:0-5", None)
    empty = write_fixture(MODEL.replace("MORE", "") + "//- /a/NEXUS.md\n$0  \n", tmp_path / "empty")
    assert counted(empty) == [("0:0-0", None)]


def test_of_an_agent_that_does_not_live_no_prompt_can_be_asked_for(tmp_path: Path) -> None:
    fixture = write_fixture(MODEL.replace("MORE", "") + "//- /a/NEXUS.md\n# A$0\n", tmp_path)
    snapshot, path = load_folder(fixture, "/a"), fixture.cursor_path or ""

    def targets(agent: str | None, asked: bool) -> list[dict[str, Any]]:
        made = code_lenses(snapshot, path, "utf-8", folder="file:///a", agent=agent, is_live=asked)
        return [one["command"]["arguments"][0] for one in made]

    assert [(one.get("agent"), "prompt" in one) for one in targets("zoe", True)] == [("zoe", True)] * 2
    assert [(one.get("agent"), "prompt" in one) for one in targets(None, False)] == [(None, False)] * 2


def test_line_ends_do_not_matter(tmp_path: Path) -> None:
    """Those of the first file of a fixture end its path, too: here they are in the text only."""
    unix = write_fixture(MODEL.replace("MODEL", "gpt-4o").replace("MORE", "") + RULES, tmp_path)
    before = lenses(unix)
    path = Path(unix.cursor_path or "")
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert lenses(unix) == before


@pytest.mark.parametrize(("encoding", "start"), [("utf-8", 5), ("utf-16", 3), ("utf-32", 2)])
def test_places_are_those_of_the_editor(tmp_path: Path, encoding: str, start: int) -> None:
    text = "//- /a/NEXUS.md\n😀 @x.md is it.$0\n//- /a/x.md\nX.\n"
    top = ("0:0-0", "N, 2 imported · P of 2k · sent with every request")
    check(tmp_path, text, [top, (f"0:{start}-{start + 5}", "2 tokens imported")], encoding=encoding)


@pytest.mark.parametrize("longer", range(12))
def test_an_estimate_says_so_and_is_the_same_wherever_the_file_lies(tmp_path: Path, longer: int) -> None:
    """The prompt has the file's path before its text: one more token there changes no heading's figure."""
    expected = [("0:0-0", "N · P of 2k · sent with every request"), ("0:0-3", "≈ 5 tokens")]
    text = "//- /a/NEXUS.md\n# A$0\nB.\n"
    check(tmp_path / ("d" + " 7" * longer), text, expected, model="claude-sonnet-4-5")


def test_an_imported_file_has_lenses_of_its_own(tmp_path: Path) -> None:
    text = """\
//- /a/NEXUS.md
# Above
@one.md
# Below
//- /a/one.md
# One$0
@two.md
## Last
1.
//- /a/two.md
2.
"""
    snapshot = load_folder(write_fixture(MODEL.replace("MORE", "") + text, tmp_path), "/a")
    path = str(tmp_path / "a" / "one.md")
    found = lenses_of(snapshot, path, "utf-16")
    assert found[0]["command"]["title"].endswith(" sent with every request")
    assert [one["command"]["title"].split()[1:] for one in found[1:]] == [
        ["10", "tokens"],
        ["2", "tokens", "imported"],
        ["5", "tokens"],
    ]


@pytest.mark.parametrize(
    ("text", "more", "expected"),
    [
        (
            SKILL,
            "",
            [
                ("0:0-0", "N · P of 2k · sent with every request · 5 tokens when it is activated"),
                ("4:0-5", "5 tokens"),
            ],
        ),
        (
            "//- /a/NEXUS.md\n$0  \n",
            "",
            [
                (
                    "0:0-0",
                    f"Nexus: 0 tokens · not sent: {NOTHING}",
                )
            ],
        ),
        (
            "//- /a/AGENTS.md\nx\n//- /a/.cursorrules\nNo default exports.$0\n",
            "",
            [("0:0-0", f"Nexus does not send it: {CURSOR}")],
        ),
        ("//- /a/packages/api/AGENTS.md\n# API$0\n", "", [("0:0-0", f"Nexus does not send it: {BELOW}")]),
        (
            "//- /a/packages/api/.claude/CLAUDE.md\n# API$0\n",
            "",
            [("0:0-0", f"Nexus does not send it: {BELOW}")],
        ),
        ("//- /a/packages/api/README.md\n# API$0\n", "", []),
        ("//- /a/other.txt\n# Not ours$0\n", "", []),
        ("//- /a/.nexus3/mcp.json\n{}$0\n", "", []),
    ],
)
def test_skills_and_what_is_not_sent(
    tmp_path: Path, text: str, more: str, expected: list[tuple[str, str]]
) -> None:
    check(tmp_path, text, expected, more=more)


@pytest.mark.parametrize(
    ("text", "title", "tooltip"),
    [
        ("//- /a/AGENTS.md\n$0\n", "", None),
        (
            "//- /a/AGENTS.md\nx\n//- /a/.cursorrules\nNo default exports.$0\n",
            CURSOR,
            f"{CURSOR}. Move its text to a file that is read, such as AGENTS.md",
        ),
        (
            "//- /a/AGENTS.md\nx\n//- /a/CLAUDE.md\ny$0\n",
            "it has no effect beside AGENTS.md",
            f"it has no effect beside AGENTS.md: of {FIRST} the first that exists is read. {IMPORT}",
        ),
        (
            "//- /a/packages/api/AGENTS.md\n# API$0\n",
            BELOW,
            f"{BELOW}; an agent or a window of that folder reads it",
        ),
    ],
)
def test_the_cause_is_in_the_title_and_the_advice_in_the_tooltip(
    tmp_path: Path, text: str, title: str, tooltip: str | None
) -> None:
    fixture = write_fixture(MODEL.replace("MORE", "") + text, tmp_path)
    command = lenses_of(load_folder(fixture, "/a"), fixture.cursor_path or "", "utf-16")[0]["command"]
    assert command["title"].endswith(
        (f"not sent: {title or NOTHING}", f"Nexus does not send it: {title or NOTHING}")
    )
    assert command.get("tooltip") == (None if tooltip is None else f"Nexus does not send it: {tooltip}")


@pytest.mark.parametrize(
    ("config", "choice", "tooltip"),
    [
        ("{}", None, "The window is a guess: no model is set."),
        ('{"provider": {"model": "none"}}', None, "The window is a guess: none is not a known model."),
        (
            '{"provider": {"model": "gpt-4o"}}',
            None,
            "The window is that of gpt-4o, the model of the settings.",
        ),
        (
            '{"provider": {"model": "gpt-4o"}, "context": {"max_tokens": 9000}}',
            None,
            "The window is that of gpt-4o, the model of the settings, at most 9,000 by `context.max_tokens`.",
        ),
        (
            '{"provider": {"model": "gpt-4o"}}',
            ModelChoice("claude-sonnet-5", 1_000_000),
            "The window is that of claude-sonnet-5, which is picked here.",
        ),
    ],
)
def test_the_tooltip_says_whose_window_it_is(
    tmp_path: Path, config: str, choice: ModelChoice | None, tooltip: str
) -> None:
    text = f"//- /a/.nexus3/config.json\n{config}\n//- /a/AGENTS.md\nUse tabs.$0\n"
    fixture = write_fixture(text, tmp_path)
    snapshot = for_choice(load_folder(fixture, "/a"), choice)
    command = lenses_of(snapshot, fixture.cursor_path or "", "utf-16")[0]["command"]
    assert command["tooltip"] == f"{tooltip} A request may take it without the reserve."


WORDS = st.text("ab \n#@`-é😀\r", max_size=40)


O200K = TiktokenCounter("o200k_base")
COUNTERS = O200K, ScaledCounter(O200K, 1.18), SimpleTokenCounter()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["# A", "## B", "### C", "@x.md", "see @y.md", "```", ""]), WORDS)))
def test_parts_lie_within_each_other_and_within_the_file(lines: list[tuple[str, str]]) -> None:
    """However broken the text: siblings do not overlap, and no part has more tokens than what it is in."""
    text = "".join(f"{line}\n{words}\n" for line, words in lines)
    with TemporaryDirectory() as made:
        root = Path(made)
        write_fixture(MODEL.replace("MORE", "") + "//- /a/x.md\nX x.\n//- /a/y.md\n# Y\ny\n", root)
        (root / "a" / "NEXUS.md").write_bytes(text.encode())
        snapshot = load_folder(Fixture(str(root), {}), "/a")
        found = lenses_of(snapshot, str(root / "a" / "NEXUS.md"), "utf-32")
        assert found or not text.strip()
        prompt = snapshot.prompt
        where = placed(prompt, snapshot.contents, str(root / "a" / "NEXUS.md"), snapshot.layers.texts)
        if where is None:
            assert not text.strip()
            return
        parts = shares(where, str(root / "a" / "NEXUS.md"), text)
        for counter in COUNTERS:
            check_sums(snapshot, where, str(root / "a" / "NEXUS.md"), text, counter)
    brought = {"@x.md": "X x.", "@y.md": "# Y\ny"}
    for part in parts:
        written, sent = (
            text[part.source.start : part.source.end],
            prompt.text[part.span.start : part.span.end],
        )
        assert sent == brought[written] if part.kind == "import" else sent.startswith(written.strip())
    headings = [part.span for part in parts if part.kind == "heading"]
    for one, other in pairwise(sorted(headings, key=lambda span: (span.start, -span.end))):
        assert other.start >= one.end or other.end <= one.end


def check_sums(snapshot: Snapshot, where: PlacedFile, path: str, text: str, counter: TokenCounter) -> None:
    """A file has at least the tokens of its outermost parts together, a part those of the parts in it."""
    by_path = tokens_by_path(snapshot.prompt, counter)
    whole = by_path[path] + sum(by_path.get(each, 0) for each in where.through)
    open_parts: list[tuple[Share | None, int]] = [(None, whole)]  # tokens that are left for parts within
    counted = counted_shares(snapshot.prompt, where, path, text, counter=counter, most=500)
    for share, tokens in sorted(counted, key=lambda one: (one[0].span.start, -one[0].span.end)):
        while (outer := open_parts[-1][0]) is not None and share.span.start >= outer.span.end:
            open_parts.pop()
        outer, left = open_parts[-1]
        assert 0 <= tokens <= left
        open_parts[-1] = outer, left - tokens
        open_parts.append((share, tokens))


def test_a_file_for_some_files_says_for_which(tmp_path: Path) -> None:
    settings = '{"context": {"instruction_files": [".github/instructions/*.instructions.md"]}}'
    path = "/home/a/.github/instructions/py.instructions.md"
    text = (
        f"//- /home/a/.nexus3/config.json\n{settings}\n//- {path}\n---\napplyTo: '**/*.py'\n---\nType all.\n"
    )
    fixture = write_fixture(text, tmp_path)
    (lens,) = code_lenses(
        load_folder(fixture, "/home/a"), fixture.path(path), "utf-16", folder="file:///home/a"
    )
    title = "sent with turns about files that match **/*.py"
    assert lens["command"]["title"] == f"Nexus: ≈ 3 tokens · {title}"
