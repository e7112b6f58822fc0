"""Write docs/protocol.md, the TypeScript types and the generated parts of docs/assistants.md.

    PYTHONPATH=tests python scripts/update_pages.py     # part of `make generate`

The examples are recorded again: the client that asks a real daemon is that of the tests.
"""

import shutil
import tempfile
from pathlib import Path

import assistants_page
from protocol_docs import examples, page, typescript


def main() -> None:
    recorded = record()
    examples.save(recorded)
    write(page.PAGE, page.page(recorded))
    write(typescript.TYPES, typescript.typescript())
    text = assistants_page.PAGE.read_text(encoding="utf-8")
    write(assistants_page.PAGE, assistants_page.page(text))


def record() -> examples.Examples:
    """What a daemon answers now."""
    # as long as the home that it is renamed to, and as many tokens: the figures of the examples are true
    home = Path(tempfile.gettempdir()) / "anas"
    try:
        return examples.record(home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
