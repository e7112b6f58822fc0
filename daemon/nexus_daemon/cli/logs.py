"""Show the log of all daemons of this user, and follow it.

Secrets are covered in it, and no text of conversations or files is written to it. Errors and warnings are
always recorded; --record says from which level on, for a while, without a restart.
"""

import argparse
import logging
import os
from collections.abc import Callable

from nexus_daemon.cli import output
from nexus_daemon.cli.invocation import current
from nexus_daemon.process.logs.location import LEVELS, log_directory, record_level, recorded_level
from nexus_daemon.process.logs.log_line import describe_exception, shorten_home
from nexus_daemon.process.logs.read_log import Follower, Line, last_lines

EPILOG = """\
examples:
  nexus logs --level warning            what went wrong
  nexus logs --record debug --for 10    record everything for ten minutes ...
  nexus logs --follow                   ... and watch it
"""
LINES = 100
MINUTES = 15.0
_PAUSE_S = 0.25


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--follow", "-f", action="store_true", help="go on with what is logged from now on")
    command.add_argument("--level", choices=LEVELS, default="debug", help="show only records from here on")
    command.add_argument(
        "--lines", "-n", type=_count, default=LINES, metavar="N", help="default: %(default)s"
    )
    command.add_argument("--json", action="store_true", help="print a JSON object a line")
    command.add_argument(
        "--record",
        choices=LEVELS,
        help="have running and future processes record from here on (default: info)",
    )
    command.add_argument(
        "--for",
        dest="minutes",
        type=_minutes,
        default=MINUTES,
        metavar="MINUTES",
        help="how long --record holds (default: %(default)g)",
    )


def run(options: argparse.Namespace) -> int:
    directory = log_directory(current().environ)
    try:
        if options.record is not None:
            record_level(directory, options.record, options.minutes)
            output.line(f"Records from {options.record} on are logged for {options.minutes:g} minutes.")
            if not options.follow:
                return 0
        _show(directory, options)
    except BrokenPipeError:  # the reader has gone, which is no failure
        raise
    except OSError as error:
        output.complain("logs", f"{describe_exception(error)}.")
        return 1
    return 0


def _show(directory: str, options: argparse.Namespace) -> None:
    follower = Follower(directory)
    try:
        takes = _taking(options.level)
        for line in last_lines(follower, options.lines, takes):
            _print(line, as_json=options.json)
        if not options.json:
            recorded = recorded_level(directory)
            level = "" if recorded is None else f", with records from {recorded.level} on"
            output.flush()
            output.beside(f"The log is {shorten_home(os.path.join(directory, 'nexus.log'))}{level}.\n")
        while options.follow:
            output.flush()
            output.pause(_PAUSE_S)
            for line in filter(takes, follower.read()):
                _print(line, as_json=options.json)
    finally:
        follower.close()


def _taking(level: str) -> Callable[[Line], bool]:
    numbers = logging.getLevelNamesMapping()
    least = numbers[level.upper()]
    return lambda line: numbers.get(line["level"], least) >= least


def _print(line: Line, *, as_json: bool) -> None:
    if as_json:
        output.json_lines(_json(line) + "\n")
        return
    head, *continuation_lines = line["message"].split("\n")
    output.line(line["text"][: len(line["text"]) - len(line["message"])] + head)
    for continuation_line in continuation_lines:
        output.line(f"    {continuation_line}")


def _json(line: Line) -> str:
    import msgspec

    return msgspec.json.encode({name: value for name, value in line.items() if name != "text"}).decode()


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines")
    return int(text)


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= 24 * 60:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of minutes up to a day")
    return minutes
