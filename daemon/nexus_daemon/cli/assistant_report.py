"""Formats the report of a session of another assistant: a screen for a terminal, a line for an event."""

import time
from collections.abc import Iterator, Mapping
from os.path import basename, join

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.sessions.report import (
    CacheMiss,
    CompactionReport,
    DroppedItems,
    SessionReport,
    WindowPart,
)
from nexus_context.text.redact import redact
from nexus_context.text.visible import visible_line
from nexus_context.tokens.models import prices_date
from nexus_daemon.cli import output
from nexus_daemon.cli.output import counted

COLOURS = {
    "system": "cyan",
    "tools": "magenta",
    "instructions": "cyan",
    "user": "green",
    "answers": "yellow",
    "thinking": "yellow",
    "calls": "blue",
    "results": "blue",
    "attachments": "white",
    "summary": "green",
    "earlier": "white",
}
LABELS = {
    "system": "the program's prompt",
    "tools": "tool definitions",
    "instructions": "instructions",
    "user": "your messages",
    "answers": "answers",
    "thinking": "thinking",
    "calls": "calls",
    "results": "results",
    "attachments": "attachments",
    "summary": "summary",
    "earlier": "not read",
}
NARROW = 75
"""Columns of a terminal below which there are no bars and fewer figures."""
LEAST_FIGURE = len("≈99,999")
BAR = 12
FEW = 3  # rows of a category; the others are summed up
MOST_TOOLS = 6
MOST_AGENTS = 4
MOST_ITEMS = 3
LAST_MISSES = 3
SOON_S = 60  # until the cache goes cold
WARN_AT = 0.8  # of a window


def screen(report: SessionReport, now: float) -> RenderableType:
    """Return all of a report. `now` is in seconds since 1970."""
    parts: list[RenderableType] = [_head(report), _window(report), _facts(report, now)]
    if report.tools:
        parts.append(_tools(report))
    if report.agents:
        parts.append(_agents(report))
    return Group(*parts)


def event_line(report: SessionReport) -> str:
    """Return the state after an event, in one line."""
    window, last_usage = report.window, report.last
    words = [_clock(time.time()), report.assistant, report.id[:8], _of(window.used, window.size)]
    if last_usage is not None and last_usage.sent:
        words.append(f"{last_usage.cache_read / last_usage.sent:.0%} cached")
    if report.cost_usd is not None:
        words.append(_at_least(report.cost_usd, report.lacks))
    if report.misses and report.misses[-1].at == report.last_at:
        miss = report.misses[-1]
        words.append(f"cache missed: {_written(miss)}")
    if report.compactions and window.is_estimate:
        words.append(_compaction(report.compactions[-1]))
    return visible_line(" · ".join(words))


def _head(report: SessionReport) -> Text:
    title = visible_line(redact(report.title or report.id))
    fork = report.fork_of and f"fork of {report.fork_of}"
    subtitle = " · ".join(filter(None, (report.model, report.version, report.folder, fork)))
    return Text.assemble(
        (PROGRAMS[report.assistant].title, "bold"),
        "  ",
        title[:200],
        "\n",
        (visible_line(subtitle), "dim"),
        overflow="ellipsis",
        no_wrap=True,
    )


# ---------------------------------------------------------------- window


