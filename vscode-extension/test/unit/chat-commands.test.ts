import { beforeEach, describe, expect, it } from "vitest";
import { NexusError } from "../../src/nexus";
import type { AgentInfo } from "../../src/protocol";
import { FOLDER, row } from "./chat-daemon";
import { Desk } from "./chat-desk";
import * as mock from "./vscode";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

describe("/context", () => {
  it("shows the daemon's rows, says what is exact, and sends nothing", async () => {
    desk.daemon.rows = [
      row("system", "Project | Configuration", 1029, `${FOLDER}/a (b)/NEXUS.md`),
      { ...row("event", "current message", 26), exact: true },
    ];
    const answer = await desk.thread().ask("", { command: "context" });
    expect(answer.text).toBe(
      [
        "Conversation **main**: ≈ 1,055 of 30,000 tokens of fake\\-1, 10 %.",
        "",
        "| | What | Tokens |",
        "|---|---|--:|",
        `| System prompt | [Project \\| Configuration](${FOLDER}/a%20%28b%29/NEXUS.md#L3) | ≈ 1,029 |`,
        "| Event | current message | 26 |",
        "| | **Total** | **≈ 1,055** |",
      ].join("\n"),
    );
    expect(answer.buttons.map((one) => one.command)).toEqual(["nexus.openPanel", "nexus.showPrompt"]);
    expect(desk.model.requests).toEqual([]);
    expect(desk.daemon.paramsOf("nexus/context/assemble")).toEqual([
      { workspaceFolder: FOLDER, session: "main", options: { model: "fake-1", maxContextTokens: 32000 } },
    ]);
    expect(desk.daemon.sessions.size).toBe(0);
  });

  it("is a look and no turn, whatever stands beside it, and cuts a long table", async () => {
    desk.daemon.rows = Array.from({ length: 60 }, (_, index) => row("history", `Turn ${index}`, 1));
    const answer = await desk.thread().ask("why?", { command: "context" });
    expect(desk.daemon.paramsOf("nexus/context/assemble")[0]).not.toHaveProperty("message");
    expect(answer.text).toContain("… and 20 more, in the panel");
    expect(answer.text).toContain("| | **Total** | **≈ 60** |");
  });

  it("ties a new thread to the session that it has shown", async () => {
    await desk.thread().ask("one");
    const second = desk.thread();
    await second.ask("", { command: "context" });
    expect((await second.ask("two")).text).toBe("ok");
    expect(desk.daemon.said("main")).toHaveLength(4);
  });
});

describe("/skill", () => {
  const sent = () =>
    desk.daemon.paramsOf("nexus/context/assemble").map(({ message, options }) => ({ message, options }));
  const options = { model: "fake-1", maxContextTokens: 32000, memoryTools: true, skillTools: true, mcpTools: true };

  beforeEach(() => {
    desk.daemon.skills = ["review", "rotate-key"];
  });

  it.each([
    ["review Look at my\nlast change.", "Look at my\nlast change."],
    ["review", "Use the skill review."],
  ])("sends %j with the text of the skill, for this turn only", async (prompt, message) => {
    const thread = desk.thread();
    await thread.ask(prompt, { command: "skill" });
    await thread.ask("and now?");
    expect(sent()).toEqual([
      { message, options: { ...options, skills: ["review"] } },
      { message: "and now?", options },
    ]);
    expect(desk.daemon.said("main")[0]).toEqual({
      role: "user",
      content: message,
      meta: { client: "vscode", skills: ["review"] },
    });
  });

  it("goes to the agent in view", async () => {
    desk.daemon.agents = [{ agentId: "checker", session: "agent:checker" } as AgentInfo];
    desk.focus.agent = "checker";
    await desk.thread().ask("review this", { command: "skill" });
    expect(desk.daemon.paramsOf("nexus/context/assemble")[0]).toMatchObject({
      agent: "checker",
      session: "agent:checker",
      message: "this",
      options: { skills: ["review"] },
    });
  });

  it("lists the skills with their tokens without a name, and sends nothing", async () => {
    const answer = await desk.thread().ask(" ", { command: "skill" });
    expect(answer.text.split("\n").slice(2)).toEqual([
      "| Skill | What it does | Tokens in the list |",
      "|---|---|--:|",
      "| review | Does review \\| well. | ≈ 12 |",
      "| rotate\\-key | Does rotate\\-key \\| well. | ≈ 12 |",
    ]);
    expect(desk.model.requests).toEqual([]);
    expect(answer.result.metadata?.nexus.kind).toBe("skill");
  });

  it("says where skills come from where there are none", async () => {
    desk.daemon.skills = [];
    const answer = await desk.thread().ask("", { command: "skill" });
    expect(answer.text).toContain("This folder has no skills.");
  });

  it("lists a skill whose file has errors, where there is no other, too", async () => {
    desk.daemon.brokenSkills = ["ro tate"];
    const row = "| ro tate | broken: see Problems | |";
    expect((await desk.thread().ask("", { command: "skill" })).text.split("\n").at(-1)).toBe(row);
    desk.daemon.skills = [];
    expect((await desk.thread().ask("", { command: "skill" })).text.split("\n").at(-1)).toBe(row);
  });

  it("says which there are where the name is unknown", async () => {
    const answer = await desk.thread().ask("revue this", { command: "skill" });
    expect(answer.result.errorDetails?.message).toBe("There is no skill revue. Skills: review, rotate-key.");
    expect(answer.titles()).toEqual(["List Skills"]);
    expect(desk.model.requests).toEqual([]);
    expect(desk.daemon.said("main")).toEqual([]);
  });
});

