/** MCP servers of a folder, real ones: approved, seen with what they cost, called from the chat, changed, revoked. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { ServerInfo } from "../../src/protocol/index.ts";
import { Daemon, ledger, uriOf } from "./harness/daemon.ts";
import { heard, photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { lenses } from "./harness/editor.ts";
import { plain, type Workbench } from "./harness/workbench.ts";
import { leaveModelToEditor, REPOSITORY } from "./harness/world.ts";

const READ = "mcp__files__read_text_file";
const WRITE = "mcp__files__write_file";
const FILE = ".nexus3/mcp.json";

let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(world().root, "workspaces/mcp");
    mkdirSync(path.join(folder, ".nexus3"), { recursive: true });
    leaveModelToEditor(folder, "none");
    writeFileSync(path.join(folder, "AGENTS.md"), "# Agents\n\nBe kind.\n");
    writeFileSync(path.join(folder, "hello.txt"), "The gate closes at six.\n");
    writeFileSync(path.join(folder, "noon.txt"), "Noon is at twelve.\n");
    writeFileSync(path.join(folder, "dusk.txt"), "Dusk is at nine.\n");
    describe({ alpha: "Adds two numbers." });
    const files = { command: "node", args: [world().mcpServer, folder], env: { LOG: "quiet" } };
    const notes = {
      command: path.join(REPOSITORY, ".venv/bin/python"),
      args: [path.join(REPOSITORY, "tests/support/mcp_old_server.py"), folder],
    };
    // not in .mcp.json, whose servers VS Code starts itself, with lenses of its own
    writeFileSync(path.join(folder, FILE), JSON.stringify({ mcpServers: { files, notes } }, null, 2));
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, FILE) });
    await bench.ready();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a server that nobody approved says so above its name, and no message does", async () => {
  await showsLenses(["not approved | Approve…", "not approved | Approve…"]);
  expect(await bench.page.locator(".notification-list-item").count()).toBe(0);
});

test("the dialog of the approval shows exactly what would be started", async () => {
  await bench.command("Nexus: Approve MCP Server…");
  await bench.choose("files");
  const text = await bench.dialog("Start the MCP server files?", "Cancel");
  const { command, program, directory } = await server("files");
  for (const part of [command, program, directory, "LOG=", "mcp.json, line 3"]) expect(text).toContain(part);
  await showsLenses(["not approved | Approve…", "not approved | Approve…"]);
});

test("an approved server starts, and its tools have rows in what the next request costs", async () => {
  await approve("files");
  await bench.told("The MCP server files is ready: ");
  const { tools = [], tokens, exact } = await server("files");
  expect(tools.length).toBeGreaterThan(10);
  const cost = `${exact ? "" : "≈ "}${tokens?.toLocaleString("en")} tokens`;
  await showsLenses([`ready · ${tools.length} tools · ${cost} | Stop`, "not approved | Approve…"]);
  await bench.openPanel();
  await bench.unfold("What Costs What");
  const [row] = await until(
    async () => (await bench.rows("What Costs What")).filter((label) => label.startsWith("server files")),
    (rows) => rows.length === 1,
  );
  expect(row).toMatch(new RegExp(`^server files, ${tools.length} tools, ${tokens?.toLocaleString("en")} tokens, `));
  await until(
    () => bench.ready(), // in the status bar, too, which asks by itself
    (status) => Number(/[\d,]+/.exec(status)?.[0].replaceAll(",", "")) > (tokens ?? 0),
  );
});

test("the list shows each server with its state, and leads to what can be done", async () => {
  await bench.command("Nexus: MCP Servers…");
  await bench.picks("notes").waitFor();
  const rows = await bench.picks().allInnerTexts();
  expect(rows.map((row) => /ready|not approved/.exec(row)?.[0])).toEqual(["ready", "not approved"]);
  await bench.picks("files").first().click();
  await bench.picks("Revoke Approval").waitFor();
  await bench.picks("read_text_file").first().waitFor();
  await bench.page.keyboard.press("Escape");
});

test("the model calls a tool once the user has allowed it, and the answer is data", async () => {
  await bench.openChat();
  await call(READ, { path: path.join(folder, "hello.txt") });
  const text = await bench.answerTool("call read_text_file of the MCP server files?", "Allow");
  expect(text).toContain("hello.txt");
  await bench.response("You said: The gate closes at six.").waitFor();
  expect(lastRequest().tools).toEqual(expect.arrayContaining([READ, WRITE]));
  const results = await until(
    async () => (await ledger(world(), folder)).filter(({ role }) => role === "tool"),
    (all) => all.length === 1,
  );
  expect(results[0]?.content).toMatch(/^\[Data from the tool read_text_file of the MCP server files\. /);
});

test("a call that the user does not allow is not made", async () => {
  await call(WRITE, { path: path.join(folder, "hello.txt"), content: "Open." });
  await bench.answerTool("call write_file of the MCP server files?", "Don't Allow");
  await bench.response("You said: The user did not allow this call").waitFor();
  expect(readFileSync(path.join(folder, "hello.txt"), "utf8")).toBe("The gate closes at six.\n");
});

test("a tool can be allowed for the conversation", async () => {
  await call(READ, { path: path.join(folder, "noon.txt") });
  await bench.answerTool("noon.txt", "Allow in This Conversation");
  await bench.response("You said: Noon is at twelve.").waitFor();
  await call(READ, { path: path.join(folder, "dusk.txt") });
  await bench.response("You said: Dusk is at nine.").waitFor();
  const last = bench.page.locator(".interactive-response").last();
  expect(await last.getByRole("button", { name: "Allow in This Conversation" }).count()).toBe(0);
});

test("a tool that the settings deny is not offered", async () => {
  writeFileSync(
    path.join(folder, ".nexus3/config.json"),
    JSON.stringify({ provider: { name: "none" }, permissions: { deny: [WRITE] } }),
  );
  await until(
    async () => (await other.request("nexus/config/effective", { workspaceFolder: uriOf(folder) })).config,
    (config) => JSON.stringify(config).includes(WRITE),
  );
  await bench.ask("what can you call?");
  await bench.response("You said: what can you call?").waitFor();
  expect([lastRequest().tools?.includes(READ), lastRequest().tools?.includes(WRITE)]).toEqual([true, false]);
});

test("a server that offers something else shows what, word by word, and waits", async () => {
  await bench.openFile(FILE);
  await approve("notes");
  await bench.told("The MCP server notes is ready: ");
  await bench.command("Nexus: Stop MCP Server…");
  await bench.choose("notes");
  await until(lensesOfServers, ([, notes = ""]) => notes.startsWith("stopped · 1 tool · "));
  describe({ alpha: "Adds three numbers." });
  await bench.lens("Start").click();
  await until(lensesOfServers, ([, notes = ""]) => notes.startsWith("offers something else than you approved · "));
  await bench.command("Notifications: Clear All Notifications");
  await bench.lens("Show what changed").click();
  const diff = bench.page.locator(".part.editor .monaco-diff-editor");
  await diff.locator(".modified .view-line", { hasText: "Adds three numbers." }).waitFor();
  expect(await diff.locator(".original .view-line", { hasText: "Adds two numbers." }).count()).toBe(1);
  await bench.press("notes offers something else than you approved", "Approve What It Offers Now");
  await bench.openFile(FILE);
  await until(lensesOfServers, ([, notes = ""]) => notes.startsWith("ready · 1 tool · "));
});

test("a prompt of a server is sent, and a resource that a message names is data", async () => {
  await bench.openChat();
  await bench.ask("/prompt notes:review gate.py the hinges");
  await bench.response('You said: Review {"file": "gate.py", "focus": "the hinges"}.').waitFor();
  await bench.ask("when? @notes:memo://gate");
  await until(
    async () => (await ledger(world(), folder)).map(({ content }) => String(content)),
    (texts) => texts.some((text) => /\[Data from the resource memo:\/\/gate.*It opens at six\..*when\?/s.test(text)),
  );
});

test("a server whose approval is revoked has ended, and is offered no more", async () => {
  await bench.command("Nexus: Revoke Approval of MCP Server…");
  await bench.choose("files");
  await bench.dialog("Revoke the approval of the MCP server files?", "Revoke");
  await until(lensesOfServers, ([files]) => files === "not approved | Approve…");
  await until(
    () => bench.rows("What Costs What"),
    (rows) => !rows.some((label) => label.startsWith("server files")),
  );
  await bench.ask("and now?");
  await bench.response("You said: and now?").waitFor();
  expect(lastRequest().tools?.filter((name) => name.startsWith("mcp__files__"))).toEqual([]);
});

test("the panel has a row for each server, with its state and what can be done", async () => {
  const panel = await bench.openPanel();
  await bench.unfold("Context Window");
  const fact = panel.locator(".fact", { hasText: "1 of 2 ready · 1 not approved" });
  await fact.getByRole("button", { name: "Show" }).click();
  await bench.row("Layers", "MCP servers").waitFor();
  await bench.unfold("Layers");
  await showsServers(["files, not approved, This folder", /^notes, ready, 1 tool, .*, This folder$/]);
  await press("notes", "Stop MCP Server…");
  await showsServers([/^files/, /^notes, stopped, 1 tool/]);
  await press("notes", "Start MCP Server…");
  await bench.told("The MCP server notes is ready: ");
  await showsServers([/^files/, /^notes, ready, 1 tool/]);
});

test("a server that fails says why in the panel, which leads to its log and to its line", async () => {
  const script = "console.error('no token is set'); process.exit(3)";
  writeFileSync(
    path.join(folder, FILE),
    JSON.stringify({ mcpServers: { broken: { command: "node", args: ["-e", script] } } }, null, 2),
  );
  await showsServers(["broken, not approved, This folder"]);
  await press("broken", "Approve MCP Server…");
  await bench.dialog("Start the MCP server broken?", "Approve and Start");
  await showsServers([/^broken, failed: .+, This folder$/]);
  await bench.command("Notifications: Clear All Notifications");
  await bench.unfold("Context Window", "Layers");
  const remark = (await bench.openPanel()).locator(".remark.error", { hasText: "MCP server broken: failed: " });
  await remark.getByRole("button", { name: "Show Log broken" }).click();
  await until(
    () => bench.activeEditor().innerText(),
    (text) => plain(text).includes("no token is set"),
  );
  await bench.cursorTo("end");
  await bench.type("typed");
  expect(plain(await bench.activeEditor().innerText())).not.toContain("typed");
  await remark.getByRole("button", { name: "mcp.json:3" }).click();
  await bench.page.locator(".part.editor .tab.active", { hasText: "mcp.json" }).waitFor();
});

/** What the server `notes` offers when it starts next. */
function describe(tools: Record<string, string>): void {
  writeFileSync(path.join(folder, "tools.json"), JSON.stringify(tools));
}

