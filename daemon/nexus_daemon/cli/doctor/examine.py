"""Runs all checks in the order of the report. One that fails with an exception becomes a line of it."""

from collections.abc import Callable, Iterator

from nexus_context.errors import NexusError
from nexus_daemon.cli.doctor import installation, machine, storage
from nexus_daemon.cli.doctor.check import Check, covered
from nexus_daemon.process.logs.log_line import describe_exception

Examine = Callable[[], Iterator[Check]]


def examine(path: str) -> list[Check]:
    """Run all checks. The folder of `path` is checked, too."""
    examinations: tuple[tuple[str, str, Examine], ...] = (
        ("versions", "Nexus", installation.versions),
        ("versions", "packages", installation.packages),
        ("versions", "SQLite", installation.sqlite),
        ("installation", "command", installation.commands),
        ("installation", "editors", installation.editors),
        ("installation", "environment", installation.environment),
        ("system", "system", machine.system),
        ("system", "file watches", machine.watches),
        ("directories", "global directory", storage.global_settings),
        ("directories", "state directory", storage.state),
        ("directories", "runtime directory", machine.runtime_directory),
        ("shared daemon", "daemon", machine.shared_daemon),
        ("ledger", "ledger", storage.ledger),
        ("folder", "folder", lambda: storage.folder(path)),
        ("log", "log", storage.log),
    )
    checks: list[Check] = []
    for section, name, function in examinations:
        try:
            for check in function():
                checks.append(covered(check))  # noqa: PERF401 - what came before an exception stays
        except NexusError as error:
            checks.append(covered(Check(section, name, "warning", str(error))))
        except Exception as error:  # noqa: BLE001 - the report is for when everything is broken
            advice = "Report this as a bug if nothing else in this list explains it."
            text = f"could not be examined: {describe_exception(error)}"
            checks.append(covered(Check(section, name, "warning", text, advice=advice)))
    return checks
