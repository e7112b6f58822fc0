"""Show code lenses on the first line of an instruction file: what each assistant in use does with the file.

1. If the file is sent, the lens shows its tokens, and their share of the window of the assistant's model. If
   the file is cut, it shows where; if it is sent later, when; if it is not read, why. The tooltip has the
   whole reason, and the model whose window it is.
2. The command is the one of `code_lens`; its argument names the assistant. Its `prompt` is a range in the
   text of `nexus/context/preview` for that assistant.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nexus_context.assistants.reading.profile_types import Profile
from nexus_context.assistants.views.readers import AssistantUse
from nexus_context.errors import Span
from nexus_context.text.visible import visible_line
from nexus_daemon.features.code_lens import COMMAND, share_text
from nexus_daemon.lsp.convert import Locator
from nexus_daemon.protocol.context import Preview
from nexus_daemon.protocol.shapes import Range

LONGEST_REASON = 70  # characters of a reason in a title; the tooltip has all of it


class RequestRoom(NamedTuple):
    """The tokens that a request to a model may take.

    `source` is a sentence that names the model, and why it is used.
    """

    tokens: int
    source: str


class FileReader(NamedTuple):
    """An assistant and what it does with a file.

    `room` is None if the window of its model is not known. `preview` is the text that it sends. `change` is
    the number of tokens that the unsaved text adds to those of the saved file.
    """

    profile: Profile
    use: AssistantUse
    room: RequestRoom | None
    preview: Preview
    change: int = 0


def reader_lenses(
    readers: Sequence[FileReader], path: str, locate: Locator, *, folder: str
) -> list[dict[str, Any]]:
    """Return the lenses of one file, in the order of `readers`. `folder` is the URI of the folder."""
    return list(_lenses(readers, path, locate, folder))


def _lenses(
    readers: Sequence[FileReader], path: str, locate: Locator, folder: str
) -> Iterator[dict[str, Any]]:
    uri, lens_range = locate.uri(path), locate.range(path, Span(0, 0))
    for reader in readers:
        target: dict[str, Any] = {
            "workspaceFolder": folder,
            "assistant": reader.profile.assistant.name,
            "source": {"uri": uri, "range": lens_range},
        }
        ranges = [
            fragment.range
            for fragment in reader.preview.fragments
            if fragment.source and fragment.source.uri == uri
        ]
        if ranges:
            target["prompt"] = Range(ranges[0].start, ranges[-1].end)
        command = {"title": _title(reader), "command": COMMAND, "arguments": [target]}
        room = reader.room if reader.use.use in ("sent", "cut") else None
        sentences = filter(None, (reader.use.reason, room and room.source))
        if tooltip := " ".join(sentences):
            command["tooltip"] = f"{reader.profile.assistant.title}: {visible_line(tooltip)}"
        yield {"range": lens_range, "command": command}


def _title(reader: FileReader) -> str:
    title, use = reader.profile.assistant.title, reader.use
    reason = "" if use.reason is None else _shortened(visible_line(use.reason).removeprefix(f"{title} "))
    if use.use == "unread":
        return f"{title}: not read · {reason}" if reason else f"{title}: not read"
    if use.use == "later" and not use.tokens:
        return f"{title}: {reason}"
    tokens = f"{title}: {'' if use.exact else '≈ '}{use.tokens:,} token{'' if use.tokens == 1 else 's'}"
    if use.use == "later":
        return f"{tokens} · all of it later"
    share = "" if reader.room is None else f" · {share_text(use.tokens, reader.room.tokens)}"
    change = f" · {reader.change:+,} unsaved" if reader.change else ""
    return f"{tokens}{share}{change} · {reason}" if use.use == "cut" else f"{tokens}{share}{change}"


def _shortened(reason: str) -> str:
    """A reason within a title: no full stop, and not more than there is room for."""
    reason = reason.rstrip(".")
    reason = f"{reason[:1].lower()}{reason[1:]}" if reason.startswith(("Sent ", "It ")) else reason
    return reason if len(reason) <= LONGEST_REASON else f"{reason[:LONGEST_REASON].rsplit(' ', 1)[0]} …"
