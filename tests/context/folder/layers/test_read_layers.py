"""Layers: which directories and files count, in which order, and what is reported of the others."""

import os
from pathlib import Path

import msgspec
import pytest

from nexus_context.folder.layers import Layers
from nexus_context.folder.layers.text_reader import unsaved
from nexus_context.folder.layers.walk import global_directory
from support.fixture import Fixture, write_fixture
from support.folders import layers_of, relative


def check(root: Path, text: str, folder: str, expected: list[str]) -> Layers:
    """Layers with their files, each as `layer: kind path status`, without missing files and defaults."""
    fixture = write_fixture(text, root)
    layers = layers_of(fixture, folder)
    assert shown(fixture, layers) == expected
    return layers


def shown(fixture: Fixture, layers: Layers) -> list[str]:
    return [
        f"{layer.name}: {file.kind} {relative(fixture, file.path)}"
        + ("" if file.status == "loaded" else f" {file.status}")
        for layer in layers.layers
        for file in layer.files
        if file.status != "missing" and layer.name != "defaults"
    ]


def skipped(fixture: Fixture, layers: Layers) -> list[str]:
    return [f"{relative(fixture, each.path)} {relative(fixture, each.reason)}" for each in layers.skipped]


def codes(fixture: Fixture, layers: Layers) -> list[tuple[str, str]]:
    return [(relative(fixture, problem.path), problem.code) for problem in layers.problems]


