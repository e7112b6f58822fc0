"""The chats that are walked: tau-bench where its file is present, and a made one, everywhere the same."""

import gzip
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.conversation.coding_sessions import HELD_OUT_SEEDS, coding_session
from benchmarks.conversation.facts import OpenAIMessage

ROOT = Path(__file__).resolve().parents[2]
TAU_MESSAGES = 1_201  # the system prompt and 1,200 others
SEED = 20_241
_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
_PEOPLE = ("mia_li", "omar_khan", "sofia_kim", "ivan_garcia", "emma_brown", "yusuf_rossi", "lucas_silva")
_PROSE = (
    "please check whether the booking can still be changed before the weekend because our plans moved and "
    "the hotel only keeps the room when the flight number stays what it was on the first invoice we got"
)
_WORDS = _PROSE.split()
LONG_RESULT_EVERY = 40  # turns; that result alone is larger than a budget of 16k
PARALLEL_EVERY = 5  # turns
RECENT_CODES = 40  # of the newest, one is what a user means by "the one from before"
OLD_SHARE = 0.2  # of the turns come back to such a one
CODING_TOKENS = 80_000  # of each session
LONG_TURNS = 16
STEPS_OF_LONG_TURN = (12, 30)  # calls; a turn has about 20,000 tokens of results


def tau_file() -> Path:
    """Where the file of tau-bench would be."""
    corpora = Path(os.environ.get("NEXUS_CORPORA") or ROOT.parent / "shared" / "data")
    return corpora / "tau-bench" / "gpt-4o-airline.json.gz"


def tau(length: int = TAU_MESSAGES) -> list[OpenAIMessage]:
    """Conversations of tau-bench in the order of the file as one chat: one system prompt, then all the rest.

    The ids of the calls get the number of their conversation: some occur in several.
    """
    with gzip.open(tau_file(), "rt", encoding="utf-8") as file:
        records: list[dict[str, Any]] = json.load(file)
    joined: list[OpenAIMessage] = records[0]["traj"][:1]
    for number, record in enumerate(records):
        if len(joined) >= length:
            break
        joined += [_numbered(message, number) for message in record["traj"] if message["role"] != "system"]
    return joined[:length]


def _numbered(message: OpenAIMessage, number: int) -> OpenAIMessage:
    changed = dict(message)
    if message.get("tool_call_id"):
        changed["tool_call_id"] = f"{message['tool_call_id']}-{number}"
    if message.get("tool_calls"):
        changed["tool_calls"] = [call | {"id": f"{call['id']}-{number}"} for call in message["tool_calls"]]
    return changed


def synthetic(length: int = TAU_MESSAGES, seed: int = SEED) -> list[OpenAIMessage]:
    """A made chat of bookings and files, with what tau-bench lacks: parallel calls, results larger than the
    budget, and next steps that need what nobody said lately.
    """
    dice = random.Random(seed)  # noqa: S311 - a benchmark, no secret
    messages: list[OpenAIMessage] = [_system(dice)]
    codes: list[str] = []
    turn = 0
    while len(messages) < length:
        messages += _turn(dice, turn, codes)
        turn += 1
    return messages[:length]


def _system(dice: random.Random) -> OpenAIMessage:
    rules = "\n".join(f"- {_sentence(dice, 24)}." for _ in range(40))
    return {"role": "system", "content": f"You help with bookings.\n\n{rules}"}


def _turn(dice: random.Random, turn: int, codes: list[str]) -> Iterator[OpenAIMessage]:
    user = f"{dice.choice(_PEOPLE)}_{dice.randint(1000, 9999)}"
    fresh = [_code(dice) for _ in range(dice.randint(1, 3))]
    old = dice.choice(codes[-RECENT_CODES:]) if codes and dice.random() < OLD_SHARE else None
    about = ", ".join(fresh) + (" and the one from before" if old else "")
    yield {"role": "user", "content": f"I am {user}. {_sentence(dice, 25)}: {about}."}
    for step in range(dice.randint(1, 4)):
        width = 3 if turn % PARALLEL_EVERY == 0 else 1
        asked = [dice.choice([*fresh, old or fresh[0]]) for _ in range(width)]
        ids = [f"call_{turn}_{step}_{number}" for number in range(width)]
        yield _calling(ids, [{"reservation_id": code, "user_id": user} for code in asked])
        for number, code in zip(ids, asked, strict=True):
            rows = (
                1_200
                if turn % LONG_RESULT_EVERY == LONG_RESULT_EVERY - 1 and step == 0
                else dice.randint(2, 12)
            )
            yield {
                "role": "tool",
                "tool_call_id": number,
                "name": "get",
                "content": _result(dice, code, rows),
            }
    codes += fresh
    yield {
        "role": "assistant",
        "content": f"{_sentence(dice, 30)}. Reservation {dice.choice(fresh)} of {user} is set.",
    }


