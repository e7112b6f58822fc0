"""Show the answers of commands to people, in an editor that has no client of ours.

1. The cost, the layers, the new files and the status are shown as messages.
2. The context is shown as a virtual document. For an editor without virtual documents it is written to a
   read-only text file in the user's state directory. Both have links to the sources.
3. The editor opens the document with `window/showDocument`. If it cannot, a message names the file.
4. The lens of a file opens the context at what the file adds to it.
"""

import os
import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from nexus_context.disk.user_state import state_directory
from nexus_daemon import protocol
from nexus_daemon.api import context
from nexus_daemon.lsp import lsp_types
from nexus_daemon.lsp.convert import path_to_uri, uri_to_path
from nexus_daemon.lsp.failures import ClientError, DisconnectedError
from nexus_daemon.process.state_files import write_file
from nexus_daemon.workspace.context_documents import ContextDocument, context_uri

if TYPE_CHECKING:
    from nexus_daemon.windows.connection import Connection

DIRECTORY = "contexts"
REPLY_S = 10.0
MOST_ROWS = 3
_UNSAFE = re.compile(r"[^\w.-]+")


class Done(protocol.Wire, frozen=True):
    """The empty answer of a command that has already shown its result."""


async def show_in_context(client: "Connection", params: "LensTarget") -> Done:
    """Show the context of a folder, at the text that a file adds to it."""
    view = protocol.PreviewParams(params.workspace_folder, agent=params.agent, assistant=params.assistant)
    preview = await context.preview(client, view)
    await show_context(client, view, preview, params.prompt)
    return Done()


class LensTarget(protocol.Wire, frozen=True):
    """The argument of a lens's command. `prompt` is the range of the file's text in the prompt."""

    workspace_folder: str
    agent: str | None = None
    assistant: str | None = None
    prompt: Any = None  # a range
    source: Any = None


async def show_answer(client: "Connection", params: Any, result: Any) -> None:
    """Show the `result` of a command that a person ran with the parameters `params`."""
    folder = getattr(params, "workspace_folder", "")
    if isinstance(result, protocol.Preview):
        await show_context(client, params, result)
    elif isinstance(result, protocol.TokenUsage):
        say(client, _usage_text(client, folder, result))
    elif isinstance(result, protocol.LayersResult):
        say(client, _layers_text(client, folder, result))
    elif isinstance(result, protocol.InitResult):
        say(client, _created_text(result))
    elif isinstance(result, protocol.Status):
        folders = len({folder_status.uri for folder_status in result.folders})
        folder_count = f"{folders} folder" + "s" * (folders != 1)
        say(
            client,
            f"Nexus {result.version} runs as process {result.pid} and serves {folder_count} in this editor.",
        )


async def show_context(
    client: "Connection", view: protocol.PreviewParams, preview: protocol.Preview, selection: Any = None
) -> None:
    """Open the context of a folder in the editor, with `selection` selected.

    Say where it is if that fails.
    """
    folder, capabilities = client.folders.at(view.workspace_folder).uri, client.capabilities
    if capabilities.reads_contents and capabilities.shows_documents and view.view_as is None:
        virtual = context_uri(folder, assistant=view.assistant, agent=view.agent)
        if await show_document(client, virtual, selection):
            return
    path = await client.work(_write, client, view, preview.text)
    client.contexts.put(path_to_uri(path), ContextDocument(folder, preview))
    if await show_document(client, path_to_uri(path), selection):
        return
    line = "" if not isinstance(selection, dict) else f", line {selection['start']['line'] + 1}"
    say(
        client,
        f"The context of {_name(client, folder)} has {preview.tokens:,} tokens; it is in {path}{line}.",
    )


async def open_page(client: "Connection", address: str) -> None:
    """Open a page in the user's browser. If the editor cannot do that, show the address in a message."""
    if not await _is_opened(client, {"uri": address, "external": True, "takeFocus": True}):
        say(client, f"Open this address to sign in: {address}")


async def show_document(client: "Connection", uri: str, selection: Any = None) -> bool:
    """Open a document in the editor, with a range selected. Return false if the editor does not do that."""
    params = {"uri": uri, "takeFocus": True}
    if selection is not None:
        params["selection"] = selection
    return await _is_opened(client, params)


async def _is_opened(client: "Connection", params: dict[str, Any]) -> bool:
    if not client.capabilities.shows_documents:
        return False
    try:
        reply = await client.ask("window/showDocument", params, Any, timeout_s=REPLY_S)
    except (ClientError, DisconnectedError, TimeoutError):
        return False
    return isinstance(reply, dict) and reply.get("success") is True


def _write(client: "Connection", view: protocol.PreviewParams, text: str) -> str:
    agent = view.agent if view.view_as is None else view.view_as.agent_id
    names = filter(None, (_name(client, view.workspace_folder), view.assistant or agent))
    name = _UNSAFE.sub("-", "-".join(names)).strip("-.") or "folder"
    directory = os.path.join(state_directory(client.folders.load_inputs.environ), DIRECTORY)
    path = os.path.join(directory, f"{name}.md")
    if os.name == "nt":  # which replaces no file that is read-only
        with suppress(FileNotFoundError):
            os.chmod(path, stat.S_IWRITE)
    write_file(path, text.encode("utf-8", "replace"))
    os.chmod(path, stat.S_IREAD)
    return path


def _usage_text(client: "Connection", folder: str, usage: protocol.TokenUsage) -> str:
    about = "" if usage.counter.exact else "about "
    model = f" of {usage.model}" if usage.model else ""
    largest = sorted(usage.rows, key=lambda row: -row.tokens)[:MOST_ROWS]
    rows = ", ".join(f"{row.label} {row.tokens:,}" for row in largest if row.tokens)
    total = f"{about}{usage.total:,} of {usage.available:,} tokens{model}"
    return f"The context of {_name(client, folder)} costs {total}" + (f": {rows}." if rows else ".")


def _layers_text(client: "Connection", folder: str, result: protocol.LayersResult) -> str:
    about = "" if result.counter.exact else "about "
    layers = ", ".join(f"{layer.name} {about}{layer.tokens:,} tokens" for layer in result.layers)
    problems, skipped = len(result.problems), len(result.skipped)
    counts = f"{problems} problem{'s' * (problems != 1)}, {skipped} file{'s' * (skipped != 1)} not read"
    return f"The layers of {_name(client, folder)}, the nearest last: {layers}; {counts}."


def _created_text(result: protocol.InitResult) -> str:
    created, existing = (
        [uri_to_path(uri) or uri for uri in uris] for uris in (result.created, result.existing)
    )
    if not created:
        return f"Nothing was created: {', '.join(existing)} exist already."
    return f"Created {', '.join(created)}."


def _name(client: "Connection", folder: str) -> str:
    return client.folders.at(folder).name


def say(client: "Connection", text: str) -> None:
    """Show the user an information message."""
    client.notify("window/showMessage", lsp_types.ShowMessageParams(lsp_types.INFORMATION, text))
