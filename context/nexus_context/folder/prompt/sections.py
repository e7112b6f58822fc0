"""Writes the sections of the prompt, each as parts: runs of pieces under one title.

Skills (`skills`):

1. The index has name, description and path of each skill that the request does not leave out, in the order of
   `Layers.skills`. The model reads a skill's file, or calls the tool READ_SKILL where the request offers it;
   or the request activates the skill.
2. Active skills are those that the request names, in the order of the index. A name outside the index is an
   error. A request without names activates none.
3. The text of an active skill is sent as it is: its imports are not followed. Its tools and examples come
   after it.

Capabilities (`capabilities`, `tool_summary`): a line of names for each kind that there is something of:
skills, tools, MCP servers, memory, knowledge, agents, credentials. The lines say which servers and
credentials are ready.

4. At most MOST_LISTED names of each kind are listed. An empty section is left out.
5. Tools are those that the request offers, sorted by name. The sections change only when the tools do, and
   tools precede the prompt in what providers cache anyway. A prompt without a request with tools (a preview)
   mentions none.
6. With `tools.summary`, the tools follow with the first sentence of their descriptions. That text belongs to
   the request: it is traced to no file.

An agent below others has its own files before those of its parents, and its role (`agent_configurations`).
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from nexus_context.config import fixes
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import Effective
from nexus_context.config.patterns import Patterns
from nexus_context.errors import RequestError, Span
from nexus_context.folder.layers.agent_definitions import MAIN
from nexus_context.folder.layers.layer_types import (
    ANCESTOR_PREFIX,
    DEFAULTS,
    GLOBAL,
    Kind,
    Layer,
    Layers,
    LayerSkill,
)
from nexus_context.folder.prompt import texts
from nexus_context.folder.prompt.blocks import MANAGER, WORKER, AgentGrant, Block, Generation, PromptSection
from nexus_context.folder.prompt.environment import Environment, one_line
from nexus_context.folder.prompt.gather import PromptContents
from nexus_context.folder.prompt.texts import Piece
from nexus_context.folder.skills.relevance import about_task
from nexus_context.folder.skills.skill import Skill

SHIPPED = "(shipped)"
"""Replaces the path of a file that ships with Nexus: its location means nothing to a model."""
SECTION = "skills"
READ_SKILL = "read_skill"
"""The tool with which a model reads a skill."""
LONGEST_CATEGORY = 40  # characters
MOST_NAMED = 20  # of the offered skills in an error
MOST_LISTED = 20
MAX_SENTENCE = 200  # characters of a tool's description
_END = re.compile(r"[.!?](?=\s+[^\Wa-z\d_]|\s*$)|。|\n\s*\n")  # "e.g. v1.2" ends no sentence


class PromptFacts(msgspec.Struct, frozen=True):
    """What a request or the model registry adds to the settings. `window` is in tokens.

    `skip_skills` leaves out all skills; `skill_filter` leaves out all but those that these names or patterns
    match. `timezone` replaces that of the settings. `skills` names the active ones. `tools` are the names and
    descriptions of the request's tools.
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
    """A run of pieces under one title. `section` and `title` are not for the model."""

    section: str
    layer: str | None
    title: str
    pieces: Sequence[Piece]


def join_groups(groups: Iterable[list[Part]], separator: str) -> list[Part]:
    """Join the groups in order, with the separator between two that are not empty.

    A separator belongs to the part before it.
    """
    parts: list[Part] = []
    for group in groups:
        if parts and group and separator:
            last_part = parts[-1]
            end = last_part.pieces[-1].source.end
            parts.append(
                last_part._replace(pieces=(Piece(separator, last_part.pieces[-1].path, Span(end, end)),))
            )
        parts.extend(group)
    return parts


def layered(contents: PromptContents | Generation) -> list[Part]:
    """Return `# System Configuration` and the files of each layer under the layer's heading."""
    groups: list[list[Part]] = []
    for _, blocks in groupby(contents.blocks, key=lambda block: id(block.layer)):
        of_layer = list(blocks)
        groups.extend(_block(block, headed=block is of_layer[0]) for block in of_layer)
    if not groups:
        return []
    heading = Part("layers", None, "System Configuration", texts.fill("configuration", {}))
    return join_groups([[heading], *groups], "\n\n")


