"""Secrets in every place where people put them, states of a file around them, and all that is printed.

A canary is a file with one secret in it, written `§`. Where structure tells, none of the secrets looks like
one: a plain word can only be covered by its place.
"""

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from nexus_context.config.frames import ConfigError, format_frame
from nexus_context.conversation.times import local_time
from nexus_context.folder.snapshot import Snapshot
from nexus_daemon.api import config, context
from nexus_daemon.cli import main as nexus
from nexus_daemon.cli import reports
from nexus_daemon.cli.folder import read
from nexus_daemon.features.code_actions import code_actions
from nexus_daemon.features.edits import Editing
from nexus_daemon.lsp.convert import Locator, diagnostic
from nexus_daemon.sessions import results

MARK = "§"
WORD = "moonlitharbour"
PIECES = ("moonlit", "harbour")
HEX = "7fbadc0ffee1dea5"
NUMBER = "7391739173"

GLOBAL = "home/.nexus3/"
LOCAL = "work/.nexus3/"
FOLDER = "work"


class Canary(NamedTuple):
    """A secret in a place: a file's path, its text with `§` in the secret's stead, and the secret."""

    name: str
    path: str
    text: str
    secret: str = WORD

    @property
    def pieces(self) -> tuple[str, ...]:
        """What of the secret must appear nowhere."""
        return PIECES if self.secret == WORD else (self.secret[:8], self.secret[-8:])

    def written(self, state: "Callable[[str], str] | None" = None) -> str:
        """The file's text in a state."""
        return (state(self.text) if state else self.text).replace(MARK, self.secret)


# ---------------------------------------------------------------- MCP servers: members of one server

_SERVER: Mapping[str, str] = {
    "option in the command": '"command": "no-tool --token §"',
    "variable before the command": '"command": "TOKEN=§ no-tool"',
    "next item of the command": '"command": ["no-tool",\n "--token",\n "§"]',
    "next argument": '"command": "no-tool", "args": ["--token",\n "§"]',
    "next argument of the line": '"command": "no-tool", "args": ["--token", "§"]',
    "assigned argument": '"command": "no-tool", "args": ["--password=§"]',
    "bare argument": '"command": "no-tool", "args": ["serve", "§"]',
    "address in an argument": '"command": "no-tool", "args": ["postgres://ana:§@db/x?a=b"]',
    "query in an argument": '"command": "no-tool", "args": ["https://h.org/?q=§"]',
    "arguments as a text": '"command": "no-tool", "args": "--token=§"',
    "arguments as an object": '"command": "no-tool", "args": {"--token": "§"}',
    "argument in a list": '"command": "no-tool", "args": [["--token", "§"]]',
    "PGPASSWORD": '"command": "no-tool", "env": {"PGPASSWORD": "§"}',
    "accessToken": '"command": "no-tool", "env": {\n "accessToken":\n "§"}',
    "plain variable": '"command": "no-tool", "env": {"TEAM": "§", "B": "c"}',
    "variable with escapes": '"command": "no-tool", "env": {"TEAM": "\\"\\u00e9 § \\\\"}',
    "env as a text": '"command": "no-tool", "env": "PGPASSWORD=§"',
    "env as a list": '"command": "no-tool", "env": ["PGPASSWORD=§"]',
    "env in env": '"command": "no-tool", "env": {"A": {"B": "§"}}',
    "env misspelt": '"command": "no-tool", "evn": {"A": "§"}',
    "default in env": '"command": "no-tool", "env": {"A": "${NO_SUCH:-§}"}',
    "default in an argument": '"command": "no-tool", "args": ["--x", "${NO_SUCH:-§}"]',
    "open default": '"command": "no-tool", "args": ["${NO_SUCH:-§"]',
    "Cookie": '"url": "http://h.org/", "headers": {"Cookie": "sid=§"}',
    "Authorization": '"url": "http://h.org/", "headers": {"Authorization": "Bearer §"}',
    "plain header": '"url": "http://h.org/", "headers": {"X-Team": "§"}',
    "headers as a text": '"url": "http://h.org/", "headers": "Cookie: sid=§"',
    "password of the address": '"url": "http://ana:§@h.org/"',
    "user of the address": '"url": "http://§@h.org/"',
    "query of the address": '"url": "http://h.org/?tenant=§"',
    "fragment of the address": '"url": "http://h.org/#§"',
    "default in the address": '"url": "http://h.org/${NO_SUCH:-§}"',
    "not an address": '"url": "h.org?key=§"',
    "address as a list": '"url": ["http://h.org/?q=§"]',
    "client secret": '"url": "http://h.org/", "oauth": {"clientSecret": "§"}',
    "comment": '"command": "no-tool", "_comment": "§"',
}
_FORMS: Mapping[str, str] = {
    "list": '{"servers": [{"name": "one", %s}]}',
    "vscode": '{"servers": {"one": {%s}}}',
    "claude": '{"mcpServers": {"one": {%s}}}',
}
_VALUES: Mapping[str, tuple[str, str]] = {
    "hex key": ('"command": "no-tool", "env": {"A": "§"}', HEX),
    "number": ('"command": "no-tool", "env": {"PIN": §}', NUMBER),
    "number as an argument": ('"command": "no-tool", "args": ["--pin", §]', NUMBER),
}

