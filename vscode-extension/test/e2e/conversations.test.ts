/**
 * The conversations of one folder, without a chat: searched, exported, compacted and back, found again by a new window;
 * and one of Codex in the folder above, which is not kept.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import type { Message, Receipt } from "../../src/protocol/index.ts";
import { Daemon, NEXT_TURN, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

const TURNS = 12;
const KINDS = ["instructions", "decisions", "paths", "commands", "identifiers", "errors"] as const;

let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "conversations"), "backend/auth-service");
    other = await Daemon.start(world(), folder);
    writeCodexSession(path.dirname(folder));
    for (const session of ["main", "keys", "audit"]) await say(session, `A heron stands in ${session}.`, "It does.");
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.ready();
    await bench.openPanel();
    await bench.unfold("Context Window", "Conversations");
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a search lists every hit, and the chosen one leads to its conversation", async () => {
  await bench.command("Nexus: Search Conversations");
  await bench.answer("Search Conversations", "heron");
  const { hits } = await other.request("nexus/session/search", { ...here(), query: "heron", limit: 50 });
  await bench
    .picks()
    .nth(hits.length - 1)
    .waitFor();
  const rows = (await bench.picks().allInnerTexts()).map((row) => row.replaceAll(/\s+/g, " ").split(" · ")[0]);
  expect(rows).toEqual(hits.map((hit) => `${hit.snippet}${hit.role}, turn ${hit.seq} ${hit.session}`));
  expect(hits.map((hit) => hit.session).sort()).toEqual(["audit", "keys", "main"]);
  await bench.picks("stands in keys").first().click();
  await showsConversation("keys");
});

test("one of Codex in the folder above is in the list with its sum, is found, and is read where it lies", async () => {
  const row = bench.row("Conversations", "Which kingfisher?");
  await row.waitFor();
  const { total } = await other.request("nexus/conversation/list", here());
  const rows = await until(
    () => bench.rows("Conversations"),
    (all) => all.at(-1)?.startsWith("sum, ") ?? false,
  );
  expect(rows.find((label) => label.startsWith("Which kingfisher?"))).toMatch(
    /^Which kingfisher\?, Codex, \.\., 1,200 tokens, .*not kept, /,
  );
  expect(rows.at(-1)).toContain(`sum, ${total.conversations} conversations, ${whole(total.tokens)} tokens`);
  await row.click();
  const lines = bench.page.locator(".part.editor .view-lines").first();
  await lines.locator("text=not kept: read from the file of Codex").waitFor();
  await lines.locator("text=The blue one at the weir.").waitFor();

  await bench.command("Nexus: Search Conversations");
  await bench.answer("Search Conversations", "weir");
  await bench.picks("assistant, Codex, not kept").waitFor();
  await bench.picks("weir").first().click();
  await until(
    () => bench.page.locator(".part.editor .tab.active").innerText(),
    (name) => name.includes("Which kingfisher"),
  );

  await bench.command("View: Close All Editors");
  await bench.command("Nexus: Switch Conversation");
  await bench.picks("Which kingfisher?").click();
  await lines.locator("text=not kept: read from the file of Codex").waitFor();
  expect((await other.request("nexus/session/list", here())).sessions).toHaveLength(3); // nothing was kept
});

test("a conversation is exported as the daemon writes it", async () => {
  const { text } = await other.request("nexus/session/export", { ...here(), session: "keys", format: "markdown" });
  await vi.waitFor(async () => {
    await bench.command("Nexus: Export Conversation"); // what the search opened may take the focus: that closes a list
    await bench.picks("Markdown").waitFor({ timeout: 5_000 });
  }, 30_000);
  await bench.picks("Markdown").click();
  const file = path.join(folder, "keys.md");
  await bench.saveAs(file);
  await bench.page.locator(".part.editor .tab.active", { hasText: "keys.md" }).waitFor();
  expect(readFileSync(file, "utf8")).toBe(text);
  expect(text).toContain("A heron stands in keys.");
});

test("a compaction says its very figures and what is lost, in the notice and in the receipt, and is undone", async () => {
  for (let turn = 1; turn <= TURNS; turn++) {
    const files = Array.from({ length: 40 }, (_, index) => `src/auth/step_${turn}/part_${index}.py`);
    await say("keys", `What does step ${turn} do?`, `Step ${turn} reads ${files.join(", ")}.`);
  }
  const before = await showsConversation("keys");
  // the summary without a model is the same for the same messages: a fork's receipt says what the first one must
  await other.request("nexus/session/fork", { ...here(), session: "keys", to: "twin" });
  const { receipt } = await other.request("nexus/session/compact", { ...here(), session: "twin" });
  expect(receipt.tokensBefore).toBeGreaterThan(receipt.tokensAfter);
  expect(receipt.lost.counts).not.toEqual({});

  await bench.command("Nexus: Compact Conversation");
  const compacted = await bench.notice("became a summary");
  expect(compacted).toEqual({
    text: `"keys": ${changeOf(receipt)}; lost: ${lossOf(receipt)}.`,
    buttons: ["Undo", "Show Receipt"],
  });
  expect(await showsConversation("keys")).not.toBe(before);

  await bench.command("Nexus: Undo Compaction");
  const undone = await bench.notice("are back");
  expect(await showsConversation("keys")).toBe(before);
  const { total } = await other.request("nexus/context/usage", { ...here(), session: "keys", nextTurn: NEXT_TURN });
  expect(undone.text).toBe(`The messages of "keys" are back: ${whole(total)} tokens.`);
});

test("a reloaded window shows the same conversation and the same figures", async () => {
  const before = await showsConversation("keys");
  await bench.refresh();
  await bench.ready();
  expect(await showsConversation("keys")).toBe(before);
});

function here() {
  return { workspaceFolder: uriOf(folder) };
}

/** A session of Codex as it writes one. */
function writeCodexSession(cwd: string): void {
  const directory = path.join(world().root, "home/.codex/sessions/2026/11/20");
  const text = (role: string, type: string, said: string) =>
    ["response_item", { type: "message", role, content: [{ type, text: said }] }] as const;
  const usage = { input_tokens: 1_200, cached_input_tokens: 0, output_tokens: 5 };
  const records = [
    ["session_meta", { id: "r1", cwd }],
    ["turn_context", { cwd, model: "gpt-5" }],
    text("user", "input_text", "Which kingfisher?"),
    text("assistant", "output_text", "The blue one at the weir."),
    ["event_msg", { type: "token_count", info: { last_token_usage: usage } }],
  ].map(([type, payload]) => JSON.stringify({ timestamp: "2026-11-20T10:00:00.000Z", type, payload }));
  mkdirSync(directory, { recursive: true });
  writeFileSync(path.join(directory, "rollout-2026-11-20T10-00-00-r1.jsonl"), `${records.join("\n")}\n`);
}

