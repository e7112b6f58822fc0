"""Answer the `nexus/*` requests: find the folder, wait for its snapshot, do the work in a thread.

1. Each method group has a module of its name: `nexus/session/append` is `session.append`.
2. A handler takes the session's lock before its first wait, so requests about a session are answered in the
   order of their arrival. The lock is released when the worker thread has finished (`Workers.run`), even if
   the request was cancelled.
3. A handler syncs the session before using it (`sessions.sync`), so it sees what other windows wrote.
"""

from typing import TYPE_CHECKING

from nexus_daemon.process.lazy import submodules

if TYPE_CHECKING:
    from nexus_daemon.api import agent as agent
    from nexus_daemon.api import assistant as assistant
    from nexus_daemon.api import assistant_session as assistant_session
    from nexus_daemon.api import chat as chat
    from nexus_daemon.api import config as config
    from nexus_daemon.api import context as context
    from nexus_daemon.api import conversation as conversation
    from nexus_daemon.api import debug as debug
    from nexus_daemon.api import documents as documents
    from nexus_daemon.api import editor_answers as editor_answers
    from nexus_daemon.api import event as event
    from nexus_daemon.api import explain as explain
    from nexus_daemon.api import knowledge as knowledge
    from nexus_daemon.api import lenses as lenses
    from nexus_daemon.api import mcp as mcp
    from nexus_daemon.api import memory as memory
    from nexus_daemon.api import model as model
    from nexus_daemon.api import server_answers as server_answers
    from nexus_daemon.api import session as session
    from nexus_daemon.api import skill as skill
    from nexus_daemon.api import status as status
    from nexus_daemon.api import stored_sessions as stored_sessions
    from nexus_daemon.api import tokens as tokens
    from nexus_daemon.api import view as view
    from nexus_daemon.api import workspace as workspace
else:  # 100 ms that the reply to `initialize` must not wait for
    __getattr__ = submodules(
        __name__,
        *(
            "agent",
            "assistant",
            "assistant_session",
            "chat",
            "config",
            "context",
            "conversation",
            "debug",
            "documents",
            "editor_answers",
            "event",
            "explain",
            "knowledge",
            "lenses",
            "mcp",
            "memory",
            "model",
            "server_answers",
            "session",
            "skill",
            "status",
            "stored_sessions",
            "tokens",
            "view",
            "workspace",
        ),
    )
