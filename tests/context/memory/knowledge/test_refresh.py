"""The knowledge base: which files it selects, that the index follows the disk, and that nothing breaks it."""

import operator
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from nexus_context.folder.layers.read_layers import read_layers
from nexus_context.memory.knowledge import KnowledgeIndex, Settings, index_path, query, refresh, settings_of
from nexus_context.memory.knowledge.passage_index import (
    VERSION,
    Changed,
    IndexBusyError,
    Indexed,
    IndexLostError,
)
from nexus_context.tokens import SimpleTokenCounter
from support.fixture import write_fixture
from support.folders import load_inputs

FOLDER = "/home/work/app"
COUNTER = SimpleTokenCounter()


class Base:
    """A folder with a knowledge base, on the disk."""

    def __init__(self, root: Path, fixture: str = "") -> None:
        self.root = root
        (root / "home/work/app").mkdir(parents=True, exist_ok=True)
        write_fixture(fixture, root) if fixture else None
        self.index = KnowledgeIndex(index_path(str(root / FOLDER[1:]), {"NEXUS_STATE": str(root / "state")}))

    def settings(self) -> tuple[Settings, list[str]]:
        layers = read_layers(str(self.root / FOLDER[1:]), load_inputs(str(self.root / "home")))
        settings, problems = settings_of(layers, str(self.root / "home"))
        texts = layers.texts
        return settings, [
            f"{each.code} {texts[each.path][slice(*each.span)]}: {each.message}".replace(str(self.root), "")
            for each in problems
        ]

    def refresh(self, *changed: str) -> list[str]:
        """The result of a refresh: counts, problems, skipped files."""
        paths = {str(self.root / path[1:]) for path in changed} if changed else None
        done = refresh(self.index, self.settings()[0], changed=paths)
        told = [each.message for each in done.problems]
        told += [f"{each.path}: {each.reason}" for each in done.skipped]
        return [f"{done.changed} changed, {done.removed} removed"] + [
            line.replace(str(self.root), "") for line in told
        ]

    def files(self) -> list[str]:
        return sorted(path.removeprefix(str(self.root)) for path in self.index.indexed_files())

    def ask(self, message: str) -> list[str]:
        found = query(self.index, message, COUNTER, top_k=5, max_tokens=1000)
        return [f"{os.path.basename(each.path)} {each.heading}: {each.text}" for each in found]


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Callable[[str], Base]]:
    made: list[Base] = []

    def make(fixture: str) -> Base:
        made.append(Base(tmp_path, fixture))
        return made[-1]

    yield make
    for each in made:
        each.index.close()


def config(*paths: str) -> str:
    listed = ", ".join(f'"{path}"' for path in paths)
    return f'{{"memory": {{"knowledge": {{"paths": [{listed}]}}}}}}\n'


def check(base: Base, files: list[str], *problems: str) -> None:
    """The index of a folder, and the problems of its settings and files."""
    _, said = base.settings()
    told = base.refresh()[1:]
    assert (base.files(), [*said, *told]) == (files, list(problems))


def test_files_of_a_directory(base: Callable[[str], Base]) -> None:
    check(
        base(
            f"""
            //- {FOLDER}/.nexus3/config.json
            {config("docs")}
            //- {FOLDER}/docs/a.md
            a
            //- {FOLDER}/docs/deep/er/B.TXT
            b
            //- {FOLDER}/docs/c.rst
            c
            //- {FOLDER}/docs/code.py
            no
            //- {FOLDER}/docs/.hidden/x.md
            no
            //- {FOLDER}/docs/.hidden.md
            no
            //- {FOLDER}/docs/node_modules/x.md
            no
            //- {FOLDER}/docs/.git/x.md
            no
            //- {FOLDER}/other/x.md
            no
            """
        ),
        [f"{FOLDER}/docs/a.md", f"{FOLDER}/docs/c.rst", f"{FOLDER}/docs/deep/er/B.TXT"],
    )


