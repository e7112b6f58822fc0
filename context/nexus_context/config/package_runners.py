"""Finds the packages that runners such as npx fetch to start a server, and whether their version is fixed.

1. Runners are npx, npm exec, pnpm dlx, yarn dlx, bunx, uvx, uv tool run, pipx run, docker run and podman run,
   also behind `env` and behind `cmd /c`, as on Windows.
2. Fixed is an exact version, a commit of a repository (all 40 digits: a shorter text may be a branch), the
   digest of an image or a tag that is an exact version, and whatever is a path or an address of a file. A
   range, another tag or nothing is not.
3. What is on this machine already is not fetched: images that are never pulled, for example. The caller finds
   out what a folder has in its `node_modules` (`InstalledPackage`).
4. A name with a reference in it is not judged.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

Kind = Literal["npm", "python", "image"]

# Patterns are strings: re compiles and keeps them on first use, not at import.
_NPM = r"((?:@[A-Za-z0-9~_.-]{1,100}/)?[A-Za-z0-9~_.-]{1,100})(?:@(.*))?"
_SEMVER = r"[v=]?\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?"
_PYTHON = r"([A-Za-z0-9][A-Za-z0-9._-]{0,100}(?:\[[\w,. -]{0,100}\])?)\s*(.*)"
_EXACT = r"(?:@|===?)\s*v?\d[\w.!+-]*"
_IMAGE = (
    r"([A-Za-z0-9][\w./-]{0,200}(?::\d{1,5}/[\w./-]{1,200})?)(?::([\w.-]{1,128}))?(@sha256:[0-9a-f]{64})?"
)
_VERSION_TAG = r"v?\d+\.\d+\.\d+[\w.-]*"
_IMAGE_ID = r"(?:sha256:)?[0-9a-f]{12,64}"
_HOSTED = r"git[+@:].*|(?:github|gitlab|bitbucket|gist):.*|[\w.-]+/[\w.-]+(?:#.*)?"
_COMMIT = r"[#@](?:[0-9a-f]{40}|[0-9a-f]{64})(?:#.*)?\Z"
_FILE = r"(?:[.~/\\]|[A-Za-z]:[\\/]|file:|https?:).*|.*\.(?:tgz|tar\.gz|whl|zip)"


class UnpinnedPackage(NamedTuple):
    """A package without a fixed version, written as `spelling` at `words[word][start:]` of a command.

    `name` is empty for a repository. A version belongs at `words[word][version_start:]`, after `separator`.
    """

    word: int
    start: int
    spelling: str
    runner: str
    kind: Kind
    name: str
    version_start: int
    separator: str


class InstalledPackage(NamedTuple):
    """What this machine has of a package. If `is_of_folder`, the folder has its own, which is started then.

    `version` is a version that the machine has, or None.
    """

    is_of_folder: bool = False
    version: str | None = None


InstalledLookup = Callable[[UnpinnedPackage, str], InstalledPackage]
"""Called with a package and the absolute directory in which its server starts."""


class _Runner(NamedTuple):
    """How a runner is called: by the words of `name`; `packages` are options for a package.

    `local` are options with which it fetches nothing. Options of `valued` are followed by a value, or for
    docker all but `flags`.
    """

    name: str
    kind: Kind
    packages: frozenset[str] = frozenset()
    valued: frozenset[str] = frozenset()
    local: frozenset[str] = frozenset()
    flags: frozenset[str] | None = None

    @property
    def program(self) -> str:
        return self.name.partition(" ")[0]

    def takes_value(self, option: str) -> bool:
        if self.flags is None:
            return option in self.valued
        if option.startswith("--"):
            return option not in self.flags
        for position, letter in enumerate(option[1:], 1):
            if f"-{letter}" not in self.flags:
                return position == len(option) - 1  # else its value is behind the letter
        return False


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NPM_VALUED = _options(
    "-c --call -w --workspace --registry --cache --prefix --userconfig --loglevel --node-options "
    "--script-shell --shell --before -C --dir --filter"
)
_UV_VALUED = _options(
    "--with --with-editable --with-requirements -w -p --python --index --default-index -i --index-url "
    "--extra-index-url -f --find-links --index-strategy --keyring-provider --resolution --prerelease "
    "--link-mode -P --upgrade-package --cache-dir --directory --project --config-file --color "
    "--refresh-package --reinstall-package -C --config-setting --env-file -c --constraints --overrides "
    "-b --build-constraints --torch-backend --python-platform"
)
_DOCKER_FLAGS = _options(
    "-d --detach -i --interactive -t --tty --rm --init --privileged --read-only -P --publish-all -q --quiet "
    "--no-healthcheck --oom-kill-disable --sig-proxy --disable-content-trust --use-api-socket -D --debug "
    "--tls --tlsverify"
)
_NPM_RUNNERS = ("npx", "npm exec", "npm x", "pnpx", "pnpm dlx", "yarn dlx", "bunx", "bun x")
_RUNNERS = (
    *(
        _Runner(
            name,
            "npm",
            packages=_options("-p --package"),
            valued=_NPM_VALUED,
            local=_options("--no --no-install"),
        )
        for name in _NPM_RUNNERS
    ),
    *(
        _Runner(
            name,
            "python",
            packages=_options("--from"),
            valued=_UV_VALUED,
            local=_options("--exclude-newer --offline"),
        )
        for name in ("uvx", "uv tool run")
    ),
    _Runner(
        "pipx run",
        "python",
        packages=_options("--spec"),
        valued=_options("--python --pip-args -i --index-url --with"),
        local=_options("--path"),
    ),
    *(
        _Runner(name, "image", local=_options("--pull=never"), flags=_DOCKER_FLAGS)
        for name in ("docker run", "docker container run", "podman run", "podman container run")
    ),
)
_PROGRAMS = frozenset(runner.program for runner in _RUNNERS)
_EVALUATING = re.compile("[$%`]")
_LONGEST = 400  # characters of a package, its version and all


def find_unpinned(words: Sequence[str]) -> list[UnpinnedPackage]:
    """Find the packages without a fixed version in a command, which is a program and its arguments."""
    at = _skip_wrappers(words)
    if at >= len(words) or _program(words[at]) not in _PROGRAMS:
        return []
    runner, end = _find_runner(words, at)
    if runner is None:
        return []
    packages = []
    options = [
        (position, option)
        for position, option in _positions(words, at + 1, runner)
        if option and position < end
    ]
    for index, start in _package_words(words, [*options, *_positions(words, end, runner)], runner):
        text = words[index][start:]
        is_judged = len(text) <= _LONGEST and not _EVALUATING.search(text)
        judged = _JUDGES[runner.kind](text) if is_judged else None
        if judged is None:
            continue
        name, length = judged
        is_requirement = runner.kind == "python" and (start > 0 or words[index - 1] in runner.packages)
        package = UnpinnedPackage(
            word=index,
            start=start,
            spelling=text,
            runner=runner.name,
            kind=runner.kind,
            name=name,
            version_start=start + length,
            separator="==" if is_requirement or runner.program == "pipx" else "@",
        )
        packages.append(package)
    return packages


def explain_unpinned(package: UnpinnedPackage, version: str | None) -> str:
    """Explain why a package is unpinned and what to write. `version` is one that this machine has, or None.

    No word of the command is in it: an argument may be a secret.
    """
    runner, separator = package.runner, package.separator
    if package.kind == "image":
        return (
            f"{runner} starts whatever image has this name at that moment. Write its version, such as "
            '":1.2.3", or its digest, "@sha256:…", or --pull=never for an image of your own.'
        )
    if not package.name:
        mark = "#" if package.kind == "npm" else "@"
        return (
            f"{runner} starts whatever this repository has at that moment. Write a commit behind it: "
            f'"{mark}" and all 40 digits.'
        )
    remedy = (
        f'Write the version after its name, such as "{separator}1.2.3".'
        if version is None
        else f'Write "{separator}{version}" after its name: this machine has that version.'
    )
    return f"{runner} starts whatever version of this package is the newest at that moment. {remedy}"


def _skip_wrappers(words: Sequence[str]) -> int:
    at = 0
    while at < len(words) and (program := _program(words[at])) in ("cmd", "env"):
        at += 1
        while at < len(words) and (words[at].startswith("/") if program == "cmd" else "=" in words[at]):
            at += 1
    return at


def _program(word: str) -> str:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.sub(r"\.(?:exe|cmd|bat|ps1)\Z", "", name)


def _find_runner(words: Sequence[str], at: int) -> tuple[_Runner | None, int]:
    """The runner that is called at a word, and where its own words begin."""
    program = _program(words[at])
    for runner in _RUNNERS:
        runner_program, *subcommands = runner.name.split()
        if runner_program != program:
            continue
        if not subcommands:
            return runner, at + 1
        begin = next(
            (position for position, option in _positions(words, at + 1, runner) if option is None), 0
        )
        end = begin + len(subcommands)
        if begin and list(words[begin:end]) == subcommands:
            return runner, end
    return None, at


def _package_words(
    words: Sequence[str], positions: Sequence[tuple[int, str | None]], runner: _Runner
) -> list[tuple[int, int]]:
    """Index and offset of each package: from its options, else the first word that is not an option."""
    named: list[tuple[int, int]] = []
    for position, option in positions:
        if option is None:
            return named or [(position, 0)]
        name, assigned, value = option.partition("=")
        option_value = value if assigned else "".join(words[position + 1 : position + 2])
        if not runner.local.isdisjoint({name, f"{name}={option_value}"}):
            return []
        if name in runner.packages:
            named.append((position, len(name) + 1) if assigned else (position + 1, 0))
    return [(index, start) for index, start in named if index < len(words)]


def _positions(words: Sequence[str], at: int, runner: _Runner) -> Iterator[tuple[int, str | None]]:
    """The options from a word on, each with its index, and at last the first word that is none."""
    while at < len(words) and words[at].startswith("-") and words[at] != "--":
        option = words[at]
        yield at, option
        has_value = "=" not in option and (option in runner.packages or runner.takes_value(option))
        at += 2 if has_value else 1
    if at < len(words):
        at += words[at] == "--"
    if at < len(words):
        yield at, None


def _judge_npm(text: str) -> tuple[str, int] | None:
    if re.fullmatch(_FILE, text, re.DOTALL):
        return None
    match = re.fullmatch(_NPM, text)
    if match is None:
        is_open = re.fullmatch(_HOSTED, text) and not re.search(_COMMIT, text)
        return ("", len(text)) if is_open else None
    name, version = match[1], match[2] or ""
    if version.startswith("npm:"):
        aliased = _judge_npm(version.removeprefix("npm:"))
        return aliased and (aliased[0], match.start(2) + len("npm:") + aliased[1])
    return None if re.fullmatch(_SEMVER, version) else (name, match.end(1))


def _judge_python(text: str) -> tuple[str, int] | None:
    address = text.partition(" @ ")[2].strip() or text
    if address.startswith("git+"):
        return None if re.search(_COMMIT, address) else ("", len(text))
    match = re.fullmatch(_PYTHON, text)
    if match is None or re.fullmatch(_FILE, address, re.DOTALL) or match[1] == "python":
        return None
    is_exact = any(re.fullmatch(_EXACT, clause.strip()) for clause in match[2].split(","))
    return None if is_exact else (match[1], match.end(1))


def _judge_image(text: str) -> tuple[str, int] | None:
    match = re.fullmatch(_IMAGE, text)
    if match is None or re.fullmatch(_IMAGE_ID, text):
        return None
    is_fixed = match[3] or re.fullmatch(_VERSION_TAG, match[2] or "")
    return None if is_fixed else (match[1], len(text))


_JUDGES: dict[Kind, Callable[[str], tuple[str, int] | None]] = {
    "npm": _judge_npm,
    "python": _judge_python,
    "image": _judge_image,
}
"""The name of a package, "" for a repository, and where a version belongs; None if nothing is open."""
