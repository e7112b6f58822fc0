import { beforeEach, describe, expect, it, vi } from "vitest";
import { NexusError } from "../../src/nexus";
import { FOLDER, RECEIPT, row } from "./chat-daemon";
import { Desk } from "./chat-desk";
import * as mock from "./vscode";

let desk: Desk;

beforeEach(() => {
  desk = new Desk();
});

describe("a turn", () => {
  it("sends what the daemon assembled, and writes what was said", async () => {
    desk.model.replies = [["Hel", "lo."]];
    const answer = await desk.thread().ask("hi");
    expect(desk.sent()).toEqual([
      ["user", "You are Nexus."],
      ["user", "hi"],
    ]);
    expect(answer.text).toBe("Hello.\n\n> Conversation **main** begins here.\n\n");
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
        options: { model: "fake-1", maxContextTokens: 32000, memoryTools: true, skillTools: true, mcpTools: true },
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

  describe("that the model refuses as too long", () => {
    const refusal = () => new mock.LanguageModelError("context_length_exceeded");

    it("is compacted further, and sent once more", async () => {
      desk.model.replies = [[refusal()], ["There."]];
      const answer = await desk.thread().ask("Where is the gate?");
      expect(desk.daemon.paramsOf("nexus/session/compact")).toEqual([
        { workspaceFolder: FOLDER, session: "main", overflow: true },
      ]);
      expect(desk.daemon.paramsOf("nexus/context/assemble")).toHaveLength(2);
      expect(answer.text).toContain("There.");
      expect(answer.text).toContain("The context was too long for Fake. Compacted, and sent once more: ");
      expect(answer.titles()).toEqual(["Undo Compaction", "Show Receipt"]);
      expect(answer.result.errorDetails).toBeUndefined();
      expect(desk.daemon.said("main").map((message) => message.role)).toEqual(["user", "assistant"]);
    });

    it("fails if it is refused again", async () => {
      desk.model.replies = [[refusal()], [refusal()], ["never"]];
      const answer = await desk.thread().ask("Where is the gate?");
      expect(desk.model.requests).toHaveLength(2);
      expect(answer.result.errorDetails?.message).toMatch(/^The context is too long for Fake/u);
      expect(answer.titles()).toEqual(["Undo Compaction", "Show Receipt", "Compact", "Open Context Panel"]);
    });

    it("fails with the reason if nothing can be compacted", async () => {
      desk.model.replies = [[refusal()], ["never"]];
      const error = new NexusError("All messages are new.", "nothing-to-compact");
      desk.daemon.failures.push({ method: "nexus/session/compact", error });
      const answer = await desk.thread().ask("Where is the gate?");
      expect(desk.model.requests).toHaveLength(1);
      expect(answer.result.errorDetails?.message).toContain("Compacting it did not help: All messages are new.");
    });

    it("stays as it is if the model had begun to answer", async () => {
      desk.model.replies = [["It is", refusal()], ["never"]];
      await desk.thread().ask("Where is the gate?");
      expect(desk.daemon.paramsOf("nexus/session/compact")).toEqual([]);
    });
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
    expect(answer.buttons[1]).toMatchObject({
      command: "nexus.showReceipt",
      arguments: [{ folder: FOLDER, session: "main", compaction: "c9" }],
    });
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

  it("reads the skills that the model asks for, and tells it what is wrong", async () => {
    desk.daemon.skills = ["review"];
    desk.daemon.tools = [{ name: "read_skill", description: "Read.", inputSchema: { type: "object" } }];
    const call = (name: string) => [{ call: "read_skill", input: { name }, id: name }];
    desk.model.replies = [call("review"), call("nothing"), ["Done."]];
    const answer = await desk.thread().ask("review it");
    expect(desk.daemon.paramsOf("nexus/skill/read")).toEqual([
      { workspaceFolder: FOLDER, arguments: { name: "review" } },
      { workspaceFolder: FOLDER, arguments: { name: "nothing" } },
    ]);
    expect(answer.steps).toEqual(["Reading a skill (read_skill)", "Reading a skill (read_skill)"]);
    const results = desk.daemon.said("main").filter((message) => message.role === "tool");
    expect(results.map(({ content }) => content)).toEqual([
      "text of review",
      "The call failed: There is no skill nothing.",
    ]);
  });

  it("runs the tools for agents where the user wants them", async () => {
    const sent = () => desk.daemon.paramsOf("nexus/context/assemble");
    const offered = () => sent().map(({ options }) => JSON.stringify(options).includes('"agentTools":true'));
    desk.daemon.tools = [memory, { name: "message_agent", description: "Write.", inputSchema: { type: "object" } }];
    await desk.thread().ask("hi");
    mock.mock.settings.set("nexus.chat.agentTools", true);
    const input = { target: "db", content: "Faster." };
    desk.model.replies = [[{ call: "message_agent", input, id: "a" }], ["Sent."]];
    const answer = await desk.thread().ask("tell db");
    expect(offered()).toEqual([false, true]);
    const [params, ...more] = desk.daemon.paramsOf("nexus/agent/call");
    expect(params).toMatchObject({ workspaceFolder: FOLDER, tool: "message_agent", arguments: input });
    expect(more).toEqual([]);
    expect(desk.daemon.paramsOf("nexus/memory/query")).toEqual([]);
    expect(answer.steps).toEqual(["Managing agents (message_agent)"]);
    const results = [...desk.daemon.sessions.keys()].flatMap((one) => desk.daemon.said(one));
    expect(results).toContainEqual({
      role: "tool",
      content: "done by message_agent",
      toolCallId: "a",
      name: "message_agent",
    });
    desk.model.capabilities = { supportsToolCalling: false };
    await desk.thread().ask("hi");
    expect(offered()).toEqual([false, true, false]);
  });

  it("offers none where the user does not want them, or the model cannot call", async () => {
    desk.daemon.tools = [memory];
    for (const name of ["memoryTools", "skillTools"]) mock.mock.settings.set(`nexus.chat.${name}`, false);
    await desk.thread().ask("hi");
    mock.mock.settings.clear();
    desk.model.capabilities = { supportsToolCalling: false };
    await desk.thread().ask("hi");
    expect(desk.model.requests.map((one) => one.options.tools)).toEqual([undefined, undefined]);
  });
});

describe("the editor's tools", () => {
  const schema = { type: "object", properties: { id: { type: "number" } } };
  const tool = (name: string) => ({ name, description: `Does ${name}.`, inputSchema: schema, tags: [] });
  const definition = (name: string) => ({ name, description: `Does ${name}.`, inputSchema: schema });
  const offered = () => desk.model.requests.map((one) => one.options.tools?.map(({ name }) => name));
  const result = () => desk.daemon.said("main").find((message) => message.role === "tool")?.content;
  const text = (value: string) => ({ content: [new mock.LanguageModelTextPart(value)] });
  const call = (name: string) => [{ call: name, input: { id: 7 }, id: "a" }];

  beforeEach(() => {
    mock.lm.tools = [tool("jira_read"), tool("jira_write"), tool("deploy"), tool("query_l2_memory")];
  });

  it("offers none that the user did not choose", async () => {
    await desk.thread().ask("hi");
    expect(desk.daemon.paramsOf("nexus/context/assemble")[0]).not.toHaveProperty("turnTools");
    expect(offered()).toEqual([undefined]);
  });

  it.each([
    [["jira_*"], ["jira_read", "jira_write"]],
    [
      ["deploy", "jira_read"],
      ["deploy", "jira_read"],
    ],
    [["*"], ["deploy", "jira_read", "jira_write"]],
    [["jira.read", "JIRA_*", "other", 7], undefined],
  ])("offers those that the setting names: %j", async (setting, names) => {
    mock.mock.settings.set("nexus.chat.tools", setting);
    await desk.thread().ask("hi");
    const { turnTools } = desk.daemon.paramsOf("nexus/context/assemble")[0] ?? {};
    expect([turnTools, offered()]).toEqual([names?.map(definition), [names]]);
  });

  it("offers an attached one for its message, runs its calls, and writes them", async () => {
    mock.lm.invoke = () => text("Issue 7: open");
    desk.model.replies = [call("jira_read"), ["It is open."], ["ok"]];
    const thread = desk.thread();
    const more = { toolReferences: [{ name: "jira_read" }], toolInvocationToken: "the request's" };
    const answer = await thread.ask("is #jira_read 7 open?", more);
    expect(mock.lm.invoked).toEqual([["jira_read", { input: { id: 7 }, toolInvocationToken: "the request's" }]]);
    expect(answer.steps).toEqual(["Running (jira_read)"]);
    expect(desk.daemon.said("main").slice(1)).toEqual([
      { role: "assistant", content: null, toolCalls: [{ id: "a", name: "jira_read", arguments: { id: 7 } }] },
      { role: "tool", content: "Issue 7: open", toolCallId: "a", name: "jira_read" },
      { role: "assistant", content: "It is open." },
    ]);
    await thread.ask("thanks");
    expect(offered()).toEqual([["jira_read"], ["jira_read"], undefined]);
  });

  it.each([
    ["an error", () => Promise.reject(new Error("no network")), "The call failed: no network."],
    [
      "a refusal",
      () => Promise.reject(new mock.CancellationError()),
      "The user did not allow this call. Do not repeat it; go on without it, or ask.",
    ],
    ["nothing", () => ({ content: [] }), "The tool returned nothing."],
    [
      "parts of all kinds",
      () => ({
        content: [
          new mock.LanguageModelTextPart("plain"),
          {
            value: {
              node: {
                children: [
                  { type: 2, text: "one" },
                  { type: 2, text: "two", lineBreakBefore: true },
                ],
              },
            },
          },
          { mimeType: "application/json", data: new TextEncoder().encode('{"a":1}') },
          { mimeType: "image/png", data: new Uint8Array(3) },
          { value: 7 },
        ],
      }),
      'plain\none\ntwo\n{"a":1}\n[Left out: image/png, 3 bytes]\n[Left out: a part that is not text]',
    ],
  ])("makes a result for the model of %s", async (_what, invoke, content) => {
    mock.mock.settings.set("nexus.chat.tools", ["deploy"]);
    mock.lm.invoke = invoke;
    desk.model.replies = [call("deploy"), ["I see."]];
    await desk.thread().ask("deploy");
    expect(result()).toBe(content);
  });

  it("says which tools that the user attached are not offered, and why", async () => {
    desk.daemon.leftOut = { deploy: "disabled" };
    const toolReferences = ["deploy", "gone", "query_l2_memory"].map((name) => ({ name }));
    const answer = await desk.thread().ask("hi", { toolReferences });
    expect(offered()).toEqual([undefined]);
    expect(answer.text.split("\n").filter((line) => line.includes("not offered"))).toEqual([
      "> gone: not offered, because the editor has no such tool",
      "> query\\_l2\\_memory: not offered, because Nexus has a tool of this name",
      "> deploy: not offered, because of the settings (disabled)",
    ]);
  });

  it("offers none to a model that cannot call tools", async () => {
    mock.mock.settings.set("nexus.chat.tools", ["*"]);
    desk.model.capabilities = { supportsToolCalling: false };
    const answer = await desk.thread().ask("hi", { toolReferences: [{ name: "deploy" }] });
    expect(desk.daemon.paramsOf("nexus/context/assemble")[0]).not.toHaveProperty("turnTools");
    expect(answer.text).toContain("deploy: not offered, because Fake cannot call tools");
  });
});

describe("model parameters", () => {
  const set = (value: unknown, origin = "local") => ({ value, origin }) as never;

  it("are sent as the settings, the session or the request set them, and no others", async () => {
    desk.daemon.fields = {
      temperature: 0.2,
      top_p: 0.9,
      max_completion_tokens: 500,
      reasoning_effort: "low",
      prompt_cache_key: "k",
      tools: [],
      stream: true,
    };
    desk.daemon.parameters = {
      temperature: set(0.2),
      top_p: set(0.9, "built-in"),
      max_tokens: set(500, "session"),
      thinking: set({ level: "low" }, "global"),
    };
    await desk.thread().ask("hi");
    expect(desk.model.requests[0]?.options.modelOptions).toEqual({
      temperature: 0.2,
      max_tokens: 500,
      reasoning_effort: "low",
    });
  });

  it("are not sent where nothing sets one", async () => {
    await desk.thread().ask("hi");
    expect(desk.model.requests[0]?.options).not.toHaveProperty("modelOptions");
  });

  it("that the model refuses are named, with who set them", async () => {
    desk.daemon.fields = { temperature: 2, top_p: 0.9 };
    desk.daemon.parameters = { temperature: set(2), top_p: set(0.9, "global") };
    desk.model.replies = [[new Error("Unsupported value: 'temperature' does not support 2")]];
    const answer = await desk.thread().ask("hi");
    expect(answer.result.errorDetails?.message).toBe(
      "Fake failed: Unsupported value: 'temperature' does not support 2. Try again. The request had `parameters.temperature` (local): change it there, or pick another model.",
    );
    expect(answer.titles()).toEqual(["Show Effective Configuration"]);
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
    expect(answer.titles()).toEqual(["Restart", "Show Output"]);
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
    expect(desk.daemon.paramsOf("nexus/context/assemble").at(-1)?.files).toEqual([`${FOLDER}/a.py`, `${FOLDER}/a.py`]);
    expect(desk.nextTurn.learned).toEqual([{ attached: [], isPlain: false }]);
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

  it("leaves the editor's own instruction files to the daemon, and drops its index", async () => {
    const root = (path: string) => ({ id: `vscode.instructions.file.root__${FOLDER}/${path}`, value: file(path) });
    desk.daemon.metadata = {
      attachments: [
        { uri: `${FOLDER}/AGENTS.md`, label: "AGENTS.md", status: "in-prompt" },
        { uri: `${FOLDER}/.github/copilot-instructions.md`, label: ".github/copilot-instructions.md", status: "sent" },
        { uri: `${FOLDER}/long.instructions.md`, label: "long.instructions.md", status: "no-room" },
      ],
    };
    const references = [
      root("AGENTS.md"),
      { id: `vscode.instructions.file.reference__${FOLDER}/style.md`, value: file("style.md") },
      { id: "vscode.customizations.index", value: "<instructions>…</instructions>", modelDescription: "index" },
    ];
    const answer = await desk.thread().ask("hi", { references });
    expect(desk.daemon.paramsOf("nexus/context/assemble").at(-1)).toMatchObject({
      message: "hi",
      attachments: [{ uri: `${FOLDER}/AGENTS.md` }, { uri: `${FOLDER}/style.md` }],
    });
    expect(desk.daemon.said("main")[0]).toEqual({ role: "user", content: "hi", meta: { client: "vscode" } });
    expect(answer.references).toEqual([`${FOLDER}/.nexus3/NEXUS.md`, `${FOLDER}/.github/copilot-instructions.md`]);
    expect(answer.text).toContain(
      "long.instructions.md: VS Code attached this instruction file; it does not fit beside the conversation, and is not sent.",
    );
    expect(answer.text).not.toContain("copilot");
    expect(desk.nextTurn.learned).toEqual([{ attached: [`${FOLDER}/AGENTS.md`, `${FOLDER}/style.md`], isPlain: true }]);
  });

  it("shows the instruction files of the folder that are for the attached files, and says what is not sent", async () => {
    const uri = (name: string) => `${FOLDER}/.github/instructions/${name}.instructions.md`;
    const one = (name: string, status: string) => ({ uri: uri(name), label: name, status, file: "a.py" });
    desk.daemon.metadata = { instructions: [one("py", "sent"), one("long", "no-room"), one("ts", "not-applied")] };
    const answer = await desk.thread().ask("hi");
    expect(answer.references).toEqual([`${FOLDER}/.nexus3/NEXUS.md`, uri("py")]);
    expect(answer.text).toContain("long: This is for a.py; it does not fit beside the conversation, and is not sent.");
    expect(answer.text).not.toContain("ts:");
  });

  it("sends the text of the editor's files that the daemon cannot read", async () => {
    const uri = mock.Uri.parse("vscode-userdata:/User/prompts/mine.instructions.md");
    Object.assign(mock.workspace, { openTextDocument: async () => ({ getText: () => "Mine." }) });
    const references = [{ id: `vscode.instructions.file.root__${uri}`, value: uri }];
    await desk.thread().ask("hi", { references });
    expect(desk.daemon.paramsOf("nexus/context/assemble").at(-1)?.attachments).toEqual([
      { uri: uri.toString(), text: "Mine." },
    ]);
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
