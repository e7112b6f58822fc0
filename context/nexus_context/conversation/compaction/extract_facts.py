"""Extracts from messages what later steps may need, one message at a time and without a model.

1. What the user wrote (`user_words`) is kept verbatim: every message that says something, and those of its
   sentences that instruct or correct.
2. From assistants come findings and decisions: sentences that say so, and what a turn's last message reports.
   Open work comes from task lists (`task_lists`) and from sentences that promise more.
3. From tools comes what they did (`tool_activity`).
4. An earlier summary, whoever wrote it, is read item by item (`earlier_summary`). Its facts come before all
   others. A later fact with the same key replaces an earlier one.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from nexus_context.conversation.compaction import sentence_patterns
from nexus_context.conversation.compaction.earlier_summary import Item, items_of
from nexus_context.conversation.compaction.task_lists import TaskLists, line_of
from nexus_context.conversation.compaction.user_words import (
    is_reply,
    user_words,
    without_pastes,
    words_in_refusal,
)
from nexus_context.conversation.identifiers import arguments_of
from nexus_context.conversation.message import Message, text_of
from nexus_context.conversation.message_secrets import without_secrets
from nexus_context.conversation.summary import is_summary, summary_of, without_pins
from nexus_context.conversation.tool_activity import ToolActivity, activity_of, is_minor
from nexus_context.folder.prompt import texts
from nexus_context.text.redact import redact_message

Section = Literal[
    "goal", "instructions", "latest", "tasks", "decisions", "files", "commands", "errors", "facts", "state"
]
SECTIONS: tuple[Section, ...] = Section.__args__  # type: ignore[attr-defined]


SHORT = 600
"""Characters of a user's message that is short."""


class Fact(msgspec.Struct, frozen=True):
    """One statement that a summary may contain. `at` is its order in time, and `weight` its importance."""

    text: str
    key: str
    at: int
    weight: float


class Facts(msgspec.Struct, frozen=True):
    """Facts by section, in the order of time. No two facts of a section have the same key.

    The section `facts` is empty, because names and values come from an `IdentifierIndex`.
    """

    sections: dict[Section, tuple[Fact, ...]]
    activity: ToolActivity

    def of(self, section: Section) -> tuple[Fact, ...]:
        return self.sections.get(section, ())


def extract_facts(messages: Sequence[Message]) -> Facts:
    """Extract the facts in the messages, which must be sorted oldest first."""
    collector = _Collector()
    fresh: list[Message] = []
    for message in messages:
        if is_summary(message):
            collector.add_summary(redact_message(summary_of(message)))
        else:
            fresh.append(without_secrets(message))
    start = collector.newest + 1
    results = {message.tool_call_id: message for message in fresh if message.role == "tool"}
    for at, message in enumerate(fresh, start):
        if message.role == "user":
            collector.add_user_message(user_words(message), at)
        elif message.role == "tool":
            collector.add_user_message(words_in_refusal(text_of(message)), at)
        elif message.role == "assistant":
            collector.add_assistant_message(message, at)
            for call in message.tool_calls:
                answer = results.get(call.id)
                result = "" if answer is None else text_of(answer)
                collector.tasks.apply(call, arguments_of(call.arguments), result)
    activity = activity_of(fresh)
    collector.add_activity(activity, start)
    collector.add_listed_tasks(start + len(fresh))
    return Facts(collector.sections(), activity)


def headings() -> dict[Section, str]:
    """Return the headings of the sections in a summary: section → heading."""
    return _table("summary_headings")  # type: ignore[return-value]


def lines() -> dict[str, str]:
    """Return the templates of the lines in a summary: name → template."""
    return _table("summary_lines")


def _table(name: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in texts.text(name).splitlines())


