"""Settings of Codex: what stops it, what it ignores, and where that is in the file.

Each row was given to Codex 0.169.0, which did what it says.
"""

from pathlib import Path

import pytest

from nexus_context.assistants.programs import PROGRAMS
from nexus_context.assistants.reading.disk import Disk
from nexus_context.assistants.reading.profile_types import AssistantSettings, Profile, Surroundings
from nexus_context.assistants.views.profile import read_profile
from nexus_context.errors import Severity
from support.fixture import write_fixture

TRUSTED = '[projects."{root}/work"]\ntrust_level = "trusted"\n'
REPOSITORY = """//- /work/.git/HEAD
ref: refs/heads/main
//- /work/.git/objects/x
//- /work/.git/refs/x
"""


def settings_of(root: Path, *, user: str = "", project: str = "", trusted: bool = True) -> AssistantSettings:
    trust = TRUSTED.replace("{root}", str(root)) if trusted else ""
    files = f"{REPOSITORY}//- /home/.codex/config.toml\n{user}\n{trust}"
    files += f"//- /work/.codex/config.toml\n{project}\n" if project else ""
    write_fixture(files, root)
    where = Surroundings(str(root / "work"), str(root / "home"), {})
    return PROGRAMS["codex"].settings(Disk(), where)


def profile_of(root: Path, files: str) -> Profile:
    write_fixture(REPOSITORY + files.replace("{root}", str(root)), root)
    return read_profile("codex", Surroundings(str(root / "work"), str(root / "home"), {}))


def problems_of(settings: AssistantSettings) -> list[tuple[str, str]]:
    """Code and marked text of each problem."""
    return [
        (each.code.removeprefix("assistant."), settings.texts[each.path][each.span.start : each.span.end])
        for each in settings.problems
    ]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("model = 5", "5"),
        ('model = "a', 'model = "a'),
        ("[a]\nb = 1\n[a]\n", "]"),
        ("a.b = 1\na.b = 2", "a.b = 2"),
        ('approval_policy = "auto"', '"auto"'),
        ("approval_policy = { granular = { rules = true } }", "{ rules = true }"),
        ('project_doc_max_bytes = "64k"', '"64k"'),
        ("project_doc_max_bytes = 65536.0", "65536.0"),
        ("project_doc_max_bytes = -1", "-1"),
        ('project_doc_fallback_filenames = "CLAUDE.md"', '"CLAUDE.md"'),
        ("project_root_markers = [1]", "1"),
        ('[projects."/x"]\ntrust_level = "yes"', '"yes"'),
        ('[projects]\n"/x" = "trusted"', '"trusted"'),
        ('[mcp_servers.a]\ncommand = ["npx"]', '["npx"]'),
        ('[mcp_servers.a]\ncommand = "x"\nargs = "-y"', '"-y"'),
        ('[mcp_servers.a]\ncommand = "x"\nenv = { A = 1 }', "1"),
        ('[mcp_servers.a]\ncommand = "x"\nurl = "http://x"', "url"),
        ('[mcp_servers.a]\nurl = "http://x"\nargs = []', "args"),
        ('[mcp_servers.a]\nurl = "http://x"\nbearer_token = "secret"', "bearer_token"),
        ("[mcp_servers.a]\nargs = []", "a"),
        ('[mcp_servers]\ncommand = "x"', '"x"'),
        ('[[mcp_servers]]\ncommand = "x"', "mcp_servers"),
        ('[model_providers.a]\nname = "A"\nwire_api = "chat"', '"chat"'),
        ("[model_providers.a]\nbase_url = ''", "a"),
        ("[model_providers.openai]\nname = 'x'", "openai"),
        ('model_provider = "none"', "model_provider"),
        ('model_instructions_file = "none.md"', "model_instructions_file"),
        ('[[skills.config]]\nname = "x"', "config"),
        ('[hooks]\nStop = "x"', '"x"'),
        ('[agents]\nreviewer = "x"', '"x"'),
        ('profile = "deep"', "profile"),
    ],
)
def test_what_stops_codex(text: str, marked: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path.resolve(), user=text, trusted=False)
    assert ("stops", marked) in problems_of(settings)
    assert settings.stop is not None
    assert settings.stop.message.startswith("Codex does not start: ")
    assert "secret" not in repr(settings.problems)


