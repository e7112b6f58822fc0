"""Values as lines of JSON, as programs keep their sessions and exchange messages."""

import json
from collections.abc import Iterable
from typing import Any


def json_lines(values: Iterable[Any]) -> str:
    """A line for each value, in ASCII."""
    return "".join(json.dumps(value) + "\n" for value in values)
