"""The settings of config.json: their defaults, the generated files, the subset of JSON Schema."""

import subprocess
import sys
from typing import Any

import pytest
from pydantic import ValidationError

from nexus_context.config.check import CONFIG_SCHEMA, MCP_SCHEMA, load_schema
from nexus_context.config.generate import generated_files
from nexus_context.config.schema import Config


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ({}, ()),
        ({"_comment": 1, "$schema": "x", "agents": {"_comment": "a", "a": {"_comment2": [1]}}}, ()),
        ({"provider": {"headers": {"_comment": 1, "X": "y"}}}, ()),
        ({"context": {"ancestor_depth": 11}}, ("context.ancestor_depth",)),
        ({"context": {"ancestor_depth": True}}, ("context.ancestor_depth",)),
        ({"context": {"ancestor_depth": 2.0}}, ("context.ancestor_depth",)),
        ({"context": {"ancestor_depth": "2"}}, ("context.ancestor_depth",)),
        ({"context": {"git": None}}, ("context.git",)),
        ({"parameters": {"temperature": 1, "top_p": None}}, ()),
        ({"context": {"sections": [{"name": "a", "content": "b"}, {"name": "a"}]}}, ("context.sections.1",)),
        ({"context": {"sections": [{"name": "a", "content": "b", "file": "c"}]}}, ("context.sections.0",)),
        ({"colour": 1, "tools": {"x": 1}}, ("colour", "tools.x")),
        ({"provider": {"api_key_env": "sk-abc"}}, ("provider.api_key_env",)),
        ({"provider": {"api_key_env": "KEY\n"}}, ("provider.api_key_env",)),
        ({"context": {"instruction_files": ["../x"]}}, ("context.instruction_files.0",)),
    ],
)
def test_validation(values: dict[str, Any], wrong: tuple[str, ...]) -> None:
    """The settings are valid, or wrong at exactly these places."""
    try:
        Config.model_validate(values)
    except ValidationError as error:
        assert {".".join(map(str, each["loc"])) for each in error.errors()} == set(wrong)
    else:
        assert not wrong


def test_the_defaults() -> None:
    assert _set(Config().model_dump()) == {
        "provider": {"name": "editor"},
        "context": {
            "ancestor_depth": 2,
            "include_readme": False,
            "readme_as_fallback": True,
            "instruction_files": ["NEXUS.md", "AGENTS.md", "CLAUDE.md"],
            "reserve_tokens": 2000,
            "reserve_tool_tokens": 0,
            "truncation_strategy": "oldest_first",
            "truncation_target": 0.6,
            "keep_recent_turns": 3,
            "pin_first": True,
            "cache_ttl": "5m",
            "datetime": {"placement": "event"},
            "section_separator": "\n\n---\n\n",
            "git": True,
            "replay": "sent",
        },
        "compaction": {
            "enabled": True,
            "threshold": 0.8,
            "message_threshold": 100,
            "tool_call_threshold": 50,
            "target": 0.6,
            "overflow_target": 0.4,
            "recent_preserve_ratio": 0.25,
            "reload_prompt": True,
        },
        "permissions": {"level": "trusted"},
        "tools": {"summary": False, "defer": "auto"},
        "skills": {"enabled": True},
        "memory": {
            "levels": ["L1"],
            "events": 12,
            "knowledge": {
                "top_k": 5,
                "max_tokens": 2000,
                "embeddings": {"enabled": False, "min_similarity": 0.15},
            },
        },
        "mcp": {"read_mcp_json": True, "read_vscode": True},
        "views": {"show": "auto", "conversations": True},
        "chat": {"max_steps": 50, "max_tokens": 2_000_000, "max_usd": 5.0},
        "daemon": {"idle_minutes": 30.0},
    }


def test_committed_files_are_fresh() -> None:
    stale = [
        path.name
        for path, text in generated_files().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run: python -m nexus_context.config.generate"


SUBSET = {
    *(
        "$schema",
        "title",
        "description",
        "default",
        "definitions",
        "$ref",
        "type",
        "enum",
        "minimum",
        "maximum",
    ),
    *(
        "minLength",
        "maxLength",
        "pattern",
        "items",
        "properties",
        "patternProperties",
        "additionalProperties",
        "required",
    ),
    "oneOf",
}


@pytest.mark.parametrize("path", [CONFIG_SCHEMA, MCP_SCHEMA])
def test_schemas_keep_to_the_subset_that_the_checker_knows(path: str) -> None:
    for node in _nodes(load_schema(path)):
        assert set(node) <= SUBSET
        assert node.get("patternProperties", {"^_comment": {}}) == {"^_comment": {}}
        assert "properties" not in node or "patternProperties" in node or "required" in node
        assert all(set(choice) == {"required", "properties"} for choice in node.get("oneOf", ()))


def test_every_setting_has_a_sentence() -> None:
    for node in _nodes(load_schema(CONFIG_SCHEMA)):
        for name, child in node.get("properties", {}).items():
            assert str(child.get("description", "")).endswith("."), name


def test_the_checker_does_not_import_pydantic() -> None:
    imports = "import nexus_context.config.mcp, nexus_context.config.scope, sys"
    code = f"{imports}; print(sorted(HEAVY & set(sys.modules)))"
    heavy = "HEAVY = {'pydantic', 'difflib', 'zoneinfo', 'dataclasses', 'asyncio'}"
    done = subprocess.run(
        [sys.executable, "-c", f"{heavy}; {code}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def _set(value: dict[str, Any]) -> dict[str, Any]:
    """What is set to something: no None, no empty list or object."""
    pruned = {key: _set(child) if isinstance(child, dict) else child for key, child in value.items()}
    return {key: child for key, child in pruned.items() if child is not None and child not in ([], {})}


def _nodes(node: dict[str, Any]) -> list[dict[str, Any]]:
    children = [
        *node.get("properties", {}).values(),
        *node.get("definitions", {}).values(),
        *(node[key] for key in ("items", "additionalProperties") if isinstance(node.get(key), dict)),
    ]
    return [node, *(found for child in children for found in _nodes(child))]
