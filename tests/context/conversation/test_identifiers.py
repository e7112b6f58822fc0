"""Names and values of a conversation: which are found, and which of them fit in a note."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from nexus_context.conversation.identifiers import IdentifierIndex, find, mentions
from nexus_context.conversation.message import Message, ToolCall
from nexus_context.tokens import SimpleTokenCounter, TiktokenCounter
from support.chats import chat

COUNTER = TiktokenCounter()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain words, and/or more: e.g. these; 20th, 10am, 5kg, he/she 1/2", ""),
        ("see src/app/main.py:12:3 and ./run.sh", "path:src/app/main.py path:./run.sh"),
        ("in /etc/nginx/nginx.conf, ~/notes and $HOME/.bashrc.", "path:/etc/nginx/nginx.conf path:~/notes path:$HOME/.bashrc"),  # noqa: E501
        (r"C:\Users\mia\a.txt (config.toml)", r"path:C:\Users\mia\a.txt path:config.toml"),
        ("Makefile, .gitignore and docs/ README", "path:Makefile path:.gitignore path:README"),
        ("tests/test_a.py::test_b failed", "path:tests/test_a.py symbol:test_b"),
        ("из файла данные/отчёт.csv", "path:данные/отчёт.csv"),
        ("请修改src/b.py然后运行", "path:src/b.py"),
        ("parse_args() calls os.path.join and HttpClient::get", "symbol:parse_args symbol:os.path.join symbol:HttpClient::get"),  # noqa: E501
        ("call run() in camelCase with MAX_SIZE", "symbol:run symbol:camelCase symbol:MAX_SIZE"),
        ("raised json.JSONDecodeError, then ENOENT (TS2304, error[E0308])", "error:json.JSONDecodeError error:ENOENT error:TS2304 error:E0308"),  # noqa: E501
        ("HAT136 for mia_li_3668, code ZFA04Y", "id:HAT136 id:mia_li_3668 id:ZFA04Y"),
        ("#123 PROJ-12 in 3f2a9c1b", "id:#123 id:PROJ-12 id:3f2a9c1b"),
        ("550e8400-e29b-41d4-a716-446655440000", "id:550e8400-e29b-41d4-a716-446655440000"),
        ("mail a.b@example.co.uk or http://x.y:80/z?q=1#a.", "email:a.b@example.co.uk url:http://x.y:80/z?q=1#a"),
        ("v1.2 or 3.11.4rc1 at 127.0.0.1", "version:v1.2 version:3.11.4rc1 version:127.0.0.1"),
        ("2024-05-20T10:30:00Z at 06:00, 15/05/2024", "date:2024-05-20T10:30:00Z date:06:00 date:15/05/2024"),
        ("$1,250.00 and €80 or 42 of 1,024 (50%)", "amount:$1,250.00 amount:€80 amount:1,024 amount:50%"),
        ("$ git push origin main\nhello", "command:git push origin main"),
        ("```bash\nmake check\n# not this\n```", "command:make check"),
        ("run `pytest -q tests` on `frobnicate`, not `two words`", "command:pytest -q tests symbol:frobnicate"),  # noqa: E501
        ('{"flight_number": "HAT069", "prices": {"economy": 121}, "2024-05-16": 1}', "id:HAT069 amount:121 date:2024-05-16"),  # noqa: E501
        ("<div></div><br/></html>", ""),
        ("diff --git a/x/y.py b/x/y.py", "path:x/y.py"),
        ("\ud800 a_b \udfff", "symbol:a_b"),
    ],
)  # fmt: skip
def test_find(text: str, expected: str) -> None:
    """`kind:name` of all that is found, separated by spaces."""
    assert " ".join(f"{found.kind}:{found.text}" for found in find(text)) == expected


def test_of_a_call_the_file_and_the_command_are_names_as_a_whole() -> None:
    calls = (
        ToolCall("1", "Edit", {"file_path": "/srv/my app/été 1.py", "new_string": "x = load_all()\n" * 40}),
        ToolCall("2", "Bash", '{"command": "uv run pytest -q\\n echo done"}'),
        ToolCall("3", "search", {"origin": "JFK", "cabin": "economy", "n": 2250, "deep": [{"id": "HAT039"}]}),
    )
    said = [
        (source, [found.text for found in names])
        for source, names in mentions(Message("assistant", None, calls))
    ]
    assert said == [
        ("call", ["/srv/my app/été 1.py"]),
        ("written", ["load_all"]),
        ("call", ["uv run pytest -q …"]),
        ("call", ["JFK"]),
        ("call", []),
        ("call", ["2250"]),
        ("call", ["HAT039"]),
    ]  # fmt: skip


def test_a_result_of_json_with_escapes_is_read_value_by_value() -> None:
    message = Message("tool", '{"file": "a\\nsrc/b.py", "gift_card_77": {"amount": 300}}', tool_call_id="1")
    assert [found.text for _, names in mentions(message) for found in names] == [
        "src/b.py",
        "gift_card_77",
        "300",
    ]


CODING = """
user: Fix the timeout in src/net/client.py; keep RETRY_LIMIT at 5. Ticket OPS-481.
read: src/net/client.py
=> class HttpClient:
      def fetch_all(self): raise asyncio.TimeoutError