def _window(report: SessionReport) -> Table:
    window = report.window
    mark = "≈" if window.is_estimate else ""
    share = window.used / window.size if window.size else 0.0
    table = Table(
        title=Text(
            f"{mark}{_of(window.used, window.size)} tokens", "bold red" if share > WARN_AT else "bold"
        ),
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    is_narrow = output.console().width < NARROW  # figures are never cut: labels are, and bars left out
    labels = max(map(len, LABELS.values()))
    least = 8 if is_narrow else labels
    table.add_column("in the window", no_wrap=True, overflow="ellipsis", min_width=least)
    table.add_column("what", overflow="ellipsis", no_wrap=True)
    table.add_column("tokens", justify="right", no_wrap=True, min_width=len("≈1,000,000"))
    table.add_column("share", justify="right", no_wrap=True, min_width=len("share"))
    if not is_narrow:
        table.add_column("", width=BAR, no_wrap=True)
    previous_category = ""
    for category, label, tokens in _rows(window.parts):
        row_share = tokens / max(window.used, 1)
        bar = "█" * round(BAR * row_share) or "▏"
        name = "" if category == previous_category else LABELS[category]
        cells = (name, visible_line(label), f"≈{tokens:,}", f"{row_share:.0%}")
        table.add_row(*cells, *(() if is_narrow else (bar,)), style=COLOURS[category])
        previous_category = category
    return table


def _rows(parts: tuple[WindowPart, ...]) -> Iterator[tuple[str, str, int]]:
    """The rows of a window: the largest of each category, the rest of it as one."""
    for category in dict.fromkeys(part.category for part in parts):
        category_parts = [part for part in parts if part.category == category]
        shown_parts = category_parts if len(category_parts) <= FEW + 1 else category_parts[:FEW]
        for part in shown_parts:
            yield category, _label(part), part.tokens
        other_parts = category_parts[len(shown_parts) :]
        if other_parts:
            yield category, f"{len(other_parts)} others", sum(part.tokens for part in other_parts)


def _label(part: WindowPart) -> str:
    if part.category == "instructions":
        return join("…", basename(part.label)) if part.label.count("/") > 1 else part.label
    if part.category == "tools":
        return "of the program" if part.server is None else f"of the MCP server {part.server}"
    name = part.label if part.server is None else f"{part.server}: {part.label}"
    return name.replace("_", " ") if part.category == "attachments" else name


def _of(used_tokens: int, size: int | None) -> str:
    return f"{used_tokens:,} of {size:,} ({used_tokens / size:.0%})" if size else f"{used_tokens:,}"


# ---------------------------------------------------------------- cache, cost, compaction


def _facts(report: SessionReport, now: float) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _listed_facts(report, now):
        table.add_row(f" {name}", text)
    return table


def _listed_facts(report: SessionReport, now: float) -> Iterator[tuple[str, Text]]:
    yield from _cache(report, now)
    for index, miss in enumerate(report.misses[-LAST_MISSES:]):
        words = f"{_clock(miss.at)}  {_written(miss)}"
        if miss.cost_usd:
            words += f", {_dollars(miss.cost_usd)} more than from the cache"
        yield (
            ("" if index else "missed"),
            Text(visible_line(words), "" if miss.cause == "first" else "yellow"),
        )
    yield "cost", Text(_cost(report))
    if report.lacks:
        yield "", Text(f"not included: {_lacks(report.lacks)}", "yellow")
    for index, compaction in enumerate(report.compactions[-2:]):
        yield ("" if index else "compacted"), Text(_compaction(compaction))
    if report.compactions:
        yield from _dropped(report.compactions[-1].dropped)
    partial = _partial(report)
    if partial:
        yield "not read", Text(visible_line(partial), "dim")


def _cache(report: SessionReport, now: float) -> Iterator[tuple[str, Text]]:
    cache, last_usage = report.cache, report.last
    if cache is None or last_usage is None or not last_usage.sent:
        return
    text = Text(f"{last_usage.cache_read / last_usage.sent:.0%} of the last request came from the cache")
    if cache.cold_at is not None:
        remaining_s = cache.cold_at - now
        if remaining_s > 0:
            words = f"; it goes cold at {_clock(cache.cold_at)}, in {_duration(remaining_s)}"
            text.append(words, "green" if remaining_s > SOON_S else "yellow")
        else:
            text.append(f"; it went cold at {_clock(cache.cold_at)}", "red")
    yield "cache", text
    words = f"the next turn sends {cache.next_tokens:,} tokens"
    if cache.warm_usd is not None and cache.cold_usd is not None:
        words += f": {_dollars(cache.warm_usd)} from a warm cache, {_dollars(cache.cold_usd)} from a cold one"
    yield "", Text(words)


def _written(miss: CacheMiss) -> str:
    again = "" if miss.cause == "first" else " again"
    return f"{_cause(miss)}: {miss.tokens:,} tokens written{again}"


def _cause(miss: CacheMiss) -> str:
    return {
        "first": "the first request",
        "idle": f"nothing was sent for {_duration(miss.idle_s or 0)}",
        "model": f"another model ({miss.detail})",
        "compaction": "the compaction",
        "version": f"another version ({miss.detail})",
        "instructions": f"{miss.detail} changed",
        "tools": "other tools, or another prompt of the program",
        "rewritten": "the beginning changed",
    }[miss.cause]


def _cost(report: SessionReport) -> str:
    total = report.total
    cached = f", {total.cache_read / total.sent:.0%} of it from the cache" if total.sent else ""
    estimate_note = f" (≈{report.estimated:,} of them by their text)" if report.estimated else ""
    sent_text = f"{total.sent:,} tokens sent{cached}, {total.output:,} answered{estimate_note}"
    if report.cost_usd is None:
        return f"no price is known for {visible_line(report.model or 'the model')}; {sent_text}"
    cost_origin = {
        "program": f"as {PROGRAMS[report.assistant].title} says",
        "nexus": f"by list prices of {prices_date()}",
        "both": f"as {PROGRAMS[report.assistant].title} says, what came later by list prices",
        None: "",
    }[report.cost_origin]
    missed = f"; {_dollars(report.missed_usd)} for misses of the cache" if report.missed_usd else ""
    return f"{_at_least(report.cost_usd, report.lacks)} {cost_origin}{missed}; {sent_text}"


def _lacks(lacks: Mapping[str, int]) -> str:
    """List what a sum leaves out."""
    reason_texts = (
        f"{reason} ({counted(count, 'request')})" if count else reason for reason, count in lacks.items()
    )
    return "; ".join(map(visible_line, reason_texts))


def _compaction(compaction: CompactionReport) -> str:
    trigger = {"manual": ", by hand", "auto": ", by itself"}.get(compaction.trigger or "", "")
    before = "?" if compaction.before is None else f"{compaction.before:,}"
    after = "" if compaction.after is None else f" → {compaction.after:,}"
    return f"{_clock(compaction.at)}{trigger}: {before}{after} tokens"


def _dropped(dropped: DroppedItems | None) -> Iterator[tuple[str, Text]]:
    if dropped is None:
        return
    if not dropped.counts:
        yield "dropped", Text("nothing that a later step may need", "green")
    name = "dropped"
    for kind, noun in (
        ("instructions", "instruction"),
        ("tasks", "open task"),
        ("paths", "path"),
        ("identifiers", "name"),
    ):
        items: tuple[str, ...] = getattr(dropped, kind)
        if items:
            quote = "“{}”" if kind in ("instructions", "tasks") else "{}"
            shown_items = ", ".join(quote.format(" ".join(item.split())[:80]) for item in items[:MOST_ITEMS])
            ellipsis = " …" if dropped.counts.get(kind, len(items)) > MOST_ITEMS else ""
            count = counted(dropped.counts.get(kind, len(items)), noun)
            style = "red" if kind in ("instructions", "tasks") else ""
            yield name, Text(visible_line(f"{count}: {shown_items}{ellipsis}"), style)
            name = ""


def _partial(report: SessionReport) -> str:
    reasons = []
    if report.skipped_bytes:
        reasons.append(f"the first {report.skipped_bytes / 1e6:,.0f} MB of the file")
    if report.unread:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.unread.items())
        reasons.append(f"records of unknown kinds ({kinds})")
    if report.damaged:
        reasons.append(counted(report.damaged, "damaged line"))
    if report.long_lines:
        reasons.append(f"{counted(report.long_lines, 'line')} of more than 32 MiB")
    return "; ".join(reasons)


