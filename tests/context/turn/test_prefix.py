"""What a request shares with the one before it, and what broke the rest: which file, at what price."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.history import History
from nexus_context.conversation.message import Message
from nexus_context.conversation.truncation import STRATEGIES, Strategy
from nexus_context.conversation.view import View
from nexus_context.conversation.window import Budget, Policy, Window
from nexus_context.folder.prompt.render import Prompt
from nexus_context.folder.prompt.token_attribution import fragment_tokens
from nexus_context.tokens import Lifetime, get_model_limits
from nexus_context.turn.prefix import CacheBreak, Prefix, compare
from support.fixture import write_fixture
from support.folders import load_folder
from support.histories import SOUND, Letters, conversation, histories

LETTERS = Letters()
MODEL = get_model_limits("claude-sonnet-4-5")
EMPTY = Prompt("", ())
FILES = """
//- /home/.nexus3/NEXUS.md
Be brief.
//- /home/a/.nexus3/NEXUS.md
Use tabs.
"""


def view_of(text: str, room: int = 10_000) -> View:
    return Window(History(conversation(text)), LETTERS, Policy(identifier_tokens=0)).fit(Budget(room, 0))


def prefix(
    view: View | None = None, *, tools: str = "", prompt: Prompt = EMPTY, model: str = "claude-sonnet-4-5"
) -> Prefix:
    """A request with tools of 10 tokens each."""
    return Prefix(
        get_model_limits(model),
        tuple(name.encode() for name in tools.split()),
        tuple(name.partition(":")[0] for name in tools.split()),
        (10,) * len(tools.split()),
        prompt,
        fragment_tokens(prompt, LETTERS),
        view or VIEW,
    )


VIEW = view_of("u1 a1")


def check(before: Prefix, now: Prefix, reused: int, category: str = "", label: str = "") -> CacheBreak | None:
    """How much is reused, and what is named as the break."""
    report = compare(before, now, LETTERS)
    broke = report.broke
    found = (broke.category, broke.label) if broke else ("", "")
    assert (report.reused, *found) == (reused, category, label)
    assert report.total == now.tokens
    if broke is not None:
        assert broke.tokens == max(before.tokens - reused, 0)
    return broke


def test_the_first_request_reuses_nothing() -> None:
    assert compare(None, prefix(), LETTERS) == (report := compare(None, prefix(), LETTERS))
    assert (report.reused, report.total, report.broke) == (0, 20, None)


def test_what_did_not_change_is_reused() -> None:
    check(prefix(tools="a b"), prefix(tools="a b"), 40)


@pytest.mark.parametrize(
    ("before", "now", "reused", "label"),
    [
        ("a b", "a b:changed", 10, "b"),
        ("a b", "a b c", 20, "c"),
        ("a b", "a", 10, "b"),
        ("b", "a b", 0, "a"),
    ],
)
def test_tools_come_first(before: str, now: str, reused: int, label: str) -> None:
    check(prefix(tools=before), prefix(tools=now), reused, "tools", label)


def test_another_model_has_another_cache() -> None:
    check(prefix(tools="a"), prefix(tools="a", model="gpt-5"), 0, "model", "claude-sonnet-4-5 → gpt-5")
    check(prefix(model=""), prefix(model="gpt-5"), 0, "model", "no model → gpt-5")


# ---------------------------------------------------------------- the system prompt


def prompts(root: Path, before: str, now: str) -> tuple[Prompt, Prompt]:
    """The system prompt of /home/a with the files of one fixture, and with those of another."""
    made = []
    for text in (before, now):
        fixture = write_fixture(text, root)
        made.append(load_folder(fixture, "/home/a").prompt)
        for path in fixture.files:
            Path(path).unlink()
    return made[0], made[1]


@pytest.mark.parametrize(
    ("now", "title", "file"),
    [
        (FILES.replace("tabs", "spaces"), "Project Configuration", "/home/a/.nexus3/NEXUS.md"),
        (FILES.replace("brief", "kind"), "Global Configuration", "/home/.nexus3/NEXUS.md"),
        (FILES.partition("//- /home/a")[0], "Project Configuration", "/home/a/.nexus3/NEXUS.md"),
    ],
)
def test_the_file_that_changed_or_went_is_named(tmp_path: Path, now: str, title: str, file: str) -> None:
    one, other = prompts(tmp_path, FILES, now)
    for before, after in ((one, other), (other, one)):  # and back
        report = compare(prefix(prompt=before), prefix(prompt=after), LETTERS)
        assert report.broke is not None
        assert (report.broke.category, report.broke.label) == ("system", title)
        assert (report.broke.path or "").endswith(file)
        assert report.broke.span is not None
        assert 0 <= report.reused < LETTERS.count(after.text)


def test_what_stands_before_the_change_is_reused(tmp_path: Path) -> None:
    before, now = prompts(tmp_path, FILES, FILES.replace("tabs", "spaces"))
    counts = fragment_tokens(now, LETTERS)
    local = next(at for at, one in enumerate(now.fragments) if one.layer == "local" and one.verbatim)
    report = compare(prefix(prompt=before), prefix(prompt=now), LETTERS)
    assert report.reused == sum(counts[:local])


# ---------------------------------------------------------------- the history


def grown(text: str, more: str, *, room: int = 10_000, after: int | None = None) -> tuple[View, View]:
    """A view, and a later one of the same conversation, perhaps with another budget."""
    history = History(conversation(text))
    window = Window(history, LETTERS, Policy(identifier_tokens=0, keep_recent_turns=1))
    before = window.fit(Budget(room, 0))
    history.extend(conversation(more))
    return before, window.fit(Budget(room if after is None else after, 0))


def test_a_conversation_that_grows_is_reused_whole() -> None:
    before, now = grown("u1 a1", "u2 a2")
    check(prefix(before, tools="a"), prefix(now, tools="a"), 30)
    before, now = grown("u1 a1 u2 c3", "r3:900 a4", room=300)  # only the new result is shortened
    assert now.shortened
    check(prefix(before), prefix(now), before.tokens - before.repair_tokens)


def test_a_cut_that_moves_keeps_what_is_pinned() -> None:
    before, now = grown("u1 a1 u2 a2", "u3 a3", room=50)
    check(prefix(before, tools="a"), prefix(now, tools="a"), 20, *MOVED)
    before, now = grown("u1:30 a1 u2 a2 u3", "a3", room=70)
    check(prefix(before), prefix(now), 0, "history", "the cut moved: 2 more messages are not sent")


MOVED = ("history", "the cut moved: 3 more messages are not sent")


def test_a_result_that_is_shortened_later() -> None:
    before, now = grown("u1 c2 r2:900", "", room=2_000, after=300)
    check(prefix(before), prefix(now), 27, "history", "a long tool result was shortened")


def test_another_history_is_compared_message_by_message() -> None:
    label = "the conversation was cleared, compacted or restored"
    before = prefix(view_of("u1 a1"), tools="a")
    check(before, prefix(view_of("u1 a1 u2"), tools="a"), 10 + VIEW.tokens)  # read again from a ledger
    check(before, prefix(view_of("u2 a1"), tools="a"), 10, "history", label)


@given(
    histories(SOUND),
    st.sampled_from(STRATEGIES),
    st.lists(st.sampled_from([100, 300, 900, 5_000]), min_size=1, max_size=4),
)
def test_what_is_said_to_be_reused_is_there_in_both(
    messages: list[Message], strategy: Strategy, rooms: list[int]
) -> None:
    history = History()
    window = Window(history, LETTERS, Policy(strategy))
    last = None
    for index, message in enumerate(messages):
        history.append(message)
        now = prefix(window.fit(Budget(rooms[index % len(rooms)], 0)))
        if last is not None:
            report = compare(last[0], now, LETTERS)
            common = 0
            for one, other in zip(last[1], now.view.messages(), strict=False):
                if one != other:
                    break
                common += LETTERS.count_messages([one])
            assert 0 <= report.reused <= common
            assert report.broke is not None or report.reused == last[0].tokens == common
        last = now, now.view.messages()


@pytest.mark.parametrize(
    ("write", "write_1h", "lifetime", "paid"),
    [
        (3.75, 6.0, "5m", 3.75),
        (3.75, 6.0, "1h", 6.0),
        (3.75, None, "1h", 3.75),
        (None, None, "5m", 3.0),
        (None, None, "1h", 3.0),
    ],
)
def test_the_price_of_a_break(
    write: float | None, write_1h: float | None, lifetime: Lifetime, paid: float
) -> None:
    prices = {"cached_input_price": 0.3, "cache_write_price": write, "cache_write_1h_price": write_1h}
    model = msgspec.structs.replace(MODEL, input_price=3.0, **prices)
    before = msgspec.structs.replace(prefix(tools="a b"), model=model)
    now = msgspec.structs.replace(prefix(tools="a c"), model=model, lifetime=lifetime)
    broke = check(before, now, 10, "tools", "c")
    assert broke is not None
    assert broke.cost == round(30 * (paid - 0.3) / 1_000_000, 6)
    unknown = check(prefix(model="who"), prefix(model="who", tools="a"), 0, "tools", "a")
    assert unknown is not None
    assert unknown.cost is None
