"""Read lines of a stream, however long they are, with little memory."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST_LINE = 1024 * 1024  # bytes
READ = 64 * 1024  # bytes


def read_lines(read: "Callable[[int], bytes]", *, longest: int = LONGEST_LINE) -> "Iterator[bytes | None]":
    """Yield the lines without their ends as they come, and None for each line that is too long.

    `read(count)` returns up to `count` bytes as soon as there are any, and none at the end. A last line
    without a line end is also yielded.
    """
    pieces: list[bytes] = []
    size = 0
    while data := read(READ):
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            size += end - start
            yield b"".join((*pieces, data[start:end])) if size <= longest else None
            pieces, size, start = [], 0, end + 1
        size += len(data) - start
        if size <= longest:
            pieces.append(data[start:])
        else:
            pieces.clear()
    if size:
        yield b"".join(pieces) if size <= longest else None