describe("/compact", () => {
  it("shows the receipt, and takes it back at a press", async () => {
    const answer = await desk.thread().ask("keep the decisions", { command: "compact" });
    expect(desk.daemon.paramsOf("nexus/session/compact")).toEqual([
      { workspaceFolder: FOLDER, session: "main", instructions: "keep the decisions" },
    ]);
    expect(answer.text).toBe(
      [
        "Conversation **main**: 21 messages became a summary by extractive, 1,675 → 535 tokens.",
        "",
        "What was in the old messages and is nowhere in the conversation now:",
        "",
        "- **1 path**: auth/tokens.py",
      ].join("\n"),
    );
    expect(answer.buttons[0]).toMatchObject({ title: "Undo Compaction", arguments: [FOLDER, "main", "c1"] });
    expect(desk.followups(answer.result).map((one) => one.command)).toEqual(["context"]);
  });

  it("says why there was nothing to do", async () => {
    desk.daemon.failures.push({
      method: "nexus/session/compact",
      error: new NexusError("All messages are new.", "nothing-to-compact"),
    });
    const answer = await desk.thread().ask("", { command: "compact" });
    expect(answer.result.errorDetails?.message).toBe("All messages are new.");
  });

  it("is about the thread's session, not about the one in focus", async () => {
    const first = desk.thread();
    await first.ask("one");
    await desk.thread().ask("other");
    await first.ask("", { command: "compact" });
    expect(desk.daemon.paramsOf("nexus/session/compact")[0]).toMatchObject({ session: "main" });
    expect(desk.focus.session).toBe("main");
  });
});

describe("/fork", () => {
  it.each([
    ["another way", "another way"],
    ["", "main (2)"],
  ])("with the name %j goes on in %j", async (prompt, name) => {
    const thread = desk.thread();
    await thread.ask("one");
    const answer = await thread.ask(prompt, { command: "fork" });
    expect(desk.focus.session).toBe(name);
    await thread.ask("two");
    expect(desk.daemon.said("main")).toHaveLength(2);
    expect(desk.daemon.said(name)).toHaveLength(4);
    await desk.press(answer.buttons[0]);
    expect(desk.focus.session).toBe("main");
  });

  it("says that there is nothing to fork", async () => {
    const answer = await desk.thread().ask("", { command: "fork" });
    expect(answer.result.errorDetails?.message).toBe("There is no session main.");
    expect(desk.focus.session).toBe("main");
  });
});

describe("/agent", () => {
  const auth = {
    agentId: "auth",
    session: "agent:auth",
    cwd: "/ws/auth",
    role: "worker" as const,
    task: "Fix | it",
    parent: "main",
    depth: 1,
    usage: { total: 1200, counter: { name: "o200k_base", exact: true } } as never,
  };

  it("lists agents, and views as one at a press", async () => {
    expect((await desk.thread().ask("", { command: "agent" })).text).toMatch(/^No agent is live/);
    desk.daemon.agents = [auth];
    const answer = await desk.thread().ask("", { command: "agent" });
    expect(answer.text).toContain("| auth | worker | /ws/auth | Fix \\| it | main | 1,250 |");
    await desk.press(answer.buttons[0]);
    expect(desk.focus.agent).toBe("auth");
  });

  it("views as a live agent", async () => {
    desk.daemon.agents = [auth];
    const answer = await desk.thread().ask("auth", { command: "agent" });
    expect(desk.focus.agent).toBe("auth");
    expect(answer.text).toContain(
      "From here on you talk to **auth**: panel and chat show what it sees (1,250 tokens).",
    );
    await desk.press(answer.buttons[0]);
    expect(desk.focus.agent).toBeUndefined();
    expect(desk.daemon.paramsOf("nexus/agent/spawn")).toEqual([]);
  });

  it("talks to a live agent, in its session", async () => {
    desk.daemon.agents = [auth];
    await desk.thread().ask("auth Fix\nthe login.", { command: "agent" });
    expect(desk.daemon.said("agent:auth").map((one) => one.content)).toEqual(["Fix\nthe login.", "ok"]);
    expect(desk.daemon.paramsOf("nexus/context/assemble").at(-1)).toMatchObject({
      agent: "auth",
      message: "Fix\nthe login.",
    });
  });

  it("goes back to the folder's own agent, which nobody starts", async () => {
    desk.focus.setAgent("auth");
    const answer = await desk.thread().ask("main", { command: "agent" });
    expect(answer.text).toMatch(/^From here on you talk to the folder's own agent/);
    expect(desk.focus.agent).toBeUndefined();
    expect(desk.daemon.paramsOf("nexus/agent/spawn")).toEqual([]);
  });

  it("starts an agent in the directory that the user names", async () => {
    Object.assign(mock.workspace.fs, {
      stat: async (uri: mock.Uri) => {
        if (!["/ws/packages/api", "/ws/docs"].includes(uri.path)) throw new Error("not there");
        return { type: uri.path === "/ws/docs" ? 1 : 2 };
      },
    });
    await desk.thread().ask("packages/api Find the slow test.", { command: "agent" });
    await desk.thread().ask("docs", { command: "agent" }); // a file is no place to work in
    expect(desk.daemon.paramsOf("nexus/agent/spawn")).toEqual([
      { workspaceFolder: FOLDER, agentId: "packages-api", cwd: `${FOLDER}/packages/api`, task: "Find the slow test." },
      { workspaceFolder: FOLDER, agentId: "docs", cwd: FOLDER },
    ]);
  });

  it("starts an agent: where the settings say, else in the folder", async () => {
    desk.daemon.configured = { auth: { cwd: "auth" } };
    await desk.thread().ask("auth", { command: "agent" });
    const answer = await desk.thread().ask("free Look around.", { command: "agent" });
    expect(desk.daemon.paramsOf("nexus/agent/spawn")).toEqual([
      { workspaceFolder: FOLDER, agentId: "auth" },
      { workspaceFolder: FOLDER, agentId: "free", cwd: FOLDER, task: "Look around." },
    ]);
    expect(answer.text).toBe(
      "ok\n\n> Agent **free**, in its conversation **agent:free**. It was started for this.\n\n",
    );
    expect(desk.daemon.said("agent:free").map((one) => one.content)).toEqual(["Look around.", "ok"]);
  });
});

describe("/init", () => {
  it("links what was created and what was left alone", async () => {
    const answer = await desk.thread().ask("", { command: "init" });
    expect(answer.text).toBe(
      `Created:\n\n- <${FOLDER}/.nexus3/NEXUS.md>\n\nThere already, and left alone:\n\n- <${FOLDER}/.nexus3/mcp.json>\n\n`,
    );
  });
});

it("registers no command twice, and a participant with an icon", () => {
  expect([...mock.mock.commands.keys()]).toEqual([
    "nexus.chat.useSession",
    "nexus.chat.viewAs",
    "nexus.chat.undoCompaction",
    "nexus.chat.answerTool",
    "nexus.chat.recordAgain",
  ]);
  expect(mock.chat.participants.at(-1)).toMatchObject({ id: "nexus.chat", iconPath: { id: "layers" } });
});