# what stands where servers belong; a server may be named like a setting
_INSTEAD: Mapping[str, str] = {
    "text": '{"servers": "no-tool --token §"}',
    "texts": '{"servers": ["no-tool --token §"]}',
    "lists": '{"servers": [["no-tool", "--token", "§"]]}',
    "text of a server": '{"servers": {"memory": "no-tool --token §"}}',
    "list of a server": '{"mcpServers": {"tools": ["no-tool", "--token", "§"]}}',
}

# ---------------------------------------------------------------- config.json

_CONFIG: Mapping[str, str] = {
    "provider header": '{"provider": {"headers": {"X-Team": "§"}}}',
    "provider cookie": '{"provider": {"headers": {\n "Cookie":\n "§"}}}',
    "provider headers as a text": '{"provider": {"headers": "Cookie: §"}}',
    "provider header as a list": '{"provider": {"headers": {"X": ["§"]}}}',
    "password of base_url": '{"provider": {"base_url": "https://ana:§@h.org/"}}',
    "query of base_url": '{"provider": {"base_url": "https://h.org/?tenant=§"}}',
    "base_url": '{"provider": {"base_url": "h.org?key=§"}}',
    "key in api_key_env": '{"provider": {"api_key_env": "key-§"}}',
    "api_key": '{"provider": {"api_key": "§"}}',
    "provider as a text": '{"provider": "§"}',
    "password of ledger.url": '{"ledger": {"url": "postgres://ana:§@db/x"}}',
    "query of ledger.url": '{"ledger": {"url": "postgres://db/x?password=§"}}',
    "ledger as a list": '{"ledger": ["§"]}',
    "key of a model": '{"models": {"m": {"api_key": "§"}}}',
    "model as a text": '{"models": {"m": "§"}}',
    "key of an agent": '{"agents": {"a": {"token": "§"}}}',
    "env of an agent": '{"agents": {"a": {"env": {"A": "§"}}}}',
    "agent as a text": '{"agents": {"a": "§"}}',
    "unknown section": '{"secrets": {"A": "§"}}',
    "comment": '{"_comment": "§", "tools": {"summery": true}}',
}

# ---------------------------------------------------------------- Markdown

_FRONT = "---\nname: %s\ndescription: d\n%s\n---\nText.\n"
_SKILL: Mapping[str, str] = {
    "token": "token: §",
    "quoted password": "password: '§'",
    "cookie": "cookie: sid=§",
    "metadata": "metadata:\n  api_key: §",
    "flow metadata": "metadata: {api_key: §}",
    "plain metadata": "metadata:\n  team: §\n  priority: high",
    "list": "env:\n  - PGPASSWORD=§",
    "block": "secret: |\n  §\nlicense: [MIT]",
    "broken block": "secret: |\n  §\nlicense: [MIT",
    "value with a colon": "token: a: §",
    "tab": "token:\n\t§",
    "unknown field": "team: §",
    "address in a field": "compatibility: https://ana:§@h.org/",
    "scheme in a field": "compatibility: use Bearer §",
}
_PROSE: Mapping[str, str] = {
    "token": "token: §",
    "bold token": "- **Token:** §",
    "option": "Run `deploy --token § now`.",
    "assigned option": "Run `deploy --password=§`.",
    "variable": "export PGPASSWORD=§",
    "camel case": "accessToken: §",
    "cookie": "Cookie: sid=§; path=/",
    "row of a table": "| Token | § |",
    "variable of a makefile": "TOKEN ?= §",
    "header": "curl -H 'Authorization: Bearer §' x",
    "password of an address": "See https://ana:§@h.org/x.",
    "query of an address": "See https://h.org/x?tenant=§.",
    "fragment of an address": "See https://h.org/x#§",
    "default": "Set ${NO_SUCH:-§} first.",
}


