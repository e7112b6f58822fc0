"""Tells which commands Gemini CLI takes for only reading in the folder, and which for dangerous.

A path escapes if it leads out of the folder, also through links, or has a variable. The names of the commands
are in `tables`.
"""

import os
import re

from nexus_context.assistants.gemini.policies import tables
from nexus_context.assistants.reading.disk import Disk

_SED = re.compile(r"(?:\d+,)?\d+p", re.ASCII)


def is_dangerous(words: list[str]) -> bool:
    """Whether Gemini CLI asks before it runs a command even if a rule without arguments allows it."""
    while words and words[0] == "sudo":
        words = words[1:]
    match words[:1]:
        case ["ln"]:
            return any(
                word in ("-s", "--symbolic") or (word[:1] == "-" and word[:2] != "--" and "s" in word)
                for word in words
            )
        case ["rm"]:
            return words[1:2] in (["-f"], ["-rf"], ["-fr"])
        case ["find"]:
            return any(word in tables()["unsafeFind"] for word in words)
        case [name] if os.path.basename(name) == "rg":
            return any(
                word in ("--search-zip", "-z") or word.split("=")[0] in ("--pre", "--hostname-bin")
                for word in words
            )
        case _:
            return False


def only_reads(words: list[str], folder: str, user_home: str, disk: Disk) -> bool:
    """Whether Gemini CLI takes a command for one that only reads, and only in the folder."""

    def escapes(word: str) -> bool:
        return _escapes(word, folder, user_home, disk)

    words = ["bash" if word == "zsh" else word for word in words]
    name, arguments = (words[0], words[1:]) if words else ("", [])
    match name:
        case "":
            return False
        case _ if name in tables()["safe"]:
            return True
        case "cd":
            paths = [argument for argument in arguments if not argument.startswith("-")]
            return not any(map(escapes, paths or ["~"]))
        case _ if name in (*tables()["safeReaders"], "grep"):
            return not any(map(escapes, _paths(arguments, name == "grep", folder, disk)))
        case "base64" | "find":
            options = ("-o", "--output=") if name == "base64" else tuple(tables()["unsafeFind"])
            writes = any(argument.startswith(options) or argument == "--output" for argument in arguments)
            return not writes and not any(
                escapes(argument) for argument in arguments if not argument.startswith("-")
            )
        case "git":
            return _is_reading_git(arguments)
        case "sed":
            is_printing = (
                len(arguments) <= 3
                and arguments[:1] == ["-n"]
                and len(arguments) > 1
                and bool(_SED.fullmatch(arguments[1]))
            )
            return is_printing and not any(map(escapes, arguments[2:]))
        case _:
            return False


def _paths(words: list[str], is_grep: bool, folder: str, disk: Disk) -> list[str]:
    """The arguments of a reader that may be paths."""
    paths, is_rest = list[str](), False
    waiting = False
    for word in words:
        if waiting or is_rest:
            paths.append(word)
            waiting = False
        elif word == "--":
            is_rest = True
        elif word == "-":
            continue
        elif is_grep and word.startswith(("-f", "--file")):
            waiting = word in ("-f", "--file")
            paths += [] if waiting else [word[7:] if word.startswith("--file=") else word[2:]]
        elif word.startswith("-") and "=" in word:
            paths.append(word.split("=", 1)[1])
        elif not word.startswith("-") or disk.exists(os.path.join(folder, word)):
            paths.append(word)
    return paths


def _escapes(word: str, folder: str, user_home: str, disk: Disk) -> bool:
    if not word:
        return False
    if "$" in word or "`" in word or (word.startswith("~") and word != "~" and not word.startswith("~/")):
        return True
    path = user_home + word[1:] if word.startswith("~") else word
    path = disk.real(os.path.normpath(os.path.join(folder, path)))
    return path != folder and not path.startswith(folder.rstrip("/") + "/")


def _is_reading_git(words: list[str]) -> bool:
    if any(word.startswith(("-c", "--config-env=")) or word == "--config-env" for word in words):
        return False
    index = 0
    while index < len(words) and words[index].startswith("-"):
        index += 2 if words[index] in tables()["gitValued"] else 1
    if index >= len(words) or words[index] not in tables()["gitReaders"]:
        return False
    arguments = words[index + 1 :]
    if any(
        argument in tables()["gitUnsafe"] or argument.startswith(("--output=", "--exec="))
        for argument in arguments
    ):
        return False
    is_listing = all(
        argument in tables()["gitBranch"] or argument.startswith("--format=") for argument in arguments
    )
    return words[index] != "branch" or is_listing
