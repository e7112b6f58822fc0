"""Show code lenses: the cost in Nexus's own prompt of an instruction file, its headings and its imports.

What other assistants do with the file is in `reader_lens`.

1. The first line shows the file's tokens with its imports, its share of what a request may take, and when it
   is sent. If the file is not sent, the title says why, and the tooltip says what would change it. The
   figures are sums of those of `nexus/context/layers`.
2. A heading shows the tokens of its part of the prompt with its imports. An import shows the tokens that it
   adds. The sum of these never exceeds the file's tokens (`prompt.token_attribution`). For the text of a
   skill, and for a file that is not sent, only the text itself is counted.
3. Estimates begin with `≈`.
4. The command of a lens, `nexus.showInContext`, shows the text that is counted. The client runs it, or else
   the server (`api.editor_answers`). Its argument has the range in the file and, if the prompt contains the
   text, the range in the prompt.

The first count of a long text is slow: call this in a worker thread.
"""

from os.path import basename, curdir, dirname, pardir, relpath, sep, split
from typing import TYPE_CHECKING, Any, NamedTuple

from nexus_context.config.picked_model import MAX_TOKENS, MODEL, PICKED
from nexus_context.errors import Span
from nexus_context.folder.layers.layer_types import LayerFile
from nexus_context.folder.layers.walk import ASSISTANT_DIRECTORIES
from nexus_context.folder.prompt.file_parts import PlacedFile, alone, counted_shares, placed
from nexus_context.folder.prompt.token_attribution import tokens_by_path
from nexus_context.tokens import TokenCounter
from nexus_context.turn.models import model_of
from nexus_daemon.lsp.convert import Locator

if TYPE_CHECKING:
    from nexus_context.folder.snapshot import Snapshot

MOST_LENSES = 500  # headings and imports of a file that have a lens
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
    """`span` is in the file; `counted` is the counted part of the prompt, if any."""

    span: Span
    title: str
    counted: Span | None = None
    tooltip: str = ""


class _Reason(NamedTuple):
    """Why a file is not sent: the cause for the title, and the whole with advice."""

    cause: str
    whole: str = ""

    @property
    def sentence(self) -> str:
        return f"Nexus does not send it: {self.cause}"

    @property
    def tooltip(self) -> str:
        return f"Nexus does not send it: {self.whole}" if self.whole else ""


def code_lenses(
    snapshot: "Snapshot",
    path: str,
    encoding: str,
    *,
    folder: str,
    agent: str | None = None,
    is_live: bool = True,
) -> list[dict[str, Any]]:
    """Return the lenses of one file. Empty if the file cannot be part of the prompt.

    `folder` is the URI of the snapshot's folder, `agent` names its agent. `is_live` says that clients can
    request the agent's prompt; they cannot request that of an agent that is not running.
    """
    locate = Locator(snapshot.layers, encoding)
    lenses: list[dict[str, Any]] = []
    for span, title, counted_span, tooltip in _lenses(snapshot, path):
        lens_range = locate.range(path, span)
        target: dict[str, Any] = {
            "workspaceFolder": folder,
            "source": {"uri": locate.uri(path), "range": lens_range},
        }
        if agent is not None:
            target["agent"] = agent
        if counted_span is not None and is_live:
            target["prompt"] = locate.range_in(snapshot.prompt.text, counted_span)
        command = {"title": title, "command": COMMAND, "arguments": [target]}
        if tooltip:
            command["tooltip"] = tooltip
        lenses.append({"range": lens_range, "command": command})
    return lenses


def _lenses(snapshot: "Snapshot", path: str) -> list[_Lens]:
    counter = model_of(snapshot, None)[1]
    text = snapshot.layers.texts.get(path)
    placed_file = (
        None if text is None else placed(snapshot.prompt, snapshot.contents, path, snapshot.layers.texts)
    )
    skill = next(
        (layer_skill.skill for layer_skill in snapshot.layers.skills if layer_skill.skill.path == path), None
    )
    conditional = _conditional(snapshot, path)
    why = _why_not(snapshot, path) if placed_file is None and skill is None and conditional is None else None
    if text is None:
        return [] if why is None else [_Lens(_TOP, why.sentence, tooltip=why.tooltip)]
    if skill is not None:
        prompt, lens_file = alone(path, text, skill.body)
    elif placed_file is not None:
        prompt, lens_file = snapshot.prompt, placed_file
    elif conditional is not None:
        prompt, lens_file = alone(path, text, conditional.body or Span(0, len(text)))
    elif why is not None:
        prompt, lens_file = alone(path, text, Span(0, len(text)))
    else:
        return []
    parts = [
        (share, tokens_text(count, counter), None if placed_file is None else share.span)
        for share, count in counted_shares(prompt, lens_file, path, text, counter=counter, most=MOST_LENSES)
    ]
    total = counter.count(prompt.text) if placed_file is None else 0
    if conditional is not None:
        top = (
            f"{tokens_text(total, counter)} · sent with turns about files that match {conditional.applies_to}"
        )
    elif why is not None:
        top = f"{tokens_text(total, counter)} · not sent: {why.cause}"
    else:
        top = _cost_when_sent(snapshot, path, placed_file, counter)
        top += f" · {tokens_text(total, counter)} when it is activated" if skill is not None else ""
    tooltip = "" if why is None else why.tooltip
    if why is None and conditional is None:
        tooltip = _window_source(snapshot)
    imports = {"heading": "", "import": " imported"}
    prompt_span = None if why is not None else _prompt_span(snapshot, path)
    return [
        _Lens(_TOP, f"Nexus: {top}", prompt_span, tooltip),
        *(_Lens(share.source, f"{tokens}{imports[share.kind]}", span) for share, tokens, span in parts),
    ]


