"""What is recovered from a damaged ledger."""

import random
import shutil
from pathlib import Path

import apsw
import pytest
from inline_snapshot import snapshot

from nexus_context.ledger.chain import ChainBreak
from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.salvage import Salvaged, SalvagedSession, salvage
from support.ledgers import FOLDER, append, compaction, history, ledger_in, make_old, turn

PAGE = 4096


def filled(path: Path) -> None:
    """A ledger with a bit of everything."""
    with ledger_in(path) as ledger:
        append(ledger, "u1 a1", context={"é": 1})
        ledger.compact(FOLDER, "main", compaction("s1", 1, (1, 2)))
        two = append(ledger, "u2 a2")
        ledger.compact(FOLDER, "main", compaction("s2", 3))
        ledger.undo(FOLDER, "main")
        ledger.fork(FOLDER, "main", "idea", turn=two.turn)
        append(ledger, "u3", "idea")
        append(ledger, "a3")
        append(ledger, "u" + "long" * 5_000, "long")
        append(ledger, "u8", "old")
        ledger.clear(FOLDER, "old")
        append(ledger, "u9", "old")
        ledger.messages.send(
            DirectMessage(id="d", workspace=FOLDER, source="a", target="b", content="hi", created=1.0)
        )


def came_over(broken: Path) -> tuple[Salvaged, dict[str, str]]:
    with ledger_in(broken.with_name("new.db")) as target:
        done = salvage(str(broken), target)
        return done, {one.name: history(target, one.name, one.workspace) for one in target.sessions()}


WHOLE = {
    "main": "s1 a1 u2 a2 a3",
    "idea": "s1 a1 u2 a2 u3",
    "long": "u" + "long" * 5_000,
    "old": "u9",
    "old (cleared)": "u8",
}


def test_of_a_sound_ledger_everything_comes_over(tmp_path: Path) -> None:
    filled(tmp_path / "ledger.db")
    before = (tmp_path / "ledger.db").read_bytes()
    done, found = came_over(tmp_path / "ledger.db")
    assert found == WHOLE
    assert [(each.session, each.name, each.turns) for each in done.sessions] == [
        ("idea", "idea", 4),
        ("main", "main", 6),
        ("long", "long", 1),
        ("old", "old", 1),
        ("old", "old (cleared)", 1),
    ]
    assert (done.direct, [each for each in done.sessions if each.lost or each.broken]) == (1, [])
    assert (tmp_path / "ledger.db").read_bytes() == before


def test_parameters_come_over_with_their_session(tmp_path: Path) -> None:
    filled(tmp_path / "ledger.db")
    cold, warm = {"temperature": 0}, {"temperature": 1, "thinking": {"level": "low"}}
    with ledger_in(tmp_path / "ledger.db") as ledger:
        ledger.create(FOLDER, "cold", parameters=cold)
        ledger.create(FOLDER, "warm", parameters=warm)
        append(ledger, "u1", "warm")
        ledger.clear(FOLDER, "warm")
        counters = [turn.counter for turn in ledger.turns(FOLDER, "main")]
    with ledger_in(tmp_path / "new.db") as target:
        salvage(str(tmp_path / "ledger.db"), target)
        stored = {one.name: one.parameters for one in target.sessions(FOLDER) if one.parameters}
        assert stored == {"cold": cold, "warm": warm, "warm (cleared)": warm}
        assert [turn.counter for turn in target.turns(FOLDER, "main")] == counters


def test_what_was_written_last_comes_over_too(tmp_path: Path) -> None:
    filled(tmp_path / "ledger.db")
    holder = apsw.Connection(str(tmp_path / "ledger.db"))
    holder.execute("SELECT * FROM session").fetchall()
    with ledger_in(tmp_path / "ledger.db") as ledger:
        append(ledger, "u10", "old")
    assert (tmp_path / "ledger.db-wal").stat().st_size
    assert came_over(tmp_path / "ledger.db")[1] == WHOLE | {"old": "u9 u10"}
    holder.close()


def test_a_name_that_is_taken_is_another(tmp_path: Path) -> None:
    filled(tmp_path / "ledger.db")
    for _ in range(3):
        _, found = came_over(tmp_path / "ledger.db")
    assert {name for name in found if name.startswith("main")} == {
        "main",
        "main (salvaged)",
        "main (salvaged 2)",
    }


