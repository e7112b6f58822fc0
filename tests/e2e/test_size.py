"""A file that takes much of the model's window: told with the real number, and nothing waits for that."""

from pathlib import Path

from support.editor import editor_in

LINE = "Always write the tests first.\n"  # 6 tokens


def test_a_long_file_is_told_once_the_vocabulary_is_there(tmp_path: Path) -> None:
    with editor_in(tmp_path / "home") as editor:
        config = '//- /a/.nexus3/config.json\n{"provider": {"model": "o3"}}\n'
        short = editor.tree(f"{config}//- /a/NEXUS.md\n{LINE * 500}")
        editor.add(short.path("/a"))
        editor.until(lambda: editor.changes(short.path("/a")))
        assert editor.shown(short.path("/a/NEXUS.md")) == []
        assert editor.request("nexus/status", {})["caches"]["vocabularies"] == []
        long = editor.tree(f"{config}//- /a/NEXUS.md\n{LINE * 10_240}")
        editor.add(long.path("/a"))
        path = long.path("/a/NEXUS.md")
        (told,) = editor.until(lambda: editor.shown(path))
        assert told["code"] == "prompt.size"
        assert (
            "NEXUS.md takes 61,440 tokens of every request, 31% of the 198,000 that a request may take."
            in told["message"]
        )
        assert editor.request("nexus/status", {})["caches"]["vocabularies"] == ["o200k_base"]
        editor.open(path, LINE * 20_480)
        editor.layers(long.path("/a"))
        assert "122,880 tokens" in editor.shown(path)[0]["message"]
        assert editor.errors() == []
