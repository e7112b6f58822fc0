"""Runs `nexus show --agent`: what an agent of a folder sees, and how that differs from another agent."""

import argparse
import os
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import msgspec

from nexus_context.agents import MAIN, ROLES
from nexus_context.errors import RequestError
from nexus_context.folder.layers.bootstrap import agent_file
from nexus_context.folder.prompt.blocks import OWN_TEXTS
from nexus_context.text.lines import LineIndex
from nexus_daemon import protocol
from nexus_daemon.api import config, context
from nexus_daemon.cli import output
from nexus_daemon.cli.asking import FolderClient
from nexus_daemon.cli.folder import absolute
from nexus_daemon.lsp.convert import offset_at, uri_to_path
from nexus_daemon.lsp.lsp_types import DEFAULT_ENCODING

_DESCRIBING = ("folder", "role", "task")
_NOT_COMPARED = (
    "format",
    "tokens",
    "source",
    "layers",
    "message",
    "skill",
    "budget",
    "strategy",
    "messages",
    "conversation",
    "no_folder",
    "session",
    "event",
    "tools",
    "memory",
)


def arguments(command: argparse.ArgumentParser) -> None:
    """Add the options of `nexus show` that are about agents."""
    group = command.add_argument_group("an agent that the folder could start")
    group.add_argument(
        "--agent",
        metavar="NAME",
        help="an agent defined in `agents` of config.json (below its parents) or by a file AGENT.<NAME>.md",
    )
    group.add_argument("--role", choices=ROLES, help="its role (default: the configured one, else worker)")
    group.add_argument(
        "--folder", metavar="PATH", help="its working directory: the folder or a directory beneath it"
    )
    group.add_argument("--task", help="its task")
    group.add_argument(
        "--diff",
        metavar="OTHER",
        help="print what only it or only OTHER sees; OTHER is main or an agent of the folder",
    )


def wrong_usage(options: argparse.Namespace) -> str | None:
    """Return the message for options that exclude each other. None if they fit."""
    described = ", ".join(f"--{name}" for name in _DESCRIBING if getattr(options, name) is not None)
    if options.agent == MAIN and described:
        return f"--agent {MAIN} is the folder itself: leave out {described}, or name another agent."
    set_names = (name for name in _NOT_COMPARED if getattr(options, name) not in (None, False, [], "text"))
    ignored = ", ".join(f"--{name.replace('_', '-')}" for name in set_names)
    if options.diff is not None and ignored:
        return f"--diff compares two prompts: leave out {ignored}."
    return None


def view_of(options: argparse.Namespace) -> protocol.ViewAs | None:
    """Return the agent to show. None means the folder itself."""
    if options.agent == MAIN or not any((options.agent, options.role, options.folder, options.task)):
        return None
    cwd = None if options.folder is None else os.fspath(absolute(options.folder))
    return protocol.ViewAs(agent_id=options.agent, cwd=cwd, role=options.role, task=options.task)


def other_view(options: argparse.Namespace) -> protocol.ViewAs | None:
    """Return the agent that `--diff` compares with. None means the folder itself."""
    return None if options.diff == MAIN else protocol.ViewAs(agent_id=options.diff)


def check_agent(client: FolderClient, view: protocol.ViewAs) -> None:
    """Raise RequestError unless the agent is described by the settings, a file or the command line."""
    name = view.agent_id
    if name is None or any((view.cwd, view.role, view.task)):
        return
    view_params = protocol.AgentViewParams(client.uri)
    configured = client.ask(config.effective, view_params).config.get("agents") or {}
    if name in configured:
        return
    layers = client.ask(context.layers, protocol.LayersParams(client.uri, view_as=view)).layers
    uris = (file.uri for layer in layers for file in layer.files)
    if not any(unquote(uri).rpartition("/")[2] == agent_file(name) for uri in uris):
        configured_names = f" Agents of config.json: {', '.join(configured)}." if configured else ""
        raise RequestError(
            f"There is no agent {name!r}: config.json does not define it, and there is no "
            f"{agent_file(name)}.{configured_names} Describe it with --folder, --role or --task.",
            code="unknown-agent",
        )


