/** What Nexus says beside the model, and the documents that it shows: after the answer, and read-only. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message, Receipt } from "../../src/protocol/index.ts";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { heard, photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { quickFix } from "./harness/editor.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

/** Enough that the next turn is due for a compaction: shares are of the test model's window of 200,000 tokens. */
const TURNS = 12;
const WORDY = 60;
/** After this, both the daemon and VS Code have checked a file. */
const SETTLED_MS = 1_500;
const EARLY = { enabled: true, threshold: 0.02, target: 0.015, recent_preserve_ratio: 0.005 };

let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "notices"), "backend/auth-service");
    compactEarly();
    for (const name of [".vscode", "tests"]) mkdirSync(path.join(folder, name));
    writeFileSync(path.join(folder, ".vscode/mcp.json"), JSON.stringify({ servers: {} }));
    writeFileSync(path.join(folder, "tests/AGENTS.md"), "# Tests\n\nOne file per attack.\n");
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.ready();
    await bench.openChat();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a first answer is followed by the conversation that it is in", async () => {
  await bench.newChat();
  await bench.ask("one");
  expect(await shown("one")).toEqual(["Heard 2 messages. You said: one", "Conversation main begins here."]);
});

test("a compaction before a turn is said behind the answer, with the way back and the receipt", async () => {
  await fill();
  await bench.ask("two");
  const [answer, notice] = await shown("two");
  const { replacedMessages, tokensBefore, tokensAfter } = await receipt();
  expect(answer).toMatch(/^Heard \d+ messages\. You said: two$/);
  expect(notice).toMatch(
    new RegExp(
      `^Compacted first: ${replacedMessages} messages became a summary by parrot, ` +
        `${whole(tokensBefore)} → ${whole(tokensAfter)} tokens; (lost: .*|nothing that matters is lost)\\.$`,
    ),
  );
  expect(await buttons("two")).toEqual(["Undo Compaction", "Show Receipt", "Open Context Panel"]);
});

test("the receipt is a document that nobody can change", async () => {
  await press("two", "Show Receipt");
  await receiptTab().waitFor();
  await showsReceipt("in force");
  await bench.cursorTo("start");
  await bench.type("x");
  await bench.page.getByText("Editor is read-only because the file system of the file is read-only.").first().waitFor();
  await showsReceipt("in force");
  expect(await receiptTab().getAttribute("class")).not.toContain("dirty");
});

test("an undone compaction is so in its open receipt", async () => {
  await bench.command("Nexus: Undo Compaction");
  await showsReceipt("undone: the messages are back");
});

test("a turn that fails says what it has done to the conversation, too", async () => {
  await begin("failing");
  await bench.newChat();
  await bench.ask("[[fail]] three");
  await bench.response("Parrot failed: the test model was asked to fail").waitFor();
  const [where, compacted] = await shown("[[fail]] three");
  expect(where).toBe("Goes on in conversation failing (12 turns).");
  expect(compacted).toContain("Compacted first: ");
  expect((await buttons("[[fail]] three")).slice(0, 2)).toEqual(["New Conversation", "Undo Compaction"]);
});

test("a turn that is cancelled says it in a message, with the same buttons; the rest comes with the next answer", async () => {
  await begin("cancelled");
  await bench.newChat();
  await bench.ask("[[slow]] four");
  await bench.response("word3").waitFor();
  await bench.page.locator(".interactive-input-part .codicon-stop-circle").first().click();
  await until(heard, (all) => all.at(-1)?.event === "cancelled");
  const message = await bench.told("Compacted first: ");
  for (const button of ["Undo Compaction", "Show Receipt"]) expect(message).toContain(button);
  await bench.ask("five");
  expect((await shown("five"))[1]).toBe("Goes on in conversation cancelled (12 turns).");
});

test("files of one name say their directory, an agent's file whose it is", async () => {
  await bench.openPanel();
  await bench.unfold("Layers");
  const named = async () =>
    (await bench.rows("Layers"))
      .filter((label) => label.startsWith("mcp.json, "))
      .map((label) => label.replace(/, \d+ problems?/, ""));
  const { layers, counter } = await other.request("nexus/context/layers", { workspaceFolder: uriOf(folder) });
  const files = layers.flatMap((layer) => layer.files);
  const tokens = files.find(({ uri }) => uri === uriOf(path.join(folder, ".nexus3/mcp.json")))?.tokens;
  const cost = `${counter?.exact ? "" : "≈ "}${tokens} tokens`;
  expect(await until(named, (labels) => labels.some((label) => label.includes(cost)))).toEqual([
    "mcp.json, mcp, .vscode",
    `mcp.json, mcp, ${cost}, .nexus3`,
  ]);
  const agent = { agentId: "checker", cwd: path.join(folder, "tests") };
  await other.request("nexus/agent/spawn", { workspaceFolder: uriOf(folder), ...agent });
  await bench.command("Nexus: View as Agent");
  await bench.choose("checker");
  await bench.unfold("What Costs What");
  const rows = await until(
    () => bench.rows("What Costs What"),
    (labels) => labels.some((label) => label.startsWith("Subagent")),
  );
  const at = rows.findIndex((label) => label.startsWith("Subagent"));
  expect(rows.slice(at, at + 2).map((label) => label.split(", ")[0])).toEqual([
    "Subagent Configuration (checker)",
    "AGENTS.md",
  ]);
  await bench.command("Nexus: Back to Your Own View");
});

