"""Build what is too long to be committed: every exchange of docs/protocol.md in full, as JSON and as a page.

    PYTHONPATH=tests python scripts/build_docs.py     # `make docs`

A daemon is asked again only if a source has changed since the last build. Tests of the VS Code extension read
the JSON; those in Python build it themselves where it is missing.
"""

from protocol_docs import examples
from protocol_docs.exchange import exchanges_page


def main() -> None:
    text = exchanges_page(examples.load())
    examples.BUILT.with_suffix(".md").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
