"""Runs `nexus agents spawn --run` and `follow`: an agent at work, in this terminal or in another process."""

import argparse
from collections.abc import Callable

import msgspec

from nexus_context.agents import MAIN
from nexus_context.conversation.message import Message, text_of
from nexus_context.errors import RequestError
from nexus_context.folder.prompt.agent_tools import LONGEST_TEXT
from nexus_context.text.visible import visible, visible_line
from nexus_daemon import api, protocol
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import FolderClient, reading, writing
from nexus_daemon.cli.chat.conversation import STREAM
from nexus_daemon.cli.chat.screen import LONGEST_CALL, Screen, short_json
from nexus_daemon.cli.chat.terminal import Terminal

LOOK_S = 1.0
MOST_TURNS = 1_000


def run_agent(options: argparse.Namespace, spawn: Callable[[str], protocol.SpawnParams]) -> int:
    """Start an agent, have it work on its task here, and leave its report for its manager.

    `spawn` makes the parameters of the request from the folder's URI. Returns the exit code.
    """
    screen = Screen(is_plain=options.json or not output.is_read_by_person(), shows_text=not options.json)
    with writing("agents", options.folder, Terminal(screen, options.tools or ())) as client:
        client.check_provider(None)
        agent = client.ask(api.agent.spawn, spawn(client.uri))
        name = visible_line(agent.agent_id)
        try:
            result = client.ask(api.chat.send, _task(options, client, agent.session))
        except KeyboardInterrupt:
            screen.flush()
            output.complain("agents", f"{name} was stopped; it is live, and its conversation is kept.")
            return 1
        screen.flush()
        report = text_of(result.message)
        manager = agent.parent or MAIN
        if report.strip():
            client.ask(
                api.agent.message,
                protocol.AgentMessageParams(
                    client.uri, source=agent.agent_id, target=manager, content=report[:LONGEST_TEXT]
                ),
            )
    if options.json:
        output.json_value(msgspec.to_builtins(result))
        return 0
    spending = result.spending
    cost = "no price known" if spending.usd is None else f"${spending.usd:.4f}"
    steps = output.counted(result.steps, "step")
    output.beside(f"\n{name} is done ({steps}, {cost}); its report waits for the next turn of {manager}.\n")
    return 0


def follow_agent(options: argparse.Namespace) -> int:
    """Print what an agent says and does until it ends; return the exit code."""
    with reading("agents", options.folder) as client:
        agent = client.ask(api.agent.get, protocol.AgentParams(client.uri, options.agent))
        next_turn = 1
        try:
            while True:
                next_turn = _print_turns(client, agent.session, next_turn)
                output.flush()
                if not _is_live(client, options.agent):
                    output.beside(f"{visible_line(options.agent)} has ended.\n")
                    return 0
                output.pause(LOOK_S)
        except KeyboardInterrupt:
            return 0


def _task(options: argparse.Namespace, client: FolderClient, session: str) -> protocol.ChatSendParams:
    limits = protocol.ChatOptions(
        max_steps=options.max_steps, max_tokens=options.max_tokens, max_usd=options.max_usd
    )
    return protocol.ChatSendParams(
        client.uri,
        session,
        options.agent,
        message=options.task,
        options=limits,
        partial_result_token=STREAM,
    )


def _print_turns(client: FolderClient, session: str, first_turn: int) -> int:
    """Print the turns from `first_turn` on. Return the number of the turn to continue with."""
    params = protocol.TurnsParams(client.uri, session, first=first_turn, limit=MOST_TURNS)
    try:
        turns = client.ask(api.stored_sessions.turns, params).turns
    except RequestError:  # nothing was said yet
        return first_turn
    for turn in turns:
        for message in turn.messages:
            _print_message(message)
    return turns[-1].seq + 1 if turns else first_turn


def _print_message(message: Message) -> None:
    text = text_of(message)
    if message.role == "tool":
        output.line(f"  {message.name}: {short_json(text, LONGEST_CALL)}")
    elif text.strip():
        output.page(f"{message.role}: {visible(text)}\n")
    for call in message.tool_calls:
        output.line(f"> {call.name} {short_json(call.arguments, LONGEST_CALL)}")


def _is_live(client: FolderClient, name: str) -> bool:
    result = client.ask(api.agent.list_agents, protocol.FolderParams(client.uri))
    return any(agent.agent_id == name for agent in result.agents)
