"""Run the forms of `nexus serve` that cannot wait for the command line to be imported."""

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from nexus_daemon.shared.command_runner import RunCommand

FORWARD = (
    ["--remote=auto"],
    ["--remote", "auto"],
    ["--stdio", "--remote=auto"],
    ["--remote=auto", "--stdio"],
)


def main(arguments: list[str], run_command: "RunCommand") -> int | None:
    """Run `nexus serve` with these arguments. Return None if the command line has to run it.

    The shared daemon runs the commands of other processes with `run_command`. The forwarder returns only if
    there is no shared daemon. Then this process is the server of its editor.
    """

    def run_daemon() -> int:
        from nexus_daemon.process.lean_imports import import_lean

        import_lean("msgspec")
        import_lean("asyncio")
        from nexus_daemon.shared import process

        return process.run(run_command)

    if arguments == ["--shared"]:
        return run_daemon()
    if arguments in FORWARD and not sys.stdin.isatty():
        from nexus_daemon.shared import forwarder

        reason = forwarder.run(run_daemon)
        print(f"nexus: this window has a daemon of its own: {reason}", file=sys.stderr)  # noqa: T201 - the log of the editor
        sys.argv[2:] = []
    return None
