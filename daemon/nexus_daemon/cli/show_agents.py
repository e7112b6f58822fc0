"""`nexus show --agent`: what an agent of a folder sees, and how that differs from another agent."""

import argparse
import os
from collections.abc import Iterable

import msgspec

from nexus_context import assembly
from nexus_context.agents import MAIN, ROLES, AgentPool
from nexus_context.errors import RequestError
from nexus_context.layers.bootstrap import agent_file
from nexus_context.prompt.blocks import OWN_TEXTS
from nexus_context.prompt.token_attribution import fragment_tokens
from nexus_context.snapshot import Snapshot
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, load_inputs
from nexus_daemon.sessions.ledger_events import SESSION

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
    """The message for options that exclude each other; None if they fit."""
    described = ", ".join(f"--{name}" for name in _DESCRIBING if getattr(options, name) is not None)
    if options.agent == MAIN and described:
        return f"--agent {MAIN} is the folder itself: leave out {described}, or name another agent."
    set_names = (name for name in _NOT_COMPARED if getattr(options, name) not in (None, False, [], "text"))
    ignored = ", ".join(f"--{name.replace('_', '-')}" for name in set_names)
    if options.diff is not None and ignored:
        return f"--diff compares two prompts: leave out {ignored}."
    return None


def resolve_views(folder: Snapshot, options: argparse.Namespace) -> tuple[Snapshot, Snapshot | None]:
    """The snapshot to show, and the one to compare it with.

    RequestError for an unknown agent, and for one that could not be started.
    """
    description = options.role, options.folder, options.task
    names_agent = any((options.agent, *description))
    if options.diff is None and not names_agent:
        return folder, None
    pool = AgentPool(folder, load_inputs())
    snapshot = folder
    if names_agent and options.agent != MAIN:
        snapshot = _agent(pool, options.agent, options, described=any(description))
    if options.diff is None:
        return snapshot, None
    bare = argparse.Namespace(role=None, folder=None, task=None)
    other = folder if options.diff == MAIN else _agent(pool, options.diff, bare, described=False)
    return snapshot, other


def session_of(snapshot: Snapshot) -> str:
    """The name of the conversation that a turn would be part of."""
    return MAIN if snapshot.agent is None else SESSION + snapshot.agent


def print_difference(snapshot: Snapshot, other: Snapshot, options: argparse.Namespace) -> int:
    """Print what only one of them sees, then a diff of the prompts; returns the exit code."""
    from difflib import unified_diff  # only here, and slow to import

    from rich.text import Text

    out = output.console()
    one, two = _parts(snapshot, options.model), _parts(other, options.model)
    names = _names(snapshot, other, options)
    lines = [
        *_listed(f"Only {names[0]} sees:", [one[key] for key in one if key not in two], "green"),
        *_listed(f"Only {names[1]} sees:", [two[key] for key in two if key not in one], "red"),
        *_changed(one, two, names),
    ]
    if not lines:
        lines = [(f"{names[0]} and {names[1]} see the same.", "")]
    compared = unified_diff(
        other.prompt.text.splitlines(), snapshot.prompt.text.splitlines(), names[1], names[0], lineterm=""
    )
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line, style in (*lines, *((line, colours.get(line[:1], "")) for line in compared)):
        out.print(Text(line, style), soft_wrap=True)
    return 0


class _Part(msgspec.Struct):
    """A file or a section of a prompt: its name, its text and its tokens."""

    name: str
    text: str
    tokens: int
    exact: bool

    @property
    def count(self) -> str:
        return f"{'' if self.exact else '≈'}{self.tokens:,}"


def _agent(pool: AgentPool, name: str | None, options: argparse.Namespace, *, described: bool) -> Snapshot:
    folder = None if options.folder is None else os.fspath(absolute(options.folder))
    agent = pool.view_as(name, folder, options.role, options.task).snapshot
    configured = pool.main.snapshot.effective.get("/agents") or {}
    files = (file.path for layer in agent.layers.layers for file in layer.files)
    if name is None or name in configured or described:
        return agent
    if not any(os.path.basename(path) == agent_file(name) for path in files):
        configured_names = f" Agents of config.json: {', '.join(configured)}." if configured else ""
        raise RequestError(
            f"There is no agent {name!r}: config.json does not define it, and there is no "
            f"{agent_file(name)}.{configured_names} Describe it with --folder, --role or --task.",
            code="unknown-agent",
        )
    return agent


def _names(snapshot: Snapshot, other: Snapshot, options: argparse.Namespace) -> tuple[str, str]:
    one, two = snapshot.agent or MAIN, other.agent or MAIN
    if one == two and one != MAIN:
        values = [(name, getattr(options, name)) for name in _DESCRIBING]
        words = [
            f"--{name}" if name == "task" else f"--{name} {value}"
            for name, value in values
            if value is not None
        ]
        one = " ".join((one, *(("with", *words) if words else ())))
    return one, two


def _parts(snapshot: Snapshot, model: str | None) -> dict[str, _Part]:
    """The files of a prompt by path, and its other sections by title, in their order."""
    prompt = snapshot.prompt
    _, counter = assembly.model_of(snapshot, model)
    parts: dict[str, _Part] = {}
    counts = fragment_tokens(prompt, counter)
    for fragment, tokens in zip(prompt.fragments, counts, strict=True):
        path = fragment.path
        of_a_file = path is not None and fragment.layer is not None and not path.startswith(OWN_TEXTS)
        name = path if of_a_file and path is not None else fragment.title
        part = parts.setdefault(name, _Part(name, "", 0, counter.exact))
        part.tokens += tokens
        if fragment.verbatim or not of_a_file:  # the same file may stand under another heading
            part.text += prompt.text[fragment.span.start : fragment.span.end].strip()
    return parts


def _listed(title: str, parts: Iterable[_Part], style: str) -> list[tuple[str, str]]:
    """Lines with their styles."""
    rows = list(parts)
    if not rows:
        return []
    width = max(len(part.count) for part in rows)
    return [(title, "bold"), *((f"  {part.count:>{width}}  {part.name}", style) for part in rows), ("", "")]


def _changed(one: dict[str, _Part], two: dict[str, _Part], names: tuple[str, str]) -> list[tuple[str, str]]:
    """The parts that both have, with different texts."""
    lines = [
        (f"  {part.name}: {part.count} tokens for {names[0]}, {two[key].count} for {names[1]}", "")
        for key, part in one.items()
        if key in two and two[key].text != part.text
    ]
    return [("Different:", "bold"), *lines, ("", "")] if lines else []
