"""Tool definitions: merged by name, filtered by pattern, in an order that never changes by itself.

The order matters: providers cache a request's prefix, and tools come first in it.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

Tool = dict[str, Any]


def name_of(tool: Mapping[str, Any]) -> str:
    """The name of a tool definition, in the neutral and Anthropic form or in OpenAI's; "" without one."""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("name")
    return name if isinstance(name, str) else ""


def select(*sources: Iterable[Tool], disabled: Iterable[str] = ()) -> list[Tool]:
    """All tools by name, a later source replacing an earlier one, without those that a pattern disables."""
    patterns = tuple(disabled)
    by_name = {name_of(tool): tool for source in sources for tool in source}
    return [
        tool
        for name, tool in sorted(by_name.items())
        if not any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
