"""Files that are made to cost time: no load of one takes long, whatever is in it.

1. A file is one of those that a folder may have, at most SIZE characters long, made in one of two ways.
2. Repetition: some tokens that mean something there (a fence, a quote, half a reference, a wildcard), one
   after the other, again and again. That is how work becomes quadratic, in a regular expression or a loop.
3. Structure: valid JSON, or nearly, with as many patterns, agents, servers, keys and errors as fit.
4. Besides, each of KNOWN_ATTACKS, whatever its size: all of them once took seconds, or did not end.
5. A load is timed by the processor time of this process, so that what else the machine does counts less.
"""

import gc
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nexus_context.folder.loading import load
from nexus_context.folder.snapshot import Snapshot
from support.folders import load_inputs
from torture.figures import Figure, Outcome, Watch, dice_of, nothing_wrong, p95

SIZE = 65_536
SLOWEST = 5  # loads that are told if one takes too long

CONFIG, MCP, PROMPT, SKILL = (
    ".nexus3/config.json",
    ".nexus3/mcp.json",
    ".nexus3/NEXUS.md",
    ".nexus3/skills/s/SKILL.md",
)
JSON_FILES = (CONFIG, MCP, ".mcp.json", ".vscode/mcp.json")
TEXT_FILES = (PROMPT, ".nexus3/AGENT.md", ".nexus3/SOUL.md", "README.md", SKILL)
TEXT = (
    *("`", "``", "```\n", "````", "~~~\n", "~~~", "<!--", "-->", "<", ">", "[//]: # (", "](", "[", "]", "|"),
    *(
        "@",
        "@x ",
        "@x.md\n",
        "@./a/",
        "@../",
        "@~/",
        "a/",
        "\\ ",
        "\\",
        "# ",
        "###### a\n",
        "=\n",
        "- ",
        "> ",
    ),
    *("1. ", "\n", "\r", "\r\n", "\n\n", " ", "\t", "    ", "\f", "\v", "\x85", "\u2028", "\0", "\x1b["),
    *("http://", "https://a:b@", "://", "?token=", "&", "%", "password=", "token: ", "Cookie: ", "--token "),
    *("sk-", "sk-ant-", "ghp_", "eyJ", "AKIA", "xox", "-----BEGIN PRIVATE KEY-----", "-----END", "Bearer "),
    *(
        "A1b2C3d4",
        "deadbeef",
        "0",
        "9",
        "a",
        "A",
        "_",
        "-",
        ".",
        "=",
        ":",
        ";",
        ",",
        '"',
        "'",
        "$",
        "${",
        "}",
    ),
    *(
        "${X:-",
        "{",
        "(",
        ")",
        "*",
        "**",
        "?",
        "!",
        "---\n",
        "...\n",
        "&a ",
        "*a ",
        "!t ",
        "? ",
        "name: ",
        "|\n",
    ),
    *(
        "\u200b",
        "\u200d",
        "\ufe0f",
        "\u200f",
        "\u202e",
        "\U000e0041",
        "\u00ad",
        "\ufeff",
        "é",
        "漢",
        "א",
        "😀",
    ),
)
JSON_TOKENS = (
    *(
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"',
        "'",
        "\\",
        '\\"',
        "\\u",
        "\\ud800",
        "\\u00e9",
        '"a"',
        '"a":',
        '"a":1,',
    ),
    *(
        "1",
        "-",
        "1e",
        "9" * 50,
        ".",
        "true",
        "tru",
        "null",
        "nul",
        "/*",
        "*/",
        "//",
        "#",
        "\n",
        " ",
        "\t",
        "\0",
    ),
    *(
        '"agents":{',
        '"servers":{',
        '"tools":[',
        '"context":{',
        '"_comment":',
        "${",
        "${X:-",
        "é",
        "😀",
        "\u2028",
    ),
)
FRONT = "---\nname: s\ndescription: d\n"
LISTS = (
    *("permissions.allow", "permissions.deny", "tools.disabled", "skills.include", "skills.exclude"),
    *("skills.paths", "context.instruction_files", "context.sections", "memory.knowledge.paths"),
    *("agents.a.tools", "agents.a.permissions.allow", "agents.a.permissions.deny"),
)
KEYS = (
    "provider",
    "context",
    "agents",
    "permissions",
    "tools",
    "skills",
    "memory",
    "name",
    "model",
    "servers",
)

