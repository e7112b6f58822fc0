"""Define the first messages of a connection to the shared daemon: who the client is, and what it wants.

1. A message is `NEXUS/1 <length>\\n` and that many bytes: fields `name=value`, each ended by a NUL. A name
   may come several times. Environment variables may contain any byte but NUL.
2. No HTTP request and no frame of the language server protocol begins like that.
3. The client's fields are `purpose`, `version`, `protocol`, `facts` (`identity`), `umask`, `pid`, `environ`
   once for each variable, and those of the purpose. The purposes are `editor` (frames of the protocol
   follow), `command` (a command is run for the client), `hook` (the payload of another assistant's hook; the
   reply is its answer), `stop` (the daemon ends), and `status` (the client wants only the reply).
4. On a port of the loopback interface, where any program may listen, both sides first prove that they know
   the daemon's token, which is never sent. The client sends a number; the daemon another number and its proof
   for both; then the client its own proof. Before that the client says nothing about itself.
5. The daemon's fields are `status` (one of `STATUSES`), `version`, `protocol`, `pid`, `message` (for people),
   `windows` (the number of editors), `state` (for `status`: JSON).
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAGIC = b"NEXUS/1 "
LONGEST_LINE = 20  # bytes of the first line
LONGEST = 8 * 1024 * 1024  # bytes; a process has at most about 2 MB of arguments and environment
PROOF_MAGIC = b"NEXUS-PROOF/1 "
NUMBER = 64  # hexadecimal digits of a random number, and of a proof
STATUSES = ("ok", "replaced", "refused", "ending")
"""`replaced`: the daemon is older than the client and ends. `ending`: it ends anyway. In both cases retry."""


class HelloError(ValueError):
    """The bytes are not a message in this form."""


class Fields:
    """The fields of a message as (name, value), in their order."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: "Iterable[tuple[str, str]]" = ()) -> None:
        self.pairs = list(pairs)

    def get(self, name: str, default: str = "") -> str:
        """Return the first value of a field."""
        return next((value for key, value in self.pairs if key == name), default)

    def get_all(self, name: str) -> list[str]:
        return [value for key, value in self.pairs if key == name]

    @property
    def environ(self) -> dict[str, str]:
        """The client's environment variables."""
        variables = (value.partition("=") for value in self.get_all("environ"))
        return {name: value for name, _, value in variables}


def with_environ(pairs: "Iterable[tuple[str, str]]", environ: "Mapping[str, str]") -> Fields:
    """Build fields from pairs and the variables of an environment."""
    return Fields([*pairs, *(("environ", f"{name}={value}") for name, value in environ.items())])


def encode(fields: Fields) -> bytes:
    body = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in fields.pairs)
    return b"%s%d\n%s" % (MAGIC, len(body), body)


def body_length(line: bytes) -> int:
    """Return the length that a message's first line announces. HelloError if it is not such a line.

    `line` has no line end.
    """
    digits = line.removeprefix(MAGIC)
    if not (line.startswith(MAGIC) and digits.isdigit() and len(digits) <= len(str(LONGEST))):
        raise HelloError("this is not how a client of Nexus begins")
    length = int(digits)
    if length > LONGEST:
        raise HelloError(f"{length} bytes are too long")
    return length


def decode(body: bytes) -> Fields:
    field_texts = os.fsdecode(body).split("\0")
    if field_texts.pop():
        raise HelloError("the last field has no end")
    pairs = [field_text.partition("=") for field_text in field_texts]
    if not all(equals for _, equals, _ in pairs):
        raise HelloError("a field has no name")
    return Fields((name, value) for name, _, value in pairs)


def random_number() -> bytes:
    return os.urandom(NUMBER // 2).hex().encode()


def proof(token: str, side: str, numbers: bytes) -> bytes:
    """Compute a side's (`client`, `daemon`) proof that it knows the token, for the numbers of both sides."""
    import hmac  # only where there is no Unix socket

    return hmac.new(token.encode(), side.encode() + b" " + numbers, "sha256").hexdigest().encode()


def is_proof(received_proof: bytes, token: str, side: str, numbers: bytes) -> bool:
    """Whether this is the right proof. Compares in constant time."""
    import hmac

    return hmac.compare_digest(received_proof, proof(token, side, numbers))


def newer(version: str, other_version: str) -> bool:
    """Whether a version is newer than another. Only their numbers count, not what follows them."""
    return _numbers(version) > _numbers(other_version)


def _numbers(version: str) -> tuple[int, ...]:
    numbers = []
    for number in version.split("."):
        if not (number.isascii() and number.isdigit()):
            break
        numbers.append(int(number))
    return tuple(numbers)
