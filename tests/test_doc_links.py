"""Every link of a page within the repository leads to a file, and to a heading of it where it names one."""

import os
from pathlib import Path
from urllib.parse import unquote

import pytest
from inline_snapshot import snapshot

from support import doc_pages

PAGES = [path.relative_to(doc_pages.ROOT).as_posix() for path in doc_pages.pages()]
PAGE = """# First steps & *more*

## `nexus/a/b`: what it does

See [a](b.md#c "title"), [other][ref], ![picture](media/a.png) and <img src="x.svg">; `[no](link)` is code.

    [indented](is.md) counts: a list may hold it

```text
# not a heading [nor](a-link.md)
```

## First steps & *more*

[ref]: docs/x.md
"""


def broken_links(page: Path, root: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    broken = []
    for target in doc_pages.links(page.read_text(encoding="utf-8")):
        path, _, anchor = target.partition("#")
        if ":" in path:  # another site
            continue
        file = Path(os.path.normpath(page.parent / unquote(path))) if path else page
        if (
            not file.exists()
            or not file.is_relative_to(root)
            or (anchor and anchor not in doc_pages.anchors(file.read_text(encoding="utf-8")))
        ):
            broken.append(target)
    return broken


def test_links_and_anchors_of_a_page() -> None:
    assert doc_pages.links(PAGE) == snapshot(["b.md#c", "media/a.png", "is.md", "docs/x.md", "x.svg"])
    assert sorted(doc_pages.anchors(PAGE)) == snapshot(
        ["first-steps--more", "first-steps--more-1", "nexusab-what-it-does"]
    )


def test_a_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "a.md"
    page.parent.mkdir()
    page.write_text("# A b\n[1](#a-b) [2](#a-c) [3](../x.md) [4](https://a.b/c#d) [5](..) [6](../../x)\n")
    assert broken_links(page, tmp_path) == ["#a-c", "../x.md", "../../x"]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_leads_somewhere(page: str) -> None:
    assert broken_links(doc_pages.ROOT / page, doc_pages.ROOT) == []
