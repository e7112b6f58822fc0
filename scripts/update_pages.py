"""Write docs/protocol.md, the TypeScript types, and what other pages show of commands and profiles.

    PYTHONPATH=tests python scripts/update_pages.py     # part of `make generate`

The examples are recorded again: the client that asks a real daemon is that of the tests.
"""

from pathlib import Path

import assistants_page
import example_outputs
from protocol_docs import examples, page, typescript


def main() -> None:
    recorded = examples.record_in_temporary_home()
    examples.save(recorded)
    write(page.PAGE, page.page(recorded))
    write(typescript.TYPES, typescript.typescript())
    text = assistants_page.PAGE.read_text(encoding="utf-8")
    write(assistants_page.PAGE, assistants_page.page(text))
    example_outputs.main()


def write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