def test_layers_stand_in_order_and_the_farthest_ancestor_first(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/NEXUS.md
    //- /home/.nexus3/config.json
    {}
    //- /home/a/.nexus3/NEXUS.md
    //- /home/a/b/.nexus3/mcp.json
    {"servers": []}
    //- /home/a/b/c/NEXUS.md
    //- /home/a/b/c/d/.nexus3/NEXUS.md
    """
    expected = [
        "global: instructions /home/.nexus3/NEXUS.md",
        "global: config /home/.nexus3/config.json",
        "ancestor:b: mcp /home/a/b/.nexus3/mcp.json",
        "ancestor:c: instructions /home/a/b/c/NEXUS.md",
        "local: instructions /home/a/b/c/d/.nexus3/NEXUS.md",
    ]
    layers = check(tmp_path, text, "/home/a/b/c/d", expected)
    assert layers.skipped == ()


def test_packaged_files_count_only_where_the_global_layer_has_none(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/.nexus3/config.json\n{}\n//- /home/a/x\n", tmp_path)
    first = layers_of(fixture, "/home/a").layers[0]
    assert (first.name, [file.kind for file in first.files]) == ("defaults", ["instructions", "mcp"])
    write_fixture('//- /home/.nexus3/NEXUS.md\n//- /home/.nexus3/mcp.json\n{"servers": []}\n', tmp_path)
    assert [layer.name for layer in layers_of(fixture, "/home/a").layers] == ["global", "local"]


@pytest.mark.parametrize(
    ("present", "chosen"),
    [
        ("NEXUS.md AGENTS.md .nexus3/NEXUS.md", ".nexus3/NEXUS.md"),
        ("NEXUS.md .nexus3/AGENTS.md", "NEXUS.md"),
        ("AGENTS.md .nexus3/AGENTS.md", ".nexus3/AGENTS.md"),
        (".agents/AGENTS.md CLAUDE.md", ".agents/AGENTS.md"),
        ("AGENTS.md AGENTS.override.md", "AGENTS.override.md"),
        (".agents/AGENTS.override.md AGENTS.md", "AGENTS.md"),
        (".claude/CLAUDE.md README.md", ".claude/CLAUDE.md"),
        (".claude/CLAUDE.md CLAUDE.md", "CLAUDE.md"),
        ("README.md", "README.md"),
    ],
)
def test_the_first_instruction_file_counts(tmp_path: Path, present: str, chosen: str) -> None:
    fixture = write_fixture("".join(f"//- /home/a/{name}\n" for name in present.split()), tmp_path)
    files = [file for file in layers_of(fixture, "/home/a").layers[-1].files if file.status == "loaded"]
    assert [file.path for file in files] == [fixture.path(f"/home/a/{chosen}")]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("{}", ["NEXUS.md"]),
        ('{"context": {"include_readme": true}}', ["NEXUS.md", "README.md"]),
        ('{"context": {"instruction_files": ["X.md"]}}', ["README.md"]),
        ('{"context": {"instruction_files": ["X.md"], "readme_as_fallback": false}}', []),
        ('{"context": {"instruction_files": ["OWN.md", "NEXUS.md"]}}', ["OWN.md"]),
    ],
)
def test_settings_say_which_files_are_read(tmp_path: Path, settings: str, expected: list[str]) -> None:
    fixture = write_fixture(
        f"//- /home/a/.nexus3/config.json\n{settings}\n//- /home/a/NEXUS.md\n//- /home/a/README.md\n"
        "//- /home/a/OWN.md\n",
        tmp_path,
    )
    kinds = ("instructions", "readme")
    local = layers_of(fixture, "/home/a").layers[-1]
    names = [Path(file.path).name for file in local.files if file.kind in kinds and file.status == "loaded"]
    assert names == expected


def test_a_readme_alone_makes_no_ancestor_a_layer(tmp_path: Path) -> None:
    text = """
    //- /home/a/README.md
    //- /home/a/b/.nexus3/config.json
    {}
    //- /home/a/b/README.md
    //- /home/a/b/c/x
    """
    expected = ["ancestor:b: readme /home/a/b/README.md", "ancestor:b: config /home/a/b/.nexus3/config.json"]
    check(tmp_path, text, "/home/a/b/c", expected)


def test_the_depth_is_the_folders_own_then_the_global_one(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/config.json
    {"context": {"ancestor_depth": 3}}
    //- /home/a/AGENTS.md
    //- /home/a/b/c/.nexus3/config.json
    {"context": {"ancestor_depth": 0}}
    //- /home/a/b/c/d/x
    """
    fixture = write_fixture(text, tmp_path)
    assert "ancestor:a" in [layer.name for layer in layers_of(fixture, "/home/a/b/c/d").layers]
    assert codes(fixture, layers_of(fixture, "/home/a/b/c/d")) == [
        ("/home/a/b/c/.nexus3/config.json", "config.scope")
    ]
    overlays = {"/home/a/b/c/d/.nexus3/config.json": '{"context": {"ancestor_depth": 2}}'}
    layers = layers_of(fixture, "/home/a/b/c/d", overlays=overlays)
    assert "ancestor:a" not in [layer.name for layer in layers.layers]
    broken = {"/home/a/b/c/d/.nexus3/config.json": '{"context": {"ancestor_depth": 99}}'}
    assert "ancestor:a" in [
        layer.name for layer in layers_of(fixture, "/home/a/b/c/d", overlays=broken).layers
    ]


REPOSITORY = """
//- /home/mono/.git/HEAD
ref: refs/heads/main
//- /home/mono/AGENTS.md
Root.
//- /home/mono/.mcp.json
{"mcpServers": {"db": {"command": "sh"}}}
//- /home/mono/a/b/c/AGENTS.md
Leaf.
//- /home/AGENTS.md
Home.
"""


def test_unset_the_depth_reaches_the_root_of_the_repository(tmp_path: Path) -> None:
    expected = [
        "ancestor:mono: instructions /home/mono/AGENTS.md",
        "ancestor:mono: mcp /home/mono/.mcp.json",
        "local: instructions /home/mono/a/b/c/AGENTS.md",
    ]
    check(tmp_path, REPOSITORY, "/home/mono/a/b/c", expected)


def test_a_depth_that_is_set_means_that_number(tmp_path: Path) -> None:
    text = REPOSITORY + '//- /home/mono/a/b/c/.nexus3/config.json\n{"context": {"ancestor_depth": 1}}\n'
    fixture = write_fixture(text, tmp_path)
    layers = layers_of(fixture, "/home/mono/a/b/c")
    assert not [layer.name for layer in layers.layers if layer.name.startswith("ancestor:")]
    assert layers.servers == ()


def test_a_repository_of_the_home_directory_is_not_the_folders(tmp_path: Path) -> None:
    text = "//- /home/.git/HEAD\nx\n//- /home/a/AGENTS.md\nA\n//- /home/a/b/c/d/AGENTS.md\nD\n"
    check(tmp_path, text, "/home/a/b/c/d", ["local: instructions /home/a/b/c/d/AGENTS.md"])


def test_a_worktree_and_a_repository_that_appears_count(tmp_path: Path) -> None:
    text = "//- /home/w/AGENTS.md\nW\n//- /home/w/a/b/c/AGENTS.md\nC\n"
    local = "local: instructions /home/w/a/b/c/AGENTS.md"
    fixture = write_fixture(text, tmp_path)
    layers = layers_of(fixture, "/home/w/a/b/c")
    assert (shown(fixture, layers), fixture.path("/home/w/.git") in layers.watch) == ([local], True)
    Path(fixture.path("/home/w/.git")).write_text("gitdir: elsewhere")
    again = layers_of(fixture, "/home/w/a/b/c")
    assert shown(fixture, again) == ["ancestor:w: instructions /home/w/AGENTS.md", local]


def test_the_walk_ends_at_the_home_directory(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/AGENTS.md\n//- /AGENTS.md\n//- /home/a/x\n", tmp_path)
    layers = layers_of(fixture, "/home/a")
    assert shown(fixture, layers) == []
    assert skipped(fixture, layers) == ["/home is the home directory"]
    above = layers_of(fixture, "/home")
    assert shown(fixture, above) == ["local: instructions /home/AGENTS.md"]
    assert skipped(fixture, above) == [" is above the home directory"]


def test_outside_the_home_directory_the_depth_ends_the_walk(tmp_path: Path) -> None:
    text = "//- /srv/AGENTS.md\n//- /srv/a/AGENTS.md\n//- /srv/a/b/AGENTS.md\n//- /srv/a/b/c/x\n"
    expected = ["ancestor:a: instructions /srv/a/AGENTS.md", "ancestor:b: instructions /srv/a/b/AGENTS.md"]
    check(tmp_path, text, "/srv/a/b/c", expected)


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("/srv/x/x/proj", ["srv/x", "x"]),
        ("/srv/a/b/x/y/x/proj", ["b/x", "y", "x"]),
        ("/srv/x/x/x/x", ["srv/x", "x/x", "x"]),
    ],
)
def test_ancestors_of_one_name_are_told_apart(tmp_path: Path, folder: str, names: list[str]) -> None:
    parts = folder.split("/")
    above = ["/".join(parts[:end]) for end in range(3, len(parts))]
    files = "".join(f"//- {one}/AGENTS.md\n" for one in above[-len(names) :])
    text = f'{files}//- {folder}/.nexus3/config.json\n{{"context": {{"ancestor_depth": {len(names)}}}}}\n'
    layers = layers_of(write_fixture(text, tmp_path), folder)
    found = [layer.name for layer in layers.layers if layer.name.startswith("ancestor:")]
    assert found == [f"ancestor:{name}" for name in names]


