"""Store tokens of servers that the user signed in to: in the system's keyring, else in a file only the user
can read.

1. A file for each launch says that there are tokens, so that the keyring is asked only if needed. The file
   holds the tokens only if the keyring cannot: if there is none, or if it fails or hangs.
2. A keyring may hang, or wait for its user. It is asked in a thread of its own, for at most KEYRING_S. After
   it has hung once, this process does not ask it again.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from typing import Any

from nexus_context.disk import files
from nexus_context.disk.user_state import state_directory
from nexus_daemon.process.state_files import write_file

SERVICE = "nexus-mcp"
KEYRING_S = 20.0
LARGEST = 1 << 20  # bytes of tokens
IN_KEYRING = '"keyring"\n'

_hangs = threading.Event()
_unsure: set[str] = set()  # launches whose tokens the keyring may have beside the file: it answered too late


def tokens_file(environ: Mapping[str, str], launch_hash: str) -> str:
    """Return the absolute path of the token file of a launch.

    NoStateDirectoryError if there is no state directory.
    """
    return os.path.join(state_directory(environ), "trust", f"tokens-{launch_hash}.json")


def saved_at(environ: Mapping[str, str], launch_hash: str) -> float:
    """Return when tokens were stored last, by `time.time()`; 0 if there are none. Call it in a thread."""
    try:
        return os.stat(tokens_file(environ, launch_hash)).st_mtime
    except OSError:
        return 0.0


async def load_tokens(environ: Mapping[str, str], launch_hash: str) -> str | None:
    """Return the text that was stored last. None if there is none or the keyring does not return it."""
    path = tokens_file(environ, launch_hash)
    text = (await asyncio.to_thread(files.read_text, path, limit=LARGEST)).text
    if text != IN_KEYRING:
        return text
    saved: str | None = await _ask_keyring(lambda keyring: keyring.get_password(SERVICE, launch_hash))
    return saved


async def save_tokens(environ: Mapping[str, str], launch_hash: str, text: str) -> None:
    """Store a text. OSError if neither the keyring nor the disk takes it."""

    def save(keyring: Any) -> bool:
        keyring.set_password(SERVICE, launch_hash, text)
        return bool(keyring.get_password(SERVICE, launch_hash) == text)  # some forget what they are given

    was_hanging = _hangs.is_set()
    is_saved = await _ask_keyring(save)
    if is_saved is False or (_hangs.is_set() and not was_hanging):
        _unsure.add(launch_hash)
    stored_text = IN_KEYRING if is_saved else text
    await asyncio.to_thread(write_file, tokens_file(environ, launch_hash), stored_text.encode())


async def delete_tokens(environ: Mapping[str, str], launch_hash: str) -> bool:
    """Delete the stored text. Return False if the keyring may still have it.

    OSError if the file cannot be deleted.
    """

    def delete(keyring: Any) -> bool:
        with suppress(keyring.errors.PasswordDeleteError):  # it is not there
            keyring.delete_password(SERVICE, launch_hash)
        return True

    path = tokens_file(environ, launch_hash)
    text = (await asyncio.to_thread(files.read_text, path, limit=LARGEST)).text
    may_have_it = text == IN_KEYRING or launch_hash in _unsure
    is_forgotten = not may_have_it or bool(await _ask_keyring(delete))
    with suppress(FileNotFoundError):
        await asyncio.to_thread(os.unlink, path)
    return is_forgotten


async def _ask_keyring(ask: Callable[[Any], Any]) -> Any:
    """Ask the keyring in a thread. None if there is no keyring, or if it fails or hangs."""
    if _hangs.is_set():
        return None
    answer: Future[Any] = Future()
    threading.Thread(target=_answer, args=(ask, answer), name="nexus-keyring", daemon=True).start()
    try:
        return await asyncio.wait_for(asyncio.wrap_future(answer), KEYRING_S)
    except TimeoutError:
        _hangs.set()
        return None


def _answer(ask: Callable[[Any], Any], answer: Future[Any]) -> None:
    value = None
    with suppress(Exception):  # whatever a keyring of the system raises, and ImportError without the extra
        import keyring
        import keyring.errors

        value = ask(keyring)
    with suppress(InvalidStateError):  # nobody waits any more
        answer.set_result(value)
