"""Runs `nexus agents list`, `spawn`, `follow`, `message` and `dispose`."""

import argparse

import msgspec

from nexus_daemon import protocol
from nexus_daemon.api import agent as handlers
from nexus_daemon.cli import output
from nexus_daemon.cli.agent_table import print_agents
from nexus_daemon.cli.asking import answer
from nexus_daemon.cli.folder import absolute


def run_list(options: argparse.Namespace) -> int:
    result = answer("agents", options.folder, handlers.list_agents, protocol.FolderParams)
    if options.json:
        output.json_value(msgspec.to_builtins(result))
    elif result.agents:
        print_agents(result.agents)
    else:
        output.complain(
            "agents", f"{absolute(options.folder)} has no running agents; nexus agents spawn NAME starts one."
        )
    return 0


def run_spawn(options: argparse.Namespace) -> int:
    permissions = {
        name: getattr(options, name)
        for name in ("level", "allow", "deny")
        if getattr(options, name) is not None
    }
    if options.run and not options.task:
        output.complain("agents", "--run needs a task: --task TEXT.")
        return 2

    def params(uri: str) -> protocol.SpawnParams:
        return protocol.SpawnParams(
            uri,
            agent_id=options.agent,
            cwd=options.cwd,
            role=options.role,
            task=options.task,
            parent=options.parent,
            system_prompt=options.system_prompt,
            model=options.model,
            tools=options.tools,
            permissions=permissions or None,
        )

    if options.run:
        from nexus_daemon.cli.agents.running import run_agent  # the provider, which other actions do not need

        return run_agent(options, params)
    agent = answer("agents", options.folder, handlers.spawn, params)
    if options.json:
        output.json_value(msgspec.to_builtins(agent))
        return 0
    tokens = output.counted(agent.usage.total, "token")
    output.line(
        f"{agent.agent_id!r} is running as {agent.role} in {agent.cwd}: {tokens}, session {agent.session!r}."
    )
    return 0


def run_follow(options: argparse.Namespace) -> int:
    from nexus_daemon.cli.agents.running import follow_agent

    return follow_agent(options)


def run_message(options: argparse.Namespace) -> int:
    result = answer(
        "agents",
        options.folder,
        handlers.message,
        lambda uri: protocol.AgentMessageParams(
            uri,
            source=options.source,
            target=options.agent,
            content=options.text,
            priority=options.priority,
            ttl_seconds=options.ttl,
            node=options.node,
            task=options.task,
        ),
    )
    if options.json:
        output.json_value(msgspec.to_builtins(result))
        return 0
    output.line(f"The message waits for the next turn of {options.agent!r}.")
    return 0


def run_dispose(options: argparse.Namespace) -> int:
    ended = answer(
        "agents",
        options.folder,
        handlers.dispose,
        lambda uri: protocol.AgentParams(uri, options.agent),
    )
    if options.json:
        output.json_value(msgspec.to_builtins(ended))
        return 0
    for name in ended.disposed:
        output.line(f"{name!r} has ended.")
    return 0
