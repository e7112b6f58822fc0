"""Settings of Gemini CLI: what stops it, what it ignores, its variables and extensions.

What stops it, the variables and the extensions were tried with Gemini CLI 0.61.0.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, Profile, Surroundings
from nexus_context.assistants.views.profile import read_profile
from support.fixture import write_file, write_fixture


def settings_of(root: Path, text: str, environ: Mapping[str, str] | None = None) -> AssistantSettings:
    write_file(root / "work" / ".gemini" / "settings.json", text)
    where = Surroundings(str(root / "work"), str(root / "home"), environ or {})
    return PROGRAMS["gemini"].settings(Disk(), where)


def profile_of(root: Path, files: str, environ: Mapping[str, str] | None = None) -> Profile:
    write_fixture("//- /work/.git/HEAD\nref: x\n" + files, root)
    return read_profile("gemini", Surroundings(str(root / "work"), str(root / "home"), environ or {}))


def names_of(profile: Profile) -> list[str]:
    return [Path(part.path).name for part in profile.parts if part.path is not None]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"context": {"fileName": "A.md",}}',
        '{"context": {}',
        '\ufeff{"context": {}}',
        '{"context": {"fileName": 5}}',
    ],
)
def test_what_stops_gemini(text: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path.resolve(), text)
    assert [each.code for each in settings.problems] == ["assistant.stops"]
    assert settings.stop is not None
    assert settings.stop.message.startswith("Gemini CLI does not start: ")


@pytest.mark.parametrize(
    ("text", "marked", "remedy"),
    [
        ('{"contextFileName": "A.md"}', '"contextFileName"', "It is `context.fileName` now."),
        ('{"fileName": "A.md"}', '"fileName"', "It belongs in `context`."),
        ('{"mcpservers": {}}', '"mcpservers"', "Did you mean `mcpServers`?"),
        ('{"model": "gemini-2.5-pro"}', '"gemini-2.5-pro"', '"model" must be an object'),
        ('{"mcpServers": {"a": {}}}', '"a"', "it needs `command`, `url` or `httpUrl`"),
        ('{"mcpServers": {"a": {"command": "x", "disabled": true}}}', '"disabled"', ""),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}', '"command"', "has an address"),
    ],
)
def test_what_gemini_does_not_heed(text: str, marked: str, remedy: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path.resolve(), text)
    (problem,) = settings.problems
    assert (problem.code, text[problem.span.start : problem.span.end]) == ("assistant.no-effect", marked)
    assert remedy in problem.message
    assert settings.stop is None


@pytest.mark.parametrize(
    "text",
    [
        '{// ours\n"context": {"fileName": ["A.md", "$B"]}}',
        '{"general": {"vimMode": "TRUE", "disableAutoUpdate": true}, "model": {"maxSessionTurns": "5"}}',
        '{"mcpServers": {"a": {"httpUrl": "http://x", "headers": {"A": "$TOKEN"}}}, "telemetry": true}',
    ],
)
def test_gemini_takes_all_of_it(text: str, tmp_path: Path) -> None:
    assert settings_of(tmp_path.resolve(), text).problems == ()


def test_variables_stand_for_their_values(tmp_path: Path) -> None:
    files = """//- /work/.gemini/settings.json
{"context": {"fileName": ["$ONE", "${TWO:-TWO.md}", "${THREE}"]}}
//- /work/ONE.md
1
//- /work/TWO.md
2
//- /work/${THREE}
3
"""
    assert names_of(profile_of(tmp_path.resolve(), files, {"ONE": "ONE.md"})) == [
        "${THREE}",
        "ONE.md",
        "TWO.md",
    ]


def test_files_of_the_system_surround_the_others(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    write_file(root / "system-defaults.json", '{"mcp": {"allowed": ["A", "b"]}, "ui": {"theme": "x"}}')
    write_file(root / "system.json", '{"context": {"fileName": "S.md"}}')
    environ = {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": str(root / "system.json")}
    settings = settings_of(root, '{"context": {"fileName": "A.md"}, "mcp": {"allowed": ["a "]}}', environ)
    assert settings.value("context", "fileName") == "S.md"
    assert settings.value("ui", "theme") == "x"


def test_extensions_and_included_directories_are_read(tmp_path: Path) -> None:
    server = {"command": "x"}
    extension = {"name": "ext", "version": "1", "contextFileName": ["EXT.md", "none.md", "../x.md"]}
    files = f"""//- /home/.gemini/extensions/ext/gemini-extension.json
{json.dumps({**extension, "mcpServers": {"a": server, "b": server, "c": server}})}
//- /home/.gemini/extensions/ext/EXT.md
Of the extension.
//- /home/.gemini/extensions/bad/gemini-extension.json
{{"name": "bad"}}
//- /home/.gemini/extensions/bad/GEMINI.md
No version.
//- /home/.gemini/extensions/off/gemini-extension.json
{{"name": "off", "version": "1"}}
//- /home/.gemini/extensions/off/GEMINI.md
Off.
//- /home/.gemini/extensions/extension-enablement.json
{{"off": {{"overrides": ["!/*"]}}}}
//- /work/.gemini/settings.json
{{"context": {{"includeDirectories": ["../other"]}}, "mcpServers": {{"a": {{}}}},
 "mcp": {{"excluded": ["B"]}}}}
//- /other/GEMINI.md
Other.
//- /work/GEMINI.md
Work.
"""
    root = tmp_path.resolve()
    profile = profile_of(root, files)
    (block,) = profile.blocks
    assert block.text.replace(str(root), "") == (
        "<loaded_context>\n<extension_context>\n"
        "--- Context from: /home/.gemini/extensions/ext/EXT.md ---\nOf the extension.\n"
        "--- End of Context from: /home/.gemini/extensions/ext/EXT.md ---\n"
        "</extension_context>\n<project_context>\n"
        "--- Context from: /other/GEMINI.md ---\nOther.\n--- End of Context from: /other/GEMINI.md ---\n\n"
        "--- Context from: /work/GEMINI.md ---\nWork.\n--- End of Context from: /work/GEMINI.md ---\n"
        "</project_context>\n</loaded_context>"
    )
    starts = [(each.name, Path(each.path).name, each.start) for each in profile.servers]
    assert starts == [
        ("a", "settings.json", "off"),
        ("b", "gemini-extension.json", "off"),
        ("c", "gemini-extension.json", "starts"),
    ]