def test_files_and_globs(base: Callable[[str], Base]) -> None:
    check(
        base(
            f"""
            //- {FOLDER}/.nexus3/config.json
            {config("README.md", "docs/*.md", "**/notes/?.txt", "missing.md", "docs/*.rst")}
            //- {FOLDER}/README.md
            a
            //- {FOLDER}/docs/a.md
            b
            //- {FOLDER}/docs/deep/a.md
            no
            //- {FOLDER}/notes/1.txt
            c
            //- {FOLDER}/x/y/notes/2.txt
            d
            //- {FOLDER}/x/y/notes/10.txt
            no
            """
        ),
        [f"{FOLDER}/{name}" for name in ("README.md", "docs/a.md", "notes/1.txt", "x/y/notes/2.txt")],
        f"{FOLDER}/missing.md does not exist. Create it or correct the path.",
        f"There are no text files at {FOLDER}/docs/*.rst. Correct the path.",
    )


HIDDEN = (".ssh", ".env")
FINE = (".github", ".")
OUT = (
    f"This path is ignored: it leads out of {FOLDER}. A file of a workspace may name what is beneath its "
    "folder only; name other files in the global config.json."
)


def test_what_a_workspace_may_not_name(base: Callable[[str], Base]) -> None:
    made = base(
        f"""
        //- {FOLDER}/.nexus3/config.json
        {config("../secret.md", "~/secret.md", "{root}/home/secret.md", "link", *HIDDEN, "key.pem", *FINE)}
        //- /home/secret.md
        no
        //- /home/other/a.md
        no
        //- {FOLDER}/.env
        no
        //- {FOLDER}/key.pem
        no
        //- {FOLDER}/.ssh/a.md
        no
        //- {FOLDER}/.github/a.md
        yes
        //- {FOLDER}/b.md
        yes
        """
    )
    app = made.root / FOLDER[1:]
    (app / "link").symlink_to(made.root / "home/other")
    (app / "linked.md").symlink_to(made.root / "home/secret.md")
    (app / "inside.md").symlink_to(app / "b.md")
    (app / "directory.md").symlink_to(app / ".github")
    allowed = (
        "of hidden directories only .nexus3, .claude, .agents, .github, .cursor are read. Move the files."
    )
    suffixes = "a workspace names only directories and files that end in "
    suffixes += ".md, .markdown, .txt, .rst, .adoc, .mdx, .mdc, .text, .asciidoc, .org"
    check(
        made,
        [f"{FOLDER}/.github/a.md", f"{FOLDER}/b.md", f"{FOLDER}/inside.md"],
        f'config.scope "../secret.md": {OUT}',
        f'config.scope "{made.root}/home/secret.md": {OUT}'.replace(str(made.root), ""),
        f'config.scope "link": {OUT}',
        f'config.scope ".ssh": This path is ignored: .ssh is hidden, and {allowed}',
        f'config.scope ".env": This path is ignored: .env is hidden, and {allowed}',
        f'config.scope "key.pem": This path is ignored: {suffixes}.',
        f"{FOLDER}/~/secret.md does not exist. Create it or correct the path.",
    )


def test_what_the_global_file_may_name(base: Callable[[str], Base]) -> None:
    made = base(
        f"""
        //- /home/.nexus3/config.json
        {config("notes", "~/wiki", "{root}/elsewhere/a.log", "~/w*/*.py")}
        //- /home/.nexus3/notes/a.md
        a
        //- /home/wiki/b.md
        b
        //- /home/work/c.py
        c
        //- /elsewhere/a.log
        d
        //- /elsewhere/secret.md
        no
        """
    )
    (made.root / "home/wiki/link.md").symlink_to(made.root / "elsewhere/secret.md")
    check(made, ["/elsewhere/a.log", "/home/.nexus3/notes/a.md", "/home/wiki/b.md", "/home/work/c.py"])


