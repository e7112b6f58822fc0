"""Runs `nexus chat`: a message and its answer, one or many, and the commands in between."""

import argparse
import contextlib
import getpass
import sys
from collections.abc import Callable

import msgspec

from nexus_context.agents import MAIN
from nexus_context.conversation.half_pairs import without_halves
from nexus_context.conversation.message import text_of
from nexus_context.errors import RequestError
from nexus_context.text.visible import visible_line
from nexus_context.turn.endpoint import ADDRESSES
from nexus_daemon import api, protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.agent_table import print_agents
from nexus_daemon.cli.asking import FolderClient, writing
from nexus_daemon.cli.chat.screen import Screen
from nexus_daemon.cli.chat.terminal import Terminal
from nexus_daemon.cli.tables import print_usage

STREAM = 1
"""The token of what is streamed: there is one stream."""
LONGEST_MESSAGE = 16 << 20
"""Characters of a message from standard input."""
HELP = """\
/context      what the next message sends, and what it costs
/compact      replace old messages by a summary; /undo takes it back
/undo         go back to before the last message, in a fork: nothing is deleted
/fork [NAME]  go on in a fork of the conversation
/resume NAME  go on in another conversation; without a name, list them
/agents       list the agents of the folder
/quit         end the chat, as Ctrl-D does

Every other line is a message. Ctrl-C cancels an answer: what came of it is kept.
"""


def answer_once(options: argparse.Namespace) -> int:
    """Send one message and print the answer; return the exit code."""
    text = options.print
    if text == "-":
        text = "" if sys.stdin is None else sys.stdin.read(LONGEST_MESSAGE)
    is_json = options.format == "json"
    screen = Screen(is_plain=is_json or not output.is_read_by_person(), shows_text=not is_json)
    with writing("chat", options.folder, Terminal(screen, options.allow)) as client:
        chat = _Chat(client, screen, options)
        chat.choose_local_provider()
        result = chat.send(text)
    if screen.failure is not None:
        raise screen.failure
    if is_json:
        output.json_value(msgspec.to_builtins(result))
    elif not screen.has_ended_line:
        output.line("")
    return 0


def ask_key(options: argparse.Namespace) -> int:
    """Ask for the key of the configured provider, and store it. Returns the exit code."""
    with writing("chat", options.folder) as client:
        provider = client.snapshot().effective.get("/provider/name")
        if provider not in ADDRESSES:
            output.complain("chat", f"provider.name is {provider}: set it in the global config.json first.")
            return 1
        key = getpass.getpass(f"Key for {provider} (empty: forget it): ").strip()
        client.store_key(provider, key)
        output.line("The key is stored." if key else "The key is forgotten.")
    return 0


def converse(options: argparse.Namespace) -> int:
    """Send what the user types, line by line, until the end of the input. Returns the exit code."""
    screen = Screen(is_plain=not output.is_read_by_person())
    with contextlib.suppress(ImportError):  # Windows has none
        import readline  # noqa: F401 - `input` edits lines and has a history with it
    with writing("chat", options.folder, Terminal(screen, options.allow)) as client:
        chat = _Chat(client, screen, options)
        output.page("Chat with the context of this folder: /help lists the commands.\n")
        chat.choose_local_provider()
        chat.check_provider()
        while True:
            try:
                line = input("> ").strip()
            except EOFError:
                output.line("")
                return 0
            except KeyboardInterrupt:
                output.line("")
                continue
            if line in ("/quit", "/exit"):
                return 0
            if line:
                chat.take(line)