def print_difference(
    first_context: protocol.AssembledContext,
    second_context: protocol.AssembledContext,
    options: argparse.Namespace,
) -> int:
    """Print what only one of two agents sees, then a diff of the prompts; return the exit code."""
    from difflib import unified_diff  # only here, and slow to import

    from rich.text import Text

    out = output.console()
    parts, other_parts = _parts(first_context), _parts(second_context)
    names = _names(first_context, second_context, options)
    lines = [
        *_listed(f"Only {names[0]} sees:", [parts[key] for key in parts if key not in other_parts], "green"),
        *_listed(
            f"Only {names[1]} sees:", [other_parts[key] for key in other_parts if key not in parts], "red"
        ),
        *_changed(parts, other_parts, names),
    ]
    if not lines:
        lines = [(f"{names[0]} and {names[1]} see the same.", "")]
    compared = unified_diff(
        second_context.system_prompt.splitlines(),
        first_context.system_prompt.splitlines(),
        names[1],
        names[0],
        lineterm="",
    )
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line, style in (*lines, *((line, colours.get(line[:1], "")) for line in compared)):
        out.print(Text(line, style), soft_wrap=True)
    return 0


class _PromptPart(msgspec.Struct):
    """A file or a section of a prompt: its name, its text and its tokens."""

    name: str
    text: str
    tokens: int
    exact: bool

    @property
    def count(self) -> str:
        return f"{'' if self.exact else '≈'}{self.tokens:,}"


def _names(
    first_context: protocol.AssembledContext,
    second_context: protocol.AssembledContext,
    options: argparse.Namespace,
) -> tuple[str, str]:
    first_name, second_name = first_context.agent or MAIN, second_context.agent or MAIN
    if first_name == second_name and first_name != MAIN:
        values = [(name, getattr(options, name)) for name in _DESCRIBING]
        words = [
            f"--{name}" if name == "task" else f"--{name} {value}"
            for name, value in values
            if value is not None
        ]
        first_name = " ".join((first_name, *(("with", *words) if words else ())))
    return first_name, second_name


def _parts(assembled: protocol.AssembledContext) -> dict[str, _PromptPart]:
    """The files of a prompt by path, and its other sections by title, in their order."""
    parts: dict[str, _PromptPart] = {}
    for fragment, text in fragments_with_text(assembled):
        path = None if fragment.source is None else uri_to_path(fragment.source.uri)
        is_generated = fragment.layer is None and not fragment.verbatim
        of_a_file = path is not None and not is_generated and not path.startswith(OWN_TEXTS)
        name = path if of_a_file and path is not None else fragment.title
        part = parts.setdefault(name, _PromptPart(name, "", 0, assembled.usage.counter.exact))
        part.tokens += fragment.tokens
        if fragment.verbatim or not of_a_file:  # the same file may stand under another heading
            part.text += text.strip()
    return parts


def fragments_with_text(
    assembled: protocol.AssembledContext,
) -> Iterator[tuple[protocol.Fragment, str]]:
    """Yield the fragments of the prompt, each with its text."""
    explanation = assembled.explanation
    assert explanation is not None  # noqa: S101 - a dry run has one
    lines = LineIndex(assembled.system_prompt)
    for fragment in explanation.fragments:
        start, end = (
            offset_at(lines, position.line, position.character, DEFAULT_ENCODING)
            for position in (fragment.range.start, fragment.range.end)
        )
        yield fragment, assembled.system_prompt[start:end]


def _listed(title: str, parts: Iterable[_PromptPart], style: str) -> list[tuple[str, str]]:
    """Lines with their styles."""
    rows = list(parts)
    if not rows:
        return []
    width = max(len(part.count) for part in rows)
    return [(title, "bold"), *((f"  {part.count:>{width}}  {part.name}", style) for part in rows), ("", "")]


def _changed(
    parts: dict[str, _PromptPart], other_parts: dict[str, _PromptPart], names: tuple[str, str]
) -> list[tuple[str, str]]:
    """The parts that both have, with different texts."""
    lines = [
        (f"  {part.name}: {part.count} tokens for {names[0]}, {other_parts[key].count} for {names[1]}", "")
        for key, part in parts.items()
        if key in other_parts and other_parts[key].text != part.text
    ]
    return [("Different:", "bold"), *lines, ("", "")] if lines else []
