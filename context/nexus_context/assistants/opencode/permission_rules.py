"""Reads the permission rules in settings of opencode, in the order in which it joins them (1.18.33)."""

import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from nexus_context.assistants.permissions.wildcards import with_stars
from nexus_context.assistants.reading.findings import value_at
from nexus_context.assistants.reading.profile_types import AssistantSettings, AssistantSettingsFile
from nexus_context.text.json import Pointer

_SPECIAL = re.compile(r"[*?]")


class OpencodeRule(NamedTuple):
    """A permission rule. `file` is the settings file that has it, None for opencode's own rules."""

    permission: str
    pattern: str
    action: str
    file: AssistantSettingsFile | None = None
    pointer: Pointer = ()

    @property
    def text(self) -> str:
        """The rule as a decision shows it."""
        return self.permission if self.pattern == "*" else f"{self.permission} {self.pattern}"


def settings_rules(settings: AssistantSettings, agent: tuple[str, ...]) -> Iterator[OpencodeRule]:
    """Yield the rules of all files in the order in which opencode joins them. `agent` is empty for the rules
    at the top of the settings, else it holds the name of the agent whose rules are meant.
    """
    tools, rules = dict[str, Any](), dict[str, Any]()
    for file in settings.files:
        for key in ("agent", "mode") if agent else ("",):
            values: Any = file.values
            pointer = (key, *agent) if agent else ()
            for name in pointer:
                values = values.get(name) if isinstance(values, Mapping) else None
            if not isinstance(values, Mapping):
                continue
            for tool, is_on in _items(values.get("tools")):
                name = "edit" if tool in ("write", "edit", "patch") else tool
                action = "allow" if is_on else "deny"
                tools[name] = OpencodeRule(name, "*", action, file=file, pointer=(*pointer, "tools", tool))
            _join(rules, values.get("permission"), file, (*pointer, "permission"))
    joined_rules = {**tools, **{name: entry for name, entry in rules.items() if name not in tools}}
    joined_rules |= {name: entry for name, entry in rules.items() if name in tools}
    for entry in joined_rules.values():
        for rule in entry.values() if isinstance(entry, dict) else (entry,):
            pattern = re.sub(r"\A(~|\$HOME)(?=/|\Z)", lambda _: settings.where.user_home, rule.pattern)
            yield rule._replace(pattern=pattern)


def _join(rules: dict[str, Any], values: Any, file: AssistantSettingsFile, pointer: Pointer) -> None:
    is_text = file.document is not None and isinstance(value_at(file.document.value, pointer), str)
    for name, value in _items(values):
        key_pointer = pointer if is_text else (*pointer, name)
        if isinstance(value, Mapping):
            existing = rules.get(name)
            patterns = rules[name] = existing if isinstance(existing, dict) else {}
            for pattern, action in value.items():
                patterns[pattern] = OpencodeRule(
                    name, pattern, str(action), file=file, pointer=(*key_pointer, pattern)
                )
        else:
            rules[name] = OpencodeRule(name, "*", str(value), file=file, pointer=key_pointer)


def _items(values: Any) -> Any:
    return values.items() if isinstance(values, Mapping) else ()


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern of opencode matches a text. ` *` at its end also matches nothing."""
    if pattern == "*":
        return True
    if pattern[:1].isalnum() and pattern[0] != text[:1]:  # most rules are about another command
        return False
    special = _SPECIAL.search(pattern)
    if special is None:
        return pattern.replace("\\", "/") == text.replace("\\", "/")
    start = pattern[: special.start()].replace("\\", "/")
    text = text.replace("\\", "/")
    return text.startswith(start.removesuffix(" ")) and _expression(pattern).fullmatch(text) is not None


@functools.lru_cache(maxsize=4096)
def _expression(pattern: str) -> re.Pattern[str]:
    pattern = pattern.replace("\\", "/")
    is_open = pattern.endswith(" *")
    parts = [re.escape(piece).replace(r"\?", ".") for piece in pattern.removesuffix(" *").split("*")]
    text = with_stars(parts, ".*")
    return re.compile(f"{text}(?: .*)?" if is_open else text, re.DOTALL)