def test_a_damaged_session_comes_over_within_the_ledger_in_use(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    filled(path)
    with ledger_in(path) as ledger:
        ledger.append("/elsewhere", "long", turn("u7"))
        append(ledger, "a5", "long")
        holder = apsw.Connection(str(path))
        holder.execute("UPDATE message SET tokens = 7 WHERE said LIKE 'ulong%'")
        holder.close()
        with pytest.raises(LedgerError) as caught:
            history(ledger, "long")
        assert str(caught.value).replace(str(path), "<ledger>") == snapshot(
            "The ledger <ledger> is damaged in the session 'long' (the message 0 is not what was "
            "written). Other sessions are not affected. In the folder of the damaged one, nexus "
            "sessions salvage <ledger> --session long copies what can be read of it to a new session."
        )
        done = salvage(str(path), ledger, only={(FOLDER, "long")})
        broken = ChainBreak(1, "the message 0 is not what was written")
        assert done.sessions == (SalvagedSession(FOLDER, "long", "long (salvaged)", 1, 1, broken),)
        assert history(ledger, "long (salvaged)") == "a5"
        assert {one.name for one in ledger.sessions(FOLDER)} == {*WHOLE, "long (salvaged)"} - {
            "old (cleared)"
        }
        assert [one.name for one in ledger.sessions("/elsewhere")] == ["long"]
        assert salvage(str(path), ledger, only={(FOLDER, "nobody")}) == Salvaged()


def test_a_turn_that_is_lost_takes_the_compactions_along(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    filled(path)
    changed(path, "UPDATE message SET tokens = 7 WHERE said = 'u2'")
    done, found = came_over(path)
    assert found == WHOLE | {"main": "u1 a1 a3", "idea": "u1 a1 u3"}
    assert [(each.session, each.turns, each.lost) for each in done.sessions if each.lost] == [
        ("idea", 2, 1),
        ("main", 2, 1),
    ]


def test_a_session_whose_turns_can_be_read_comes_over_and_its_break_is_told(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    filled(path)
    changed(path, "UPDATE turn SET created = 'x' WHERE id = 1 + (1 << 32)")
    done, found = came_over(path)
    assert found == WHOLE
    assert {each.session for each in done.sessions if each.broken} == {"main", "idea"}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE thread SET parent = 2, base_seq = 1 WHERE id = 1",  # a circle
        "UPDATE thread SET seq = 4000000000 WHERE id = 1",
    ],
)
def test_what_damage_makes_endless_ends(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "ledger.db"
    filled(path)
    changed(path, damage)
    found = came_over(path)[1]
    assert found.items() >= {"long": WHOLE["long"], "old": "u9"}.items()


def changed(path: Path, statement: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(statement)
    connection.close()


def test_a_ledger_of_an_earlier_version_comes_over(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    filled(path)
    make_old(path, 3)
    assert came_over(path)[1] == WHOLE


def test_nothing_is_left_beside_what_was_set_aside(tmp_path: Path) -> None:
    filled(tmp_path / "ledger.db")
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "ledger.db").write_bytes(b"")
    (aside / "ledger.db-wal").write_bytes(b"log")
    with ledger_in(tmp_path / "new.db") as target:
        assert salvage(str(aside / "ledger.db"), target) == Salvaged()
        assert sorted(each.name for each in aside.iterdir()) == ["ledger.db", "ledger.db-wal"]
        (aside / "ledger.db-wal").unlink()
        shutil.copy(tmp_path / "ledger.db", aside)
        salvage(str(aside / "ledger.db"), target)
        assert [each.name for each in aside.iterdir()] == ["ledger.db"]


def test_what_is_no_ledger_brings_nothing(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(200_000)  # noqa: S311  # no secret
    for name, data in (("a", b""), ("b", b"x" * 10_000), ("c", noise)):
        (tmp_path / name).write_bytes(data)
        assert came_over(tmp_path / name) == (Salvaged(), {})
    with ledger_in(tmp_path / "new.db") as target, pytest.raises(LedgerError):
        salvage(str(tmp_path / "missing"), target)


def test_sessions_beside_the_damage_come_over_whole(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    texts = {f"s{n}": " ".join(f"u{n}x{m} a{n}x{m}" + "x" * 200 for m in range(30)) for n in range(40)}
    with ledger_in(path) as ledger:
        for name, words in texts.items():
            ledger.import_turns(FOLDER, name, [turn(" ".join(pair)) for pair in pairs(words)])
    data = bytearray(path.read_bytes())
    at = data.index(b"u17x3")
    at -= at % PAGE
    data[at : at + PAGE] = bytes(PAGE)
    path.write_bytes(data)
    done, found = came_over(path)
    lost = {each.session: each.lost for each in done.sessions if each.lost}
    assert 1 <= len(lost) <= 3 and sum(lost.values()) < 60
    assert {name: said for name, said in found.items() if name not in lost} == {
        name: words for name, words in texts.items() if name not in lost
    }
    assert all(set(found[name].split()) < set(texts[name].split()) for name in lost if name in found)


def pairs(words: str) -> list[list[str]]:
    said = words.split()
    return [said[at : at + 2] for at in range(0, len(said), 2)]


def test_a_file_without_its_end_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with ledger_in(path) as ledger:
        for number in range(40):
            ledger.import_turns(FOLDER, f"s{number}", [turn(f"u{n}" + "x" * 500) for n in range(10)])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 7 // 10])
    done, found = came_over(path)
    whole = " ".join(f"u{n}" + "x" * 500 for n in range(10))
    assert sum(said == whole for said in found.values()) > 10
    assert all(each.broken for each in done.sessions if each.turns < 10)
