"""Calls and their results: which result answers which call, under which id, in which order."""

from bisect import bisect_left
from typing import Any, NamedTuple

import msgspec

from nexus_context.conversation.message import Message, ToolCall, content_of
from nexus_context.conversation.parts import is_blank
from nexus_context.conversation.repair.repair_log import Repair, place, quote_name
from nexus_context.conversation.repair.single import Step
from nexus_context.prompt import texts

UNNAMED = "call"
"""Id of a call that has none; a number follows."""


class _Call(NamedTuple):
    step: int
    number: int  # among the calls of its message


class Pairing:
    """Pairs results with calls by the rules of this package.

    `before` has the ids of the calls before these steps.
    """

    def __init__(self, steps: list[Step], repairs: list[Repair], before: set[str]) -> None:
        self._steps = steps
        self._repairs = repairs
        self._calls: list[_Call] = []
        self._answers: dict[_Call, list[int]] = {}  # steps of the results; the last counts
        self._orphans: list[int] = []
        by_id: dict[str, list[_Call]] = {}
        results: dict[str, list[int]] = {}
        unnamed: list[int] = []
        self._speakers: list[int] = []  # for each step, the last one that is not a result
        for at, (_, message) in enumerate(steps):
            self._speakers.append(self._speakers[-1] if message.role == "tool" and at else at)
            for number, call in enumerate(message.tool_calls):
                self._calls.append(_Call(at, number))
                by_id.setdefault(call.id, []).append(_Call(at, number))
            if message.role == "tool":
                if message.tool_call_id:
                    results.setdefault(message.tool_call_id, []).append(at)
                else:
                    unnamed.append(at)
        for name, answers in results.items():
            self._match(by_id.get(name, []), answers)
        self._ids = self._named(set(before), before | by_id.keys())
        self._match_unnamed(unnamed)

    def ordered(self) -> list[Step]:
        """The messages in order, each call followed by its result."""
        for at in self._orphans:
            self._log_orphan(at)
        steps: list[Step] = []
        for at, step in enumerate(self._steps):
            message = step.message
            if message.tool_calls:
                steps += self._group(at)
            elif message.role == "tool":
                continue
            elif _is_silent(message):
                text = f"The {message.role} {place(step.origin)} is empty; it is left out."
                self._repairs.append(Repair("message-empty", text, step.origin))
            else:
                steps.append(step)
        return steps

    # ------------------------------------------------------------ matching

    def _match(self, calls: list[_Call], results: list[int]) -> None:
        """Assign the results of one id to its calls: results answer the calls before them."""
        if not calls:
            self._orphans += results
            return
        waiting: list[_Call] = []
        start = 0
        borders = [*(call.step for call in calls[1:]), len(self._steps)]
        for call, border in zip(calls, borders, strict=True):
            waiting.append(call)
            end = bisect_left(results, border) if border > call.step else start
            count = min(end - start, len(waiting))
            if not count:
                continue
            newest = waiting[-count:]
            del waiting[-count:]
            for number, at in enumerate(results[start:end]):
                self._answers.setdefault(newest[min(number, count - 1)], []).append(at)
            start = end

    def _match_unnamed(self, unnamed: list[int]) -> None:
        """Assign results without an id to calls without a result."""
        unanswered = iter([call for call in self._calls if call not in self._answers] if unnamed else ())
        upcoming = next(unanswered, None)
        waiting: list[_Call] = []
        for at in unnamed:
            while upcoming is not None and upcoming.step < at:
                waiting.append(upcoming)
                upcoming = next(unanswered, None)
            if not waiting:
                self._orphans.append(at)
                continue
            origin, message = self._steps[at]
            first = len(waiting) - 1
            while first and waiting[first - 1].step == waiting[-1].step:
                first -= 1
            named = (self._call(call).name == message.name for call in waiting[first:])
            call = waiting.pop(first + next((number for number, same in enumerate(named) if same), 0))
            self._answers[call] = [at]
            name = self._ids[call]
            text = f"The result in {place(origin)} names no call; it is sent for the call {quote_name(name)}."
            self._repairs.append(Repair("result-unnamed", text, origin, name))

    def _named(self, sent_ids: set[str], taken: set[str]) -> dict[_Call, str]:
        """The id that each call is sent with: not in `sent_ids`; a new one is not in `taken` either."""
        numbers: dict[str, int] = {}
        ids: dict[_Call, str] = {}
        for key in self._calls:
            call, origin = self._call(key), self._steps[key.step].origin
            name = call.id
            if not name or name in sent_ids:
                stem = name or UNNAMED
                number = numbers.get(stem, 1 if name else 0) + 1
                while f"{stem}-{number}" in taken:
                    number += 1
                numbers[stem] = number
                name = f"{stem}-{number}"
                text = f"An earlier call also has the id {quote_name(call.id)}; the one in {place(origin)}"
                if not call.id:
                    text = f"The call of {quote_name(call.name)} in {place(origin)} has no id; it"
                self._repairs.append(
                    Repair(
                        "call-renamed",
                        f"{text} is sent as {quote_name(name)}.",
                        origin,
                        tool_call_id=name,
                        given=call.id,
                        sent=name,
                    )
                )
            sent_ids.add(name)
            ids[key] = name
        return ids

    # ------------------------------------------------------------ in order

    def _group(self, at: int) -> list[Step]:
        """A message with calls and a result for each: in the order of arrival, missing ones last."""
        origin, message = self._steps[at]
        names = [self._ids[_Call(at, number)] for number in range(len(message.tool_calls))]
        if names != [call.id for call in message.tool_calls]:
            pairs = zip(names, message.tool_calls, strict=True)
            renamed = tuple(ToolCall(name, call.name, call.arguments) for name, call in pairs)
            message = msgspec.structs.replace(message, tool_calls=renamed)
        results: list[tuple[int, str]] = []
        missing: list[Step] = []
        for number, call in enumerate(message.tool_calls):
            answers = self._answers.get(_Call(at, number))
            if answers:
                results.append((answers[-1], call.id))
                self._log_repeated(answers, call.id)
            else:
                missing.append(self._missing(origin, call))
        answered = [
            self._answer(result, name, self._speakers[result] == at) for result, name in sorted(results)
        ]
        return [Step(origin, message), *answered, *missing]

    def _answer(self, at: int, name: str, in_place: bool) -> Step:
        origin, message = self._steps[at]
        if not in_place:
            text = f"The result of the call {quote_name(name)} stood elsewhere; it now follows its call."
            self._repairs.append(Repair("result-moved", text, origin, name))
        if message.tool_call_id == name:
            return Step(origin, message)
        return Step(origin, msgspec.structs.replace(message, tool_call_id=name))

    def _missing(self, origin: int, call: ToolCall) -> Step:
        text = f"The call {quote_name(call.id)} of {quote_name(call.name)} has no result; a text says so."
        self._repairs.append(Repair("result-missing", text, origin, call.id))
        content = texts.text("result_missing")
        meta = {"is_error": True}
        return Step(origin, Message("tool", content, tool_call_id=call.id, name=call.name, meta=meta))

    def _call(self, key: _Call) -> ToolCall:
        return self._steps[key.step].message.tool_calls[key.number]

    # ------------------------------------------------------------ left out

    def _log_orphan(self, at: int) -> None:
        origin, message = self._steps[at]
        name = message.tool_call_id
        text = f"The result in {place(origin)} names no call, and no earlier call lacks one; it is left out."
        if name:
            text = (
                f"The result in {place(origin)} answers an unknown call {quote_name(name)}; it is left out."
            )
        self._repairs.append(Repair("result-orphan", text, origin, name or None))

    def _log_repeated(self, answers: list[int], name: str) -> None:
        for at in answers[:-1]:
            origin = self._steps[at].origin
            text = (
                f"The call {quote_name(name)} has several results; only the last is sent, "
                f"the one in {place(origin)} is left out."
            )
            self._repairs.append(Repair("result-repeated", text, origin, name))


def _is_silent(message: Message) -> bool:
    content: Any = content_of(message)
    return is_blank(content) or (isinstance(content, list) and all(map(is_blank, content)))
