"""Reads the text of files that are compressed with zstd, if this Python has a module for it.

The text of the file that was opened last stays in a temporary file, since it is read in many pieces.
"""

import errno
import os
import tempfile
from importlib import import_module
from threading import Lock
from typing import IO, Any

SUFFIX = ".zst"
READERS = ("compression.zstd", "backports.zstd", "zstandard", "pyzstd")
"""Modules that can read it: the first is part of Python 3.14."""
MOST = 4 << 30  # bytes of text
_PIECE = 4 << 20

_lock = Lock()
_last: tuple[tuple[int, ...], IO[bytes]] | None = None  # the stamp of the file and its text


def open_text(descriptor: int, stamp: tuple[int, ...], path: str) -> int:
    """Return a descriptor of the text of a compressed file, and close `descriptor`.

    OSError if it cannot be read. `stamp` identifies the content: the text of the last file is used again if
    its stamp is the same.
    """
    global _last
    with _lock, os.fdopen(descriptor, "rb") as compressed:
        if _last is None or _last[0] != stamp:
            _last = stamp, _decompress(compressed, path)
        return os.open(_last[1].name, os.O_RDONLY)


def _decompress(compressed: IO[bytes], path: str) -> IO[bytes]:
    reader = _find_reader()
    if reader is None:
        reason = "it is compressed with zstd, which needs Python 3.14 or pip install backports.zstd"
        raise OSError(errno.ENOTSUP, reason, path)
    text = tempfile.NamedTemporaryFile(prefix="nexus-")  # noqa: SIM115 - it stays open
    try:
        with reader.open(compressed, "rb") as source:
            while piece := source.read(_PIECE):
                if text.tell() > MOST:
                    raise OSError(errno.EFBIG, f"its text has more than {MOST:,} bytes", path)
                text.write(piece)
        text.flush()
    except OSError:
        text.close()
        raise
    except Exception as error:  # each module has an error of its own
        text.close()
        raise OSError(errno.EIO, f"it is damaged: {error}", path) from error
    return text


def _find_reader() -> Any:
    for name in READERS:
        try:
            return import_module(name)
        except ImportError:
            continue
    return None
