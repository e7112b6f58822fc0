"""Packages that runners fetch in any version: the words that name them, and the fix where one is known."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from nexus_context.config.mcp import read_servers
from nexus_context.config.package_runners import InstalledLookup, InstalledPackage, find_unpinned
from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.installed_packages import installed_lookup
from nexus_context.text.json import parse
from support.problems import fixed

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NPX = "home/.npm/_npx/81ffe89bfc828045/node_modules"  # where libnpmexec installs `semver@latest`
DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("command", "unpinned"),
    [
        # npm
        ("npx pkg", "pkg"),
        ("npx -y pkg --port 8", "pkg"),
        ("npx -y @scope/pkg /tmp", "@scope/pkg"),
        ("npx -y pkg@latest", "pkg@latest"),
        ("npx -y @scope/pkg@next", "@scope/pkg@next"),
        ("npx -y pkg@^1.2.3", "pkg@^1.2.3"),
        ("npx -y pkg@1", "pkg@1"),
        ("npx -y pkg@1.2.3", None),
        ("npx -y pkg@v1.2.3-beta.1+build.5", None),
        ("npx -y @scope/pkg@1.2.3 --flag pkg", None),
        ("npx -y -p pkg@1 bin", "pkg@1"),
        ("npx -y -p pkg@1.0.0 bin", None),
        ("npx --package=pkg -- bin --package=other", "pkg"),
        ("npx --package @scope/pkg@2.0.0 --package other bin", "other"),
        ("npx --registry https://r.org --yes -- pkg", "pkg"),
        ("npx alias@npm:@scope/pkg@1.2.3", None),
        ("npx alias@npm:@scope/pkg", "alias@npm:@scope/pkg"),
        ("npx -y pkg@${VERSION}", None),
        ("npx --no-install pkg", None),
        ("npx --no pkg", None),
        ("npx -c 'pkg --x'", None),
        ("npx ./server", None),
        ("npx -y https://h.org/pkg-1.2.3.tgz", None),
        ("npx -y github:user/repo", "github:user/repo"),
        ("npx -y user/repo#main", "user/repo#main"),
        (f"npx -y user/repo#{COMMIT}", None),
        ("npx -y git+https://u:secret@h.org/repo.git", "git+https://u:secret@h.org/repo.git"),
        (f"npx -y git+https://h.org/repo.git#{COMMIT}", None),
        ("npx", None),
        ("npx -y", None),
        ("npx -p", None),
        ("/usr/local/bin/npx -y pkg", "pkg"),
        (r"'C:\Program Files\nodejs\npx.cmd' -y pkg", "pkg"),
        ("cmd /c npx -y pkg", "pkg"),
        ("cmd.exe /d /s /c npx.cmd -y pkg@1.2.3", None),
        ("/usr/bin/env NODE_ENV=x npx pkg", "pkg"),
        ("npm exec -- pkg", "pkg"),
        ("npm x --package=pkg bin", "pkg"),
        ("npm --prefix /srv exec pkg", "pkg"),
        ("npm run server", None),
        ("npm install pkg", None),
        ("pnpm dlx pkg", "pkg"),
        ("pnpm --package=pkg dlx bin", "pkg"),
        ("pnpx pkg@1.0.0", None),
        ("yarn dlx -p pkg bin", "pkg"),
        ("bunx --bun pkg", "pkg"),
        ("bun x pkg@1.0.0", None),
        ("bun run server.ts", None),
        # Python
        ("uvx pkg", "pkg"),
        ("uvx pkg@latest --x", "pkg@latest"),
        ("uvx pkg@1.2.3", None),
        ("uvx pkg[cli]==1.2", None),
        ("uvx --from pkg==1.2 bin", None),
        ("uvx --from pkg bin", "pkg"),
        ("uvx --from 'pkg[cli]>=1.2' bin", "pkg[cli]>=1.2"),
        ("uvx --from 'pkg>=1,==1.2' bin", None),
        ("uvx --from 'pkg==1.*' bin", "pkg==1.*"),
        ("uvx --python 3.12 --with other --from=pkg bin", "pkg"),
        ("uvx --from git+https://h.org/repo bin", "git+https://h.org/repo"),
        ("uvx --from git+https://h.org/repo@main bin", "git+https://h.org/repo@main"),
        (f"uvx --from git+https://h.org/repo@{COMMIT} bin", None),
        (f"uvx --from 'pkg @ git+https://h.org/repo@{COMMIT}' bin", None),
        ("uvx --from . bin", None),
        ("uvx --from /src/pkg bin", None),
        ("uvx --exclude-newer 2026-01-01 pkg", None),
        ("uvx --offline pkg", None),
        ("uvx python -m server", None),
        ("uv tool run pkg", "pkg"),
        ("uv run server.py", None),
        ("uv --directory /srv run server", None),
        ("uv --directory /srv tool run pkg", "pkg"),
        ("pipx run pkg", "pkg"),
        ("pipx run pkg==1.2.3", None),
        ("pipx run --spec pkg bin", "pkg"),
        ("pipx run --spec pkg==1.0 bin", None),
        ("pipx run --path server.py", None),
        ("pipx install pkg", None),
        # images
        ("docker run -i --rm mcp/pkg", "mcp/pkg"),
        ("docker run -i --rm -e TOKEN -v /a:/b mcp/pkg:1.2 serve", "mcp/pkg:1.2"),
        ("docker run -itp 80:80 ghcr.io/o/pkg:latest", "ghcr.io/o/pkg:latest"),
        ("docker run -eTOKEN=x --name pkg --network=host localhost:5000/pkg", "localhost:5000/pkg"),
        ("docker run -i --rm -e TOKEN mcp/pkg:0.5.1", None),
        ("docker run -i localhost:5000/pkg:v1.2.3-alpine", None),
        ("docker run -i mcp/pkg:22-alpine", "mcp/pkg:22-alpine"),
        (f"docker run -i mcp/pkg@{DIGEST}", None),
        (f"docker run -i mcp/pkg:1.2@{DIGEST}", None),
        ("docker run -i --pull=never mine", None),
        ("docker run --pull never mine", None),
        ("docker run -i 0123456789ab", None),
        ("docker --context x container run -i mcp/pkg", "mcp/pkg"),
        ("docker exec -i box server", None),
        ("podman run -i mcp/pkg", "mcp/pkg"),
        # servers of this machine
        ("node server.js", None),
        ("python -m server", None),
        ("/opt/server --from pkg", None),
        ("", None),
        ("env", None),
        ("cmd /c", None),
    ],
)
def test_what_is_unpinned(command: str, unpinned: str | None) -> None:
    words = shlex.split(command)
    found = [words[package.word][package.start :] for package in find_unpinned(words)]
    assert found == ([] if unpinned is None else [unpinned])


def problems_of(text: str, installed: InstalledLookup) -> list[Problem]:
    _, problems = read_servers(
        parse("/w/.mcp.json", text),
        origin="project",
        folder="/w",
        environ={},
        which=lambda command: command,
        installed=installed,
    )
    return [problem for problem in problems if problem.code == "mcp.unpinned"]


@pytest.mark.parametrize(
    ("server", "spelling", "after", "words"),
    [
        (
            {"command": "npx", "args": ["-y", "pkg@latest"]},
            "pkg@latest",
            "pkg@2.0.1",
            'Write "@2.0.1" after',
        ),
        ({"command": ["npx", "--package=pkg", "x"]}, "pkg", "pkg@2.0.1", 'Write "@2.0.1"'),
        ({"command": "uvx", "args": ["--from", "p[a]>1", "x"]}, "p[a]>1", "p[a]==2.0.1", 'Write "==2.0.1"'),
        ({"command": "pipx", "args": ["run", "pkg"]}, "pkg", "pkg==2.0.1", 'Write "==2.0.1" after'),
        ({"command": "npx", "args": ["a@npm:b@1"]}, "a@npm:b@1", "a@npm:b@2.0.1", 'Write "@2.0.1" after'),
    ],
)
def test_the_fix_writes_the_version_that_this_machine_has(
    server: dict[str, Any], spelling: str, after: str, words: str
) -> None:
    text = json.dumps({"mcpServers": {"a": server}})
    (problem,) = problems_of(text, lambda *_: InstalledPackage(version="2.0.1"))
    assert text[slice(*problem.span)] == spelling
    assert (problem.severity, words in problem.message) == (Severity.WARNING, True)
    assert spelling not in problem.message  # an argument may be a secret
    assert fixed(text, problem.fix) == text.replace(spelling, after)
    assert problems_of(fixed(text, problem.fix) or "", lambda *_: InstalledPackage()) == []


def test_without_a_known_version_there_is_no_fix() -> None:
    text = '{"mcpServers": {"a": {"command": "npx", "args": ["-y", "pk\\u0067"]}}}'
    (problem,) = problems_of(text, lambda *_: InstalledPackage())
    assert (problem.fix, text[slice(*problem.span)]) == (None, '"pk\\u0067"')
    assert problem.message.endswith('Write the version after its name, such as "@1.2.3".')
    (escaped,) = problems_of(text, lambda *_: InstalledPackage(version="1.0.0"))
    assert escaped.fix is None


@pytest.mark.parametrize(
    ("files", "command", "expected"),
    [
        (
            {"home/.npm/_npx/81ffe89bfc828045/node_modules/semver/package.json": '{"version": "7.1.0"}'},
            "npx semver@latest",
            "7.1.0",
        ),
        (
            {"home/.npm/_npx/81ffe89bfc828045/node_modules/semver/package.json": '{"version": 7}'},
            "npx semver@latest",
            None,
        ),
        (
            {"home/.npm/_npx/81ffe89bfc828045/node_modules/semver/package.json": "{"},
            "npx semver@latest",
            None,
        ),
        ({"w/node_modules/.bin/semver": ""}, "npx semver", "of the folder"),
        ({"w/node_modules/.bin/semver": ""}, "npx semver@latest", None),
        ({"node_modules/@scope/semver/package.json": "{}"}, "npx @scope/semver", "of the folder"),
        (
            {
                "home/.cache/uv/wheels-v8/pypi/my-pkg/1.9-py3-none-any": "",
                "home/.cache/uv/wheels-v8/pypi/my-pkg/1.10-py3-none-any": "",
                "home/.cache/uv/wheels-v8/pypi/my-pkg/2.0-py3-none-any.msgpack": "",
            },
            "uvx My_Pkg[cli]",
            "1.10",
        ),
        ({}, "uvx pkg", None),
        ({}, "docker run pkg", None),
    ],
)
def test_what_this_machine_has(
    tmp_path: Path, files: dict[str, str], command: str, expected: str | None
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "w").mkdir(exist_ok=True)
    (package,) = find_unpinned(command.split())
    installed = installed_lookup({"HOME": str(tmp_path / "home")})(package, str(tmp_path / "w"))
    assert ("of the folder" if installed.is_of_folder else installed.version) == expected
