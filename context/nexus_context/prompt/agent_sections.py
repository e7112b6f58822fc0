"""The sections that only an agent below others has: its own files before its parent's, and its role."""

import os
from collections.abc import Iterator

from nexus_context.layers.agent_definitions import MAIN
from nexus_context.prompt import texts
from nexus_context.prompt.blocks import MANAGER, WORKER, AgentGrant, Block, Generation
from nexus_context.prompt.gather import PromptContents
from nexus_context.prompt.sections import Part, bootstrap_file, by_file, join_groups, sourced
from nexus_context.prompt.texts import Piece


def folder_files(contents: PromptContents) -> PromptContents | Generation:
    """The files in their places in the workspace folder's own prompt."""
    grant = contents.grant
    if grant is None or (not grant.above and grant.text is None):
        return contents
    return next((one for one in contents.above if one.agent is None), Generation())


def configurations(contents: PromptContents) -> Iterator[list[Part]]:
    """The agent's own files, then those of the agents between it and the folder, nearest first."""
    grant = contents.grant
    if grant is None:
        return
    if grant.text is not None:
        yield _system_prompt(grant.text)
    elif grant.above:
        generation_of_agent = Generation(grant.agent, contents.bootstrap, contents.blocks)
        yield _configuration(generation_of_agent, "subagent", f"Subagent Configuration ({grant.agent})", {})
    for generation in contents.above:
        if generation.text is not None:
            yield _system_prompt(generation.text)
        elif generation.agent is not None:
            name = [Piece(generation.agent)]
            title = f"Parent Agent Configuration ({generation.agent})"
            yield _configuration(generation, "subagent_parent", title, {"name": name})


def role(grant: AgentGrant | None) -> list[Part]:
    """What an agent of its role does, and its task."""
    if grant is None:
        return []
    task = texts.unix_lines(grant.task or "").strip()
    values = {
        "task": [Piece(task)] if task else None,
        "manager": [Piece(grant.reports_to or MAIN)],
        "agent": [Piece(grant.agent)],
    }
    groups = []
    if task:
        groups.append([Part("role", None, "Task", texts.fill("role_task", values))])
    if grant.role in (MANAGER, WORKER):
        title = f"Role: {grant.role}"
        groups.append([Part("role", None, title, texts.fill(f"role_{grant.role}", values))])
    return join_groups(groups, "\n\n")


def _configuration(
    generation: Generation, name: str, title: str, values: dict[str, list[Piece]]
) -> list[Part]:
    """The files of one agent under one heading, each after a line with its path.

    Each file has its own title below the heading's, since costs are listed by title.
    """
    heading = texts.fill(name, values)
    groups = [_instructions(block, title) for block in generation.blocks]
    groups += [bootstrap_file(block) for block in generation.bootstrap]
    if not groups:
        return []
    end = "\n" if generation.blocks else "\n\n"
    first = Part("subagent", None, title, [*heading, Piece(end, heading[-1].path)])
    return [first, *join_groups(groups, "\n\n")]


def _instructions(block: Block, title: str) -> list[Part]:
    named = f"{title}: {os.path.basename(block.path)}"
    return by_file("subagent", block.layer.name, named, block.path, pieces=sourced(block))


def _system_prompt(text: str) -> list[Part]:
    """A system prompt that replaces files; traced to no file."""
    content = texts.unix_lines(text).strip()
    return [Part("subagent", None, "Given System Prompt", [Piece(content)])] if content else []
