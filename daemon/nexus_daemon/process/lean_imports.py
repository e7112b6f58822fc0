"""Imports without what start-up has no use for, of packages that do without it where it is not installed.

1. msgspec prefers typing_extensions to typing, which has the same; that takes half of its import.
2. asyncio imports ssl, and with it a library of 4 MB, though nothing of Nexus speaks TLS.
3. Whatever imports these modules later gets them as always.
"""

import sys

WITHOUT = {"msgspec": "typing_extensions", "asyncio": "ssl"}
"""Package → the module that it tries to import and that is kept from it."""


def import_lean(package: str) -> None:
    """Import one of these packages; no effect if it is imported, or if the other module is."""
    absent = WITHOUT[package]
    if package in sys.modules or absent in sys.modules:
        return
    vars(sys)["modules"][absent] = None  # so that an import of it fails
    try:
        __import__(package)
    finally:
        del sys.modules[absent]
