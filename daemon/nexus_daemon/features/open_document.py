"""Describe an open document as the features of an editor see it."""

from typing import Literal, NamedTuple

from nexus_daemon.lsp.convert import Locator

Kind = Literal["json", "toml", "instructions"]
KINDS: dict[str, Kind] = {
    ".json": "json",
    ".jsonc": "json",
    ".toml": "toml",
    ".md": "instructions",
    ".mdc": "instructions",
    ".mdx": "instructions",
    ".markdown": "instructions",
    ".txt": "instructions",
}
"""Suffix of the file → kind of the document."""


class OpenDocument(NamedTuple):
    """An open document by its absolute path, with the text and the positions that its editor has.

    `folder` is the absolute path of the workspace folder around it, or of the client's first folder.
    `user_home` is the user's home directory.
    """

    path: str
    kind: Kind
    locate: Locator
    folder: str
    user_home: str

    @property
    def text(self) -> str:
        """Return the text, without a byte order mark."""
        return self.locate.text(self.path)
