"""Define the version of Nexus and the number of its protocol, which says whether a client and a daemon fit.

1. Additions (methods, fields, values of a list such as `reason`) do not change the number.
2. The number is raised by a change that a client with the earlier number would misunderstand: a method or
   field that is removed, renamed or means something else, or a parameter that becomes required.
3. A client and a daemon fit if their numbers are equal. A client that names no number is not warned.
"""

import os

__version__ = "0.1.0"
PROTOCOL = 1


def print_version() -> bool:
    """Print the version on standard output. Return False if that fails; the command line then says why."""
    try:
        os.write(1, f"nexus {__version__}{os.linesep}".encode())
    except OSError:
        return False
    return True


def describe_mismatch(client_protocol: object, editor: str) -> str | None:
    """Return a sentence that says what to update if a client's number differs.

    None if the number is equal or is not a number.
    """
    if type(client_protocol) is not int or client_protocol == PROTOCOL:
        return None
    if client_protocol > PROTOCOL:
        return (
            f"Update Nexus: version {__version__} speaks protocol {PROTOCOL}, "
            f"and the Nexus extension of {editor} speaks protocol {client_protocol}."
        )
    return (
        f"Update the Nexus extension of {editor}: it speaks protocol {client_protocol}, "
        f"and Nexus {__version__} speaks protocol {PROTOCOL}."
    )