async function server(name: string): Promise<ServerInfo> {
  const { servers } = await other.request("nexus/mcp/servers", { workspaceFolder: uriOf(folder) });
  return servers.find((one) => one.name === name) ?? expect.fail(`there is no server ${name}`);
}

async function approve(name: string): Promise<void> {
  await bench.command("Nexus: Approve MCP Server…");
  await bench.choose(name);
  await bench.dialog(`Start the MCP server ${name}?`, "Approve and Start");
}

async function call(tool: string, input: object): Promise<void> {
  await bench.ask(`[[tool ${tool} ${JSON.stringify(input)}]]`);
}

/** The lenses of each server. */
async function lensesOfServers(): Promise<string[]> {
  return await lenses(bench);
}

async function showsLenses(expected: string[]): Promise<void> {
  await until(lensesOfServers, (all) => all.join("\n") === expected.join("\n"));
}

/** Waits for the rows of servers in the layers. */
async function showsServers(expected: (string | RegExp)[]): Promise<void> {
  const isLike = (label: string, wanted: string | RegExp) =>
    typeof wanted === "string" ? label === wanted : wanted.test(label);
  await until(
    async () => (await bench.rows("Layers")).flatMap((label) => /^server (.*)$/.exec(label)?.[1] ?? []),
    (rows) => rows.length === expected.length && rows.every((label, index) => isLike(label, expected[index] ?? "")),
  );
}

/** Presses a button of a server's row. */
async function press(name: string, button: string): Promise<void> {
  const row = bench.row("Layers", name).last();
  await row.hover();
  await row.getByRole("button", { name: button }).click();
}

function lastRequest() {
  return heard().findLast(({ event }) => event === "request") ?? expect.fail("the model was sent nothing");
}
