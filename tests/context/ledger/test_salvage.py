"""What is recovered from a damaged ledger."""

import random
from pathlib import Path

import apsw
import pytest
from inline_snapshot import snapshot

from nexus_context.ledger.errors import LedgerError
from nexus_context.ledger.records import DirectMessage
from nexus_context.ledger.salvage import Salvaged, salvage
from support.ledgers import FOLDER, append, compaction, history, ledger_in, turn

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
    assert done == Salvaged(sessions=5, turns=13, messages=16, direct=1)
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
        assert done == Salvaged(sessions=1, turns=2, messages=2, damaged=1)
        assert history(ledger, "long (salvaged)") == WHOLE["long"] + " a5"
        assert {one.name for one in ledger.sessions(FOLDER)} == {*WHOLE, "long (salvaged)"} - {
            "old (cleared)"
        }
        assert [one.name for one in ledger.sessions("/elsewhere")] == ["long"]
        assert salvage(str(path), ledger, only={(FOLDER, "nobody")}) == Salvaged()


def test_what_is_no_ledger_brings_nothing(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(200_000)  # noqa: S311  # no secret
    for name, data in (("a", b""), ("b", b"x" * 10_000), ("c", noise)):
        (tmp_path / name).write_bytes(data)
        assert came_over(tmp_path / name) == (Salvaged(), {})
    with ledger_in(tmp_path / "new.db") as target, pytest.raises(LedgerError):
        salvage(str(tmp_path / "missing"), target)


@pytest.mark.parametrize("seed", range(6))
def test_what_lies_around_the_damage_comes_over(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "ledger.db"
    with ledger_in(path) as ledger:
        ledger.import_turns(FOLDER, "main", [turn(f"u{n} a{n}" + "x" * 200) for n in range(1_500)])
    data = bytearray(path.read_bytes())
    chosen = random.Random(seed)  # noqa: S311  # no secret
    damaged = [0, *chosen.sample(range(len(data) // PAGE), 6)]
    for page in damaged:
        data[page * PAGE : (page + 1) * PAGE] = chosen.randbytes(PAGE)
    path.write_bytes(data)
    done, found = came_over(path)
    assert done.messages > 2_600
    said = next(iter(found.values())).split()
    order = [2 * int(word[1:].rstrip("x")) + (word[0] == "a") for word in said]
    assert order == sorted(set(order))
