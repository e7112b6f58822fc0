"""How the records of a program become messages, and where reading them can resume.

1. Reading resumes before a record at which every call has its result and no text of the user waits in a
   queue, and which begins an answer or a message of the user. What follows is converted without what
   precedes, and gives the same messages.
2. If the user went back behind a place, reading does not resume there: the whole file is read again. What was
   read before the place has another conversation, which is the live one if the file gets shorter.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from nexus_context.assistants.sessions.record import SessionRecord
from nexus_context.assistants.transcripts.conversation import FormatReader

MOST_PARENTS = 400
"""Records of an exchange that are remembered."""

R = TypeVar("R", bound=SessionRecord)


class Boundary(msgspec.Struct, frozen=True):
    """The first of the records that are read again, and the parents that it may have."""

    at: int
    parents: tuple[str, ...] = ()


class RecordFormat(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """The format of a program's records. `is_agent`: they are of a sub-agent's own file.

    `find_boundary` finds the last boundary behind the first record. `continues` says whether records simply
    continue what was read before them, with these parents. `list_waiting` lists the records whose texts
    the user may still take back. `find_parent` and `find_folder` say by its path which session started
    that of a file, and where it works, if its records do not. `choose_folder` chooses among the folders
    that they name. `find_origin` finds from which session that of a file was forked, if its records do
    not say. `is_named_by_file`: the name of a file is its session's.
    """

    record_type: type[R]
    reader: FormatReader
    find_boundary: Callable[[Sequence[R], bool], Boundary | None]
    continues: Callable[[Sequence[R], Sequence[str], bool], bool]
    list_waiting: Callable[[Sequence[R]], list[int]] = lambda _: []
    find_parent: Callable[[str], str | None] = lambda _: None
    find_folder: Callable[[str], str | None] = lambda _: None
    choose_folder: Callable[[str, Sequence[str]], str | None] = lambda _, folders: next(iter(folders), None)
    find_origin: Callable[[str], str | None] = lambda _: None
    is_named_by_file: bool = False
