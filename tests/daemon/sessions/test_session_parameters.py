"""Model parameters of a conversation: stored with it, between the agent's and the request's."""

from pathlib import Path
from typing import Any

from nexus_context.ledger import open_ledger
from support.asking import Asking, again, check, ended
from support.desk import Desk, write


async def parameters(ask: Asking, **params: object) -> Any:
    return (await ask("context/assemble", message="Why?", **params))["parameters"]


def test_they_count_from_then_on_and_the_request_wins(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/a/.nexus3/config.json", '{"parameters": {"temperature": 0.1, "top_k": 9}}')
        await ask("session/create", session="plan", parameters={"temperature": 0.5, "max_tokens": 100})
        origins = {
            "temperature": {"value": 0.5, "origin": "session"},
            "max_tokens": {"value": 100, "origin": "session"},
        }
        assert (await parameters(ask, session="plan")).items() >= origins.items()
        options = {"parameters": {"max_tokens": 50}}
        sent = await parameters(ask, session="plan", options=options)
        assert sent["max_tokens"] == {"value": 50, "origin": "request"}
        assert "max_tokens" not in await parameters(ask, session="main")
        await ask("session/append", session="plan", messages=[{"role": "user", "content": "Go."}])
        await ask("session/fork", session="plan", to="fork")
        await ask("session/rename", session="plan", to="plan B")
        for session in ("fork", "plan B"):
            assert (await parameters(ask, session=session)).items() >= origins.items()
        listed = {one["session"]: one.get("parameters") for one in (await ask("session/list"))["sessions"]}
        assert listed["plan B"] == {"temperature": 0.5, "max_tokens": 100}
        await ended(desk)
        _, ask = await again(desk)
        assert (await parameters(ask, session="plan B")).items() >= origins.items()

    check(tmp_path, story)


def test_they_can_be_changed_later_also_those_of_main(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("session/append", messages=[{"role": "user", "content": "Go."}])
        assert "temperature" not in await parameters(ask)
        told = await ask("session/setParameters", parameters={"temperature": 0.5, "max_tokens": 100})
        assert told == {"session": "main", "parameters": {"temperature": 0.5, "max_tokens": 100}}
        assert (await parameters(ask))["temperature"] == {"value": 0.5, "origin": "session"}
        told = await ask("session/setParameters", parameters={"temperature": 0.2, "max_tokens": None})
        assert told["parameters"] == {"temperature": 0.2}
        assert (await parameters(ask))["temperature"] == {"value": 0.2, "origin": "session"}
        assert "max_tokens" not in await parameters(ask)
        (listed,) = (await ask("session/list"))["sessions"]
        assert (listed["parameters"], listed["messages"]) == ({"temperature": 0.2}, 2)
        await ask("session/setParameters", session="new", parameters={"top_k": 3})
        assert (await parameters(ask, session="new"))["top_k"] == {"value": 3, "origin": "session"}
        code, message = await ask.refused("session/setParameters", parameters={"temperature": 3})
        assert (code, message.startswith("Parameter temperature of the session")) == ("bad-parameter", True)
        await ended(desk)
        _, ask = await again(desk)
        assert (await parameters(ask))["temperature"] == {"value": 0.2, "origin": "session"}

    check(tmp_path, story)


def test_what_another_process_sets_counts_with_the_next_request(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("session/append", messages=[{"role": "user", "content": "Go."}])
        assert "temperature" not in await parameters(ask)
        (session,) = (await ask("session/list"))["sessions"]
        assert session["session"] == "main"
        (folder,) = desk.daemon.windows.folders
        ledger = await desk.daemon.ledgers.of(await folder.current(), folder)
        other = open_ledger(ledger.store.location)
        other.set_parameters(ledger.workspace, "main", {"temperature": 0.4})
        other.close()
        assert (await parameters(ask))["temperature"] == {"value": 0.4, "origin": "session"}

    check(tmp_path, story)


def test_they_are_above_those_of_an_agent(tmp_path: Path) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api", parameters={"temperature": 0.3, "top_k": 5})
        await ask("session/create", session="plan", parameters={"temperature": 0.7})
        sent = await parameters(ask, session="plan", agent="api")
        assert (sent["temperature"], sent["top_k"]) == (
            {"value": 0.7, "origin": "session"},
            {"value": 5, "origin": "agent"},
        )

    check(tmp_path, story)


def test_one_that_is_not_valid_creates_nothing(tmp_path: Path) -> None:
    async def story(_: Desk, ask: Asking) -> None:
        for wrong, start in (
            ({"temprature": 1}, "Parameter temprature of the session: "),
            ({"temperature": 3}, "Parameter temperature of the session: "),
        ):
            code, message = await ask.refused("session/create", session="plan", parameters=wrong)
            assert (code, message.startswith(start)) == ("bad-parameter", True), message
        assert (await ask("session/list"))["sessions"] == []

    check(tmp_path, story)
