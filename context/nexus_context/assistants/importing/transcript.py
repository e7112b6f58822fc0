"""Reads the bytes of a transcript, whatever program wrote it, as conversations of neutral messages.

Accepted as JSONL, as a list, or gzipped: messages in OpenAI's, Anthropic's and our own format; request bodies
(`messages`, with or without what a log put around them); records of tau-bench (`traj`); and the formats of
READERS, each with a module of its own. One format is text: aider's history.

1. The format is detected by content, never by a name. Each of READERS takes the records that it understands.
   Consecutive messages among the other records form one conversation; each request body and each benchmark's
   record is a conversation of its own.
2. System messages at the beginning of a conversation are its system prompt; later ones stay in place.
3. A part that cannot be read, or that causes an error in this package, is a problem with its place, and the
   rest is read. What a format leaves out on purpose is counted, with the reason.
4. Nothing is read past LIMIT, packed or unpacked, nor past the limits of `read_limits`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from nexus_context.assistants.claude_code import web_export as claude_web
from nexus_context.assistants.programs import WITH_SESSIONS
from nexus_context.assistants.transcripts import (
    aider,
    chat_records,
    copilot,
    gemini,
    openhands,
    pydantic_ai,
    responses,
    swe_agent,
)
from nexus_context.assistants.transcripts.conversation import (
    Conversation,
    Format,
    FormatReader,
    leading_system,
)
from nexus_context.assistants.transcripts.records import LeftOut, Record, Refusal, Report, records
from nexus_context.disk import files
from nexus_context.errors import Problem, Severity, Span
from nexus_context.text import read_limits
from nexus_context.text.read_limits import GZIP
from nexus_context.text.visible import visible_line

LIMIT = 64 << 20
"""Largest transcript, packed and unpacked, in bytes."""

READERS = (
    *(program.format_reader for program in WITH_SESSIONS.values()),
    claude_web.READER,
    openhands.READER,
    swe_agent.READER,
    pydantic_ai.READER,
    copilot.CHATS,
    copilot.EVENTS,
    gemini.READER,
    responses.READER,
)
"""The formats with modules of their own, the most specific first."""

_START = Span(0, 0)  # of the file as a whole
_OF_RECORDS = ("transcript.message", "transcript.more")  # of no use if no record is a message
_NO_JSON = ("transcript.json", "layer.encoding")
_BROKEN = ("transcript.gzip", "transcript.too-large")
_WRAPPERS = ("body", "request")
_EXPECTED = (
    "Expected JSON lines or a list of messages (role and content), request bodies (messages), tau-bench "
    "records (traj), or a file of Claude Code, Claude's data export, Codex, opencode, aider, SWE-agent, "
    "OpenHands, pydantic-ai, VS Code, Copilot CLI, Gemini CLI, Gemini or OpenAI's Responses API."
)


class Transcript(msgspec.Struct, frozen=True):
    """What was read of one transcript. `format` is None if nothing was understood.

    `lines` has the line of each problem, from 1, in the unpacked file; None for a problem of the whole file.
    `left_out` counts what was left out on purpose; `problems` say that, too.
    """

    format: Format | None
    conversations: tuple[Conversation, ...]
    problems: tuple[Problem, ...] = ()
    lines: tuple[int | None, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


def read_transcript(
    data: bytes | str,
    path: str,
    *,
    format: str | None = None,  # noqa: A002 - as in `Transcript`
    entire: bool = False,
    refusal: Refusal = lambda _: None,
) -> Transcript:
    """Read a transcript. It never raises, whatever the data is.

    `format` names the program that is known to have written it; with None, the format is detected. With
    `entire`, the messages before the compactions of a session are included: what happened, rather than what
    the model would be sent. `path` is for the problems. `refusal` returns why the caller cannot store a
    message, else None; such a message is left out and reported.
    """
    report = Report(path, refusal)
    text = data if isinstance(data, str) else _text(data, path, report)
    if read_limits.values_in(text, read_limits.MOST_VALUES) > read_limits.MOST_VALUES:
        report.add(_START, "transcript.too-large", read_limits.too_many_values())
        text = ""
    reader = _Conversations(report)
    parsed: list[Record] = []
    if aider.is_text(text):
        reader.take_text(text)
    else:
        parsed = records(path, text, report)
        for format_reader in (candidate for candidate in READERS if format in (None, candidate.format)):
            parsed = reader.take_records(format_reader, parsed, entire=entire)
        for record in parsed:
            try:
                reader.take(record)
            except Exception as error:  # noqa: BLE001 - one record must not keep the others from being read
                report.add_internal(record.span, record.place, error)
    reader.close()
    conversations = tuple(
        conversation for conversation in reader.conversations if conversation.messages or conversation.system
    )
    problems = report.problems()
    if not conversations:
        problems = tuple(problem for problem in problems if problem.code not in _OF_RECORDS)
        if _is_other(text, parsed, problems):
            line = text[: len(text) - len(text.lstrip())].count("\n") + 1
            message = f"The file is not a transcript: line {line} is not JSON. {_EXPECTED}"
            problems = (Problem(path, _START, "transcript.other", Severity.ERROR, message=message),)
        if all(problem.severity is not Severity.ERROR for problem in problems):
            message = (
                f"The file has no messages{_describe_keys(parsed)}." if text.strip() else "The file is empty."
            )
            empty = Problem(
                path, _START, "transcript.empty", Severity.ERROR, message=f"{message} {_EXPECTED}"
            )
            problems = (empty, *problems)
    lines = tuple(
        read_limits.line_at(text, problem.span.start) if problem.span.end else None for problem in problems
    )
    form = reader.format if conversations else None
    return Transcript(form, conversations, problems, lines, left_out=report.left_out())


def joined(conversations: Sequence[Conversation]) -> Conversation:
    """Join conversations to one. It has the first system prompt, the first model, and the tools of all, one
    of each name.
    """
    tools: dict[str, dict[str, Any]] = {}
    for conversation in conversations:
        for tool in conversation.tools:
            tools.setdefault(_tool_name(tool), tool)
    return Conversation(
        messages=tuple(message for conversation in conversations for message in conversation.messages),
        system=next(
            (conversation.system for conversation in conversations if conversation.system is not None), None
        ),
        tools=tuple(tools.values()),
        name=f"{len(conversations):,} conversations",
        model=next(
            (conversation.model for conversation in conversations if conversation.model is not None), None
        ),
    )


class _Conversations:
    """Groups records into conversations."""

    def __init__(self, report: Report) -> None:
        self.conversations: list[Conversation] = []
        self.format: Format = "neutral"
        self._report = report
        self._loose: list[Record] = []

    def take_text(self, text: str) -> None:
        """Read a history of aider."""
        self.format = "aider"
        try:
            self.conversations += aider.convert(text, self._report)
        except Exception as error:  # noqa: BLE001 - the file is refused, not the whole import
            self._report.add_internal(_START, "The file", error)

    def take_records(self, reader: FormatReader, parsed: list[Record], *, entire: bool) -> list[Record]:
        """Read the records that are in a format; return the others."""
        try:
            if not reader.is_file([record.value for record in parsed]):
                return parsed
            matches = [reader.is_record(record.value) for record in parsed]
            matching_records = [record for record, is_match in zip(parsed, matches, strict=True) if is_match]
            self.conversations += reader.convert(matching_records, self._report, entire)
        except Exception as error:  # noqa: BLE001 - the file is refused, not the whole import
            self._report.add_internal(_START, "The file", error)
            return parsed
        self._note_form(reader.format)
        return [record for record, is_match in zip(parsed, matches, strict=True) if not is_match]

    def take(self, record: Record) -> None:
        value = record.value
        inner = _unwrapped(value)
        listed = inner if isinstance(inner, list) else _listed(inner)
        if listed is None:
            choice = _choice(value)
            self._note(choice)
            self._loose.append(record._replace(value=choice))
            return
        self.close()
        if isinstance(inner, dict) and "traj" in inner:
            self.format = "tau-bench"
        name = _name(value) or f"{len(self.conversations) + 1}"
        self._add(
            [Record(item, record.span, f"{record.place}, message {at}") for at, item in enumerate(listed, 1)],
            about=inner if isinstance(inner, dict) else {},
            name=name,
        )

    def close(self) -> None:
        """Finish the conversation of consecutive messages."""
        if self._loose:
            self._add(self._loose, about={}, name="")
            self._loose = []

    def _add(self, parsed: Iterable[Record], *, about: dict[str, Any], name: str) -> None:
        listed = list(parsed)
        for record in listed:
            self._note(record.value)
        messages = chat_records.convert(listed, self._report)
        system, conversation_messages = leading_system(messages)
        if "system" in about:
            self._note_form("anthropic")
            system = _system_text(about["system"])
        tools, model = about.get("tools"), about.get("model")
        self.conversations.append(
            Conversation(
                messages=tuple(conversation_messages),
                system=system,
                tools=tuple(tool for tool in tools if isinstance(tool, dict))
                if isinstance(tools, list)
                else (),
                name=name,
                model=model if isinstance(model, str) and model else None,
            )
        )

    def _note(self, value: Any) -> None:
        self._note_form(chat_records.form_of(value))

    def _note_form(self, form: Any) -> None:
        """Note the format of the file: the first that is detected."""
        if self.format == "neutral" and form is not None:
            self.format = form


def _text(data: bytes, path: str, report: Report) -> str:
    if data.startswith(GZIP):
        unpacked = read_limits.unpacked(data, LIMIT)
        data = unpacked.data  # up to any damage
        if unpacked.problem is not None:
            code = "transcript.too-large" if unpacked.refused else "transcript.gzip"
            report.add(_START, code, unpacked.problem)
    elif len(data) > LIMIT:
        message = (
            f"The file is too large: it has {len(data):,} bytes, and at most {LIMIT:,} are read. Split it."
        )
        report.add(_START, "transcript.too-large", message)
        return ""
    decoded = files.decode(path, data)
    for problem in decoded.problems:
        # byte order marks, line ends and NULs do not matter in JSON lines
        if problem.code == "layer.encoding":
            report.add(problem.span, problem.code, problem.message)
    return decoded.text or ""


def _describe_keys(parsed: Sequence[Record]) -> str:
    """The keys of the first objects that nobody understood."""
    keys = dict.fromkeys(
        str(key)[:40] for record in parsed[:20] if isinstance(record.value, dict) for key in record.value
    )
    return f", but objects with the keys {', '.join(map(visible_line, [*keys][:12]))}" if keys else ""


def _is_other(text: str, parsed: Sequence[Record], problems: Sequence[Problem]) -> bool:
    """Whether a text that was not understood is something else, rather than a broken transcript."""
    first_character = text.lstrip().removeprefix("[").lstrip()[:1]
    return (
        first_character not in ("", "{")
        and not any(isinstance(record.value, dict) for record in parsed)
        and any(problem.code in _NO_JSON or problem.code.startswith("json.") for problem in problems)
        and all(problem.code not in _BROKEN for problem in problems)
    )


def _unwrapped(value: Any) -> Any:
    """A request body, without what a log put around it."""
    if isinstance(value, dict) and "role" not in value:
        for key in _WRAPPERS:
            if isinstance(value.get(key), dict) and _listed(value[key]) is not None:
                return value[key]
    return value


def _listed(value: Any) -> list[Any] | None:
    """The messages of a request body or a benchmark's record."""
    if not isinstance(value, dict) or "role" in value:
        return None
    return next((value[key] for key in ("messages", "traj") if isinstance(value.get(key), list)), None)


def _choice(value: Any) -> Any:
    """The message in an answer of chat completions; anything else unchanged."""
    choices = value.get("choices") if isinstance(value, dict) and "role" not in value else None
    first_choice = choices[0] if isinstance(choices, list) and choices else None
    return first_choice["message"] if isinstance(first_choice, dict) and "message" in first_choice else value


def _name(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    if "task_id" in value:
        trial = f", trial {value['trial']}" if "trial" in value else ""
        return f"task {value['task_id']}{trial}"
    return next((value[key] for key in ("custom_id", "id") if isinstance(value.get(key), str)), "")


def _system_text(system: Any) -> str | None:
    """Anthropic's system prompt: text, or blocks of text."""
    if isinstance(system, list):
        texts = (block.get("text") for block in system if isinstance(block, dict))
        return "\n\n".join(text for text in texts if isinstance(text, str))
    return system if isinstance(system, str) else None


def _tool_name(tool: dict[str, Any]) -> str:
    function = tool.get("function")
    named = function if isinstance(function, dict) else tool
    return str(named.get("name", ""))
