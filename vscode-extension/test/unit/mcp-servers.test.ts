/** MCP servers in the editor: what the user is shown before an approval and a call, and what the daemon is told then. */
import { beforeEach, describe, expect, it, vi } from "vitest";
import type * as vscode from "vscode";
import { makeTools } from "../../src/commands/commandContext";
import { launchText, mcpCommands } from "../../src/commands/mcpServers";
import { changesText } from "../../src/documents";
import type { ServerInfo, ToolChange } from "../../src/protocol";
import { stateText } from "../../src/serverState";
import { FOLDER } from "./chat-daemon";
import { Desk, FakeFocus, type FakeStream } from "./chat-desk";
import { type FakeNexus, fakeDocuments, fakeNextTurn, fakeNexus } from "./nexus";
import { CancellationTokenSource, mock } from "./vscode";

const LOG = "file:///state/log";
const TOOL = { name: "read", offeredAs: "mcp__files__read", description: "Reads.", tokens: 40 };

function server(more: Partial<ServerInfo> = {}): ServerInfo {
  const range = { start: { line: 2, character: 4 }, end: { line: 5, character: 5 } };
  return {
    name: "files",
    origin: "local",
    uri: `${FOLDER}/.nexus3/mcp.json`,
    range,
    transport: "stdio",
    state: "unapproved",
    hash: "h1",
    command: "/bin/node files.js",
    program: "/opt/node",
    directory: "/w",
    ...more,
  };
}

const READY = server({ state: "ready", pin: "p1", tokens: 1_234, tools: [TOOL] });

