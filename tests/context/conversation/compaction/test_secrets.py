"""No secret of a conversation reaches a summary, a names note or a receipt; the messages keep it."""

from datetime import datetime

import msgspec
import pytest

from nexus_context.conversation.compaction.detection import CompactionSettings
from nexus_context.conversation.compaction.extractive import extract
from nexus_context.conversation.compaction.run import CompactionRequest, FinishedCompaction, finish, plan
from nexus_context.conversation.compaction.summarizer import Written, build_summarize_prompt
from nexus_context.conversation.history import History
from nexus_context.conversation.identifiers import IdentifierIndex
from nexus_context.conversation.message import Message, ToolCall, text_of
from nexus_context.conversation.summary import create_summary_message
from nexus_context.conversation.window import Budget
from nexus_context.tokens import TiktokenCounter

COUNTER = TiktokenCounter()
NOON = datetime(2026, 3, 4, 12, 0)

ANTHROPIC = "sk-ant-api03-" + "aB3dE6gH9" * 9
GITHUB = "ghp_" + "a1B2" * 9
JWT = f"eyJhbGciOiJIUzI1NiJ9.eyJ1c2VyIjo0Mn0{'Qx7' * 300}.c2lnbmF0dXJl"
PEM_BODY = "MIIEpAIBAAKCAQEA7bq0"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{PEM_BODY}\nq9Zk2LmP0xVt7RwY\n-----END RSA PRIVATE KEY-----"
CASES = {
    "an Anthropic key": (ANTHROPIC, ANTHROPIC[:24]),
    "a GitHub token": (GITHUB, GITHUB[:12]),
    "a JWT of a thousand characters": (JWT, JWT[:16]),
    "the password of an address": ("postgres://ana:moonlit7@db.example.org/x", "moonlit7"),
    "a bearer": ("Authorization: Bearer abcdefgh1234", "abcdefgh1234"),
    "a query": ("https://h.example.org/?api_key=0123456789&x=1", "0123456789"),
    "a member": ('{"db_password": "harbour9"}', "harbour9"),
    "an assignment": ("export DB_PASSWORD=harbour9", "harbour9"),
    "an assignment in words": ("the password is: harbour9", "harbour9"),
    "an option": ("deploy --token harbour9x", "harbour9x"),
    "a private key": (PEM, PEM_BODY),
}


def session(secret: str) -> list[Message]:
    """A conversation that says the secret wherever one can be said."""
    return [
        Message("user", f"Deploy it. Always use {secret} for that.\nKeep ORDER_LIMIT at 5."),
        Message(
            "assistant",
            f"I decided to use {secret} because it works.\n- [ ] rotate {secret}",
            (ToolCall("1", "bash", {"command": f"curl {secret}", "path": f"/tmp/{secret}", "note": secret}),),
        ),
        Message("tool", f"Error: {secret} was refused", tool_call_id="1"),
        Message(
            "assistant",
            None,
            (ToolCall("2", "todo", {"todos": [{"content": f"Renew {secret}", "status": "pending"}]}),),
        ),
        Message("tool", f"exit code: 1\n{secret}", tool_call_id="2", meta={"is_error": True}),
        Message("user", "x " * 3_000 + secret),
        Message("assistant", "word " * 3_000 + secret),
    ]


def compacted(messages: list[Message], text: str = "", pins: tuple[str, ...] = ()) -> FinishedCompaction:
    newest = [Message("user", "Go on."), Message("assistant", "Done.")]
    made = plan(
        History([*messages, *newest]),
        COUNTER,
        Budget(8_000, 0),
        settings=CompactionSettings(keep_recent_turns=1),
        request=CompactionRequest("explicit", pins=pins),
    )
    assert made is not None
    written = Written(text, "editor") if text else extract(made.request(), COUNTER)
    return finish(made, written, counter=COUNTER, made_at=NOON)


@pytest.mark.parametrize(("secret", "part"), CASES.values(), ids=CASES)
def test_no_secret_reaches_a_summary(secret: str, part: str) -> None:
    messages = session(secret)
    result = compacted(messages, pins=(f"The key is {secret}",))
    assert part not in text_of(result.summary_message)
    assert "ORDER_LIMIT at 5" in text_of(result.summary_message)
    assert part not in msgspec.json.encode(result.receipt).decode()
    assert part in text_of(messages[0])


@pytest.mark.parametrize(("secret", "part"), CASES.values(), ids=CASES)
def test_nor_one_that_a_model_or_an_earlier_version_wrote(secret: str, part: str) -> None:
    assert part not in text_of(compacted(session(secret), f"## Goal\nUse {secret}.").summary_message)
    earlier = create_summary_message(f"## Instructions from the user\n- Use {secret}.", NOON, 9)
    assert part not in text_of(compacted([earlier, *session("x")]).summary_message)


@pytest.mark.parametrize(("secret", "part"), CASES.values(), ids=CASES)
def test_nor_the_note_of_what_was_cut_or_a_transcript_for_a_model(secret: str, part: str) -> None:
    index = IdentifierIndex()
    index.extend(session(secret))
    index.add(Message("tool", f"{'x' * (6_000 - len(secret) // 2)} {secret} {'y' * 9_000}", tool_call_id="9"))
    assert part not in index.render(COUNTER, 4_000)
    assert part not in build_summarize_prompt(session(secret))


@pytest.mark.parametrize(
    "text",
    [
        "primary_key=True and sort(key=len)",
        "the token: count is wrong",
        "password: str = field()",
        "KEY=value",
        "git show 3f2a9c1d8e7b6a5f4e3d2c1b0a9f8e7d6c5b4a39",
        "cache_key: build/app-v2.json",
        "API_KEY=${API_KEY} and password: <your password>",
        "max_tokens=4096, tokens: 12345678",
        "const token = request.headers.token2",
    ],
)
def test_what_is_not_a_secret_stays(text: str) -> None:
    assert text in text_of(compacted([Message("user", text), *session("x")]).summary_message)
