"""Gathers what the files of the layers contribute to the prompt.

These are bootstrap files, instruction files, READMEs and custom sections.

1. A file is in the prompt once, by real path, with its imports, at its first place; bootstrap files come
   first. A nearer layer's repetition is left out.
2. The file of a custom section is relative to its layer's directory (in the global file, to the global
   directory). For a workspace file, the rules of imports apply.
3. If two files define a section of one name, both are in the prompt; this is reported at the nearer one.
4. A literal secret in the prompt's text is reported without quoting it, and so is hidden text. Both checks
   cover every SKILL.md in force, although its text is sent only when the skill is active.
5. Files that take much of the model's window are reported (`size`), and so is what files say twice or
   contradict (`joint`); nothing is cut.
6. An agent inherits the files of the agents above it. A worker has their identity, too: its own folder's
   AGENT.md, SOUL.md and IDENTITY.md do not count, except its own definition, `AGENT.<name>.md`. A manager or
   unified agent has its own folder's identity, which replaces the files of the same kind above; an empty file
   replaces none. A system prompt in the request replaces all files and custom sections.
7. A credential is a variable that `provider.api_key_env` or an enabled MCP server names, without a default.
   It is configured if it is set and not empty; its value is not used otherwise.
"""

# paths are text here: hundreds are joined on every keystroke, and a Path costs more than the call

import functools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from nexus_context.config import fixes
from nexus_context.config.mcp import McpServer
from nexus_context.config.merge import Effective, Provenance
from nexus_context.disk.containment import reported
from nexus_context.disk.files import FileRead
from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.folder.layers.bootstrap import BOOTSTRAP_KINDS, agent_file, is_blank
from nexus_context.folder.layers.layer_types import DEFAULTS, GLOBAL, Kind, Layer, LayerFile, Layers
from nexus_context.folder.layers.text_reader import Reading
from nexus_context.folder.layers.walk import RealPath, within
from nexus_context.folder.prompt import size
from nexus_context.folder.prompt.blocks import (
    WORKER,
    AgentGrant,
    Block,
    Conditional,
    Generation,
    PromptSection,
    blocks_of,
    paths_of,
)
from nexus_context.folder.prompt.hidden_text import hidden_markup, hidden_text
from nexus_context.folder.prompt.imports import (
    Import,
    ImportRefusal,
    Imports,
    expand_imports,
    is_impossible,
    is_too_long,
    read_import,
    short_name,
    short_path,
)
from nexus_context.folder.prompt.joint.checks import check_together
from nexus_context.folder.prompt.joint.prompt_texts import joint_texts
from nexus_context.folder.prompt.memo import TextMemo, whole
from nexus_context.folder.prompt.readiness import server_needs, server_variables, skill_needs
from nexus_context.folder.prompt.texts import Piece, unix_lines
from nexus_context.folder.skills.skill import Skill
from nexus_context.text.redact import secrets_in_text

DEFAULT_PRIORITY = 300
MAX_SECRETS = 20  # of one file that are reported

_USERS_OWN = (DEFAULTS, GLOBAL)  # layers whose skills and servers need no trust

IDENTITY: tuple[Kind, ...] = ("agent", "soul", "identity")
"""Kinds of files that define an agent's identity."""

PromptFiles = list[tuple[Layer, LayerFile]]


class Credential(msgspec.Struct, frozen=True):
    """An environment variable that something needs, and whether it is set."""

    variable: str
    configured: bool


