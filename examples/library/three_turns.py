"""Three turns with an edit between them: what was sent once is sent again, byte for byte."""

import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nexus_context import (
    ContextManager,
    LoadInputs,
    Message,
    Request,
    assemble,
    detect,
    global_directory,
    load,
    user_home,
)

folder = Path(tempfile.mkdtemp()).resolve()
rules = folder / "NEXUS.md"
settings = folder / ".nexus3" / "config.json"
settings.parent.mkdir()
settings.write_text('{"provider": {"name": "openai", "model": "gpt-5.1"}}')
inputs = LoadInputs(
    home=global_directory({}), user_home=user_home({}), environ={}, environment=detect("repl", environ={})
)
clock = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
conversation = ContextManager(started=clock)
before = b""

for minute, (style, question) in enumerate([("tabs", "Hello."), ("spaces", "And now?"), ("spaces", "Why?")]):
    rules.write_text(f"Use {style}.\n" + "Answer in one sentence.\n" * 40)
    request = Request(Message("user", question), format="openai")
    turn = assemble(load(str(folder), inputs), conversation, request, now=clock + timedelta(minutes=minute))
    sent = json.dumps(turn.request["messages"])[:-1].encode()  # without the bracket that ends the list
    print(len(turn.request["messages"]), "messages; begins with the request before:", sent.startswith(before))
    before = sent
    conversation.add([turn.turn_message, Message("assistant", "Because it is so. " * 200)])
    for message in turn.request["messages"][-2:]:
        if minute == 1:
            print(f"{message['role']}: {message['content']}".replace(str(rules), "NEXUS.md"))
print([(change.kind, change.label, change.told) for change in turn.pending.changes], turn.pending.tokens > 0)

# It prints:
# 2 messages; begins with the request before: True
# 5 messages; begins with the request before: True
# system: <changes>
# Instructions and tools have changed since they were sent at the beginning. What follows replaces what is said there.
#
# These lines of "Project Configuration" (NEXUS.md) no longer apply:
# Use tabs.
#
# These lines of "Project Configuration" (NEXUS.md) are new and apply from now on:
# Use spaces.
# </changes>
# user: Current time: 2026-11-23 09:01 (UTC+00:00)
#
# And now?
# 7 messages; begins with the request before: True
# [('changed', 'Project Configuration', True)] True
