"""The sessions that other assistants have on this machine, read from where they write them.

model        what is known of a session, whoever wrote it
claude_code  ~/.claude/projects/<folder>/<session>.jsonl
codex        ~/.codex/sessions/<year>/<month>/<day>/rollout-*.jsonl
opencode     ~/.local/share/opencode/opencode.db
find         all of them, by folder, from the ends of files

steps        what happens in a session, in words that all assistants share
*_steps      records of one program → steps
appended     the lines that a program appends, for the mirror, too
fold         steps → a report, with window_parts, cache_misses, tool_costs, prices and receipt
follow       one session: what is new, and its report
followers    the sessions that are followed now

Nothing is ever written where another program writes. The formats are undocumented: each module names the
version of the program that showed them.
"""

from nexus_context.assistant_sessions.find import ASSISTANTS, AssistantSessions, find_sessions
from nexus_context.assistant_sessions.model import AssistantSession, Usage

__all__ = ["ASSISTANTS", "AssistantSession", "AssistantSessions", "Usage", "find_sessions"]
