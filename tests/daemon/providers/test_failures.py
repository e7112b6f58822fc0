"""Whatever goes wrong with a request is a kind and a sentence for the user, without a secret in it."""

import asyncio
import json
import logging
import random
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from nexus_daemon.providers import Answer, Provider, ProviderError, Target, provider_error, sdk, streaming
from nexus_daemon.servers import http_client
from support.provider_asking import KEY, ask, body_for, json_reply
from support.provider_streams import STREAMS, TEXT
from support.streaming_provider import Reply, data_lines, events, streaming_provider

PROVIDERS = sorted(STREAMS)
WHOLE = {provider: Reply([each.data]) for provider, each in STREAMS.items()}


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "FIRST_DELAY_S", 0.001)


def stated(provider: str, message: str, *, kind: str = "", code: Any = None) -> Any:
    """An error in the form of a provider's API."""
    if provider == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    if provider == "google":
        return {"error": {"code": code, "message": message, "status": kind, "details": []}}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


# ---------------------------------------------------------------- what a provider states

OVERFLOWS = (
    ("anthropic", "prompt is too long: 210000 tokens > 200000 maximum", "invalid_request_error"),
    ("anthropic", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", ""),
    ("openai", "Your input exceeds the context window of this model. Please adjust your input.", ""),
    ("openai-compatible", "This model's maximum context length is 8192 tokens. However, you requested 9", ""),
    ("openai-compatible", "You passed 9 tokens. However, the model's context length is only 4096", ""),
    ("openai-compatible", "the request exceeds the available context size, try increasing it", ""),
    ("openai-compatible", "prompt too long; exceeded max context length by 5 tokens", ""),
    (
        "openai-compatible",
        "Trying to keep the first 6 tokens when context the overflows. However, the model",
        "",
    ),
    ("openai-compatible", "Too long.", "exceed_context_size_error"),
    (
        "google",
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        "INVALID_ARGUMENT",
    ),
)


@pytest.mark.parametrize(("provider", "message", "kind"), OVERFLOWS)
def test_a_request_that_is_too_long_is_an_overflow(provider: str, message: str, kind: str) -> None:
    result = ask(provider, json_reply(stated(provider, message, kind=kind), 400))
    assert result.failure[0] == "overflow"
    assert len(result.requests) == 1  # the same would be too long again
    assert result.failure[1].endswith("Compact the conversation or attach less, then send the message again.")


def test_every_overflow_of_the_table_has_an_example() -> None:
    patterns = [re.compile(pattern, re.IGNORECASE) for pattern in provider_error.OVERFLOW]
    known = [message for _, message, _ in OVERFLOWS]
    others = ["Prompt contains 9 tokens, too large for model with 8 maximum context length"]
    assert [each.pattern for each in patterns if not any(map(each.search, [*known, *others]))] == []


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "refused"),
        (401, "authentication"),
        (402, "refused"),
        (403, "authentication"),
        (404, "refused"),
        (413, "overflow"),
        (422, "refused"),
        (429, "rate-limit"),
        (500, "overloaded"),
        (503, "overloaded"),
        (529, "overloaded"),
    ],
)
def test_a_status_has_a_kind(provider: str, status: int, kind: str) -> None:
    result = ask(provider, json_reply(stated(provider, "So it is."), status))
    assert result.failure[0] == kind
    assert ": So it is. " in result.failure[1]
    assert len(result.requests) == (3 if kind in ("rate-limit", "overloaded") else 1)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_errors_in_other_forms(provider: str) -> None:
    for body, text in (
        (b"<html><h1>Bad gateway</h1>", "HTTP 404."),
        (b'{"detail": "Not Found"}', "Not Found."),
        (b'{"error": "model not found"}', "model not found."),
        (b"plain \x1b[31m words\n of two lines", "plain ␛[31m words of two lines."),
        (b"", "HTTP 404."),
        (b"[1, 2]", "HTTP 404."),
        (b"\xff\xfe", None),
    ):
        kind, message = ask(provider, Reply([body], 404, kind="text/plain")).failure
        assert kind == "refused"
        assert text is None or f": {text} " in message, body


