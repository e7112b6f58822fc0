"""Where requests go by the settings of `provider`."""

import json
from pathlib import Path
from typing import Any

import pytest

from nexus_context.folder.loading import load
from nexus_context.turn.endpoint import Endpoint, endpoint_of
from support.fixture import write_fixture
from support.folders import load_inputs

LITERAL = "sk-live-4242424242424242424242"


@pytest.mark.parametrize(
    ("provider", "expected"),
    [
        ({}, None),
        ({"name": "editor", "base_url": "https://x.example"}, None),
        ({"name": "none"}, None),
        ({"name": "openai"}, Endpoint("https://api.openai.com/v1", (), None, has_key=False)),
        ({"name": "openai-compatible"}, Endpoint(None, (), None, has_key=False)),
        (
            {
                "name": "openai-compatible",
                "base_url": f"https://ana:{LITERAL}@proxy.example/v1?key={LITERAL}",
                "headers": {"X-Org": LITERAL, "X-Team": "b"},
                "api_key_env": "SET_KEY",
            },
            Endpoint(
                "https://********@proxy.example/v1?********", ("X-Org", "X-Team"), "SET_KEY", has_key=True
            ),
        ),
        (
            {"name": "anthropic", "api_key_env": "UNSET_KEY"},
            Endpoint("https://api.anthropic.com", (), "UNSET_KEY", has_key=False),
        ),
    ],
)
def test_where_requests_go(tmp_path: Path, provider: dict[str, Any], expected: Endpoint | None) -> None:
    text = json.dumps({"provider": provider})
    tree = write_fixture(f"//- /home/.nexus3/config.json\n{text}\n//- /home/a/NEXUS.md\nHi.\n", tmp_path)
    inputs = load_inputs(tree.path("/home"), environ={"SET_KEY": LITERAL})
    endpoint = endpoint_of(load(tree.path("/home/a"), inputs))
    assert endpoint == expected
    assert LITERAL not in repr(endpoint)
