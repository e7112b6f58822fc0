"""Orders names as programs that run on JavaScript list them."""

from unicodedata import combining, normalize


def alphabetical(name: str) -> tuple[list[tuple[bool, bool, str]], str]:
    """Return a sort key that orders names as `localeCompare` does: signs, digits, letters; lower case
    first.
    """
    letters = (
        name if name.isascii() else (letter for letter in normalize("NFD", name) if not combining(letter))
    )
    return [(letter.isalpha(), letter.isdigit(), letter.casefold()) for letter in letters], name.swapcase()
