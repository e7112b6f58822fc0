"""Plans what starting an MCP server would do: program, arguments, directory, environment, or address.

1. Program, arguments, directory and address are resolved: what runs is what was approved. The program is its
   real path, so that a link that leads elsewhere asks again.
2. A person is shown the words as the file has them, so that the value of a variable is never shown. Only
   `${workspaceFolder}` and the like are resolved. A word is covered if it is a secret or follows an option
   for one. If it has a character that code needs, only parts of it are covered, so that nothing that runs is
   hidden: tokens, and values of `Name: value` and of JSON under a secret name. `hidden_words` gives to the
   log what is covered.
3. Values of variables and headers are as written, with the references to the folder resolved. References to
   the user's variables stay: a new token is not a new program, and no hash is made of a secret that the file
   does not have. They are resolved when the server starts (`Launch.environment`, `Launch.sent_headers`).
4. A server of a file in the workspace runs in the directory of its layer. One of the user's own file runs in
   the user's home directory, so that all folders share it.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

import msgspec

from nexus_context.config.mcp import McpServer, Transport
from nexus_context.config.references import references_in
from nexus_context.disk.files import real_path
from nexus_context.errors import RequestError, Span
from nexus_context.folder.layers.layer_types import DEFAULTS, GLOBAL
from nexus_context.text.opaque import is_opaque
from nexus_context.text.redact import redact, redact_arguments, redact_message, says_secret, secrets_in

INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""The variables of the user that every server gets; no other is passed on."""
COVER = "***"
_CODE = re.compile(r"[\s;|&$<>()\[\]{}'\"`\\]")
# Patterns that few launches need are strings: re compiles and keeps them on first use, not at import.
_PLAIN = r"[A-Za-z0-9_+=~-]+"  # of characters that are no path and no code
_HEADER = r"(?:--?[\w-]{1,40}=)?([\w-]{1,60}):[ \t]+([^;|&$<>()\[\]{}'\"`\\]+)"
_SCHEME = r"(?i)(bearer|basic|token)[ \t]+"
_ADDRESS = r"(?s)([^:/?#]+://|)(?:([^/?#]*)@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?"


class LaunchError(RequestError):
    """Raised if a server cannot be started as it is configured. The message says what to do."""


class LaunchContext(msgspec.Struct, frozen=True):
    """Where a server would start: absolute paths, the user's variables, and how a program is found.

    `directory` is that of the layer whose file names the server.
    """

    folder: str
    directory: str
    user_home: str
    environ: Mapping[str, str]
    which: Callable[[str], str | None]


class Launch(msgspec.Struct, frozen=True, kw_only=True):
    """A server, ready to be started. `hash` is what an approval is bound to, in hexadecimal.

    `arguments` begins with the program as it was written; `executable` is where it was found, and `program`
    is the real path of that. `written` holds the words of the command, or the address, as the file has them.
    Values in `variables` and `headers` may refer to the user's variables.
    """

    name: str
    origin: str
    transport: Transport
    executable: str = ""
    program: str = ""
    arguments: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    directory: str = ""
    variables: Mapping[str, str] = {}
    url: str = ""
    headers: Mapping[str, str] = {}

    @property
    def hash(self) -> str:
        """The SHA-256 of what would be started or reached (rules 1 and 3), in hexadecimal."""
        if self.url:
            headers = dict(sorted(self.headers.items()))
            bound: object = {"transport": self.transport, "url": self.url, "headers": headers}
        else:
            bound = {
                "executable": self.executable,
                "program": self.program,
                "arguments": self.arguments[1:],
                "directory": self.directory,
                "variables": dict(sorted(self.variables.items())),
            }
        return hashlib.sha256(msgspec.json.encode(bound)).hexdigest()

    @property
    def is_of_user(self) -> bool:
        """Whether a file of the user names the server.

        It needs no approval then. A server that a file of the workspace names does.
        """
        return self.origin in (DEFAULTS, GLOBAL)

    @property
    def text(self) -> str:
        """The command or the address as a person is shown it, with secrets covered."""
        if self.url:
            return _cover(self.written[0], _secrets_of_address(self.written[0]))
        program = self.written[0] if references_in(self.written[0]) else self.executable
        words = self.written[1:]
        covered_words = (
            _cover(word, spans) for word, spans in zip(words, _secrets_of_words(words), strict=True)
        )
        return shlex.join((program, *covered_words))

    @property
    def printable_variables(self) -> dict[str, str]:
        """The variables that the server's file sets for its process, as a person is shown them."""
        return {name: _printable_value(name, value) for name, value in self.variables.items()}

    @property
    def printable_headers(self) -> dict[str, str]:
        """The headers of requests to the server, as a person is shown them."""
        return {name: _printable_value(name, value) for name, value in self.headers.items()}

    @property
    def hidden_words(self) -> tuple[str, ...]:
        """What `text` hides of the arguments or the address, both as written and as resolved."""
        resolved = (self.url,) if self.url else self.arguments
        hidden = [word for word in resolved if word not in self.written]
        for words in (resolved, self.written):
            secrets = [_secrets_of_address(words[0])] if self.url else _secrets_of_words(words)
            for word, spans in zip(words, secrets, strict=True):
                hidden += (word[span.start : span.end] for span in spans)
        return tuple(hidden)

    @property
    def signs_in(self) -> bool:
        """Whether the user can sign in to the server.

        That is the case if it is reached by HTTP, and its file has no credentials.
        """
        has_other_way = "@" in urlsplit(self.url).netloc or "authorization" in map(str.lower, self.headers)
        return bool(self.url) and not has_other_way

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that the server's process gets.

        LaunchError if it needs one that is not set.
        """
        inherited = {name: environ[name] for name in INHERITED if name in environ}
        return inherited | _resolved(self.variables, environ, self.name)

    def sent_headers(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of requests to the server.

        LaunchError if they need a variable that is not set.
        """
        return _resolved(self.headers, environ, self.name)

    def values_digest(self, environ: Mapping[str, str]) -> str:
        """Return the SHA-256 of the variables or headers that the server gets.

        It is empty if a variable is not set.
        """
        try:
            values = self.sent_headers(environ) if self.url else self.environment(environ)
        except LaunchError:
            return ""
        return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()


