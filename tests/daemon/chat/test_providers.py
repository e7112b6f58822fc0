"""A turn through each provider's SDK: its calls are answered, and the second request has what it gave."""

import json
from pathlib import Path

import msgspec
import pytest

from support.desk import Desk, tell_story
from support.provider_streams import STREAMS, TEXT, THOUGHT
from support.streaming_provider import Reply, streaming_provider


@pytest.mark.parametrize("provider", sorted(STREAMS))
def test_a_turn_with_parallel_calls(tmp_path: Path, provider: str) -> None:
    expected = STREAMS[provider]

    async def story(desk: Desk) -> None:
        async with streaming_provider(Reply([expected.data])) as server:
            inputs = desk.daemon.load_inputs
            environ = {**inputs.environ, "TEST_KEY": "key"}
            desk.daemon.load_inputs = msgspec.structs.replace(inputs, environ=environ)
            home = Path(desk.tree.path("/home")) / ".nexus3"
            home.mkdir(parents=True)
            named = {"name": provider, "model": expected.model, "base_url": server.url}
            config = {"provider": {**named, "api_key_env": "TEST_KEY"}, "chat": {"max_steps": 2}}
            (home / "config.json").write_text(json.dumps(config))
            talk = await desk.client()
            sent = {"message": "When is the tide low?", "partialResultToken": 7}
            answer = await desk.ask(talk, 1, "nexus/chat/send", **sent)
            assert (answer["stopReason"], answer["steps"]) == ("chat.max_steps", 2)
            items = [
                item
                for message in talk.writer.messages()
                if message.get("method") == "$/progress"
                for item in message["params"]["value"]
            ]
            said = "".join(item["text"] for item in items if item["kind"] == "text")
            thought = "".join(item["text"] for item in items if item["kind"] == "thinking")
            assert (said, thought) == (TEXT * 2, THOUGHT * 2)
            assert sum(item["kind"] == "toolCall" for item in items) == 4
            history = server.requests[1].body[expected.history]
            assert all(part in history for part in expected.returned)
            stored = (await desk.ask(talk, 2, "nexus/session/messages"))["messages"]
            roles = [message["role"] for message in stored[1:]]
            assert roles == ["user", *["assistant", "tool", "tool"] * 2]

    tell_story(tmp_path, story)
