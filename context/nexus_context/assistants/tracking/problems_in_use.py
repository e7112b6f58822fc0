"""Finds the problems of those assistants that are in use in a folder."""

from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import Surroundings
from nexus_context.assistants.tracking.in_use import NEXUS, FolderViews, read_views
from nexus_context.assistants.views.instruction_files import find_instruction_files
from nexus_context.assistants.views.problems import AssistantCheck, gather
from nexus_context.assistants.views.profile import read_profile
from nexus_context.config.merge import Effective


def check_in_use(
    surroundings: Surroundings, disk: Disk, settings: Effective, *, counted: bool
) -> tuple[FolderViews, AssistantCheck]:
    """Return the views of a folder, and the problems of the assistants that are in use there.

    `settings` are the settings of Nexus for the folder. Without `counted`, the tokens of files are all 0.
    """
    views = read_views(surroundings, disk, settings)
    names = [view.name for view in views.in_use]
    around = find_instruction_files(disk, surroundings)
    profiles = [
        read_profile(name, surroundings, disk=disk, around=around, counted=counted)
        for name in names
        if name != NEXUS
    ]
    return views, gather(surroundings.folder, profiles, covers_nexus=NEXUS in names)
