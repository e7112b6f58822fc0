"""What windows share, and what each has: the daemon, connections, live folders."""
