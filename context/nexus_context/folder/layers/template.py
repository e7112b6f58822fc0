"""Recognizes the template of NEXUS.md that `nexus init` writes.

An untouched template is sent to no model, and its comments are not reported. It may follow an import of the
instructions that the folder has.
"""

import functools
import os
import re

from nexus_context.disk.files import PROMPT_LIMIT, read_text
from nexus_context.errors import Span

TEMPLATES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "defaults", "templates")


def filled_part(text: str) -> Span | None:
    """Return the part of an instruction file before the untouched template.

    None if it does not end with that.
    """
    end = text.rstrip()
    for template in (_template(), _template().replace("\n", "\r\n")):
        if end.endswith(template):
            return Span(0, len(end) - len(template))
    return None


def is_template_comment(comment: str) -> bool:
    """Whether an HTML comment is one of the template's."""
    return comment in re.findall("<!--.*?-->", _template())


@functools.cache
def _template() -> str:
    text = read_text(os.path.join(TEMPLATES, "NEXUS.md"), limit=PROMPT_LIMIT).text
    return (text or "\0").rstrip()