def bootstrap(contents: PromptContents | Generation, *kinds: Kind) -> list[Part]:
    """Return the bootstrap files of these kinds, each under its heading. Empty if no layer has one."""
    return join_groups((bootstrap_file(block) for block in contents.bootstrap if block.kind in kinds), "\n\n")


def additional(text: str | None) -> list[Part]:
    """Return the text that the request itself adds. It is traced to no file."""
    content = texts.unix_lines(text or "").strip()
    if not content:
        return []
    filled = texts.fill("additional", {"content": [Piece(content)]})
    return [Part("additional", None, "Additional Instructions", [Piece(piece.text) for piece in filled])]


def environment(folder: str, host: Environment) -> list[Part]:
    """Return the section about the host and the folder."""
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
    """Return the settings that the model should know: model, window, permission level."""
    configured = effective.get("/provider/model")
    model = facts.model or configured
    limited = effective.get("/context/max_tokens") is not None
    values = {
        "model": _setting(effective, "/provider/model", model) if model == configured else _plain(model),
        "window": _setting(effective, "/context/max_tokens" if limited else None, facts.window),
        "permission": _setting(effective, "/permissions/level", effective.get("/permissions/level")),
    }
    return [Part("active", None, "Active Configuration", texts.fill("active", values))]


def mcp_servers(servers: Sequence[McpServer], contents: PromptContents) -> list[Part]:
    """Return the table of the servers in force. Empty if there is none."""
    rows: list[Piece] = []
    for server in servers:
        if server.shadowed_by is not None:
            continue
        row = texts.text("mcp_server").format(
            name=_cell(server.name),
            type=server.type,
            origin=_cell(server.origin),
            status=_cell(contents.lacks(server) or "configured") if server.enabled else "disabled",
        )
        rows.append(Piece(f"\n{row}" if rows else row, server.path, server.span))
    if not rows:
        return []
    return [Part("mcp", None, "MCP Servers", texts.fill("mcp_servers", {"rows": rows}))]


def date(effective: Effective, now: datetime | None, zone: str | None = None) -> list[Part]:
    """Return the date.

    It is empty unless `datetime.placement` is `system`: a date changes the prompt once a day. With a
    `datetime.format`, it is the time in that format. `zone` replaces the time zone of the settings.
    """
    settings = effective.get("/context/datetime") or {}
    if now is None or settings.get("placement") != "system":
        return []
    moment = {name: _plain(text) for name, text in texts.moment(now, settings, zone=zone).items()}
    return [Part("date", None, "Date", texts.fill("date_time" if settings.get("format") else "date", moment))]


def custom(section: PromptSection) -> list[Part]:
    """Return a custom section of the user."""
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
    """Return a bootstrap file under the heading of its kind."""
    name = f"bootstrap_{block.kind}"
    heading = texts.retraced(texts.fill(name, {}), name, block.path)
    title = texts.text(name).lstrip("# ")
    pieces = [*heading, Piece("\n", block.path), *sourced(block)]
    return by_file(block.kind, block.layer.name, title, block.path, pieces=pieces)


def sourced(block: Block) -> list[Piece]:
    """Return the text of a file after a line with its path, or with the note that it ships with Nexus."""
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
    """Divide a file's pieces into parts: of its own text, and of each import, whose title names the file.

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


def folder_files(contents: PromptContents) -> PromptContents | Generation:
    """Return the files that stand where the workspace folder's own prompt has them."""
    grant = contents.grant
    if grant is None or (not grant.above and grant.text is None):
        return contents
    return next((generation for generation in contents.above if generation.agent is None), Generation())


def agent_configurations(contents: PromptContents) -> Iterator[list[Part]]:
    """Yield the agent's own files, then its ancestors' files, nearest first, without the folder's."""
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


def agent_role(grant: AgentGrant | None) -> list[Part]:
    """Return the task of an agent, and the duties of its role."""
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
    heading_part = Part("subagent", None, title, [*heading, Piece(end, heading[-1].path)])
    return [heading_part, *join_groups(groups, "\n\n")]


def _instructions(block: Block, title: str) -> list[Part]:
    named = f"{title}: {os.path.basename(block.path)}"
    return by_file("subagent", block.layer.name, named, block.path, pieces=sourced(block))


def _system_prompt(text: str) -> list[Part]:
    """A system prompt that replaces files; traced to no file."""
    content = texts.unix_lines(text).strip()
    return [Part("subagent", None, "Given System Prompt", [Piece(content)])] if content else []


