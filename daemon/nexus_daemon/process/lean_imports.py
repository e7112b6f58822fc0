"""Import packages without a module that they can do without, to start faster.

1. msgspec prefers typing_extensions to typing, which has the same names. Importing typing_extensions takes
   half of msgspec's import.
2. asyncio imports ssl, and with it a library of 4 MB, though Nexus uses no TLS of asyncio's own.
3. Code that imports these modules later gets them as always.
"""

import sys

WITHOUT = {"msgspec": "typing_extensions", "asyncio": "ssl"}
"""Package → the module that it is imported without."""


def import_lean(package: str) -> None:
    """Import a package of `WITHOUT` as if the module that it can do without were not installed.

    No effect if the package or that module is already imported.
    """
    absent = WITHOUT[package]
    if package in sys.modules or absent in sys.modules:
        return
    vars(sys)["modules"][absent] = None  # so that an import of it fails
    try:
        __import__(package)
    finally:
        del sys.modules[absent]