class _Collector:
    """Collects facts by section and key."""

    def __init__(self) -> None:
        self._facts: dict[Section, dict[str, Fact]] = {section: {} for section in SECTIONS}
        self.tasks = TaskLists()

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
        """Add what a user wrote: the message, its instructions, the boxes of a check list."""
        if not text or is_reply(text):
            return
        text = without_pastes(text)
        if not self._facts["goal"]:
            self._put("goal", text, at, weight=1.0)
        cues = sentence_patterns.instructions_in(text)
        self._put("latest", text, at, weight=_message_weight(text, cues))
        for cue in cues:
            self._put("instructions", cue.text, at, weight=cue.weight)
        self._check(sentence_patterns.boxes_in(text), at)

    def add_assistant_message(self, message: Message, at: int) -> None:
        """Add what an assistant found out and decided, and the work that it calls open."""
        text = text_of(message)
        if not text:
            return
        for cue in sentence_patterns.findings_in(text, is_report=not message.tool_calls):
            self._put("decisions", cue.text, at, weight=cue.weight)
        self._check(sentence_patterns.boxes_in(text), at)
        for task in sentence_patterns.open_in(text):
            self._put("tasks", task, at, weight=0.5)

    def add_listed_tasks(self, at: int) -> None:
        """Add the open tasks of lists, in their order."""
        for number, task in enumerate(self.tasks.open.values()):
            self._put("tasks", line_of(task), at + number, weight=_LISTED)

    def add_activity(self, activity: ToolActivity, start: int) -> None:
        """Add what tools did; `start` is the time of their first message."""
        forms = lines()
        for use in activity.files:
            earlier = self._facts["files"].get(use.path)
            changed = use.writes or (earlier is not None and earlier.weight > 1)
            text = forms["changed" if changed else "read"].format(path=use.path)
            if earlier is not None and earlier.text != forms["read"].format(path=use.path):
                text = earlier.text  # in the words of the earlier summary
            self._put("files", text, start + use.at, weight=2.0 if changed else 0.6, key=use.path)
        self._resolve({run.command for run in activity.runs if not run.failed}, forms)
        for run in activity.runs:
            form = forms["failed" if run.failed else "ran" if run.outcome else "silent"]
            text = form.format(command=run.command, outcome=run.outcome)
            weight = 2.0 if run.failed else 0.3 if is_minor(run.command) else 1.2
            self._put("commands", text, start + run.at, weight=weight, key=run.command)
        errors = self._facts["errors"]
        for failure in activity.failures:
            form = forms["resolved" if failure.resolved else "unresolved"]
            text = form.format(error=failure.text, where=failure.where)
            key = f"{failure.where} {failure.text}"
            errors.pop(key, None)
            errors[key] = Fact(text, key, start + failure.at, 0.5 if failure.resolved else 2.0)

    def add_summary(self, summary: str) -> None:
        """Add an earlier summary, written by this package, a model or another program."""
        opening = texts.text("summary_extractive").splitlines()[0]
        at = self.newest
        for item in items_of(without_pins(summary)):
            if item.text.startswith(opening) or (item.section == "facts" and _is_list_of_names(item.text)):
                continue
            at += 1
            self._carry(item, at)

    def _carry(self, item: Item, at: int) -> None:
        """Add one item of an earlier summary."""
        section: Section = "state" if item.section == "facts" else item.section  # type: ignore[assignment]
        text = item.text
        if section == "tasks" and text.startswith("[ ] "):
            self.tasks.carry(text.removeprefix("[ ] "))
            return
        if section == "latest" and len(text) > 2 and text[0] + text[-1] in ('""', "“”"):
            text = text[1:-1]
        if section in ("goal", "latest"):  # this time the message may be shortened
            for cue in sentence_patterns.instructions_in(text):
                self._put("instructions", cue.text, at, weight=cue.weight)
        if section == "goal" and self._facts["goal"]:
            self._put("latest", text, at, weight=1.0)
            return
        self._put(section, text, at, weight=_carried_weight(section, text), key=_carried_key(section, text))

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


def _message_weight(text: str, cues: Sequence[sentence_patterns.Cue]) -> float:
    """Weigh a user's message: orders count, short messages count little."""
    weight = max((cue.weight for cue in cues), default=sentence_patterns.WEAK)
    return weight + 1.0 if len(text) <= SHORT else 0.4 * weight


def _carried_key(section: Section, item: str) -> str | None:
    """The key of an item of an earlier summary: for files and commands, the text in its first backticks."""
    if section in ("files", "commands"):
        match = _TICKED.search(item)
        return match[1] if match is not None else None
    return None


def _carried_weight(section: Section, item: str) -> float:
    """Restore the weight of an item of an earlier summary, as far as the item shows it."""
    if section == "instructions":
        return max(
            (cue.weight for cue in sentence_patterns.instructions_in(item)), default=sentence_patterns.WEAK
        )
    if section == "latest":
        return _message_weight(item, sentence_patterns.instructions_in(item))
    if section == "decisions":
        cues = sentence_patterns.findings_in(item, is_report=True)
        return max((cue.weight for cue in cues), default=1.0) + _CHOSEN
    if section == "files":
        return 0.6 if item == lines()["read"].format(path=_carried_key(section, item)) else 2.0
    if section == "errors":
        return 0.5 if item.endswith(_RESOLVED) else 1.5
    return _CARRIED.get(section, 1.0)


def _is_list_of_names(item: str) -> bool:
    """Whether an item is a line from an `IdentifierIndex`, which reads the names in it again."""
    label = item.partition(": ")[0]
    return item.startswith("$ ") or any(
        line.endswith(f": {label}") for line in texts.text("identifiers_kinds").splitlines()
    )


_LISTED = 2.5  # weight of a task of a list
_CHOSEN = 0.3  # weight of having been in a summary before
_TICKED = re.compile(r"`([^`]+)`")
_WHERE = re.compile(r" \(in `([^`]+)`\)$")
_RESOLVED = "resolved since)"
_CARRIED: dict[Section, float] = {"commands": 0.8}
