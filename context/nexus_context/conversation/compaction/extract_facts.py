"""What a run of messages says that later steps may need, message by message, without a model.

1. A user's messages word for word: the first, the newest, and every sentence that instructs or corrects.
2. An assistant's decisions and open work; the state of check lists and to-do tools, of which the last counts.
3. What tools did (`work`).
4. An earlier summary is read by its headings: its items come before all others, and are overtaken by later
   ones with the same key. What it says under no known heading is state.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from nexus_context.conversation.compaction import sentence_patterns
from nexus_context.conversation.compaction.summary import MARKER, is_summary, summary_of, without_pins
from nexus_context.conversation.compaction.tool_activity import Work, is_minor, work_of
from nexus_context.conversation.identifiers.mentions import arguments_of
from nexus_context.conversation.message import Message, text_of
from nexus_context.prompt import texts

Section = Literal[
    "goal", "instructions", "latest", "tasks", "decisions", "files", "commands", "errors", "facts", "state"
]
SECTIONS: tuple[Section, ...] = Section.__args__  # type: ignore[attr-defined]


class Item(msgspec.Struct, frozen=True):
    """One thing that a summary may say. `at` orders items in time, `weight` by importance."""

    text: str
    key: str
    at: int
    weight: float


class Harvest(msgspec.Struct, frozen=True):
    """Items by section, each key once, in the order of time. `facts` is empty: names are an index's work."""

    sections: dict[Section, tuple[Item, ...]]
    work: Work

    def items(self, section: Section) -> tuple[Item, ...]:
        return self.sections.get(section, ())


def harvest(messages: Sequence[Message]) -> Harvest:
    """What the messages say, oldest first."""
    earlier = [message for message in messages if is_summary(message)]
    fresh = [message for message in messages if not is_summary(message)]
    found: dict[Section, dict[str, Item]] = {section: {} for section in SECTIONS}
    for message in earlier:
        _fold(found, summary_of(message))
    before = max((item.at for items in found.values() for item in items.values()), default=-1) + 1
    listed: list[str] = []  # the keys of the last to-do list
    for number, message in enumerate(fresh):
        if message.role == "user":
            _hear(found, text_of(message), before + number)
        elif message.role == "assistant":
            _listen(found, message, before + number, listed)
    work = work_of(fresh)
    _report(found, work, before)
    return Harvest({section: tuple(_in_time(items.values())) for section, items in found.items()}, work)


def headings() -> dict[Section, str]:
    """The headings of the sections in a summary."""
    return _table("summary_headings")  # type: ignore[return-value]


def lines() -> dict[str, str]:
    """The forms of the lines in a summary."""
    return _table("summary_lines")


def _table(name: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in texts.text(name).splitlines())


def _put(items: dict[str, Item], text: str, at: int, weight: float, key: str | None = None) -> None:
    key = _key_of(text) if key is None else key
    before = items.pop(key, None)
    items[key] = Item(text, key, at, weight if before is None else max(weight, before.weight))


def _key_of(text: str) -> str:
    return " ".join(text.split()).casefold()


def _hear(found: dict[Section, dict[str, Item]], text: str, at: int) -> None:
    """Take in a user's message."""
    text = _REMINDER.sub("", text).strip()
    if not text or text.startswith((MARKER, "[Session started", "[EARLIER CONTEXT]")):
        return
    if not found["goal"]:
        _put(found["goal"], text, at, 1.0)
    _put(found["latest"], text, at, 1.0)
    for cue in sentence_patterns.instructions_in(text):
        _put(found["instructions"], cue.text, at, cue.weight)
    _check(found["tasks"], sentence_patterns.boxes_in(text), at)


def _listen(found: dict[Section, dict[str, Item]], message: Message, at: int, listed: list[str]) -> None:
    """Take in an assistant's message. `listed` are the keys of the last to-do list, also of one in it."""
    text = text_of(message)
    for cue in sentence_patterns.decisions_in(text):
        _put(found["decisions"], cue.text, at, cue.weight)
    _check(found["tasks"], sentence_patterns.boxes_in(text), at)
    for task in sentence_patterns.open_in(text):
        _put(found["tasks"], task, at, 0.5)
    for call in message.tool_calls:
        boxes = _to_do(arguments_of(call.arguments))
        if boxes:
            for key in listed:
                if key in found["tasks"] and found["tasks"][key].weight == _LISTED:
                    del found["tasks"][key]
            listed[:] = [_key_of(task) for task, _ in boxes]
            _check(found["tasks"], boxes, at, weight=_LISTED)


def _check(
    tasks: dict[str, Item], boxes: Iterable[tuple[str, bool]], at: int, *, weight: float = 2.0
) -> None:
    for task, done in boxes:
        key = _key_of(task)
        tasks.pop(key, None)
        if not done:
            tasks[key] = Item(task, key, at, weight)


