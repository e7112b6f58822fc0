"""What Gemini CLI and opencode say of the keys of their settings: `python -m tests.assistants.setting_docs`.

Both are installed from npm at the versions of the profiles, and what they say is written into the part
`program` of `settings.docs.json` in their rooms. Nothing of them is run.

1. Gemini CLI (Apache-2.0) brings its documentation as Markdown.
2. opencode (MIT) has the source text of its schema in its binary: `Config=D.Struct({name:D.optional(…)
   .annotate({description:"…"}),…})`, where names stand for other schemas.
3. Only keys of our schema are taken. A text is cut after a sentence, at about 200 characters. A default that
   stands in it in brackets is taken out of it.

The parts `own` of the files are written by hand, and count more. They hold all texts of Codex, which brings
none, and of Claude Code, whose own ones are not openly licensed.
"""

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "context")]

from assistants import programs  # noqa: E402 - from the tests' directory
from nexus_context.assistants.programs import PROGRAMS  # noqa: E402

Keys = tuple[str, ...]
ROOMS = TESTS.parent / "context/nexus_context/assistants"
LONGEST_TEXT = 200
LONGEST_DEFAULT = 100
_DEFAULT = re.compile(
    r" \(default:? ([^(),\s]+)\)"
    r"| Defaults to `?(\d+|true|false)`?\.(?= |$)"
    r"|\bDefault(?:s to| is) (\d+|true|false)\b"
)


class Source(NamedTuple):
    """A program that describes its settings: the file below `node_modules` that does so, and its reader."""

    path: str
    rights: str
    read: Callable[[bytes], Mapping[Keys, str]]


def main() -> int:
    """Write what the programs say, and how many keys have a text."""
    for name, source in SOURCES.items():
        program = programs.PROGRAMS[name]
        modules = programs.install(program).parents[1]
        texts = source.read((modules / source.path).read_bytes())
        keys = list(schema_keys(PROGRAMS[name].settings_schema))
        target = ROOMS / name / "settings.docs.json"
        file = json.loads(target.read_bytes())
        entries = {
            "/" + "/".join(path): entry(text)
            for path, text in texts.items()
            if any(describes(path, key) for key in keys)
        }
        origin = f"{program.package} {program.version} ({source.rights})"
        _write(
            target,
            {
                "source": f"`program`: {origin}, shortened; `own`: Nexus",
                "own": file["own"],
                "program": without_repetitions(entries),
            },
        )
        sys.stdout.write(f"{name}: {len(entries)} texts of {origin}\n")
    return 0


def schema_keys(schema: Mapping[str, Any], path: Keys = ()) -> Iterator[Keys]:
    """The path of each key of a schema; `*` stands for a name or an index that the user chooses."""
    below = [((*path, name), node) for name, node in schema.get("properties", {}).items()]
    below += [((*path, "*"), schema.get(word)) for word in ("additionalProperties", "items")]
    below += [(("mcp", "*"), node) for node in schema.get("x-servers", {}).values()]
    for keys, node in below:
        if isinstance(node, dict):
            if keys[-1] != "*":
                yield keys
            yield from schema_keys(node, keys)


def describes(path: Keys, key: Keys) -> bool:
    """Whether a path of a text is one of a key."""
    return len(path) == len(key) and all(
        ours == theirs or "*" in (ours, theirs) for ours, theirs in zip(path, key, strict=True)
    )


def entry(text: str) -> dict[str, Any]:
    """A text as it is packaged, with the default that it names."""
    text, _, default = text.partition("\0")
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()).replace("**", ""))
    text = re.sub(r"^@deprecated\s*", "Deprecated. ", text)
    text = re.sub(r"(?<=\w):(?=')", ": ", text)
    text = re.sub(r" For more information, see [^.]*\.", "", text)
    named = None if default else _DEFAULT.search(text)
    if named is not None:
        default = next(filter(None, named.groups()))
        text = text.replace(named[0], "", 1) if named[0][0] in " (" else text
        default = default if _value(default) is not None else json.dumps(default)
    value = _value(default)
    has_default = value is not None and len(default) <= LONGEST_DEFAULT
    return {"text": _shorten(text), **({"default": value} if has_default else {})}


