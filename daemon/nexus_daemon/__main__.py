"""`python -m nexus_daemon`: the same as the command `nexus`."""

import sys

from nexus_daemon.cli import main

if __name__ == "__main__":
    sys.exit(main())
