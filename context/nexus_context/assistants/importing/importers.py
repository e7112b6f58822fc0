"""Imports files of conversations as sessions of a ledger.

Accepts our own exports (`jsonl`) and everything that `transcript` reads.

1. Each conversation becomes a session, also that of a sub-agent. A turn begins with each user message;
   messages before the first one belong to the first turn. The system prompt and the tools are the context of
   the first turn. What the provider said about the last answer of a turn is the outcome of the turn.
2. A session is named after the file, and after its conversation if that has a name.
3. A session that exists is not imported again. One that has grown since is continued, unless it is a fork.
   Messages alone do not identify a conversation, as many begin alike. Two are the same if their own ids
   match. Without ids, they are the same if the names of file and conversation, the system prompt and the
   model match and the file has no errors; if all messages match, the names suffice. Our own exports are also
   identified by the times of their turns. Any other conversation becomes a new session with a free name.
4. Content that cannot be read or stored is a problem with its place, and the rest is imported.
5. The providers' usages in a file are kept with their turns. The growth between two of them corrects our
   counts for that family of models, once for each conversation.
6. Messages are counted before anything is written, so that nobody waits for the ledger while a tokenizer
   works.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from nexus_context.assistants.importing import GZIP, Conversation, LeftOut, jsonl, read_transcript
from nexus_context.conversation.message import Message, content_of
from nexus_context.conversation.reported_usage import growth_report
from nexus_context.conversation.summary import as_summary
from nexus_context.disk import files
from nexus_context.errors import Problem, Severity, Span
from nexus_context.ledger.records import NewTurn, Turn, as_new_turn
from nexus_context.ledger.rows import unwritable
from nexus_context.ledger.store import Ledger
from nexus_context.text import read_limits
from nexus_context.text.read_limits import SMALL
from nexus_context.tokens import TokenCounter, count_message, family_of_counter
from nexus_context.tokens.correction import UsageReport

LIMIT = 1 << 30
"""Largest file, packed and unpacked, in bytes; files of other programs: `transcript.LIMIT`."""

STANDARD_INPUT = "standard input"
"""Stands for a path: input without a name that identifies it."""

LONGEST_NAME = 120
"""Code points of a session's name."""

CounterOf = Callable[[str | None], TokenCounter]
"""The counter for a model; for None, the default counter."""

Outcome = Literal["new", "continued", "known"]

_BEGINNING = 1 << 14  # bytes that identify the format
_ENDINGS = re.compile(r"(?:\.(?:jsonl?|ndjson|gz|txt|traj|md))+\Z", re.IGNORECASE)


class FileSession(msgspec.Struct, frozen=True):
    """A session in a file. What the file does not say of its turns is empty: ids, most token counts and
    times.
    """

    name: str
    turns: tuple[Turn, ...]
    parameters: Mapping[str, Any] = {}  # of the model
    agent: str | None = None  # of a sub-agent's conversation: its id
    ours: bool = False  # from an export of our own
    sound: bool = True  # the file was read without errors

    @property
    def messages(self) -> int:
        return sum(len(turn.messages) for turn in self.turns)


class FileContents(msgspec.Struct, frozen=True):
    """What a file holds. `format` is "nexus" or the format of a transcript, None where nothing was
    understood.

    `lines` has the line of each problem, from 1, in the unpacked file; None for a problem of the whole file.
    `left_out` counts what was left out on purpose; `problems` say that, too.
    """

    format: str | None
    sessions: tuple[FileSession, ...]
    problems: tuple[Problem, ...] = ()
    lines: tuple[int | None, ...] = ()
    left_out: tuple[LeftOut, ...] = ()


class Imported(msgspec.Struct, frozen=True):
    """What became of one session of a file. `turns` and `messages` count what was written."""

    session: str
    outcome: Outcome
    turns: int = 0
    messages: int = 0


# ---------------------------------------------------------------- reading


