"""Handle the hooks of other assistants: what each event does, and what the answer is.

1. Events are taken in the order in which they arrive, one at a time (`take`). Taking one is quick: slow work
   is done later by a job, or by the function that computes the answer.
2. `compacting`: a job mirrors the session into the ledger, and another reads from the transcript what could
   be given back later. The assistant does not wait for either. If the setting `views.conversations` is off,
   no transcript is opened.
3. `summary`: Claude Code reports the end of the agent that summarizes. That agent has an empty type, and its
   last message is the summary. The report comes before `start`, while the transcript has no summary yet.
4. `compacted`: Codex has written the messages that are left.
5. `start` after a compaction answers with what was dropped. If it is not known what is left, there is no
   answer, since then it is not known what was dropped either.
6. `prompt` answers with memory and knowledge, if the hook was set up for it.
7. `loaded`: the files are kept for `nexus show --for` (`loaded_files`), those of many events in one write.
"""

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import partial
from threading import Lock

import msgspec

from nexus_context.assistants.mirror import mirror_session
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.sessions.recall import SessionFacts, recall_dropped
from nexus_context.disk import files
from nexus_context.errors import RequestError
from nexus_context.tokens import TokenCounter, counter_for
from nexus_daemon.assistants.hooks import memory_answer
from nexus_daemon.assistants.hooks.hook_event import HookCall, HookPayload, read_payload
from nexus_daemon.assistants.hooks.hook_folders import HookFolders
from nexus_daemon.assistants.hooks.loaded_files import LoadedFile, LoadedSession, add_files
from nexus_daemon.assistants.hooks.running import RUNNING, RunningSessions
from nexus_daemon.assistants.hooks.session_facts import read_facts, read_present

logger = logging.getLogger(__name__)

TOKENS = 1_500
"""The most tokens that are given back after a compaction, unless the hook says otherwise."""
MOST_TOKENS = 20_000
MOST_SESSIONS = 20  # whose facts are in memory
WAIT_S = 1.5  # for facts that are still being read
GATHER_S = 0.4  # before files are written: a session loads several at once

Answer = Callable[[], str]


class _Session:
    """What is known of a session until the compaction is over."""

    __slots__ = ("facts", "present")

    def __init__(self) -> None:
        self.facts: Future[SessionFacts | None] | None = None
        self.present: Future[tuple[str, ...]] | None = None


