/** What another assistant reads, in the panel of a monorepo: its figures, its files, who reads what, its prompt. */
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { monorepo } from "./harness/monorepo.ts";
import type { Workbench } from "./harness/workbench.ts";

let root: string;
let folder: string;
let bench: Workbench;
let panel: FrameLocator;
let other: Daemon;

beforeAll(
  prepared(async () => {
    root = monorepo(world(), "assistants");
    folder = path.join(root, "packages/api");
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.ready();
    panel = await bench.openPanel();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a picked assistant's view has the daemon's figures, row by row", async () => {
  await pick("Codex");
  const usage = await other.request("nexus/context/usage", { ...place(), assistant: "codex" });
  expect(usage.total).toBeGreaterThan(0);
  await until(
    () => panel.locator(".used").textContent(),
    (text) => text === usage.total.toLocaleString("en"),
  );
  expect(await panel.locator(".who").textContent()).toContain("What is read by Codex");
  await bench.unfold("Context Window", "What Costs What");
  for (const { label, tokens } of usage.rows) {
    await bench
      .row("What Costs What", new RegExp(`${label.replaceAll(".", "\\.")}.*${tokens.toLocaleString("en")}`))
      .first()
      .waitFor();
  }
});

test("who reads what has a row for each file, and opens it", async () => {
  const table = await other.request("nexus/assistant/readers", place());
  await panel.locator(".readers tbody tr").first().waitFor();
  expect(await panel.locator(".readers tbody tr").count()).toBe(table.files.length);
  expect(await panel.locator(".readers thead th").allTextContents()).toEqual([
    "File",
    ...table.assistants.map(({ title }) => title),
  ]);
  const at = table.files.findIndex(({ uri }) => uri === uriOf(path.join(root, "CLAUDE.md")));
  const row = panel.locator(".readers tbody tr").nth(at);
  const uses = table.files[at]?.readers.map(({ use }) => use);
  expect(await row.locator("td").evaluateAll((cells) => cells.map((cell) => cell.className.split(" ")[0]))).toEqual(
    uses,
  );
  await row.locator(".reader-file").click();
  await bench.page.locator(".part.editor .tab.active", { hasText: "CLAUDE.md" }).waitFor();
});

test("what is typed counts before it is saved", async () => {
  const before = await panel.locator(".used").textContent();
  await bench.openFile("AGENTS.md");
  await bench.cursorTo("end");
  await bench.type("\nA handler is a function and nothing else.\n");
  await until(
    () => panel.locator(".used").textContent(),
    (text) => text !== before,
  );
  await bench.command("File: Revert File");
  await until(
    () => panel.locator(".used").textContent(),
    (text) => text === before,
  );
});

test("the prompt is what the assistant sends", async () => {
  const { text } = await other.request("nexus/context/preview", { ...place(), assistant: "codex" });
  await bench.command("Nexus: Show System Prompt");
  await bench.page.locator(".part.editor .tab.active", { hasText: "system prompt (codex)" }).waitFor();
  const shown = await bench.page.locator(".part.editor .view-lines").first().textContent();
  expect(shown?.replaceAll(/\s/g, "")).toContain("A handler opens no connection".replaceAll(" ", ""));
  expect(text).toContain("A handler opens no connection");
});

test("the way back leads to the folder's own view", async () => {
  await panel.locator(".who .link").click();
  await panel.locator(".who").waitFor({ state: "hidden" });
  await panel.locator(".readers-part").waitFor({ state: "hidden" });
  const usage = await other.request("nexus/context/usage", place());
  expect(usage.model).toBe(await panel.locator(".place .model").textContent());
});

test("a session of Claude Code that runs here appears by itself, and is followed", async () => {
  const projects = path.join(world().root, "home/.claude/projects", folder.replaceAll(/[^a-zA-Z0-9]/g, "-"));
  const file = path.join(projects, "6f1c2d3e-0000-4000-8000-000000000001.jsonl");
  mkdirSync(projects, { recursive: true });
  writeFileSync(file, turn(1, { input_tokens: 10, cache_creation_input_tokens: 18_990, output_tokens: 5 }));
  const remark = panel.locator(".remark", { hasText: "Claude Code runs in this folder" });
  await remark.waitFor();
  expect(await remark.textContent()).toContain("19,000 of 200,000 tokens, 9.5 %");
  await bench.unfold("Context Window", "Conversations");
  await bench
    .row("Conversations", /Where is the gate/)
    .first()
    .waitFor();
  await remark.locator(".link").click();
  await panel.locator(".who", { hasText: "Claude Code" }).waitFor();
  await until(
    () => panel.locator(".used").textContent(),
    (text) => text === "19,000",
  );
  appendFileSync(
    file,
    turn(2, { input_tokens: 10, cache_read_input_tokens: 18_990, cache_creation_input_tokens: 2_000 }),
  );
  await until(
    () => panel.locator(".used").textContent(),
    (text) => text === "21,000",
  );
  const cache = panel.locator(".fact", { hasText: "of the last request was cached" });
  expect(await cache.textContent()).toMatch(/90\.4 % of the last request was cached; cold in [45]:\d\d/);
  await panel.locator(".who .link").click();
  await panel.locator(".who").waitFor({ state: "hidden" });
});

/** A turn as Claude Code writes it: a message of the user, an answer, and what the provider counted. */
function turn(number: number, usage: Record<string, number>): string {
  const now = new Date().toISOString();
  const about = {
    sessionId: "6f1c2d3e-0000-4000-8000-000000000001",
    cwd: folder,
    version: "2.1.330",
    isSidechain: false,
  };
  const question = { role: "user", content: `Where is the gate, and what is gate ${number}?` };
  const answer = {
    id: `msg_${number}`,
    role: "assistant",
    model: "claude-sonnet-4-5",
    content: [{ type: "text", text: "It is closed." }],
    usage: { output_tokens: 5, cache_read_input_tokens: 0, ...usage },
  };
  const records = [
    { ...about, type: "user", uuid: `u${number}`, timestamp: now, message: question },
    { ...about, type: "assistant", uuid: `a${number}`, timestamp: now, requestId: `r${number}`, message: answer },
  ];
  return records.map((record) => `${JSON.stringify(record)}\n`).join("");
}

async function pick(title: string): Promise<void> {
  await bench.command("Nexus: Pick Assistant");
  await bench.choose(title);
  await panel.locator(".who", { hasText: title }).waitFor();
}

function place() {
  return { workspaceFolder: uriOf(folder) };
}