def canaries() -> Iterator[Canary]:
    """Every canary; what is wrong with each file is added by `STATES`."""
    for form, frame in _FORMS.items():
        for name, members in _SERVER.items():
            yield Canary(f"{form}: {name}", f"{LOCAL}mcp.json", frame % members)
    for name, (members, secret) in _VALUES.items():
        yield Canary(f"claude: {name}", "work/.mcp.json", _FORMS["claude"] % members, secret)
    text = '{"servers": {"one": {"command": "${input:i}"}},\n "inputs": [{"id": "i", "default": "§"}]}'
    for name, text in _INSTEAD.items():
        yield Canary(f"instead: {name}", f"{LOCAL}mcp.json", text)
    yield Canary("vscode: input", "work/.vscode/mcp.json", text)
    for where, path in (("global", GLOBAL), ("local", LOCAL)):
        for name, text in _CONFIG.items():
            yield Canary(f"{where}: {name}", f"{path}config.json", text)
    for name, lines in _SKILL.items():
        yield Canary(f"skill: {name}", f"{LOCAL}skills/one/SKILL.md", _FRONT % ("One", lines))
    for name, line in _PROSE.items():
        yield Canary(
            f"instructions: {name}", "work/AGENTS.md", f"# Rules\n@no-such.md\n{line}\n@no-such-two.md\n"
        )
    yield Canary("import: address", "work/AGENTS.md", "# Rules\n@https://ana:§@h.org/x.md\n")
    yield Canary("import: query", "work/AGENTS.md", "# Rules\n@https://h.org/?a=§.md\n")
    yield Canary("instructions: hex key", "work/AGENTS.md", "The key\n@no-such.md § and more\n", HEX)


# ---------------------------------------------------------------- states of JSON around the secret


def _wrap(text: str, before: str, after: str = "") -> str:
    """The text with its root object preceded and followed by members, each in a line of its own."""
    inner = text.strip()[1:-1]
    return "{" + before + inner + after + "}"


STATES: Mapping[str, Callable[[str], str]] = {
    "as it is": str,
    "unknown key before": lambda text: _wrap(text, '"unknwon": 1,\n'),
    "unknown key in the line": lambda text: _wrap(text, '"unknwon": 1, ', ', "unknwon2": "x"'),
    "unknown key after": lambda text: _wrap(text, "", ',\n"unknwon": 1'),
    "comma missing before": lambda text: _wrap(text, '"_comment": 1\n'),
    "comma missing in the line": lambda text: _wrap(text, '"_comment": "x" '),
    "comma missing after": lambda text: _wrap(text, "", '\n"_comment": 1'),
    "string open before": lambda text: _wrap(text, '"_comment": "x,\n'),
    "string open in the line": lambda text: _wrap(text, '"_comment": "x, '),
    "string open after": lambda text: _wrap(text, "", ', "_comment: 1'),
    "junk before": lambda text: _wrap(text, "?\n"),
    "junk in the line": lambda text: _wrap(text, "? ", " ?"),
    "key without a value": lambda text: _wrap(text, '"_comment"\n,', ',\n"_comment2"'),
    "commas doubled": lambda text: text.replace(",", ",,"),
    "comma at the end": lambda text: _wrap(text, "", ",\n"),
    "ends after the secret": lambda text: text[: text.index(MARK) + 1],
    "ends after its quote": lambda text: text[: text.index(MARK) + 2],
    "nothing closed": lambda text: text.rstrip("}] \n"),
    "closed once more": lambda text: text + "\n}",
    "closing quote missing": lambda text: _without(text, text.find('"', text.index(MARK))),
    "opening quote missing": lambda text: _without(text, text.rfind('"', 0, text.index(MARK))),
    "no quotes": lambda text: _without(
        _without(text, text.find('"', text.index(MARK))), text.rfind('"', 0, text.index(MARK))
    ),
    "quote inside": lambda text: text.replace(MARK, f'x" {MARK}'),
    "quote and colon inside": lambda text: text.replace(MARK, f'x", {MARK} "'),
    "colon after": lambda text: text.replace(f'{MARK}"', f'{MARK}": '),
    "value after": lambda text: text.replace(f'{MARK}"', f'{MARK}": "x"'),
    "line end inside": lambda text: text.replace(MARK, f"x\n{MARK}"),
    "line ends around": lambda text: text.replace(MARK, f"x\n{MARK}\ny"),
    "bad escape": lambda text: text.replace(MARK, f"\\q{MARK}"),
    "colons missing": lambda text: text.replace(":", " "),
    "single quotes": lambda text: text.replace('"', "'"),
    "unquoted keys": lambda text: text.replace('": ', ": ").replace('{"', "{").replace(', "', ", "),
    "in a comment": lambda text: "// " + text.replace("\n", " ") + "\n{}",
    "as a key": lambda text: text.replace(f'"{MARK}"', f'{{"x": "{MARK}", }}'),
    "given twice": lambda text: f"{text}\n{text}",
    "tabs and CRLF": lambda text: _wrap(text, '\t"unknwon":\t1,\n').replace("\n", "\r\n"),
}


