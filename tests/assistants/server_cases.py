"""Folders whose settings name MCP servers, and those that each real program starts there.

`make test-assistants` runs the programs; the fast tests compare the profiles with `started`. `$S`, `$T`, `$O`
and `$U` stand for a server in each form, `{root}` for the root of the case. Without a terminal, Gemini CLI
offers the tools of those that the user trusts (`$U`).
"""

import json
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from assistants import programs
from assistants.provider_stand_in import ProviderStandIn
from support.fixture import write_fixture

SERVER = (sys.executable, "-P", "-m", "nexus_daemon", "mcp", "--local")
FORMS = {
    "$S": json.dumps({"command": SERVER[0], "args": SERVER[1:]}),
    "$T": f"command = {json.dumps(SERVER[0])}\nargs = {json.dumps(SERVER[1:])}",
    "$O": json.dumps({"type": "local", "command": SERVER}),
    "$U": json.dumps({"command": SERVER[0], "args": SERVER[1:], "trust": True}),
}
REPOSITORY = """
//- /.git/HEAD
ref: refs/heads/main
//- /.git/objects/x
//- /.git/refs/x
//- /.git/config
"""
_OFFERED = re.compile(r'"mcp__(s[a-z]+)"|(?:mcp__?|\b)(s[a-z]+)_{1,2}show_context')


class ServerCase(NamedTuple):
    """A folder `/work` with the user's home `/home`, and the servers that the program started."""

    name: str
    program: str
    files: str
    started: tuple[str, ...]
    environ: Mapping[str, str] = MappingProxyType({})