BIG = "The file is too large: 1,048,577 bytes, and at most 1,048,576 bytes are read. Make it shorter."
LATIN = "The file is not UTF-8: byte 0xE9 at byte 3 (unexpected end of data). Save the file as UTF-8."


def test_what_cannot_be_indexed_is_told(base: Callable[[str], Base]) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/a.md\na\n")
    docs = made.root / FOLDER[1:] / "docs"
    (docs / "binary.md").write_bytes(b"a\0b")
    (docs / "latin.txt").write_bytes(b"caf\xe9")
    (docs / "big.md").write_bytes(b"x" * ((1 << 20) + 1))
    os.mkfifo(docs / "fifo.md")
    assert made.refresh() == [
        "1 changed, 0 removed",
        f"{FOLDER}/docs/big.md: {BIG}",
        f"{FOLDER}/docs/binary.md: The file holds 1 NUL characters (U+0000): it is not text. Remove them.",
        f"{FOLDER}/docs/latin.txt: {LATIN}",
    ]
    assert made.files() == [f"{FOLDER}/docs/a.md"]


def test_too_many_files(base: Callable[[str], Base], monkeypatch: pytest.MonkeyPatch) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/0.md\na\n")
    for number in range(1, 4):
        (made.root / FOLDER[1:] / f"docs/{number}.md").write_text("a")
    monkeypatch.setattr("nexus_context.memory.knowledge.file_selection.MOST_FILES", 3)
    check(
        made,
        [f"{FOLDER}/docs/{number}.md" for number in range(3)],
        "There are too many files: only the first 3 files are indexed. Name fewer directories, or use "
        "patterns.",
    )


# ---------------------------------------------------------------- following the disk


def test_the_index_follows_the_disk(base: Callable[[str], Base]) -> None:
    made = base(
        f"""
        //- {FOLDER}/.nexus3/config.json
        {config("docs")}
        //- {FOLDER}/docs/a.md
        # Apples
        red
        //- {FOLDER}/docs/b.md
        # Pears
        green
        """
    )
    docs = made.root / FOLDER[1:] / "docs"
    assert made.refresh() == ["2 changed, 0 removed"]
    assert made.refresh() == ["0 changed, 0 removed"]
    assert made.ask("red pears") == ["b.md Pears: # Pears\ngreen", "a.md Apples: # Apples\nred"]
    (docs / "a.md").write_text("# Plums\nblue\n")
    os.utime(docs / "b.md")
    (docs / "c").mkdir()
    (docs / "c/c.md").write_text("yellow")
    assert made.refresh() == ["2 changed, 0 removed"]
    assert (made.ask("apples"), made.ask("blue yellow")) == (
        [],
        ["c.md : yellow", "a.md Plums: # Plums\nblue"],
    )
    shutil.rmtree(docs / "c")
    (docs / "b.md").unlink()
    (docs / "b.md").mkdir()
    assert made.refresh() == ["0 changed, 2 removed"]
    assert made.ask("yellow pears") == []
    (made.root / FOLDER[1:] / ".nexus3/config.json").write_text("{}")
    assert made.refresh() == ["0 changed, 1 removed"]
    assert made.index.totals() == (0, 0)


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_a_link_to_a_hidden_file_is_not_followed(base: Callable[[str], Base]) -> None:
    """A repository must not bring its user's `.env` into a conversation, under any name."""
    made = base(
        f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/.env\nred\n"
        f"//- {FOLDER}/docs/a.md\nred\n//- {FOLDER}/.git/b.md\nred\n"
    )
    (made.root / FOLDER[1:] / "docs/env.md").symlink_to("../.env")
    (made.root / FOLDER[1:] / "docs/git.md").symlink_to("../.git/b.md")
    (made.root / FOLDER[1:] / "docs/link.md").symlink_to("a.md")
    assert made.refresh() == [
        "2 changed, 0 removed",
        f"{FOLDER}/docs/env.md: is a symbolic link to .env, which is hidden",
        f"{FOLDER}/docs/git.md: is a symbolic link to .git, which is hidden",
    ]


