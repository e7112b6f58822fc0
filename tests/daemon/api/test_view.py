"""`nexus/view/list`: the views of a folder, and the one to show."""

from pathlib import Path

from support.desk import Desk, tell_story, write


def test_the_views_and_the_chosen_one(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        write(desk, "/a/CLAUDE.md", "Use tabs.\n")
        talk = await desk.client()
        listed = await desk.ask(talk, 1, "nexus/view/list")
        views = {view["name"]: view for view in listed["views"]}
        assert len(views) == 7
        assert listed["chosen"] == listed["views"][0]["name"] == "nexus"
        assert (views["claude-code"]["inUse"], views["claude-code"]["limit"]) == (True, 1_000_000)
        assert "CLAUDE.md is here" in views["claude-code"]["reason"]
        assert (views["cursor"]["inUse"], views["cursor"]["reason"]) == (False, "nothing of it is here")

    tell_story(tmp_path, story)


def test_a_view_has_the_limit_that_its_usage_is_a_share_of(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        [view] = [
            each for each in (await desk.ask(talk, 1, "nexus/view/list"))["views"] if each["name"] == "codex"
        ]
        usage = await desk.ask(talk, 2, "nexus/context/usage", assistant="codex")
        assert view["limit"] == usage["available"] < usage["limit"]

    tell_story(tmp_path, story, {"/a/AGENTS.md": "Use tabs.\n"})


def test_the_setting_overrides_the_choice(tmp_path: Path) -> None:
    async def story(desk: Desk) -> None:
        talk = await desk.client()
        assert (await desk.ask(talk, 1, "nexus/view/list"))["chosen"] == "codex"

    tell_story(tmp_path, story, {"/a/.nexus3/config.json": '{"views": {"show": "codex"}}'})