CASES = (
    ServerCase(
        "of the user, of a project, and of files above",
        "claude-code",
        """
//- /home/.claude.json
{"mcpServers": {"suser": $S}, "projects": {"{root}/work": {"mcpServers": {"slocal": $S}},
 "{root}": {"mcpServers": {"sother": $S}}}}
//- /work/.mcp.json
{"mcpServers": {"sproject": $S}}
//- /.mcp.json
{"mcpServers": {"sabove": $S}}
""",
        ("sabove", "slocal", "sproject", "suser"),
    ),
    ServerCase(
        "a repository is one project",
        "claude-code",
        REPOSITORY
        + """
//- /home/.claude.json
{"projects": {"{root}/work": {"mcpServers": {"sfolder": $S}}, "{root}": {"mcpServers": {"sroot": $S}}}}
//- /work/.mcp.json
{"mcpServers": {"sproject": $S}}
""",
        ("sproject", "sroot"),
    ),
    ServerCase(
        "switched off by settings",
        "claude-code",
        """
//- /home/.claude.json
{"mcpServers": {"suser": $S, "soff": $S}, "projects": {"{root}/work": {"disabledMcpServers": ["soff"]}}}
//- /work/.mcp.json
{"mcpServers": {"sproject": $S, "sout": $S}}
//- /work/.claude/settings.local.json
{"enableAllProjectMcpServers": true, "disabledMcpjsonServers": ["sout"]}
""",
        ("sproject", "suser"),
    ),
    ServerCase(
        "not from settings.json, nor from the home directory",
        "claude-code",
        """
//- /home/.claude/settings.json
{"mcpServers": {"sone": $S}}
//- /work/.claude/settings.json
{"mcpServers": {"stwo": $S}}
//- /home/.mcp.json
{"mcpServers": {"sthree": $S}}
""",
        (),
    ),
    ServerCase(
        "another directory of settings",
        "claude-code",
        """
//- /elsewhere/.claude.json
{"mcpServers": {"sthere": $S}}
//- /home/.claude.json
{"mcpServers": {"shere": $S}}
""",
        ("sthere",),
        {"CLAUDE_CONFIG_DIR": "{root}/elsewhere"},
    ),
    ServerCase(
        "of the user, not of a folder that is not trusted",
        "codex",
        """
//- /home/.codex/config.toml
[mcp_servers.suser]
$T
[mcp_servers.soff]
enabled = false
$T
//- /work/.codex/config.toml
[mcp_servers.sproject]
$T
""",
        ("suser",),
    ),
    ServerCase(
        "of a trusted repository, down to the folder",
        "codex",
        REPOSITORY
        + """
//- /home/.codex/config.toml
[mcp_servers.suser]
$T
[projects."{root}"]
trust_level = "trusted"
//- /work/.codex/config.toml
[mcp_servers.sproject]
$T
//- /.codex/config.toml
[mcp_servers.sabove]
$T
""",
        ("sabove", "sproject", "suser"),
    ),
    ServerCase(
        "a trusted folder switches a server of the user off",
        "codex",
        """
//- /home/.codex/config.toml
[mcp_servers.suser]
$T
[mcp_servers.stwo]
$T
[projects."{root}/work"]
trust_level = "trusted"
//- /work/.codex/config.toml
[mcp_servers.suser]
enabled = false
""",
        ("stwo",),
    ),
    ServerCase(
        "of the user, of the folder, of those above",
        "opencode",
        """
//- /home/.config/opencode/opencode.json
{"mcp": {"suser": $O}}
//- /work/opencode.json
{"mcp": {"sproject": $O}}
//- /opencode.json
{"mcp": {"sabove": $O}}
//- /work/.opencode/opencode.json
{"mcp": {"sdot": $O}}
""",
        ("sabove", "sdot", "sproject", "suser"),
    ),
    ServerCase(
        "the folder switches a server of the user off",
        "opencode",
        """
//- /home/.config/opencode/opencode.json
{"mcp": {"suser": $O, "stwo": $O}}
//- /work/opencode.jsonc
{"mcp": {"suser": {"enabled": false}, /* or */ "sout": {"type": "local", "command": ["x"], "enabled": false}}}
""",
        ("stwo",),
    ),
    ServerCase(
        "of the user, of the folder",
        "gemini",
        """
//- /home/.gemini/settings.json
{"mcpServers": {"suser": $U}}
//- /work/.gemini/settings.json
{"mcpServers": {"sproject": $U}}
""",
        ("sproject", "suser"),
    ),
    ServerCase(
        "both leave out what one of them excludes",
        "gemini",
        """
//- /home/.gemini/settings.json
{"mcpServers": {"suser": $U, "stwo": $U, "sthree": $U}, "mcp": {"excluded": ["suser"]}}
//- /work/.gemini/settings.json
{"mcp": {"excluded": ["stwo"]}}
""",
        ("sthree",),
    ),
    ServerCase(
        "what both allow is allowed",
        "gemini",
        """
//- /home/.gemini/settings.json
{"mcpServers": {"suser": $U, "stwo": $U}, "mcp": {"allowed": ["suser", "stwo"]}}
//- /work/.gemini/settings.json
{"mcp": {"allowed": ["stwo"]}}
""",
        ("stwo",),
    ),
    ServerCase(
        "two lists with nothing in common allow all",
        "gemini",
        """
//- /home/.gemini/settings.json
{"mcpServers": {"suser": $U, "stwo": $U}, "mcp": {"allowed": ["suser"]}}
//- /work/.gemini/settings.json
{"mcp": {"allowed": ["stwo"]}}
""",
        ("stwo", "suser"),
    ),
    ServerCase(
        "a list of nothing allows all",
        "gemini",
        """
//- /home/.gemini/settings.json
{"mcpServers": {"suser": $U}, "mcp": {"allowed": []}}
""",
        ("suser",),
    ),
)


def write_case(case: ServerCase, root: Path) -> dict[str, str]:
    """Write the files of a case below a root; its variables."""
    text = case.files
    for mark, form in FORMS.items():
        text = text.replace(mark, form)
    write_fixture(text.replace("{root}", str(root)), root)
    for name in ("home", "work"):
        (root / name).mkdir(exist_ok=True)
    return {name: value.replace("{root}", str(root)) for name, value in case.environ.items()}


def differences(case: ServerCase) -> list[str]:
    """What is not as recorded when the real program runs, a line each."""
    program = programs.PROGRAMS[case.program]
    command = programs.install(program)
    with tempfile.TemporaryDirectory(prefix="servers-") as directory, ProviderStandIn() as provider:
        root = Path(directory).resolve()
        environ = write_case(case, root)
        programs.run(
            program, command, root / "work", home=root / "home", address=provider.address, environ=environ
        )
        sent = json.dumps([request.body for request in provider.requests])
    offered = {
        name for match in _OFFERED.finditer(sent.replace("\\n", " ")) for name in match.groups() if name
    }
    if tuple(sorted(offered)) == case.started:
        return []
    return [f"started  {', '.join(sorted(offered))}", f"recorded {', '.join(case.started)}"]