def test_words_of_an_api_decide_before_the_status() -> None:
    quota = stated(
        "openai", "You exceeded your current quota.", kind="insufficient_quota", code="insufficient_quota"
    )
    result = ask("openai", json_reply(quota, 429))
    assert (result.failure[0], len(result.requests)) == ("refused", 1)
    reason = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}
    error = {"code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT", "details": [reason]}
    assert ask("google", json_reply({"error": error}, 400)).failure[0] == "authentication"


def test_a_quote_is_short_and_on_one_line() -> None:
    _, message = ask("anthropic", json_reply(stated("anthropic", "so\r\n\x1b[2J\u202e " * 900), 400)).failure
    assert "\n" not in message
    assert "\x1b" not in message
    assert "\u202e" not in message
    assert len(message) < 450


# ---------------------------------------------------------------- attempts


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_error_that_passes_is_not_seen(provider: str) -> None:
    busy = json_reply(stated(provider, "Busy."), 500)
    limited = json_reply(stated(provider, "Slowly."), 429, **{"retry-after": "0.01"})
    result = ask(provider, busy, limited, WHOLE[provider])
    assert (result.error, result.text, len(result.requests)) == (None, TEXT, 3)
    assert result.requests[0].body == result.requests[2].body


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_long_delay_is_said_and_not_waited_for(provider: str) -> None:
    result = ask(provider, json_reply(stated(provider, "Slowly."), 429, **{"retry-after": "600"}))
    assert result.error is not None
    assert (result.error.kind, result.error.retry_after_s, len(result.requests)) == ("rate-limit", 600.0, 1)
    assert str(result.error).endswith(" takes no more requests for now: Slowly. Try again in 10 min.")


def test_delays_in_all_forms() -> None:
    def delay(provider: str, body: Any = None, **headers: str) -> float | None:
        reply = json_reply(body or stated(provider, "Slowly."), 429, **headers)
        error = ask(provider, reply).error
        assert error is not None
        return error.retry_after_s

    assert delay("openai", **{"retry-after-ms": "90500"}) == 90.5
    assert delay("openai", **{"retry-after": "soon"}) is None
    assert delay("openai", **{"retry-after": "nan"}) is None
    date = delay("openai", **{"retry-after": "Thu, 29 Nov 2096 10:00:00 GMT"})
    assert date is not None
    assert date > 1e9
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "77.5s"}
    body = {"error": {"code": 429, "message": "Slowly.", "status": "RESOURCE_EXHAUSTED", "details": [info]}}
    assert delay("google", body) == 77.5


def test_a_provider_may_forbid_another_attempt() -> None:
    result = ask("anthropic", json_reply(stated("anthropic", "No."), 500, **{"x-should-retry": "false"}))
    assert (result.failure[0], len(result.requests)) == ("overloaded", 1)


