"""Values of settings that name a file."""

import pytest

from nexus_daemon.features.open_document import KINDS, OpenDocument
from nexus_daemon.features.setting_links import setting_links
from nexus_daemon.lsp.convert import Locator, Texts

FILES = {"/a/docs/x.md", "/a/.claude/hooks/run.sh", "/home/u/y.md", "/etc/z", "/a/AGENTS.md"}


@pytest.mark.parametrize(
    ("path", "text", "targets"),
    [
        ("/a/opencode.json", '{"instructions": ["docs/x.md", "gone.md"]}', ["/a/docs/x.md"]),
        (
            "/a/.claude/settings.json",
            '{"a": "hooks/run.sh", "b": "docs/x.md"}',
            ["/a/.claude/hooks/run.sh", "/a/docs/x.md"],
        ),
        (
            "/a/.codex/config.toml",
            'model_instructions_file = "../docs/x.md"\n[a]\nb = "~/y.md"',
            ["/a/docs/x.md", "/home/u/y.md"],
        ),
        ("/a/x.json", '{"a": "/etc/z", "docs/x.md": 1, "b": "http://docs/x.md"}', ["/etc/z"]),
        ("/a/x.json", '{"a": {"b": [{"c": "./AGENTS.md"}]}, "d": "AGENTS"', ["/a/AGENTS.md"]),
        ("/a/x.json", "", []),
        ("/a/x.toml", "a = ", []),
    ],
)
def test_a_value_that_names_a_file_is_a_link(path: str, text: str, targets: list[str]) -> None:
    locate = Locator(Texts({path: text}), "utf-16")
    document = OpenDocument(path, KINDS[path[path.rindex(".") :]], locate, folder="/a", user_home="/home/u")
    links = setting_links(document, is_file=FILES.__contains__)
    assert [link["target"] for link in links] == [f"file://{target}" for target in targets]
    for link in links:
        span = locate.span(path, link["range"])
        assert not {'"', "'"} & {text[span.start], text[span.end - 1]}
