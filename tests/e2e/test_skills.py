"""Skills in a running daemon: they come and go on disk and in the editor, and a request activates them."""

import shutil
from pathlib import Path
from typing import Any

from support.editor import Editor

OLD = "//- /a/.nexus3/skills/old/SKILL.md\n---\nname: old\ndescription: Old.\n---\nText of old.\n"


def check(editor: Editor, folder: Path, *expected: str) -> None:
    """Sooner or later these are the skills that the prompt names."""

    def named() -> list[str]:
        fragments = editor.ask("context/preview", folder)["fragments"]
        titles = (one["title"] for one in fragments if one["section"] == "skills" and one.get("layer"))
        return list(dict.fromkeys(titles))

    editor.eventually(named, lambda names: names == list(expected))


def opened(editor: Editor, fixture: str) -> Path:
    folder = Path(editor.open_folder(fixture))
    editor.layers(folder)
    return folder


def write(directory: Path, name: str = "") -> Path:
    directory.mkdir(parents=True)
    file = directory / "SKILL.md"
    file.write_text(f"---\nname: {name or directory.name}\ndescription: d\n---\nText.\n")
    return file


def test_skills_come_and_go_on_disk(editor: Editor) -> None:
    folder = opened(editor, "//- /a/NEXUS.md\nBe brief.\n")
    check(editor, folder)
    write(folder / ".claude" / "skills" / "one")
    check(editor, folder, "one")
    second = write(folder / ".claude" / "skills" / "two")
    check(editor, folder, "one", "two")
    second.parent.rename(second.parents[1] / "three")
    shutil.rmtree(folder / ".claude" / "skills" / "one")
    check(editor, folder, "two")
    assert editor.codes(second.parents[1] / "three" / "SKILL.md") == ["skill.name"]
    shutil.rmtree(folder / ".claude")
    check(editor, folder)
    write(folder / ".agents" / "skills" / "four")
    check(editor, folder, "four")


def test_unsaved_text_wins_and_is_checked(editor: Editor) -> None:
    folder = opened(editor, OLD)
    file = folder / ".nexus3" / "skills" / "old" / "SKILL.md"
    text = file.read_text()
    editor.open(file, text)
    editor.type(file, text.replace("name: old", "name: old: x"))
    editor.until(lambda: editor.codes(file) == ["skill.front-matter"])
    check(editor, folder)
    editor.type(file, text.replace("name: old", "name: new"))
    editor.until(lambda: editor.codes(file) == ["skill.name"])
    check(editor, folder, "new")
    editor.close(file)
    check(editor, folder, "old")
    unsaved = folder / ".nexus3" / "skills" / "unsaved" / "SKILL.md"
    editor.open(unsaved, "No front matter.")
    editor.until(lambda: editor.codes(unsaved) == ["skill.front-matter"])
    editor.type(unsaved, text.replace("name: old", "name: unsaved"))
    check(editor, folder, "old", "unsaved")


def test_a_request_activates_a_skill(editor: Editor) -> None:
    folder = opened(editor, OLD)

    def assembled(**options: Any) -> Any:
        return editor.ask("context/assemble", folder, options=options)

    plain, active = assembled(), assembled(skills=["old"])
    assert "Text of old." not in plain["systemPrompt"]
    assert "Text of old." in active["systemPrompt"]
    assert (plain["metadata"]["activeSkills"], active["metadata"]["activeSkills"]) == ([], ["old"])
    assert "## Skills" not in assembled(skipSkills=True)["systemPrompt"]
    assert "## Skills" not in assembled(skillFilter=["other"])["systemPrompt"]
    (file,) = (one for one in editor.layers(folder)["layers"][-1]["files"] if one["kind"] == "skill")
    assert (file["status"], file["tokens"] > 5) == ("loaded", True)