def read(data: bytes, path: str) -> FileContents:
    """Read the sessions in a file. It never raises, whatever the data is; `path` is for problems and
    names.
    """
    if _is_ours(data, path):
        return _read_ours(data, path)
    transcript = read_transcript(data, path, entire=True, refusal=unwritable)
    several = len(transcript.conversations) > 1
    unnamed = sum(not conversation.name for conversation in transcript.conversations)
    sound = _sound(transcript.problems)
    sessions = []
    for number, conversation in enumerate(transcript.conversations, 1):
        numbered = several and (conversation.name != "" or unnamed > 1)
        name = _called(conversation.name, _stem(path), number if numbered else None)
        event = {"type": "import", "file": os.path.basename(path)}
        if conversation.id is not None:
            event["id"] = conversation.id
        if several or conversation.name not in ("", "1"):
            event["conversation"] = conversation.name
        turns = tuple(turns_of(conversation, event))
        sessions.append(FileSession(_tidy(name), turns, sound=sound, agent=conversation.agent))
    return FileContents(
        transcript.format,
        tuple(sessions),
        transcript.problems,
        transcript.lines,
        left_out=transcript.left_out,
    )


def _is_ours(data: bytes, path: str) -> bool:
    beginning = data[:_BEGINNING]
    if data.startswith(GZIP):
        beginning = read_limits.unpacked(data[:_BEGINNING], SMALL).data[:_BEGINNING]
    return jsonl.is_ours(files.decode(path, beginning).text or "")


def _read_ours(data: bytes, path: str) -> FileContents:
    problems: list[Problem] = []
    if data.startswith(GZIP):
        content = read_limits.unpacked(data, LIMIT)
        data = content.data  # up to any damage
        if content.problem is not None:
            span = Span(0, 0)
            problems.append(Problem(path, span, "transcript.gzip", Severity.ERROR, message=content.problem))
    exported, broken, lines = jsonl.read(jsonl.lines_of(data, path, problems), path)
    of_file: list[int | None] = [None] * len(problems)
    problems += broken
    sound = _sound(problems)
    sessions = tuple(
        FileSession(
            _tidy(exported_session.session),
            tuple(map(_with_mark, exported_session.turns)),
            exported_session.parameters,
            ours=True,
            sound=sound,
        )
        for exported_session in exported
    )
    return FileContents("nexus", sessions, tuple(problems), (*of_file, *lines))


def _with_mark(turn: Turn) -> Turn:
    """A turn of an export with the mark of its summary, as ledgers have it: earlier versions wrote none."""
    if turn.type != "compaction":
        return turn
    return msgspec.structs.replace(turn, messages=tuple(map(as_summary, turn.messages)))


def _sound(problems: Iterable[Problem]) -> bool:
    return all(problem.severity is not Severity.ERROR for problem in problems)


def turns_of(conversation: Conversation, event: Any) -> Iterator[Turn]:
    """Yield the turns of a conversation (rule 1), without token counts. The first one has `event`, the system
    prompt and the tools.
    """
    context = {"system": conversation.system, "tools": list(conversation.tools)}
    present_context: Any = {name: value for name, value in context.items() if value} or None
    outcomes = {answer.message: answer.outcome for answer in conversation.answers}
    start = 0
    for number, messages in enumerate(_groups(conversation.messages), 1):
        end = start + len(messages)
        last_answer_at = next((at for at in range(end - 1, start - 1, -1) if at in outcomes), None)
        start = end
        yield Turn(
            id="",
            seq=number,
            type="query",
            created=_moment(messages),
            tokens=0,
            messages=tuple(messages),
            model=conversation.model,
            event=event,
            context=present_context,
            outcome=None if last_answer_at is None else outcomes[last_answer_at],
        )
        event = present_context = None


def _groups(messages: Sequence[Message]) -> Iterator[Sequence[Message]]:
    """The messages of each turn."""
    starts = [at for at, message in enumerate(messages) if message.role == "user"][1:]
    for start, end in zip([0, *starts], [*starts, len(messages)], strict=True):
        if start < end:
            yield messages[start:end]


def _moment(messages: Sequence[Message]) -> str:
    """When a turn began: ISO 8601, UTC; empty unless a message has an unambiguous time."""
    stamp = next((message.timestamp for message in messages if message.timestamp is not None), None)
    try:
        moment = datetime.fromisoformat(stamp) if isinstance(stamp, str) else None
        if moment is None or moment.tzinfo is None:
            return ""
        return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError):
        return ""