class PromptContents(msgspec.Struct, frozen=True):
    """The files' part of the prompt, and its problems.

    `bootstrap` is in the order of the prompt, `blocks` (instruction files and READMEs) in layer order. With a
    `grant`, they are only the files that no agent above has; `above` are those agents' files in this prompt,
    and `sections` includes their sections. `imports` are the imports in the prompt, each after that of its
    importing file. Only some turns are sent with `conditional` files. `waits_for` is an encoding that is
    needed to check the size of a file, or None: gather again once it is loaded. `lacking` maps path and name
    of skills and servers to what they lack. `trusted` tells whether the user trusts the folder; it is None if
    nobody was asked.
    """

    bootstrap: tuple[Block, ...]
    blocks: tuple[Block, ...]
    sections: tuple[PromptSection, ...]
    problems: tuple[Problem, ...]
    credentials: tuple[Credential, ...] = ()
    grant: AgentGrant | None = None
    above: tuple[Generation, ...] = ()
    imports: tuple[Import, ...] = ()
    waits_for: str | None = None
    conditional: tuple[Conditional, ...] = ()
    lacking: dict[tuple[str, str], str] = {}
    trusted: bool | None = None

    def lacks(self, subject: Skill | McpServer) -> str:
        """Return what keeps a skill or a server from working, or "" if nothing is known to."""
        return self.lacking.get((subject.path, subject.name), "")


def gather(
    layers: Layers,
    reading: Reading,
    *,
    user_home: str,
    environ: Mapping[str, str],
    grant: AgentGrant | None = None,
    load_vocabulary: bool = True,
    trusted: bool | None = None,
) -> PromptContents:
    """Read the imports of the layers' bootstrap and instruction files, and the files of custom sections.

    If `load_vocabulary`, a large file may cause a first vocabulary to be loaded, which takes 0.1 to 0.3 s.
    `trusted` tells whether the user trusts the folder; it is None if nobody was asked.
    """
    imports = Imports(reading.read, user_home, reading.real_path)
    read_before = set(reading.reads)
    files = _prompt_files(layers)
    above: tuple[Generation, ...] = ()
    if grant is not None:
        files, above, imports.inherited = _divided(files, grant, reading.real_path)
        imports.included.update(imports.inherited)
    blocks = tuple(_blocks(imports, files))
    if grant is None:
        sections = _sections(layers, reading, imports)
    else:
        sections = _all_sections(layers, reading, imports, grant)
    conditional = tuple(_conditional(layers, imports))
    for path in imports.dropped.difference(imports.texts, read_before):
        reading.reads.pop(path, None)  # an unused text is not kept in memory
    reading.watch.update(imports.refused)
    packaged = {file.path for layer, file in files if layer.name == DEFAULTS}
    text_problems = _problems_of_texts(imports, reading, packaged)
    oversize = reported(
        imports.problems,
        layers.folder,
        lambda: _measure(layers, reading, (*blocks, *sections), packaged, load=load_vocabulary),
        size.OversizeReport((), None),
    )
    together: tuple[Problem, ...] = reported(
        imports.problems,
        layers.folder,
        lambda: _joint_problems((*blocks, *blocks_of(above)), imports, grant, packaged),
        (),
    )
    required: tuple[Credential, ...] = reported(
        imports.problems, layers.folder, lambda: _credentials(layers, environ), ()
    )
    return PromptContents(
        bootstrap=tuple(block for block in blocks if block.kind in BOOTSTRAP_KINDS),
        blocks=tuple(block for block in blocks if block.kind not in BOOTSTRAP_KINDS),
        sections=sections,
        problems=(
            *imports.problems,
            *text_problems,
            *oversize.problems,
            *together,
            *_skill_problems(layers, reading),
        ),
        credentials=required,
        grant=grant,
        above=above,
        imports=tuple(imports.followed),
        waits_for=oversize.waits_for,
        conditional=conditional,
        lacking=dict(_lacking(layers, environ, is_untrusted=trusted is False)),
        trusted=trusted,
    )


def _measure(
    layers: Layers,
    reading: Reading,
    blocks: Sequence[Block | PromptSection],
    packaged: set[str],
    *,
    load: bool,
) -> size.OversizeReport:
    """Report the texts that are too long for the window."""
    return size.measure(
        layers.effective,
        blocks,
        layers.skills,
        read=lambda path: reading.read(path).text or "",
        packaged=packaged,
        load=load,
    )