def plan_launch(server: McpServer, context: LaunchContext) -> Launch:
    """Plan how to start a server. LaunchError if it cannot be started as it is configured."""
    try:
        return _plan(server, context)
    except (ValueError, OSError) as error:  # a NUL in a path, a loop of links
        reason = getattr(error, "strerror", None) or error
        raise LaunchError(
            f"The server {server.name!r} cannot be started: {reason}.", code="mcp-cannot-start"
        ) from None


def _plan(server: McpServer, context: LaunchContext) -> Launch:
    values = _editor_values(context)

    def resolve(text: str) -> str:
        return _resolve(text, values, context.environ, server.name)

    def resolve_folder(text: str) -> str:
        return _resolve(text, values, None, server.name)

    if server.url is not None:
        headers = {name: resolve_folder(value) for name, value in server.headers.items()}
        return Launch(
            name=server.name,
            origin=server.origin,
            transport=server.type,
            url=resolve(server.url),
            written=(server.url,),
            headers=headers,
        )
    is_of_user = server.origin in (DEFAULTS, GLOBAL)
    start = context.user_home if is_of_user else context.directory
    directory = real_path(os.path.join(start, resolve(server.cwd or "")) if server.cwd else start)
    command = [resolve(word) for word in server.command]
    if not command:
        raise LaunchError(f"The server {server.name!r} has no command.", code="mcp-no-command")
    program = command[0]
    executable = context.which(program if "/" not in program else os.path.join(directory, program))
    if executable is None:
        raise LaunchError(
            f"The program of the server {server.name!r} is not installed, or not on the PATH of Nexus.",
            code="mcp-no-program",
        )
    return Launch(
        name=server.name,
        origin=server.origin,
        transport=server.type,
        executable=executable,
        program=real_path(executable),
        arguments=tuple(command),
        written=tuple(resolve_folder(word) for word in server.command),
        directory=directory,
        variables={name: resolve_folder(value) for name, value in server.env.items()},
    )


def _secrets_of_words(words: Iterable[str]) -> list[list[Span]]:
    """The secrets of each argument (rule 2)."""
    secrets, option = [], ""
    for word in words:
        name, assigned, value = word.partition("=")
        has_code = _CODE.search(word) is not None
        if has_code:
            spans = _secrets_in_code(word)
        elif option or (assigned and says_secret(name)):
            spans = [Span(0 if option else len(word) - len(value), len(word))]
        else:
            spans = _covered_spans(word, str(redact_arguments(word)))
        secrets.append(spans)
        option = word if word.startswith("-") and says_secret(word) and not assigned else ""
    return secrets