@pytest.mark.parametrize(
    ("environ", "directory"),
    [
        ({"HOME": "/u"}, "/u/.nexus3"),
        ({"HOME": "/u", "NEXUS_HOME": ""}, "/u/.nexus3"),
        ({"HOME": "/u", "NEXUS_HOME": "/etc/nexus/"}, "/etc/nexus"),
        ({"HOME": "/u", "NEXUS_HOME": "~/conf"}, "/u/conf"),
        ({"HOME": "/u", "NEXUS_HOME": "~"}, "/u"),
        ({"HOME": "/u", "NEXUS_HOME": "conf"}, "/u/conf"),
        ({"HOME": "/u", "NEXUS_HOME": "../conf"}, "/conf"),
        ({"USERPROFILE": "/v"}, "/v/.nexus3"),
    ],
)
@pytest.mark.skipif(os.name == "nt", reason="paths of POSIX")
def test_the_global_directory(environ: dict[str, str], directory: str) -> None:
    assert global_directory(environ) == directory


def test_the_global_directory_is_read_once(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/.nexus3/NEXUS.md\n//- /home/AGENTS.md\n//- /home/a/x\n", tmp_path)
    home = layers_of(fixture, "/home")
    assert shown(fixture, home) == [
        "global: instructions /home/.nexus3/NEXUS.md",
        "local: instructions /home/AGENTS.md",
    ]
    assert skipped(fixture, home)[0] == "/home/.nexus3 is read already: it is the global layer"
    itself = layers_of(fixture, "/home/.nexus3")
    assert [layer.name for layer in itself.layers if layer.name != "defaults"] == ["global"]
    assert skipped(fixture, itself)[0] == "/home/.nexus3 is read already: it is the global layer"


def test_an_ancestor_whose_directory_is_the_global_one_is_read_once(tmp_path: Path) -> None:
    fixture = write_fixture("//- /srv/.nexus3/NEXUS.md\n//- /srv/a/b/x\n", tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home/.nexus3").symlink_to(tmp_path / "srv/.nexus3")
    layers = layers_of(fixture, "/srv/a/b")
    assert shown(fixture, layers) == ["global: instructions /home/.nexus3/NEXUS.md"]
    assert skipped(fixture, layers) == ["/srv/.nexus3 is read already: it is the global layer"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users have no numbers here")
def test_what_others_can_write_to_is_not_read(tmp_path: Path) -> None:
    text = "//- /srv/open/AGENTS.md\n//- /srv/open/a/.nexus3/NEXUS.md\n//- /srv/open/a/b/AGENTS.md\n"
    fixture = write_fixture(text, tmp_path)
    (tmp_path / "srv/open").chmod(0o777)
    (tmp_path / "srv/open/a/.nexus3").chmod(0o777)
    layers = layers_of(fixture, "/srv/open/a/b")
    assert shown(fixture, layers) == ["local: instructions /srv/open/a/b/AGENTS.md"]
    assert skipped(fixture, layers) == [
        "/srv/open/a/.nexus3 is writable for everyone and not sticky",
        "/srv/open is writable for everyone and not sticky",
    ]


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")
def test_a_planted_layer_in_a_shared_directory_is_not_read(tmp_path: Path) -> None:
    text = "//- /tmp/.nexus3/NEXUS.md\n//- /tmp/AGENTS.md\n//- /tmp/CLAUDE.md\nmine\n//- /tmp/work/x\n"
    fixture = write_fixture(text, tmp_path)
    (tmp_path / "tmp").chmod(0o1777)
    os.chown(tmp_path / "tmp/.nexus3", 4242, 4242)
    os.chown(tmp_path / "tmp/AGENTS.md", 4242, 4242)
    reasons = {
        "/tmp/.nexus3 belongs to another user (uid 4242)",
        "/tmp/AGENTS.md belongs to another user (uid 4242)",
    }
    below = layers_of(fixture, "/tmp/work")
    assert shown(fixture, below) == ["ancestor:tmp: instructions /tmp/CLAUDE.md"]
    assert set(skipped(fixture, below)) >= reasons
    opened = layers_of(fixture, "/tmp")
    assert shown(fixture, opened) == ["local: instructions /tmp/CLAUDE.md"]
    assert set(skipped(fixture, opened)) >= reasons


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can give files away")
def test_an_opened_folder_of_another_user_is_read(tmp_path: Path) -> None:
    fixture = write_fixture("//- /srv/a/.nexus3/NEXUS.md\n", tmp_path)
    for path in ("srv/a", "srv/a/.nexus3", "srv/a/.nexus3/NEXUS.md"):
        os.chown(tmp_path / path, 4242, 4242)
    assert shown(fixture, layers_of(fixture, "/srv/a")) == ["local: instructions /srv/a/.nexus3/NEXUS.md"]


def test_a_link_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/secret\nkey\n//- /home/a/CLAUDE.md\n//- /home/a/real.md\n", tmp_path)
    (tmp_path / "home/a/NEXUS.md").symlink_to(tmp_path / "home/secret")
    (tmp_path / "home/a/AGENTS.md").symlink_to("real.md")
    layers = layers_of(fixture, "/home/a")
    assert shown(fixture, layers) == ["local: instructions /home/a/AGENTS.md"]
    assert "/home/a/NEXUS.md is a symbolic link that leads out of /home/a" in skipped(fixture, layers)
    assert codes(fixture, layers) == [("/home/a/NEXUS.md", "layer.refused")]


def test_a_broken_file_keeps_its_last_good_value(tmp_path: Path) -> None:
    text = """
    //- /home/a/.nexus3/config.json
    {"tools": {"summary": true}}
    //- /home/a/.nexus3/mcp.json
    {"servers": [{"name": "one", "command": ["one"]}]}
    """
    fixture = write_fixture(text, tmp_path)
    good = layers_of(fixture, "/home/a")
    broken = {"/home/a/.nexus3/config.json": '{"tools": ', "/home/a/.nexus3/mcp.json": '{"servers": [{}]}'}
    now = layers_of(fixture, "/home/a", overlays=broken, previous=good)
    assert shown(fixture, now) == [
        "local: config /home/a/.nexus3/config.json stale",
        "local: mcp /home/a/.nexus3/mcp.json stale",
    ]
    assert now.effective.get("/tools/summary") is True
    assert [server.name for server in now.servers] == ["one"]
    assert now.documents[fixture.path("/home/a/.nexus3/config.json")].text == '{"tools": '
    later = layers_of(fixture, "/home/a", overlays=broken, previous=now)
    assert later.effective.get("/tools/summary") is True
    first = layers_of(fixture, "/home/a", overlays=broken)
    assert [line.rpartition(" ")[2] for line in shown(fixture, first)] == ["invalid", "invalid"]
    assert (first.effective.get("/tools/summary"), first.servers) == (False, ())
    (tmp_path / "home/a/.nexus3/config.json").unlink()
    assert layers_of(fixture, "/home/a", previous=good).effective.get("/tools/summary") is False


def test_empty_files_say_nothing_and_are_no_mistake(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/.nexus3/config.json\n//- /home/a/.nexus3/mcp.json\n", tmp_path)
    layers = layers_of(fixture, "/home/a")
    assert layers.problems == ()
    assert [line.split()[1] for line in shown(fixture, layers)] == ["config", "mcp"]


def test_mcp_files_of_other_tools_are_less_important(tmp_path: Path) -> None:
    text = """
    //- /home/.nexus3/mcp.json
    {"servers": [{"name": "a", "command": ["a"]}]}
    //- /home/w/.vscode/mcp.json
    {
      // VS Code allows comments
      "servers": {"a": {"command": "b"}, "b": {"command": "b"},},
    }
    //- /home/w/.mcp.json
    {"mcpServers": {"b": {"command": "c"}, "c": {"url": "http://localhost:1"}}}
    //- /home/w/.nexus3/mcp.json
    {"servers": [{"name": "c", "command": ["d"]}]}
    """
    fixture = write_fixture(text, tmp_path)
    layers = layers_of(fixture, "/home/w")
    assert [(server.name, server.origin, server.shadowed_by) for server in layers.servers] == [
        ("a", "global", "vscode"),
        ("a", "vscode", None),
        ("b", "vscode", "project"),
        ("b", "project", None),
        ("c", "project", "local"),
        ("c", "local", None),
    ]
    assert not [problem for problem in layers.problems if problem.code.startswith("json.")]
    off = {"/home/w/.nexus3/config.json": '{"mcp": {"read_vscode": false, "read_mcp_json": false}}'}
    origins = [server.origin for server in layers_of(fixture, "/home/w", overlays=off).servers]
    assert origins == ["global", "local"]


@pytest.mark.parametrize("text", ["a\0", "\0a", "{\0}\0", "\0\0\0a", "a\0\0\0", "\0"])
def test_nul_in_unsaved_text_is_not_another_encoding(text: str) -> None:
    """Bytes of which every other one is NUL are UTF-16; the text of an open document has no encoding."""
    read = unsaved("/f", text, 1000, None)
    assert (read.status, read.text, [problem.code for problem in read.problems]) == (
        "invalid",
        text,
        ["layer.nul"],
    )


def test_unsaved_text_wins_also_where_there_is_no_file(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/b/NEXUS.md\nsaved\n", tmp_path)
    overlays = {"/home/a/b/NEXUS.md": "unsaved", "/home/a/.nexus3/NEXUS.md": "new \ud800"}
    layers = layers_of(fixture, "/home/a/b", overlays=overlays)
    assert shown(fixture, layers) == [
        "ancestor:a: instructions /home/a/.nexus3/NEXUS.md",
        "local: instructions /home/a/b/NEXUS.md",
    ]
    assert [layer.files[0].text for layer in layers.layers[-2:]] == ["new \ufffd", "unsaved"]


def test_names_that_lead_elsewhere_are_refused(tmp_path: Path) -> None:
    settings = '{"context": {"instruction_files": ["..", "OWN.md"]}}'
    fixture = write_fixture(f"//- /home/a/.nexus3/config.json\n{settings}\n//- /home/a/OWN.md\n", tmp_path)
    layers = layers_of(fixture, "/home/a")
    (problem,) = layers.problems
    assert problem.code == "config.instruction-file"
    assert settings[problem.span.start : problem.span.end] == '".."'
    assert "local: instructions /home/a/OWN.md" in shown(fixture, layers)


def test_nothing_on_the_disk_raises(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/file\n", tmp_path)
    directory = tmp_path / "home/a"
    (directory / "NEXUS.md").mkdir()
    (directory / ".mcp.json").symlink_to(".mcp.json")
    (directory / ".nexus3").write_text("no directory")
    if hasattr(os, "mkfifo"):
        os.mkfifo(directory / "AGENTS.md")
    layers = layers_of(fixture, "/home/a")
    assert skipped(fixture, layers)[0] == "/home/a/.nexus3 is a file, not a directory"
    assert shown(fixture, layers)[0] == "local: instructions /home/a/NEXUS.md unreadable"
    for folder in ("/home/a/file", "/home/missing/folder", "/"):
        assert layers_of(fixture, folder).layers[-1].name == "local"


def test_what_could_appear_is_watched(tmp_path: Path) -> None:
    fixture = write_fixture("//- /home/a/AGENTS.md\n", tmp_path)
    watch = {relative(fixture, path) for path in layers_of(fixture, "/home/a").watch}
    assert watch >= {
        "/home/.nexus3",
        "/home/.nexus3/NEXUS.md",
        "/home/a/.nexus3",
        "/home/a/.nexus3/NEXUS.md",
        "/home/a/NEXUS.md",
        "/home/a/AGENTS.md",
        "/home/a/AGENTS.override.md",
        "/home/a/.nexus3/config.json",
        "/home/a/.nexus3/mcp.json",
        "/home/a/.mcp.json",
        "/home/a/.vscode/mcp.json",
        "/home/a/.vscode",
        "/home/a/.claude",
        "/home/a/.agents",
    }
    assert not [path for path in watch if "nexus_context" in path]


def test_what_is_unchanged_is_not_read_or_parsed_again(tmp_path: Path) -> None:
    fixture = write_fixture('//- /home/a/.nexus3/config.json\n{"tools": {"summary": true}}\n', tmp_path)
    os.utime(tmp_path / "home/a/.nexus3/config.json", ns=(0, 0))
    first = layers_of(fixture, "/home/a")
    second = layers_of(fixture, "/home/a", previous=first)
    path = fixture.path("/home/a/.nexus3/config.json")
    assert second.memory.reads[path] is first.memory.reads[path]
    assert second.documents[path] is first.documents[path]
    assert second.effective is first.effective
    assert msgspec.structs.replace(second, memory=first.memory) == first