def _joint_problems(
    blocks: Sequence[Block], imports: Imports, grant: AgentGrant | None, packaged: set[str]
) -> tuple[Problem, ...]:
    """Find repetitions and contradictions between the files of the prompt."""
    texts = imports.texts if grant is None else {**grant.texts, **imports.texts}
    return tuple(check_together(joint_texts(blocks, texts, packaged)))


def _divided(
    files: PromptFiles, grant: AgentGrant, real_path: RealPath
) -> tuple[PromptFiles, tuple[Generation, ...], set[str]]:
    """An agent's new files, what remains of those above, and the real paths of the latter."""
    if grant.text is not None:
        return [], (), set()
    loaded = _real_paths(grant.above, real_path)
    new_files = [
        (layer, file) for layer, file in files if _counts(file, grant) and real_path(file.path) not in loaded
    ]
    replaced: set[Kind] = {file.kind for _, file in new_files if file.kind in IDENTITY and not is_blank(file)}
    if not replaced:
        return new_files, grant.above, loaded
    above = tuple(_without(generation, replaced) for generation in grant.above)
    return new_files, above, _real_paths(above, real_path)


def _counts(file: LayerFile, grant: AgentGrant) -> bool:
    if grant.role != WORKER or file.kind not in IDENTITY or not grant.above:
        return True
    return os.path.basename(file.path) == agent_file(grant.agent)


def _without(generation: Generation, kinds: set[Kind]) -> Generation:
    blocks = tuple(block for block in generation.bootstrap if block.kind not in kinds)
    return msgspec.structs.replace(generation, bootstrap=blocks)


def _real_paths(generations: tuple[Generation, ...], real_path: RealPath) -> set[str]:
    return {real_path(path) for path in set(paths_of(blocks_of(generations)))}


def _blocks(imports: Imports, files: Sequence[tuple[Layer, LayerFile]]) -> Iterator[Block]:
    """The files with their imports in place, each real file once."""
    waiting = {imports.real_path(file.path) for _, file in files}
    imports.included.update(waiting)
    for layer, file in files:
        real = imports.real_path(file.path)
        if real not in waiting:
            continue
        waiting.remove(real)
        pieces = expand_imports(imports, layer, file.path, file.text or "", body=file.body)
        if pieces:
            yield Block(file.kind, layer, file.path, tuple(pieces))


def _conditional(layers: Layers, imports: Imports) -> Iterator[Conditional]:
    """The files that only some turns are sent with, without the imports that the prompt has already."""
    in_prompt = frozenset(imports.included)
    for layer in layers.layers:
        for file in layer.files:
            real = imports.real_path(file.path)
            if file.status != "conditional" or file.applies_to is None or real in in_prompt:
                continue
            imports.included = {*in_prompt, real}
            pieces = expand_imports(imports, layer, file.path, file.text or "", body=file.body)
            if pieces:
                yield Conditional(Block(file.kind, layer, file.path, tuple(pieces)), file.applies_to)
    imports.included = set(in_prompt)


def _prompt_files(layers: Layers) -> list[tuple[Layer, LayerFile]]:
    """The files whose text is in the prompt, in its order."""
    files = [
        (layer, file)
        for layer in layers.layers
        for file in layer.files
        if file.status == "loaded" and file.text is not None and file.kind in _PROMPT_ORDER
    ]
    return sorted(files, key=lambda pair: _PROMPT_ORDER[pair[1].kind])


_PROMPT_ORDER: dict[Kind, int] = {
    **{kind: index for index, kind in enumerate(BOOTSTRAP_KINDS)},
    "instructions": len(BOOTSTRAP_KINDS),
    "readme": len(BOOTSTRAP_KINDS),
}


def _problems_of_texts(imports: Imports, reading: Reading, packaged: set[str]) -> list[Problem]:
    """The problems of the prompt's texts, except those of packaged files."""
    return [
        problem
        for path, text in imports.texts.items()
        if path not in packaged
        for problem in reading.remark(path, text, _text_problems)
    ]


