"""What a file of instructions costs in the prompt, as LSP code lenses: the file, its headings, its imports.

1. The first line says what the file brings into the prompt, how much of that it imports, its share of
   the window, and when it is sent, or why not. The figures are those of `nexus/context/layers`, summed up.
2. A heading says what its part of the prompt takes, with its imports, an import what it brings: together
   never more than the file (`prompt.shares`). Of a skill's text, and of a file that is not sent, the text
   alone is counted.
3. Estimates begin with `≈`.
4. The command of a lens, `nexus.showInContext`, is the client's: it shows what is counted. Its argument has
   the place in the file and, where there is one, the place in the prompt. A client that does not know the
   command shows the title alone.

Counting a long text the first time takes long: for worker threads.
"""

from os.path import basename, curdir, dirname, pardir, relpath, sep, split
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context import assembly
from nexus_context.budget import usage
from nexus_context.errors import Span
from nexus_context.layers.model import LayerFile
from nexus_context.layers.walk import ASSISTANT_DIRECTORIES
from nexus_context.prompt.file_parts import PlacedFile, alone, counted_shares, placed
from nexus_context.prompt.token_attribution import tokens_by_path
from nexus_context.tokens import TokenCounter
from nexus_daemon.lsp.convert import Locator

if TYPE_CHECKING:
    from nexus_context.snapshot import Snapshot

MOST = 500  # headings and imports of a file that have a lens
NOT_SENT = {
    "shadowed": "a nearer layer has a file in its place",
    "excluded": "the settings exclude it",
    "too-large": "it is too large",
    "unreadable": "it cannot be read",
    "invalid": "its front matter cannot be read",
}
SETTINGS = ("config", "mcp")
COMMAND = "nexus.showInContext"
_TOP = Span(0, 0)


class _Lens(NamedTuple):
    """`span` is its place in the file, `counted` that of what it counts in the prompt, if it is there."""

    span: Span
    title: str
    counted: Span | None = None


def code_lenses(
    snapshot: "Snapshot",
    path: str,
    encoding: str,
    *,
    folder: str,
    agent: str | None = None,
    asked: bool = True,
) -> list[dict[str, Any]]:
    """The lenses of one file; none of one that could not be a part of the prompt.

    `folder` is the URI of the folder whose snapshot it is, `agent` the name of the agent. `asked`: clients
    can ask for that prompt; they cannot for that of an agent that does not live.
    """
    locate = Locator(snapshot.layers, encoding)
    lenses: list[dict[str, Any]] = []
    for span, title, counted in _lenses(snapshot, path):
        where = locate.range(path, span)
        target: dict[str, Any] = {
            "workspaceFolder": folder,
            "source": {"uri": locate.uri(path), "range": where},
        }
        if agent is not None:
            target["agent"] = agent
        if counted is not None and asked:
            target["prompt"] = locate.range_in(snapshot.prompt.text, counted)
        command = {"title": title, "command": COMMAND, "arguments": [target]}
        lenses.append({"range": where, "command": command})
    return lenses


def _lenses(snapshot: "Snapshot", path: str) -> list[_Lens]:
    counter = assembly.model_of(snapshot, None)[1]
    text = snapshot.layers.texts.get(path)
    found = None if text is None else placed(snapshot.prompt, snapshot.contents, path, snapshot.layers.texts)
    skill = next((one.skill for one in snapshot.layers.skills if one.skill.path == path), None)
    conditional = _conditional(snapshot, path)
    why = _why_not(snapshot, path) if found is None and skill is None and conditional is None else None
    if text is None:
        return [] if why is None else [_Lens(_TOP, f"not sent: {why}")]
    if skill is not None:
        prompt, where = alone(path, text, skill.body)
    elif found is not None:
        prompt, where = snapshot.prompt, found
    elif conditional is not None:
        prompt, where = alone(path, text, conditional.body or Span(0, len(text)))
    elif why is not None:
        prompt, where = alone(path, text, Span(0, len(text)))
    else:
        return []
    parts = [
        (share, shown(count, counter), None if found is None else share.span)
        for share, count in counted_shares(prompt, where, path, text, counter, most=MOST)
    ]
    total = counter.count(prompt.text) if found is None else 0
    if conditional is not None:
        top = f"{shown(total, counter)} · sent with turns about files that match {conditional.applies_to}"
    elif why is not None:
        top = f"{shown(total, counter)} · not sent: {why}"
    else:
        top = _of_sent(snapshot, path, found, counter)
        top += f" · {shown(total, counter)} when it is activated" if skill is not None else ""
    imports = {"heading": "", "import": " imported"}
    whole = None if why is not None else _place_of(snapshot, path)
    return [
        _Lens(_TOP, top, whole),
        *(_Lens(share.source, f"{tokens}{imports[share.kind]}", span) for share, tokens, span in parts),
    ]


