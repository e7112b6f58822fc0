"""Joins all conversations to one list: what the ledger keeps, and the sessions of all programs.

1. A session of a program and what is kept of it are one conversation, described as the program does, with its
   name in the ledger. If the ledger has several branches of the session, this is the one that changed last.
   The others are conversations of their own; what they cost is part of its cost.
2. The last turn is the conversation's own, not the time at which it was imported or kept.
3. The cost is what the program states, else its sums by list prices. `lacks` says what it does not include.
4. A folder has its own conversations, those of the folders inside it, and those of the folders above it. The
   user's home and the folders above that are left out, because all the user's work is in them.
"""

from collections.abc import Iterable, Sequence
from os.path import dirname

import msgspec

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading import working_tree
from nexus_context.assistants.reading.record_values import seconds
from nexus_context.assistants.sessions.prices import NO_SUM, RequestPrice, price_session
from nexus_context.assistants.sessions.session_types import AssistantSession, Folders, FolderScope, is_within
from nexus_context.assistants.tracking.in_use import NEXUS
from nexus_context.disk import files
from nexus_context.ledger.records import SessionOrigin
from nexus_context.text.visible import visible_line


class LedgerSession(msgspec.Struct, frozen=True):
    """A conversation in the ledger: the folder that it belongs to there, its name, and the id of its
    thread.
    """

    workspace: str
    name: str
    thread: str


class ListedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """One conversation of Nexus or of a program. A field is None if it is not known.

    `id` is the program's own, and `session` what its file says now; both are None for Nexus's own
    conversations. `tokens` are those of the last request of a program; for Nexus's own they are those that
    the next request would send.
    """

    program: str
    title: str | None
    folder: str | None
    last_turn: str  # ISO 8601, UTC
    tokens: int | None
    estimated: bool = False
    cost: RequestPrice = RequestPrice(None, (NO_SUM,))
    id: str | None = None
    parent: str | None = None
    fork_of: str | None = None
    kept: LedgerSession | None = None
    session: AssistantSession | None = None

    @property
    def short_name(self) -> str:
        """The name for people: the id in its program while the program has it, else the id of its thread in
        the ledger.
        """
        return self.session.id if self.session is not None else self.kept.thread if self.kept else ""

    def begins(self, text: str) -> bool:
        """Whether the id of the conversation, or its name or thread in the ledger, begins with a text."""
        names = (self.kept.name, self.kept.thread) if self.kept is not None else ()
        is_id = self.id is not None and id_begins(self.id, text)
        return is_id or any(name.startswith(text) for name in names)


def id_begins(program_id: str, text: str) -> bool:
    """Whether a program's id begins with a text. The id of a session does not count as the beginning of its
    sub-agents' ids (`session/agent`).
    """
    return program_id.startswith(text) and "/" not in program_id[len(text) :]


def of_ledger(
    ledger_session: LedgerSession,
    origin: SessionOrigin | None,
    *,
    last_turn: str,
    tokens: int,
    estimated: bool = False,
    fork_of: str | None = None,
) -> ListedConversation:
    """Make the list's entry of a conversation in the ledger. `origin` names its program, None for Nexus's
    own.
    """
    conversation = ListedConversation(
        program=NEXUS,
        title=ledger_session.name,
        folder=ledger_session.workspace,
        last_turn=last_turn,
        tokens=tokens,
        estimated=estimated,
        fork_of=fork_of,
        kept=ledger_session,
    )
    if origin is None:
        return conversation
    program = PROGRAMS.get(origin.assistant)
    is_agent = program is not None and program.sessions.is_agent(origin.path)
    return msgspec.structs.replace(
        conversation,
        program=origin.assistant,
        id=origin.id,
        title=ledger_session.name.removeprefix(origin.assistant).removeprefix(" agent").removeprefix(": "),
        parent=origin.parent,
        cost=RequestPrice(None) if is_agent else conversation.cost,  # a sub-agent costs its session
    )


def related_folders(folder: str, home: str) -> FolderScope:
    """Return the folders whose conversations belong to a folder (rule 4). `home` is the user's home."""
    homes = {home, files.real_path(home)}
    parents = (parent for parent in working_tree.parents(folder)[1:] if dirname(parent) != parent)
    is_apart = (
        parent
        for parent in parents
        if not any(working_tree.is_within(home_path, parent) for home_path in homes)
    )
    return FolderScope(folder, tuple(is_apart))


def belongs_to(conversation: ListedConversation, folders: Folders) -> bool:
    """Whether its program or the ledger places a conversation in one of the folders."""
    ledger_session = conversation.kept
    return is_within(conversation.folder, folders) or (
        ledger_session is not None and is_within(ledger_session.workspace, folders)
    )


def matches(conversation: ListedConversation, program: str | None, since: float | None) -> bool:
    """Whether a conversation is of a program, and had a turn since a time in seconds since 1970. None stands
    for any.
    """
    if program not in (None, conversation.program):
        return False
    return since is None or seconds(conversation.last_turn) >= since


def program_title(name: str) -> str:
    """Return the name of a program as people write it."""
    return "Nexus" if name == NEXUS else PROGRAMS[name].title if name in PROGRAMS else visible_line(name)


def join_conversations(
    ledger_conversations: Iterable[ListedConversation], sessions: Iterable[AssistantSession]
) -> list[ListedConversation]:
    """Join the ledger's conversations with the programs' sessions. Each is in the list once, the last turn
    first.
    """
    in_ledger: dict[tuple[str, str | None], list[ListedConversation]] = {}
    for conversation in _sorted(ledger_conversations):
        key = conversation.program, conversation.id
        in_ledger.setdefault(key if conversation.id is not None else (NEXUS, None), []).append(conversation)
    joined_conversations: list[ListedConversation] = []
    for session in sessions:
        newest, *branches = in_ledger.pop((session.assistant, session.id), [None])
        joined_conversations.append(_of_session(session, None if newest is None else newest.kept))
        joined_conversations += (
            msgspec.structs.replace(branch, cost=RequestPrice(None)) for branch in branches if branch
        )
    return _sorted(
        [
            *joined_conversations,
            *(conversation for conversations in in_ledger.values() for conversation in conversations),
        ]
    )


def sum_costs(conversations: Sequence[ListedConversation]) -> RequestPrice:
    """Add up the costs of conversations, and list what the sum does not include."""
    costs = [conversation.cost.usd for conversation in conversations if conversation.cost.usd is not None]
    lacks = dict.fromkeys(reason for conversation in conversations for reason in conversation.cost.lacks)
    return RequestPrice(sum(costs) if costs else None, tuple(lacks))


def _of_session(session: AssistantSession, ledger_session: LedgerSession | None) -> ListedConversation:
    return ListedConversation(
        program=session.assistant,
        id=session.id,
        title=session.prompt,
        folder=session.folder,
        last_turn=session.changed,
        tokens=None if session.last is None else session.last.sent,
        cost=price_session(session),
        parent=session.parent,
        fork_of=session.fork_of,
        kept=ledger_session,
        session=session,
    )


def _sorted(conversations: Iterable[ListedConversation]) -> list[ListedConversation]:
    return sorted(conversations, key=lambda conversation: seconds(conversation.last_turn), reverse=True)
