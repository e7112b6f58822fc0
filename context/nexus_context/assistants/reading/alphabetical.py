"""The order in which programs that run on JavaScript list names."""


def alphabetical(name: str) -> tuple[list[tuple[bool, bool, str]], str]:
    """The order of names as `localeCompare` has it: signs, digits, letters; small ones before large ones."""
    return [(each.isalpha(), each.isdigit(), each) for each in name.casefold()], name.swapcase()