Files = dict[str, str]


def _config(value: Any) -> Files:
    return {CONFIG: json.dumps(value)}


KNOWN_ATTACKS: dict[str, tuple[Callable[[], Files], int]] = {
    "32 KB: two patterns of wildcards": (
        lambda: _config(
            {
                "agents": {
                    "a": {"tools": ["*a" * 120 + str(n) for n in range(60)]},
                    "b": {"parent": "a", "tools": ["a*" * 120 + f"b{n}" for n in range(60)]},
                }
            }
        ),
        1,
    ),
    "32 KB: one pattern against another": (
        lambda: _config(
            {"agents": {"a": {"tools": ["*a" * 8_000]}, "b": {"parent": "a", "tools": ["a*" * 8_000 + "b"]}}}
        ),
        1,
    ),
    "3,000 patterns for 500 skills": (
        lambda: (
            {f".nexus3/skills/s{n}/SKILL.md": f"---\nname: s{n}\ndescription: d\n---\n" for n in range(500)}
            | _config({"skills": {"include": [f"*x{n}*" for n in range(3_000)]}})
        ),
        3,
    ),
    "60,000 patterns that switch tools off": (
        lambda: _config(
            {
                "tools": {"disabled": [f"*x{n}" for n in range(60_000)]},
                "agents": {"a": {"tools": [f"t{n}" for n in range(100)]}},
            }
        ),
        10,
    ),
    "1 MB of agents": (
        lambda: _config({"agents": {f"a{n}": {"role": "worker", "task": "x" * 20} for n in range(20_000)}}),
        10,
    ),
    "500 KB of names of instruction files": (
        lambda: _config({"context": {"instruction_files": [f"N{n}.md" for n in range(40_000)]}}),
        5,
    ),
    "1 MiB of code fences": (lambda: {PROMPT: "```\n@x.md\n" * 104_857}, 5),
}
"""Files by what they are, and how many times longer than a file of SIZE each may take."""


def run(files: int, seed: int = 1, at_most_ms: float = 200.0) -> Outcome:
    """So many files, each loaded alone in a folder that has a skill and a server."""
    watch = Watch()
    gc.collect()
    gc.freeze()  # else the collection before each load walks through all that this process made before
    times: list[tuple[float, str]] = []
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nexus-adversarial-") as root:
        time_load(Path(root), {PROMPT: "What is loaded once, on the first need. " * 1_000, CONFIG: "{,}"})
        known = [_known_attack(Path(root), name, at_most_ms) for name in KNOWN_ATTACKS]
        for number in range(files):
            made = adversarial_files(dice_of(seed * 1_000_003 + number))
            try:
                seconds = time_load(Path(root), made)
            except Exception as error:  # noqa: BLE001 - it is what is looked for
                wrong.append(f"file {number} (seed {seed}): {type(error).__name__}: {error}")
                continue
            times.append((1e3 * seconds, f"file {number} (seed {seed}): {_shown(made)}"))
    times.sort(reverse=True)
    slow = [f"{spent:.0f} ms, {shown}" for spent, shown in times[:SLOWEST] if spent > at_most_ms]
    every = [spent for spent, _ in times]
    figures = (
        Figure("files", len(times), at_least=files),
        Figure("loads, 95th percentile", p95(every), "ms"),
        Figure("loads, longest", max(every, default=0.0), "ms", at_most=at_most_ms),
        *known,
        nothing_wrong(wrong),
    )
    return Outcome("adversarial files", figures, (*wrong, *slow), seconds=watch.seconds)


def _known_attack(root: Path, name: str, at_most_ms: float) -> Figure:
    files, times_longer = KNOWN_ATTACKS[name]
    return Figure(name, 1e3 * time_load(root, files()), "ms", at_most=times_longer * at_most_ms)


