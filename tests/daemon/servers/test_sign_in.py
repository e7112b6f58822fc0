"""Signing in with OAuth, with an authorization server on this machine; tokens, and keyrings that fail."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import keyring
import pytest
from keyring.backend import KeyringBackend

from nexus_daemon.servers import folder_servers, sign_in, token_store
from nexus_daemon.servers.server_log import ServerLog
from support.protected_server import browse, protected
from support.server_story import Servers, check
from support.talk import call
from support.waiting import block_until, wait_until

KEY = "key-0123456789abcdef"
OPEN = "Open this address to sign in: "


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("support.desk.TIMEOUT_S", 30.0)  # for a server to start on a busy machine
    monkeypatch.setattr(token_store, "_hangs", threading.Event())


async def configure(servers: Servers, url: str) -> None:
    entry = {"type": "http", "url": url, "headers": {"X-Key": KEY}}
    (servers.directory / ".mcp.json").write_text(json.dumps({"mcpServers": {"test": entry}}))

    async def is_read() -> bool:
        return bool((await servers.server()).get("url") == url)

    assert await wait_until(is_read)


async def begin(servers: Servers) -> str:
    """Ask to sign in; the address that the user has to open."""
    servers.last += 1
    before = len(pages(servers))
    params = {"workspaceFolder": servers.desk.uri("/a"), "name": "test"}
    servers.talk.send(call(servers.last, "nexus/mcp/login", params))
    assert await wait_until(lambda: len(pages(servers)) > before)
    return pages(servers)[-1]


def pages(servers: Servers) -> list[str]:
    shown = [
        each["params"]["message"]
        for each in servers.talk.writer.messages()
        if each.get("method") == "window/showMessage"
    ]
    return [text.removeprefix(OPEN) for text in shown if text.startswith(OPEN)]


async def log_in(servers: Servers) -> Any:
    """Sign in with a browser; what it gives, or the error."""
    page = await begin(servers)
    await asyncio.to_thread(browse, page)
    answer = await servers.desk.reply(servers.talk, servers.last)
    return answer.get("result") or answer["error"]


def lines(directory: Path, file: str) -> list[str]:
    path = directory / file
    return path.read_text().splitlines() if path.exists() else []


def state_files(servers: Servers) -> dict[str, str]:
    """The user's state, by name."""
    root = Path(servers.desk.tree.path("/state"))
    return {path.name: path.read_text(errors="replace") for path in root.rglob("*") if path.is_file()}


def test_the_user_signs_in_and_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with protected(tmp_path) as url:

        async def story(servers: Servers) -> None:
            await configure(servers, url)
            assert await servers.refused("mcp/login", name="test") == "mcp-unapproved"
            assert lines(tmp_path, "requests") == []
            await servers.approve()
            server = await servers.ask("mcp/start", name="test")
            assert (server["state"], "nexus mcp login test" in server["error"]) == ("needs-auth", True)
            assert {line.split()[0] for line in lines(tmp_path, "requests")} == {"/mcp"}
            assert (await log_in(servers)).get("state") == "ready"
            assert (await servers.call("alpha", text="hi"))["content"][0]["text"] == "hi"
            for line in lines(tmp_path, "requests"):
                assert line.endswith(KEY) == line.startswith("/mcp ")  # its headers are for the server alone
            (name,) = [name for name in state_files(servers) if name.startswith("tokens-")]
            kept = Path(servers.desk.tree.path(f"/state/trust/{name}"))
            assert kept.stat().st_mode & 0o777 == 0o600
            tokens = lines(tmp_path, "tokens")
            assert all(token in kept.read_text() for token in tokens[:2])
            told = json.dumps(servers.talk.writer.messages()) + caplog.text
            others = "".join(text for each, text in state_files(servers).items() if each != name)
            assert not any(token in told + others for token in tokens)
            assert (await servers.ask("mcp/logout", name="test"))["state"] == "stopped"
            assert name not in state_files(servers)
            assert (await servers.ask("mcp/start", name="test"))["state"] == "needs-auth"

        check(tmp_path, story)


