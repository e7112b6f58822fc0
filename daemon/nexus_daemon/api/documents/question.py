"""Describe what a feature is asked about: an open document and its surroundings.

1. The text is what the editor has, since some program may read a file that Nexus does not read.
2. A document outside of all folders, such as the user's own settings, counts as one of the first folder.
3. Settings in a directory below the folder are read as by a program that runs in that directory.
"""

import os
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from nexus_context.assistants.reading.profile_types import Profile, Surroundings, short_path
from nexus_context.assistants.tracking.in_use import NEXUS
from nexus_context.assistants.views.readers import UNREAD, AssistantUse, file_uses
from nexus_context.assistants.views.setting_keys import MCP_SERVERS
from nexus_context.assistants.views.settings_readers import SettingsReader, settings_readers
from nexus_context.disk.files import file_stamp
from nexus_context.folder.layers.walk import CONFIG_DIRECTORY
from nexus_daemon import protocol
from nexus_daemon.api.explain import Scene, scene_of
from nexus_daemon.features.completion import ClientForm
from nexus_daemon.features.edits import Editing
from nexus_daemon.features.open_document import KINDS, OpenDocument
from nexus_daemon.features.settings_place import SettingsPlace, place_at
from nexus_daemon.lsp.convert import Locator, Texts, uri_to_path

if TYPE_CHECKING:
    from nexus_context.assistants.tracking.followers import SessionFollowers
    from nexus_daemon.windows.connection import Connection


OWN_FILES = ("config.json", "mcp.json")


class Question(NamedTuple):
    """What a feature is asked about: a document, the folder around it, and what its client can show."""

    document: OpenDocument
    scene: Scene
    form: ClientForm
    followers: "SessionFollowers"
    editing: Editing

    def offset(self, position: protocol.Position) -> int:
        """Return the code-point offset of a position in the document."""
        return self.document.locate.offset(self.document.path, position)

    def is_file(self, path: str) -> bool:
        """Whether there is a file at `path`. A document that is open but not saved yet counts."""
        return path in self.scene.disk.overlays or file_stamp(path) is not None

    def shorten(self, path: str) -> str:
        """Return a path as people write it: relative to the folder, or with `~` for the home directory."""
        return short_path(path, self.document.folder, self.document.user_home)

    def readers(self) -> list[SettingsReader]:
        """Return the programs that look for settings in the document.

        Empty for a settings file of Nexus itself.
        """
        if self.nexus_keys is not None:
            return []
        return list(settings_readers(self.document.path, self.scene.disk, self.scene.surroundings))

    def use_of(self, profile: Profile) -> AssistantUse:
        """Return how a program uses the document, which is found by its path or its real path."""
        uses, path = file_uses(profile), self.document.path
        return uses.get(path) or uses.get(self.scene.disk.real(path), UNREAD)

    def settings_place(self, position: protocol.Position) -> SettingsPlace | None:
        """Return the key or value at a position of a settings file. None in other documents."""
        is_text = self.document.kind == "instructions"
        return None if is_text else place_at(self.document, self.offset(position))

    @property
    def nexus_keys(self) -> str | None:
        """Return which keys the document has if it is a settings file of Nexus: `NEXUS` or `MCP_SERVERS`.

        Else None.
        """
        directory, name = os.path.split(self.document.path)
        is_own = os.path.basename(directory) == CONFIG_DIRECTORY and name in OWN_FILES
        return None if not is_own else NEXUS if name == "config.json" else MCP_SERVERS


async def question_of(client: "Connection", uri: str, *, is_fresh: bool) -> Question | None:
    """Build the question about an open document.

    None if the document is not open, or not of a kind with features.

    With `is_fresh` the folder's snapshot includes the last edit. Without it the snapshot at hand is used.
    """
    path, folders = uri_to_path(uri), client.folders
    kind = None if path is None else KINDS.get(os.path.splitext(path)[1])
    if path is None or kind is None or path not in folders.overlays:
        return None
    folder = folders.containing(path) or next(iter(folders), None)
    if folder is None:
        return None
    text, encoding = folders.overlays[path], client.capabilities.position_encoding
    scene = await scene_of(
        client, folder, has_servers=is_fresh and _names_servers(path, text), is_fresh=is_fresh
    )
    if kind != "instructions":
        scene = scene._replace(surroundings=_surroundings_of(path, scene.surroundings))
    locate = Locator(Texts({path: text.removeprefix("\ufeff")}), encoding, {path: text})
    home = folders.load_inputs.user_home
    document = OpenDocument(path, kind, locate, folder=folder.path, user_home=home)
    capabilities = client.capabilities
    form = ClientForm(
        capabilities.takes_snippets,
        capabilities.shows_markdown,
        has_contexts=capabilities.reads_contents and not capabilities.is_ours,
    )
    editing = client.documents.editing()
    return Question(document, scene, form, followers=client.daemon.followers, editing=editing)


def _names_servers(path: str, text: str) -> bool:
    return os.path.basename(path).endswith("mcp.json") or "mcp" in text


def _surroundings_of(path: str, surroundings: Surroundings) -> Surroundings:
    """Where a program runs that takes settings from a path: of a package, in the package."""
    directory = os.path.dirname(path)
    if os.path.basename(directory).startswith("."):
        directory = os.path.dirname(directory)
    is_below = directory.startswith(surroundings.folder + os.sep)
    return replace(surroundings, folder=directory) if is_below else surroundings