def _to_do(arguments: Any) -> list[tuple[str, bool]]:
    """The items of a to-do tool's call, and whether each is done."""
    if not isinstance(arguments, dict):
        return []
    for name in ("todos", "plan", "tasks", "items"):
        listed = arguments.get(name)
        if isinstance(listed, list) and listed and all(isinstance(each, dict) for each in listed):
            said = [
                (next((each[key] for key in _TASK_KEYS if isinstance(each.get(key), str)), ""), each)
                for each in listed
            ]
            if all(task and "status" in each for task, each in said):
                return [(task, each["status"] in _DONE) for task, each in said]
    return []


def _report(found: dict[Section, dict[str, Item]], work: Work, before: int) -> None:
    """Take in what tools did."""
    forms = lines()
    for use in work.files:
        known = found["files"].get(use.path)
        changed = use.writes or (known is not None and known.weight > 1)
        text = forms["changed" if changed else "read"].format(path=use.path)
        if known is not None and known.text != forms["read"].format(path=use.path):
            text = known.text  # as the earlier summary says it
        _put(found["files"], text, before + use.at, 2.0 if changed else 0.6, use.path)
    _resolve_carried(found["errors"], {run.command for run in work.runs if not run.failed}, forms)
    for run in work.runs:
        form = forms["failed" if run.failed else "ran" if run.outcome else "silent"]
        text = form.format(command=run.command, outcome=run.outcome)
        weight = 2.0 if run.failed else 0.3 if is_minor(run.command) else 1.2
        _put(found["commands"], text, before + run.at, weight, run.command)
    for failure in work.failures:
        form = forms["resolved" if failure.resolved else "unresolved"]
        text = form.format(error=failure.text, where=failure.where)
        key = f"{failure.where} {failure.text}"
        found["errors"].pop(key, None)
        _put(found["errors"], text, before + failure.at, 0.5 if failure.resolved else 2.0, key)


def _resolve_carried(errors: dict[str, Item], succeeded: set[str], forms: dict[str, str]) -> None:
    """Mark the errors of an earlier summary whose command has ended well since."""
    for key, item in list(errors.items()):
        match = _WHERE.search(item.text)
        if match is not None and match[1] in succeeded:
            text = forms["resolved"].format(error=item.text[: match.start()], where=match[1])
            errors[key] = msgspec.structs.replace(item, text=text, weight=0.5)


def _fold(found: dict[Section, dict[str, Item]], summary: str) -> None:
    """Take in an earlier summary: by this package or by a model, under the same headings or under none."""
    names = {heading.casefold(): section for section, heading in headings().items()}
    opening = texts.text("summary_extractive").splitlines()[0]
    section: Section = "state"
    at = max((item.at for items in found.values() for item in items.values()), default=-1)
    for item in _items(without_pins(summary)):
        if item.startswith("#"):
            section = names.get(item.strip("# :").casefold(), "state")
            continue
        if item.startswith(opening) or (section == "facts" and _is_list_of_names(item)):
            continue
        at += 1
        under = "state" if section == "facts" else section
        _put(found[under], item, at, _weight(under, item), _key(under, item))


def _items(summary: str) -> list[str]:
    """Headings and items of a summary; a line that is indented goes on with the item before it."""
    items: list[str] = []
    for line in summary.splitlines():
        if line.startswith("  ") and items and not items[-1].startswith("#"):
            items[-1] += f"\n{line[2:]}"
        elif line.strip():
            items.append(line[2:] if line.startswith(("- ", "* ")) else line)
    return items


def _key(section: Section, item: str) -> str | None:
    """The key of a carried item: of a file or a command what stands between its first backticks."""
    if section in ("files", "commands"):
        match = _TICKED.search(item)
        return match[1] if match is not None else None
    return None


def _weight(section: Section, item: str) -> float:
    """What a carried item weighs: as much as it did, as far as that can be seen from it."""
    if section == "instructions":
        return max(
            (cue.weight for cue in sentence_patterns.instructions_in(item)), default=sentence_patterns.WEAK
        )
    if section == "files":
        return 0.6 if item == lines()["read"].format(path=_key(section, item)) else 2.0
    return _CARRIED.get(section, 1.0)


def _is_list_of_names(item: str) -> bool:
    """Whether an item is a line of names that an index of identifiers made; it reads them again."""
    label = item.partition(": ")[0]
    return item.startswith("$ ") or any(
        line.endswith(f": {label}") for line in texts.text("identifiers_kinds").splitlines()
    )


def _in_time(items: Iterable[Item]) -> list[Item]:
    return sorted(items, key=lambda item: item.at)


_LISTED = 2.5  # weight of an item of a to-do tool; a later list replaces it
_TASK_KEYS = ("content", "step", "title", "task", "text", "description", "name")
_DONE = ("completed", "done", "complete", "cancelled", "canceled", "skipped")
_TICKED = re.compile(r"`([^`]+)`")
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_WHERE = re.compile(r" \(in `([^`]+)`\)$")
_CARRIED: dict[Section, float] = {"decisions": 1.5, "commands": 0.8, "errors": 0.8}
