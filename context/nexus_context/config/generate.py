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
    """Every generated file by its absolute path."""
    config = json_schema()
    return {
        PACKAGE / "config.schema.json": _json(config),
        PACKAGE / "mcp.schema.json": _json(mcp_schema()),
        REPOSITORY / "docs" / "configuration.md": reference(config),
    }


def json_schema() -> Node:
    """The JSON Schema of config.json: draft-07, without references, comments allowed in every object."""
    raw = Config.model_json_schema()
    schema = _plain(raw, raw.get("$defs", {}))
    head = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Nexus settings"}
    return head | {key: value for key, value in schema.items() if key not in head}


def reference(schema: Node) -> str:
    """docs/configuration.md: one table a section of the schema."""
    parts = [_INTRODUCTION + _limits()]
    for name, node in schema["properties"].items():
        if name == "$schema":
            continue
        parts.append(f"## {name}\n\n{node['description']}\n\n{_table(node)}")
    return "\n".join(parts)


def _limits() -> str:
    ends = {place: (most, "the rest does not count") for place, most in ENDS.items()}
    refuses = {place: (most, "everything is refused") for place, most in REFUSES.items()}
    rows = [
        f"| `{'.'.join(str(step) for step in parse_pointer(place))}` | {most:,} | {consequence} |"
        for place, (most, consequence) in (ends | refuses).items()
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
    rows = ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
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
        rows.append(f"| `{prefix}{key}` | {_kind(child)} | {default_text} | {child['description']} |")
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

Settings are plain JSON in `config.json`. All of them are optional. The files of all layers are merged; later
ones override earlier ones:

1. `~/.nexus3/config.json`, the global file (`NEXUS_HOME` names another directory);
2. `.nexus3/config.json` of up to `context.ancestor_depth` directories above the folder, the farthest first;
3. `.nexus3/config.json` of the folder itself.

How values of two files combine:

- Objects merge key by key.
- Lists are joined, in order and without duplicates. A default list counts only if no file sets one.
- Of single values the later one wins. `null` resets a setting without a default to "not set".
- Keys that start with `_comment` are allowed in every object and mean nothing.

A file inside a workspace may only tighten the settings, because it comes with the code that you opened. These
settings are ignored there, with a warning that names the global file:

- `provider.base_url`, `provider.headers` and `provider.api_key_env`
- everything in `ledger`
- a `permissions.level` wider than the global one (`yolo` > `trusted` > `sandboxed` > `worker`), agents' too
- a `permissions.allow` that allows more than the list of the global file, agents' too; `deny` always counts
- `views.conversations` other than `false`, if the global file says `false`
- of an agent that the global file names: more in `permissions` or `tools` than it has there, another `role`
  than `worker`, another `parent` than it has there

`context.ancestor_depth` must be known before directories above are read, so it is ignored in their files.

`nexus show --for nexus --layers`, `nexus/context/layers` and code lenses name the known instruction files
between the folder and the root of its repository that are not read (of Copilot, Cursor, Gemini and others,
too), with the reason and what would change that: the nearest 50. In an instruction file below the folder, a
code lens says who reads it: an agent that works there, or a window of that directory.
"""

_LIMITS = """
## Which model counts

Usage, layers, problems, code lenses and the prompt are for one model and one window. The first of these
counts:

1. what a request specifies: `model` and `maxContextTokens` of its options, `--model` of a command;
2. if `provider.name` is not `editor`: `provider.model`, whatever is picked in an editor;
3. the model that the user picked for the conversation, by a turn in the chat or with *Pick Model*;
4. the model that was picked last in the folder: a new conversation starts with it, and the folder's files are
   counted for it until an editor reports which conversation is in focus. A fork starts with the model of the
   conversation that it continues;
5. `provider.model`: with `editor`, that is the model until one is picked, and what *Model of the settings*
   goes back to;
6. none: the window is taken as 128,000 tokens, and marked as a guess.

`context.max_tokens` narrows the window in all cases but the first. `nexus/config/effective` shows a picked
model as the layer `picked`. The ledger stores it, with the tools that the chat offers, for all windows. A
model that the editor no longer offers counts until another is picked. `nexus show --for nexus` uses the
model of rule 4, and names it; `nexus check` uses the files alone, so that its result is the same on every
machine.

## Limits

The cost of a folder is limited, whatever its files contain. A name or a pattern has at most {name}
characters. The lists below have a maximum length, counted over all layers; the first item past it is
reported as `config.too-many`:

| List | Maximum | Past the limit |
|---|---|---|
{limits}

The first {agents:,} agents count. Those after them may do nothing, and neither may an agent with more than
{patterns:,} items in `tools`, `permissions.allow` or `permissions.deny`. Of an MCP file the first
{servers:,} servers count.

Patterns are compared as a whole list, one step for each character of a name and each {word} characters of the
list. Two lists are compared with each other (what a workspace allows with what the global file allows, an
agent's tools with its parent's) for at most {steps:,} steps. Whatever has not been compared by then
counts as not allowed. The tools of an agent are also matched one by one when they are offered.

The cost of a load grows linearly with the length of the files: 0.1 s for a MiB of instructions or ordinary
settings, 1 s for a MiB of nothing but servers, agents or mistakes, less than 0.2 s for any file of up to
64 KiB (measured on one core of a server of 2 cores).

A load in the daemon may take {seconds:g} s. After that it is stopped: the folder keeps what was read before,
and the error `layer.overdue` names the file that the load had reached. A change of a file loads it again.
Folders do not wait for each other: at most one thread loads each folder, and long loads take turns.
"""


if __name__ == "__main__":
    main()
