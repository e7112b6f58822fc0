"""The sessions that other assistants have on this machine, read from where they write them.

model        what is known of a session, whoever wrote it
claude_code  ~/.claude/projects/<folder>/<session>.jsonl
codex        ~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl
opencode     ~/.local/share/opencode/opencode.db
gemini       ~/.gemini/tmp/<project>/chats/session-*.jsonl

steps        what happens in a session, in words that all assistants share
*_steps      records of one program → steps
appended     the lines that a program appends, for the mirror, too
fold         steps → a report, with window_parts, cache_misses, tool_costs, prices and receipt
followed     a session as it grows, with claude_code_agents and opencode_database
*_format     records of one program → messages (`record_format`), and where reading can resume
programs     what each program takes: a new one is added there
find         all sessions, by folder, from the ends of files
follow       one session: what is new, and its report
followers    the sessions that are followed now

Nothing is ever written where another program writes. The formats are undocumented: each module names the
version of the program that showed them.
"""

from nexus_context.assistants.sessions.model import AssistantSession, Usage
from nexus_context.assistants.tracking.find import AssistantSessions, find_sessions
from nexus_context.assistants.tracking.programs import PROGRAMS

__all__ = ["PROGRAMS", "AssistantSession", "AssistantSessions", "Usage", "find_sessions"]