def time_load(root: Path, files: Files) -> float:
    """Seconds of the processor that a load of a new folder with these files takes."""
    folder = root / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
    gc.collect()
    started = time.process_time()
    _load(root, str(folder))
    return time.process_time() - started


def _load(root: Path, folder: str) -> Snapshot:
    return load(folder, load_inputs(str(root / "home")))


def adversarial_files(dice: random.Random) -> Files:
    """One file of a folder that is made to cost time, and a few others that it can cost it with."""
    make = dice.choice((_repeated_text, _repeated_json, _settings, _servers, _skill, _nested))
    name, text = make(dice)
    others = {SKILL: FRONT + "---\nx", MCP: '{"servers": {"git": {"command": "git"}}}'}
    return {**others, name: text[:SIZE]}


def _shown(files: Files) -> str:
    name, text = (
        list(files.items())[-1] if len(files) > 2 else max(files.items(), key=lambda each: len(each[1]))
    )
    return f"{name} {text[:70]!r}… ({len(text)} characters)"


def _repeated(dice: random.Random, tokens: tuple[str, ...]) -> str:
    """One to three parts, each some tokens again and again, or chosen anew each time."""
    parts = dice.choice((1, 1, 2, 3))
    text = ""
    for _ in range(parts):
        unit = [dice.choice(tokens) for _ in range(dice.choice((1, 1, 2, 2, 3, 5)))]
        once = "".join(unit)
        length = SIZE // parts
        if dice.random() < 0.8:
            text += once * (length // len(once))
        else:
            text += "".join(dice.choice(unit) for _ in range(length // max(map(len, unit))))
    return text


def _repeated_text(dice: random.Random) -> tuple[str, str]:
    return dice.choice(TEXT_FILES), _repeated(dice, TEXT)


def _repeated_json(dice: random.Random) -> tuple[str, str]:
    begin = dice.choice(
        ("", "{", "[", '{"a":', '{"agents":{', '{"servers":{"x":', '{"', '{"tools":{"disabled":["')
    )
    return dice.choice(JSON_FILES), begin + _repeated(dice, JSON_TOKENS)


def _skill(dice: random.Random) -> tuple[str, str]:
    begin = dice.choice(
        (FRONT, f"{FRONT}allowed-tools: ", f"{FRONT}metadata:\n  ", f"{FRONT}examples:\n", "---\nname: ")
    )
    return SKILL, begin + _repeated(dice, TEXT)[: dice.choice((1_000, 16_000, SIZE))] + dice.choice(
        ("", "\n---\nx")
    )


def _nested(dice: random.Random) -> tuple[str, str]:
    begin, end = dice.choice(
        (("[", "]"), ('{"a":', "}"), ('[{"a":', "}]"), ('{"context":', "}"), ("[[],", "]"))
    )
    depth = SIZE // (len(begin) + len(end))
    return dice.choice(JSON_FILES), begin * depth + dice.choice(("1", "", '"')) + end * depth


def _settings(dice: random.Random) -> tuple[str, str]:
    value: dict[str, Any] = {}
    room = SIZE * 9 // 10
    make: Callable[[], Any] = dice.choice(
        (
            lambda: _put(value, dice.choice(LISTS), _texts(dice, room)),
            lambda: _put_all(value, {place: _texts(dice, room // 3) for place in dice.sample(LISTS, 3)}),
            lambda: _put(value, "agents", _agents(dice, room)),
            lambda: _put(
                value, dice.choice(("", "context", "agents", "models", "agents.a")), _unknown(dice, room)
            ),
            lambda: _put(value, "provider.headers", {text: text for text in _texts(dice, room // 2)}),
            lambda: _put(value, "context.sections", _sections(dice, room)),
            lambda: _put(
                value,
                "models",
                {text: {"context_window": 10 ** dice.randrange(400)} for text in _texts(dice, room // 8)},
            ),
        )
    )
    make()
    return CONFIG, _spoiled(dice, json.dumps(value, ensure_ascii=dice.random() < 0.5))


def _servers(dice: random.Random) -> tuple[str, str]:
    unit = dice.choice(("a", "${", "${A", "${A:-", "}", "https://", "x", "sk-", "/", "é", "${input:", " "))
    text = unit * dice.choice((1, 5, 200, 5_000))
    server = dice.choice(
        (
            {"command": "x"},
            {"command": text, "args": [text]},
            {"url": f"http://{text}", "headers": {"Authorization": text}},
            {"command": "x", "env": {f"K{number}": text for number in range(dice.choice((1, 30)))}},
            {"comand": text, "arg": 1},
            {"command": [text] * 5, "url": text},
        )
    )
    count = max(SIZE * 9 // 10 // (len(json.dumps(server)) + 12), 1)
    names = [f"s{number}" if dice.random() < 0.9 else "same" for number in range(count)]
    inner = ",".join(f"{json.dumps(name)}:{json.dumps(server)}" for name in names)
    listed = ",".join(json.dumps({"name": name, **server}) for name in names)
    form = dice.choice(('{"servers":{%s}}', '{"mcpServers":{%s}}', '{"servers":[%s]}'))
    return dice.choice(JSON_FILES[1:]), _spoiled(dice, form.replace("%s", listed if "[" in form else inner))


def _texts(dice: random.Random, room: int) -> list[str]:
    """Patterns and names, many short or few long ones, alike at their beginning, their end or nowhere."""
    unit = dice.choice(("*a", "a*", "?", "[a-z]", "[!a]", "ab", "*", "**", "a?*", "[", "x.", "mcp__"))
    length = dice.choice((1, 3, 10, 60, 120, 5_000))
    count = max(room // (len(unit) * length + 10), 1)
    whole = unit * length
    form = dice.choice(("{whole}{n}", "{n}{whole}", "*{n}{whole}b", "{whole}"))
    return [form.format(whole=whole, n=number) for number in range(count)]


def _agents(dice: random.Random, room: int) -> dict[str, Any]:
    texts = _texts(dice, room // dice.choice((2, 4, 20)))
    count = dice.choice((1, 5, 50, 500, 2_000))
    share = max(len(texts) // count, 1)
    agents: dict[str, Any] = {}
    for number in range(count):
        parent = dice.choice(
            ("main", f"n{number - 1}", f"n{number // 2}", f"m{number}", f"n{(number + 1) % count}")
        )
        tools = texts[number * share : (number + 1) * share]
        agent = {"parent": parent, "tools": tools, "permissions": {"allow": tools[:5]}, "cwd": f"d{number}"}
        agents[f"n{number}"] = {key: agent[key] for key in dice.sample(sorted(agent), dice.choice((1, 2, 4)))}
    return agents


def _unknown(dice: random.Random, room: int) -> dict[str, Any]:
    """Keys that are nearly those that there are."""
    letters = "abcdefghijklmnopqrstuvwxyz_"
    long = dice.choice((0, 0, 70))
    keys = (
        f"{dice.choice(KEYS)}{dice.choice(letters)}{dice.choice(letters)}{'a' * long}{n}"
        for n in range(9_999)
    )
    return {
        key: dice.choice((1, "x", [], {}, None, 1e308))
        for key, _ in zip(keys, range(room // (20 + long)), strict=False)
    }


def _sections(dice: random.Random, room: int) -> list[Any]:
    name = dice.choice(("n", "n" * 500, "n "))
    same = dice.random() < 0.5
    count = room // (len(name) + 40)
    return [{"name": name if same else f"{name}{number}", "content": "x"} for number in range(count)]


def _put_all(value: dict[str, Any], places: dict[str, Any]) -> None:
    for place, inner in places.items():
        _put(value, place, inner)


def _put(value: dict[str, Any], place: str, inner: Any) -> None:
    *steps, last = place.split(".")
    for step in steps:
        value = value.setdefault(step, {})
    if last:
        value[last] = inner
    else:
        value.update(inner)


def _spoiled(dice: random.Random, text: str) -> str:
    """The text, often with one kind of mistake in many places."""
    wrong = dice.choice(
        (None, None, (",", ""), (":", ""), ('"', "'"), ("}", "]"), (",", ",,"), ('"', '""'), ("]", ""))
    )
    return text if wrong is None else text.replace(*wrong, dice.choice((1, 30, -1)))
