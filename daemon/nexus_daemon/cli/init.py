"""Write `.nexus3/` with commented templates into a folder, or ~/.nexus3 with --global.

Existing files stay as they are. With --global --force they are replaced. With --adopt, a new mcp.json (or
one that is still the template) takes over the MCP servers of other programs; secrets stay where they are.
"""

import argparse
from pathlib import Path

from nexus_context.disk.user_state import has_home_directory
from nexus_context.errors import RequestError
from nexus_context.folder.init import InitPlan, plan_global_init, plan_init
from nexus_context.folder.layers.walk import global_directory
from nexus_daemon.cli import invocation, output
from nexus_daemon.workspace.scaffold import Scaffolded, scaffold


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", nargs="?", default=".", help="the folder (default: the current one)")
    command.add_argument("--global", dest="everywhere", action="store_true", help="write ~/.nexus3 instead")
    command.add_argument(
        "--adopt", action="store_true", help="take over the MCP servers of .mcp.json and .vscode/mcp.json"
    )
    command.add_argument("--dry-run", action="store_true", help="only show what would be written")
    command.add_argument("--force", action="store_true", help="with --global: replace existing files")


def run(options: argparse.Namespace) -> int:
    if options.force and not options.everywhere:
        output.complain("init", "--force needs --global: a project's files are never replaced.")
        return 2
    if options.everywhere and (options.adopt or options.dry_run):
        output.complain("init", "--adopt and --dry-run are for a project, without --global.")
        return 2
    folder = Path(options.path).resolve()
    if not options.everywhere and not folder.is_dir():
        output.complain("init", f"{folder} is not a directory.")
        return 2
    plan = None if options.everywhere else plan_init(str(folder), adopt=options.adopt)
    if plan is not None and options.dry_run:
        _show(Scaffolded(tuple(path for path, _ in plan.create), plan.existing), plan, created="would create")
        return 0
    try:
        scaffolded = _write_global(force=options.force) if plan is None else scaffold(plan)
    except RequestError as error:
        output.complain("init", str(error))
        return 1
    _show(scaffolded, plan)
    return 0


def _show(scaffolded: Scaffolded, plan: InitPlan | None, *, created: str = "created") -> None:
    replaced = plan.replaced if plan else ()
    for path in scaffolded.created:
        output.line(f"{created.replace('create', 'replace') if path in replaced else created}  {path}")
    for path in scaffolded.existing:
        output.line(f"exists   {path}")
    for server in plan.adopted if plan else ():
        names = ", ".join(server.variables)
        note = f": set {names}, the values stay in that file" if names else ""
        output.line(f"adopted  {server.name} from {server.path}{note}")
    for left_server in plan.left if plan else ():
        output.line(
            f"left     {left_server.name or 'all servers'} in {left_server.path}: {left_server.reason}"
        )


def _write_global(*, force: bool) -> Scaffolded:
    environ = invocation.current().environ
    home = global_directory(environ)
    if not (environ.get("NEXUS_HOME") or has_home_directory()):
        raise RequestError(
            "There is no home directory: HOME is unset, empty or relative. Set it, or NEXUS_HOME to the "
            "directory for the global settings.",
            code="init-exists",
        )
    if Path(home).exists() and not force:
        raise RequestError(f"{home} exists already. Use --force to replace its files.", code="init-exists")
    return scaffold(plan_global_init(home, replace=force), overwrite=force)
