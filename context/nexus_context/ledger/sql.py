"""The first row, or the first value, of what a statement finds."""

from typing import Any

import apsw


def row(connection: apsw.Connection, statement: str, *values: Any) -> Any:
    """A tuple, or None."""
    return connection.execute(statement, values).fetchone()


def value(connection: apsw.Connection, statement: str, *values: Any) -> Any:
    """The first value of the first row; None where there is no row."""
    found = connection.execute(statement, values).fetchone()
    return None if found is None else found[0]