def _secrets_in_code(word: str) -> list[Span]:
    """The secrets of a word that may be a program: only what can be none is hidden."""
    header = re.fullmatch(_HEADER, word)
    if header is not None and says_secret(header[1]):
        scheme = re.match(_SCHEME, header[2])
        return [Span(header.start(2) + (0 if scheme is None else scheme.end()), header.end(2))]
    if word.startswith("{") and _is_json(word):
        return _covered_spans(word, redact(word))
    spans = list(secrets_in(word))
    for reference in references_in(word):
        start = reference.span.end - 1 - len(reference.default or "")
        spans += (Span(start + span.start, start + span.end) for span in secrets_in(reference.default or ""))
    return [span for span in spans if re.fullmatch(_PLAIN, word[span.start : span.end])]


def _secrets_of_address(url: str) -> list[Span]:
    """Find the secrets of an address: user, random steps of the path, query values, the fragment."""
    match = re.fullmatch(_ADDRESS, url)
    if match is None:
        return []
    path, query = match.start(4), match.start(5)
    steps = (
        Span(path + step.start(), path + step.end())
        for step in re.finditer(r"[^/]+", match[4])
        if secrets_in(step[0]) or (not references_in(step[0]) and is_opaque(step[0]))
    )
    values = (
        Span(query + value.start(1), query + value.end(1))
        for value in re.finditer(r"(?:\A|&)(?:[^=&]*=)?([^&]*)", match[5] or "")
    )
    spans = (Span(*match.span(2)), *steps, *values, Span(*match.span(6)))
    return [span for span in spans if span.start < span.end]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return False
    return True


def _covered_spans(text: str, covered: str) -> list[Span]:
    """Where one of two texts of the same length has stars instead of the other's characters."""
    return [Span(*match.span()) for match in re.finditer(r"\*+", covered) if text[match.start()] != "*"]


def _printable_value(name: str, value: str) -> str:
    """A variable or header; of one with a secret name only references and the scheme are shown."""
    if not says_secret(name):
        spans = _covered_spans(value, redact_message(value))
    else:
        scheme = re.match(_SCHEME, value)
        spans = [Span(0 if scheme is None else scheme.end(), len(value))]
    return _cover(value, spans)


def _cover(text: str, spans: Iterable[Span]) -> str:
    """The text with these parts covered; of a reference in them the name is shown, not its default."""
    parts, end = [], 0
    for span in sorted(spans):
        parts += [text[end : span.start], _cover_references(text[span.start : span.end])]
        end = span.end
    return "".join((*parts, text[end:]))


def _cover_references(text: str) -> str:
    parts, end = [], 0
    for reference in references_in(text):
        covered = text[reference.span.start : reference.span.end]
        if reference.default is not None:
            covered = covered.replace(f":-{reference.default}", f":-{COVER}")
        parts += [COVER if reference.span.start > end else "", covered]
        end = reference.span.end
    return "".join((*parts, COVER if end < len(text) else ""))


def _editor_values(context: LaunchContext) -> dict[str, str]:
    return {
        "workspaceFolder": context.folder,
        "workspaceRoot": context.folder,
        "workspaceFolderBasename": os.path.basename(context.folder),
        "userHome": context.user_home,
        "cwd": context.folder,
        "pathSeparator": os.sep,
        "/": os.sep,
    }


def _resolved(texts: Mapping[str, str], environ: Mapping[str, str], server: str) -> dict[str, str]:
    return {name: _resolve(text, {}, environ, server) for name, text in texts.items()}


def _resolve(text: str, values: Mapping[str, str], environ: Mapping[str, str] | None, server: str) -> str:
    """A text with its references resolved; without `environ`, those to variables stay."""
    parts, end = [], 0
    for reference in references_in(text):
        if reference.kind == "variable" and environ is None:
            continue
        if reference.kind == "variable" and environ is not None:
            value = environ.get(reference.name) or reference.default
            if value is None:
                raise LaunchError(
                    f"The server {server!r} needs the variable {reference.name}, which is not set where "
                    "Nexus runs. Set it, or write a default behind it: ${NAME:-default}.",
                    code="mcp-unset-variable",
                )
        elif reference.kind == "editor" and (values or environ is None):
            value = values.get(reference.name.partition(":")[0], "")
        elif reference.kind == "input":
            raise LaunchError(
                f"The server {server!r} asks for the input {reference.name!r}, which only its own editor "
                "can. Use a variable instead.",
                code="mcp-input",
            )
        else:
            raise LaunchError(
                f"The server {server!r} has a reference that Nexus cannot resolve. Use ${{VAR}}, "
                "${VAR:-default} or ${workspaceFolder}.",
                code="mcp-reference",
            )
        parts += [text[end : reference.span.start], value]
        end = reference.span.end
    return "".join((*parts, text[end:]))
