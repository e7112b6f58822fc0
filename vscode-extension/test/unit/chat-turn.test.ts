import { beforeEach, describe, expect, it, vi } from "vitest";
import { NexusError } from "../../src/nexus";
import { Desk, FOLDER, OTHER, RECEIPT, row } from "./chat-daemon";
import * as mock from "./vscode";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

const sent = (index = -1) =>
  desk.model.requests
    .at(index)
    ?.messages.map(({ role, content }) => [
      role === 1 ? "user" : "assistant",
      ...content.map((part) => Object.values(part as object)[0] as unknown),
    ]);

describe("a turn", () => {
  it("sends what the daemon assembled, and writes what was said", async () => {
    desk.model.replies = [["Hel", "lo."]];
    const answer = await desk.thread().ask("hi");
    expect(sent()).toEqual([
      ["user", "You are Nexus."],
      ["user", "hi"],
    ]);
    expect(answer.text).toBe("> Conversation **main** begins here.\n\nHello.");
    expect(desk.daemon.said("main")).toEqual([
      { role: "user", content: "hi", meta: { client: "vscode" } },
      { role: "assistant", content: "Hello." },
    ]);
    expect(desk.daemon.paramsOf("nexus/context/assemble")).toEqual([
      {
        workspaceFolder: FOLDER,
        session: "main",
        message: "hi",
        format: "openai",
        options: { model: "fake-1", maxContextTokens: 32000, memoryTools: true },
      },
    ]);
    expect(answer.references).toEqual([`${FOLDER}/.nexus3/NEXUS.md`]);
    expect(answer.result.metadata?.nexus).toMatchObject({
      kind: "turn",
      percent: 10,
      mark: { session: "main", turn: "t1-1" },
    });
  });

  it("shows files of layers and of the workspace as references, not those of Nexus itself", async () => {
    desk.daemon.rows = [
      row("system", "System Configuration", 4, "file:///opt/nexus/texts/configuration.md"),
      row("system", "Project Configuration", 29, `${FOLDER}/.nexus3/NEXUS.md`),
      row("system", "Import", 3, `${FOLDER}/docs/style.md`),
      row("history", "Turn 1", 3, `${FOLDER}/other.md`),
    ];
    const answer = await desk.thread().ask("hi");
    expect(answer.references).toEqual([`${FOLDER}/.nexus3/NEXUS.md`, `${FOLDER}/docs/style.md`]);
  });

  it("says what was left out, and offers to take a compaction back", async () => {
    desk.daemon.metadata = {
      truncated: true,
      truncation: { strategy: "oldest_first", removedMessages: 7, removedTokens: 1200 },
      compaction: {
        id: "c9",
        reached: true,
        receipt: {
          ...RECEIPT,
          id: "c9",
          reason: "threshold",
          replacedMessages: 20,
          tokensBefore: 9000,
          tokensAfter: 800,
        },
      },
    };
    const answer = await desk.thread().ask("hi");
    expect(answer.text).toContain(
      "> Compacted first: 20 messages became a summary by extractive, 9,000 → 800 tokens; lost: 1 path.\n",
    );
    expect(answer.text).toContain("7 older messages are not sent (1,200 tokens less)");
    expect(answer.titles()).toEqual(["Undo Compaction", "Show Receipt", "Open Context Panel"]);
    await desk.press(answer.buttons[1]);
    expect(mock.mock.opened.at(-1)).toMatchObject({ content: expect.stringContaining("### Paths (1)") });
    await desk.press(answer.buttons[0]);
    expect(desk.daemon.paramsOf("nexus/session/undoCompaction")).toEqual([
      { workspaceFolder: FOLDER, session: "main", compaction: "c9" },
    ]);
    expect(mock.mock.messages.map((one) => one.text)).toEqual([
      "Conversation main is as it was before the compaction.",
    ]);
  });

  it("asks nothing of the model where there is no question", async () => {
    const answer = await desk.thread().ask("  ");
    expect(answer.text).toContain("/context");
    expect(desk.daemon.asked).toEqual([]);
    expect(desk.followups(answer.result).map((one) => one.command)).toEqual(["init"]);
  });

  it.each([
    [{ reached: true }, "Compacted first, by another window or request.", ["Open Context Panel"]],
    [{ reached: false, problem: "No gain." }, "Compaction was due, but: No gain.", ["Compact", "Open Context Panel"]],
    [
      { id: "c1", reached: false, receipt: RECEIPT },
      "lost: 1 path. It is still above the threshold.",
      ["Undo Compaction", "Show Receipt", "Open Context Panel"],
    ],
  ])("says what became of a compaction that was due: %j", async (compaction, said, titles) => {
    desk.daemon.metadata = { compaction };
    const answer = await desk.thread().ask("hi");
    expect(answer.text).toContain(said);
    expect(answer.titles()).toEqual(titles);
  });

  it("suggests to compact a conversation that is nearly full", async () => {
    desk.daemon.metadata = { shouldCompact: true, compactionReason: "token_limit", wantedPercent: 81.5 };
    const answer = await desk.thread().ask("hi");
    expect(answer.text).toContain("> The conversation takes 82 % of what the model takes.");
    expect(answer.titles()).toEqual(["Compact", "Open Context Panel"]);
    expect(desk.followups(answer.result).map((one) => one.command)).toEqual(["compact", "context"]);
  });
});