def _stem(path: str) -> str:
    name = os.path.basename(path)
    return _ENDINGS.sub("", name) or name


def _called(name: str, stem: str, number: int | None) -> str:
    """The name of a session, from its conversation and file; `number` if the file has several."""
    if number is None:
        return stem if name in ("", "1") else f"{stem}, {name}"
    return f"{stem}, {name or number}"


def _tidy(name: str) -> str:
    """A name on one line, without terminal control characters."""
    line = "".join(char if char.isprintable() else " " for char in name)
    return " ".join(line.split())[:LONGEST_NAME].rstrip() or "imported"


# ---------------------------------------------------------------- writing


class Importer:
    """Adds sessions of files to one workspace of a ledger. Sessions that are there already are skipped or
    continued (rule 3).
    """

    def __init__(self, ledger: Ledger, workspace: str, counter_of: CounterOf) -> None:
        self._ledger = ledger
        self._workspace = workspace
        self._counter_of = counter_of
        self._names: dict[str, list[str]] | None = None  # digest of the first message → session names

    def add(self, session: FileSession, on_progress: Callable[[int], None] = lambda _: None) -> Imported:
        """Write what the ledger does not have of a session. `on_progress` gets the number of turns processed
        since its last call.

        Raise LedgerError if the ledger cannot be written. A new session was not written then; one that was
        continued may be incomplete.
        """
        outcome, name, count = self._match(session)
        if outcome == "known":
            on_progress(len(session.turns))
            return Imported(name, "known")
        if outcome == "continued":
            return self._continued(name, session, count, on_progress)
        counted_turns = []
        for turn in session.turns:
            counted_turns.append(self._counted(turn))
            on_progress(1)
        name = self._free(session.name)
        report = self._report(counted_turns)
        new_turns = [
            as_new_turn(turn, turn.counts) if turn.type == "query" else turn for turn in counted_turns
        ]
        if report is not None and isinstance(new_turns[-1], NewTurn):
            new_turns[-1] = msgspec.structs.replace(new_turns[-1], report=report)
        self._ledger.import_turns(self._workspace, name, new_turns, parameters=session.parameters)
        self._remember(name, session.turns)
        return Imported(name, "new", len(session.turns), session.messages)

    def _report(self, turns: Sequence[Turn]) -> UsageReport | None:
        """What the providers' usages in an imported conversation say about our counts."""
        model = next((turn.model for turn in reversed(turns) if turn.model), None)
        counter = self._counter_of(model)
        requests: list[tuple[int, int]] = []
        tokens = 0
        for turn in turns:
            answers = [at for at, message in enumerate(turn.messages) if message.role == "assistant"]
            usage = None if turn.outcome is None else turn.outcome.usage
            if (turn.type, turn.counter, turn.model) != ("query", counter.name, model):
                requests.clear()
            elif usage is not None and answers:
                requests.append((tokens + sum(turn.counts[: answers[-1]]), usage.request_tokens))
            tokens += sum(turn.counts)
        return growth_report(family_of_counter(counter).name, requests)

    def _match(self, new_session: FileSession) -> tuple[Outcome, str, int]:
        """Find the session in the ledger that `new_session` is or continues, and how many items exist."""
        ours = _items(new_session.turns)
        best_match: tuple[Outcome, str, int] = ("new", "", 0)
        for name in self._candidates(new_session):
            turns = list(self._ledger.turns(self._workspace, name))
            existing = _items(turns)
            if existing == ours and _is_same_session(new_session, name, turns, entire=True):
                return "known", name, len(ours)
            if not _is_same_session(new_session, name, turns, entire=False):
                continue
            if existing[: len(ours)] == ours:
                best_match = ("known", name, len(ours))
            elif (
                best_match[0] != "known"
                and len(existing) > best_match[2]
                and ours[: len(existing)] == existing
            ):
                session = self._ledger.find(self._workspace, name)
                only_messages = all(isinstance(item, Message) for item in ours[len(existing) :])
                if only_messages and session is not None and session.forked_from is None:
                    best_match = ("continued", name, len(existing))
        return best_match

    def _continued(
        self, name: str, session: FileSession, count: int, on_progress: Callable[[int], None]
    ) -> Imported:
        """Append what follows the first `count` items of `_items`."""
        written_turns = messages = 0
        for turn in session.turns:
            new_messages = turn.messages[count:] if turn.type == "query" else ()
            count = max(count - len(_items([turn])), 0)
            if new_messages:
                counts = turn.counts if len(new_messages) == len(turn.messages) else ()
                continued_turn = msgspec.structs.replace(turn, messages=new_messages, counts=counts)
                counted_turn = self._counted(continued_turn)
                self._ledger.append(self._workspace, name, as_new_turn(counted_turn, counted_turn.counts))
                written_turns, messages = written_turns + 1, messages + len(new_messages)
            on_progress(1)
        return Imported(name, "continued", written_turns, messages)

    def _counted(self, turn: Turn) -> Turn:
        if turn.counter and len(turn.counts) == len(turn.messages):
            return turn
        counter = self._counter_of(turn.model)
        counts = tuple(
            count_message(counter, content_of(message), message.tool_calls, message.role)
            for message in turn.messages
        )
        return msgspec.structs.replace(turn, counter=counter.name, counts=counts, tokens=sum(counts))

    def _free(self, name: str) -> str:
        number, free = 1, name
        while self._ledger.find(self._workspace, free) is not None:
            number += 1
            free = f"{name} ({number})"
        return free

    def _candidates(self, new_session: FileSession) -> list[str]:
        if self._names is None:
            self._names = {}
            for session in self._ledger.sessions(self._workspace):
                self._remember(session.name, self._ledger.turns(self._workspace, session.name))
        return self._names.get(_digest(new_session.turns), [])

    def _remember(self, name: str, turns: Iterable[Turn]) -> None:
        if self._names is not None:
            self._names.setdefault(_digest(turns), []).append(name)


