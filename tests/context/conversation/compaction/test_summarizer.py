"""Summarizers, what they are asked, and which of their answers is a summary."""

import asyncio

import pytest
from inline_snapshot import snapshot

from nexus_context.conversation.compaction.receipt import CompactionError
from nexus_context.conversation.compaction.summarizer import (
    SummaryRequest,
    Written,
    build_summarize_prompt,
    find_flaw,
    first_summary,
)
from support.histories import Letters


class Stub:
    """Answers with a text, or raises an exception."""

    def __init__(self, name: str, answer: str | Exception) -> None:
        self.name = name
        self._answer = answer

    async def summarize(self, request: SummaryRequest) -> str:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


REQUEST = SummaryRequest((), (), 100)


def first(*summarizers: Stub) -> Written:
    return asyncio.run(first_summary(summarizers, REQUEST))


def test_a_summarizer_that_fails_or_returns_nothing_is_skipped() -> None:
    broken, silent = Stub("editor", ValueError("no model")), Stub("openai", " \n")
    assert first(broken, silent, Stub("extractive", " text "), Stub("never", "asked")) == Written(
        "text", "extractive", ("editor: no model", "openai: an empty summary")
    )


@pytest.mark.parametrize(
    ("summarizers", "message"),
    [
        ((), "Nothing was compacted because no summarizer wrote a summary (there is no summarizer)."),
        (
            (Stub("a", TimeoutError()), Stub("b", "")),
            "Nothing was compacted because no summarizer wrote a summary (a: TimeoutError; b: an empty summary).",  # noqa: E501
        ),
    ],
)
def test_no_summary_is_an_error(summarizers: tuple[Stub, ...], message: str) -> None:
    with pytest.raises(CompactionError) as caught:
        first(*summarizers)
    assert (str(caught.value), caught.value.code) == (message, "no-summary")


def test_cancellation_is_not_a_failure() -> None:
    class Cancelled(Stub):
        async def summarize(self, request: SummaryRequest) -> str:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        first(Cancelled("a", ""), Stub("b", "text"))


def test_the_instruction_names_what_is_required() -> None:
    plain = build_summarize_prompt(limit=900)
    assert plain.startswith("The context of this conversation has to be shortened.")
    assert "at most 900 tokens" in plain
    full = build_summarize_prompt(
        limit=900, preserved=4, pins=["Never push.", "{x}"], instructions=" Keep the schema. "
    )
    assert full.removeprefix(plain) == snapshot("""\


The newest 4 messages before this one stay in the conversation as they are. Do not repeat them; use them only to see what matters of the others.

What stands between <pin> and </pin> must be in the summary word for word:
<pin>
Never push.
</pin>
<pin>
{x}
</pin>

The user asks this of the summary:
Keep the schema.\
""")  # noqa: E501


@pytest.mark.parametrize(
    ("answer", "flaw"),
    [
        ("## Goal\nRename load().", None),
        ("Here it is:\n\n  **Goal** Rename load().", None),
        ("", None),
        (
            "I cannot help with that.",
            "the answer is not a summary: it has none of the headings that were requested",
        ),
        (
            "#hash is no heading, * nor is this",
            "the answer is not a summary: it has none of the headings that were requested",
        ),
        ("# Goal\n" + "word " * 8, None),
        ("# Goal\n" + "word " * 40, "the summary takes 52 tokens; at most 10 were requested"),
    ],
)
def test_the_flaw_of_an_answer(answer: str, flaw: str | None) -> None:
    assert find_flaw(answer, limit=10, counter=Letters()) == flaw
