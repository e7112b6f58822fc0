"""The daemon: a language server around `nexus_context`.

Whoever imports it imports nothing else: `__main__` cleans the search path first.
"""

import sys


class _LspFinder:
    """Has lsprotocol imported the lazy way, whoever does it; see `lazy_lsprotocol`."""

    def find_spec(self, name: str, *_: object) -> None:
        if name == "lsprotocol":
            sys.meta_path.remove(self)
            from nexus_daemon.lsp import lazy_lsprotocol

            lazy_lsprotocol.install()


if "lsprotocol" not in sys.modules:
    sys.meta_path.insert(0, _LspFinder())
