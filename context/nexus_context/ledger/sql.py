"""The first row, or the first value, of the result of a statement."""

from typing import Any

import apsw


def row(connection: apsw.Connection, statement: str, *values: Any) -> Any:
    """The first row as a tuple, or None."""
    return connection.execute(statement, values).fetchone()


def value(connection: apsw.Connection, statement: str, *values: Any) -> Any:
    """The first value of the first row; None without a row."""
    first = connection.execute(statement, values).fetchone()
    return None if first is None else first[0]
