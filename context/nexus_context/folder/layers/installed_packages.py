"""Finds the packages that a folder, npx and uv have on this machine.

It looks at the disk and starts no process.
"""

import functools
import hashlib
import os
import re
from collections.abc import Mapping, Sequence

import msgspec

from nexus_context.config.package_runners import InstalledLookup, InstalledPackage, UnpinnedPackage
from nexus_context.disk.files import exists, is_dir, list_directory, read_text

_VERSION = re.compile(r"\d[0-9A-Za-z.+!-]{0,60}")
_MOST_ABOVE = 20  # directories whose `node_modules` count
_MOST_WHEELS = 200
_LARGEST = 1 << 20  # bytes of a package.json


def installed_lookup(environ: Mapping[str, str]) -> InstalledLookup:
    """Return a function that finds packages. It lists each directory of a cache once.

    `environ` says where the caches of npx and uv are.
    """
    home = environ.get("HOME") or environ.get("USERPROFILE") or os.sep
    npx = os.path.join(environ.get("npm_config_cache") or os.path.join(home, ".npm"), "_npx")
    uv = environ.get("UV_CACHE_DIR") or os.path.join(
        environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "uv"
    )
    modules_at = functools.cache(_modules_at)
    shelves_of = functools.cache(_shelves_of)

    def look_up(package: UnpinnedPackage, directory: str) -> InstalledPackage:
        if package.kind == "npm" and package.name:
            if package.spelling == package.name and _is_in(modules_at(directory), package.name):
                return InstalledPackage(is_of_folder=True)
            return InstalledPackage(version=_of_npx(package, npx))
        if package.runner.startswith("uv") and package.name:
            return InstalledPackage(version=_of_uv(package.name, shelves_of(uv)))
        return InstalledPackage()

    return look_up


def _modules_at(directory: str) -> list[str]:
    """The `node_modules` of a directory and of those above it."""
    directories = []
    for _ in range(_MOST_ABOVE):
        modules = os.path.join(directory, "node_modules")
        if is_dir(modules):
            directories.append(modules)
        directory, previous_directory = os.path.dirname(directory), directory
        if directory == previous_directory:
            break
    return directories


def _is_in(modules: Sequence[str], name: str) -> bool:
    """Whether npx would start what a folder has: a program of this name, or a package with a scope."""
    relative_path = name if name.startswith("@") else os.path.join(".bin", name)
    return any(exists(os.path.join(node_modules, relative_path)) for node_modules in modules)


def _of_npx(package: UnpinnedPackage, cache: str) -> str | None:
    """npx installs beneath the hash of what it was told (libnpmexec)."""
    install_hash = hashlib.sha512(package.spelling.encode("utf-8", "replace")).hexdigest()[:16]
    path = os.path.join(cache, install_hash, "node_modules", f"{package.name}/package.json")
    try:
        manifest = msgspec.json.decode(read_text(path, limit=_LARGEST).text or "null")
    except msgspec.MsgspecError:
        return None
    version = manifest.get("version") if isinstance(manifest, dict) else None
    return version if isinstance(version, str) and _VERSION.fullmatch(version) else None


def _shelves_of(cache: str) -> list[str]:
    """The directories in which uv keeps wheels, `wheels-v<number>/pypi/<name>/<version>-<tags>`."""
    return [
        os.path.join(cache, name, "pypi")
        for name, _ in list_directory(cache) or ()
        if name.startswith("wheels-v")
    ]


def _of_uv(name: str, shelves: Sequence[str]) -> str | None:
    """The newest version of which uv keeps a whole wheel; uv also keeps metadata of other versions."""
    plain = re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()
    versions = {
        entry.partition("-")[0]
        for shelf in shelves
        for entry, _ in list_directory(os.path.join(shelf, plain), _MOST_WHEELS) or ()
        if not entry.endswith((".msgpack", ".http", ".lock"))
    }
    release_versions = [version for version in versions if re.fullmatch(r"\d+(?:\.\d+){0,9}", version)]
    return max(release_versions, key=lambda version: [int(part) for part in version.split(".")], default=None)
