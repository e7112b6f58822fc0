"""Build completion items: keys and values of a settings file, paths of imports, fields of front matter.

1. An item replaces what is written at the cursor, quotes included. A key is inserted with a colon unless one
   follows, and with a comma if another key follows.
2. If a key has only one kind of value, clients that take snippets get a snippet of that value.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from nexus_context.assistants.views.setting_keys import SettingKey
from nexus_context.errors import Span
from nexus_context.text.json.cursor import CursorPlace
from nexus_daemon.features.answer_text import as_json, code, escaped, plain
from nexus_daemon.features.open_document import OpenDocument

MOST_ITEMS = 1_000
KINDS = {"module": 9, "property": 10, "value": 12, "file": 17, "folder": 19, "variable": 6}
"""`CompletionItemKind` of LSP."""
_EMPTY = {"string": '"$0"', "array": "[$0]", "object": "{$0}"}
"""The snippet of a value by its type."""
_SNIPPET = re.compile(r"[\\$}]")
_BARE = re.compile(r"[\w-]+")
_MEMBER = re.compile(r'\s*["{\[\w-]')


class Suggestion(NamedTuple):
    """A completion: the text that the editor shows (`label`) and the text that it inserts (`new_text`).

    If `new_text` is empty, `label` is inserted. `detail` is shown beside the label, `text` below it, in
    Markdown.
    """

    label: str
    new_text: str = ""
    kind: str = "value"
    detail: str = ""
    text: str = ""


class ClientForm(NamedTuple):
    """What a client can show: snippets in items, Markdown as documentation, and our virtual documents."""

    has_snippets: bool = False
    has_markdown: bool = False
    has_contexts: bool = False


def key_items(
    document: OpenDocument, cursor: CursorPlace, keys: Iterable[SettingKey], *, form: ClientForm
) -> list[dict[str, Any]]:
    """Return the items of the keys that the object at the cursor does not have yet."""
    missing_keys = [key for key in keys if key.name not in cursor.names]
    unique = {key.name: key for key in reversed(missing_keys)}  # of several with a name the first
    suggestions = [
        Suggestion(
            key.name, _key_text(document, cursor, key), "property", detail=key.kind, text=key_text(key)
        )
        for key in reversed(unique.values())
    ]
    return [_item(document, cursor.written, suggestion, form=form) for suggestion in suggestions]


def value_items(
    document: OpenDocument, span: Span, suggestions: Iterable[Suggestion], *, form: ClientForm
) -> list[dict[str, Any]]:
    """Return the items of texts that replace a span, in the given order, at most MOST_ITEMS."""
    return [
        {**_item(document, span, suggestion, form=form), "sortText": f"{number:04}"}
        for number, suggestion in zip(range(MOST_ITEMS), suggestions, strict=False)
    ]


def _item(document: OpenDocument, span: Span, suggestion: Suggestion, *, form: ClientForm) -> dict[str, Any]:
    """One item; the text of a property is a snippet, of which a client may take the text alone."""
    is_property = suggestion.kind == "property"
    is_snippet = is_property and form.has_snippets
    new_text = suggestion.new_text or suggestion.label
    if is_property and not is_snippet:
        new_text = _without_stops(new_text)
    item: dict[str, Any] = {
        "label": suggestion.label,
        "kind": KINDS[suggestion.kind],
        "filterText": f'"{suggestion.label}"'
        if document.text[span.start : span.start + 1] == '"'
        else suggestion.label,
        "textEdit": {"range": document.locate.range(document.path, span), "newText": new_text},
    }
    if is_snippet:
        item["insertTextFormat"] = 2
    if suggestion.detail:
        item["detail"] = suggestion.detail
    if suggestion.text:
        kind = "markdown" if form.has_markdown else "plaintext"
        text = suggestion.text if form.has_markdown else plain(suggestion.text)
        item["documentation"] = {"kind": kind, "value": text}
    return item


def key_text(key: SettingKey) -> str:
    """Describe a key in Markdown."""
    blocks = [escaped(key.text)] if key.text else []
    if key.default is not None:
        blocks.append(f"Default: {code(as_json(key.default))}")
    return "\n\n".join(blocks)


def _key_text(document: OpenDocument, cursor: CursorPlace, key: SettingKey) -> str:
    """The snippet of a key and its value."""
    is_toml = document.kind == "toml"
    name = key.name if is_toml and _BARE.fullmatch(key.name) else as_json(key.name)
    name = _SNIPPET.sub(lambda match: f"\\{match[0]}", name)
    if cursor.has_colon:
        return name
    kinds = key.schema.get("type")
    if isinstance(key.default, bool):
        value = f"${{1:{as_json(not key.default)}}}$0"
    else:
        value = _EMPTY.get(kinds, "$0") if isinstance(kinds, str) else "$0"
    if is_toml:
        return f"{name} = {value}"
    return f"{name}: {value}{',' if _MEMBER.match(document.text, cursor.written.end) else ''}"


def _without_stops(snippet: str) -> str:
    return re.sub(r"\\([\\$}])", r"\1", re.sub(r"\$\{1:([^}]*)\}|(?<!\\)\$0", r"\1", snippet))