bash: uv run pytest tests/net -q
=> E   asyncio.exceptions.TimeoutError
  1 failed, 212 passed
assistant: The `fetch_all` loop never resets its deadline; I'll patch `HttpClient.fetch_all`.
edit: src/net/client.py
=> ok
bash: git commit -am "Reset the deadline"
=> [main 3f2a9c1] Reset the deadline
user: Now bump httpx to 0.27.2 in pyproject.toml
"""


def test_the_note_of_a_coding_session() -> None:
    index = IdentifierIndex()
    index.extend(chat(CODING))
    assert index.render(COUNTER) == snapshot("""\
[EARLIER CONTEXT] 11 earlier messages are not shown. Names and values from them, word for word:
Files: src/net/client.py, pyproject.toml, tests/net
$ git commit -am "Reset the deadline"
$ uv run pytest tests/net -q
Errors: asyncio.exceptions.TimeoutError, asyncio.TimeoutError
Symbols: RETRY_LIMIT, fetch_all, HttpClient.fetch_all, HttpClient
Ids: OPS-481, 3f2a9c1
Versions: 0.27.2
Amounts and numbers: 212\
""")


def flooded() -> IdentifierIndex:
    """What a user named, then calls whose results hold 4,000 numbers."""
    index = IdentifierIndex()
    index.add(Message("user", "The reservation is ZFA04Y, the file docs/plan.md."))
    for number in range(40):
        index.add(Message("tool", " ".join(f"{1000 + 100 * number + n} X{number}Y{n}" for n in range(100))))
    return index


def test_a_flood_of_results_displaces_nothing_that_the_user_named() -> None:
    note = flooded().render(COUNTER, 100)
    assert "ZFA04Y" in note
    assert "docs/plan.md" in note


def long_result(middle: str, *, lines: int = 400) -> Message:
    """A result with names at both ends, and a text in the middle that only a filler can come from."""
    plain = "nothing to see in this line of words\n" * (lines // 2)
    return Message("tool", f"src/head.py\n{plain}{middle}\n{plain}src/tail.py", tool_call_id="1")


def test_names_from_the_middle_of_a_long_result_fill_what_others_leave() -> None:
    index = IdentifierIndex()
    index.add(Message("user", "Keep src/kept.py"))
    index.extend([long_result("src/deep/middle.py")])
    assert [found.text for found in index.ranked()] == [
        "src/kept.py",
        "src/head.py",
        "src/tail.py",
        "src/deep/middle.py",
    ]
    for number in range(400):  # whatever was said last, and however long ago the rest was
        index.extend([long_result(f"src/flood_{number}.py")])
    names = [found.text for found in index.ranked()]
    assert names.index("src/kept.py") < names.index("src/flood_399.py") < names.index("src/flood_0.py")


def test_fillers_are_read_of_the_newest_results_and_within_a_bound() -> None:
    index = IdentifierIndex()
    filler = "word " * 13_000
    results = [long_result(f"{filler}\nsrc/middle_{number}.py") for number in range(40)]
    index.extend(results)
    names = {found.text for found in index.ranked()}
    assert "src/middle_39.py" in names
    assert "src/middle_0.py" not in names


@pytest.mark.parametrize(
    "middle",
    [
        "export API_TOKEN=8f7a6b5c4d3e2f1a9b8c7d6e5f4a3b2c",
        "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
        "AKIAIOSFODNN7EXAMPLF ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    ],
)
def test_a_secret_in_the_middle_is_not_a_name(middle: str) -> None:
    index = IdentifierIndex()
    index.extend([long_result(f"src/beside.py {middle}")])
    note = index.render(COUNTER, 2_000)
    assert "src/beside.py" in note
    for secret in ("8f7a6b5c4d3e", "dozjgNryP4J3", "AKIAIOSFODNN7", "ghp_16C7e42F29"):
        assert secret not in note


def test_a_script_without_spaces_in_the_middle() -> None:
    index = IdentifierIndex()
    index.extend([long_result("请修改src/中间b.py然后运行测试" * 3_000)])
    assert "src/head.py" in index.render(COUNTER, 400)


def test_a_result_of_10_mb_is_read_in_bounded_time() -> None:
    text = "".join(f"src/module_{number}/file_{number % 977}.py: {number}\n" for number in range(250_000))
    began = time.process_time()
    index = IdentifierIndex()
    index.extend([Message("tool", text, tool_call_id="1")])
    assert time.process_time() - began < 3.0  # mostly to cover secrets
    assert len(index.ranked()) < 10_000


def test_a_copy_goes_its_own_way() -> None:
    index = flooded()
    before = index.render(COUNTER)
    copy = index.copy()
    copy.add(Message("user", "Forget it: QQ7788"))
    assert index.render(COUNTER) == before
    assert (index.messages, copy.messages) == (41, 42)
    assert "QQ7788" in copy.render(COUNTER)


def test_memory_is_bounded() -> None:
    index = IdentifierIndex(most=50)
    for number in range(500):
        index.add(Message("user", f"item_{number}a item_{number}b"))
    assert len(index.ranked()) <= 100
    assert "item_499a" in index.render(COUNTER)


def test_nothing_known_makes_no_note() -> None:
    index = IdentifierIndex()
    index.add(Message("user", "hello there"))
    assert index.render(COUNTER) == ""
    assert flooded().render(COUNTER, 10) == ""


HOSTILE = ["a", "a_", "1,", "/", "a/", "`", "$ ", "https://", "A", "\\", '"a":', '[{"a":', ".", "1.", "\n", "```bash\n", "a@", "<a", "é", "\ud800", "E   Error: "]  # fmt: skip  # noqa: E501


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
def test_a_megabyte_takes_little_more_than_twice_the_time_of_half_of_it(piece: str) -> None:
    _, half_s = timed_index(piece * (500_000 // len(piece)))
    index, whole_s = timed_index(piece * (1_000_000 // len(piece)))
    assert whole_s < 3 * half_s + 0.1  # quadratic: 4 times, and minutes
    assert SimpleTokenCounter().count(index.render(SimpleTokenCounter(), 200)) <= 200


def timed_index(text: str) -> tuple[IdentifierIndex, float]:
    """The index of a text in messages of each kind, and the seconds of the processor that it took."""
    index = IdentifierIndex()
    began = time.process_time()
    index.add(Message("user", text))
    index.add(Message("tool", text, tool_call_id="1"))
    index.add(Message("assistant", text, (ToolCall("1", "bash", {"command": text, "path": text}),)))
    return index, time.process_time() - began


WORDS = st.sampled_from(
    ["src/a.py", "HAT136", "mia_li_3668", "git push", "$ ls -l", "`x`", "2024-05-20", "ValueError", "$1,250", "hello", "№5", "文件", "\ud800", "\n", "\x00"]  # noqa: E501
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(WORDS, max_size=30).map(" ".join))
ROLES = st.sampled_from(["user", "assistant", "tool"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), TEXTS), lambda inner: st.lists(inner, max_size=3)
)
CALLS = st.builds(
    ToolCall,
    st.just("1"),
    st.sampled_from(["bash", "edit", "x"]),
    st.one_of(TEXTS, st.dictionaries(st.sampled_from(["command", "path", "a"]), VALUES)),
)
MESSAGES = st.builds(Message, ROLES, TEXTS, st.lists(CALLS, max_size=2).map(tuple))


@given(st.lists(MESSAGES, max_size=8), st.integers(0, 200))
def test_a_note_keeps_to_its_limit_and_depends_on_nothing_else(messages: list[Message], limit: int) -> None:
    notes = []
    for _ in range(2):
        index = IdentifierIndex()
        index.extend(messages)
        notes.append(index.render(COUNTER, limit))
    assert notes[0] == notes[1]
    assert COUNTER.count(notes[0]) <= limit
    notes[0].encode()  # what is no text is in no note
    if notes[0]:
        head, *lines = notes[0].split("\n")
        assert head.startswith("[EARLIER CONTEXT]")
        assert all(": " in line or line.startswith("$ ") for line in lines)


@given(TEXTS)
def test_names_stand_in_the_text_as_they_are(text: str) -> None:
    flat = text.replace("\t", " ")
    for found in find(text):
        assert found.text.removesuffix(" …").strip() in flat
