"""Full-text search: what a query means, and that it finds exactly that, best first."""

import re
import unicodedata
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from nexus_context.conversation.message import Message, ToolCall
from nexus_context.ledger import open_ledger
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.part_index import fill_anew
from nexus_context.ledger.search_query import MOST_TERMS, expression
from nexus_context.ledger.store import Ledger
from support.ledgers import make_old, turn_of

HERE, THERE = "/work/here", "/work/there"
SAID = {
    1: "The disk is full.",
    2: "full steam ahead: the disk spins",
    3: "Café crème with naïve façades",
    4: "read_file failed: src/a.py not found",
    5: "run it with --force, error -1",
    6: "workers work, workshops too",
    7: "中文搜索 works by beginnings",
}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = open_ledger(str(tmp_path / "ledger.db"))
    for text in SAID.values():
        append(made, "main", Message("user", text))
    return made


def append(ledger: Ledger, session: str, *messages: Message, workspace: str = HERE) -> str:
    return ledger.append(workspace, session, turn_of(*messages)).turn


def check(ledger: Ledger, query: str, expected: set[int]) -> None:
    assert {hit.seq for hit in ledger.pages.search(query)} == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("disk full", {1, 2}),
        ("FULL Disk", {1, 2}),
        ('"disk is full"', {1}),
        ('"full disk"', set()),
        ('"disk is', {1}),
        ("disk -is", {2}),
        ('disk -"is full"', {2}),
        ("work*", {6, 7}),
        ("work", {6}),
        ("wor* -workers", {7}),
        ('"disk sp"*', {2}),
        ("cafe naive", {3}),
        ("façade*", {3}),
        ("read_file", {4}),
        ("file read", {4}),
        ('"file read"', set()),
        ("a.py", {4}),
        ("src/a.py failed", {4}),
        ("--force", {5}),
        ("error:", {5}),
        ("中文*", {7}),
        ("w*", set()),  # a beginning of one letter is a word
        ("disk AND full", set()),  # and, or, not, near are words
        ("disk — full !", {1, 2}),
        ("said:disk", set()),
        ("", set()),
        ("   ", set()),
        ("-disk", set()),
        ('"" -- * - -"" ()', set()),
    ],
)
def test_a_query_means(ledger: Ledger, query: str, expected: set[int]) -> None:
    check(ledger, query, expected)


