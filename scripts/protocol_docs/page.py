"""docs/protocol.md: structs of `protocol`, docstrings of the handlers and recorded examples as one page."""

import inspect
import itertools
import json
from typing import Any

import msgspec

from nexus_context.conversation.message import Message
from nexus_daemon import protocol
from nexus_daemon.api.methods import METHODS
from nexus_daemon.lsp import failures
from nexus_daemon.lsp.link import Limits
from nexus_daemon.lsp.outgoing import MOST
from nexus_daemon.process.version import PROTOCOL
from protocol_docs.examples import REPOSITORY, Examples, Json
from protocol_docs.metadata import Metadata
from protocol_docs.source import Field, StructType, declared_structs, fields, structs_in

PAGE = REPOSITORY / "docs" / "protocol.md"
LIMITS = Limits()
MOST_LINES = 48
WIDTH = 108
# how much of an example is shown, from all to little: items of a list or of an object by JSON pointer,
# keys of an inner object, characters of a text
ROOM = (
    (99, 99, 600),
    (6, 99, 400),
    (4, 12, 240),
    (3, 99, 160),
    (2, 99, 120),
    (1, 99, 90),
    (2, 6, 90),
    (1, 6, 90),
    (2, 4, 36),
    (1, 3, 36),
    (1, 2, 36),
)