def _digest(turns: Iterable[Turn]) -> str:
    """A digest of the first message."""
    first_message = next((message for turn in turns for message in turn.messages), None)
    return hashlib.sha256(repr(first_message).encode(errors="backslashreplace")).hexdigest()


def _is_same_session(new_session: FileSession, name: str, turns: Sequence[Turn], *, entire: bool) -> bool:
    """Whether a session in a file is the one named `name`, judged by everything except messages.

    `entire`: all of their messages match.
    """
    if new_session.ours:
        times = all(
            new_turn.created == turn.created for new_turn, turn in zip(new_session.turns, turns, strict=False)
        )
        return (
            (name == new_session.name or times)
            if entire
            else (name == new_session.name and times and new_session.sound)
        )
    if not (new_session.turns and turns):
        return False
    file_turn, ledger_turn = new_session.turns[0], turns[0]
    id_, other_id = _about(file_turn, "id"), _about(ledger_turn, "id")
    if id_ and other_id:
        return bool(id_ == other_id)
    has_same_names = _names(file_turn) is not None and _names(file_turn) == _names(ledger_turn)
    if entire and (
        has_same_names or STANDARD_INPUT == _about(file_turn, "file") == _about(ledger_turn, "file")
    ):
        return True
    return (
        has_same_names
        and new_session.sound
        and (file_turn.model, _system(file_turn)) == (ledger_turn.model, _system(ledger_turn))
    )


def _names(first_turn: Turn) -> tuple[Any, Any] | None:
    """What a session was imported from: the file name without endings, and the conversation in it."""
    file = _about(first_turn, "file")
    if not isinstance(file, str) or file == STANDARD_INPUT or _about(first_turn, "type") != "import":
        return None
    return _stem(file), _about(first_turn, "conversation")


def _about(first_turn: Turn, key: str) -> Any:
    return first_turn.event.get(key) if isinstance(first_turn.event, dict) else None


def _system(first_turn: Turn) -> Any:
    return first_turn.context.get("system") if isinstance(first_turn.context, dict) else None


def _items(turns: Iterable[Turn]) -> list[Any]:
    """All messages, with marks for compactions and undos between them."""
    items: list[Any] = []
    for turn in turns:
        if turn.type != "query":
            items.append((turn.type, turn.compaction))
        items += turn.messages
    return items
