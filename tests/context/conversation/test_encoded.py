"""The JSON of a conversation, one by one and in pieces."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.conversation.encoded import PIECE, Encoded
from nexus_context.conversation.message import Message


def check(lengths: list[int]) -> list[int]:
    """Encode messages of such lengths, asking in between; return the lengths of the pieces."""
    messages = [Message("user", f"{number} ".ljust(length, "é")) for number, length in enumerate(lengths)]
    encoded = Encoded()
    for number, message in enumerate(messages, 1):
        encoded.extend([message])
        if number % 7 == 0:
            assert len(encoded.each) == number
            assert (
                msgspec.json.decode(msgspec.json.encode(encoded.pieces()), type=list[Message])[-1] == message
            )
    assert [msgspec.json.decode(one, type=Message) for one in encoded.each] == messages
    assert msgspec.json.encode(encoded.pieces()) == msgspec.json.encode(messages)
    return [len(memoryview(piece)) for piece in encoded.pieces()]


@given(st.lists(st.sampled_from([1, 50, 5_000, PIECE]), max_size=30))
def test_pieces_are_the_messages(lengths: list[int]) -> None:
    assert all(size >= PIECE for size in check(lengths)[:-1])


def test_many_short_messages_are_few_pieces() -> None:
    assert len(check([100] * 3000)) == 6
    assert check([]) == []