def _prompt_span(snapshot: "Snapshot", path: str) -> Span | None:
    """Return the part of the prompt from the file's heading to the end of its text."""
    fragments = [
        fragment
        for fragment in snapshot.prompt.fragments
        if fragment.path == path and fragment.layer is not None
    ]
    if not fragments:
        return None
    last_fragment = next((fragment for fragment in reversed(fragments) if fragment.verbatim), fragments[-1])
    return Span(fragments[0].span.start, last_fragment.span.end)


def _cost_when_sent(
    snapshot: "Snapshot", path: str, placed_file: PlacedFile | None, counter: TokenCounter
) -> str:
    """Describe the share of a file, with its imports, in every request."""
    by_path = tokens_by_path(snapshot.prompt, counter)
    imported = (
        sum(by_path.get(imported_path, 0) for imported_path in placed_file.through)
        if placed_file is not None
        else 0
    )
    tokens = by_path.get(path, 0) + imported
    get = snapshot.effective.get
    limits, max_tokens = model_of(snapshot, None)[0], get("/context/max_tokens")
    available = limits.available(
        max_tokens, get("/context/reserve_tokens") + get("/context/reserve_tool_tokens")
    )
    sign = "" if limits.known or max_tokens is not None else "≈ "
    figure = (
        f"{tokens_text(tokens, counter)}, {imported:,} of them imported"
        if imported
        else tokens_text(tokens, counter)
    )
    return f"{figure} · {share_text(tokens, available, sign)} · sent with every request"


def _window_source(snapshot: "Snapshot") -> str:
    """Say which model's window the share is of."""
    effective, limits = snapshot.effective, model_of(snapshot, None)[0]
    model, max_tokens = effective.get(MODEL), effective.get(MAX_TOKENS)
    picked = [
        name
        for name in (MODEL, MAX_TOKENS)
        for setting_source in effective.provenance.get(name, ())
        if setting_source.wins and setting_source.layer == PICKED
    ]
    source = f"that of {model}, {'which is picked here' if MODEL in picked else 'the model of the settings'}"
    if not model:
        source = "a guess: no model is set"
    elif not limits.known:
        source = f"a guess: {model} is not a known model"
    is_narrowed = max_tokens is not None and MAX_TOKENS not in picked
    narrows = f", at most {max_tokens:,} by `context.max_tokens`" if is_narrowed else ""
    return f"The window is {source}{narrows}. A request may take it without the reserve."


def _conditional(snapshot: "Snapshot", path: str) -> LayerFile | None:
    """Return the file if it is sent only with some turns."""
    files = (file for layer in snapshot.layers.layers for file in layer.files)
    return next((file for file in files if file.path == path and file.status == "conditional"), None)


def _why_not(snapshot: "Snapshot", path: str) -> _Reason | None:
    """Say why a file is not in the prompt; None if it does not belong there."""
    files = (file for layer in snapshot.layers.layers for file in layer.files)
    status = next((file.status for file in files if file.path == path and file.kind not in SETTINGS), None)
    if status == "loaded":
        return _Reason("it is empty, or the prompt has all of it through another file")
    skipped = next(
        (skipped_file for skipped_file in snapshot.layers.not_read if skipped_file.path == path), None
    )
    if status in NOT_SENT:
        return _Reason(NOT_SENT[status])
    if skipped is None:
        return _below_reason(snapshot, path)
    return _Reason(f"it {skipped.cause or skipped.reason}", f"it {skipped.reason}" if skipped.cause else "")


def _below_reason(snapshot: "Snapshot", path: str) -> _Reason | None:
    """Say who reads an instruction file below the folder; None for any other file."""
    directory, name = split(path)
    if basename(directory) in ASSISTANT_DIRECTORIES:
        directory = dirname(directory)
    names = snapshot.layers.effective.get("/context/instruction_files") or ()
    relative_directory = relpath(directory, snapshot.folder)
    if name not in names or relative_directory == curdir or relative_directory.split(sep, 1)[0] == pardir:
        return None
    cause = f"it is for {relative_directory}"
    return _Reason(cause, f"{cause}; an agent or a window of that folder reads it")


def tokens_text(tokens: int, counter: TokenCounter) -> str:
    """Format a number of tokens for people: `1,200 tokens`, with `≈` before an estimate."""
    return f"{'' if counter.exact else '≈ '}{tokens:,} token{'' if tokens == 1 else 's'}"


def share_text(tokens: int, available: int, sign: str = "") -> str:
    """Format the share of tokens in what a request may take: `0.3 % of 198k`. `sign` marks an estimate."""
    share = 100 * tokens / available if available else 100
    percent = f"{share:.1f} %" if share >= 0.05 or not tokens else "< 0.1 %"
    return f"{percent} of {sign}{_short(available)}"


def _short(tokens: int) -> str:
    """Format what a request may take: 198k, 1.05M."""
    if tokens < 1_000:
        return f"{tokens}"
    return f"{tokens / 1_000:.4g}k" if tokens < 1_000_000 else f"{tokens / 1_000_000:.3g}M"
