"""The picked model over real processes: a restart, and two windows; diagnostics and lenses follow."""

from pathlib import Path
from typing import Any

from support.editor import Editor, editor_in, uri_of

LONG = "Always write the tests first.\n" * 10_000  # 60,000 tokens
OPTIONS: dict[str, Any] = {"model": "house-model", "maxContextTokens": 90_000, "memoryTools": True}
PICKED = {"usage": ("house-model", 88_000), "problem": "88,000", "lens": "88k", "layers": "88,000"}
GUESS = {"usage": ("", 126_000), "problem": "126,000", "lens": "≈ 126k", "layers": "126,000"}


def check(editor: Editor, folder: str, expected: dict[str, Any]) -> None:
    """Until everything that an editor shows of the folder is counted for this."""
    editor.eventually(lambda: shown(editor, folder), lambda found: found == expected)


def shown(editor: Editor, folder: str) -> dict[str, Any]:
    usage = editor.ask("context/usage", folder)
    layers = editor.layers(folder)
    file = f"{folder}/AGENTS.md"
    found = editor.request("textDocument/codeLens", {"textDocument": {"uri": uri_of(file)}})
    lens = next(one for one in found if one["command"]["title"].startswith("Nexus: "))
    return {
        "usage": (usage["model"], usage["available"]),
        "problem": window_in(editor.shown(file)),
        "lens": lens["command"]["title"].partition(" of ")[2].partition(" ·")[0],
        "layers": window_in(layers["problems"]),
    }


def window_in(problems: list[Any]) -> str:
    sizes = [one["message"] for one in problems if one["code"] == "prompt.size"]  # none until it is counted
    return " ".join(size.partition("% of the ")[2].partition(" that")[0] for size in sizes)


def folder_in(home: Path) -> str:
    folder = home / "project"
    (folder / ".nexus3").mkdir(parents=True)
    (folder / "AGENTS.md").write_text(LONG)
    return str(folder)


def turn(editor: Editor, folder: str, **options: Any) -> Any:
    made = editor.ask("context/assemble", folder, message="Go on.", options=options)
    said = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": "Gone."}]
    editor.ask("session/append", folder, messages=said)
    return made["usage"]


def test_it_is_there_again_after_a_restart_with_the_same_rows(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "home")
    with editor_in(tmp_path / "home", folder) as editor:
        check(editor, folder, GUESS)
        sent = turn(editor, folder, **OPTIONS)
        check(editor, folder, PICKED)
    with editor_in(tmp_path / "home", folder) as editor:
        file = f"{folder}/AGENTS.md"
        # before anybody asks for a conversation: what is open shows it
        editor.until(lambda: [one for one in editor.shown(file) if "of the 88,000" in one["message"]])
        check(editor, folder, PICKED)
        rows = editor.ask("context/usage", folder)["rows"]
        fixed = ("system", "tools")
        assert [row for row in rows if row["category"] in fixed] == [
            row for row in sent["rows"] if row["category"] in fixed
        ]


def test_two_windows_agree_whichever_picks(tmp_path: Path) -> None:
    folder = folder_in(tmp_path / "home")
    with editor_in(tmp_path / "home", folder) as one, editor_in(tmp_path / "home", folder) as other:
        check(one, folder, GUESS)
        check(other, folder, GUESS)
        turn(one, folder, **OPTIONS)
        check(other, folder, PICKED)
        other.until(lambda: other.changes(folder)[-1]["usage"]["limit"] == 90_000)
        other.ask("model/pick", folder)
        check(one, folder, GUESS)
        check(other, folder, GUESS)
