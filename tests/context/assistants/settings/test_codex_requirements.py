"""What an organization's requirements.toml changes for Codex. Each row was given to Codex 0.169.0, which did
what it says; but an `identity` of another address, `rules` and `permissions` are by its public source.
"""

from pathlib import Path
from typing import Any

import pytest

from nexus_context.assistants.codex.permissions import decide, read_permissions
from nexus_context.assistants.codex.requirements import PATH
from nexus_context.assistants.permissions.decision import ExplainedCall
from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, Surroundings
from nexus_context.assistants.views.setting_values import find_setting
from support.fixture import write_fixture

BOLD = 'approval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
SERVERS = """
[mcp_servers.a]
command = "true"
[mcp_servers.b]
url = "http://h/"
[mcp_servers.c]
command = "c"
"""
ALLOWED = '[mcp_servers.a.identity]\ncommand = "true"\n[mcp_servers.b.identity]\nurl = "http://other/"\n'


def settings_of(
    root: Path, requirements: str, user: str = "", *, trusted: bool = True
) -> tuple[AssistantSettings, Disk]:
    write_fixture(f"//- /work/x\n//- /home/.codex/config.toml\n{user}\n", root)
    disk = Disk({PATH: requirements})
    where = Surroundings(str(root / "work"), str(root / "home"), {}, trusted=trusted)
    return PROGRAMS["codex"].settings(disk, where), disk


def decided(root: Path, requirements: str, user: str, tool: str, **inputs: Any) -> tuple[str, str]:
    settings, disk = settings_of(root, requirements, user)
    decision = decide(read_permissions(settings, disk), ExplainedCall(tool, inputs))
    return decision.outcome, decision.reason


@pytest.mark.parametrize(
    ("requirements", "user", "values"),
    [
        ("", BOLD, ("never", "danger-full-access")),
        (
            'allowed_approval_policies = ["on-request", "untrusted"]',
            BOLD,
            ("on-request", "danger-full-access"),
        ),
        ('allowed_approval_policies = ["untrusted", "never"]', BOLD, ("never", "danger-full-access")),
        ('allowed_approval_policies = ["untrusted"]', "", ("untrusted", None)),
        ('allowed_sandbox_modes = ["workspace-write", "read-only"]', BOLD, ("never", "read-only")),
        ('allowed_sandbox_modes = ["read-only"]', "", (None, "read-only")),
        ('allowed_sandbox_modes = ["read-only", "workspace-write"]', "", (None, None)),
    ],
)
def test_the_values_in_force(
    requirements: str, user: str, values: tuple[str | None, ...], tmp_path: Path
) -> None:
    settings, _ = settings_of(tmp_path, requirements, user)
    assert (settings.value("approval_policy"), settings.value("sandbox_mode")) == values
    assert settings.problems == ()


def test_the_requirement_is_the_source_of_the_value(tmp_path: Path) -> None:
    requirements = '# Ours\nallowed_sandbox_modes = ["read-only"]'
    settings, disk = settings_of(tmp_path, requirements, BOLD)
    setting = find_setting("codex", ("sandbox_mode",), settings, disk)
    assert setting is not None
    span = setting.sources[0].span
    assert requirements[span.start : span.end] == "allowed_sandbox_modes"
    assert [(source.path, source.counts) for source in setting.sources] == [
        (PATH, True),
        (str(tmp_path / "home/.codex/config.toml"), False),
    ]


def test_a_server_that_is_off_leads_to_the_table_of_servers(tmp_path: Path) -> None:
    settings, disk = settings_of(tmp_path, ALLOWED, SERVERS)
    setting = find_setting("codex", ("mcp_servers", "c", "enabled"), settings, disk)
    assert setting is not None
    span = setting.sources[0].span
    assert ALLOWED[span.start : span.end] == "mcp_servers"


def test_servers_that_are_not_allowed_are_off(tmp_path: Path) -> None:
    settings, disk = settings_of(tmp_path, ALLOWED, SERVERS)
    servers = list(PROGRAMS["codex"].servers.read(disk, settings))
    assert [(server.name, server.start) for server in servers] == [
        ("a", "starts"),
        ("b", "off"),
        ("c", "off"),
    ]
    assert {server.path for server in servers} == {str(tmp_path / "home/.codex/config.toml")}
    assert servers[1].reason == f"The organization does not allow it: {PATH}."
    outcome, _ = decided(tmp_path, ALLOWED, SERVERS, "mcp__c__t")
    assert outcome == "denied"


def test_decisions_follow_the_values_in_force(tmp_path: Path) -> None:
    sandbox = 'allowed_sandbox_modes = ["read-only"]\nallowed_approval_policies = ["on-request"]\n'
    assert decided(tmp_path, "", BOLD, "Edit", file_path="a") == ("allowed", "There is no sandbox.")
    assert decided(tmp_path, sandbox, BOLD, "Edit", file_path="a") == ("asks", "The sandbox is read-only.")
    for unknown in ("[rules]\nprefix_rules = []", '[permissions.filesystem]\ndeny_read = ["/x"]'):
        outcome, reason = decided(tmp_path, unknown, BOLD, "Bash", command="ls")
        assert outcome == "asks" and "It is not known what Codex does" in reason


@pytest.mark.parametrize(
    ("requirements", "code", "marked"),
    [
        ("a = ", "stops", ""),
        ("allowed_approval_policies = []", "stops", "allowed_approval_policies"),
        ('allowed_sandbox_modes = ["workspace-write"]', "stops", "allowed_sandbox_modes"),
        ('allowed_sandbox_modes = "x"', "stops", '"x"'),
        ("unknown = 1", "no-effect", "unknown"),
        ("[features]\na = true", "not-modelled", "features"),
    ],
)
def test_what_is_wrong_with_the_file(requirements: str, code: str, marked: str, tmp_path: Path) -> None:
    settings, _ = settings_of(tmp_path, requirements)
    [problem] = settings.problems
    assert problem.path == PATH
    assert problem.code == f"assistant.{code}"
    assert settings.texts[PATH][slice(*problem.span)] == marked or not marked
    assert (settings.stop is not None) == (code == "stops")
