"""Write the files generated from the models: both JSON Schemas and docs/configuration.md."""

import json
from pathlib import Path
from typing import Any

from nexus_context.config.limits import ENDS, MOST_AGENTS, MOST_PATTERNS, REFUSES
from nexus_context.config.mcp import MOST_SERVERS
from nexus_context.config.mcp_schema import COMMENTS, mcp_schema
from nexus_context.config.patterns import MOST_STEPS, WORD
from nexus_context.config.schema import MAX_NAME, Config
from nexus_context.disk.deadline import LOAD_S
from nexus_context.text.json import parse_pointer

Node = dict[str, Any]

PACKAGE = Path(__file__).resolve().parent
REPOSITORY = PACKAGE.parents[2]


def generated_files() -> dict[Path, str]:
    """Return the text of every generated file by its absolute path."""
    config = json_schema()
    return {
        PACKAGE / "config.schema.json": _json(config),
        PACKAGE / "mcp.schema.json": _json(mcp_schema()),
        REPOSITORY / "docs" / "configuration.md": reference(config),
    }


def json_schema() -> Node:
    """Return the JSON Schema of config.json: draft-07, without references.

    Comments are allowed in every object.
    """
    raw = Config.model_json_schema()
    schema = _plain(raw, raw.get("$defs", {}))
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Nexus settings"}
    return head | {key: value for key, value in schema.items() if key not in head}


def reference(schema: Node) -> str:
    """Return the text of docs/configuration.md, which has a table for each section of the schema."""
    parts = [_INTRODUCTION + _limits()]
    for name, node in schema["properties"].items():
        if name == "$schema":
            continue
        parts.append(f"## {name}\n\n{node['description']}\n\n{_table(node)}")
    return "\n".join(parts)


def _limits() -> str:
    ends = {pointer: (max_items, "the rest does not count") for pointer, max_items in ENDS.items()}
    refuses = {pointer: (max_items, "everything is refused") for pointer, max_items in REFUSES.items()}
    rows = [
        f"| `{'.'.join(str(step) for step in parse_pointer(pointer))}` | {max_items:,} | {consequence} |"
        for pointer, (max_items, consequence) in (ends | refuses).items()
    ]
    return _LIMITS.format(
        name=MAX_NAME,
        limits="\n".join(rows),
        agents=MOST_AGENTS,
        patterns=MOST_PATTERNS,
        servers=MOST_SERVERS,
        word=WORD,
        steps=MOST_STEPS,
        seconds=LOAD_S,
    )


def _plain(node: Node, definitions: Node) -> Node:
    if "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[1]]
        node = target | {key: value for key, value in node.items() if key != "$ref"}
    if "anyOf" in node:
        node = _nullable(node)
    plain: Node = {}
    for key, value in node.items():
        if key in {"title", "$defs"} or (key == "default" and value is None):
            continue
        if key == "properties":
            plain[key] = {name: _plain(child, definitions) for name, child in value.items()}
        elif key in {"items", "additionalProperties"} and isinstance(value, dict):
            plain[key] = _plain(value, definitions)
        else:
            plain[key] = value
    if plain.get("type") == "object":
        plain["patternProperties"] = COMMENTS
    if set(plain.get("properties", ())) >= {"content", "file"}:
        plain["oneOf"] = [
            {"required": [name], "properties": {name: {"type": "string"}}} for name in ("content", "file")
        ]
    return plain


def _nullable(node: Node) -> Node:
    """`anyOf` of a schema and null, as one schema whose type may be null."""
    some, null = node["anyOf"]
    if null != {"type": "null"} or "type" not in some:
        raise ValueError(f"not in the checker's subset of JSON Schema: {node}")
    merged: Node = some | {key: value for key, value in node.items() if key != "anyOf"}
    merged["type"] = [some["type"], "null"]
    if "enum" in some:
        merged["enum"] = [*some["enum"], None]
    return merged


def _json(schema: Node) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _table(section: Node) -> str:
    rows = ["|Key|Type|Default|Meaning|", "|---|---|---|---|"]
    named = isinstance(section.get("additionalProperties"), dict)
    node, prefix = (section["additionalProperties"], "<name>.") if named else (section, "")
    rows += _rows(node, prefix)
    return "\n".join(rows) + "\n"


