-- The system prompt and the tools that a session's requests begin with after a turn, where that changed: the newest
-- row of a thread and of those it was forked from is in force.

CREATE TABLE IF NOT EXISTS frozen (
    turn INTEGER PRIMARY KEY,                   -- id
    state TEXT                                  -- JSON; none: the next request renders both anew
) STRICT;
