"""The sections of the prompt, each as parts: runs of pieces under one title."""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

import msgspec

from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import Effective
from nexus_context.errors import Span
from nexus_context.layers.model import ANCESTOR_PREFIX, DEFAULTS, GLOBAL, Kind, Layer
from nexus_context.prompt import texts
from nexus_context.prompt.blocks import Block, Generation, PromptSection
from nexus_context.prompt.environment import Environment, one_line
from nexus_context.prompt.gather import PromptContents
from nexus_context.prompt.texts import Piece

SHIPPED = "(shipped)"
"""Replaces the path of a file that ships with Nexus: its location means nothing to a model."""


class PromptFacts(msgspec.Struct, frozen=True):
    """What a request or the model registry adds to the settings. `window` is in tokens.

    `skip_skills` leaves out all skills; `skill_filter` leaves out all but those that these names or patterns
    match. `timezone` replaces that of the settings. `skills` names the active ones. `tools` are those of
    the request, by name and description.
    """

    model: str | None = None
    window: int | None = None
    additional: str | None = None
    now: datetime | None = None
    timezone: str | None = None
    skip_skills: bool = False
    skill_filter: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()
    tools: tuple[tuple[str, str], ...] = ()


NO_FACTS = PromptFacts()


class Part(NamedTuple):
    """A run of pieces under one title; `section` and `title` are not for the model."""

    section: str
    layer: str | None
    title: str
    pieces: Sequence[Piece]


def join_groups(groups: Iterable[list[Part]], separator: str) -> list[Part]:
    """The groups in order, with the separator between two that are not empty.

    A separator belongs to the part before it.
    """
    parts: list[Part] = []
    for group in groups:
        if parts and group and separator:
            before = parts[-1]
            end = before.pieces[-1].source.end
            parts.append(before._replace(pieces=(Piece(separator, before.pieces[-1].path, Span(end, end)),)))
        parts.extend(group)
    return parts


def layered(contents: PromptContents | Generation) -> list[Part]:
    """`# System Configuration` and the files of each layer under the layer's heading."""
    groups: list[list[Part]] = []
    for _, blocks in groupby(contents.blocks, key=lambda block: id(block.layer)):
        of_layer = list(blocks)
        groups.extend(_block(block, headed=block is of_layer[0]) for block in of_layer)
    if not groups:
        return []
    heading = Part("layers", None, "System Configuration", texts.fill("configuration", {}))
    return join_groups([[heading], *groups], "\n\n")


def bootstrap(contents: PromptContents | Generation, *kinds: Kind) -> list[Part]:
    """The bootstrap files of some kinds, each under its heading; empty for kinds that no layer has."""
    return join_groups((bootstrap_file(block) for block in contents.bootstrap if block.kind in kinds), "\n\n")


def additional(text: str | None) -> list[Part]:
    """What the request itself adds; traced to no file."""
    content = texts.unix_lines(text or "").strip()
    if not content:
        return []
    filled = texts.fill("additional", {"content": [Piece(content)]})
    return [Part("additional", None, "Additional Instructions", [Piece(piece.text) for piece in filled])]


def environment(folder: str, host: Environment) -> list[Part]:
    """The host and the folder."""
    values = {
        "host": _plain(host.host),
        "os": _plain(host.os),
        "arch": _plain(host.arch),
        "folder": _plain(folder),
        "terminal": _plain(host.terminal),
        "mode": _plain(host.mode),
    }
    return [Part("environment", None, "Environment", texts.fill("environment", values))]


def active(effective: Effective, facts: PromptFacts) -> list[Part]:
    """The settings that the model should know: model, window, permission level."""
    configured = effective.get("/provider/model")
    model = facts.model or configured
    limited = effective.get("/context/max_tokens") is not None
    values = {
        "model": _setting(effective, "/provider/model", model) if model == configured else _plain(model),
        "window": _setting(effective, "/context/max_tokens" if limited else None, facts.window),
        "permission": _setting(effective, "/permissions/level", effective.get("/permissions/level")),
    }
    return [Part("active", None, "Active Configuration", texts.fill("active", values))]


def mcp_servers(servers: Sequence[McpServer]) -> list[Part]:
    """The table of the servers in force, which Nexus does not start; empty without one."""
    rows: list[Piece] = []
    for server in servers:
        if server.shadowed_by is not None:
            continue
        row = texts.text("mcp_server").format(
            name=_cell(server.name),
            type=server.type,
            origin=_cell(server.origin),
            status="configured" if server.enabled else "disabled",
        )
        rows.append(Piece(f"\n{row}" if rows else row, server.path, server.span))
    if not rows:
        return []
    return [Part("mcp", None, "MCP Servers", texts.fill("mcp_servers", {"rows": rows}))]


