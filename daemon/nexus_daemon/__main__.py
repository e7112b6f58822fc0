"""`python -m nexus_daemon`: the same as the command `nexus`."""

from nexus_daemon.cli import main

if __name__ == "__main__":
    main()