class HookHandler:
    """Handles hooks in the daemon's `folders`. One thread calls `take`; jobs run in other threads."""

    def __init__(self, folders: HookFolders, running: RunningSessions = RUNNING) -> None:
        self._folders = folders
        self._running = running
        self._sessions: OrderedDict[tuple[str, str], _Session] = OrderedDict()
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="hook-reading")
        self._jobs = ThreadPoolExecutor(1, thread_name_prefix="hook-jobs")
        self._waiting: set[tuple[str, str]] = set()  # jobs that have not begun
        self._loaded: list[tuple[Mapping[str, str], LoadedSession]] = []
        self._lock = Lock()

    def take(self, call: HookCall) -> Answer | None:
        """Take an event. Returns a function that computes its answer, or None if it gets no answer."""
        payload = read_payload(call.payload)
        if payload is None or call.kind is None:
            return None
        self._note(call, payload)
        if call.kind == "loaded":
            self._add_file(call, payload)
        elif call.kind == "compacting":
            self._begin_compaction(call, payload)
        elif call.kind == "summary" and payload.agent_type == "" and payload.last_assistant_message:
            self._session(call, payload).present = _done((payload.last_assistant_message,))
        elif call.kind == "compacted" and payload.transcript_path:
            self._end_compaction(call, payload)
        elif call.kind == "start" and payload.source == "compact":
            return self._answer_start(call, payload)
        elif call.kind == "prompt" and call.memory:
            return self._answer_prompt(call, payload)
        return None

    def close(self) -> None:
        """Wait for the jobs that run. Jobs that have not begun are dropped."""
        self._reading.shutdown(cancel_futures=True)
        self._jobs.shutdown(cancel_futures=True)

    def flush(self) -> None:
        """Wait until all jobs so far are done."""
        self._reading.submit(int).result()
        self._jobs.submit(int).result()

    def _submit_once(self, key: tuple[str, str], job: Callable[[], None]) -> None:
        """Have a job done, unless the same one has not begun yet."""

        def run() -> None:
            with self._lock:
                self._waiting.discard(key)
            job()

        with self._lock:
            is_waiting = key in self._waiting
            self._waiting.add(key)
        if not is_waiting:
            self._jobs.submit(run)

    # ------------------------------------------------------------ events

    def _note(self, call: HookCall, payload: HookPayload) -> None:
        if call.kind == "end":
            self._running.end(call.assistant, payload.session_id)
            return
        is_waiting = call.kind in ("turn", "start") and payload.source != "compact"
        self._running.note(
            call.assistant,
            payload.session_id,
            folder=payload.folder,
            transcript=payload.transcript_path,
            state="waiting" if is_waiting else "working",
            process=_process(call, payload),
        )

    def _session(self, call: HookCall, payload: HookPayload) -> _Session:
        key = (call.assistant, payload.session_id)
        session = self._sessions.pop(key, None) or _Session()
        self._sessions[key] = session
        while len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _begin_compaction(self, call: HookCall, payload: HookPayload) -> None:
        path = payload.transcript_path
        if not path:
            return
        session = self._session(call, payload)
        session.present = None
        session.facts = self._reading.submit(self._read, path, payload.folder, call)
        # after the facts: it takes the processor for longer
        mirror = partial(self._mirror, path, payload.folder, call)
        self._reading.submit(self._submit_once, ("mirror", path), mirror)

    def _end_compaction(self, call: HookCall, payload: HookPayload) -> None:
        session = self._sessions.get((call.assistant, payload.session_id))
        if session is not None and session.present is None and payload.transcript_path:
            session.present = self._reading.submit(
                self._read_present, payload.transcript_path, payload.folder, call
            )

    def _answer_start(self, call: HookCall, payload: HookPayload) -> Answer | None:
        session = self._sessions.pop((call.assistant, payload.session_id), None)
        if session is None or session.facts is None or session.present is None:
            return None
        facts_future, present_future = session.facts, session.present
        limit = min(TOKENS if call.tokens is None else call.tokens, MOST_TOKENS)

        def answer() -> str:
            try:
                earlier_facts, present_texts = (
                    facts_future.result(timeout=WAIT_S),
                    present_future.result(timeout=WAIT_S),
                )
            except (FutureTimeoutError, TimeoutError):
                logger.info("a transcript takes too long to be read: nothing is given back")
                return ""
            if earlier_facts is None or not present_texts:
                return ""
            return _as_context(
                call.event, recall_dropped(earlier_facts, present_texts, _counter(call), limit)
            )

        return answer

    def _answer_prompt(self, call: HookCall, payload: HookPayload) -> Answer:
        limit = min(memory_answer.TOKENS if call.tokens is None else call.tokens, MOST_TOKENS)

        def answer() -> str:
            find = partial(
                memory_answer.find_memory,
                prompt=payload.prompt,
                counter=_counter(call),
                limit=limit,
                besides=(call.assistant, payload.session_id),
            )
            try:
                text = self._folders.ask(payload.folder, call.environ, find)
            except (RequestError, TimeoutError) as error:
                logger.info("a prompt gets no memory: %s", str(error) or "its folder takes too long to load")
                return ""
            return _as_context(call.event, text or "")

        return answer

    def _read(self, path: str, folder: str, call: HookCall) -> SessionFacts | None:
        """The facts of a transcript; the counter that the answer needs is loaded, too."""
        if not self._folders.reads_conversations(folder, call.environ):
            return None
        facts = read_facts(path, call.assistant)
        _counter(call).count(path)
        return facts

    def _read_present(self, path: str, folder: str, call: HookCall) -> tuple[str, ...]:
        """The texts that the last compaction left."""
        if not self._folders.reads_conversations(folder, call.environ):
            return ()
        return read_present(path, call.assistant)

    def _mirror(self, path: str, folder: str, call: HookCall) -> None:
        """Write what the ledger of a folder does not have of a transcript."""
        if not self._folders.reads_conversations(folder, call.environ):
            return
        try:
            ledger = self._folders.ledger(folder, call.environ)
            if ledger is None or not ledger.store.persists:
                return
            summary = mirror_session(ledger.store, path, call.assistant, write=ledger.mirror)
        except (RequestError, TimeoutError) as error:
            logger.warning("a session of another assistant cannot be kept: %s", error)
        except Exception:
            logger.exception("keeping a session of another assistant failed")
        else:
            for file in summary.files:
                if file.failure is not None:
                    logger.warning("a transcript of %s cannot be kept: %s", call.assistant, file.failure)
            turns = summary.total("turns")
            logger.info("kept %d turns of a session of another assistant before its compaction", turns)

    # ------------------------------------------------------------ files

    def _add_file(self, call: HookCall, payload: HookPayload) -> None:
        if not payload.file_path or not payload.folder:
            return
        file = LoadedFile(
            payload.file_path,
            payload.load_reason,
            type=payload.memory_type,
            parent=payload.parent_file_path,
            trigger=payload.trigger_file_path,
        )
        folder = files.real_path(payload.folder)
        session = LoadedSession(call.assistant, folder, payload.session_id, at=time.time(), files=(file,))
        with self._lock:
            self._loaded.append((call.environ, session))
            is_first = len(self._loaded) == 1
        if is_first:
            self._jobs.submit(self._write_files)

    def _write_files(self) -> None:
        time.sleep(GATHER_S)
        with self._lock:
            loaded, self._loaded = self._loaded, []
        try:
            add_files(loaded[0][0], _merged(session for _, session in loaded))
        except OSError as error:
            logger.warning("what sessions loaded cannot be kept: %s", error.strerror)


def _merged(sessions: Iterable[LoadedSession]) -> list[LoadedSession]:
    """The sessions, each once with all of its files."""
    merged: dict[tuple[str, str], LoadedSession] = {}
    for session in sessions:
        key = (session.folder, session.session)
        earlier_session = merged.get(key)
        merged[key] = (
            session
            if earlier_session is None
            else msgspec.structs.replace(earlier_session, files=(*earlier_session.files, *session.files))
        )
    return list(merged.values())


def _process(call: HookCall, payload: HookPayload) -> int | None:
    """The process of the program, if it says."""
    number = call.environ.get("CLAUDE_PID", "") if call.assistant == "claude-code" else str(payload.pid)
    return int(number) if number.isascii() and number.isdecimal() and 0 < int(number) < 1 << 31 else None


def _done(value: tuple[str, ...]) -> Future[tuple[str, ...]]:
    future: Future[tuple[str, ...]] = Future()
    future.set_result(value)
    return future


def _counter(call: HookCall) -> TokenCounter:
    """Return the counter for an answer: the one of the program's model."""
    program = PROGRAMS.get(call.assistant)
    return counter_for(None if program is None else program.instructions.assistant.model)


def _as_context(event: str, text: str) -> str:
    """An answer that adds a text to the context; empty without one."""
    if not text:
        return ""
    output = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return msgspec.json.encode(output).decode()
