"""Defines how the records of a program become messages, and where reading them can resume.

1. Reading resumes before a record that begins an answer or a message of the user, if every call before it has
   its result and no text of the user waits in a queue. What follows gives the same messages if it is
   converted without what precedes.
2. If the user went back behind a place, reading does not resume there, and the whole file is read again. What
   was read before the place belongs to another conversation then, which is the live one again if the file
   gets shorter.
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
    """A place where reading can resume. `at` is the index of the first record that is read again, `parents`
    are the records that may precede it.
    """

    at: int
    parents: tuple[str, ...] = ()


class RecordFormat(msgspec.Struct, Generic[R], frozen=True, kw_only=True):
    """Says how the records of a program are read. An argument `is_agent` means that the records are a
    sub-agent's own file.

    `find_boundary` finds the last boundary behind the first record. `continues` tells whether records simply
    continue what was read before them; the texts it gets are the `parents` of the boundary. `list_waiting`
    lists the indices of records whose texts the user may still take back. `find_parent`, `find_folder` and
    `find_origin` get the path of a file, and return the session that started its session, the folder where
    that works, and the session that it was forked from; each is None if the path does not tell.
    `choose_folder` chooses among the folders that the records of a file name. `is_named_by_file` is true if a
    file is named after its session.
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
