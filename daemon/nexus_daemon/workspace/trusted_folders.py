"""Read and write the list of trusted folders in the user's state directory, for `nexus trust`."""

from collections.abc import Mapping

import msgspec

from nexus_context.disk import files
from nexus_context.folder.snapshot import LoadInputs
from nexus_context.folder.trust import TrustedFolders, covers, trust_file, trusted_folders
from nexus_daemon.process.state_files import write_file


def read_trusted_folders(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the real paths of the folders that the user trusts.

    NoStateDirectoryError if there is no state directory.
    """
    return trusted_folders(files.read_text(trust_file(environ), limit=files.PROMPT_LIMIT).text)


def is_trusted(folder: str, inputs: LoadInputs) -> bool:
    """Whether the user trusts a folder now. The client decides, or else the file of trusted folders.

    Call it in a thread, since it reads the file.
    """
    if inputs.trusted is not None or inputs.trust_file is None:
        return inputs.trusted is True
    text = files.read_text(inputs.trust_file, limit=files.PROMPT_LIMIT).text
    return covers(trusted_folders(text), files.real_path(folder))


def set_trust(environ: Mapping[str, str], folder: str, *, trusted: bool) -> bool:
    """Trust a folder, or stop trusting it. Return False if nothing changed.

    OSError if the list cannot be written.
    """
    folders, real = set(read_trusted_folders(environ)), files.real_path(folder)
    if (real in folders) == trusted:
        return False
    changed = {*folders, real} if trusted else folders - {real}
    data = msgspec.json.encode(TrustedFolders(tuple(sorted(changed))))
    write_file(trust_file(environ), msgspec.json.format(data, indent=1) + b"\n")
    return True