test("a syntax error of JSON is one problem, and its fix is the daemon's", async () => {
  const file = path.join(folder, ".nexus3/mcp.json"); // typed, VS Code would close its brackets
  writeFileSync(file, '{ "mcpServers": {} "servers": {} }');
  await bench.openFile(".nexus3/mcp.json");
  await bench.squiggles().first().waitFor();
  await (await bench.problems("Expected comma")).first().waitFor();
  const errors = bench.page.locator('.markers-panel .monaco-list-row[aria-label^="Error"]');
  await bench.page.waitForTimeout(SETTLED_MS);
  expect(await errors.count()).toBe(1);
  await bench.cursorTo("start");
  await bench.page.keyboard.press("F8"); // to the error
  await bench.page.keyboard.press("Escape");
  await quickFix(bench, "Insert a comma");
  await until(editorText, (text) => text.trim() === '{ "mcpServers": {}, "servers": {} }');
  await until(
    () => errors.count(),
    (count) => count === 0,
  );
  await bench.command("File: Revert File");
});

test("a reload brings the receipt back, and no document without a name", async () => {
  await bench.reload();
  await bench.ready();
  await receiptTab().click();
  await showsReceipt("undone: the messages are back");
  expect(await bench.page.locator(".part.editor .tab", { hasText: "Untitled" }).count()).toBe(0);
});

function receiptTab() {
  return bench.page.locator(".part.editor .tab", { hasText: "compaction receipt (main).md" });
}

async function showsReceipt(state: string): Promise<void> {
  const { id, replacedMessages } = await receipt();
  const lines = [`- id: ${id}`, `- state: ${state}`, `- messages replaced: ${replacedMessages}`];
  await until(editorText, (text) => lines.every((line) => text.split("\n").includes(line)));
}

/** The paragraphs of the answer to a question that can be seen, oldest first. */
async function shown(question: string): Promise<string[]> {
  const answer = answerTo(question);
  await until(
    () => answer.locator("blockquote p").allInnerTexts(),
    (notices) => notices.length > 0 && notices.every((notice) => notice.trim().endsWith(".")), // words come one by one
  );
  const texts = await answer.locator(".rendered-markdown p").filter({ visible: true }).allInnerTexts();
  return texts.map((text) => text.replaceAll(/\s+/g, " ").trim());
}

async function buttons(question: string): Promise<string[]> {
  const titles = await answerTo(question).locator(".chat-command-button .monaco-button").allInnerTexts();
  return titles.map((title) => title.trim());
}

async function press(question: string, title: string): Promise<void> {
  await answerTo(question).locator(".monaco-button", { hasText: title }).first().click();
}

/** The row of the chat behind the one of the question. */
function answerTo(question: string) {
  const rows = bench.page.locator(".interactive-list .monaco-list-row");
  const asked = rows.filter({ has: bench.page.locator(".interactive-request", { hasText: question }) });
  return asked.last().locator("xpath=following-sibling::*[1]");
}

async function editorText(): Promise<string> {
  const lines = bench.page.locator(".part.editor .editor-group-container.active .view-lines");
  return (await lines.first().innerText()).replaceAll(/[^\S\n]+/g, " ");
}

/** A new conversation that the user has begun, with words in it. */
async function begin(session: string): Promise<void> {
  await bench.command("Nexus: New Conversation");
  await bench.answer("New Conversation", session);
  await until(
    async () => (await other.request("nexus/session/list", { workspaceFolder: uriOf(folder) })).sessions,
    (all) => all.some((one) => one.session === session),
  );
  await fill(session);
}

/** Words that take more room than the threshold leaves. */
async function fill(session = "main"): Promise<void> {
  for (let turn = 1; turn <= TURNS; turn++) {
    const messages: Message[] = [
      { role: "user", content: `Step ${turn}: what does the module do next?` },
      { role: "assistant", content: `In step ${turn} it checks a token. `.repeat(WORDY) },
    ];
    await other.request("nexus/session/append", { workspaceFolder: uriOf(folder), session, messages });
  }
}

async function receipt(session = "main"): Promise<Receipt> {
  return (await other.request("nexus/session/receipt", { workspaceFolder: uriOf(folder), session })).receipt;
}

function compactEarly(): void {
  const file = path.join(folder, ".nexus3/config.json");
  const settings = JSON.parse(readFileSync(file, "utf8")) as { provider: object };
  const provider = { ...settings.provider, name: "editor" };
  writeFileSync(file, JSON.stringify({ ...settings, provider, compaction: EARLY }));
}

function whole(value: number): string {
  return new Intl.NumberFormat("en").format(value);
}