describe("tools", () => {
  const memory = { name: "query_l2_memory", description: "Recall.", inputSchema: { type: "object" } };

  it("runs the daemon's memory tools, and writes calls and results", async () => {
    desk.daemon.tools = [memory, { name: "fs.write", description: "Not ours." }];
    desk.model.replies = [["Let me see. ", { call: "query_l2_memory", input: { limit: 3 }, id: "a" }], ["Found."]];
    const answer = await desk.thread().ask("what did we decide?");
    expect(desk.model.requests.map((one) => one.options.tools?.map((tool) => tool.name))).toEqual([
      ["query_l2_memory"],
      ["query_l2_memory"],
    ]);
    expect(desk.daemon.paramsOf("nexus/memory/query")).toEqual([
      { workspaceFolder: FOLDER, session: "main", tool: "query_l2_memory", arguments: { limit: 3 } },
    ]);
    expect(desk.daemon.said("main").slice(1)).toEqual([
      {
        role: "assistant",
        content: "Let me see. ",
        toolCalls: [{ id: "a", name: "query_l2_memory", arguments: { limit: 3 } }],
      },
      { role: "tool", content: "found by query_l2_memory", toolCallId: "a", name: "query_l2_memory" },
      { role: "assistant", content: "Found." },
    ]);
    expect(answer.steps).toEqual(["Asking memory (query_l2_memory)"]);
  });

  it("offers none where the user does not want them, or the model cannot call", async () => {
    desk.daemon.tools = [memory];
    mock.mock.settings.set("nexus.chat.memoryTools", false);
    await desk.thread().ask("hi");
    mock.mock.settings.clear();
    desk.model.capabilities = { supportsToolCalling: false };
    await desk.thread().ask("hi");
    expect(desk.model.requests.map((one) => one.options.tools)).toEqual([undefined, undefined]);
  });
});

