"""Files that take much of the model's window: reported with their share, never cut."""

import base64
import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nexus_context.errors import Problem, Severity
from nexus_context.folder.layers.read_layers import open_layers
from nexus_context.folder.prompt import size
from nexus_context.folder.prompt.gather import PromptContents, gather
from nexus_context.folder.snapshot import Snapshot
from nexus_context.tokens import TiktokenCounter, vocabulary
from nexus_context.tokens.vocabulary import VocabularyError
from support.fixture import Fixture, write_fixture
from support.folders import load_folder, load_inputs, relative

FOLDER = "/home/c/a"
LINE = "Always write the tests first.\n"  # 30 characters, 6 tokens
CONFIG = '{"provider": {"model": "o3"}}'  # a window of 200,000, and a public tokenizer
CLAUDE = (
    '{"provider": {"model": "claude-sonnet-4-20250514"}}'  # as wide; tokens are taken for 1.18 times as many
)
EXACT = TiktokenCounter("o200k_base")


def check(
    root: Path, lengths: dict[str, int], expected: dict[str, list[str]], *, config: str = CONFIG
) -> tuple[Fixture, Snapshot]:
    """Files with these numbers of lines, and the expected part of the message about each."""
    text = f"//- {FOLDER}/.nexus3/config.json\n{config}\n"
    text += "".join(f"//- {path}\n{LINE * lines}" for path, lines in lengths.items())
    fixture = write_fixture(text, root)
    snapshot = load_folder(fixture, FOLDER)
    problems = told(snapshot)
    assert [relative(fixture, problem.path) for problem in problems] == list(expected)
    for problem, words in zip(problems, expected.values(), strict=True):
        assert problem.severity is Severity.WARNING
        assert [word for word in words if word not in problem.message] == []
    # nothing is cut
    assert snapshot.prompt.text.count(LINE.strip()) == sum(lengths.values())
    return fixture, snapshot


def told(snapshot: Snapshot | PromptContents) -> list[Problem]:
    return [problem for problem in snapshot.problems if problem.code == "prompt.size"]


@pytest.mark.parametrize(
    ("lengths", "expected", "config"),
    [
        ({f"{FOLDER}/AGENTS.md": 3_299}, {}, CONFIG),
        (
            {f"{FOLDER}/AGENTS.md": 10_240},  # 300 KiB
            {
                f"{FOLDER}/AGENTS.md": [
                    "AGENTS.md takes 61,440 tokens",
                    " 31% of the 198,000 that a request may take",
                ]
            },
            CONFIG,
        ),
        (  # where the tokenizer is not public, the number is no exact one
            {f"{FOLDER}/AGENTS.md": 10_240},
            {
                f"{FOLDER}/AGENTS.md": [
                    "AGENTS.md takes about 72,500 tokens",
                    " 37% of the 198,000 that a request may take",
                ]
            },
            CLAUDE,
        ),
        (  # where the model is not known, the usual window
            {f"{FOLDER}/AGENTS.md": 10_240},
            {f"{FOLDER}/AGENTS.md": ["about 61,440 tokens", "49% of the 126,000 that a request may take"]},
            "{}",
        ),
        (
            {f"{FOLDER}/AGENTS.md": 200},
            {f"{FOLDER}/AGENTS.md": ["about 1,200 tokens", "15% of the 8,000 that a request may take"]},
            '{"context": {"max_tokens": 10000}}',
        ),
        (  # a model takes no more than it can
            {f"{FOLDER}/AGENTS.md": 10_240},
            {f"{FOLDER}/AGENTS.md": [" 31% of the 198,000 that a request may take"]},
            '{"provider": {"model": "o3"}, "context": {"max_tokens": 1000000}}',
        ),
        (  # none of them alone, all together; the longest is named
            {
                f"{FOLDER}/AGENTS.md": 2_800,
                f"{FOLDER}/.nexus3/SOUL.md": 3_200,
                "/home/c/NEXUS.md": 2_600,
            },
            {f"{FOLDER}/.nexus3/SOUL.md": ["The 3 files", "51,600 tokens", "26% of the 198,000"]},
            CONFIG,
        ),
        (  # one alone is enough to say
            {f"{FOLDER}/AGENTS.md": 6_000, "/home/c/NEXUS.md": 2_800},
            {f"{FOLDER}/AGENTS.md": ["18%"]},
            CONFIG,
        ),
    ],
)
def test_a_long_file_is_told(
    tmp_path: Path, lengths: dict[str, int], expected: dict[str, list[str]], config: str
) -> None:
    check(tmp_path, lengths, expected, config=config)


def test_an_import_is_a_file_of_its_own(tmp_path: Path) -> None:
    text = (
        f"//- {FOLDER}/.nexus3/config.json\n{CONFIG}\n//- {FOLDER}/NEXUS.md\n@long.md\n//- {FOLDER}/long.md\n"
    )
    fixture = write_fixture(text + LINE * 4_000, tmp_path)
    found = told(load_folder(fixture, FOLDER))
    assert [relative(fixture, problem.path) for problem in found] == [f"{FOLDER}/long.md"]