def test_a_connection_that_breaks_before_the_answer_is_tried_again() -> None:
    broken = Reply(status=0, is_broken=True)
    result = ask("anthropic", broken, WHOLE["anthropic"])
    assert (result.error, len(result.requests)) == (None, 2)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nobody_listens(provider: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        kind, message = _failure_at(Target(provider, f"http://{address}", KEY))
    assert (kind, message.startswith(f"The server at {address} cannot be reached.")) == ("network", True)


def test_addresses_that_are_none() -> None:
    for url in ("ftp://h.org", "h.org", "http://", "http://[", "http://a b"):
        assert _failure_at(Target("anthropic", url, KEY))[0] in ("refused", "network"), url


def _failure_at(target: Target) -> tuple[str, str]:
    async def run() -> tuple[str, str]:
        with pytest.raises(ProviderError) as caught:
            [item async for item in Provider(target).stream(body_for(target.provider))]
        return caught.value.kind, str(caught.value)

    return asyncio.run(run())


# ---------------------------------------------------------------- answers that go wrong

MIDDLE = {
    "anthropic": (stated("anthropic", "Overloaded", kind="overloaded_error"), "overloaded"),
    "openai": (
        {"type": "error", "code": "rate_limit_exceeded", "message": "Slowly", "param": None},
        "rate-limit",
    ),
    "openai-compatible": (stated("openai-compatible", "exceeds the available context size"), "overflow"),
    "google": (stated("google", "Overloaded", kind="UNAVAILABLE", code=503), "overloaded"),
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_error_in_the_middle(provider: str) -> None:
    value, kind = MIDDLE[provider]
    data = STREAMS[provider].data
    begin = data[: data.index(b"\n\n", len(data) // 2) + 2]
    error = events(value) if "type" in value else data_lines(value)
    result = ask(provider, Reply([begin, error]))
    assert (result.failure[0], result.answer, len(result.requests)) == (kind, None, 1)


def test_a_response_that_failed() -> None:
    error = {"code": "server_error", "message": "The model failed."}
    failed = {"type": "response.failed", "response": {"id": "resp_1", "status": "failed", "error": error}}
    kind, message = ask("openai", Reply([events(failed)])).failure
    assert kind == "overloaded"
    assert message.endswith(" is overloaded or failed: The model failed. Try again later.")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("is_broken", [False, True])
def test_an_answer_that_ends_early(provider: str, is_broken: bool) -> None:
    data = STREAMS[provider].data
    for end in (len(data) // 4, len(data) // 2):
        result = ask(provider, Reply([data[:end]], is_broken=is_broken))
        assert result.answer is None
        assert result.failure[0] in ("network", "bad-answer"), end
        assert len(result.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"<html>Welcome</html>",
        b"event: message_start\ndata: {\n\n",
        b"event: message_start\ndata: [1]\n\n",
        b'event: message_start\ndata: "text"\n\n',
        b"event: x\ndata: null\n\n",
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 3, "delta": 5}\n\n',
        b'data: {"choices": 5}\n\n',
        b'data: {"choices": [{"delta": {"tool_calls": [7]}, "finish_reason": "stop"}]}\n\n',
        b'event: e\ndata: {"type": "response.completed", "response": {"output": 7}}\n\n',
        b'data: {"candidates": [{"content": {"parts": 7}}]}\n\n',
        b"\xff\xfe\x00" * 400,
        b"data: " + b"[" * 3000 + b"\n\n",
    ],
    ids=range(13),
)
def test_garbage_is_an_error(provider: str, garbage: bytes) -> None:
    result = ask(provider, Reply([garbage]))
    assert result.failure[0] in ("bad-answer", "network")
    assert len(result.requests) == 1


def test_an_answer_has_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "LARGEST_ANSWER", 1 << 16)
    result = ask("anthropic", Reply([b": " + b"x" * 4_000] * 40))
    assert result.failure[0] == "bad-answer"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_redirect_is_followed(provider: str) -> None:
    for status in (301, 302, 307, 308):
        location = "https://ana:pass@other.example/v1/x?token=1"
        result = ask(provider, Reply([], status, {"location": location}), WHOLE[provider])
        assert len(result.requests) == 1
        assert result.failure[0] == "bad-answer"
        assert " redirects to other.example/v1/x, and the key is not sent there." in result.failure[1]
        assert "pass" not in result.failure[1]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_silence_is_bounded(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk, "SILENCE_S", 0.05)
    monkeypatch.setattr(sdk, "LOADING_S", 0.05)
    for reply in (Reply([STREAMS[provider].data[:600]], hangs=True), Reply(delay_s=0.5)):
        result = ask(provider, reply)
        assert result.failure[0] == "network"
        assert " was silent for 0 s." in result.failure[1]
        assert len(result.requests) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_slow_first_byte_is_waited_for(provider: str) -> None:
    assert ask(provider, WHOLE[provider]._replace(delay_s=0.2)).text == TEXT


# ---------------------------------------------------------------- leaving


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("size", [0, 600], ids=["before", "within"])
def test_a_cancelled_task_closes_its_connection(provider: str, size: int) -> None:
    async def run() -> None:
        async with streaming_provider(Reply([STREAMS[provider].data[:size]], hangs=True)) as server:
            target, items = Target(provider, server.url, KEY), []

            async def read() -> None:
                items.extend([item async for item in Provider(target).stream(body_for(provider))])

            task = asyncio.create_task(read())
            while not server.requests:
                await asyncio.sleep(0.005)
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await asyncio.wait_for(server.left.wait(), 2)

    asyncio.run(run())


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_closed_iterator_closes_its_connection(provider: str) -> None:
    async def run() -> None:
        async with streaming_provider(Reply([STREAMS[provider].data[:1500]], hangs=True)) as server:
            items: Any = Provider(Target(provider, server.url, KEY)).stream(body_for(provider))
            await anext(items)
            await items.aclose()
            await asyncio.wait_for(server.left.wait(), 2)

    asyncio.run(run())


def test_an_answer_ends_with_its_last_event(caplog: pytest.LogCaptureFixture) -> None:
    """Even if the provider keeps the connection open."""
    for provider in ("anthropic", "openai"):
        assert ask(provider, WHOLE[provider]._replace(hangs=True)).text == TEXT
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("first", "connections"),
    [
        ({"keeps_alive": True}, 1),
        ({"keeps_alive": True, "hangs": True}, 2),
        ({"keeps_alive": True, "is_broken": True}, 2),
        ({}, 2),
    ],
    ids=["whole", "never ends", "broken off", "closed by the server"],
)
def test_a_whole_answer_leaves_its_connection_to_the_next_request(
    provider: str, first: Any, connections: int
) -> None:
    if provider == "google" and "hangs" in first:
        pytest.skip("Gemini's answers end with their connection")
    is_cut = "is_broken" in first
    data = STREAMS[provider].data[: 1500 if is_cut else None]
    replies = [Reply([data])._replace(**first), WHOLE[provider]]

    async def run() -> tuple[list[bool], int]:
        async with (
            streaming_provider(*replies) as server,
            Provider(Target(provider, server.url, KEY)) as connection,
        ):
            ends = []
            for _ in replies:
                try:
                    items = [item async for item in connection.stream(body_for(provider))]
                except ProviderError:
                    items = []
                ends.append(bool(items) and isinstance(items[-1], Answer))
            return ends, server.connections

    assert asyncio.run(run()) == ([not is_cut, True], connections)


# ---------------------------------------------------------------- keys and secrets


@pytest.mark.parametrize("provider", ["anthropic", "google", "openai"])
def test_a_missing_key_is_said_before_anything_is_sent(provider: str) -> None:
    for key in (None, "", "  "):
        result = ask(provider, WHOLE[provider], key=key)
        assert (result.failure[0], len(result.requests)) == ("authentication", 0)
        assert "provider.api_key_env" in result.failure[1]


def test_a_server_on_this_machine_needs_no_key() -> None:
    result = ask("openai-compatible", WHOLE["openai-compatible"], key=None)
    assert result.text == TEXT
    assert result.requests[0].headers["authorization"] == "Bearer none"


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_header_may_stand_in_for_a_key(provider: str) -> None:
    result = ask(
        provider, WHOLE[provider], key=None, headers={"authorization": "Bearer of-a-gateway", "X-Team": "a"}
    )
    assert result.text == TEXT
    headers = result.requests[0].headers
    assert (headers["authorization"], headers["x-team"]) == ("Bearer of-a-gateway", "a")


@pytest.mark.parametrize("provider", PROVIDERS)
def test_headers_that_cannot_be_sent(provider: str) -> None:
    for headers, key in (
        ({"X": "a\nb"}, KEY),
        ({"X Y": "a"}, KEY),
        ({"X": "é"}, KEY),
        ({}, "a\nb"),
        ({}, "clé"),
    ):
        result = ask(provider, WHOLE[provider], key=key, headers=headers)
        assert (result.failure[0], len(result.requests)) == ("refused" if headers else "authentication", 0)


VARIABLES = {
    **dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"), "secret-of-the-environment"),
    **dict.fromkeys(("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID"), "secret-of-the-environment"),
    **dict.fromkeys(("OPENAI_PROJECT_ID", "GEMINI_API_KEY", "GOOGLE_API_KEY"), "secret-of-the-environment"),
    **dict.fromkeys(
        ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "GOOGLE_GEMINI_BASE_URL"), "http://127.0.0.1:9/"
    ),
    **dict.fromkeys(
        ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"), "X-Env: secret-of-the-environment"
    ),
    "GOOGLE_GENAI_USE_VERTEXAI": "true",
    "GOOGLE_GENAI_API_VERSION": "v9",
}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_sdk_gets_nothing_of_the_environment(provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    result = ask(provider, WHOLE[provider])
    (request,) = result.requests
    assert request.path.partition("?")[0] == STREAMS[provider].path
    assert "secret-of-the-environment" not in str(request)
    assert KEY in str(request.headers)


@pytest.fixture
def records() -> Iterator[list[str]]:
    """Everything that is logged at any level, by whatever logger."""
    lines: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{record.name}: {record.getMessage()} {record.exc_info}")

    root, handler = logging.getLogger(), Collector()
    level = root.level
    names = ("anthropic", "openai", "google_genai", "httpx2", "httpcore2")
    levels = {name: logging.getLogger(name).level for name in names}
    root.addHandler(handler)
    for name in ("", *names):
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield lines
    root.removeHandler(handler)
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def _secrets(count: int) -> list[str]:
    """Secrets that do not look like any, with the characters that other notations escape."""
    draw = random.Random(7)  # noqa: S311 - the same each time
    letters = "abcdefghijklmnopqrstuvwxyz0123456789+/=&%\"\\'<>@:;,. "
    return ["z" + "".join(draw.choices(letters, k=draw.randint(10, 40))).strip() + "q" for _ in range(count)]


def _echoes(provider: str, key: str, value: str) -> list[Reply]:
    """Answers of a provider that repeats what it was sent."""
    words = f"key {key} header {value} in https://h.org/?key={key}&x={value}"
    return [
        json_reply(stated(provider, words), 401),
        Reply([words.encode()], 400, kind="text/plain"),
        Reply([json.dumps({"other": words}).encode()], 400, kind="application/json"),
        Reply([], 302, {"location": f"https://h.org/{'x' + key.replace(' ', '')}?k={value}"}),
        json_reply(stated(provider, f"{words}" * 9), 429, **{"retry-after": "700"}),
        Reply([events({"type": "error", "error": {"type": words, "message": words}})]),
        Reply([b"event: message_start\ndata: {" + words.encode() + b"\n\n"]),
        Reply([data_lines(stated(provider, words, code=400))]),
    ]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_no_secret_is_ever_seen(provider: str, records: list[str]) -> None:
    for number, (key, value) in enumerate(zip(_secrets(50), reversed(_secrets(50)), strict=True)):
        replies = _echoes(provider, key, value)
        result = ask(provider, replies[number % len(replies)], key=key, headers={"X-Team": value})
        assert result.error is not None
        target = Target(provider, f"http://ana:{key}@h.org/?q={value}", key, {"X-Team": value})
        seen = [str(result.error), repr(result.error), repr(target), str(target), target.name]
        seen += ["\n".join(records), repr(list(target.__rich_repr__()))]
        for text in seen:
            for secret in (key, value, json.dumps(key)[1:-1], json.dumps(value)[1:-1]):
                assert secret not in text, (replies[number % len(replies)], text)
        records.clear()


# ---------------------------------------------------------------- SDKs


@pytest.mark.parametrize(
    ("provider", "extra"),
    [("anthropic", "anthropic"), ("openai", "openai"), ("openai-compatible", "openai"), ("google", "google")],
)
def test_an_sdk_that_is_not_installed(provider: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def import_module(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}", name="the_sdk")

    monkeypatch.setattr(streaming, "importlib", type("", (), {"import_module": staticmethod(import_module)}))
    kind, message = ask(provider, WHOLE[provider]).failure
    assert kind == "not-installed"
    assert message == f'The package the_sdk is not installed. Run: pip install "nexusd[{extra}]"'


def test_other_providers_do_not_answer() -> None:
    assert _failure_at_once("editor") == ("refused", "'editor' is not a provider that answers.")


def _failure_at_once(provider: str) -> tuple[str, str]:
    async def run() -> tuple[str, str]:
        with pytest.raises(ProviderError) as caught:
            [item async for item in Provider(Target(provider)).stream({})]
        return caught.value.kind, str(caught.value)

    return asyncio.run(run())


def test_nothing_slow_is_imported_before_a_request() -> None:
    code = "import sys, nexus_daemon.providers; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"anthropic", "openai", "google.genai", "httpx2", "pydantic"}.isdisjoint(modules.split())


def test_a_body_without_a_model_is_a_bug_of_the_caller() -> None:
    async def run() -> None:
        with pytest.raises(ValueError, match="no model"):
            [item async for item in Provider(Target("google", key=KEY)).stream({"contents": []})]

    asyncio.run(run())
