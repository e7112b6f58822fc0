"""Detects texts that are UTF-16 or UTF-32 by their first bytes."""

_BOMS = (  # UTF-32 first: its little-endian mark begins with UTF-16's
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def foreign_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32 by its mark, or by NULs in every other (or three of four) bytes."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding
    sample = data[:4096]
    if b"\0" not in sample or len(data) % 2:
        return None
    # text in any language has spaces, digits and brackets: NULs are common on one side, absent on the other
    empty = [not any(sample[at::4]) for at in range(4)]
    if len(data) % 4 == 0 and len(sample) >= 4 and sum(empty) == 3 and (empty[1] and empty[2]):
        return "utf-32-be" if empty[0] else "utf-32-le"
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    half = len(sample) // 2
    if odd * 2 >= half and not even:
        return "utf-16-le"
    if even * 2 >= half and not odd:
        return "utf-16-be"
    return None