describe("cancellation and failures", () => {
  it("writes what was said before the user cancelled, marked as partial, and stays in the session", async () => {
    const source = new mock.CancellationTokenSource();
    const thread = desk.thread();
    desk.model.replies = [["The first half", () => source.cancel(), " and the second"]];
    await thread.ask("tell", { source });
    expect(desk.daemon.said("main")).toEqual([
      { role: "user", content: "tell", meta: { client: "vscode" } },
      { role: "assistant", content: "The first half", meta: { partial: true, reason: "cancelled" } },
    ]);
    await thread.ask("go on");
    expect([...desk.daemon.sessions.keys()]).toEqual(["main"]);
    expect(desk.daemon.said("main")).toHaveLength(4);
  });

  it("gives every call a result when the user cancels between call and result", async () => {
    const source = new mock.CancellationTokenSource();
    desk.daemon.tools = [{ name: "query_l2_memory", description: "Recall." }];
    desk.model.replies = [[{ call: "query_l2_memory", input: {}, id: "a" }, () => source.cancel()]];
    await desk.thread().ask("tell", { source });
    expect(desk.daemon.said("main").slice(1)).toEqual([
      { role: "assistant", content: null, toolCalls: [{ id: "a", name: "query_l2_memory", arguments: {} }] },
      {
        role: "tool",
        content: "The user cancelled before this call was run.",
        toolCallId: "a",
        name: "query_l2_memory",
        meta: { partial: true, reason: "cancelled" },
      },
    ]);
  });

  it("writes nothing where nothing was said, and a retry is no second turn", async () => {
    const thread = desk.thread();
    desk.model.replies = [[new mock.LanguageModelError("no", "Blocked")], ["ok"]];
    const failed = await thread.ask("hi");
    expect(failed.result.errorDetails?.message).toBe(
      "Fake refused the request: no. Change the message, or pick another model.",
    );
    expect(desk.daemon.said("main")).toEqual([]);
    thread.back();
    await thread.ask("hi");
    expect([...desk.daemon.sessions].map(([name, one]) => [name, one.turns.length])).toEqual([["main", 1]]);
  });

  it("writes a partial answer where the model fails in the middle, and suggests to go on", async () => {
    desk.model.replies = [["Half", new Error("connection reset")]];
    const answer = await desk.thread().ask("hi");
    expect(desk.daemon.said("main").at(-1)).toEqual({
      role: "assistant",
      content: "Half",
      meta: { partial: true, reason: "failed", error: "connection reset." },
    });
    expect(answer.result.errorDetails?.message).toBe("Fake failed: connection reset. Try again.");
    expect(desk.followups(answer.result)[0]?.prompt).toBe("Go on.");
  });

  it.each([
    ["NoPermissions", "not allowed", /^Nexus may not use Fake: not allowed\./, ["Manage Language Model Access"]],
    ["NotFound", "gone", /^Fake is not there any more/, []],
    ["Blocked", "Quota exceeded", /Try again later, or pick another model\.$/, []],
    ["Unknown", "context_length_exceeded", /^The context is too long for Fake/, ["Compact", "Open Context Panel"]],
  ])("explains %s", async (code, text, message, buttons) => {
    desk.model.replies = [[new mock.LanguageModelError(text, code)]];
    const answer = await desk.thread().ask("hi");
    expect(answer.result.errorDetails?.message).toMatch(message);
    expect(answer.titles()).toEqual(buttons);
  });

  it("explains a context that does not fit, before anything is sent", async () => {
    desk.daemon.failures.push({
      method: "nexus/context/assemble",
      error: new NexusError("The context does not fit.", "context-overflow"),
    });
    const answer = await desk.thread().ask("hi");
    expect(answer.result.errorDetails?.message).toContain("compact the conversation");
    expect(answer.buttons[0]).toMatchObject({ arguments: [{ query: "@nexus /compact" }] });
    expect(desk.followups(answer.result).map((one) => one.command)).toEqual(["compact", "context"]);
    expect(desk.model.requests).toEqual([]);
  });

  it("waits for a server that starts, starts one that is stopped, and says what to do with one that failed", async () => {
    desk.daemon.state = "starting";
    setTimeout(() => desk.daemon.become("ready"), 5);
    expect((await desk.thread().ask("hi")).text).toContain("ok");
    desk.daemon.state = "stopped";
    expect((await desk.thread().ask("hi")).text).toContain("ok");
    expect(desk.daemon.starts).toBe(1);
    desk.daemon.become("failed", "Python 3.11 is missing.");
    const answer = await desk.thread().ask("hi");
    expect(answer.result.errorDetails?.message).toBe("Python 3.11 is missing.");
    expect(answer.titles()).toEqual(["Restart Server", "Show Output"]);
  });

  it("does not wait for ever", async () => {
    vi.useFakeTimers();
    desk.daemon.state = "installing";
    desk.daemon.detail = "Downloading what the server needs";
    const asking = desk.thread().ask("hi");
    await vi.advanceTimersByTimeAsync(181_000);
    vi.useRealTimers();
    const answer = await asking;
    expect(answer.steps).toEqual(["Downloading what the server needs"]);
    expect(answer.result.errorDetails?.message).toBe(
      "The Nexus server was not ready within 180 s (Downloading what the server needs). Try again.",
    );
    desk.daemon.become("ready");
  });

  it("says that a folder is needed", async () => {
    desk.focus.folder = undefined;
    desk.daemon.state = "stopped";
    const answer = await desk.thread().ask("hi");
    expect(answer.result.errorDetails?.message).toMatch(/^Open a folder on the disk first/);
    expect(answer.titles()).toEqual(["Open Folder"]);
    expect([desk.daemon.starts, desk.daemon.asked]).toEqual([0, []]);
  });
});

