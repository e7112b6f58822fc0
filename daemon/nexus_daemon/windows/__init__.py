"""Hold what windows share, and what each has: the daemon, connections, live folders."""
