"""Agents of the example workspace in a real daemon, told as text: from their start to their end.

A step is a line that starts at the margin:

- `spawn NAME`, `dispose NAME`: as `nexus/agent/spawn` and `nexus/agent/dispose`.
- `list`: the live agents.
- `read NAME`: the files that its prompt is made of, in the order of the prompt; the user's own are left out.
- `view NAME as ROLE below PARENT`: the same of an agent that is not started.
- `send SOURCE to TARGET: TEXT`: a message from one agent to another.
- `turn NAME: TEXT`: what is sent to its model for a message of the user, which is then in its conversation.
- `save FILE: TEXT`: the disk changes; the agents about which there is something new.
- `restart`: the daemon is killed, and another one started.

The indented lines below a step are what the daemon answers, worked out again and compared as a whole.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.client import ReplyError
from support.editor import Editor, uri_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
VIEW = re.compile(r"view (\S+) as (\w+) below (\S+)")


class Play:
    """The example workspace, the daemon that serves it, and what it was asked."""

    def __init__(self, home: Path) -> None:
        shutil.copytree(EXAMPLES / "home", home)
        self.company = home / "company"
        shutil.copytree(EXAMPLES / "company", self.company)
        self.editor = self.opened()

    def opened(self) -> Editor:
        editor = Editor(self.company.parent)
        editor.hello(self.company)
        return editor

    def ask(self, method: str, **params: object) -> Any:
        return self.editor.ask(method, self.company, **params)

    def done(self, step: str) -> list[str]:
        try:
            return STEPS[step.split()[0]](self, step)
        except ReplyError as reply:
            return [reply.error["message"].replace(str(self.company), "company")]


def check(tmp_path: Path, scenario: str) -> None:
    """Play a scenario; it must come out as it is written."""
    with playing(tmp_path.resolve() / "home") as play:
        steps = [step for step in scenario.strip().splitlines() if step and not step.startswith(" ")]
        played = [line for step in steps for line in (step, *(f"  {line}" for line in play.done(step)), "")]
        assert "\n".join(played).strip() == scenario.strip()


@contextmanager
def playing(home: Path) -> Iterator[Play]:
    play = Play(home)
    try:
        yield play
        play.editor.goodbye()
    finally:
        play.editor.kill()


def spawn(play: Play, step: str) -> list[str]:
    info = play.ask("agent/spawn", agentId=step.split()[1])
    return [described(play, info), info["task"]]


def live(play: Play, step: str) -> list[str]:
    return [described(play, info) for info in play.ask("agent/list")["agents"]]


def described(play: Play, info: dict[str, Any]) -> str:
    cwd = Path(info["cwd"]).relative_to(play.company)
    return f"{info['agentId']}: {info['role']} below {info.get('parent', 'main')}, in {cwd}"


def read(play: Play, step: str) -> list[str]:
    return files(play, play.ask("context/preview", agent=step.split()[1]))


def view(play: Play, step: str) -> list[str]:
    found = VIEW.match(step)
    assert found is not None
    name, role, parent = found.groups()
    seen = {"agentId": name, "role": role, "parent": parent}
    return files(play, play.ask("context/preview", viewAs=seen))


def files(play: Play, prompt: dict[str, Any]) -> list[str]:
    texts = [one for one in prompt["fragments"] if one["source"] and one["verbatim"]]
    base = uri_of(play.company) + "/"
    named = (one["source"]["uri"] for one in texts)
    return list(dict.fromkeys(uri.removeprefix(base) for uri in named if uri.startswith(base)))


def send(play: Play, step: str) -> list[str]:
    heads, _, content = step.partition(": ")
    _, source, _, target = heads.split()
    play.ask("agent/message", source=source, target=target, content=content)
    waiting = play.ask("agent/messages", agent=target)["messages"]
    return [f"waits for {target}: {', '.join(one['content'] for one in waiting)}"]


def turn(play: Play, step: str) -> list[str]:
    heads, _, text = step.partition(": ")
    name = heads.split()[1]
    sent = play.ask("context/assemble", agent=name, message=text)
    may, said = sent["permissions"], str(sent["currentMessage"]["content"])
    told = [line for line in said.splitlines() if "session tokens" in line and line != text]
    play.ask("session/append", session=f"agent:{name}", messages=[{"role": "user", "content": text}])
    spent = {info["agentId"]: history(info) for info in play.ask("agent/list")["agents"]}
    return [
        f"{sent['role']}, {may['level']}, {sent['model']}",
        *told,
        f"history: {', '.join(f'{agent} {tokens}' for agent, tokens in spent.items())}",
    ]


def history(info: dict[str, Any]) -> int:
    return sum(row["tokens"] for row in info["usage"]["rows"] if row["category"] == "history")


def save(play: Play, step: str) -> list[str]:
    path, _, text = step.removeprefix("save ").partition(": ")
    before = len(told(play))
    (play.company / path).write_text(f"{text}\n")
    play.editor.until(lambda: len(told(play)) > before)
    play.ask("context/layers")
    return [f"{one['agentId']} {one['reason']}" for one in told(play)[before:]]


def told(play: Play) -> list[dict[str, Any]]:
    changes = [one["params"] for one in play.editor.said("nexus/agent/didChange")]
    return [one for one in changes if one["reason"] == "changed"]


def restart(play: Play, step: str) -> list[str]:
    play.editor.kill()
    play.editor = play.opened()
    return live(play, step)


def dispose(play: Play, step: str) -> list[str]:
    return [" ".join(play.ask("agent/dispose", agentId=step.split()[1])["disposed"])]


STEPS: dict[str, Callable[[Play, str], list[str]]] = {
    "spawn": spawn,
    "list": live,
    "read": read,
    "view": view,
    "send": send,
    "turn": turn,
    "save": save,
    "restart": restart,
    "dispose": dispose,
}


def test_a_change_from_its_plan_to_its_review(tmp_path: Path) -> None:
    check(
        tmp_path,
        """