def states(canary: Canary) -> Mapping[str, Callable[[str], str]]:
    """The states that a canary's file can be in."""
    return STATES if canary.path.endswith(".json") else {"as it is": str, "CRLF": _crlf, "cut off": _cut_off}


def _crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _cut_off(text: str) -> str:
    return text[: text.index(MARK) + 1]


def _without(text: str, at: int) -> str:
    return text if at < 0 else text[:at] + text[at + 1 :]


# ---------------------------------------------------------------- all that is printed


def write(root: Path, canary: Canary, state: Callable[[str], str] | None = None) -> Path:
    """The canary's file beneath a root, with no other; returns the folder to look at."""
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    path = root / canary.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canary.written(state).encode())
    return root / FOLDER


def printed(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """What people are shown of a snapshot, by the name of the output; of each problem of any severity."""
    problems, texts = snapshot.problems, snapshot.layers.texts
    locate = Locator(snapshot.layers, "utf-16")
    yield "frames", "\n".join(format_frame(problem, texts.get(problem.path)) for problem in problems)
    yield "ConfigError", str(ConfigError(problems, texts)) if problems else ""
    for form, report in reports.FORMATS.items():
        yield form, report(snapshot, problems)
    yield "diagnostics", repr([diagnostic(problem, locate) for problem in problems])
    yield (
        "quick fixes",
        repr([code_actions(snapshot, p.path, p.span, locate=locate, editing=Editing()) for p in problems]),
    )
    yield "problems", repr(results.problems(locate, problems))
    yield "effective", repr(config.build_effective(snapshot, locate))
    yield "layers", repr(context.build_layers(snapshot, locate, local_time()))
    yield "values", f"{snapshot.layers.servers!r} {list(snapshot.layers.documents.values())!r}"
    if not any(file.kind == "instructions" for layer in snapshot.layers.layers for file in layer.files):
        yield "prompt", snapshot.prompt.text


def leaks(canary: Canary, folder: Path) -> list[str]:
    """The outputs that show a piece of the secret."""
    snapshot = read(folder)
    shown = [name for name, text in printed(snapshot) if any(piece in text for piece in canary.pieces)]
    return [f"{canary.name}: {name}" for name in shown]


def said(*arguments: str) -> str:
    """All that a command prints, on both streams."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        nexus(arguments)
    return out.getvalue() + err.getvalue()


def commands(folder: Path) -> Iterator[tuple[str, ...]]:
    """Every command that speaks of a folder's files without printing the prompt."""
    at = str(folder)
    for form in ("text", "json", "sarif", "github"):
        yield "check", at, "--format", form, "--level", "hint"
    yield "show", at, "--layers"
    yield "show", at, "--tokens"
    yield "show", at, "--agent", "a", "--diff", "main"
    yield "sessions", "list", "--folder", at
    yield "sessions", "import", str(folder / "AGENTS.md"), "--folder", at