describe("the ledger", () => {
  it("adds a turn once, though the reply of its append was lost", async () => {
    vi.useFakeTimers();
    desk.daemon.failures.push({ method: "nexus/session/append", error: new Error("connection closed"), after: true });
    const asking = desk.thread().ask("hi");
    await vi.advanceTimersByTimeAsync(1000);
    vi.useRealTimers();
    const answer = await asking;
    const keys = desk.daemon.paramsOf("nexus/session/append").map((params) => params.idempotencyKey);
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(desk.daemon.sessions.get("main")?.turns).toHaveLength(1);
    expect(answer.titles()).not.toContain("Record Again");
  });

  it("keeps a turn that could not be written, and writes it before the next", async () => {
    const thread = desk.thread();
    desk.daemon.failures.push({
      method: "nexus/session/append",
      error: new NexusError("No room left.", "ledger-full"),
    });
    const answer = await thread.ask("one");
    expect(answer.text).toContain("**This turn is not in the ledger yet.** No room left.");
    expect(answer.titles()).toEqual(["Record Again"]);
    await thread.ask("two");
    expect(desk.daemon.said("main").map((one) => one.content)).toEqual(["one", "ok", "two", "ok"]);
    await desk.press(answer.buttons[0]);
    expect(mock.mock.messages.at(-1)?.text).toBe("The turn is in the ledger already.");
  });

  it("goes on in the fork where another window went on meanwhile", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.model.replies = [
      ["two", () => desk.daemon.sessions.get("main")?.turns.push({ id: "elsewhere", messages: [], key: "" })],
    ];
    const answer = await thread.ask("two?");
    expect(answer.text).toContain("this turn is in **main \\(2\\)**, a fork of **main**");
    expect(desk.focus.session).toBe("main (2)");
    await thread.ask("three?");
    expect(desk.daemon.said("main (2)").map((one) => one.content)).toEqual([
      "one",
      "ok",
      "two?",
      "two",
      "three?",
      "ok",
    ]);
  });
});

describe("attachments", () => {
  const file = (path: string) => mock.Uri.parse(`${FOLDER}/${path}`);

  it("puts files and selections before the question, unsaved text first, and keeps what was typed", async () => {
    const { Location, Range } = mock;
    const text = "one\ntwo `x`\nthree";
    mock.workspace.textDocuments = [
      {
        uri: file("a.py"),
        languageId: "python",
        getText: (range?: mock.Range) => (range === undefined ? text : "two"),
      },
    ];
    const references = [
      { id: "b", value: new Location(file("a.py"), new Range(1, 0, 1, 3)) },
      { id: "a", value: file("a.py") },
    ];
    const answer = await desk.thread().ask("why?", { references });
    const content = `\`a.py\`:\n\n\`\`\`python\n${text}\n\`\`\`\n\n\`a.py, lines 2–2\`:\n\n\`\`\`python\ntwo\n\`\`\`\n\nwhy?`;
    expect(desk.daemon.said("main")[0]).toEqual({
      role: "user",
      content,
      meta: { client: "vscode", prompt: "why?", references: [`${FOLDER}/a.py`, `${FOLDER}/a.py`] },
    });
    expect(answer.references).toEqual([`${FOLDER}/a.py`, `${FOLDER}/a.py`, `${FOLDER}/.nexus3/NEXUS.md`]);
  });

  it("says what it does not read: too large, not text, unknown; lists directories", async () => {
    const entries: Record<string, { type: number; size: number; bytes?: Uint8Array }> = {
      "/ws/big": { type: 1, size: 2 ** 21 },
      "/ws/image": { type: 1, size: 2, bytes: new Uint8Array([0xff, 0xfe]) },
      "/ws/src": { type: 2, size: 0 },
    };
    Object.assign(mock.workspace.fs, {
      stat: async (uri: mock.Uri) => entries[uri.path],
      readFile: async (uri: mock.Uri) => entries[uri.path]?.bytes,
      readDirectory: async () => [
        ["lib", 2],
        ["a.ts", 1],
      ],
    });
    const values = [file("big"), file("image"), file("src"), 7];
    const answer = await desk.thread().ask("?", { references: values.map((value) => ({ id: "x", value })) });
    expect(answer.text).toContain("big: larger than 1 MiB");
    expect(answer.text).toContain("image: is not UTF\\-8 text");
    expect(answer.text).toContain("x: this kind of attachment is not known");
    expect(desk.daemon.said("main")[0]?.content).toBe("`src`:\n\n```\na.ts\nlib/\n```\n\n?");
  });

  it("sends images as parts to the daemon", async () => {
    const picture = { mimeType: "image/png", data: async () => new Uint8Array([1, 2, 3]) };
    await desk.thread().ask("what is it?", { references: [{ id: "i", value: picture }] });
    expect(desk.daemon.said("main")[0]?.content).toEqual([
      { type: "text", text: "what is it?" },
      { type: "image", mimeType: "image/png", data: "AQID" },
    ]);
  });
});

describe("which session a chat thread is in", () => {
  const names = () => [...desk.daemon.sessions].map(([name, one]) => [name, one.turns.length]);

  it("begins a session of its own for a second thread, and offers the other", async () => {
    await desk.thread().ask("one");
    const second = desk.thread();
    const answer = await second.ask("Why does the login fail on Mondays, of all days?");
    expect(names()).toEqual([
      ["main", 1],
      ["Why does the login fail on Mondays, of", 1],
    ]);
    expect(desk.focus.session).toBe("Why does the login fail on Mondays, of");
    expect(answer.titles()).toEqual(["Go On in main Instead"]);
    await desk.press(answer.buttons[0]);
    expect((await second.ask("two")).text).toContain(
      "> Goes on in conversation **main** (1 turn), which you switched to.",
    );
    expect(names()[0]).toEqual(["main", 2]);
  });

  it("takes the session that the user has chosen for a new thread, and says how long it is", async () => {
    desk.daemon.begin("plan", [[], []]);
    await desk.thread().ask("one");
    desk.focus.setSession("plan");
    const answer = await desk.thread().ask("two");
    expect(answer.text).toContain("> Goes on in conversation **plan** (2 turns).");
    expect(answer.titles()).toEqual(["New Conversation"]);
  });

  it("keeps a thread that is opened again where it was, and the focus follows", async () => {
    const first = desk.thread();
    await first.ask("one");
    await desk.thread().ask("other");
    const answer = await first.ask("two");
    expect(answer.text).toBe("ok");
    expect(names()[0]).toEqual(["main", 2]);
    expect(desk.focus.session).toBe("main");
  });

  it("knows a thread after the window was reloaded, and after its session was renamed", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.open();
    const session = desk.daemon.sessions.get("main");
    desk.daemon.sessions.delete("main");
    desk.daemon.sessions.set("renamed", session ?? desk.daemon.begin("x"));
    desk.focus.setSession("renamed");
    expect((await thread.ask("two")).text).toBe("ok");
    expect(names()).toEqual([["renamed", 2]]);
  });

  it("says that a session was deleted or cleared", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.daemon.sessions.clear();
    expect((await thread.ask("two")).text).toContain("Conversation **main** was deleted");
    desk.daemon.begin("main");
    expect((await thread.ask("three")).text).toContain("Conversation **main** was cleared");
  });

  it("does not go on in main because the thread's session was deleted", async () => {
    desk.daemon.begin("plan");
    desk.focus.setSession("plan");
    const thread = desk.thread();
    await thread.ask("one");
    desk.daemon.begin("main", [[]]);
    desk.daemon.sessions.delete("plan");
    desk.focus.setSession("main");
    expect((await thread.ask("two")).text).toContain("Conversation **plan** was deleted");
    expect(names()).toEqual([
      ["main", 1],
      ["plan", 1],
    ]);
  });

  it("goes on in a fork where a turn was taken back: the model does not see it, nothing is lost", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    await thread.ask("two");
    thread.back();
    desk.model.replies = [["new"]];
    const answer = await thread.ask("two, better");
    expect(answer.text).toContain("You went back, so this goes on in **main \\(2\\)**, a fork.");
    expect(sent()?.flat()).not.toContain("two");
    expect(desk.daemon.said("main").map((one) => one.content)).toEqual(["one", "ok", "two", "ok"]);
    expect(desk.daemon.said("main (2)").map((one) => one.content)).toEqual(["one", "ok", "two, better", "new"]);
    expect((await thread.ask("three")).text).toBe("ok");
  });

  it("begins anew where the first turn was taken back", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    thread.back();
    await thread.ask("one, better");
    expect(names()).toEqual([
      ["main", 1],
      ["one, better", 1],
    ]);
  });

  it("stays in its folder though the editor shows another one, and says so", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.focus.setFolder(mock.Uri.parse(OTHER) as never);
    desk.focus.session = "elsewhere";
    const answer = await thread.ask("two");
    expect(answer.text).toBe("> Folder **ws**.\n\nok");
    expect(names()).toEqual([["main", 2]]);
    expect(desk.focus.session).toBe("elsewhere");
  });

  it("talks to the agent in focus, in its session, and leaves the thread where it is", async () => {
    const thread = desk.thread();
    await thread.ask("one");
    desk.daemon.begin("agent:auth");
    desk.daemon.agents = [
      { agentId: "auth", session: "agent:auth", cwd: "/ws", role: "worker", depth: 1, usage: {} as never },
    ];
    desk.focus.setAgent("auth");
    const answer = await thread.ask("mend it");
    expect(answer.text).toContain("To agent **auth**, in its conversation **agent:auth**.");
    expect(desk.daemon.paramsOf("nexus/context/assemble").at(-1)).toMatchObject({
      agent: "auth",
      session: "agent:auth",
    });
    desk.daemon.agents = [];
    await thread.ask("two");
    expect(desk.focus.agent).toBeUndefined();
    expect(names()).toEqual([
      ["main", 2],
      ["agent:auth", 1],
    ]);
  });
});