def _calling(ids: list[str], arguments: list[dict[str, Any]]) -> OpenAIMessage:
    calls = [
        {"id": number, "type": "function", "function": {"name": "get", "arguments": json.dumps(each)}}
        for number, each in zip(ids, arguments, strict=True)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _result(dice: random.Random, code: str, rows: int) -> str:
    flights = [
        {
            "flight": f"HAT{dice.randint(100, 399)}",
            "date": f"2024-05-{dice.randint(10, 31)}",
            "price": dice.randint(99, 999),
        }
        for _ in range(rows)
    ]
    return json.dumps(
        {"reservation_id": code, "invoice": f"/invoices/2024/{code.lower()}.pdf", "flights": flights}
    )


def _code(dice: random.Random) -> str:
    return "".join(dice.choices(_LETTERS, k=6)) + str(dice.randint(2, 9))


def _sentence(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(_WORDS, k=words)).capitalize()


# ---------------------------------------------------------------- even messages, for the measures of speed


def even(length: int, seed: int = SEED) -> Iterator[OpenAIMessage]:
    """A history of tool calls. Each message but the system prompt has about 60 tokens; no two are alike."""
    dice = random.Random(seed)  # noqa: S311 - a benchmark, no secret
    yield {"role": "system", "content": _sentence(dice, 300)}
    for number in range(length - 1):
        turn, step = divmod(number, 4)
        code, call = _code(dice), f"call_{turn}"
        if step == 0:
            yield {"role": "user", "content": f"{_sentence(dice, 48)} {code}"}
        elif step == 1:
            yield _calling([call], [{"reservation_id": code, "question": _sentence(dice, 34)}])
        elif step == 2:
            yield {"role": "tool", "tool_call_id": call, "name": "get", "content": _even_result(dice, code)}
        else:
            yield {"role": "assistant", "content": f"{_sentence(dice, 48)} {code}"}


def _even_result(dice: random.Random, code: str) -> str:
    return json.dumps({"reservation_id": code, "price": dice.randint(99, 999), "note": _sentence(dice, 32)})


# ---------------------------------------------------------------- long tool turns


def long_turns(turns: int = LONG_TURNS, seed: int = SEED) -> list[OpenAIMessage]:
    """A made session of few turns with dozens of tool calls each, as an agent in an editor has them."""
    dice = random.Random(seed)  # noqa: S311 - a benchmark, no secret
    messages: list[OpenAIMessage] = [_system(dice)]
    codes = [_code(dice)]
    for turn in range(turns):
        codes += [_code(dice) for _ in range(3)]
        messages.append({"role": "user", "content": f"{_sentence(dice, 40)}: {', '.join(codes[-3:])}."})
        for step in range(dice.randint(*STEPS_OF_LONG_TURN)):
            code, call = dice.choice(codes[-RECENT_CODES:]), f"call_{turn}_{step}"
            arguments = {"reservation_id": code, "question": _sentence(dice, 12)}
            messages.append(_calling([call], [arguments]))
            content = _result(dice, code, dice.randint(8, 60))
            messages.append({"role": "tool", "tool_call_id": call, "name": "get", "content": content})
        messages.append({"role": "assistant", "content": f"{_sentence(dice, 60)}. {codes[-1]} is done."})
    return messages


# ---------------------------------------------------------------- coding


def coding() -> list[list[OpenAIMessage]]:
    """Sessions of agents that edit, fail, follow tasks and are steered."""
    return [
        [{key: value for key, value in message.items() if key != "meta"} for message in session.messages]
        for session in (coding_session(seed, CODING_TOKENS) for seed in HELD_OUT_SEEDS)
    ]


def coding_loops() -> list[list[OpenAIMessage]]:
    """The same in turns of LONG_TURN calls, with results of hundreds of names."""
    return [
        [{key: value for key, value in message.items() if key != "meta"} for message in session.messages]
        for session in (coding_session(seed, CODING_TOKENS, long_turns=True) for seed in HELD_OUT_SEEDS)
    ]


def observed(session: list[OpenAIMessage]) -> list[OpenAIMessage]:
    """The session as SWE-agent records one: calls are texts of the assistant, results are user messages."""
    messages: list[OpenAIMessage] = []
    for message in session:
        role, text = message["role"], message.get("content") or ""
        if role == "tool":
            role, text = "user", f"OBSERVATION:\n{text}"
        for call in message.get("tool_calls") or ():
            function = call["function"]
            text = f"{text}\n```\n{function['name']} {function['arguments']}\n```".lstrip()
        if messages and messages[-1]["role"] == role:
            messages[-1] = {"role": role, "content": f"{messages[-1]['content']}\n{text}"}
        else:
            messages.append({"role": role, "content": text})
    return messages