def test_an_expired_token_is_refreshed(tmp_path: Path) -> None:
    with protected(tmp_path) as url:

        async def story(servers: Servers) -> None:
            await configure(servers, url)
            await servers.approve()
            assert (await log_in(servers)).get("state") == "ready"
            (tmp_path / "forget").write_text("")  # before the time that it said
            (tmp_path / "lifetime").write_text("2")
            assert (await servers.call("alpha", text="hi"))["content"][0]["text"] == "hi"
            assert len(lines(tmp_path, "tokens")) == 4
            await servers.ask("mcp/stop", name="test")
            await asyncio.sleep(2.1)
            assert (await servers.ask("mcp/start", name="test"))["state"] == "ready"  # from what was kept
            assert len(lines(tmp_path, "tokens")) > 4
            (tmp_path / "no-refresh").write_text("")
            (tmp_path / "forget").write_text("")
            await servers.reply("mcp/call", server="test", tool="alpha", arguments={"text": "hi"})
            await servers.wait_for("needs-auth")

        check(tmp_path, story)


def test_a_sign_in_on_the_command_line_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEXUS_STATE", str(tmp_path / "state"))
    with protected(tmp_path) as url:

        async def story(servers: Servers) -> None:
            await configure(servers, url)
            await servers.approve()
            assert (await servers.ask("mcp/start", name="test"))["state"] == "needs-auth"
            command = [sys.executable, "-m", "nexus_daemon", "mcp", "login", "test", "--in", "."]
            process = await asyncio.create_subprocess_exec(
                *command, cwd=servers.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            assert process.stderr is not None
            assert b"Open this address" in await process.stderr.readline()
            await asyncio.to_thread(browse, (await process.stderr.readline()).decode().strip())
            assert await process.communicate() == (b"test ready.\n", b"")
            assert await wait_until(lambda: servers.told()[-1:] == ["stopped"])
            assert (await servers.call("alpha", text="hi"))["content"][0]["text"] == "hi"

        check(tmp_path, story)


def test_a_server_that_starts_while_a_sign_in_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts, noticed = threading.Event(), threading.Event()

    def wait_for_the_notice() -> None:
        starts.set()
        noticed.wait(20)

    with protected(tmp_path) as url:

        async def story(servers: Servers) -> None:
            await configure(servers, url)
            await servers.approve()
            assert (await servers.ask("mcp/start", name="test"))["state"] == "needs-auth"
            launch_hash = (await servers.server())["hash"]
            tokens_file = token_store.tokens_file(servers.desk.daemon.load_inputs.environ, launch_hash)
            monkeypatch.setattr(folder_servers, "_import_sdk", wait_for_the_notice)
            start = asyncio.create_task(servers.ask("mcp/start", name="test"))
            folder = servers.desk.folders.at(servers.desk.uri("/a"))
            known = servers.desk.daemon.servers
            assert await wait_until(starts.is_set)
            Path(tokens_file).write_text("{}")
            await known.approvals_changed(folder, await folder.current())
            noticed.set()
            assert (await start)["state"] == "needs-auth"  # the file has no tokens

        check(tmp_path, story)


@pytest.mark.parametrize(
    ("mode", "code", "words"),
    [("refuse", "mcp-sign-in-refused", "access_denied"), ("elsewhere", "mcp-sign-in-failed", "not safe")],
)
def test_a_sign_in_that_fails_says_why(tmp_path: Path, mode: str, code: str, words: str) -> None:
    with protected(tmp_path, mode) as url:

        async def story(servers: Servers) -> None:
            await configure(servers, url)
            await servers.approve()
            if mode == "elsewhere":
                error = (await servers.reply("mcp/login", name="test"))["error"]
            else:
                error = await log_in(servers)
            assert (error["data"]["code"], words in error["message"]) == (code, True)
            assert not any(name.startswith("tokens-") for name in state_files(servers))

        check(tmp_path, story)


def test_only_the_browser_ends_a_sign_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "SIGN_IN_S", 4.0)
    with protected(tmp_path) as url:

        async def story(servers: Servers) -> None:
            await configure(servers, url)
            await servers.approve()
            page = await begin(servers)
            asked = parse_qs(urlsplit(page).query)
            assert asked["code_challenge_method"] == ["S256"]
            (back,) = asked["redirect_uri"]
            for wrong in ("?code=stolen&state=guessed", "?error=access_denied", "x?code=stolen"):
                with pytest.raises(OSError, match="404"):
                    await asyncio.to_thread(browse, f"{back}{wrong}")
            error = (await servers.desk.reply(servers.talk, servers.last))["error"]
            assert (error["data"]["code"], "Nobody signed in" in error["message"]) == (
                "mcp-sign-in-refused",
                True,
            )

        check(tmp_path, story)