async function say(session: string, question: string, answer: string): Promise<void> {
  const messages: Message[] = [
    { role: "user", content: question },
    { role: "assistant", content: answer },
  ];
  await other.request("nexus/session/append", { ...here(), session, messages });
}

/** Waits until the status bar, the panel and the list of conversations are all about a session; its tokens. */
async function showsConversation(session: string): Promise<string> {
  const usage = await other.request("nexus/context/usage", { ...here(), session, nextTurn: NEXT_TURN });
  const used = `${whole(usage.total)} of ${whole(usage.available)} tokens, `;
  await until(
    () => bench.ready(),
    (label) => label.startsWith(`Nexus: ${used}`),
  );
  const panel = bench.webview();
  await until(
    () => panel.locator(".window .used").innerText(),
    (text) => text === whole(usage.total),
  );
  const current = await until(
    async () => (await bench.rows("Conversations")).filter((row) => row.includes(", current, ")),
    (rows) => rows.length > 0 && rows.every((row) => row.startsWith(`${session}, `)),
  );
  expect(current).toHaveLength(1);
  return whole(usage.total);
}

function changeOf({ replacedMessages, summarizer, tokensBefore, tokensAfter }: Receipt): string {
  return `${replacedMessages} messages became a summary by ${summarizer}, ${whole(tokensBefore)} → ${whole(tokensAfter)} tokens`;
}

function lossOf({ lost }: Receipt): string {
  const counts = KINDS.map((kind) => [kind, lost.counts[kind] ?? 0] as const).filter(([, count]) => count > 0);
  return counts.map(([kind, count]) => `${count} ${count === 1 ? kind.slice(0, -1) : kind}`).join(", ");
}

function whole(value: number): string {
  return new Intl.NumberFormat("en").format(value);
}