describe("a command on a server", () => {
  let nexus: FakeNexus;
  let documents: ReturnType<typeof fakeDocuments>;
  let run: (command: string, argument?: unknown) => Promise<unknown>;

  beforeEach(() => {
    mock.reset();
    nexus = fakeNexus({ "nexus/mcp/approve": READY, "nexus/mcp/start": READY, "nexus/mcp/revoke": {} });
    documents = fakeDocuments();
    const commands = mcpCommands(makeTools(nexus, new FakeFocus(), fakeNextTurn(), documents));
    run = async (command, argument) => commands[command]?.(argument);
    has(server());
  });

  function has(...servers: ServerInfo[]): void {
    nexus.answers["nexus/mcp/servers"] = { servers, tokens: 0 };
  }

  const lens = (action?: string) => ({ workspaceFolder: FOLDER, name: "files", ...(action ? { action } : {}) });
  const asked = () => nexus.asked.filter(([method]) => method !== "nexus/mcp/servers");

  it("approves exactly what the dialog showed, and starts it", async () => {
    mock.answers.push("Approve and Start");
    await run("nexus.showServer", lens("approve"));
    const [question, said] = mock.messages;
    expect([question?.text, question?.items[0]]).toEqual([
      "Start the MCP server files?",
      { modal: true, detail: launchText(server()) },
    ]);
    expect(asked()).toEqual([
      ["nexus/mcp/approve", { workspaceFolder: FOLDER, name: "files", hash: "h1" }],
      ["nexus/mcp/start", { workspaceFolder: FOLDER, name: "files" }],
    ]);
    expect(said?.text).toBe("The MCP server files is ready: 1 tool, ≈ 1,234 tokens in every request of @nexus.");
  });

  it("asks nothing of the daemon where the user does not agree", async () => {
    mock.answers.push(undefined);
    await expect(run("nexus.showServer", lens("approve"))).rejects.toThrow();
    expect(asked()).toEqual([]);
  });

  it("shows what changed beside what was approved, and approves that by its pin", async () => {
    has(server({ state: "changed", pin: "p2", flags: [{ suspicion: "orders", place: "read", message: "says more" }] }));
    mock.answers.push("Approve What It Offers Now");
    await run("nexus.showServer", lens("approve"));
    expect(documents.compared).toEqual([{ kind: "server", folder: FOLDER, server: "files" }]);
    expect(mock.messages[0]?.text).toContain("⚠ read: says more");
    expect(asked()[0]).toEqual([
      "nexus/mcp/approve",
      { workspaceFolder: FOLDER, name: "files", hash: "h1", pin: "p2" },
    ]);
  });

  it("leads to the trust of the folder where that is missing", async () => {
    has(server({ state: "untrusted" }));
    mock.answers.push("Manage Trust");
    await expect(run("nexus.showServer", lens("approve"))).rejects.toThrow();
    expect([mock.executed, asked()]).toEqual([[["workbench.trust.manage"]], []]);
  });

  it("says why one cannot start, and where its log is", async () => {
    has(server({ state: "stopped" }));
    nexus.answers["nexus/mcp/start"] = server({ state: "failed", error: "It ended with 1.", log: LOG });
    mock.answers.push("Show Log");
    await run("nexus.showServer", lens("start"));
    await Promise.resolve();
    expect(mock.messages[0]).toMatchObject({ level: "warning", text: "The MCP server files: It ended with 1." });
    expect(String(mock.opened[0])).toBe(LOG);
  });

  it("offers those servers that it is for, and no others", async () => {
    has(READY, server({ name: "other" }));
    mock.answers.push((item: vscode.QuickPickItem) => item.label.endsWith("files"), "Revoke");
    await run("nexus.revokeServer");
    expect(mock.picks).toHaveLength(1);
    expect(mock.picks[0]).toHaveLength(1);
    expect(asked()).toEqual([["nexus/mcp/revoke", { workspaceFolder: FOLDER, name: "files" }]]);
  });

  it("restarts one: it is stopped, then started", async () => {
    has(READY);
    nexus.answers["nexus/mcp/stop"] = server({ state: "stopped" });
    await run("nexus.restartMcpServer", { folder: FOLDER, server: "files" });
    expect(asked().map(([method]) => method)).toEqual(["nexus/mcp/stop", "nexus/mcp/start"]);
  });

  it("has the user sign in to one from its row", async () => {
    has(server({ state: "needs-auth" }));
    nexus.answers["nexus/mcp/login"] = READY;
    await run("nexus.loginServer", { folder: FOLDER, server: "files" });
    expect(asked()).toEqual([["nexus/mcp/login", { workspaceFolder: FOLDER, name: "files" }]]);
  });

  it("shows its log, and nobody types in it", async () => {
    has(server({ state: "ready", log: LOG }));
    await run("nexus.showServerLog", { folder: FOLDER, server: "files" });
    expect(mock.opened.map(String)).toEqual([LOG]);
    expect(mock.executed).toEqual([["workbench.action.files.setActiveEditorReadonlyInSession"]]);
  });

  it("lists all, and of the picked one what can be done and what each tool costs", async () => {
    has(READY, server({ name: "other" }));
    mock.answers.push((item: vscode.QuickPickItem) => item.label.endsWith("files"), undefined);
    await expect(run("nexus.mcpServers")).rejects.toThrow();
    const labels = mock.picks.map((items) => items.map((item) => (item as vscode.QuickPickItem).label));
    expect(labels).toEqual([
      ["$(check) files", "$(shield) other"],
      [
        "$(debug-stop) Stop",
        "$(debug-restart) Restart",
        "$(trash) Revoke Approval…",
        "$(go-to-file) Open Its File",
        "Tools",
        "$(symbol-method) read",
      ],
    ]);
  });
});