def test_a_replaced_file_of_the_same_size_and_time_is_noticed(base: Callable[[str], Base]) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('a.md')}\n//- {FOLDER}/a.md\nred\n")
    path, other = made.root / FOLDER[1:] / "a.md", made.root / "b"
    made.refresh()
    other.write_text("new\n")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.rename(path)
    assert (made.refresh(), made.ask("new")) == (["1 changed, 0 removed"], ["a.md : new"])


def test_only_what_changed_is_looked_at(base: Callable[[str], Base], monkeypatch: pytest.MonkeyPatch) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/a.md\nred\n")
    docs = made.root / FOLDER[1:] / "docs"
    made.refresh()
    for name in ("a.md", "b.md", "c.py"):
        (docs / name).write_text("blue")
    with monkeypatch.context() as patched:
        patched.setattr("nexus_context.memory.knowledge.file_selection.RealFiles", None)  # not called
        assert made.refresh(f"{FOLDER}/docs/a.md") == ["1 changed, 0 removed"]
        assert made.refresh(f"{FOLDER}/docs/b.md", f"{FOLDER}/docs/c.py", "/no") == ["1 changed, 0 removed"]
        (docs / "b.md").unlink()
        assert made.refresh(f"{FOLDER}/docs/b.md") == ["0 changed, 1 removed"]
        (docs / "b.md").symlink_to("/etc/hostname")
        assert made.refresh(f"{FOLDER}/docs/b.md") == ["0 changed, 0 removed"]
    (docs / "new").mkdir()
    (docs / "new/n.md").write_text("green")
    assert made.refresh(f"{FOLDER}/docs/new") == ["1 changed, 0 removed"]
    shutil.rmtree(docs / "new")
    assert made.refresh(f"{FOLDER}/docs/new") == ["0 changed, 1 removed"]


def test_what_is_stopped_loses_nothing(base: Callable[[str], Base]) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/a.md\nred\n")
    made.refresh()
    refresh(made.index, made.settings()[0], stopped=lambda: True)
    assert made.files() == [f"{FOLDER}/docs/a.md"]


# ---------------------------------------------------------------- the file of the index


def test_the_place_of_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert os.path.dirname(index_path("/a", {"NEXUS_STATE": "/state"})) == "/state/knowledge"
    assert os.path.dirname(index_path("/a", {})) == str(tmp_path / "nexus/knowledge")
    assert index_path("/a", {}) != index_path("/b", {})


ONE = [Changed("/a", Indexed((1, 2), b"x"), ())]


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    index = KnowledgeIndex(str(tmp_path / "state/knowledge/a.db"))
    before = os.umask(0)
    try:
        index.write(ONE)
    finally:
        os.umask(before)
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in [tmp_path / "state/knowledge", *(tmp_path / "state/knowledge").iterdir()]
    }
    index.close()
    assert modes == {"knowledge": 0o700, "a.db": 0o600, "a.db-wal": 0o600, "a.db-shm": 0o600}


def garbage(path: Path) -> None:
    path.write_bytes(b"no database at all " * 1000)


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def scratched(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)