def _skill_problems(layers: Layers, reading: Reading) -> Iterator[Problem]:
    for layer_skill in layers.skills:
        path = layer_skill.skill.path
        yield from reading.remark(path, reading.read(path).text or "", _text_problems)


def _text_problems(path: str, text: str) -> Iterator[Problem]:
    yield from _secret_problems(path, text)
    yield from hidden_text(path, text)
    yield from hidden_markup(path, text)


def _secret_problems(path: str, text: str) -> Iterator[Problem]:
    for span in _secrets.of(whole(text), secrets_in_text)[:MAX_SECRETS]:
        yield Problem(path, span, "prompt.secret", Severity.WARNING, message=_LITERAL)


_LITERAL = (
    "This looks like a secret, and it is sent to the model with the prompt. Remove it, revoke it where it is "
    "used, and name an environment variable here instead."
)


def _all_sections(
    layers: Layers, reading: Reading, imports: Imports, grant: AgentGrant
) -> tuple[PromptSection, ...]:
    """The agent's own sections and those of the agents above it, each definition once."""
    if grant.text is not None:
        return ()
    sections_above = grant.sections
    inherited = {imports.real_path(path) for path in set(paths_of(sections_above))}
    imports.inherited.update(inherited)
    imports.included.update(inherited)
    defined_at = {(section.path, section.span) for section in sections_above}
    sections = _sections(layers, reading, imports)
    return (
        *(section for section in sections if (section.path, section.span) not in defined_at),
        *sections_above,
    )


def _sections(layers: Layers, reading: Reading, imports: Imports) -> tuple[PromptSection, ...]:
    sections: list[PromptSection] = []
    nothing: list[Piece] = []
    named: dict[str, Provenance] = {}
    for index, value in enumerate(layers.effective.get("/context/sections") or ()):
        origin = _origin(layers.effective, f"/context/sections/{index}")
        if origin is None or origin.document is None:
            continue
        # a stale file's value may be gone from its text: it gets no problems
        problems = imports.problems if reading.is_present(origin) else []
        first_origin = named.setdefault(" ".join(value["name"].split()), origin)
        if first_origin.path != origin.path:  # repetitions within one file are reported with that file
            problems.append(
                _repeated(value["name"], origin, first_origin if reading.is_present(first_origin) else None)
            )
        look = functools.partial(_section_pieces, layers, imports, value, origin=origin, problems=problems)
        pieces = reported(imports.problems, origin.path, look, nothing)
        if pieces:
            section = PromptSection(
                name=value["name"],
                priority=value.get("priority", DEFAULT_PRIORITY),
                layer=origin.layer,
                path=origin.path,
                span=origin.span,
                pieces=tuple(pieces),
            )
            sections.append(section)
    return tuple(sections)


def _origin(effective: Effective, pointer: str) -> Provenance | None:
    chain = effective.provenance.get(pointer, ())
    return next((entry for entry in chain if entry.wins and entry.document is not None), None)


def _repeated(name: str, origin: Provenance, first_origin: Provenance | None) -> Problem:
    message = (
        f"Another layer has a section {fixes.quoted(name)}, too, and the prompt contains both. Rename or "
        "remove one of them."
    )
    related = (
        ()
        if first_origin is None
        else (Related(first_origin.path, _name_span(first_origin), "The other one is here."),)
    )
    severity = Severity.WARNING
    return Problem(
        origin.path,
        _name_span(origin),
        "prompt.section-name",
        severity,
        message=message,
        fix=None,
        related=related,
    )


def _name_span(origin: Provenance) -> Span:
    """Where a section's name stands in the file that defines it."""
    return origin.document.span((*origin.pointer, "name")) if origin.document is not None else origin.span


