"""`python -m nexus_daemon` and the command `nexus`: they import nothing from the folder they start in.

`python -m` itself looks for Nexus and a few modules of Python there, before a line of ours runs. In a folder
that may hold anything, start `nexus` or `python -P -m nexus_daemon`.
"""

import sys

from nexus_daemon import search_path


def main() -> int:
    """Run the command line with a clean search path; return the exit code."""
    search_path.clean()
    from nexus_daemon import cli

    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