JSONRPC = {
    failures.PARSE_ERROR: "The message is not JSON.",
    failures.INVALID_REQUEST: "The message is not JSON-RPC 2.0, or is not allowed at this time.",
    failures.METHOD_NOT_FOUND: "There is no such method.",
    failures.INVALID_PARAMS: "The parameters are not valid, or there is no such command.",
    failures.INTERNAL_ERROR: "A bug; the log says more.",
    failures.NOT_INITIALIZED: "The first request was not `initialize`.",
    failures.REQUEST_CANCELLED: "The client cancelled the request.",
    failures.SERVER_CANCELLED: "The connection ended first.",
    failures.REQUEST_FAILED: "The request cannot be answered; `data` says why.",
}
CODES = {
    "agent-count": "the folder has reached its limit of live agents",
    "agent-cwd": "an agent's directory is missing, not a directory, a link loop, or outside every workspace "
    "folder",
    "agent-cycle": "an agent would be below itself, or agents of the settings are each other's parents",
    "agent-depth": "the tree of agents would be too deep",
    "agent-dispose": "in results of `nexus/agent/call`: the agent is not below the caller",
    "agent-exists": "a live agent already has that name, perhaps in another window",
    "agent-id": "the name is not valid for an agent; the message says which names are",
    "agent-message": "a worker may write only to its parent and children, and no agent to itself",
    "agent-permissions": "an agent would be allowed more than its parent, or there is no such permission",
    "agent-role": "there is no such role, or a worker tries to start an agent that is not a worker",
    "agent-tools": "an agent would get a tool that its parent does not have",
    "bad-argument": "an argument of a memory tool is not valid; the message names it",
    "bad-event": "a field of `event`, or of an event of the bus, is not valid; the message names it",
    "bad-message": "a message to an agent is incomplete or out of range; the message says where",
    "bad-rename": "there is nothing at the position that can be renamed, or the new name is no name of it",
    "bad-option": "an option of the request is out of range, unknown, or excluded by another; the message "
    "names it",
    "bad-record": "a record of a session store is damaged (`ContextAssembler`, in programs only)",
    "bad-parameter": "a model parameter of the request, or of an agent, does not exist or is out of range",
    "bad-pin": "a pin is empty, has no message or is too large for the summary; the message names it",
    "bad-session-name": "a conversation's new name is blank, too long, not on one line or not plain text",
    "bad-task": "a caller of the library requested the context of a task that is not a message",
    "bad-text": "a name contains characters that cannot be stored",
    "bad-usage": "a number of tokens in `providerUsage` is negative; the message names it",
    "bad-tool": "a tool definition of the request has no name; the message says which",
    "concurrent-use": "two threads use one conversation at once (in programs only)",
    "context-overflow": "the request body would not fit the model, even with everything optional left out",
    "empty-append": "there is no message to append",
    "event-too-large": "the `data` of an event has more than 1 MB as JSON",
    "daemon-restarted": "the shared daemon ended during the request, which may have been carried out",
    "folder-removed": "the folder left the workspace before the answer was ready",
    "folder-unreadable": "the folder, or an agent's directory, could not be read at all, or not in time",
    "head-moved": "another window or request compacted or cleared the conversation meanwhile; try again",
    "history-not-loaded": "a caller of the library requested a part of a conversation that it has not loaded",
    "init-failed": "a template could not be written",
    "init-link": "`.nexus3` is a symbolic link",
    "key-reused": "an earlier append with a different message count used the idempotency key",
    "knowledge": "the index of the knowledge base cannot be read now",
    "ledger-busy": "another process has locked the ledger for too long; nothing was written",
    "ledger-moved": "the ledger was moved or replaced while this was written to it; send it again",
    "ledger-closed": "the daemon is ending",
    "ledger-corrupt": "the ledger was damaged; the message says what happened to it",
    "ledger-foreign": "the file is another program's database; it was not changed",
    "ledger-full": "the ledger's disk is full; nothing was written",
    "ledger-io": "the ledger's disk failed; nothing was written",
    "ledger-newer": "a newer version of Nexus wrote the ledger; it was not changed",
    "ledger-read-only": "the ledger is read-only",
    "ledger-url": "`ledger.url` is set; ledgers on a server are not supported yet",
    "mcp-answer-too-large": "a tool answered with more than can be passed on",
    "mcp-bad-answer": "a server gave an answer that cannot be used",
    "mcp-bad-tool": "a server lists a tool without a name, or two of one name",
    "mcp-cannot-start": "a server cannot be started as it is configured; the message says why",
    "mcp-changed": "a server offers something else than was approved; approve that with its `pin`",
    "mcp-disabled": "a server is switched off in its file",
    "mcp-ended": "a server ended while it was called",
    "mcp-input": "a server needs an input that only its own editor can ask for",
    "mcp-missing-argument": "a prompt of a server was called with too few words; the message says with which",
    "mcp-no-command": "a server has no command",
    "mcp-no-program": "the program of a server is not installed",
    "mcp-no-keyring": "the system's keyring does not answer, so tokens may still be in it",
    "mcp-no-sign-in": "nobody can sign in to a server: it is a process, or its file gives its Authorization",
    "mcp-no-sdk": "the package that starts servers is not installed; the message names it",
    "mcp-not-comparable": "what a server offers has no canonical form",
    "mcp-not-ready": "a server does not run, or failed; the message says why",
    "mcp-not-written": "an approval or a token could not be written",
    "mcp-of-user": "a server is approved by the user's own file; it is taken out or switched off there",
    "mcp-other-hash": "a server would start something else than what was approved here",
    "mcp-reference": "a server's settings have a reference that cannot be resolved",
    "mcp-refused": "a server answered a call with an error",
    "mcp-sign-in-failed": "a server's sign-in cannot be used; the message says why",
    "mcp-sign-in-refused": "the user, or the authorization server, refused a sign-in, or nobody signed in",
    "mcp-slow": "a server did not answer in time",
    "mcp-too-large": "the definitions of a server are too large",
    "mcp-too-many-tools": "a server lists too many tools",
    "mcp-unapproved": "the user has not approved what a server would start",
    "mcp-unknown-prompt": "a server has no such prompt; the message lists the existing ones",
    "mcp-unset-variable": "a variable that a server needs is not set",
    "mcp-untrusted": "the folder is not trusted, so no server starts in it",
    "no-provider": "the settings name no provider that answers a chat, or there is no key for it",
    "chat-busy": "a turn of the conversation is running",
    "chat-failed": "the provider refused the request, or its answer broke off; the message says why",
    "model-of-settings": "the settings name a provider, so there is no model to pick",
    "no-call": "no call was named; the message shows how one is written",
    "no-gain": "a summary would not be smaller than what it replaces; nothing was compacted",
    "no-model": "the request needs a provider's body, but neither it nor the settings name a model",
    "no-summary": "no summary could be written; nothing was compacted",
    "not-a-file-uri": "a URI does not start with `file:`",
    "not-a-workspace-folder": "the URI lies inside a workspace folder but is not one itself",
    "nothing-to-compact": "all messages are new, pinned or already a summary",
    "permission": "the settings, or what an agent was granted, leave out the tool",
    "search-too-broad": "the search took too long; use longer or rarer words",
    "session-exists": "a conversation of that name already exists",
    "tool-not-offered": "in results of `nexus/agent/call`: the agent may not call the tool",
    "unknown-agent": "no live agent has that name; the message lists the live agents, or says which to start "
    "first",
    "unknown-compaction": "there is no such compaction to undo; the message lists the existing ones",
    "unknown-encoding": "there is no such encoding; the message lists the known ones",
    "trace-under-way": "another trace is being recorded",
    "unknown-folder": "the URI is in no workspace folder; the message lists the workspace folders",
    "unknown-format": "there is no such format; the message lists the known ones",
    "unknown-permissions": "it is not known what an assistant allows; the message names the known ones",
    "unknown-server": "the folder has no MCP server of that name; the message lists them",
    "unknown-session": "the folder has no such conversation",
    "unknown-assistant": "Nexus has no profile of that assistant, or reads no sessions of it; the message "
    "lists the names",
    "conversations-off": "the setting `views.conversations` of the folder is off",
    "unknown-assistant-session": "the assistant has no such session in the folder, or the file of it "
    "cannot be read",
    "unknown-skill": "there is no such skill; the message lists the existing ones",
    "unknown-tool": "there is no such memory tool, or tool of a server; the message lists the existing ones",
    "unknown-turn": "the conversation has no such turn",
    "unreadable": "a file to count is missing, too large or not text",
    "unreadable-script": "a script is no Bash that can be read, or too long",
    "no-such-file": "a file is not there, or cannot be read",
    "no-such-line": "a file has fewer lines",
    "no-such-server": "none of the views has an MCP server of this name",
    "no-such-setting": "the view has no such setting, others have",
    "unreadable-settings": "a settings file is too large to be read, so what it allows is not known",
}


