"""The order in which programs that run on JavaScript list names."""

from unicodedata import combining, normalize


def alphabetical(name: str) -> tuple[list[tuple[bool, bool, str]], str]:
    """The order of names as `localeCompare` has it: signs, digits, letters; small ones before large ones."""
    letters = name if name.isascii() else (each for each in normalize("NFD", name) if not combining(each))
    return [(each.isalpha(), each.isdigit(), each.casefold()) for each in letters], name.swapcase()