def _rows(node: Node, prefix: str) -> list[str]:
    rows = []
    for key, child in node["properties"].items():
        if "properties" in child:
            rows += _rows(child, f"{prefix}{key}.")
            continue
        default = json.dumps(child["default"], ensure_ascii=False) if "default" in child else ""
        default_text = (
            f"`{default}`" if default else "required" if key in node.get("required", ()) else "not set"
        )
        rows.append(f"|`{prefix}{key}`|{_kind(child)}|{default_text}|{child['description']}|")
        if "properties" in child.get("items", {}):
            rows += _rows(child["items"], f"{prefix}{key}[].")
    return rows


def _kind(node: Node) -> str:
    if "enum" in node:
        return ", ".join(f"`{choice}`" for choice in node["enum"] if choice is not None)
    types = node["type"] if isinstance(node["type"], list) else [node["type"]]
    name: str = next(name for name in types if name != "null")
    words: dict[str, str] = {
        "string": "text",
        "integer": "whole number",
        "boolean": "true or false",
    }
    if name == "array" and "enum" in node["items"]:
        return f"list of {_kind(node['items'])}"
    if name == "array":
        return "list of objects" if "properties" in node["items"] else "list of texts"
    if name == "object":
        return "object of texts"
    return words.get(name, name) + _bounds(node)


def _bounds(node: Node) -> str:
    if "minimum" not in node:
        return ""
    low, high = float(node["minimum"]), float(node["maximum"])
    return f", {low:g}–{high:g}" if high < 100_000 else f", from {low:g}"


def main() -> None:
    """Write every generated file that differs."""
    for path, text in generated_files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


_INTRODUCTION = """\
# Settings

<!-- Generated by `python -m nexus_context.config.generate` from config/schema.py: do not edit. -->

Which settings are there, and which file counts? Type first:

    nexus init                          # .nexus3/ with commented templates; --global for all folders
    nexus explain context.max_tokens    # the value in force, and every file that sets it
    nexus check                         # what is wrong in them, with file, line and fix

Settings are plain JSON in `config.json`, all optional. Last verified: `make fresh` holds this page to the
schema, and `tests/scenarios/test_settings.py` shows the effect of each setting in each `make test`. Later
files override earlier ones:

1. `~/.nexus3/config.json`, the global file (`NEXUS_HOME` names another directory);
2. `.nexus3/config.json` of up to `context.ancestor_depth` directories above the folder, the farthest first;
3. `.nexus3/config.json` of the folder itself.

Objects merge key by key. Lists are joined without duplicates; a default list counts only if no file sets
one. Of single values the later one wins; `null` resets one. Keys that start with `_comment` mean nothing.

A file inside a workspace comes with the code that you opened, and may only tighten. Ignored there, with a
warning:

- `provider.base_url`, `provider.headers`, `provider.api_key_env`, everything in `ledger`
- a wider `permissions.level` (`yolo` > `trusted` > `sandboxed` > `worker`), a `permissions.allow` that allows
  more, agents' too; `deny` always counts
- `views.conversations` other than `false`, if the global file says `false`
- of an agent that the global file names: more `permissions` or `tools`, another `role` than `worker`, another
  `parent`

`context.ancestor_depth` is ignored in files above the folder. `nexus show --for nexus --layers` and code
lenses name known instruction files that are not read, the nearest 50, with the reason.
"""

_LIMITS = """
## Which model counts

1. what a request specifies: `model` and `maxContextTokens` of its options, `--model` of a command;
2. if `provider.name` is not `editor`: `provider.model`;
3. the model that the user picked for the conversation;
4. the model that was picked last in the folder; a fork starts with that of its origin;
5. `provider.model`: with `editor`, that is the model until one is picked;
6. none: the window is taken as 128,000 tokens, and marked as a guess.

`context.max_tokens` narrows the window in all cases but the first. `nexus/config/effective` shows a picked
model as the layer `picked`; the ledger stores it for all windows. `nexus show --for nexus` uses rule 4,
`nexus check` the files alone.

## Limits

A name or pattern has at most {name} characters. The first item past a maximum, counted over all layers, is
reported as `config.too-many`:

| List | Maximum | Past the limit |
|---|---|---|
{limits}

The first {agents:,} agents count; those after them, and any with more than {patterns:,} items in `tools`,
`permissions.allow` or `permissions.deny`, may do nothing. Of an MCP file the first {servers:,} servers count.
Matching costs one step for each character of a name and each {word} characters of the list. Two lists are
compared for at most {steps:,} steps; what has not been compared by then is not allowed.

A load in the daemon may take {seconds:g} s, then the folder keeps what was read before, and `layer.overdue`
names the file that it had reached.

"""


if __name__ == "__main__":
    main()