def _any(kind: str) -> str:
    """Text that no rule of thumb fits."""
    chance = random.Random(kind)  # noqa: S311 (texts, no secrets)
    digits = [f"{chance.random():.3f}" for _ in range(4_000)]
    return {
        "emoji": "| ✅ | ❌ | 🚀 | 👩\u200d💻 |\n" * 1_500,
        "flags": "| \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f |\n" * 500,
        "base64": base64.b64encode(chance.randbytes(15_000)).decode(),
        "hex": "\n".join(chance.randbytes(32).hex() for _ in range(400)),
        "table": "".join(f"| {' | '.join(digits[at : at + 8])} |\n" for at in range(0, 4_000, 8)),
        "digits": "1,0," * 4_000,
        "lines": "a\n" * 7_000,
        "letters": " ".join("".join(chance.choices("qxzjkvwg", k=8)) for _ in range(3_500)),
        "words": "1".join("".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=3)) for _ in range(5_000)),
        "thai": "กรุณาเขียนการทดสอบก่อนเขียนโค้ดเสมอ " * 800,
        "rare": "\U00012000\U00012345" * 2_000,
        "control": "".join(chr(chance.randint(1, 8)) for _ in range(14_000)),
    }[kind]


KINDS = [
    *("emoji", "flags", "base64", "hex", "table", "digits"),
    *("lines", "letters", "words", "thai", "rare", "control"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_text_the_number_is_what_is_counted(tmp_path: Path, kind: str) -> None:
    """Reported with the vocabulary in memory; if it has to be loaded first, only then."""
    text = _any(kind)
    fixture = write_fixture(f"//- {FOLDER}/AGENTS.md\n{text}", tmp_path)
    tokens = EXACT.count(
        load_folder(fixture, FOLDER).layers.texts[fixture.path(f"{FOLDER}/AGENTS.md")].strip()
    )
    (problem,) = told(load_folder(fixture, FOLDER))
    assert f" {tokens:,} tokens" in problem.message
    assert f"{tokens / 126_000:.0%} of the 126,000" in problem.message
    for name in vocabulary.ENCODINGS:
        assert TiktokenCounter(name).count(text) <= size.token_ceiling(text)


@given(st.text(max_size=300))
def test_a_token_is_a_byte_at_the_least(text: str) -> None:
    for name in vocabulary.ENCODINGS:
        assert TiktokenCounter(name).count(text) <= size.byte_length(text)


def test_the_warning_moves_with_the_model_and_the_text(tmp_path: Path) -> None:
    path, config = f"{FOLDER}/AGENTS.md", f"{FOLDER}/.nexus3/config.json"
    fixture, before = check(tmp_path, {path: 4_000}, {path: ["12%"]})
    wide = '{"provider": {"model": "gpt-4.1"}}'  # a window of more than a million
    now = load_folder(fixture, FOLDER, overlays={config: wide}, previous=before)
    assert told(now) == []
    now = load_folder(fixture, FOLDER, overlays={path: LINE}, previous=before)
    assert told(now) == []


def test_files_of_usual_length_load_no_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "is_loaded", lambda _: False)
    monkeypatch.setattr(TiktokenCounter, "count", lambda *_: pytest.fail("counted"))
    check(tmp_path, {f"{FOLDER}/AGENTS.md": 850, "/home/c/NEXUS.md": 500}, {})


def contents_of(fixture: Fixture, *, load_vocabulary: bool) -> PromptContents:
    inputs = load_inputs(fixture.path("/home"))
    layers, reading = open_layers(fixture.path(FOLDER), inputs)
    return gather(layers, reading, user_home=inputs.user_home, environ={}, load_vocabulary=load_vocabulary)


def test_where_no_vocabulary_may_be_loaded_nothing_is_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"{FOLDER}/AGENTS.md"
    fixture, snapshot = check(tmp_path, {path: 10_240}, {path: ["31%"]})
    assert (snapshot.contents.waits_for, len(told(snapshot))) == (None, 1)
    known = contents_of(fixture, load_vocabulary=False)  # it is in memory
    assert (known.waits_for, told(known)) == (None, told(snapshot))
    monkeypatch.setattr(size, "is_loaded", lambda _: False)
    unknown = contents_of(fixture, load_vocabulary=False)
    assert (unknown.waits_for, told(unknown)) == ("o200k_base", [])
    loaded = contents_of(fixture, load_vocabulary=True)
    assert (loaded.waits_for, told(loaded)) == (None, told(snapshot))


def test_without_its_vocabulary_the_share_is_an_estimate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> None:
        raise VocabularyError("damaged")

    monkeypatch.setattr(vocabulary, "load_encoding", broken)
    path = f"{FOLDER}/AGENTS.md"
    text = LINE.replace("tests", "checks")  # no other test has counted it
    fixture = write_fixture(
        f"//- {FOLDER}/.nexus3/config.json\n{CONFIG}\n//- {path}\n{text * 9_000}", tmp_path
    )
    (problem,) = told(load_folder(fixture, FOLDER))
    assert "about 69,750 tokens" in problem.message


def skills(number: int, description: str, body: str = "Do it.\n") -> str:
    front = "---\nname: s{0:03}\ndescription: {1}\n---\n{2}"
    path = "//- /home/c/a/.claude/skills/s{0:03}/SKILL.md\n"
    return "".join((path + front).format(at, description, body) for at in range(number))


def test_the_descriptions_of_skills_are_told_once(tmp_path: Path) -> None:
    text = f"//- {FOLDER}/.nexus3/config.json\n{CONFIG}\n" + skills(120, "word " * 190)
    longest = f"{FOLDER}/.nexus3/skills/long/SKILL.md"
    text += f"//- {longest}\n---\nname: long\ndescription: {'word ' * 200}\n---\nDo it.\n"
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    (problem,) = told(snapshot)
    assert relative(fixture, problem.path) == longest
    assert snapshot.layers.texts[problem.path][slice(*problem.span)].split() == ["word"] * 200
    index = snapshot.prompt.text.partition("file's directory.\n\n")[2].partition("\n\n---")[0]
    tokens = EXACT.count(index)
    assert f"The descriptions of 121 skills take {tokens:,} tokens of every request" in problem.message
    assert f"{tokens / 198_000:.0%} of the 198,000" in problem.message
    off = {f"{FOLDER}/.nexus3/config.json": '{"provider": {"model": "o3"}, "skills": {"enabled": false}}'}
    assert told(load_folder(fixture, FOLDER, overlays=off, previous=snapshot)) == []


def test_descriptions_count_with_the_files(tmp_path: Path) -> None:
    lengths = {f"{FOLDER}/AGENTS.md": 3_200, f"{FOLDER}/.nexus3/SOUL.md": 3_100}
    text = f"//- {FOLDER}/.nexus3/config.json\n{CONFIG}\n"
    text += "".join(f"//- {path}\n{LINE * lines}" for path, lines in lengths.items())
    assert told(load_folder(write_fixture(text, tmp_path / "a"), FOLDER)) == []
    (problem,) = told(load_folder(write_fixture(text + skills(80, "word " * 190), tmp_path / "b"), FOLDER))
    assert "The 2 files of the prompt and the descriptions of 80 skills take 5" in problem.message


def test_the_text_of_a_skill_is_told_at_its_file(tmp_path: Path) -> None:
    text = f"//- {FOLDER}/.nexus3/config.json\n{CONFIG}\n{skills(2, 'Does it.', LINE * 4_000)}"
    fixture = write_fixture(text, tmp_path)
    snapshot = load_folder(fixture, FOLDER)
    assert [relative(fixture, problem.path) for problem in told(snapshot)] == [
        f"{FOLDER}/.claude/skills/s000/SKILL.md",
        f"{FOLDER}/.claude/skills/s001/SKILL.md",
    ]
    problem = told(snapshot)[0]
    assert problem.message == (
        "Activated, the skill s000 takes 24,000 tokens of a request, 12% of the 198,000 that a request may "
        "take. All of it is sent. Shorten it, or move parts of it into files beside it, which the model "
        "reads when it needs them."
    )
    assert snapshot.layers.texts[problem.path].startswith(LINE, problem.span.start)


def test_only_what_is_edited_is_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many files are walked on each keystroke, and however long they are."""
    counted: list[str] = []
    real = TiktokenCounter.count

    def count(self: TiktokenCounter, text: str) -> int:
        counted.append(text)
        return real(self, text)

    monkeypatch.setattr(TiktokenCounter, "count", count)
    config = '{"provider": {"model": "o3"}, "context": {"max_tokens": 2000}}'
    files = "".join(f"//- {FOLDER}/{at}.md\nФайл {at}. {'Пиши тесты. ' * 20}\n" for at in range(150))
    imports = "".join(f"@{at}.md\n" for at in range(150))
    text = f"//- {FOLDER}/.nexus3/config.json\n{config}\n//- {FOLDER}/NEXUS.md\n{imports}{files}"
    text += "\n" + skills(200, "Does it.", "Пиши тесты. " * 20 + "\n")
    fixture = write_fixture(text, tmp_path)
    path = fixture.path(f"{FOLDER}/.claude/skills/s007/SKILL.md")
    snapshot = load_folder(fixture, FOLDER)
    assert len(counted) >= 350
    for typed in ("а", "аб"):
        counted.clear()
        overlays = {f"{FOLDER}/.claude/skills/s007/SKILL.md": snapshot.layers.texts[path] + typed}
        changed = frozenset([path])
        snapshot = load_folder(fixture, FOLDER, overlays=overlays, previous=snapshot, changed=changed)
        assert counted
        assert all(each.endswith(typed) for each in counted)


def test_typing_in_a_long_file_stays_quick(tmp_path: Path) -> None:
    path = f"{FOLDER}/AGENTS.md"
    fixture, snapshot = check(tmp_path, {path: 10_240}, {path: ["31%"]})
    best = 1.0
    for number in range(5):
        began = time.thread_time()
        overlays = {path: LINE * 10_240 + str(number)}
        changed = frozenset([fixture.path(path)])
        snapshot = load_folder(fixture, FOLDER, overlays=overlays, previous=snapshot, changed=changed)
        best = min(best, time.thread_time() - began)
    assert best < 0.25