def offered_skills(layers: Layers, facts: PromptFacts) -> tuple[LayerSkill, ...]:
    """Return the skills that the request does not leave out.

    Without a filter, a worker gets only those that are about its task or that the request names.
    """
    if facts.skip_skills:
        return ()
    if facts.skill_filter is None:
        if layers.task is None:
            return layers.skills
        about = about_task([layer_skill.skill for layer_skill in layers.skills], layers.task)
        return tuple(
            layer_skill
            for layer_skill in layers.skills
            if layer_skill.skill in about or layer_skill.skill.name in facts.skills
        )
    patterns = Patterns(facts.skill_filter)
    return tuple(layer_skill for layer_skill in layers.skills if patterns.matches(layer_skill.skill.name))


def activated_skills(layers: Layers, facts: PromptFacts) -> tuple[LayerSkill, ...]:
    """Return the active skills of a request. RequestError for a name that is not offered.

    If the request leaves out all skills, there is none.
    """
    if facts.skip_skills:
        return ()
    skills = offered_skills(layers, facts)
    names = [layer_skill.skill.name for layer_skill in skills]
    for name in facts.skills:
        if name not in names:
            raise RequestError(_unknown_skill(name, names), code="unknown-skill")
    return tuple(layer_skill for layer_skill in skills if layer_skill.skill.name in facts.skills)


def skills(layers: Layers, facts: PromptFacts) -> list[Part]:
    """Return the index and the texts of the active skills. Empty if no skill is offered."""
    skills = offered_skills(layers, facts)
    active = skill_bodies(layers, activated_skills(layers, facts))
    if not skills:
        return []
    has_tool = any(name == READ_SKILL for name, _ in facts.tools)
    heading = Part(SECTION, None, "Skills", texts.fill("skills_by_tool" if has_tool else "skills", {}))
    index = join_groups(
        [[heading], join_groups(([_skill_row(layer_skill)] for layer_skill in skills), "\n")], "\n\n"
    )
    return join_groups([index, active], "\n\n")


def skill_bodies(layers: Layers, skills: Sequence[LayerSkill]) -> list[Part]:
    """Return the texts of skills, each under its heading."""
    return join_groups((_skill_body(layers, layer_skill) for layer_skill in skills), "\n\n")


def _skill_row(layer_skill: LayerSkill) -> Part:
    skill = layer_skill.skill
    row = texts.text("skill_row").format(
        name=skill.name, description=skill.description, path=_one_line(skill.path)
    )
    return Part(SECTION, layer_skill.layer, skill.name, [Piece(row, skill.path, skill.description_span)])


def _skill_body(layers: Layers, layer_skill: LayerSkill) -> list[Part]:
    skill = layer_skill.skill
    content = layers.texts.get(skill.path, "")
    span = texts.trimmed(content, skill.body)
    if span.start == span.end:
        return []
    name = [Piece(skill.name, skill.path, skill.name_span)]
    heading = texts.retraced(texts.fill("skill_active", {"name": name}), "skill_active", skill.path)
    path = [Piece(_one_line(skill.path), skill.path)]
    body = texts.fill("source", {"path": path, "content": [texts.cut(skill.path, content, span)]})
    pieces = [*heading, Piece("\n", skill.path), *texts.retraced(body, "source", skill.path)]
    if skill.allowed_tools:
        sentence = texts.text("skill_tools").format(tools=", ".join(skill.allowed_tools))
        pieces.append(Piece(f"\n\n{sentence}", skill.path, skill.tools_span))
    if skill.examples:
        rows = "\n".join(f"- {example}" for example in skill.examples)
        sentence = texts.text("skill_examples").format(rows=rows)
        pieces.append(Piece(f"\n\n{sentence}", skill.path, skill.examples_span))
    return [Part(SECTION, layer_skill.layer, skill.name, pieces)]


def _unknown_skill(name: str, names: Sequence[str]) -> str:
    near = fixes.meant(name, names)
    if near is not None:
        return f"There is no skill {fixes.quoted(name)}; did you mean {near}?"
    listed = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    return f"There is no skill {fixes.quoted(name)}. Skills that this request may use: {listed or 'none'}."


