"""A summary as a message, its pins, and those who are asked to write it."""

import asyncio
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.conversation.compaction.errors import CompactionError
from nexus_context.conversation.compaction.summarizer import (
    SummaryRequest,
    Written,
    build_summarize_prompt,
    first_summary,
    instruction,
)
from nexus_context.conversation.compaction.summary import (
    create_summary_message,
    is_summary,
    pins_in,
    summary_of,
    with_pins,
    without_pins,
)
from nexus_context.conversation.message import Message, text_of
from support.chats import chat

NOON = datetime(2026, 3, 4, 12, 0)


def test_the_message() -> None:
    message = create_summary_message("All is {well}.\n---\nReally.", NOON, 12)
    assert (message.role, message.content) == snapshot(
        (
            "user",
            """\
[CONTEXT SUMMARY]
This stands for 12 earlier messages of this conversation, which are no longer shown. It was made on 2026-03-04 12:00, when the context had to be shortened. Take it as established: go on from here, and do not ask again for what it says or reopen what it calls decided.

---
All is {well}.
---
Really.\
""",  # noqa: E501
        )
    )
    assert is_summary(message)
    assert summary_of(message) == "All is {well}.\n---\nReally."


def test_only_a_user_s_message_with_the_marker_is_a_summary() -> None:
    assert not is_summary(Message("assistant", "[CONTEXT SUMMARY]"))
    assert not is_summary(Message("user", "What is a [CONTEXT SUMMARY]?"))
    assert not is_summary(Message("user"))


def test_pins_that_are_missing_are_added_word_for_word() -> None:
    summary = with_pins("Keep the port 8443.", ["port 8443", "Never push.", "```\ncode\n```", "Never push."])
    assert summary == snapshot("""\
Keep the port 8443.

## Pinned: word for word

```pinned
Never push.
```

````pinned
```
code
```
````\
""")
    assert pins_in(summary) == ("Never push.", "```\ncode\n```")
    assert without_pins(summary) == "Keep the port 8443."
    assert with_pins(summary, ["Never push."]) == summary


@given(st.lists(st.text(), max_size=4))
def test_any_text_can_be_pinned_and_found_again(pins: list[str]) -> None:
    summary = with_pins("Nothing.", pins)
    assert all(pin in summary for pin in pins)
    again = with_pins("Nothing.", pins_in(summary))
    assert all(pin in again for pin in pins)


class Teller:
    """Says what it is given, or raises it."""

    def __init__(self, name: str, said: str | Exception) -> None:
        self.name = name
        self._said = said

    async def summarize(self, request: SummaryRequest) -> str:
        if isinstance(self._said, Exception):
            raise self._said
        return self._said


REQUEST = SummaryRequest((), (), 100)


def first(*tellers: Teller) -> Written:
    return asyncio.run(first_summary(tellers, REQUEST))


def test_whoever_fails_or_says_nothing_is_passed_over() -> None:
    broken, silent = Teller("editor", ValueError("no model")), Teller("openai", " \n")
    assert first(broken, silent, Teller("extractive", " text "), Teller("never", "asked")) == Written(
        "text", "extractive", ("editor: no model", "openai: an empty summary")
    )


@pytest.mark.parametrize(
    ("tellers", "message"),
    [
        ((), "Nothing was compacted, because nobody wrote a summary (there is no summarizer)."),
        (
            (Teller("a", TimeoutError()), Teller("b", "")),
            "Nothing was compacted, because nobody wrote a summary (a: TimeoutError; b: an empty summary).",
        ),
    ],
)
def test_no_summary_is_an_error(tellers: tuple[Teller, ...], message: str) -> None:
    with pytest.raises(CompactionError) as caught:
        first(*tellers)
    assert (str(caught.value), caught.value.code) == (message, "no-summary")


def test_who_cancels_is_obeyed() -> None:
    class Cancelled(Teller):
        async def summarize(self, request: SummaryRequest) -> str:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        first(Cancelled("a", ""), Teller("b", "text"))


def test_the_instruction_names_what_is_asked() -> None:
    plain = text_of(instruction(limit=900))
    assert plain.startswith("The context of this conversation has to be shortened.")
    assert "at most 900 tokens" in plain
    full = text_of(
        instruction(limit=900, kept=4, pins=["Never push.", "{x}"], instructions=" Keep the schema. ")
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


def test_the_conversation_as_one_text() -> None:
    messages = chat(f"user: find it\nbash: grep -rn {'x' * 3000}\n=> a.py:1\nassistant: Found.")
    prompt = build_summarize_prompt(messages)
    assert prompt.startswith("This is a conversation between a user and an assistant with tools.")
    assert "<user>\nfind it\n</user>\n\n<assistant>\nbash {" in prompt
    assert "characters left out …]" in prompt
    assert "<tool>\na.py:1\n</tool>" in prompt
    assert prompt.endswith(text_of(instruction(limit=4000)))
    assert len(prompt) < 6000
