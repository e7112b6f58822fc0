"""Trust a folder and what is beneath it, trust it no longer, or list the trusted folders.

Nexus starts programs only in trusted folders: git, for the branch and the changed files that a model is told,
and MCP servers, each after you have approved it. A folder's MCP servers, and its skills that need programs,
count as not ready until it is trusted. Reading a folder takes no trust. An editor with a trust of its own,
such as VS Code, decides for its windows.
"""

import argparse

from nexus_context.disk.files import is_dir, real_path
from nexus_context.errors import NexusError
from nexus_context.folder.trust import covers
from nexus_daemon.cli import output
from nexus_daemon.cli.folder import absolute, short_path
from nexus_daemon.cli.invocation import current
from nexus_daemon.workspace.trusted_folders import read_trusted_folders, set_trust

EPILOG = """\
examples:
  nexus trust
  nexus trust ~/work/shop
  nexus trust --revoke ~/work/shop
  nexus trust --list

exit codes: 0 success; 1 the folder is still trusted, or that cannot be written; 2 wrong usage
"""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="the folder (default: .)")
    action = command.add_mutually_exclusive_group()
    action.add_argument("--revoke", action="store_true", help="trust the folder no longer")
    action.add_argument("--list", action="store_true", help="list the trusted folders")
    command.add_argument("--json", action="store_true", help="print the list as JSON")


def run(options: argparse.Namespace) -> int:
    try:
        if options.list:
            return _list(as_json=options.json)
        return _revoke(options.folder) if options.revoke else _trust(options.folder)
    except NexusError as error:  # there is no place for the user's state
        output.complain("trust", str(error))
    except OSError as error:
        output.complain("trust", f"the list of trusted folders cannot be written: {error.strerror}.")
    return 1


def _list(*, as_json: bool) -> int:
    folders = read_trusted_folders(current().environ)
    if as_json:
        output.json_value({"folders": list(folders)})
        return 0
    if not folders:
        output.complain("trust", "No folder is trusted; `nexus trust FOLDER` adds one.")
    for folder in folders:
        output.line(short_path(folder))
    return 0


def _trust(name: str) -> int:
    folder = str(absolute(name))
    if not is_dir(folder):
        output.complain("trust", f"{name} is not a directory.")
        return 2
    is_new = set_trust(current().environ, folder, trusted=True)
    already = "" if is_new else "already "
    path = short_path(real_path(folder))
    output.line(f"{path} is {already}trusted: Nexus may run git and the MCP servers that you approve there.")
    return 0


def _revoke(name: str) -> int:
    environ, real = current().environ, real_path(str(absolute(name)))
    was_trusted = set_trust(environ, real, trusted=False)
    trusted_folders = read_trusted_folders(environ)
    if covers(trusted_folders, real):
        covering_folder = next(folder for folder in trusted_folders if covers((folder,), real))
        output.complain(
            "trust", f"{short_path(real)} is trusted as a part of {short_path(covering_folder)}; revoke that."
        )
        return 1
    output.line(f"{short_path(real)} {'is no longer' if was_trusted else 'was not'} trusted.")
    return 0