class Mark(msgspec.Struct, frozen=True):
    """So many items or fields are left out of an example here."""

    count: int


def page(examples: Examples) -> str:
    """The whole of docs/protocol.md."""
    shared = shared_shapes()
    parts = [
        INTRODUCTION + BACK_PRESSURE,
        *_beginning(examples),
        "## Requests\n",
        _overview(),
        *(_request(method, examples["requests"][method], shared) for method in METHODS),
        ASKED,
        *(_question(method, examples["questions"][method], shared) for method in protocol.QUESTIONS),
        NOTIFIED,
        *(
            _notification(method, examples["notifications"][method], shared)
            for method in protocol.NOTIFICATIONS
        ),
        *_errors(examples["errors"]),
        SHAPES,
        *(_shape(kind) for kind in shared),
        VERSIONS,
    ]
    return "\n".join(parts)


def shared_shapes() -> list[StructType]:
    """The structs that more than one method or notification speaks of, in the order of `protocol`."""
    uses: dict[StructType, int] = {}
    for params, result in (method.types for method in METHODS.values()):
        for kind in {*structs_in(params)[1:], *structs_in(result)[1:]}:
            uses[kind] = uses.get(kind, 0) + 1
        uses[result] = uses.get(result, 0) + 1
    for told in (*protocol.NOTIFICATIONS.values(), *itertools.chain(*protocol.QUESTIONS.values())):
        for kind in structs_in(told)[1:]:
            uses[kind] = uses.get(kind, 0) + 1
    uses[protocol.ChatItem] = 2  # no method names what it streams
    order = [*structs_in(Message), *declared_structs()]
    return sorted((kind for kind, count in uses.items() if count > 1), key=order.index)


