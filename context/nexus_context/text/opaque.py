"""Tells credentials from words.

`q8Zk2LmP0xVt` is a credential; `WebAssembly`, `HTTP/1.1` and `my-test-token` are words.

1. A value is opaque if it is padded base64, or if one of its pieces between separators has digits as no name
   has them (`sha256`, `OAuth2Client` and `RFC7617` are names) or capitals as chance sets them.
2. A value is an example if it consists of words that documentation puts in place of credentials, or of words
   one of which says what it stands for (`dev-alice-token`).
3. A text is a published example if it counts (`12345…`, `a1b2c3…`), repeats a character, is a JSON Web Token
   without a signature, or a token that many documents share.
"""

import binascii
import functools
import re

LEAST = 8
"""Characters of a piece that can be opaque: shorter ones are names such as `k8s` and `x86`."""

# Patterns are strings: re compiles and keeps them on first use, not at import.
_SEPARATORS = r"[-._~+/=]+"
_DIGITS_OF_NAME = r"[A-Za-z]*\d{0,3}[A-Za-z]*|[A-Za-z]{1,5}\d{1,5}|[A-Za-z]+(?:19|20)\d\d|\d{1,8}"
_HUMP = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"  # a word of a name such as webAssembly
_SHORT_HUMP = 2  # letters
_MOST_SHORT_HUMPS = 2  # of a name
_MOST_NAME = 60  # characters
_LEAST_LETTERS = 10  # of capitals as chance sets them
_PADDED = r"[A-Za-z0-9+/_-]{6,}={1,2}"

_EXAMPLE_WORDS = (
    "a abc access admin aladdin an another api app auth authentication authorization b bar base based basic "
    "baz bearer changeme client code correct credential credentials current db default demo dev dummy "
    "encoded expired fake foo from generated guest hash header headers here id in invalid jwt key keys local "
    "localhost login me mock mongo my mysql new of old open or our pass passphrase passwd password "
    "postgres postgresql pw pwd raw real redis refresh response root sample scheme secret secrets server "
    "service sesame session some string super test testing the this token tokens user username users "
    "valid value values with x xyz y your z"
)
_CONSTANT = r"[A-Z]+(?:_[A-Z]+)+"  # SERVICE_ROLE_KEY
_NAMED = r"(?=.*\b(?:token|key|secret|password)s?\b)[a-z]+(?:-[a-z]+)+"
_MOST = 100  # characters of an example
_PUBLISHED = (
    r"(?i)12345|abcdefg?h|98765|([a-z0-9])\1{7}|\babc123|(?-i:a1b2c3)"
    r"|\AeyJ[^.]+\.[^.]+\.(?:[^.]{0,19})\Z"
    # payloads of jwt.io's example, and of the keys that every local Supabase has
    r"|eyJzdWIiOiIxMjM0NTY3ODkw|eyJpc3MiOiJzdXBhYmFzZS1kZW1v"
)


def is_opaque(value: str) -> bool:
    """Whether a value looks like a credential, and not like words (rule 1)."""
    if len(value) % 4 == 0 and re.fullmatch(_PADDED, value):
        return True
    return any(len(piece) >= LEAST and _is_random(piece) for piece in re.split(_SEPARATORS, value))


def _is_random(piece: str) -> bool:
    if len(piece) > _MOST_NAME or re.fullmatch(_DIGITS_OF_NAME, piece) is None:
        return True
    short = sum(len(hump) <= _SHORT_HUMP for hump in re.findall(_HUMP, piece))
    return len(piece) >= _LEAST_LETTERS and short > _MOST_SHORT_HUMPS


def is_example(value: str) -> bool:
    """Whether documentation writes such a value in place of a credential.

    Examples are `password` and `my-access-token-1`.
    """
    if len(value) > _MOST:
        return False
    patterns = (_CONSTANT, _NAMED)
    return (
        any(re.fullmatch(pattern, value) for pattern in patterns) or _examples().fullmatch(value) is not None
    )


@functools.cache
def _examples() -> re.Pattern[str]:
    words = "|".join(sorted(_EXAMPLE_WORDS.split(), key=len, reverse=True))
    return re.compile(  # it never goes back, so that it is linear
        rf"(?i)(?={words})(?:(?>{words}|[0-9]{{1,6}})[-_.:/ ]?)++[^A-Za-z0-9]*"
    )


def is_published_example(text: str) -> bool:
    """Whether a text that has the shape of a token is a published example, which opens nothing (rule 3)."""
    return re.search(_PUBLISHED, text) is not None


def user_and_password(value: str) -> tuple[str, str] | None:
    """Decode the credentials after `Basic`. None if they are not a user and a password."""
    try:
        decoded = binascii.a2b_base64(value + "=" * (-len(value) % 4), strict_mode=True).decode()
    except ValueError:
        return None
    user, colon, password = decoded.partition(":")
    return (user, password) if colon and decoded.isprintable() else None