@given(st.one_of(st.text(), st.text(alphabet='"*-():^+{}[]\\ \0\ud800aAND', max_size=40)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_is_a_syntax_error(ledger: Ledger, query: str) -> None:
    for hit in ledger.pages.search(query):
        assert hit.seq in SAID


@given(st.lists(st.sampled_from(["disk", "full", "the", "work", "café", "zebra"]), min_size=1, max_size=4))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_all_words_must_occur(ledger: Ledger, words: list[str]) -> None:
    expected = {seq for seq, text in SAID.items() if set(words) <= set(re.findall(r"\w+", text.casefold()))}
    check(ledger, " ".join(words), expected)


def test_only_so_much_of_a_query_is_regarded() -> None:
    assert (expression(" ".join(f"word{n}" for n in range(500))) or "").count("word") == MOST_TERMS
    assert expression("word word work* word work*") == '"word" AND "work"*'
    assert expression("aa* bbb* -ccc* ddd* eee* aa") == '("aa" AND "bbb"* AND "ddd"* AND "eee"*) NOT ("ccc"*)'
    assert expression('"' + "a " * 100_000) is not None


def test_a_hit_says_where_it_is_and_marks_what_matched(ledger: Ledger) -> None:
    call = ToolCall("c1", "write_file", {"path": "notes.md", "text": "zebra crossing"})
    turn = append(
        ledger, "tools", Message("user", "go"), Message("assistant", "Well.", (call,)), workspace=THERE
    )
    (hit,) = ledger.pages.search("zebra")
    assert (hit.workspace, hit.session, hit.turn, hit.seq, hit.position, hit.role) == (
        THERE, "tools", turn, 1, 1, "assistant",
    )  # fmt: skip
    assert "«zebra» crossing" in hit.snippet
    assert [one.position for one in ledger.pages.search("write_file")] == [1]


def test_best_is_first_and_of_equal_ones_the_newest(ledger: Ledger) -> None:
    append(ledger, "main", Message("user", "disk " * 5))
    assert next(hit.seq for hit in ledger.pages.search("disk")) == 8
    for _ in range(3):
        append(ledger, "same", Message("user", "zebra"))
    assert [hit.seq for hit in ledger.pages.search("zebra")] == [3, 2, 1]
    assert [hit.seq for hit in ledger.pages.search("zebra", limit=2)] == [3, 2]
    assert ledger.pages.search("zebra", limit=0) == []


def test_searched_is_a_workspace_or_a_session(ledger: Ledger) -> None:
    append(ledger, "main", Message("user", "disk there"), workspace=THERE)
    append(ledger, "other", Message("user", "disk other"))

    def found(workspace: str | None, session: str | None) -> set[tuple[str, str]]:
        hits = ledger.pages.search("disk", workspace=workspace, session=session)
        return {(hit.workspace, hit.session) for hit in hits}

    everything = {(HERE, "main"), (HERE, "other"), (THERE, "main")}
    assert found(None, None) == everything
    assert found(HERE, None) == {(HERE, "main"), (HERE, "other")}
    assert found(HERE, "other") == {(HERE, "other")}
    assert found(HERE, "nobody") == found("/nowhere", None) == set()


def test_a_fork_has_what_it_shares_and_nothing_that_came_after(ledger: Ledger) -> None:
    turn = append(ledger, "first", Message("user", "zebra one"))
    append(ledger, "first", Message("user", "zebra two"))
    ledger.fork(HERE, "first", "second", turn=turn)
    append(ledger, "second", Message("user", "zebra three"))

    def found(session: str | None) -> set[tuple[str, str]]:
        return {
            (hit.session, hit.snippet)
            for hit in ledger.pages.search("zebra", workspace=HERE, session=session)
        }

    assert found("second") == {("second", "«zebra» one"), ("second", "«zebra» three")}
    assert found("first") == {("first", "«zebra» one"), ("first", "«zebra» two")}
    assert found(None) == {("first", "«zebra» one"), ("first", "«zebra» two"), ("second", "«zebra» three")}


def test_cleared_is_found_and_deleted_is_not(ledger: Ledger) -> None:
    append(ledger, "gone", Message("user", "zebra one"))
    ledger.clear(HERE, "gone")
    append(ledger, "gone", Message("user", "zebra two"))
    assert len(ledger.pages.search("zebra", workspace=HERE, session="gone")) == 2
    ledger.delete(HERE, "gone")
    assert ledger.pages.search("zebra") == []


def test_only_the_newest_matches_of_a_common_word_are_ranked(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nexus_context.ledger.search.RANKED", 3)
    append(ledger, "many", Message("user", "zebra zebra zebra"))
    for _ in range(3):
        append(ledger, "many", Message("user", "a zebra among other things"))
    assert [hit.seq for hit in ledger.pages.search("zebra")] == [4, 3, 2]


def test_a_search_that_takes_too_long_is_ended(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [Message("user", " ".join(f"th{n * 20 + k}" for k in range(20))) for n in range(500)]
    append(ledger, "long", *words)
    monkeypatch.setattr("nexus_context.ledger.search.DEADLINE", 0)
    with pytest.raises(LedgerError, match="longer or rarer words") as caught:
        ledger.pages.search("th*")
    assert caught.value.code == "search-too-broad"
    monkeypatch.undo()
    assert len(ledger.pages.search("th*", limit=3)) == 3


def test_a_fork_of_forks_of_forks_is_searched(ledger: Ledger) -> None:
    append(ledger, "0", Message("user", "zebra 0"))
    for n in range(1, 1_100):
        ledger.fork(HERE, str(n - 1), str(n))
        append(ledger, str(n), Message("user", f"{'zebra' if n % 100 == 0 else 'horse'} {n}"))
    append(ledger, "500", Message("user", "zebra elsewhere"))
    hits = ledger.pages.search("zebra", workspace=HERE, session="1099")
    assert sorted(hit.position for hit in hits) == list(range(0, 1_100, 100))


# ---------------------------------------------------------------- scripts without spaces between words

UNSPACED = {
    1: "漢字テスト",
    2: "Pythonで書く。テストも書く",
    3: "iPhoneを買う disk",
    4: "disk full",
    5: "สวัสดีชาวโลก ครับ",
    6: "학교에서 만나요",
    7: "ﾃｽﾄ半角 ＡＢＣ",
    8: "中文搜索 works by beginnings",
    9: "カ\u3099ラス",  # が in two parts
}


@pytest.fixture
def unspaced(tmp_path: Path) -> Ledger:
    made = open_ledger(str(tmp_path / "ledger.db"))
    for text in UNSPACED.values():
        append(made, "main", Message("user", text))
    return made


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("漢字", {1}),
        ("字テ", {1}),
        ("字", {1}),
        ("ト", {1, 2, 7}),
        ("テスト", {1, 2, 7}),
        ("テスト -漢字", {2, 7}),
        ("テスト 書く", {2}),
        ('"テストも書く"', {2}),
        ("く。テ", {2}),
        ("く テ", {2}),
        ("くテ", set()),
        ("python", {2}),
        ("Pythonで", {2}),
        ("thon", set()),
        ("iphone disk", {3}),
        ("disk", {3, 4}),
        ("disk -買う", {4}),
        ("ชาวโลก", {5}),
        ("ชาว", {5}),
        ("학교", {6}),
        ("abc", {7}),
        ("ﾃｽﾄ", {1, 2, 7}),
        ("搜索 begin*", {8}),
        ("文搜*", {8}),
        ("ガラス", {9}),
        ("無", set()),
    ],
)
def test_a_part_of_a_run_is_found(unspaced: Ledger, query: str, expected: set[int]) -> None:
    check(unspaced, query, expected)


def test_what_matched_is_marked_in_a_part_of_a_long_text(unspaced: Ledger) -> None:
    append(unspaced, "long", Message("user", "前" * 500 + "猫がいる" + "後" * 500))
    (hit,) = unspaced.pages.search("猫")
    assert "«猫»がいる" in hit.snippet
    assert hit.snippet.startswith("…") and hit.snippet.endswith("…") and len(hit.snippet) < 150


RUN = st.text(
    alphabet="漢字テストの検索文書カナひらがな学校한국어ไทยกขคລາວမြန်မာខ្មែរ", min_size=1, max_size=30
)


@given(RUN, st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_part_of_a_run_is_found(unspaced: Ledger, run: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    part = run[start : data.draw(st.integers(start + 1, len(run)))]
    assume(any(unicodedata.category(char)[0] == "L" for char in part))
    seq = int(append(unspaced, "runs", Message("user", f"before {run}, after")).rpartition("-")[2])
    hits = unspaced.pages.search(f'"{part}"', session="runs", limit=1_000)
    assert seq in {hit.seq for hit in hits}


def test_parts_of_what_was_deleted_are_not_in_the_files(tmp_path: Path) -> None:
    with closing(open_ledger(str(tmp_path / "ledger.db"))) as ledger:
        append(ledger, "main", Message("user", "秘密の言葉"))
        append(ledger, "other", Message("user", "別の話"))
        ledger.delete(HERE, "main")
        assert ledger.pages.search("秘密") == []
        assert len(ledger.pages.search("別の")) == 1
        contents = [file.read_bytes() for file in tmp_path.iterdir()]
    assert not any("秘密".encode() in data or "密の".encode() in data for data in contents)


def test_a_ledger_of_the_version_before_is_indexed_step_by_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(str(path))) as ledger:
        for session in ("one", "two"):
            append(ledger, session, *(Message("user", f"漢字テスト plain{n}") for n in range(10)))
    make_old(path, 3)
    monkeypatch.setattr("nexus_context.ledger.part_index.STEP", 6)
    monkeypatch.setattr("nexus_context.ledger.opening.INDEX", 0.0)
    monkeypatch.setattr("nexus_context.ledger.sqlite_tables.INDEX", 0.0)
    with closing(open_ledger(str(path))) as ledger:  # one step
        append(ledger, "one", Message("user", "字テ"))
        assert len(ledger.pages.search("plain1")) == 2  # and one with each search
        assert len(ledger.pages.search("字テ")) == 19
        ledger.delete(HERE, "two")
        assert len(ledger.pages.search("字テ")) == 11
        assert ledger.upkeep.verify().sound


def test_a_step_of_indexing_is_bounded_by_what_it_indexes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(str(path))) as ledger:
        append(ledger, "main", *(Message("tool", "漢字" * 500) for _ in range(10)))
    make_old(path, 3)
    monkeypatch.setattr("nexus_context.ledger.part_index.LONGEST", 2_000)
    monkeypatch.setattr("nexus_context.ledger.opening.INDEX", 0.0)
    monkeypatch.setattr("nexus_context.ledger.sqlite_tables.INDEX", 0.0)
    with closing(open_ledger(str(path))) as ledger:
        assert [len(ledger.pages.search("字漢")) for _ in range(10)] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 10]


def test_a_damaged_index_of_parts_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with closing(open_ledger(str(path))) as ledger:
        append(ledger, "main", Message("user", "漢字テスト"))
        connection = apsw.Connection(str(path))
        connection.execute("UPDATE part_data SET block = x'ffffffffffff' WHERE id > 1")
        connection.close()
        with pytest.raises(LedgerError, match="damaged"):
            ledger.pages.search("漢字")
        assert "rebuilt" in str(ledger.notice)
        assert len(ledger.pages.search("漢字")) == 1


def test_a_message_whose_text_is_lost_ends_no_indexing(tmp_path: Path) -> None:
    """A page of before may hold a row without a text, which the column's constraint forbids."""
    path = tmp_path / "ledger.db"
    with closing(open_ledger(str(path))) as ledger:
        append(ledger, "main", *(Message("user", f"漢字{n}") for n in range(2)))
    connection = apsw.Connection(str(path))
    connection.execute(
        """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = replace(sql, 'said TEXT NOT NULL', 'said TEXT') WHERE name = 'message';
        PRAGMA writable_schema = RESET;
        UPDATE message SET said = NULL WHERE id = (SELECT min(id) FROM message);
        """
    )
    with closing(connection):
        fill_anew(connection)
        indexed = connection.execute("SELECT rowid FROM part WHERE part MATCH '漢字'").fetchall()
        assert indexed == connection.execute("SELECT max(id) FROM message").fetchall()


@pytest.mark.parametrize(
    ("name", "prefix", "workspace", "is_found"),
    [
        ("mcp__git__log", "mcp__git__", HERE, True),
        ("mcp__git__log", "mcp__git__", THERE, False),
        ("mcp__git_hub__log", "mcp__git__", HERE, False),  # the same words, another name
        ("x_mcp__git__log", "mcp__git__", HERE, False),
        ('mcp__a"b__log', "mcp__a_b__", HERE, False),
    ],
)
def test_when_a_tool_was_called_last(
    ledger: Ledger, name: str, prefix: str, workspace: str, is_found: bool
) -> None:
    append(ledger, "main", Message("user", f"Call {prefix}log."))
    assert ledger.pages.last_call(workspace, prefix) is None  # words are no call
    append(ledger, "main", Message("assistant", "Yes.", tool_calls=(ToolCall("1", name, {}),)))
    created = ledger.pages.last_call(workspace, prefix)
    assert (created is not None) == is_found
    assert created is None or created[:2] == "20"