describe("a call of a server's tool in the chat", () => {
  const input = { path: "a.txt" };
  let desk: Desk;
  let shown: FakeStream | undefined;

  beforeEach(() => {
    desk = new Desk();
    desk.daemon.servers = [READY];
  });

  async function ask(session: string, press?: string): Promise<unknown[]> {
    if (press !== undefined) desk.presses.push(press);
    desk.focus.pickSession(session);
    desk.model.replies = [[{ call: "mcp__files__read", input, id: "a" }], ["Done."]];
    shown = await desk.thread().ask("Read it.");
    return desk.daemon.said(session).flatMap((message) => (message.role === "tool" ? [message.content] : []));
  }

  it("is made once the user has seen and allowed it, in the chat", async () => {
    expect(await ask("one", "Allow")).toEqual(["data of read"]);
    const schema = { type: "object", properties: { path: { type: "string" } } };
    expect(desk.model.requests[0]?.options.tools).toEqual([
      { name: "mcp__files__read", description: "Reads.", inputSchema: schema },
    ]);
    expect(shown?.text.replaceAll(/\n{3,}/g, "\n\n")).toContain(
      [
        "**Allow the model to call read of the MCP server files?**",
        '` { `\\\n` \u00a0\u00a0"path": "a.txt" `\\\n` } `',
        "> Allowed: read.",
        "Done.",
      ].join("\n\n"),
    );
    expect(shown?.titles().slice(0, 3)).toEqual(["Allow", "Allow in This Conversation", "Don't Allow"]);
    expect(mock.messages).toEqual([]);
    expect(desk.daemon.paramsOf("nexus/mcp/call")).toEqual([
      { workspaceFolder: FOLDER, session: "one", server: "files", tool: "read", arguments: input },
    ]);
  });

  it("has an answer of which the model reads a part, and the ledger keeps all", async () => {
    desk.daemon.whole = "data of read, all of it";
    expect(await ask("long", "Allow")).toEqual(["data of read"]);
    const results = desk.daemon.said("long").filter(({ role }) => role === "tool");
    expect(results).toMatchObject([{ meta: { whole: "data of read, all of it" } }]);
    expect(JSON.stringify(desk.model.requests)).not.toContain("all of it");
  });

  it("is not made where the user cancels while the question is open: nobody refused it", async () => {
    const source = new CancellationTokenSource();
    desk.model.replies = [[{ call: "mcp__files__read", input, id: "a" }], ["Done."]];
    const asked = desk.thread().ask("Read it.", { source });
    await vi.waitFor(() => expect(desk.shown?.titles()).toContain("Allow"));
    source.cancel();
    await asked;
    const results = desk.daemon.said("main").filter(({ role }) => role === "tool");
    expect(results.map(({ content }) => content)).toEqual(["The user cancelled before this call was run."]);
    expect(desk.daemon.paramsOf("nexus/mcp/call")).toEqual([]);
  });

  it("is not made where the user does not allow it", async () => {
    expect(await ask("two", "Don't Allow")).toEqual([expect.stringContaining("The user did not allow this call.")]);
    expect(desk.daemon.paramsOf("nexus/mcp/call")).toEqual([]);
  });

  it("is asked for once where the user allows it for the conversation, until the server offers something else", async () => {
    await ask("three", "Allow in This Conversation");
    await ask("three");
    expect(shown?.titles()).not.toContain("Allow");
    desk.daemon.servers = [{ ...READY, pin: "p2" }];
    await ask("three", "Don't Allow");
    expect(desk.daemon.paramsOf("nexus/mcp/call")).toHaveLength(2);
  });

  it("is made of a tool that the model had to look for", async () => {
    desk.daemon.defers = true;
    desk.presses.push("Allow");
    desk.focus.pickSession("four");
    desk.model.replies = [
      [{ call: "search_tools", input: { query: "read" }, id: "s" }],
      [{ call: "mcp__files__read", input, id: "a" }],
      ["Done."],
    ];
    await desk.thread().ask("Read it.");
    const results = desk.daemon.said("four").filter(({ role }) => role === "tool");
    expect(results.map(({ content }) => content)).toEqual(["found", "data of read"]);
    const offered = desk.model.requests.map(({ options }) => options.tools?.map(({ name }) => name));
    const both = ["search_tools", "mcp__files__read"];
    expect(offered.map((names) => names?.join())).toEqual(["search_tools", both.join(), both.join()]);
    expect(desk.daemon.paramsOf("nexus/mcp/search")).toEqual([{ workspaceFolder: FOLDER, query: "read" }]);
  });

  it("shows how much of long arguments it does not show", async () => {
    desk.model.replies = [[{ call: "mcp__files__read", input: { path: "x".repeat(3_000) } }], ["Done."]];
    desk.presses.push("Don't Allow");
    const { text } = await desk.thread().ask("Read it.");
    expect(text).toContain("\n` … and 1016 more characters, which are not shown `\n");
  });
});