def without_repetitions(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries without those that the entry for any name says, too."""
    anywhere = {path: re.sub(r"^(/\w+/)\w+", r"\1*", path) for path in entries}
    return {
        path: value
        for path, value in entries.items()
        if anywhere[path] == path or entries.get(anywhere[path]) != value
    }


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _shorten(text: str) -> str:
    """Whole sentences, the first one in any case."""
    first, *others = re.split(r"(?<=[.!?]) +(?=[A-Z'\"`(])", text.strip())
    for sentence in others:
        if len(first) + len(sentence) >= LONGEST_TEXT:
            break
        first += f" {sentence}"
    return first if first.endswith((".", "!", "?")) else f"{first}."


def _write(target: Path, file: Mapping[str, Any]) -> None:
    """A file with a line for each key."""
    parts = []
    for name, value in file.items():
        text = json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict):
            lines = (
                f"    {json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}"
                for key, each in value.items()
            )
            text = "{\n" + ",\n".join(lines) + "\n  }" if value else "{}"
        parts.append(f"  {json.dumps(name)}: {text}")
    target.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


# ---------------------------------------------------------------- Gemini CLI


_SECTION = re.compile(r"^#### `(\w+)`$")
_KEY = re.compile(r"^( *)- \**`([\w.<>]+)`\** \([^)]*\):(.*)")
_FIELD = re.compile(r"^ +- \*\*(\w[\w ]*):\*\*(.*)")


def read_markdown(data: bytes) -> dict[Keys, str]:
    """The settings in docs/reference/configuration.md of Gemini CLI; a default follows its text and a NUL."""
    text = data.decode().partition("### Available settings")[2].partition("\n### ")[0]
    text = re.sub(r"(\*\*`[\w.]+`\*\*)\n +\(", r"\1 (", text)  # a long name stands alone in its line
    texts: dict[Keys, dict[str, str]] = {}
    section: Keys = ()
    parent: Keys = ()
    keys, field = section, ""
    for line in text.splitlines():
        if match := _SECTION.match(line):
            section = parent = keys = (match[1],)
            field = "Description"
            texts[keys] = {field: ""}
        elif match := _KEY.match(line):
            indent, name, rest = match.groups()
            steps = tuple("*" if step[0] == "<" else step for step in name.split("."))
            keys, field = (*parent, *steps) if indent else steps, "Description"
            parent = parent if indent else keys
            texts[keys] = {field: rest}
        elif match := _FIELD.match(line):
            field = match[1]
            texts.setdefault(keys, {})[field] = match[2]
        elif keys and not line.startswith(("> ", "- ")) and not line.lstrip().startswith("<!--"):
            fields = texts.setdefault(keys, {})
            fields[field] = f"{fields.get(field, '')} {line.strip()}"
    return {
        keys: f"{fields['Description']}\0{fields.get('Default', '').replace('```json', '').strip(' `')}"
        for keys, fields in texts.items()
        if fields.get("Description", "").strip()
    }


# ---------------------------------------------------------------- opencode


_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*")|(\([\w$]+\)=>[\w$]+)|(?<=[{,])([\w$]+)(?=:)|(!0|!1)|(\$)')
_DEFINITION = re.compile(r"[,\s]([\w$]+)=(?=[\w$]+\.)")
_SPACE = re.compile(r"\b[\w$]+\(([\w$]+),\{((?:[\w$]+:\(\)=>[\w$]+,?)+)\}\)")
SCHEMA_SIZE = 60_000
"""Bytes of source text before the name of the schema in which the schemas that it uses stand."""


def read_binary(data: bytes) -> dict[Keys, str]:
    """The settings in the schema `Config` of opencode's binary."""
    end = data.index(b'identifier:"Config"')
    source = data[max(end - SCHEMA_SIZE, 0) : data.index(b"\n", end)].decode(errors="replace")
    begin = source.rindex("D.Struct({$schema:")
    schemas = {
        _escaped(match[1]): node
        for match in _DEFINITION.finditer(source)
        if (node := _expression(source[match.end() :])) is not None
    }
    for space, members in _SPACE.findall(source):
        for member, name in re.findall(r"([\w$]+):\(\)=>([\w$]+)", members):
            if _escaped(name) in schemas:
                schemas[_escaped(f"{space}.{member}")] = schemas[_escaped(name)]
    config = _expression(source[begin:])
    return {} if config is None else dict(_described(config, (), schemas))


def _expression(text: str) -> ast.expr | None:
    """The JavaScript expression at the beginning of a text, as Python reads it; None if it cannot."""
    depth = end = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[\[({]|[\])}]|[,;]', text):
        depth += (match[0] in "[({") - (match[0] in "])}")
        if depth < 0 or (depth == 0 and match[0] in ",;"):
            end = match.start()
            break
    try:
        return ast.parse(_TOKEN.sub(_as_python, text[:end]), mode="eval").body
    except SyntaxError:
        return None


def _as_python(token: re.Match[str]) -> str:
    text, function, name, truth, _ = token.groups()
    if text or function:
        return text or "None"
    return f'"{name}"' if name else {"!0": "True", "!1": "False"}.get(truth, _DOLLAR)


_DOLLAR = "_S_"


def _escaped(name: str) -> str:
    return name.replace("$", _DOLLAR)


def _described(node: ast.expr, path: Keys, schemas: Mapping[str, ast.expr]) -> Iterator[tuple[Keys, str]]:
    """The keys below a schema that have a description."""
    match node:
        case ast.Call(ast.Attribute(attr="Struct"), [ast.Dict(names, values)]):
            for name, value in zip(names, values, strict=True):
                keys = (*path, ast.literal_eval(name)) if name else path
                if text := _description(value):
                    yield keys, text
                yield from _described(value, keys, schemas)
        case ast.Call(ast.Attribute(attr="Record"), [_, value]):
            yield from _described(value, (*path, "*"), schemas)
        case ast.Call(ast.Attribute(attr="Array"), [value]):
            yield from _described(value, (*path, "*"), schemas)
        case ast.Call(function, arguments):
            for each in (*arguments, function.value if isinstance(function, ast.Attribute) else function):
                yield from _described(each, path, schemas)
        case ast.List(values):
            for each in values:
                yield from _described(each, path, schemas)
        case ast.Name() | ast.Attribute():
            if (schema := schemas.get(ast.unparse(node))) is not None:
                yield from _described(schema, path, schemas)
        case _:
            pass


def _description(node: ast.expr) -> str | None:
    """What `annotate` says last of a schema."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        match node:
            case ast.Call(ast.Attribute(attr="annotate"), [ast.Dict() as facts]):
                for name, value in zip(facts.keys, facts.values, strict=True):
                    if isinstance(name, ast.Constant) and name.value == "description":
                        return str(ast.literal_eval(value))
        node = node.func.value
    return None


SOURCES = {
    "gemini": Source(
        "@google/gemini-cli/bundle/docs/reference/configuration.md", "Apache-2.0, Google LLC", read_markdown
    ),
    "opencode": Source("opencode-ai/bin/opencode.exe", "MIT, opencode", read_binary),
}


if __name__ == "__main__":
    sys.exit(main())