def date(effective: Effective, now: datetime | None, zone: str | None = None) -> list[Part]:
    """The date, only with `datetime.placement = system`: it changes the prompt once a day.

    With a `datetime.format`, the time in that format. `zone` replaces the time zone of the settings.
    """
    settings = effective.get("/context/datetime") or {}
    if now is None or settings.get("placement") != "system":
        return []
    moment = {name: _plain(text) for name, text in texts.moment(now, settings, zone=zone).items()}
    return [Part("date", None, "Date", texts.fill("date_time" if settings.get("format") else "date", moment))]


def custom(section: PromptSection) -> list[Part]:
    """A custom section of the user."""
    name = [Piece(one_line(section.name), section.path, section.span)]
    filled = texts.fill("custom", {"name": name, "content": section.pieces})
    pieces = texts.retraced(filled, "custom", section.path, Span(section.span.start, section.span.start))
    return by_file("custom", section.layer, section.name, section.path, pieces=pieces)


def _block(block: Block, *, headed: bool) -> list[Part]:
    path, layer = block.path, block.layer
    text, title = _heading(layer, path)
    pieces = [*text, Piece("\n", path), *sourced(block)] if headed else sourced(block)
    return by_file("layers", layer.name, title, path, pieces=pieces)


def bootstrap_file(block: Block) -> list[Part]:
    """A bootstrap file under the heading of its kind."""
    name = f"bootstrap_{block.kind}"
    heading = texts.retraced(texts.fill(name, {}), name, block.path)
    title = texts.text(name).lstrip("# ")
    pieces = [*heading, Piece("\n", block.path), *sourced(block)]
    return by_file(block.kind, block.layer.name, title, block.path, pieces=pieces)


def sourced(block: Block) -> list[Piece]:
    """The text of a file after a line with its path, or with the note that it ships with Nexus."""
    location = SHIPPED if block.layer.name == DEFAULTS else _one_line(block.path)
    path = [Piece(location, block.path)]
    filled = texts.fill("source", {"path": path, "content": block.pieces})
    return texts.retraced(filled, "source", block.path)


def _heading(layer: Layer, path: str) -> tuple[list[Piece], str]:
    """The heading of a layer, traced to a file, and the title of that file's text."""
    kind = layer.name.partition(":")[0]
    name = one_line(layer.name.removeprefix(ANCESTOR_PREFIX))
    filled = texts.fill(f"layer_{kind}", {"name": [Piece(name, path)]})
    pieces = texts.retraced(filled, f"layer_{kind}", path)
    title = "".join(piece.text for piece in pieces).lstrip("# ")
    if os.path.basename(path) == "README.md" and layer.name not in (DEFAULTS, GLOBAL):
        title += ": README.md"
    return pieces, title


def by_file(section: str, layer: str, title: str, path: str, pieces: Sequence[Piece]) -> list[Part]:
    """Parts of the file's own text and of its imports, whose titles include the imported file.

    The last part is the file's own, possibly empty, so that a following separator does not belong to an
    import.
    """
    parts = []
    for origin, run in groupby(pieces, key=lambda piece: piece.path):
        foreign = origin is not None and origin != path and not origin.startswith(str(texts.DIRECTORY))
        part_title = f"{title}: {os.path.basename(str(origin))}" if foreign else title
        parts.append(Part(section, layer, part_title, list(run)))
    if pieces and pieces[-1].path != path:
        end = max((piece.source.end for piece in pieces if piece.path == path), default=0)
        parts.append(Part(section, layer, title, [Piece("", path, Span(end, end))]))
    return parts


def _setting(effective: Effective, pointer: str | None, value: object) -> list[Piece] | None:
    """A setting's value, traced to where it is set."""
    if value is None:
        return None
    chain = effective.provenance.get(pointer, ()) if pointer else ()
    winner = next((entry for entry in reversed(chain) if entry.wins and entry.document is not None), None)
    text = one_line(str(value))
    return [Piece(text, winner.path, winner.span)] if winner is not None else [Piece(text)]


def _plain(value: str | None) -> list[Piece] | None:
    return None if value is None else [Piece(_one_line(value))]


def _one_line(value: str) -> str:
    """A value on one line; a path keeps its blanks."""
    return value.replace("\r", " ").replace("\n", " ")


def _cell(value: str) -> str:
    return one_line(value).replace("\\", "\\\\").replace("|", "\\|")
