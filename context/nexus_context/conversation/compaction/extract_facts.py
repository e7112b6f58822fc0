"""Extract what later steps may need from messages, one message at a time and without a model.

1. User messages verbatim: the first, the newest, and every sentence that instructs or corrects.
2. An assistant's decisions and open work; the state of check lists and to-do tools, of which the last counts.
3. What tools did (`tool_activity`).
4. An earlier summary is read by its headings. Its facts come before all others; a later fact with the same
   key replaces them. Text under an unknown heading is state.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from nexus_context.conversation.compaction import sentence_patterns
from nexus_context.conversation.compaction.secrets import without_secrets
from nexus_context.conversation.compaction.tool_activity import ToolActivity, activity_of, is_minor
from nexus_context.conversation.identifiers import arguments_of
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.summary import MARKER, is_summary, summary_of, without_pins
from nexus_context.prompt import texts
from nexus_context.redact import redact_message

Section = Literal[
    "goal", "instructions", "latest", "tasks", "decisions", "files", "commands", "errors", "facts", "state"
]
SECTIONS: tuple[Section, ...] = Section.__args__  # type: ignore[attr-defined]


class Fact(msgspec.Struct, frozen=True):
    """One thing that a summary may say. `at` orders facts by time, `weight` by importance."""

    text: str
    key: str
    at: int
    weight: float


class Facts(msgspec.Struct, frozen=True):
    """Facts by section, each key once, in the order of time.

    The section `facts` is empty: names and values come from an `IdentifierIndex`.
    """

    sections: dict[Section, tuple[Fact, ...]]
    activity: ToolActivity

    def of(self, section: Section) -> tuple[Fact, ...]:
        return self.sections.get(section, ())


def extract_facts(messages: Sequence[Message]) -> Facts:
    """The facts in the messages, which are ordered oldest first."""
    collector = _Collector()
    fresh: list[Message] = []
    for message in messages:
        if is_summary(message):
            collector.add_summary(redact_message(summary_of(message)))
        else:
            fresh.append(without_secrets(message))
    before = collector.newest + 1
    for at, message in enumerate(fresh, before):
        if message.role == "user":
            collector.add_user_message(text_of(message), at)
        elif message.role == "assistant":
            collector.add_assistant_message(message, at)
    activity = activity_of(fresh)
    collector.add_activity(activity, before)
    return Facts(collector.sections(), activity)


def headings() -> dict[Section, str]:
    """The headings of the sections in a summary."""
    return _table("summary_headings")  # type: ignore[return-value]


def lines() -> dict[str, str]:
    """The templates of the lines in a summary."""
    return _table("summary_lines")


def _table(name: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in texts.text(name).splitlines())


class _Collector:
    """Collects facts by section and key."""

    def __init__(self) -> None:
        self._facts: dict[Section, dict[str, Fact]] = {section: {} for section in SECTIONS}
        self._listed: list[str] = []  # keys of the last to-do list

    @property
    def newest(self) -> int:
        """When the newest fact was stated; -1 without one."""
        return max((fact.at for facts in self._facts.values() for fact in facts.values()), default=-1)

    def sections(self) -> dict[Section, tuple[Fact, ...]]:
        return {
            section: tuple(sorted(facts.values(), key=lambda fact: fact.at))
            for section, facts in self._facts.items()
        }

    def add_user_message(self, text: str, at: int) -> None:
        text = _REMINDER.sub("", text).strip()
        if not text or text.startswith((MARKER, "[Session started", "[EARLIER CONTEXT]")):
            return
        if not self._facts["goal"]:
            self._put("goal", text, at, weight=1.0)
        self._put("latest", text, at, weight=1.0)
        for cue in sentence_patterns.instructions_in(text):
            self._put("instructions", cue.text, at, weight=cue.weight)
        self._check(sentence_patterns.boxes_in(text), at)

    def add_assistant_message(self, message: Message, at: int) -> None:
        text = text_of(message)
        for cue in sentence_patterns.decisions_in(text):
            self._put("decisions", cue.text, at, weight=cue.weight)
        self._check(sentence_patterns.boxes_in(text), at)
        for task in sentence_patterns.open_in(text):
            self._put("tasks", task, at, weight=0.5)
        for call in message.tool_calls:
            boxes = _to_do(arguments_of(call.arguments))
            if boxes:
                self._replace_list(boxes, at)

    def add_activity(self, activity: ToolActivity, before: int) -> None:
        """Add what tools did; `before` is the time of their first message."""
        forms = lines()
        for use in activity.files:
            earlier = self._facts["files"].get(use.path)
            changed = use.writes or (earlier is not None and earlier.weight > 1)
            text = forms["changed" if changed else "read"].format(path=use.path)
            if earlier is not None and earlier.text != forms["read"].format(path=use.path):
                text = earlier.text  # in the words of the earlier summary
            self._put("files", text, before + use.at, weight=2.0 if changed else 0.6, key=use.path)
        self._resolve({run.command for run in activity.runs if not run.failed}, forms)
        for run in activity.runs:
            form = forms["failed" if run.failed else "ran" if run.outcome else "silent"]
            text = form.format(command=run.command, outcome=run.outcome)
            weight = 2.0 if run.failed else 0.3 if is_minor(run.command) else 1.2
            self._put("commands", text, before + run.at, weight=weight, key=run.command)
        errors = self._facts["errors"]
        for failure in activity.failures:
            form = forms["resolved" if failure.resolved else "unresolved"]
            text = form.format(error=failure.text, where=failure.where)
            key = f"{failure.where} {failure.text}"
            errors.pop(key, None)
            errors[key] = Fact(text, key, before + failure.at, 0.5 if failure.resolved else 2.0)

    def add_summary(self, summary: str) -> None:
        """Add an earlier summary, written by this package or a model, under the same headings or none."""
        names: dict[str, Section] = {heading.casefold(): name for name, heading in headings().items()}
        opening = texts.text("summary_extractive").splitlines()[0]
        section: Section = "state"
        at = self.newest
        for item in _items(without_pins(summary)):
            if item.startswith("#"):
                section = names.get(item.strip("# :").casefold(), "state")
                continue
            if item.startswith(opening) or (section == "facts" and _is_list_of_names(item)):
                continue
            at += 1
            under: Section = "state" if section == "facts" else section
            self._put(under, item, at, weight=_carried_weight(under, item), key=_carried_key(under, item))

    def _put(self, section: Section, text: str, at: int, *, weight: float, key: str | None = None) -> None:
        facts = self._facts[section]
        key = _key_of(text) if key is None else key
        earlier = facts.pop(key, None)
        facts[key] = Fact(text, key, at, weight if earlier is None else max(weight, earlier.weight))

    def _check(self, boxes: Iterable[tuple[str, bool]], at: int, *, weight: float = 2.0) -> None:
        """Add the open items of a check list, remove the done ones."""
        tasks = self._facts["tasks"]
        for task, done in boxes:
            key = _key_of(task)
            tasks.pop(key, None)
            if not done:
                tasks[key] = Fact(task, key, at, weight)

    def _replace_list(self, boxes: list[tuple[str, bool]], at: int) -> None:
        """Replace the items of the last to-do list."""
        tasks = self._facts["tasks"]
        for key in self._listed:
            if key in tasks and tasks[key].weight == _LISTED:
                del tasks[key]
        self._listed = [_key_of(task) for task, _ in boxes]
        self._check(boxes, at, weight=_LISTED)

    def _resolve(self, succeeded: set[str], forms: dict[str, str]) -> None:
        """Mark errors of an earlier summary as resolved if their command has succeeded since."""
        errors = self._facts["errors"]
        for key, fact in list(errors.items()):
            match = _WHERE.search(fact.text)
            if match is not None and match[1] in succeeded:
                text = forms["resolved"].format(error=fact.text[: match.start()], where=match[1])
                errors[key] = msgspec.structs.replace(fact, text=text, weight=0.5)


def _key_of(text: str) -> str:
    return " ".join(text.split()).casefold()


def _to_do(arguments: Any) -> list[tuple[str, bool]]:
    """The items in the arguments of a to-do tool, and whether each is done."""
    if not isinstance(arguments, dict):
        return []
    for name in ("todos", "plan", "tasks", "items"):
        items = arguments.get(name)
        if isinstance(items, list) and items and all(isinstance(item, dict) for item in items):
            tasks = [
                (next((item[key] for key in _TASK_KEYS if isinstance(item.get(key), str)), ""), item)
                for item in items
            ]
            if all(task and "status" in item for task, item in tasks):
                return [(task, item["status"] in _DONE) for task, item in tasks]
    return []


def _items(summary: str) -> list[str]:
    """Headings and items of a summary; an indented line continues the item before it."""
    items: list[str] = []
    for line in summary.splitlines():
        if line.startswith("  ") and items and not items[-1].startswith("#"):
            items[-1] += f"\n{line[2:]}"
        elif line.strip():
            items.append(line[2:] if line.startswith(("- ", "* ")) else line)
    return items


def _carried_key(section: Section, item: str) -> str | None:
    """The key of an item of an earlier summary: for files and commands, the text in its first backticks."""
    if section in ("files", "commands"):
        match = _TICKED.search(item)
        return match[1] if match is not None else None
    return None


def _carried_weight(section: Section, item: str) -> float:
    """The weight of an item of an earlier summary: what it was, as far as the item shows it."""
    if section == "instructions":
        return max(
            (cue.weight for cue in sentence_patterns.instructions_in(item)), default=sentence_patterns.WEAK
        )
    if section == "files":
        return 0.6 if item == lines()["read"].format(path=_carried_key(section, item)) else 2.0
    return _CARRIED.get(section, 1.0)


def _is_list_of_names(item: str) -> bool:
    """Whether an item is a line from an `IdentifierIndex`, which reads the names in it again."""
    label = item.partition(": ")[0]
    return item.startswith("$ ") or any(
        line.endswith(f": {label}") for line in texts.text("identifiers_kinds").splitlines()
    )


_LISTED = 2.5  # weight of an item of a to-do tool; the next list replaces it
_TASK_KEYS = ("content", "step", "title", "task", "text", "description", "name")
_DONE = ("completed", "done", "complete", "cancelled", "canceled", "skipped")
_TICKED = re.compile(r"`([^`]+)`")
_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_WHERE = re.compile(r" \(in `([^`]+)`\)$")
_CARRIED: dict[Section, float] = {"decisions": 1.5, "commands": 0.8, "errors": 0.8}