def _section_pieces(
    layers: Layers, imports: Imports, value: dict[str, Any], origin: Provenance, problems: list[Problem]
) -> list[Piece]:
    document = origin.document
    if document is None:
        return []
    content = value.get("content")
    if isinstance(content, str):
        text = unix_lines(content).strip()
        if _secrets.of(whole(text), secrets_in_text):
            span = document.span((*origin.pointer, "content"))
            problems.append(Problem(origin.path, span, "prompt.secret", Severity.WARNING, message=_LITERAL))
        return [Piece(text, origin.path, document.span((*origin.pointer, "content")))] if text else []
    span = document.span((*origin.pointer, "file"))
    layer = next(layer for layer in layers.layers if any(file.path == origin.path for file in layer.files))
    path, refusal = _section_path(layer, imports, str(value.get("file")))
    if refusal is None and imports.real_path(path) in imports.inherited:
        return []
    if refusal is None and imports.real_path(path) in imports.included:
        message = "The section's file is left out: the prompt contains that file already. Remove the section."
        code = "prompt.section-file"
        problems.append(Problem(origin.path, span, code, Severity.INFORMATION, message=message))
        return []
    read = read_import(imports, layer, path) if refusal is None else ImportRefusal("outside", refusal)
    if isinstance(read, FileRead) and read.status != "loaded":
        why = read.problems[0].message.rstrip(".") if read.problems else "it does not exist"
        read = ImportRefusal("unreadable", f"{short_path(path)} cannot be read: {why}")
    if isinstance(read, ImportRefusal) or read.text is None:
        why = read.why if isinstance(read, ImportRefusal) else ""
        message = f"The section's file is left out: {why or 'the limit of a prompt is reached'}."
        problems.append(Problem(origin.path, span, "prompt.section-file", Severity.WARNING, message=message))
        return []
    imports.included.add(imports.real_path(path))
    return expand_imports(imports, layer, path, read.text)


# many folders share the files above them
_secrets = TextMemo[tuple[Span, ...]]()


def _section_path(layer: Layer, imports: Imports, name: str) -> tuple[str, str | None]:
    """Absolute path of a section's file, and the reason why it must not be read."""
    if is_impossible(name):
        return name, f"{fixes.quoted(name)} contains a character that no file name can contain. Correct it"
    if is_too_long(name):
        return name, f"no file can have so long a name as {short_name(name)}. Correct it"
    if not layer.in_workspace:
        expanded = os.path.join(imports.user_home, name[2:]) if name.startswith("~/") else name
        base = layer.config_directory if layer.name == GLOBAL else layer.directory
        return os.path.normpath(os.path.join(base, expanded)), None
    path = os.path.normpath(os.path.join(layer.directory, name))
    inside = within(imports.real_path(path), imports.real_path(layer.tree))
    if os.path.isabs(name) or name.startswith("~/") or not inside:
        return path, f"{short_name(name)} is not beneath {short_path(layer.tree)}"
    return path, None


def _credentials(layers: Layers, environ: Mapping[str, str]) -> tuple[Credential, ...]:
    """The credentials of a folder, sorted by name."""
    names = set()
    api_key_variable = layers.effective.get("/provider/api_key_env")
    if isinstance(api_key_variable, str) and api_key_variable.strip():
        names.add(api_key_variable.strip())
    for server in layers.servers:
        if server.enabled and server.shadowed_by is None:
            names.update(server_variables(server))
    return tuple(Credential(name, bool(environ.get(name))) for name in sorted(names))


def _lacking(
    layers: Layers, environ: Mapping[str, str], *, is_untrusted: bool
) -> Iterator[tuple[tuple[str, str], str]]:
    """Find what skills and servers lack, by path and name; the user's own need no trust."""
    for layer_skill in layers.skills:
        needs = skill_needs(
            layer_skill.skill, environ, is_untrusted=is_untrusted and layer_skill.layer not in _USERS_OWN
        )
        if needs:
            yield (layer_skill.skill.path, layer_skill.skill.name), needs
    for server in layers.servers:
        if not server.enabled or server.shadowed_by is not None:
            continue
        needs = server_needs(server, environ, is_untrusted=is_untrusted and server.origin not in _USERS_OWN)
        if needs:
            yield (server.path, server.name), needs