@pytest.mark.parametrize(
    ("text", "marked", "remedy"),
    [
        ('mdoel = "a"', "mdoel", "Did you mean `model`?"),
        ('[mcpServers.a]\ncommand = "x"', "mcpServers", "Did you mean `mcp_servers`?"),
        ("[project]\nproject_doc_max_bytes = 1", "project", "`project_doc_max_bytes` belongs at the top"),
        ('[mcp_servers.a]\ncommand = "x"\nmodel = "a"', "model", "It belongs at the top of the file"),
        ('[mcp_servers.a]\ncommand = "x"\ndisabled = true', "disabled", ""),
        ("network_access = true", "network_access", "It belongs in `sandbox_workspace_write`."),
        ('[profiles.deep]\nmodel = "a"', "profiles", "deep.config.toml".replace("deep", "NAME")),
        ('instructions = "x"', "instructions", "developer_instructions"),
        ('project_doc_fallback_filenames = ["docs/a.md"]', '"docs/a.md"', "without a directory"),
    ],
)
def test_what_codex_ignores(text: str, marked: str, remedy: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path.resolve(), user=text, trusted=False)
    assert problems_of(settings) == [("no-effect", marked)]
    assert remedy in settings.problems[0].message


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ('[model_providers.a]\nname = "A"', "env_key"),
        ('[mcp_servers.a]\nurl = "https://x"', "bearer_token_env_var"),
    ],
)
@pytest.mark.parametrize(
    ("value", "codes"),
    [
        ("cr_9f86d081884c7d659a2feaa0c55ad015", ["secret"]),
        ("sk-proj-9f86d081", ["secret"]),
        ("my key", ["secret"]),
        ("OPENAI_API_KEY_2", []),
        ("my_key", []),
        ("", []),
    ],
)
def test_a_key_is_not_the_name_of_its_variable(
    table: str, key: str, value: str, codes: list[str], tmp_path: Path
) -> None:
    settings = settings_of(tmp_path.resolve(), user=f'{table}\n{key} = "{value}"', trusted=False)
    assert problems_of(settings) == [(code, key) for code in codes]
    assert not value or value not in "".join(each.message for each in settings.problems)


@pytest.mark.parametrize(
    "text",
    [
        'x = {a = 1,\n b = 2,  # TOML 1.1\n}\nmodel = "\\e\\x41"'.replace("x =", "[desktop]\nx =", 1),
        '\ufeffmodel = "a"',
        'model = "a"\r\n[tui]\r\nnotifications = ["a"]\r\ntheme = "x"\r\n',
        "approval_policy = { granular = { sandbox_approval = true, rules = true, mcp_elicitations = true } }",
        '[mcp_servers.a]\ncommand = "x"\nenv_vars = ["A", { name = "B" }]\nstartup_timeout_sec = 20.5',
        '[mcp_servers.a]\nurl = "http://x"\nbearer_token_env_var = "A"\nenabled = false',
        '[otel]\nexporter = { otlp-http = { endpoint = "http://x" } }',
        '[[hooks.Stop]]\nhooks = [{ type = "command", command = "x" }]',
        '[agents.reviewer]\ndescription = "x"\n[agents]\nmax_threads = 2',
        "[agents]\nmax_depth = 1\njob_max_runtime_seconds = 60\ninterrupt_message = false",
        '[agents]\ndefault_subagent_model = "a"\ndefault_subagent_reasoning_effort = "low"',
        "[features]\nunified_exec = true\n[notice]\nhide_full_access_warning = true",
    ],
)
def test_codex_takes_all_of_it(text: str, tmp_path: Path) -> None:
    assert problems_of(settings_of(tmp_path.resolve(), user=text, trusted=False)) == []


def test_a_project_cannot_set_everything(tmp_path: Path) -> None:
    project = 'notify = 5\nmodel_provider = "x"\nproject_doc_max_bytes = 9\n[[skills.config]]\nenabled = true'
    settings = settings_of(tmp_path.resolve(), project=project)
    assert problems_of(settings) == [
        ("no-effect", "model_provider"),
        ("no-effect", "notify"),
        ("no-effect", "config"),
    ]
    assert settings.value("project_doc_max_bytes") == 9
    assert settings.value("model_provider") is None
    assert settings.stop is None


def test_files_are_joined_before_a_server_is_judged(tmp_path: Path) -> None:
    user = '[mcp_servers.a]\ncommand = "x"'
    assert problems_of(settings_of(tmp_path, user=user, project="[mcp_servers.a]\nenabled = false")) == []
    settings = settings_of(tmp_path, user=user, project='[mcp_servers.a]\nurl = "http://x"')
    assert problems_of(settings) == [("stops", "url")]


