"""Finds settings that are valid on their own but contradict each other, and secrets in a config.json."""

from typing import Any

from nexus_context.config import fixes
from nexus_context.errors import Problem, Related, Severity, Span
from nexus_context.text.json import JsonDocument
from nexus_context.text.redact import secrets_in

MOST_NAMES = 20  # of sections that are reported

Node = dict[str, Any]
Pointer = tuple[str, ...]


def advise(document: JsonDocument, schema: Node) -> list[Problem]:
    """Return the warnings about one file whose root is an object.

    A value that the schema rejects gets none.
    """
    return [
        *_budget(document, schema),
        *_compaction(document, schema),
        *_time_zone(document),
        *_section_names(document),
        *_ledger(document),
        *_secrets(document),
    ]


def _budget(document: JsonDocument, schema: Node) -> list[Problem]:
    limit = _get(document, ("context", "max_tokens"))
    reserved = [
        _number(document, schema, ("context", key)) for key in ("reserve_tokens", "reserve_tool_tokens")
    ]
    if not _is_number(limit) or None in reserved:
        return []
    total = sum(amount for amount in reserved if amount is not None)
    if total < limit:
        return []
    pointer = next(
        path
        for key in ("reserve_tokens", "reserve_tool_tokens", "max_tokens")
        if _get(document, path := ("context", key)) is not None
    )
    message = f"{total} of {limit} tokens are reserved: nothing is left. Raise max_tokens or reserve less."
    return [_warning(document, pointer, "config.budget", message)]


def _compaction(document: JsonDocument, schema: Node) -> list[Problem]:
    threshold = _number(document, schema, ("compaction", "threshold"))
    problems = []
    for key in ("target", "overflow_target"):
        pointer = ("compaction", key)
        target = _get(document, pointer)
        if threshold is not None and _is_number(target) and target >= threshold:
            message = f'"{key}" must be below "threshold" ({threshold:g}), or a compaction frees nothing.'
            problems.append(_warning(document, pointer, "config.compaction", message))
    return problems


def _time_zone(document: JsonDocument) -> list[Problem]:
    pointer = ("context", "datetime", "timezone")
    name = _get(document, pointer)
    if not isinstance(name, str) or name in {"", "local", "UTC"}:
        return []
    # the zone database is read only if a file names a zone
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        zones = zoneinfo.available_timezones()
    else:
        return []
    if not zones:
        return []
    meant = fixes.meant(name, sorted(zones))
    hint = (
        f": did you mean {fixes.quoted(meant)}?"
        if meant
        else ': use a name such as "Europe/Berlin", "UTC" or "local".'
    )
    fix = fixes.replace(document, pointer, fixes.quoted(meant)) if meant else None
    return [
        _warning(
            document, pointer, "config.timezone", f"Unknown time zone {fixes.quoted(name)}{hint}", fix=fix
        )
    ]


def _section_names(document: JsonDocument) -> list[Problem]:
    sections = _get(document, ("context", "sections"))
    first_indexes: dict[str, int] = {}
    problems: list[Problem] = []
    for index, section in enumerate(sections) if isinstance(sections, list) else ():
        name = section.get("name") if isinstance(section, dict) else None
        if not isinstance(name, str) or not name.strip():
            continue
        first_index = first_indexes.setdefault(" ".join(name.split()), index)
        if first_index != index:
            spans = (
                document.span(("context", "sections", section_index, "name"))
                for section_index in (index, first_index)
            )
            problems.append(_second_section(document, name, *spans))
            if len(problems) == MOST_NAMES:  # locating each one takes time
                break
    return problems


def _second_section(document: JsonDocument, name: str, span: Span, first_span: Span) -> Problem:
    message = f"There are two sections {fixes.quoted(name)} in this file: rename or remove one of them."
    related = (Related(document.path, first_span, "The first one is here."),)
    return Problem(
        document.path,
        span,
        "config.section-name",
        Severity.WARNING,
        message=message,
        fix=None,
        related=related,
    )


def _ledger(document: JsonDocument) -> list[Problem]:
    if _get(document, ("ledger", "path")) is None or _get(document, ("ledger", "url")) is None:
        return []
    message = '"url" is used and "path" is not: set one of them.'
    return [
        _warning(
            document,
            ("ledger", "path"),
            "config.ledger",
            message,
            fix=fixes.remove(document, ("ledger", "path")),
        )
    ]


def _secrets(document: JsonDocument) -> list[Problem]:
    places: list[tuple[Pointer, str]] = [(("provider", "api_key_env"), ""), (("provider", "base_url"), "")]
    headers = _get(document, ("provider", "headers"))
    if isinstance(headers, dict):
        places += [(("provider", "headers", name), name) for name in headers]
    problems = []
    for pointer, name in places:
        value = _get(document, pointer)
        if isinstance(value, str) and secrets_in(value, name):
            message = (
                f"{fixes.quoted(pointer[-1])} contains what looks like a secret: put it into an environment "
                "variable and name that in provider.api_key_env."
            )
            problems.append(_warning(document, pointer, "config.secret", message))
    return problems


def _get(document: JsonDocument, pointer: Pointer) -> Any:
    value = document.value
    for key in pointer:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _number(document: JsonDocument, schema: Node, pointer: Pointer) -> float | None:
    """The value in this file, else its default; None if it is not a number."""
    value = _get(document, pointer)
    if value is None:
        value = schema["properties"][pointer[0]]["properties"][pointer[1]]["default"]
    return value if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _warning(document: JsonDocument, pointer: Pointer, code: str, message: str, fix: Any = None) -> Problem:
    return Problem(document.path, document.span(pointer), code, Severity.WARNING, message=message, fix=fix)