spawn auth
  The parent of agent 'auth' is 'backend', which is defined in company/.nexus3/config.json and \
is not started. Start it first.

view auth as worker below backend
  backend/auth-service/.nexus3/NEXUS.md
  backend/auth-service/.nexus3/docs/threats.md
  backend/auth-service/.nexus3/AGENT.auth.md
  backend/auth-service/.nexus3/CONTEXT.md
  backend/AGENTS.md
  .nexus3/SOUL.md
  docs/glossary.md
  .nexus3/NEXUS.md

spawn backend
  backend: manager below main, in backend
  Plan the next release of the backend.

spawn auth
  auth: worker below backend, in backend/auth-service
  Compare session tokens in constant time.

read auth
  backend/auth-service/.nexus3/NEXUS.md
  backend/auth-service/.nexus3/docs/threats.md
  backend/auth-service/.nexus3/AGENT.auth.md
  backend/auth-service/.nexus3/CONTEXT.md
  backend/AGENTS.md
  .nexus3/SOUL.md
  docs/glossary.md
  .nexus3/NEXUS.md

spawn reviewer
  reviewer: worker below auth, in backend/auth-service
  Review the change of auth.

read reviewer
  .nexus3/AGENT.reviewer.md
  backend/auth-service/.nexus3/NEXUS.md
  backend/auth-service/.nexus3/docs/threats.md
  backend/auth-service/.nexus3/CONTEXT.md
  backend/AGENTS.md
  .nexus3/SOUL.md
  docs/glossary.md
  .nexus3/NEXUS.md

send reviewer to backend: Line 41 compares session tokens with ==.
  Worker 'reviewer' reports to 'auth' only. Send it there.

send reviewer to auth: Line 41 compares session tokens with ==.
  waits for auth: Line 41 compares session tokens with ==.

turn auth: What is left to do?
  worker, sandboxed, gpt-4.1
  Line 41 compares session tokens with ==.
  history: backend 0, auth 118, reviewer 0

turn auth: And now?
  worker, sandboxed, gpt-4.1
  history: backend 0, auth 146, reviewer 0

save backend/auth-service/.nexus3/CONTEXT.md: The service is released on Fridays.
  auth changed
  reviewer changed

restart
  backend: manager below main, in backend
  auth: worker below backend, in backend/auth-service
  reviewer: worker below auth, in backend/auth-service

turn reviewer: Is it fixed?
  worker, sandboxed, gpt-4.1
  history: backend 0, auth 146, reviewer 51

spawn oncall
  oncall: unified below main, in backend
  Find out why log-ins fail, and end it.

read oncall
  backend/AGENTS.md
  backend/.nexus3/AGENT.oncall.md
  .nexus3/SOUL.md
  docs/glossary.md
  .nexus3/NEXUS.md

view planner as manager below oncall
  .nexus3/AGENT.md
  backend/AGENTS.md
  .nexus3/SOUL.md
  docs/glossary.md
  .nexus3/NEXUS.md

send oncall to auth: Log-ins fail since the last release.
  waits for auth: Log-ins fail since the last release.

dispose auth
  reviewer auth

list
  backend: manager below main, in backend
  oncall: unified below main, in backend
""",
    )