def test_what_would_stop_codex_in_a_trusted_folder_is_said_before(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, project="model = 5", trusted=False)
    assert problems_of(settings) == [("stops", "5")]
    assert settings.problems[0].message.startswith("In a folder that the user trusts, Codex does not start")
    assert settings.stop is None


def test_nothing_is_sent_if_codex_does_not_start(tmp_path: Path) -> None:
    files = """//- /home/.codex/config.toml
model = 5
[mcp_servers.a]
command = "x"
//- /work/AGENTS.md
A
"""
    profile = profile_of(tmp_path.resolve(), files)
    assert (profile.blocks, profile.servers) == ((), ())
    assert [each.code for each in profile.problems] == ["assistant.stops"]


def test_agents_and_developer_instructions_are_sent(tmp_path: Path) -> None:
    role = "description = 'd'\ndeveloper_instructions = 'x'\n"
    files = f"""//- /home/.codex/config.toml
developer_instructions = "Be brief."
{TRUSTED}[agents.table]
description = "t"
[agents.none]
config_file = "none.toml"
//- /home/.codex/agents/a.toml
name = "same"
{role}//- /work/.codex/agents/deep/b.toml
name = "same"
{role.replace("'d'", "'nearest'")}//- /work/.codex/agents/bad.toml
name = "bad"
zz = 1
{role}//- /work/.codex/agents/unnamed.toml
{role}"""
    root = tmp_path.resolve()
    profile = profile_of(root, files)
    assert [(block.kind, block.place, block.text) for block in profile.blocks] == [
        ("instructions", "developer", "Be brief."),
        ("agents", "system", "same: {\nnearest\n}\ntable: {\nt\n}\n"),
    ]
    assert [(each.code, Path(each.path).name) for each in profile.problems] == [
        ("assistant.void", "bad.toml"),
        ("assistant.void", "unnamed.toml"),
    ]


def test_skills_share_two_percent_of_the_window(tmp_path: Path) -> None:
    """Of 60 descriptions of 540 characters, Codex 0.169.0 sends 312 of the first 51 and 308 of the others."""
    skills = "".join(
        f"//- /work/.agents/skills/{name}/SKILL.md\n---\nname: {name}\ndescription: {'x' * 540}\n---\n"
        for name in (f"s{number:02}" for number in range(60))
    )
    config = "//- /home/.codex/config.toml\n[[skills.config]]\nname = 's60'\nenabled = false\n"
    extra = "//- /work/.agents/skills/s60/SKILL.md\n---\nname: s60\ndescription: off\n---\n"
    profile = profile_of(tmp_path.resolve(), config + skills + extra)
    lengths = [part.text.count("x") for part in profile.parts]
    assert lengths == [312] * 51 + [308] * 9
    assert [each.code for each in profile.problems] == ["assistant.cut"]


def test_a_cut_that_the_project_prevents_is_no_error(tmp_path: Path) -> None:
    files = (
        "//- /work/AGENTS.md\n"
        + "x" * 40_000
        + "\n//- /work/.codex/config.toml\nproject_doc_max_bytes = {}\n"
    )
    profile = profile_of(tmp_path.resolve(), files.format(65_536))
    assert [(each.code, each.severity) for each in profile.problems] == [
        ("assistant.cut", Severity.INFORMATION)
    ]
    profile = profile_of(tmp_path.resolve(), files.format(36_000))
    assert [(each.code, each.severity) for each in profile.problems] == [("assistant.cut", Severity.ERROR)]


@pytest.mark.parametrize("text", ['x = "' + '\\"' * 100_000, "x = '''" + "'" * 100_000, "x = " + "[" * 5_000])
def test_hostile_texts_are_refused_in_one_pass(text: str, tmp_path: Path) -> None:
    assert settings_of(tmp_path, user=text, trusted=False).stop is not None


def test_a_file_that_a_table_names_needs_no_name_of_its_own(tmp_path: Path) -> None:
    tree = write_fixture(
        '//- /work/.codex/config.toml\n[agents.far]\ndescription = "Looks far."\n'
        'config_file = "agents/far.toml"\n'
        '//- /work/.codex/agents/far.toml\ndeveloper_instructions = "x"\n'
        '//- /work/.codex/agents/near.toml\ndeveloper_instructions = "x"\n'
        "//- /home/.codex/config.toml\n",
        tmp_path,
    )
    where = Surroundings(tree.path("/work"), tree.path("/home"), {}, trusted=True)
    profile = read_profile("codex", where, counted=False)
    assert [Path(each.path).name for each in profile.problems] == ["near.toml"]
    assert "far: {\nLooks far.\n}\n" in [part.text for block in profile.blocks for part in block.parts]
