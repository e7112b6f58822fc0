"""One opening in a process of its own: `python -m benchmarks.ledger.worker PATH SESSION [TOKENS]`.

Prints nanoseconds as JSON: to import, to open the ledger, to read the history, the same again, and how
many messages that were. With TOKENS only the window is read.
"""

import json
import sys
import time

WORKSPACE = "/benchmark"


def main() -> None:
    """Imports, opens, reads twice."""
    path, session, *tokens = sys.argv[1:]
    limit = int(tokens[0]) if tokens else None
    started = time.perf_counter_ns()
    import nexus_context.ledger.opening  # noqa: F401 - what opening would import
    from nexus_context.ledger import open_ledger

    imported = time.perf_counter_ns()
    ledger = open_ledger(path, environ={})
    opened = time.perf_counter_ns()
    history = ledger.history(WORKSPACE, session, tokens=limit)
    read = time.perf_counter_ns()
    ledger.history(WORKSPACE, session, tokens=limit)
    again = time.perf_counter_ns()
    assert history is not None
    ledger.close()
    print(
        json.dumps(
            {
                "imported": imported - started,
                "opened": opened - imported,
                "read": read - opened,
                "again": again - read,
                "messages": len(history.messages),
            }
        )
    )


if __name__ == "__main__":
    main()
