"""What is known of the settings keys of each program."""

import json
from typing import Any

import pytest

from assistants.setting_docs import describes, entry, read_binary, read_markdown, schema_keys
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.views.setting_docs import ROOMS, setting_doc
from nexus_context.text.json import parse_pointer

DOCUMENTED = [name for name, program in PROGRAMS.items() if program.settings_schema]


@pytest.mark.parametrize(
    ("program", "keys", "text", "default"),
    [
        ("claude-code", "permissions.allow", "Rules for what needs no question, such as", None),
        ("claude-code", "sshConfigs.0.sshPort", "The port of the host.", 22),
        ("codex", "project_doc_max_bytes", "How many bytes of AGENTS.md files are sent", 32768),
        ("codex", "hooks.PreToolUse.0.matcher", "A regular expression for what the event is about", None),
        ("gemini", "general.vimMode", "Enable Vim keybindings.", False),
        ("gemini", "mcpServers.docs.cwd", "The working directory in which to start the server.", None),
        ("opencode", "tool_output.max_lines", "Maximum lines of tool output before", 2000),
        ("copilot", "/chat.useNestedAgentsMdFiles", "Whether AGENTS.md files of the workspace's", False),
        ("opencode", "agent.build.maxSteps", "Deprecated. Use 'steps' field instead.", None),
    ],
)
def test_a_key_has_a_text_and_its_default(program: str, keys: str, text: str, default: Any) -> None:
    doc = setting_doc(program, [keys[1:]] if keys[0] == "/" else keys.split("."))
    assert doc is not None and doc.text.startswith(text)
    assert doc.default == default


@pytest.mark.parametrize(
    ("program", "keys"), [("gemini", ("a",)), ("gemini", ("a",) * 60), ("gemini", ()), ("cursor", ("model",))]
)
def test_of_other_keys_nothing_is_known(program: str, keys: tuple[str, ...]) -> None:
    assert setting_doc(program, keys) is None


@pytest.mark.parametrize("program", DOCUMENTED)
def test_each_text_is_short_and_of_a_key_of_the_schema(program: str) -> None:
    keys = list(schema_keys(PROGRAMS[program].settings_schema))
    file = json.loads((ROOMS / program.replace("-", "_") / "settings.docs.json").read_bytes())
    assert next(iter(file)) == "source"
    assert PROGRAMS[program].instructions.assistant.version in file["source"]  # else: `make setting-docs`
    for pointer, each in {**file.get("program", {}), **file["own"]}.items():
        path = tuple(map(str, parse_pointer(pointer)))
        assert any(describes(path, key) for key in keys), pointer
        assert each.keys() <= {"text", "default"} and each.get("default", "") is not None, pointer
        assert 0 < len(each["text"]) <= 300 and each["text"].endswith((".", "!", "?")), pointer


MARKDOWN = b"""
### Available settings in `settings.json`

#### `ui`

- **`ui.theme`** (string):

  - **Description:** The **color** theme. See the [guide](./themes.md) for
    more.
  - **Default:** `"x"`

- **`ui.aVeryLongName`**
  (array):
  - **Description:** Many
  - **Default:**

    ```json
    [
      "a"
    ]
    ```

#### `mcpServers`

Configures servers.

- **`mcpServers.<SERVER_NAME>`** (object): The parameters.
  - `command` (string, optional): The command
    to execute.

### Example
"""


def test_the_settings_of_gemini_are_read_from_its_documentation() -> None:
    assert {"/".join(keys): entry(text) for keys, text in read_markdown(MARKDOWN).items()} == {
        "ui/theme": {"text": "The color theme. See the guide for more.", "default": "x"},
        "ui/aVeryLongName": {"text": "Many.", "default": ["a"]},
        "mcpServers": {"text": "Configures servers."},
        "mcpServers/*": {"text": "The parameters."},
        "mcpServers/*/command": {"text": "The command to execute."},
    }


BINARY = (
    b"var e$={};u(e$,{Info:()=>aH});"
    b'var aH=D.Struct({port:D.optional(j_).annotate({description:"Port (default: 7)"}),'
    b"""on:D.Boolean.annotate({description:"@deprecated Use 'port'. Defaults to true."})}).check((_)=>_)"""
    b'.annotate({identifier:"E"}),'
    b"DJ=D.Struct({$schema:D.String,e:D.optional(D.Record(D.String,e$.Info)).annotate({description:"
    b'"All, \\"quoted\\""}),f:D.Union([D.Literal(!1),D.Struct({g:D.String.annotate({description:"G"})})])})'
    b'.annotate({identifier:"Config"});\n'
)


def test_the_settings_of_opencode_are_read_from_its_source_text() -> None:
    assert {"/".join(keys): entry(text) for keys, text in read_binary(BINARY).items()} == {
        "e": {"text": 'All, "quoted".'},
        "e/*/port": {"text": "Port.", "default": 7},
        "e/*/on": {"text": "Deprecated. Use 'port'.", "default": True},
        "f/g": {"text": "G."},
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"{'One. ' * 3}{'A' * 198}.", "One. One. One."),
        ("See e.g. `a`, or b", "See e.g. `a`, or b."),
        ("Kept (default: false, if unset)", "Kept (default: false, if unset)."),
    ],
)
def test_a_text_is_cut_after_a_sentence(text: str, shown: str) -> None:
    assert entry(text) == {"text": shown}
