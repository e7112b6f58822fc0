"""One opening in a new process: `python -m benchmarks.ledger.worker PATH SESSION MESSAGES.json [TOKENS]`.

Prints milliseconds of the processor as JSON: to import, to open the ledger, to read the history, the same
again, and to decode the same messages from JSON. With TOKENS only the window is read.
"""

import itertools
import json
import sys
import time
from pathlib import Path

WORKSPACE = "/benchmark"


def main(path: str, session: str, plain: str, *tokens: str) -> None:
    """Imports, opens, reads twice, decodes."""
    limit = int(tokens[0]) if tokens else None
    clock = [time.process_time()]
    import nexus_context.ledger.opening  # noqa: F401 - what opening would import
    from nexus_context.ledger import open_ledger

    clock.append(time.process_time())
    ledger = open_ledger(path, environ={})
    for _ in range(2):
        clock.append(time.process_time())
        history = ledger.history(WORKSPACE, session, tokens=limit)
    clock.append(time.process_time())
    decoded = json.loads(Path(plain).read_bytes())
    clock.append(time.process_time())
    assert history is not None
    assert len(decoded) == len(history.messages)
    ledger.close()
    names = ("imported", "opened", "read", "again", "decoded")
    elapsed = (1e3 * (end - start) for start, end in itertools.pairwise(clock))
    print(json.dumps(dict(zip(names, elapsed, strict=True))))


if __name__ == "__main__":
    main(*sys.argv[1:])
