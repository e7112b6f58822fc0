"""Files in the directory for the user's state: for this user alone, and replaced as a whole."""

import os
from contextlib import suppress


def make_directory(directory: str) -> None:
    """Create the directory for this user alone, with what is above it."""
    above = os.path.dirname(directory)
    if above != directory and not os.path.isdir(above):
        make_directory(above)
    with suppress(FileExistsError):
        os.mkdir(directory, 0o700)


def write_file(path: str, data: bytes) -> None:
    """Replace a file, for this user alone, by one that is complete on the disk; OSError if that fails."""
    import tempfile  # slow, and needed by processes that write

    make_directory(os.path.dirname(path))
    descriptor, draft = tempfile.mkstemp(prefix=".draft-", dir=os.path.dirname(path))
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise
