"""Tells what keeps a skill or a server from working here: a missing program or variable, or no trust.

1. A skill names what it needs in its `metadata`: `programs` and `variables`, with spaces or commas between.
2. A server needs the program of its `command`, if that is a bare name or an absolute path, and the variables
   that its settings refer to without a default.
   The program is not named: a command may have a secret in it.
3. Without a PATH nothing is known of programs.
4. In a folder that the user does not trust, servers do not start, nor do the programs of skills.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping

from nexus_context.config.mcp import McpServer
from nexus_context.config.references import references_in
from nexus_context.folder.prompt import texts
from nexus_context.folder.skills.skill import Skill

MOST_NAMES = 20
"""Programs, and variables, of a skill that are looked for."""
LONGEST_NAME = 60  # characters that are told of it

_SEPARATOR = re.compile(r"[\s,]+")


def skill_needs(skill: Skill, environ: Mapping[str, str], *, is_untrusted: bool = False) -> str:
    """Tell in words what a skill lacks, or "" if it is ready.

    `is_untrusted` is true if the user does not trust its folder.
    """
    programs, variables = (_names(skill.metadata.get(name, "")) for name in ("programs", "variables"))
    trust = [_say("untrusted")] if is_untrusted and programs else []
    missing = [_say("program", name) for name in programs if _is_missing(name, environ)]
    return ", ".join([*trust, *missing, *_unset(variables, environ)])


def server_needs(server: McpServer, environ: Mapping[str, str], *, is_untrusted: bool = False) -> str:
    """Tell in words what an MCP server lacks, or "" if it is ready. `is_untrusted` is as for a skill."""
    trust = [_say("untrusted")] if is_untrusted else []
    program = server.command[0] if server.command else ""
    is_known = program and not references_in(program) and ("/" not in program or program.startswith("/"))
    missing = [_say("own_program")] if is_known and _is_missing(program, environ) else []
    return ", ".join([*trust, *missing, *_unset(server_variables(server), environ)])


def server_variables(server: McpServer) -> Iterator[str]:
    """Yield the environment variables that a server cannot do without."""
    values = (*server.command, server.url or "", *server.env.values(), *server.headers.values())
    for value in values:
        for reference in references_in(value):
            if reference.kind == "variable" and reference.default is None:
                yield reference.name


def _names(text: str) -> list[str]:
    return [name for name in _SEPARATOR.split(text) if name][:MOST_NAMES]


def _is_missing(program: str, environ: Mapping[str, str]) -> bool:
    path = environ.get("PATH")
    return path is not None and shutil.which(program, path=path) is None


def _unset(variables: Iterable[str], environ: Mapping[str, str]) -> list[str]:
    return [_say("variable", name) for name in dict.fromkeys(variables) if not environ.get(name)]


def _say(sentence_key: str, name: str = "") -> str:
    return texts.table("readiness")[sentence_key].format(name=name[:LONGEST_NAME])
