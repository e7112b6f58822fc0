"""Compiles patterns with stars to regular expressions whose time does not grow with the stars."""


def with_stars(parts: list[str], star: str) -> str:
    """Join parts of a fixed length by `star`, an expression for any text.

    A later place of a part is never better than the first, so none is tried again, and many stars cost no
    more than one.
    """
    if len(parts) == 1:
        return parts[0]
    middle = "".join(f"(?>{star}?{part})" for part in parts[1:-1] if part)
    return f"{parts[0]}{middle}{star}{parts[-1]}"
