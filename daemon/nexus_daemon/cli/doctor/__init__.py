"""Check the installation, and collect what a bug report needs; secrets, user and host names are left out.

`ok`: as it should be. `warning`: works, but not as well as it could. `fix`: something does not work until
it is fixed. With --trace, record what the daemon does for a while, as a file for https://ui.perfetto.dev.
"""

import argparse

from nexus_daemon.cli import output

SECONDS = 10.0


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", nargs="?", default=".", help="the folder that is checked, too (default: .)")
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--trace", metavar="FILE", help="record a trace to this file instead of the checks")
    command.add_argument(
        "--seconds", type=_seconds, default=SECONDS, metavar="N", help="of the trace (default: %(default)g)"
    )


def run(options: argparse.Namespace) -> int:
    if options.trace is not None:
        from nexus_daemon.cli.doctor import record

        return record.run(options.path, options.trace, options.seconds)
    from nexus_daemon.cli.doctor import examine

    checks = examine.examine(options.path)
    failed = any(check.status == "fix" for check in checks)
    if options.json:
        import msgspec

        output.json_value({"failed": failed, "checks": msgspec.to_builtins(checks)})
        return 1 if failed else 0
    section = ""
    for check in checks:
        if check.section != section:
            section = check.section
            output.line(f"{section}:")
        mark = {"info": " ", "ok": "ok"}.get(check.status, check.status)
        output.line(f"  {mark:<8}{check.name}: {check.text}")
        if check.advice:
            output.line(f"          → {check.advice}")
    counts = {status: sum(check.status == status for check in checks) for status in ("fix", "warning")}
    output.line(f"{counts['fix']} to fix, {output.counted(counts['warning'], 'warning')}.")
    return 1 if failed else 0


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds up to 600")
    return seconds