def test_who_cannot_sign_in(tmp_path: Path) -> None:
    async def story(servers: Servers) -> None:
        await servers.approve()
        assert await servers.refused("mcp/login", name="test") == "mcp-no-sign-in"

    check(tmp_path, story)


class InMemory(KeyringBackend):
    """A keyring that works, for as long as it does not hang."""

    priority = 1.0  # pyright: ignore[reportAssignmentType]

    def __init__(self) -> None:
        self.passwords: dict[tuple[str, str], str] = {}
        self.release = threading.Event()
        self.release.set()

    def get_password(self, service: str, username: str) -> str | None:
        self.release.wait(30)
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.release.wait(30)
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self.release.wait(30)
        del self.passwords[service, username]


@pytest.fixture
def own_keyring() -> Iterator[InMemory]:
    before, own = keyring.get_keyring(), InMemory()
    keyring.set_keyring(own)
    yield own
    own.release.set()
    keyring.set_keyring(before)


def test_tokens_are_in_the_keyring(own_keyring: InMemory, tmp_path: Path) -> None:
    environ = {"NEXUS_STATE": str(tmp_path)}
    asyncio.run(token_store.save_tokens(environ, "hash", "secret"))
    assert own_keyring.passwords == {("nexus-mcp", "hash"): "secret"}
    assert "secret" not in Path(token_store.tokens_file(environ, "hash")).read_text()
    assert asyncio.run(token_store.load_tokens(environ, "hash")) == "secret"
    assert asyncio.run(token_store.load_tokens(environ, "other")) is None
    assert asyncio.run(token_store.delete_tokens(environ, "hash"))
    assert own_keyring.passwords == {}
    assert asyncio.run(token_store.load_tokens(environ, "hash")) is None


def test_a_keyring_that_hangs_is_asked_once(
    own_keyring: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_store, "KEYRING_S", 0.2)
    environ = {"NEXUS_STATE": str(tmp_path)}
    asyncio.run(token_store.save_tokens(environ, "first", "secret"))
    own_keyring.release.clear()
    assert asyncio.run(token_store.load_tokens(environ, "first")) is None
    asyncio.run(token_store.save_tokens(environ, "second", "other secret"))
    assert asyncio.run(token_store.load_tokens(environ, "second")) == "other secret"
    assert Path(token_store.tokens_file(environ, "second")).stat().st_mode & 0o777 == 0o600
    assert not asyncio.run(token_store.delete_tokens(environ, "first"))
    assert asyncio.run(token_store.delete_tokens(environ, "second"))


def test_a_keyring_that_answered_too_late_is_asked_before_tokens_count_as_deleted(
    own_keyring: InMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_store, "KEYRING_S", 0.2)
    environ = {"NEXUS_STATE": str(tmp_path)}
    own_keyring.release.clear()
    asyncio.run(token_store.save_tokens(environ, "one", "secret"))
    own_keyring.release.set()  # it takes them after all
    block_until(lambda: bool(own_keyring.passwords))
    assert asyncio.run(token_store.delete_tokens(environ, "one")) is False  # it is not asked any more
    monkeypatch.setattr(token_store, "_hangs", threading.Event())
    asyncio.run(token_store.save_tokens(environ, "one", "secret"))
    assert asyncio.run(token_store.delete_tokens(environ, "one")) is True
    assert own_keyring.passwords == {}


def test_a_sign_in_ends_with_the_approval(tmp_path: Path) -> None:
    with protected(tmp_path) as url:

        async def story(servers: Servers) -> None:
            await configure(servers, url)
            await servers.approve()
            await servers.ask("mcp/start", name="test")
            await begin(servers)
            signing = servers.last
            await servers.ask("mcp/revoke", name="test")
            error = (await servers.desk.reply(servers.talk, signing))["error"]
            assert error["data"]["code"] == "mcp-sign-in-refused"
            assert not any(name.startswith("tokens-") for name in state_files(servers))

        check(tmp_path, story)


def test_the_log_covers_tokens_that_are_sent(tmp_path: Path) -> None:
    log = ServerLog(str(tmp_path / "log"), ["first-secret"])
    log.add_secrets(["opaque-token-of-nobody"])
    log.write("first-secret, opaque-token-of-nobody")
    assert "secret" not in log.last and "opaque" not in log.last