describe("what is shown of a server", () => {
  it.each([
    [server(), "not approved"],
    [READY, "ready · 1 tool · ≈ 1,234 tokens"],
    [
      server({ state: "changed", pin: "p", exact: true, tokens: 1, tools: [] }),
      "offers something else than you approved · 0 tools · 1 token",
    ],
    [server({ state: "later" as "ready" }), "later"],
  ])("%#", (given, expected) => {
    expect(stateText(given)).toBe(expected);
  });

  it("hides nothing: neither line ends nor what turns a text around", () => {
    const text = launchText(server({ command: "/bin/a\n\nDirectory: /safe \u202e", variables: { MODE: "quiet" } }));
    expect(text).toBe(
      [
        "Command: /bin/a\\u{a}\\u{a}Directory: /safe \\u{202e}",
        "Program: /opt/node",
        "Directory: /w",
        "Variables: MODE=quiet",
        "Named by: .nexus3/mcp.json, line 3",
      ].join("\n\n"),
    );
  });

  it("is both sides of a change", () => {
    const changes: ToolChange[] = [
      {
        kind: "changed",
        place: "add.description",
        words: [
          { text: "Adds ", state: "kept" },
          { text: "two", state: "removed" },
          { text: "three", state: "added" },
        ],
      },
      { kind: "added", place: "more.description", words: [{ text: "New.", state: "added" }] },
    ];
    expect(changesText([], "now")).toBe("It offers what you approved.\n");
    expect(changesText(changes, "approved")).toBe("add.description\n\nAdds two\n");
    expect(changesText(changes, "now")).toBe("add.description\n\nAdds three\n\nmore.description\n\nNew.\n");
  });
});

describe("/prompt", () => {
  let desk: Desk;
  const web = server({ name: "web", promptUsages: ["review FILE [FOCUS]"], resources: ["memo://gate"] });

  beforeEach(() => {
    desk = new Desk();
  });

  it("sends the text that the server has for it", async () => {
    desk.daemon.servers = [web];
    const answer = await desk.thread().ask("web:review  gate.ts the hinges", { command: "prompt" });
    expect(answer.text).toContain("> prompt review of web\n");
    expect(desk.daemon.paramsOf("nexus/mcp/prompt")).toEqual([
      { workspaceFolder: FOLDER, server: "web", prompt: "review", words: "gate.ts the hinges" },
    ]);
    expect(desk.daemon.paramsOf("nexus/context/assemble")[0]?.message).toBe("prompt review of web");
  });

  it("lists the prompts and resources without a name, and sends nothing", async () => {
    desk.daemon.servers = [web];
    const answer = await desk.thread().ask("", { command: "prompt" });
    expect(answer.text).toBe("- /prompt web:review FILE \\[FOCUS\\]\n- @web:memo://gate");
    expect(answer.result.metadata?.nexus.kind).toBe("prompt");
    desk.daemon.servers = [];
    expect((await desk.thread().ask("", { command: "prompt" })).text).toContain("No MCP server of this folder");
    expect(desk.model.requests).toEqual([]);
  });
});

describe("a resource of a server in a message", () => {
  let desk: Desk;

  beforeEach(() => {
    desk = new Desk();
  });

  const sent = () => String(desk.daemon.paramsOf("nexus/context/assemble").at(-1)?.message);

  it.each([
    ["See @web:memo://gate.", ["memo://gate"]],
    ["(@web:a+b://x/y?z=1#f) and @web:memo://gate, twice @web:memo://gate", ["memo://gate"]],
    ["@web:memo://one\n@web:memo://two", ["memo://one", "memo://two"]],
    ["mail me@web:memo://gate, @web:memo, @web, @ web:memo://gate", []],
  ])("%j attaches %j", async (message, uris) => {
    await desk.thread().ask(message);
    expect(desk.daemon.paramsOf("nexus/mcp/resource").map(({ uri }) => uri)).toEqual(uris);
    for (const uri of uris) expect(sent()).toContain(`\`@web:${uri}\`:\n\n\`\`\`\ndata of ${uri}\n\`\`\``);
    expect(sent().endsWith(message)).toBe(true);
  });

  it("that cannot be read is named, and the message is sent", async () => {
    const answer = await desk.thread().ask("See @web:broken://x");
    expect(sent()).toBe("See @web:broken://x");
    expect(answer.text).toContain("@web:broken://x: There is no such resource.");
  });

  it("is not read because a server's prompt says so", async () => {
    await desk.thread().ask("web:@other:memo://key", { command: "prompt" });
    expect(sent()).toBe("prompt @other:memo://key of web");
    expect(desk.daemon.paramsOf("nexus/mcp/resource")).toEqual([]);
  });
});