# ---------------------------------------------------------------- sections


def _beginning(examples: Examples) -> list[str]:
    hello = examples["initialize"]
    commands = hello["result"]["capabilities"]["executeCommandProvider"]["commands"]
    command = examples["command"]
    return [
        "## First contact\n",
        _block(("initialize", hello["params"]), ("result", hello["result"])),
        "## Commands\n",
        COMMANDS.format(count=len(commands)),
        _block(("workspace/executeCommand", command["params"]), ("result", command["result"])),
    ]


def _overview() -> str:
    rows = [
        f"| [`{method}`](#{_anchor(method)}) | {_first_sentence(_docstring(method))} |" for method in METHODS
    ]
    return "\n".join(["| Request | What it gives |", "|---|---|", *rows]) + "\n"


def _request(method: str, example: Json, shared: list[StructType]) -> str:
    params, result = METHODS[method].types
    own = [kind for kind in _inner(params, result) if kind not in shared]
    parts = [f"### {method}\n", _docstring(method) + "\n"]
    if fields(params):
        parts += ["Parameters:\n", _given(fields(params))]
    else:
        parts.append("Parameters: none, or an empty object.\n")
    if result in shared:
        parts.append(f"Result: a [{result.__name__}](#{result.__name__.lower()}).\n")
    else:
        parts += ["Result:\n", _told(fields(result))]
    parts += ["Example:\n", _block(("params", example["params"]), ("result", example["result"]))]
    inputs = structs_in(params)
    parts += [_shape(kind, level=4, given=kind in inputs) for kind in own]
    if result is protocol.AssembledContext:
        parts += [_shape(kind, level=4) for kind in structs_in(Metadata) if kind not in shared]
    return "\n".join(parts)


def _question(method: str, example: Json, shared: list[StructType]) -> str:
    params, result = protocol.QUESTIONS[method]
    own = [kind for kind in _inner(params, result) if kind not in shared]
    parts = [
        f"### {method}\n",
        "Parameters:\n",
        _told(fields(params)),
        "Result:\n",
        _told(fields(result)),
        "Example:\n",
        _block(("params", example["params"]), ("result", example["result"])),
    ]
    return "\n".join([*parts, *(_shape(kind, level=4) for kind in own)])


def _notification(method: str, params: Json, shared: list[StructType]) -> str:
    kind = protocol.NOTIFICATIONS[method]
    own = [one for one in _inner(kind) if one not in shared]
    parts = [
        f"### {method}\n",
        _doc(kind) + "\n",
        _told(fields(kind)),
        "Example:\n",
        _block(("params", params)),
    ]
    return "\n".join([*parts, *(_shape(one, level=4) for one in own)])


def _errors(examples: Json) -> list[str]:
    codes = [f"| {code} | {meaning} |" for code, meaning in sorted(JSONRPC.items())]
    reasons = [f"| `{code}` | {meaning} |" for code, meaning in sorted(CODES.items())]
    parts = [ERRORS]
    parts.append("\n".join(["| `code` | Meaning |", "|---|---|", *codes]) + "\n")
    parts.append("`data.code` of a request that cannot be answered:\n")
    parts.append("\n".join(["| `data.code` | Meaning |", "|---|---|", *reasons]) + "\n")
    for name, example in examples.items():
        parts.append(f"An example: {name}.\n")
        parts.append(_block((example["method"], example["params"]), ("error", example["error"])))
    return parts


def _shape(kind: StructType, *, level: int = 3, given: bool = False) -> str:
    table = _given(fields(kind)) if given else _told(fields(kind))
    return f"{'#' * level} {kind.__name__}\n\n{_doc(kind)}\n\n{table}"