def _place_of(snapshot: "Snapshot", path: str) -> Span | None:
    """From the heading that the prompt gives a file to the end of its text, without the line below it."""
    own = [one for one in snapshot.prompt.fragments if one.path == path and one.layer is not None]
    if not own:
        return None
    last = next((one for one in reversed(own) if one.verbatim), own[-1])
    return Span(own[0].span.start, last.span.end)


def _of_sent(snapshot: "Snapshot", path: str, where: PlacedFile | None, counter: TokenCounter) -> str:
    """What a file takes of each request, with what it imports."""
    by_path = tokens_by_path(snapshot.prompt, counter)
    imported = sum(by_path.get(each, 0) for each in where.through) if where is not None else 0
    tokens = by_path.get(path, 0) + imported
    limits = assembly.model_of(snapshot, None)[0]
    spent = usage(limits, counter, (), max_tokens=snapshot.effective.get("/context/max_tokens"), reserved=0)
    share = 100 * tokens / spent.limit if spent.limit else 100
    percent = f"{share:.1f} %" if share >= 0.05 or not tokens else "< 0.1 %"
    known = "" if spent.limit_known else "≈ "
    figure = (
        f"{shown(tokens, counter)}, {imported:,} of them imported" if imported else shown(tokens, counter)
    )
    return f"{figure} · {percent} of {known}{_short(spent.limit)} · sent with every request"


def _conditional(snapshot: "Snapshot", path: str) -> LayerFile | None:
    """The file if it is sent with some turns only."""
    files = (file for layer in snapshot.layers.layers for file in layer.files)
    return next((file for file in files if file.path == path and file.status == "conditional"), None)


def _why_not(snapshot: "Snapshot", path: str) -> str | None:
    """Why a file is not in the prompt; None where nobody could expect it there."""
    files = (file for layer in snapshot.layers.layers for file in layer.files)
    status = next((file.status for file in files if file.path == path and file.kind not in SETTINGS), None)
    if status == "loaded":
        return "it says nothing, or all of it is in the prompt through another file"
    reason = next((one.reason for one in snapshot.layers.not_read if one.path == path), None)
    if status in NOT_SENT or reason is None:
        return NOT_SENT.get(status or "") or _whose(snapshot, path)
    return f"it {reason}"


def _whose(snapshot: "Snapshot", path: str) -> str | None:
    """Where an instruction file below the folder is read; None for any other file."""
    directory, name = split(path)
    if basename(directory) in ASSISTANT_DIRECTORIES:
        directory = dirname(directory)
    names = snapshot.layers.effective.get("/context/instruction_files") or ()
    below = relpath(directory, snapshot.folder)
    if name not in names or below == curdir or below.split(sep, 1)[0] == pardir:
        return None
    return f"it is for {below}; an agent or a window of that folder reads it"


def shown(tokens: int, counter: TokenCounter) -> str:
    """A number of tokens, for people."""
    return f"{'' if counter.exact else '≈ '}{tokens:,} token{'' if tokens == 1 else 's'}"


def _short(tokens: int) -> str:
    """The size of a window: 200k, 1.05M."""
    if tokens < 1_000:
        return f"{tokens}"
    return f"{tokens / 1_000:.4g}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.3g}M"