def capabilities(layers: Layers, contents: PromptContents, facts: PromptFacts) -> list[Part]:
    """List what the model can work with. Empty if there is nothing to list."""
    servers = [server for server in layers.servers if server.shadowed_by is None]
    skills = [layer_skill.skill for layer_skill in offered_skills(layers, facts)]
    unready = [skill for skill in skills if contents.lacks(skill)]
    credentials, words = contents.credentials, texts.table("capability_words")
    knowledge = layers.effective.get("/memory/knowledge") or {}
    by_meaning = bool((knowledge.get("embeddings") or {}).get("enabled"))
    values = {
        "count": [Piece(str(len(skills)))] if skills else None,
        "skills": _by_category(skills),
        "unready": _listed([f"{skill.name}: {contents.lacks(skill)}" for skill in unready]),
        "tool_count": [Piece(str(len(facts.tools)))] if facts.tools else None,
        "tools": _listed([name for name, _ in facts.tools]),
        "configured_servers": _listed([server.name for server in servers if server.enabled]),
        "disabled": _listed([server.name for server in servers if not server.enabled]),
        "memory": _listed([words[name] for name, _ in facts.tools if name in words]),
        "search": [Piece(words["by_meaning" if by_meaning else "by_words"])],
        "knowledge": _listed(_knowledge_paths(layers.effective, knowledge)),
        "agents": _listed(_startable_agents(layers.effective, contents.grant)),
        "configured": _listed([credential.variable for credential in credentials if credential.configured]),
        "broken": _listed([credential.variable for credential in credentials if not credential.configured]),
    }
    if all(value is None for name, value in values.items() if name != "search"):
        return []
    return [Part("capabilities", None, "Capabilities", texts.fill("capabilities", values))]


def _by_category(skills: Sequence[Skill]) -> list[Piece] | None:
    """The names of skills: first those without a category, then category by category."""
    groups: dict[str, list[str]] = {"": []}
    for skill in skills[:MOST_LISTED]:
        category = one_line(skill.metadata.get("category", ""))[:LONGEST_CATEGORY]
        groups.setdefault(category, []).append(skill.name)
    lists = [(f"{category}: " if category else "") + ", ".join(groups[category]) for category in groups]
    more = ", …" if len(skills) > MOST_LISTED else ""
    return [Piece("; ".join(filter(None, lists)) + more)] if skills else None


def _knowledge_paths(effective: Effective, knowledge: Mapping[str, Any]) -> list[str]:
    """The paths of the knowledge base in the settings, without ignored ones; none if nothing is sent."""
    if knowledge.get("max_tokens") == 0:
        return []
    chains = [
        (str(name), effective.provenance.get(f"/memory/knowledge/paths/{index}", ()))
        for index, name in enumerate(knowledge.get("paths") or ())
    ]
    return [name for name, chain in chains if any(not entry.ignored for entry in chain)]


def _startable_agents(effective: Effective, grant: AgentGrant | None) -> list[str]:
    """The agents of the settings that an agent may start: a worker those below it, others all but itself."""
    agents = effective.get("/agents") or {}
    if grant is None:
        return sorted(agents)
    if grant.role == WORKER:
        return sorted(name for name, agent in agents.items() if agent.get("parent") == grant.agent)
    return sorted(name for name in agents if name != grant.agent)


def _listed(names: Sequence[str]) -> list[Piece] | None:
    if not names:
        return None
    lines = [one_line(name) for name in names[:MOST_LISTED]]
    return [Piece(", ".join(lines) + (", …" if len(names) > MOST_LISTED else ""))]


def tool_summary(tools: Sequence[tuple[str, str]]) -> list[Part]:
    """Return the section of tools, each with name and description. Empty if there are no tools."""
    if not tools:
        return []
    rows = "\n".join(_tool_row(one_line(name), first_sentence(description)) for name, description in tools)
    filled = texts.fill("tools", {"rows": [Piece(rows)]})
    return [Part("tools", None, "Tools", [Piece(piece.text) for piece in filled])]


def _tool_row(name: str, sentence: str) -> str:
    row = texts.text("tool_row").format(name=name, description=sentence)
    return row if sentence else row.rstrip(" :")


def first_sentence(description: str) -> str:
    """Return the first sentence of a description, as one line of at most MAX_SENTENCE characters."""
    end = _END.search(description.strip())
    sentence = one_line(description.strip()[: end.end()] if end is not None else description)
    return sentence if len(sentence) <= MAX_SENTENCE else f"{sentence[: MAX_SENTENCE - 1]}…"