# ---------------------------------------------------------------- tools and sub-agents


def _tools(report: SessionReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("tool", no_wrap=True, overflow="ellipsis")
    is_narrow = output.console().width < NARROW
    columns = ("calls", "failed", "tokens", "in the window", "cost")
    column_indexes = [columns.index(name) for name in (("tokens", "cost") if is_narrow else columns)]
    for index in column_indexes:
        table.add_column(columns[index], justify="right", no_wrap=True, min_width=LEAST_FIGURE)
    for tool in report.tools[:MOST_TOOLS]:
        name = tool.tool if tool.server is None else f"{tool.server}: {tool.tool}"
        cells = (
            f"{tool.calls:,}",
            f"{tool.errors:,}" if tool.errors else "–",
            f"≈{tool.tokens:,}",
            f"≈{tool.in_window:,}" if tool.in_window else "–",
            _dollars(tool.cost_usd),
        )
        table.add_row(visible_line(name), *(cells[index] for index in column_indexes))
    other_tools = report.tools[MOST_TOOLS:]
    if other_tools:
        costs = [tool.cost_usd for tool in other_tools if tool.cost_usd is not None]
        cells = (
            f"{sum(tool.calls for tool in other_tools):,}",
            f"{sum(tool.errors for tool in other_tools):,}",
            f"≈{sum(tool.tokens for tool in other_tools):,}",
            f"≈{sum(tool.in_window for tool in other_tools):,}",
            _dollars(sum(costs) if costs else None),
        )
        table.add_row(f"{len(other_tools)} others", *(cells[index] for index in column_indexes))
    return table


def _agents(report: SessionReport) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("sub-agent", no_wrap=True, overflow="ellipsis")
    table.add_column("model", no_wrap=True, overflow="ellipsis")
    for column in ("window", "sent", "cost"):
        table.add_column(column, justify="right", no_wrap=True)
    latest = sorted(report.agents, key=lambda agent: -agent.changed)
    for agent in latest[:MOST_AGENTS]:
        cells = (
            visible_line(redact(agent.title or agent.id)),
            visible_line(agent.model or "–"),
            f"{agent.window:,}",
            f"{agent.usage.sent:,}",
            f"{'≥ ' if agent.lacks else ''}{_dollars(agent.cost_usd)}",
        )
        table.add_row(*cells)
    other_agents = latest[MOST_AGENTS:]
    if other_agents:
        costs = [agent.cost_usd for agent in other_agents if agent.cost_usd is not None]
        sent_tokens = sum(agent.usage.sent for agent in other_agents)
        cells = (
            f"{len(other_agents)} others",
            "",
            "",
            f"{sent_tokens:,}",
            _dollars(sum(costs) if costs else None),
        )
        table.add_row(*cells)
    return table


def _at_least(cost: float | None, lacks: Mapping[str, int]) -> str:
    return f"at least {_dollars(cost)}" if lacks and cost is not None else _dollars(cost)


def _dollars(cost: float | None) -> str:
    if cost is None:
        return "–"
    return f"${cost:,.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"


def _clock(time_s: float) -> str:
    """The time of day, of another day with the date."""
    moment, today = time.localtime(time_s), time.localtime()
    is_today = moment[:3] == today[:3]
    return time.strftime("%H:%M:%S" if is_today else "%Y-%m-%d %H:%M", moment)


def _duration(seconds: float) -> str:
    minutes, remaining_seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes}:{remaining_seconds:02} min" if minutes else f"{remaining_seconds} s"