def sql(*statements: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        connection = apsw.Connection(str(path))
        for statement in statements:
            connection.execute(statement)
        connection.close()

    return run


@pytest.mark.parametrize(
    "spoil",
    [
        garbage,
        half,
        scratched,
        sql(f"PRAGMA user_version={VERSION + 1}"),
        sql(f"PRAGMA user_version={VERSION - 1}"),
        sql("PRAGMA application_id=7"),
        sql("DROP TABLE files"),
        sql("DROP TABLE words", "CREATE TABLE words (a)"),
    ],
    ids=["garbage", "half", "scratched", "newer", "older", "other", "table gone", "table different"],
)
def test_a_spoiled_index_is_made_again(base: Callable[[str], Base], spoil: Callable[[Path], None]) -> None:
    made = base(
        f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/a.md\n# Red\n"
        + "\n\n".join(f"## Part {number}\nword{number} " + "filling " * 40 for number in range(200))
    )
    made.refresh()
    made.index.close()
    location = made.index.location
    spoil(Path(location))
    assert made.ask("red") is not None  # never an error
    made.refresh()
    assert made.ask("word77")[0].startswith("a.md Red › Part 77: ## Part 77\nword77")
    assert made.index.location == location
    assert list(apsw.Connection(location).execute("PRAGMA integrity_check")) == [("ok",)]


@pytest.mark.parametrize("obstacle", ["file", "read-only"])
def test_without_a_place_on_the_disk_it_is_kept_in_memory(
    base: Callable[[str], Base], obstacle: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/a.md\nred\n")
    if obstacle == "file":
        (made.root / "state").write_text("")
    else:
        monkeypatch.setattr(os, "makedirs", refuse)
    assert made.ask("red") == []
    assert made.refresh() == ["1 changed, 0 removed"]
    assert made.ask("red") == ["a.md : red"]
    assert made.refresh() == ["0 changed, 0 removed"]
    assert made.index.location.startswith("file:/nexus-knowledge-")


def refuse(*_: Any, **__: Any) -> None:
    raise PermissionError(13, "Permission denied")


def test_a_full_disk_is_no_error(base: Callable[[str], Base], monkeypatch: pytest.MonkeyPatch) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/a.md\nred\n")
    failures = iter([apsw.FullError("database or disk is full")])

    def fail_once(_: object, statement: str, __: object) -> bool:
        if statement.startswith("INSERT INTO files"):
            for failure in failures:
                raise failure
        return True

    hook = operator.methodcaller("set_exec_trace", fail_once)
    monkeypatch.setattr(apsw, "connection_hooks", [hook])
    assert made.refresh() == ["1 changed, 0 removed"]
    assert list(failures) == []  # it was raised
    assert made.ask("red") == ["a.md : red"]


def test_who_empties_it_again_and_again_keeps_its_own(tmp_path: Path) -> None:
    index = KnowledgeIndex(str(tmp_path / "a.db"))
    for _ in range(3):
        index.write(ONE)
        assert index.indexed_files() != {}
        sql("PRAGMA user_version=77")(tmp_path / "a.db")
        with pytest.raises(IndexLostError):
            index.write(ONE)
    assert index.location.startswith("file:")
    index.write(ONE)
    index.close()


def test_a_lock_that_is_held_for_long_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nexus_context.memory.knowledge.passage_index.BUSY_MS", 10)
    index = KnowledgeIndex(str(tmp_path / "a.db"))
    index.write(ONE)
    other = apsw.Connection(str(tmp_path / "a.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(IndexBusyError):
        index.write(ONE)
    assert index.totals() == (1, 0)  # readers go on
    other.execute("ROLLBACK")
    index.write(ONE)
    other.close()
    index.close()


# ---------------------------------------------------------------- several at once


def test_readers_beside_a_writer_in_one_process(base: Callable[[str], Base]) -> None:
    made = base(f"//- {FOLDER}/.nexus3/config.json\n{config('docs')}\n//- {FOLDER}/docs/0.md\nred 0\n")
    docs = made.root / FOLDER[1:] / "docs"
    failures: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                assert all("red" in each for each in made.ask("red"))
        except Exception as error:  # noqa: BLE001 - told by the other thread
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(60):
        (docs / f"{number % 7}.md").write_text(f"red {number}")
        made.refresh()
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
    assert made.index.totals() == (7, 7)


WRITER = """
import sys
from nexus_context.errors import Span
from nexus_context.memory.knowledge import KnowledgeIndex, KnowledgePath, Settings, query, refresh
from nexus_context.tokens import SimpleTokenCounter
docs, location = sys.argv[1:]
settings = Settings((KnowledgePath(docs, (), docs, "local", docs, docs, Span(0, 0)),))
for number in range(20):
    index = KnowledgeIndex(location)
    refresh(index, settings)
    assert query(index, f"word{number}", SimpleTokenCounter(), top_k=3, max_tokens=500)
    index.close()
print(*index.totals())
"""


def test_processes_share_an_index(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for number in range(100):
        (docs / f"{number}.md").write_text(f"# Title {number}\nword{number} " * 3)
    arguments = [sys.executable, "-c", WRITER, str(docs), str(tmp_path / "a.db")]
    running = [subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)]
    told = [process.communicate(timeout=50) for process in running]
    assert told == [(b"100 100\n", b"")] * 3
    connection = sqlite3.connect(tmp_path / "a.db")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


def test_patterns_of_a_hostile_file_cost_nothing(tmp_path: Path) -> None:
    made = Base(tmp_path)
    app = tmp_path / FOLDER[1:]
    deep = app.joinpath(*"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
    deep.mkdir(parents=True)
    (deep / ("a" * 60 + ".md")).write_text("x")
    (app / ".nexus3").mkdir()
    (app / ".nexus3/config.json").write_text(
        config("/".join(["**", "a"] * 14 + ["b.md"]).lstrip("/"), "**/" + "*a" * 25 + "*b.md")
    )
    started = time.process_time()
    made.refresh()
    assert (made.files(), time.process_time() - started < 2) == ([], True)
    made.index.close()


@pytest.mark.parametrize(
    ("globally", "locally", "expected"),
    [
        ("", "", None),
        ('"enabled": false', "", None),
        ('"enabled": false', '"enabled": true', (None, 0.15, "true")),
        ('"enabled": true', '"enabled": false', None),
        ('"enabled": true, "min_similarity": 0.3', "", (None, 0.3, "true")),
        ('"enabled": true, "model": "m"', "", ("/home/.nexus3/m", 0.15, '"m"')),
        ('"enabled": true, "model": "~/m"', "", ("/home/m", 0.15, '"~/m"')),
        ('"enabled": true, "model": "/m/../n"', "", ("/n", 0.15, '"/m/../n"')),
        ('"model": "m"', '"enabled": true, "model": "x"', ("/home/.nexus3/m", 0.15, '"m"')),
        ("", '"enabled": true, "model": "x"', (None, 0.15, "true")),
    ],
)
def test_settings_of_the_search_by_meaning(
    tmp_path: Path, globally: str, locally: str, expected: tuple[str | None, float, str] | None
) -> None:
    form = '{"memory": {"knowledge": {"paths": ["docs"], "embeddings": {%s}}}}'
    fixture = f"//- /home/.nexus3/config.json\n{form % globally}\n"
    write_fixture(f"{fixture}//- {FOLDER}/.nexus3/config.json\n{form % locally}\n", tmp_path)
    layers = read_layers(str(tmp_path / FOLDER[1:]), load_inputs(str(tmp_path / "home")))
    embeddings = settings_of(layers, str(tmp_path / "home"))[0].embeddings
    read = embeddings and (
        embeddings.model and embeddings.model.removeprefix(str(tmp_path)),
        embeddings.min_similarity,
        layers.texts[embeddings.path][slice(*embeddings.span)],
    )
    assert read == expected


def test_without_paths_nothing_is_searched_by_meaning(tmp_path: Path) -> None:
    settings = '{"memory": {"knowledge": {"embeddings": {"enabled": true}}}}'
    write_fixture(f"//- {FOLDER}/.nexus3/config.json\n{settings}\n", tmp_path)
    layers = read_layers(str(tmp_path / FOLDER[1:]), load_inputs(str(tmp_path / "home")))
    assert settings_of(layers, str(tmp_path)) == (Settings(), ())
