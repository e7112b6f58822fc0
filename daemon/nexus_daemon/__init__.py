"""The daemon: a language server around `nexus_context`."""

from nexus_daemon import lazy_lsprotocol

lazy_lsprotocol.install()