def _inner(*kinds: StructType) -> list[StructType]:
    """The structs inside some structs, without these."""
    return list(dict.fromkeys(inner for kind in kinds for inner in structs_in(kind) if inner not in kinds))


def _given(rows: list[Field]) -> str:
    lines = ["| Field | Type | Default | Meaning |", "|---|---|---|---|"]
    for row in rows:
        default = "required" if row.default is None else f"`{row.default}`"
        lines.append(f"| `{row.name}` | {row.type} | {default} | {row.meaning} |")
    return "\n".join(lines) + "\n"


def _told(rows: list[Field]) -> str:
    lines = ["| Field | Type | Meaning |", "|---|---|---|"]
    for row in rows:
        name = row.name if row.default is None else f"{row.name}?"
        kind = row.type.removesuffix(" or null") if row.default == "null" else row.type
        lines.append(f"| `{name}` | {kind} | {row.meaning} |")
    return "\n".join(lines) + "\n"


def _docstring(method: str) -> str:
    return inspect.getdoc(METHODS[method].handler()) or ""


def _doc(kind: StructType) -> str:
    return inspect.cleandoc(kind.__doc__ or "")


def _first_sentence(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _anchor(heading: str) -> str:
    """GitHub's anchor of a heading."""
    return heading.lower().replace("/", "")


# ---------------------------------------------------------------- examples


def _block(*named: tuple[str, Json]) -> str:
    """JSON values under their names, as much of each as fits into MOST_LINES together."""
    lines: list[str] = []
    for items, keys, characters in ROOM:
        lines = []
        for name, value in named:
            lines += [f"// {name}", *_lines(_shorten(value, items, keys, characters))]
        if len(lines) <= MOST_LINES:
            break
    return "\n".join(["```jsonc", *lines, "```", ""])


def _shorten(value: Json, items: int, keys: int, characters: int, depth: int = 0) -> Any:
    def inner(one: Json) -> Any:
        return _shorten(one, items, keys, characters, depth + 1)

    if isinstance(value, str) and len(value) > characters + 20:
        return f"{value[:characters]}… {len(value) - characters} more characters"
    if isinstance(value, list):
        rest = [Mark(len(value) - items)] if len(value) > items else []
        return [*(inner(one) for one in value[:items]), *rest]
    if isinstance(value, dict):
        most = items if all(key.startswith("/") for key in value) else keys if depth else len(value)
        shown = {key: inner(one) for key, one in list(value.items())[:most]}
        return shown | ({"": Mark(len(value) - most)} if len(value) > most else {})
    return value


def _lines(value: Any, head: str = "", indent: str = "") -> list[str]:
    """JSON, an array or object on one line where it fits."""
    line = f"{indent}{head}{_one_line(value)}"
    if not isinstance(value, (dict, list)) or not value or len(line) < WIDTH:
        return [line]
    entries = list(value.items()) if isinstance(value, dict) else [("", one) for one in value]
    found = [f"{indent}{head}{'{' if isinstance(value, dict) else '['}"]
    for place, (key, one) in enumerate(entries, 1):
        if isinstance(one, Mark):
            found.append(f"{indent}  // … {one.count} more")
            continue
        found += _lines(one, f"{json.dumps(key)}: " if isinstance(value, dict) else "", f"{indent}  ")
        found[-1] += "," if place < len(entries) else ""
    return [*found, f"{indent}{'}' if isinstance(value, dict) else ']'}"]


def _one_line(value: Any) -> str:
    if isinstance(value, Mark):
        return f"/* … {value.count} more */"
    if isinstance(value, list):
        return f"[{', '.join(_one_line(one) for one in value)}]"
    if isinstance(value, dict):
        parts = (
            _one_line(one) if isinstance(one, Mark) else f"{json.dumps(key)}: {_one_line(one)}"
            for key, one in value.items()
        )
        return f"{{{', '.join(parts)}}}"
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- text

INTRODUCTION = """\
# Protocol

<!-- Generated by `make generate` from `protocol/`, the handlers and a real daemon's answers: do not edit. -->

`nexus serve` is a language server. It speaks plain LSP 3.17 for everything that an editor shows by itself,
and the requests `nexus/*` below for the rest. Every example is the answer of a real daemon in the folder
`examples/company/backend/auth-service`. Only paths, times, ids and process figures are invented; a `…`
marks where a long part is cut.

- **Transport.** Standard input and output, one client for each process. The daemon ends with its client. With
  `--remote=auto` the process only copies bytes between its client and the one daemon that all windows of the
  user share; it starts that daemon where none runs, and goes on with the next one after a crash or an update.
- **Framing.** As in LSP: `Content-Length: <bytes>`, an empty line, then JSON-RPC 2.0 in UTF-8. A header has
  at most 8 KiB, a body at most 32 MiB. A malformed header ends the connection.
- **Names.** Fields are camelCase. A field written `field?` may be left out. In parameters an unknown field,
  at any depth, and a value of another type are errors (`invalid-params`) whose message names the field, as in
  ``Unknown field `options.paramters`: did you mean `parameters`?``; a client ignores those of results.
- **Positions.** Ranges are LSP's: lines and characters from 0, the end not included. The daemon takes the
  first of the client's `general.positionEncodings` that it knows (`utf-8`, `utf-16`, `utf-32`), else
  `utf-16`, and says so in `positionEncoding`.
- **Folders.** `workspaceFolder` is the URI of a workspace folder or of anything inside one; the innermost
  folder that contains it answers. Folders come with `initialize` and `workspace/didChangeWorkspaceFolders`.
- **Sessions.** `session` names a conversation of that folder; the default is `main`. A ledger on the disk
  stores the conversations. All windows and processes of a user share it, so what one of them appends is part
  of the others' next request. The daemon opens it for the first request about a conversation.
- **Freshness.** An answer contains every edit that was sent before its request. Unsaved text wins over the
  disk. The daemon notices changes on disk: the system reports them, or the daemon polls the files if the
  system does not report or has no file watches left. `nexus/status` and `nexus/context/layers` name the way
  for each folder (`freshness`). If a limit of the system is reached, the daemon shows it once with
  `window/showMessage`, with its name and the command that raises it. More in [freshness.md](freshness.md).
- **Trust.** The daemon starts a process in a folder only if the user trusts the folder. For now the only
  process is git, for `context.git`. The client says so, true or false, or else `nexus trust`.
  `"initializationOptions": {"trusted": true}` in `initialize` covers the folders that `initialize` lists, and
  no others. Of a folder that is added later the client says it with `"trusted": true` beside its `uri` and
  `name` in `workspace/didChangeWorkspaceFolders`; sent again for a present folder, `true` or `false` changes
  it. Trust by the client ends with the folder's removal. Of nested folders, the innermost one counts;
  `nexus trust` covers what is beneath a folder. In an untrusted folder its own MCP servers, and its skills
  that need programs, are not ready, and the prompt says so. No setting grants trust: a folder could then
  trust itself.
- **Cancelling.** `$/cancelRequest` works for every request: its reply comes at once. Work that only reads
  (searches, exports, counts) also ends soon; work that writes ends when it is written.
- **Progress.** A `nexus/*` request that takes longer than half a second is shown with `$/progress`: under its
  `workDoneToken`, or without one, if the client declares `window.workDoneProgress`, under a token that the
  daemon creates. So is other slow work: loading a folder, indexing a knowledge base, loading a vocabulary.
  Progress ends before the reply. `window/workDoneProgress/cancel` cancels the request.
- **Fairness.** The work of a client, and of one of its folders, has a limited share of the daemon's threads.
  A client that sends many slow requests, or a folder whose file system hangs, delays only itself.
- **Requests and notifications.** A request has an id, a notification has none. A request without an id is
  ignored, with one line in the log; a notification with an id is answered with -32601. Neither is executed.
  Before `initialize` and after `shutdown` requests are refused and notifications dropped; `exit` always ends
  the daemon.
"""
BACK_PRESSURE = f"""\
- **Clients that do not read.** Nothing is lost when a client stops reading for a while. Once more than
  {LIMITS.unread_high >> 20} MiB wait for it, the daemon stops reading its messages until at most
  {LIMITS.unread_low >> 20} MiB are left. Earlier requests are still answered. At most {LIMITS.in_flight}
  requests of a client are in progress; the others wait in their order, except the client's answers, `exit`
  and cancellations. Meanwhile notifications wait in the daemon: of each kind, only the newest about the
  same file, session, agent or folder. Beyond {MOST:,} of one method the oldest are dropped, and the log
  says how many; diagnostics are never dropped, of progress only what began and ended meanwhile, and parts of
  a chat's answer are joined. The
  connection ends only if the client has closed its side, its process is dead, or it has read nothing for
  {LIMITS.hang_seconds / 3600:g} hours in which the computer was not suspended.
"""
COMMANDS = """\
Each of the {count} requests is also a command: its name with `.` for `/`, and its parameters as the one
argument. For editors that cannot send requests of their own, `nexus.context.assemble` is
`nexus/context/assemble`.
"""
ASKED = """\
## Questions

The daemon sends these requests to its client: only to the one whose request needs the answer, and
`nexus/model/complete` only if that declares the capability in `initialize`.

`nexus/model/complete`, for a client with `capabilities.experimental.nexus.modelComplete: true`, lets the
client's model write. If the setting `provider.name` is `editor`, a compaction gets its summary this way,
whether the client requested the compaction or it is due before a turn. The messages begin with those that
were sent last, so that the provider's cache serves them; the last one is the instruction. A model has one
minute, or half a minute if a turn waits for it. Then the daemon cancels the request (`$/cancelRequest`), as
it does when the client cancels its own. If the client answers with an error, with nothing, without a
heading or far beyond `maxTokens`, Nexus writes an extractive summary, and the receipt's `failures` say why.
A client that has no model at the moment, or whose user does not want to wait, answers with an error at
once.

`nexus/tool/approve` asks the user whether the model may call a tool, while `nexus/chat/send` runs; it is sent
to the client of that request, whatever that declares. An answer that does not say `approved`, an error and no
answer within two minutes mean no.

Other requests continue meanwhile. A client may send requests of its own while it answers.

The daemon also sends `workspace/codeLens/refresh` to clients that support it and have requested code lenses.

Diagnostics are published, unless the client pulls them (`textDocument/diagnostic`, `workspace/diagnostic`).
An answer waits until the last edit is read and checked. A client never has them both ways: it pulls if it
declares `textDocument.diagnostic` and not `textDocument.publishDiagnostics`. One that declares both pulls
with `"initializationOptions": {"pullDiagnostics": true}`. Once a client has other results than it would get
now, the daemon sends `workspace/diagnostic/refresh`, if it supports that
(`workspace.diagnostics.refreshSupport`).

Contexts are virtual documents for a client with `capabilities.workspace.textDocumentContent` (LSP 3.18): it
requests the text of a `nexus-context:` URI with `workspace/textDocumentContent`. The daemon registers the
scheme (`client/registerCapability`), or offers it in `initialize` to a client that does not declare
`dynamicRegistration`. The URI has the path of the folder and the name of a text:

- `nexus-context:/home/ana/app/nexus.md`: the system prompt; of a live agent with `?agent=NAME`.
- `nexus-context:/home/ana/app/claude-code.md`: what another assistant sends of the folder's files, as in
  `nexus/context/preview`. The name is that of `nexus/assistant/list`.
- `nexus-context:/home/ana/app/next-request.md`: the next request, with its system prompt, tools and messages;
  of another conversation than `main` with `?session=NAME`.

In such a document `textDocument/definition` leads from each line to its line in the source, and
`textDocument/documentLink` has a link at the first line of each part. When the context changes, the daemon
sends `workspace/textDocumentContent/refresh`, until the client closes the document.

The command of a code lens, `nexus.showInContext`, belongs to the client. For a client that does not declare
`experimental.nexus` the daemon runs it: it opens the context of the folder (`window/showDocument`) as a
virtual document, or as a read-only file, which has the same links; or it says in `window/showMessage` where
the file is. Such a client is also offered a handful of commands only, whose answers are
shown to people; all others can be sent. A command without an argument, or whose argument has no
`workspaceFolder`, is about the only folder that is open. The one argument of a lens's command says what it
counts: `workspaceFolder`; `agent`, if it is one of an agent; `assistant`, if another assistant reads the file
(its name, as of `nexus/assistant/list`); `source` (URI of the file, range of the heading
or import); and `prompt`, its range in the text of `nexus/context/preview` for that agent or assistant, absent
if the prompt does not contain it.

The lenses of an MCP server have the command `nexus.showServer`. Its argument has `workspaceFolder`, the
`name` of the server, and in the second lens an `action`: `approve`, `start`, `stop` or `log`. The daemon runs
it for every client that sends it: it asks the user with `window/showMessageRequest` before it approves, and
says what became of it. A client can do that itself with `nexus/mcp/*` instead.
"""
NOTIFIED = """\
## Notifications

Two of them are LSP's own: `textDocument/publishDiagnostics` and `window/showMessage`. The latter reports
that an append brought a conversation to 75 % (information), 90 % or 95 % (warnings) of the model's window:
once each, until the conversation is compacted or cleared, or a compaction is undone. It also warns, once,
if conversations cannot be stored; if a ledger was set aside because it is damaged or lacks an acknowledged
write; and if the system has no more file watches, so that files are polled (see
[freshness.md](freshness.md)).

Changes that another process makes to a conversation are also reported, about a second later; of several
changes to one conversation, the last. The same holds for its messages to agents, and for its changes to
agents, if a client has requested the folder's agents.
"""
ERRORS = """\
## Errors

An error is a JSON-RPC error: `code`, a `message` that says what to do, and `data` with a `code` for programs
and the `problems` of the files behind it (see [Problem](#problem)). Where the message itself is wrong,
`data.code` is the JSON-RPC code in words, such as `invalid-params`.
"""
SHAPES = """\
## Shapes

Shapes that several requests share.
"""
VERSIONS = f"""\
## Versions

The protocol has a number, now {PROTOCOL}. A client and a daemon with equal numbers fit, whatever their
versions.

- **The number stays** when something is only added: a method, a notification, an optional parameter, a field
  of a result, a value of a list such as `reason` or `status`. A client ignores fields and values that it does
  not know.
- **The number grows by one** when a client of the number before would fail or misread an answer: a method,
  field or value is removed, renamed or changes its meaning, or a parameter becomes required.
- The daemon names its number in the result of `initialize`, as `capabilities.experimental.nexus.protocol`,
  and in `nexus/status`, as `protocol`. `serverInfo.version` is the version of Nexus.
- A client may name its number in `initialize`, as `capabilities.experimental.nexus.protocol`. When the
  numbers differ, the daemon warns once with `window/showMessage` and names what to update. It still answers
  requests.
- A client should compare the numbers, too; a daemon that names none speaks protocol 1. The VS Code extension
  refuses a daemon of another number and names what to update; it names no number, so that the daemon does not
  warn a second time.

The TypeScript types of the VS Code extension are generated from the same source as this page:
[vscode-extension/src/protocol/index.ts](../vscode-extension/src/protocol/index.ts).
"""
