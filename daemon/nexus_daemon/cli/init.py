"""Write `.nexus3/` with commented templates into a folder, or ~/.nexus3 with --global.

Existing files stay as they are. With --global --force they are replaced.
"""

import argparse
import os
from pathlib import Path

from nexus_context.errors import RequestError
from nexus_context.init import plan_global_init, plan_init
from nexus_context.layers.walk import global_directory
from nexus_daemon.cli import output
from nexus_daemon.workspace.scaffold import Scaffolded, scaffold

HELP = "write .nexus3/ with templates"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", nargs="?", default=".", help="the folder (default: the current one)")
    command.add_argument("--global", dest="everywhere", action="store_true", help="write ~/.nexus3 instead")
    command.add_argument("--force", action="store_true", help="with --global: replace existing files")


def run(options: argparse.Namespace) -> int:
    if options.force and not options.everywhere:
        output.complain("init", "--force needs --global: a project's files are never replaced.")
        return 2
    folder = Path(options.path).resolve()
    if not options.everywhere and not folder.is_dir():
        output.complain("init", f"{folder} is not a directory.")
        return 2
    try:
        everywhere = options.everywhere
        scaffolded = _write_global(force=options.force) if everywhere else scaffold(plan_init(str(folder)))
    except RequestError as error:
        output.complain("init", str(error))
        return 1
    for path in scaffolded.created:
        output.line(f"created  {path}")
    for path in scaffolded.existing:
        output.line(f"exists   {path}")
    return 0


def _write_global(*, force: bool) -> Scaffolded:
    home = global_directory(os.environ)
    if Path(home).exists() and not force:
        raise RequestError(f"{home} exists already. Use --force to replace its files.", code="init-exists")
    return scaffold(plan_global_init(home, replace=force), overwrite=force)