class _Chat:
    """A conversation of the terminal."""

    def __init__(self, client: FolderClient, screen: Screen, options: argparse.Namespace) -> None:
        self._client = client
        self._screen = screen
        self._session: str | None = options.session
        self._agent: str | None = options.agent
        self._model: str | None = options.model
        self._compacted: str | None = None
        """The session that was compacted last, unless something was said since."""

    @property
    def _name(self) -> str:
        return self._session or (MAIN if self._agent is None else f"agent:{self._agent}")

    def check_provider(self) -> None:
        """Say how to get a model, if there is none; all commands work without one."""
        try:
            self._client.check_provider(self._agent)
        except RequestError as error:
            output.complain("chat", str(error))

    def choose_local_provider(self) -> None:
        """Offer a model server of this machine, if the settings name no provider."""
        from nexus_daemon.cli.chat.local_models import offer_local_provider

        model = offer_local_provider(self._client)
        self._model = self._model or model

    def send(self, text: str) -> protocol.ChatSendResult:
        """Send a message; RequestError if that failed."""
        if not text.strip():
            raise RequestError("The message is empty.", code="bad-option")
        params = protocol.ChatSendParams(
            self._client.uri,
            self._session,
            self._agent,
            message=without_halves(text),  # bytes that are no UTF-8
            options=protocol.ChatOptions(model=self._model),
            partial_result_token=STREAM,
        )
        try:
            result = self._client.ask(api.chat.send, params)
        finally:
            self._screen.flush()
        self._session = result.session
        self._compacted = None
        return result

    def take(self, line: str) -> None:
        """Do what the user typed. Mistakes and failures are told."""
        name, _, argument = line.partition(" ")
        try:
            if not line.startswith("/"):
                self._answer(line)
            elif name in _COMMANDS:
                _COMMANDS[name](self, argument.strip())
            else:
                output.complain("chat", f"there is no command {name}; /help lists them.")
        except RequestError as error:
            output.complain("chat", str(error))
        except KeyboardInterrupt:
            self._screen.flush()
            output.beside("Cancelled. What was said is kept.\n")

    def _answer(self, text: str) -> None:
        result = self.send(text)
        usage, spending = result.usage, result.spending
        facts = [
            visible_line(result.session),
            visible_line(result.model),
            f"{usage.percent:g} % of {usage.available:,} tokens",
            output.counted(result.steps, "step"),
            "no price known" if spending.usd is None else f"${spending.usd:.4f}",
        ]
        if result.stop_reason not in ("end_turn", "stop", "STOP", "completed"):
            facts.append(f"ended: {visible_line(result.stop_reason)}")
        output.beside(f"[{', '.join(facts)}]\n")

    def show_context(self, _: str) -> None:
        params = protocol.UsageParams(self._client.uri, self._session, self._agent)
        print_usage(self._client.ask(api.context.usage, params))

    def compact(self, instructions: str) -> None:
        params = protocol.CompactParams(self._client.uri, self._name, instructions=instructions or None)
        receipt = self._client.ask(api.session.compact, params).receipt
        self._compacted = self._name
        before, after = receipt.tokens_before, receipt.tokens_after
        messages = output.counted(receipt.replaced_messages, "message")
        output.line(
            f"A summary replaces {messages}: {before:,} tokens became {after:,}. /undo restores them."
        )

    def undo(self, _: str) -> None:
        if self._compacted is not None:
            self._client.ask(
                api.session.undo_compaction, protocol.UndoParams(self._client.uri, self._compacted)
            )
            self._compacted = None
            output.line("The messages are sent again; the summary is not.")
            return
        info = self._client.find_session(self._name)
        first_turn = max(1, info.turns - _MOST_TURNS + 1)
        turns = self._client.ask(
            api.stored_sessions.turns,
            protocol.TurnsParams(self._client.uri, self._name, first=first_turn, limit=_MOST_TURNS),
        ).turns
        user_turns = (
            turn for turn in reversed(turns) if any(message.role == "user" for message in turn.messages)
        )
        last_query = next((turn for turn in user_turns if turn.type == "query"), None)
        if last_query is None or last_query.parent is None:
            raise RequestError(
                f"Nothing was said before the last message of {self._name}.", code="bad-option"
            )
        last_prompt = next(text_of(message) for message in last_query.messages if message.role == "user")
        self._fork(self._free_name(), turn=last_query.parent)
        output.line(f"The last message was: {visible_line(last_prompt[:_LONGEST_QUOTE])}")

    def fork(self, name: str) -> None:
        self._fork(name or self._free_name(), turn=None)

    def resume(self, name: str) -> None:
        if name:
            self._session, self._agent = self._client.find_session(name).session, None
            output.line(f"This is {self._session} now.")
            return
        result = self._client.ask(api.stored_sessions.list_sessions, protocol.ListParams(self._client.uri))
        for session in result.sessions:
            output.line(
                f"{session.session}: {output.counted(session.turns, 'turn')}, {session.tokens:,} tokens"
            )

    def list_agents(self, _: str) -> None:
        result = self._client.ask(api.agent.list_agents, protocol.FolderParams(self._client.uri))
        if result.agents:
            print_agents(result.agents)
        else:
            output.line("No agents are running.")

    def show_help(self, _: str) -> None:
        output.page(HELP)

    def _fork(self, name: str, *, turn: str | None) -> None:
        params = protocol.ForkParams(self._client.uri, self._name, to=name, turn=turn)
        previous_name = self._name
        self._session = self._client.ask(api.session.fork, params).session
        output.line(f"This is {self._session} now; {previous_name} stays as it is.")

    def _free_name(self) -> str:
        result = self._client.ask(api.stored_sessions.list_sessions, protocol.ListParams(self._client.uri))
        taken_names = {session.session for session in result.sessions}
        stem = self._name.rpartition("-")[0] if self._name.rpartition("-")[2].isdecimal() else self._name
        return next(
            f"{stem}-{number}"
            for number in range(2, len(taken_names) + 3)
            if f"{stem}-{number}" not in taken_names
        )


_MOST_TURNS = 200
"""Turns in which the last message of the user is looked for: tools make many of one."""
_LONGEST_QUOTE = 200
_COMMANDS: dict[str, Callable[[_Chat, str], None]] = {
    "/context": _Chat.show_context,
    "/compact": _Chat.compact,
    "/undo": _Chat.undo,
    "/fork": _Chat.fork,
    "/resume": _Chat.resume,
    "/agents": _Chat.list_agents,
    "/help": _Chat.show_help,
}
