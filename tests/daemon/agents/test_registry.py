"""Agents in the daemon: started, looked at, asked, followed while files change, kept, ended."""

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nexus_context.ledger.errors import LedgerError
from nexus_daemon.windows import folder_ledgers
from nexus_daemon.windows.daemon import Daemon
from nexus_daemon.workspace.workers import MOST_LOADS
from support.asking import API, FILES, Asking, again, check, ended
from support.desk import Desk, tell_story, write
from support.talk import Message, call
from support.waiting import wait_until, yield_to_loop

ONLY_READS = {"inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
READ = {"name": "fs.read", "description": "Read.", **ONLY_READS}
LOOK = {"name": "net.look", "description": "Look.", **ONLY_READS}
NOTHING_ELSE = ("role", "task", "parent", "systemPrompt", "model", "tools", "permissions", "parameters")


# ---------------------------------------------------------------- started, looked at, asked


def test_an_agent_is_started_listed_and_ended(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        made = await ask("agent/spawn", agentId="api", cwd="api", role="manager", task="Fix it.")
        usage = made.pop("usage")
        assert made == {
            "agentId": "api",
            "cwd": desk.tree.path("/a/api"),
            "role": "manager",
            "task": "Fix it.",
            "depth": 1,
            "session": "agent:api",
        }
        assert sum(row["tokens"] for row in usage["rows"]) == usage["total"] > 0
        below = await ask(
            "agent/spawn",
            agentId="db",
            cwd=desk.uri("/a/api"),
            parent="api",
            tools=["fs.*"],
            permissions=["fs.*"],
        )
        assert (below["parent"], below["role"], below["depth"]) == ("api", "worker", 2)
        listed = (await ask("agent/list"))["agents"]
        assert listed == [{**made, "usage": usage}, below]
        got = await ask("agent/get", agentId="db")
        assert got == {
            **below,
            "model": "gpt-4o",
            "tools": ["fs.*"],
            "permissions": {"level": "sandboxed", "allow": ["fs.*"], "deny": []},
            "parameters": {},
            "children": [],
        }
        main = await ask("agent/get", agentId="main")
        assert (main["session"], main["depth"], main["children"]) == ("main", 0, ["api"])
        assert await ask("agent/dispose", agentId="api") == {"disposed": ["db", "api"]}
        assert await ask.ids() == []
        assert ask.told() == [("api", "spawned"), ("db", "spawned"), ("db", "disposed"), ("api", "disposed")]

    check(tmp_path, story)


def test_who_has_nothing_left_is_allowed_what_no_name_fits(tmp_path: Path) -> None:
    """An empty list would stand for everything."""

    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, API, '{"permissions": {"allow": ["net.*"]}}')
        await ask("agent/spawn", agentId="fs", cwd="web", permissions=["fs.*"])
        await ask("agent/spawn", agentId="api", cwd="api", parent="fs")
        for name, allowed, offered in (("main", [], 2), ("fs", ["fs.*"], 1), ("api", ["[]"], 0)):
            assert (await ask("agent/get", agentId=name))["permissions"]["allow"] == allowed
            turn = {"agent": name, "message": "x", "options": {"additionalTools": [READ, LOOK]}}
            assert len((await ask("context/assemble", **turn))["tools"]) == offered

    check(tmp_path, story)


def test_every_request_about_agents_is_a_command_and_takes_null(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        named = {"workspaceFolder": desk.uri("/a"), "agentId": "api"}
        bare = named | {"cwd": None, **dict.fromkeys(NOTHING_ELSE)}
        for number, (command, argument) in enumerate(
            (
                ("nexus.agent.spawn", bare),
                ("nexus.agent.list", {"workspaceFolder": desk.uri("/a")}),
                ("nexus.agent.get", named),
                ("nexus.agent.dispose", named),
            ),
            start=1,
        ):
            params = {"command": command, "arguments": [argument]}
            ask.talk.send(call(number, "workspace/executeCommand", params))
            assert "error" not in await desk.reply(ask.talk, number)
        nothing = {"agent": None, "session": None}
        assert (await ask("context/usage", **nothing))["total"] > 0
        assert (await ask("context/assemble", **nothing))["session"] == "main"
        assert await ask("context/preview", agent=None, viewAs=None) == await ask("context/preview")
        view = {"agentId": None, "cwd": None, **dict.fromkeys(NOTHING_ELSE)}
        assert "Rules" not in (await ask("context/preview", viewAs=view))["text"]

    check(tmp_path, story)


def test_who_is_looked_at_is_not_started(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        seen = await ask("context/preview", viewAs={"cwd": "api", "role": "worker", "task": "Fix it."})
        assert "Rules of the api." in seen["text"]
        assert "Fix it." in seen["text"]
        assert seen["tokens"] == sum(one["tokens"] for one in seen["fragments"])
        assert await ask.ids() == []
        await ask("agent/spawn", agentId="agent", cwd="api", task="Fix it.")
        live = await ask("context/preview", agent="agent")
        assert live == seen
        sources = {one["source"]["uri"] for one in live["fragments"] if one["source"]}
        assert desk.uri("/a/api/AGENTS.md") in sources
        code, said = await ask.refused("context/preview", agent="agent", viewAs={"cwd": "api"})
        assert (code, said) == (
            "bad-option",
            "Both `agent` and `viewAs` are set. Set only one: `viewAs` is for an agent that is not started.",
        )
        assert (await ask.refused("context/preview", viewAs={"cwd": "nowhere"}))[0] == "agent-cwd"

    check(tmp_path, story)


def test_an_agent_is_asked_with_what_is_its_own(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask(
            "agent/spawn",
            agentId="api",
            cwd="api",
            role="unified",
            model="gpt-4.1",
            tools=["fs.*"],
            parameters={"temperature": 0.25},
        )
        tools = {"additionalTools": [READ, LOOK]}
        turn = {"message": "Go on.", "options": tools}
        own = await ask("context/assemble", **turn)
        made = await ask("context/assemble", agent="api", **turn)
        assert (own["session"], own["model"], own["role"]) == ("main", "gpt-4o", "unified")
        assert (made["session"], made["model"], made["role"]) == ("agent:api", "gpt-4.1", "unified")
        assert made["workspacePath"] == desk.tree.path("/a/api")
        assert [tool["name"] for tool in made["tools"]] == ["fs.read"]
        assert len(own["tools"]) == 2
        assert made["permissions"]["level"] == "sandboxed"
        assert made["parameters"] == {
            "temperature": {"value": 0.25, "origin": "agent"},
            "top_p": {"value": 0.5, "origin": "local"},
        }
        assert "Rules of the api." in made["systemPrompt"]
        assert "Rules of the api." not in own["systemPrompt"]
        usage = await ask("context/usage", agent="api")
        assert usage["model"] == "gpt-4.1"
        assert usage == (await ask("agent/get", agentId="api"))["usage"]
        layers = await ask("context/layers", agent="api")
        assert [one["path"] for one in layers["layers"]][-1] == desk.tree.path("/a/api/.nexus3")
        settings = await ask("config/effective", agent="api")
        assert settings["config"]["permissions"]["level"] == "sandboxed"
        assert settings["config"]["provider"]["model"] == "gpt-4.1"
        for method in ("context/usage", "context/layers", "config/effective", "context/preview"):
            code, said = await ask.refused(method, agent="apy")
            assert (code, said.endswith("Agents: main, api.")) == ("unknown-agent", True)

    check(tmp_path, story)


def test_an_agents_conversation_is_its_own_and_stays(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api", model="gpt-4.1")
        said = [{"role": "user", "content": "Never log a secret."}]
        done = await ask("session/append", session="agent:api", messages=said)
        assert done["usage"]["model"] == "gpt-4.1"
        assert "Never log" in str((await ask("context/assemble", agent="api", message="Go on."))["history"])
        assert "Never log" not in str((await ask("context/assemble", message="Go on."))["history"])
        other = await ask("context/assemble", agent="api", session="plan", message="Go on.")
        assert (other["session"], "Rules of the api." in other["systemPrompt"]) == ("plan", True)
        (session,) = (await ask("session/list"))["sessions"]
        assert (session["session"], session["agent"]) == ("agent:api", "api")
        await ask("agent/dispose", agentId="api")
        assert "Never log" in str(await ask("session/messages", session="agent:api"))
        again = await ask("agent/spawn", agentId="api", cwd="web")
        assert again["usage"]["rows"][-1]["category"] == "history"
        made = await ask("context/assemble", agent="api", message="Go on.")
        assert "Rules of the web." in made["systemPrompt"]
        assert made["metadata"]["cached"] is False

    check(tmp_path, story)


def test_what_was_assembled_for_another_agent_of_the_name_is_not_given_again(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        turn = {"agent": "api", "session": "plan", "message": "Go on."}
        for cwd in ("api", "web", "api"):
            await ask("agent/spawn", agentId="api", cwd=cwd)
            made = await ask("context/assemble", **turn)
            assert (f"Rules of the {cwd}." in made["systemPrompt"], made["metadata"]["cached"]) == (
                True,
                False,
            )
            await ask("agent/dispose", agentId="api")

    check(tmp_path, story)


# ---------------------------------------------------------------- names that only clients know, messages


def test_without_agents_nothing_is_made_for_them(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        desk.open(ask.talk, "/a/.nexus3/config.json", "{}")
        await ask("agent/message", source="planner", target="reviewer", content="It is frozen.")
        made = await ask("context/assemble", agent="reviewer", message="Go on.")
        assert (made["session"], made["agent"], made["role"]) == ("main", "reviewer", "unified")
        assert "It is frozen." in made["currentMessage"]["content"]
        assert [folder.agents for folder in desk.daemon.windows.folders] == [None]

    check(tmp_path, story)
    loaded = (
        "import sys, nexus_daemon.api.context;"
        "print([m for m in ('nexus_daemon.agents.registry', 'nexus_context.agents') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_writes_to_its_manager_only(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="lead", cwd="api", role="manager")
        await ask("agent/spawn", agentId="hand", cwd="api", parent="lead")
        await ask("agent/spawn", agentId="peer", cwd="web", parent="lead")
        for source, target in (("hand", "lead"), ("lead", "peer"), ("lead", "planner"), ("planner", "hand")):
            await ask("agent/message", source=source, target=target, content="Done.")
        code, said = await ask.refused("agent/message", source="hand", target="peer", content="Psst.")
        assert (code, said) == ("agent-message", "Worker 'hand' reports to 'lead' only. Send it there.")
        assert (await ask.refused("agent/message", source="hand", target="main", content="x"))[
            0
        ] == "agent-message"
        assert (await ask.refused("agent/message", source="hand", target="planner", content="x"))[
            0
        ] == "unknown-agent"
        made = await ask("context/assemble", agent="lead", message="Go on.")
        assert "Done." in made["currentMessage"]["content"]
        assert ("lead", "message") in ask.told()

    check(tmp_path, story)


# ---------------------------------------------------------------- what cannot be


REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "cwd is missing": ({"cwd": "nowhere"}, "agent-cwd", "does not exist. Create it."),
    "cwd is a file": ({"cwd": "api/AGENTS.md"}, "agent-cwd", "Name the directory that the agent works in."),
    "cwd is outside": ({"cwd": "../outside"}, "agent-cwd", "is outside every workspace folder"),
    "cwd leads outside": ({"cwd": "out"}, "agent-cwd", "it leads to"),
    "cwd is a loop": ({"cwd": "loop"}, "agent-cwd", "cannot be opened"),
    "cwd is no file URI": ({"cwd": "http://x/api"}, "agent-cwd", "a URI that starts with `file:`"),
    "no name": ({"agentId": "../x"}, "agent-id", "is not a valid agent name"),
    "main": ({"agentId": "main"}, "agent-exists", "Choose another name"),
    "the same name": ({"agentId": "hand"}, "agent-exists", "or dispose of that one"),
    "unknown parent": ({"parent": "hend"}, "unknown-agent", "Did you mean 'hand'?"),
    "unknown role": ({"role": "king"}, "agent-role", "manager, worker, unified"),
    "a worker's manager": ({"parent": "hand", "role": "manager"}, "agent-role", "may start only workers"),
    "a wider level": ({"permissions": {"level": "yolo"}}, "agent-permissions", 'its parent has "trusted"'),
    "wider patterns": ({"parent": "hand", "permissions": ["net.*"]}, "agent-permissions", 'within "fs.*"'),
    "no permission": ({"permissions": {"may": 1}}, "agent-permissions", "level, allow or deny"),
    "other tools": ({"parent": "hand", "tools": ["net.*"]}, "agent-tools", "Choose among those"),
    "no name of a tool": (
        {"tools": ["fs.*", ""]},
        "agent-tools",
        "'new': Item 2 of \"tools\" is not a valid name",
    ),
    "no parameter": ({"parameters": {"heat": 1}}, "bad-parameter", "heat"),
}


@pytest.mark.parametrize(("params", "code", "words"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_started_is_refused(
    tmp_path: Path, params: dict[str, Any], code: str, words: str
) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        os.symlink("loop", desk.tree.path("/a/loop"))
        os.symlink(desk.tree.path("/outside"), desk.tree.path("/a/out"))
        await ask("agent/spawn", agentId="hand", cwd="api", tools=["fs.*"], permissions=["fs.*"])
        found = await ask.refused("agent/spawn", **{"agentId": "new", "cwd": "api", **params})
        assert (found[0], words in found[1]) == (code, True), found
        assert await ask.ids() == ["hand"]
        assert ask.told() == [("hand", "spawned")]

    check(tmp_path, story)


def test_agents_are_neither_too_deep_nor_too_many(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        refused = []
        for depth in range(100):
            parent = {"parent": f"a{depth - 1}"} if depth else {}
            reply = await ask.reply("agent/spawn", agentId=f"a{depth}", cwd="api", **parent)
            refused += [reply["error"]["data"]["code"]] if "error" in reply else []
        assert refused == ["agent-depth"] + ["unknown-agent"] * 94
        for number in range(59):
            await ask("agent/spawn", agentId=f"b{number}", cwd="web")
        code, said = await ask.refused("agent/spawn", agentId="c", cwd="web")
        assert (code, "64 live agents" in said) == ("agent-count", True)
        assert await ask("agent/dispose", agentId="a1") == {"disposed": ["a4", "a3", "a2", "a1"]}
        await ask("agent/spawn", agentId="c", cwd="web")
        assert len(await ask.ids()) == 61

    check(tmp_path, story)


def test_of_two_that_want_one_name_one_gets_it(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        params = {"workspaceFolder": desk.uri("/a"), "agentId": "api"}
        ask.talk.send(
            *(call(n, "nexus/agent/spawn", {**params, "cwd": cwd}) for n, cwd in ((1, "api"), (2, "web")))
        )
        replies = [await desk.reply(ask.talk, number) for number in (1, 2)]
        codes = [one.get("error", {}).get("data", {}).get("code") for one in replies]
        assert sorted(codes, key=str) == [None, "agent-exists"]
        (agent,) = (await ask("agent/list"))["agents"]
        assert agent["cwd"] == desk.tree.path(("/a/api", "/a/web")[codes.index(None)])
        assert (await ask.refused("agent/dispose", agentId="main"))[0] == "unknown-agent"
        assert (await ask.refused("agent/dispose", agentId="x"))[0] == "unknown-agent"
        assert (await ask.refused("agent/get", agentId="x"))[0] == "unknown-agent"

    check(tmp_path, story)


# ---------------------------------------------------------------- files


def test_what_is_wrong_in_an_agents_files_is_shown(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, API, '{"tools": {"summery": 1}}')
        assert desk.shown(ask.talk, API) is None
        await ask("agent/spawn", agentId="api", cwd="api")
        assert desk.shown(ask.talk, API) == ["config.unknown-key"]
        desk.open(ask.talk, API, '{"permissions": {"level": "worker"}}')  # unsaved text counts
        assert (await ask("agent/get", agentId="api"))["permissions"]["level"] == "worker"
        assert desk.shown(ask.talk, API) == []
        assert ask.told()[-1] == ("api", "changed")
        desk.close(ask.talk, API)
        await ask("agent/get", agentId="api")
        assert desk.shown(ask.talk, API) == ["config.unknown-key"]
        assert len(desk.daemon.windows.folders) == 1  # nobody took the file for a lone one
        await ask("agent/dispose", agentId="api")
        assert desk.shown(ask.talk, API) == []

    check(tmp_path, story)


def test_who_comes_to_a_folder_later_is_shown_what_is_wrong_there(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, API, '{"colour": "red"}')
        write(desk, "/a/.nexus3/config.json", '{"colour": "red"}')
        await ask("agent/spawn", agentId="api", cwd="api")
        await desk.daemon.watcher.close()  # which looks at everything once more, now and then
        later = await desk.client()
        assert desk.shown(later, "/a/.nexus3/config.json") == ["config.unknown-key"]
        await wait_until(lambda: desk.shown(later, API) == ["config.unknown-key"])
        await ask("agent/dispose", agentId="api")
        await wait_until(lambda: desk.shown(later, API) == [])

    check(tmp_path, story)


def test_text_that_nobody_read_before_counts_unsaved_too(tmp_path: Path) -> None:
    """Also where the text was opened before there was an agent that reads it."""
    rules = "/a/api/AGENTS.md"

    async def story(desk: Desk, ask: Asking) -> None:
        async def seen(**whose: object) -> bool:
            return "Unsaved." in (await ask("context/preview", **whose))["text"]

        assert not await seen(viewAs={"cwd": "api"})
        desk.open(ask.talk, rules, "Unsaved.\n")
        assert await seen(viewAs={"cwd": "api"})
        await ask("agent/spawn", agentId="api", cwd="api")
        assert await seen(agent="api")
        desk.close(ask.talk, rules)
        assert not await seen(agent="api")
        assert not await seen(viewAs={"cwd": "api"})

    check(tmp_path, story)


def test_a_request_that_is_cancelled_before_its_turn_takes_no_news_along(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api")
        await ask("agent/spawn", agentId="web", cwd="web")
        (folder,) = desk.daemon.windows.folders
        assert folder.agents is not None
        await desk.daemon.watcher.close()
        free = threading.Event()
        try:
            for _ in range(MOST_LOADS):  # no thread is free
                desk.daemon.workers.loads.submit(free.wait)
            write(desk, "/a/api/AGENTS.md", "Other rules.")
            asked = asyncio.ensure_future(folder.agents.current())
            folder.agents.files_changed(frozenset({desk.tree.path("/a/api/AGENTS.md")}))
            await yield_to_loop(3)  # the request waits for a thread
            folder.agents.files_changed(frozenset())
            asked.cancel()
            await asyncio.wait([asked])
        finally:
            free.set()
        assert "Other rules." in (await ask("context/preview", agent="api"))["text"]

    check(tmp_path, story)


def test_a_quick_fix_is_offered_in_an_agents_file(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api")
        desk.open(ask.talk, API, '{"tools": {"disabeld": []}}')
        place = {"line": 0, "character": 15}
        params = {
            "textDocument": {"uri": desk.uri(API)},
            "range": {"start": place, "end": place},
            "context": {"diagnostics": []},
        }
        ask.talk.send(call(1, "textDocument/codeAction", params))
        (action,) = (await desk.reply(ask.talk, 1))["result"]
        assert "disabled" in action["title"]

    check(tmp_path, story)


def test_files_that_change_on_the_disk_are_followed(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api")
        await ask("agent/spawn", agentId="web", cwd="web")
        api = desk.tree.path("/a/api")
        await wait_until(lambda: any(api in each for each in desk.daemon.watcher.watched))
        write(desk, "/a/api/AGENTS.md", "Other rules.\n")
        await wait_until(lambda: ("api", "changed") in ask.told())
        assert "Other rules." in (await ask("context/preview", agent="api"))["text"]
        assert ("web", "changed") not in ask.told()
        shutil.rmtree(desk.tree.path("/a/api"))
        await wait_until(lambda: ask.told().count(("api", "changed")) > 1)
        got = await ask("agent/get", agentId="api")
        assert (
            got["notice"] == f"{desk.tree.path('/a/api')} is not a directory any more. Dispose of the agent."
        )
        assert "Other rules." in (await ask("context/preview", agent="api"))["text"]
        assert "notice" not in await ask("agent/get", agentId="web")
        write(desk, "/a/api/AGENTS.md", "Back again.\n")

        async def is_back() -> bool:
            return "Back again." in (await ask("context/preview", agent="api"))["text"]

        await wait_until(is_back)  # the directory may be noticed before the file
        assert "notice" not in await ask("agent/get", agentId="api")

    check(tmp_path, story)


def test_a_directory_that_comes_to_lead_outside_is_not_read(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="web", cwd="web")
        shutil.rmtree(desk.tree.path("/a/web"))
        os.symlink(desk.tree.path("/outside"), desk.tree.path("/a/web"))
        next(iter(desk.daemon.windows.folders)).reload.request("disk")
        got = await ask("agent/get", agentId="web")
        assert "is outside every workspace folder" in got["notice"]
        assert "Rules of others." not in (await ask("context/preview", agent="web"))["text"]

    check(tmp_path, story)


def test_who_has_less_gives_less(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask(
            "agent/spawn", agentId="web", cwd="web", permissions={"level": "trusted", "allow": ["fs.*"]}
        )
        desk.open(ask.talk, "/a/.nexus3/config.json", '{"permissions": {"level": "worker"}}')
        got = await ask("agent/get", agentId="web")
        assert got["permissions"] == {"level": "worker", "allow": ["fs.*"], "deny": []}
        assert got["notice"].endswith("Until then it has what its parent can grant.")
        desk.close(ask.talk, "/a/.nexus3/config.json")
        got = await ask("agent/get", agentId="web")
        assert ("notice" in got, got["permissions"]["level"]) == (False, "trusted")

    check(tmp_path, story)


def test_a_folder_that_leaves_takes_its_agents_along_and_brings_them_back(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, API, '{"tools": {"summery": 1}}')
        await ask("agent/spawn", agentId="api", cwd="api")
        folder = {"uri": desk.uri("/a"), "name": "a"}

        def moved(**event: object) -> Message:
            method = "workspace/didChangeWorkspaceFolders"
            params = {"event": {"added": [], "removed": [], **event}}
            return {"jsonrpc": "2.0", "method": method, "params": params}

        ask.talk.send(moved(removed=[folder]))
        await ask.talk.settle()
        assert desk.shown(ask.talk, API) == []
        assert (await ask.refused("agent/list"))[0] == "unknown-folder"
        ask.talk.send(moved(added=[folder]))
        assert await ask.ids() == ["api"]
        assert desk.shown(ask.talk, API) == ["config.unknown-key"]

    check(tmp_path, story)


def test_a_folder_that_is_deleted_still_answers_for_its_agents(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="api", cwd="api")
        shutil.rmtree(desk.tree.path("/a"))
        next(iter(desk.daemon.windows.folders)).reload.request("disk")
        (agent,) = (await ask("agent/list"))["agents"]
        assert agent["notice"].endswith("is not a directory any more. Dispose of the agent.")
        assert (await ask.refused("agent/spawn", agentId="web", cwd="web"))[0] == "agent-cwd"
        assert await ask("agent/dispose", agentId="api") == {"disposed": ["api"]}

    check(tmp_path, story)


def test_another_workspace_folder_is_a_place_for_agents_too(tmp_path: Path) -> None:
    async def told(desk: Desk) -> None:
        ask = Asking(desk, await desk.client("/a", "/outside"))
        made = await ask("agent/spawn", agentId="other", cwd=desk.uri("/outside"))
        assert made["cwd"] == desk.tree.path("/outside")
        other, there = await again(desk)  # this window has only /a open
        (agent,) = (await there("agent/list"))["agents"]
        assert "is outside every workspace folder" in agent["notice"]
        assert "Rules of others." not in (await there("context/preview", agent="other"))["text"]
        await ended(other)

    tell_story(tmp_path, told, FILES)


# ---------------------------------------------------------------- the ledger


def test_agents_are_there_when_a_daemon_starts_anew(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        await ask("agent/spawn", agentId="gone", cwd="api", role="manager", parameters={"temperature": 0.5})
        await ask("agent/spawn", agentId="below", cwd="web", parent="gone", tools=["fs.*"], task="Fix it.")
        await ask("agent/spawn", agentId="web", cwd="web", systemPrompt="You are short.", model="gpt-4.1")
        await ask("agent/spawn", agentId="not", cwd="web")
        await ask("agent/dispose", agentId="not")
        before = {name: await ask("agent/get", agentId=name) for name in ("gone", "below", "web")}
        prompt = await ask("context/preview", agent="web")
        await ended(desk)
        shutil.rmtree(desk.tree.path("/a/api"))
        other, there = await again(desk)
        assert await there.ids() == ["gone", "below", "web"]
        after = {name: await there("agent/get", agentId=name) for name in before}
        assert after["web"] == before["web"]
        assert after["gone"].pop("notice").startswith(desk.tree.path("/a/api"))
        assert after["gone"]["permissions"]["level"] == "worker"  # who knows what its own settings allow
        for name in ("gone", "below"):
            for figure in ("usage", "permissions"):
                del before[name][figure], after[name][figure]
        assert after == before
        assert await there("context/preview", agent="web") == prompt
        assert there.told() == []
        assert await there("agent/dispose", agentId="gone") == {"disposed": ["below", "gone"]}
        await ended(other)

    check(tmp_path, story)


def test_two_windows_have_the_same_agents(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        other, there = await again(desk)
        assert await there.ids() == []
        await ask("agent/spawn", agentId="api", cwd="api", role="manager")
        assert await there.ids() == ["api"]
        assert (await there.refused("agent/spawn", agentId="api", cwd="web"))[0] == "agent-exists"
        await there("agent/spawn", agentId="below", cwd="web", parent="api")
        assert await ask("agent/dispose", agentId="api") == {"disposed": ["below", "api"]}
        assert (await there.refused("context/usage", agent="below"))[0] == "unknown-agent"
        await ask("agent/spawn", agentId="api", cwd="web")  # the same name, another agent
        (agent,) = (await there("agent/list"))["agents"]
        assert agent["cwd"] == desk.tree.path("/a/web")
        ours = [
            ("api", "spawned"),
            ("below", "spawned"),
            ("below", "disposed"),
            ("api", "disposed"),
            ("api", "spawned"),
        ]
        assert (ask.told(), there.told()) == (ours, ours)
        await ask("agent/dispose", agentId="api")
        await wait_until(lambda: there.told()[-1:] == [("api", "disposed")])  # without being asked
        await ended(other)

    check(tmp_path, story)


@pytest.mark.parametrize("error", [LedgerError("Damaged.", code="ledger-io"), ZeroDivisionError()])
def test_agents_are_followed_while_sessions_cannot_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(folder_ledgers, "POLL_S", 0.01)

    def failing() -> None:
        raise error

    async def story(desk: Desk, ask: Asking) -> None:
        other, there = await again(desk)
        monkeypatch.setattr(other.daemon.ledgers.writer, "look", failing)
        assert await there.ids() == []
        await ask("agent/spawn", agentId="api", cwd="api")
        await wait_until(lambda: there.told() == [("api", "spawned")])
        await ask("agent/dispose", agentId="api")
        await wait_until(lambda: there.told()[1:] == [("api", "disposed")])
        assert len(caplog.records) == 1  # it is said once
        await ended(other)

    check(tmp_path, story)


def test_of_two_windows_at_once_one_gets_the_name(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        other, there = await again(desk)
        asked = [
            one.reply("agent/spawn", agentId=f"a{n}", cwd="api") for n in range(8) for one in (ask, there)
        ]
        codes: list[str | None] = []
        for each in [asked[n : n + 2] for n in range(0, 16, 2)]:
            codes += sorted(
                str(reply.get("error", {}).get("data", {}).get("code"))
                for reply in await asyncio.gather(*each)
            )
        assert codes == ["None", "agent-exists"] * 8
        assert await ask.ids() == await there.ids() == [f"a{n}" for n in range(8)]
        await ended(other)

    check(tmp_path, story)


def test_agents_work_where_the_ledger_keeps_nothing(tmp_path: Path) -> None:
    async def story(desk: Desk, ask: Asking) -> None:
        write(desk, "/state", "no directory")
        await ask("agent/spawn", agentId="api", cwd="api")
        await ask("agent/spawn", agentId="db", cwd="api", parent="api")
        assert (await ask("status"))["ledger"]["persists"] is False
        assert await ask.ids() == ["api", "db"]
        assert await ask("agent/dispose", agentId="api") == {"disposed": ["db", "api"]}

    check(tmp_path, story)


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every daemon of a test is closed."""
    made: list[Daemon] = []
    start = Daemon.__init__

    def counted(self: Daemon, *args: Any, **kwargs: Any) -> None:
        made.append(self)
        start(self, *args, **kwargs)

    monkeypatch.setattr(Daemon, "__init__", counted)
    yield
    for daemon in made:
        with pytest.raises(RuntimeError, match="after shutdown"):
            daemon.workers.executor.submit(int)
