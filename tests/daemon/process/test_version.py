"""Client and daemon tell each other the number of the protocol, and the daemon says what to update."""

import sys
from typing import Any

import pytest
from inline_snapshot import snapshot

from nexus_daemon.process.version import PROTOCOL, __version__, describe_mismatch
from support.client import Client

SERVE = [sys.executable, "-m", "nexus_daemon", "serve"]


def check(nexus: Any, client_info: Any = None) -> list[tuple[int, str]]:
    """Introduce a client with these capabilities; return what the daemon shows its user."""
    with Client(SERVE) as client:
        capabilities = {"experimental": {"nexus": nexus}}
        params = {"processId": None, "capabilities": capabilities, "clientInfo": client_info}
        result = client.request("initialize", params)
        client.notify("initialized", {})
        assert result["capabilities"]["experimental"] == {"nexus": {"protocol": PROTOCOL}}
        assert client.request("nexus/status", {})["protocol"] == PROTOCOL
        client.stop()
        return [
            (message["params"]["type"], message["params"]["message"].replace(__version__, "0.1.0"))
            for message in client.received
            if message.get("method") == "window/showMessage"
        ]


def test_a_newer_client_is_warned_once() -> None:
    assert check({"protocol": 2}, {"name": "Neovim", "version": "0.12"}) == snapshot(
        [
            (
                2,
                (
                    "Update Nexus: version 0.1.0 speaks protocol 1, "
                    "and the Nexus extension of Neovim speaks protocol 2."
                ),
            )
        ]
    )


def test_an_older_client_is_warned_once() -> None:
    assert check({"protocol": 0}) == snapshot(
        [
            (
                2,
                (
                    "Update the Nexus extension of this editor: it speaks protocol 0, "
                    "and Nexus 0.1.0 speaks protocol 1."
                ),
            )
        ]
    )


def test_a_client_of_this_protocol_is_not_warned() -> None:
    assert check({"protocol": PROTOCOL, "modelComplete": False}) == []


@pytest.mark.parametrize("protocol", [None, True, "2", 2.0, [2]])
def test_what_is_not_a_number_is_not_compared(protocol: object) -> None:
    assert describe_mismatch(protocol, "Neovim") is None
