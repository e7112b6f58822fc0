/** An assistant's view in the panel of a monorepo: why it is shown, its figures, who reads what, its prompt, its session. */
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

test("the view of an assistant in use chooses itself: its name, why, and its order on the page", async () => {
  const { views, chosen } = await other.request("nexus/view/list", place());
  const view = views.find(({ name }) => name === chosen);
  expect(view?.title).toBe("Claude Code");
  const usage = await other.request("nexus/context/usage", { ...place(), assistant: chosen });
  expect(await bench.ready()).toMatch(
    new RegExp(`^Claude Code: about ${usage.total.toLocaleString("en")} of 1,000,000 tokens, `),
  );
  expect(await bench.statusText()).toContain(`${usage.total.toLocaleString("en")} of 1M tokens`);
  expect(await headline()).toBe(`Claude Code: ${view?.reason}`);
  await panel.locator(".readers tbody tr").first().waitFor();
  const parts = panel.locator(".head, .remarks, .readers-part, .track, .facts");
  const classes = await parts.evaluateAll((all) => all.map((one) => one.className));
  expect(classes).toEqual(["head", "remarks", "readers-part", "track", "facts"]);
});

test("a picked view has the daemon's figures, row by row", async () => {
  await choose("Codex", "Codex: you chose it");
  const usage = await other.request("nexus/context/usage", { ...place(), assistant: "codex" });
  expect(usage.total).toBeGreaterThan(0);
  await until(
    () => panel.locator(".used").textContent(),
    (text) => text === `≈ ${usage.total.toLocaleString("en")}`,
  );
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
  const { views } = await other.request("nexus/view/list", place());
  const inUse = new Set<string>(views.filter((view) => view.inUse).map(({ name }) => name));
  await panel.locator(".readers tbody tr").first().waitFor();
  expect(await panel.locator(".readers tbody tr").count()).toBe(table.files.length);
  expect(await panel.locator(".readers thead th").allTextContents()).toEqual([
    "File",
    ...table.assistants.filter(({ name }) => inUse.has(name)).map(({ title }) => title),
  ]);
  const at = table.files.findIndex(({ uri }) => uri === uriOf(path.join(root, "CLAUDE.md")));
  const row = panel.locator(".readers tbody tr").nth(at);
  const uses = table.files[at]?.readers.filter(({ assistant }) => inUse.has(assistant)).map(({ use }) => use);
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

test("Nexus's own view is as it is without assistants", async () => {
  await bench.command("Nexus: Choose the View");
  await bench.choose("Nexus(?!:)"); // no command
  await panel.locator(".who.view").waitFor({ state: "hidden" });
  await panel.locator(".readers-part").waitFor({ state: "hidden" });
  const usage = await other.request("nexus/context/usage", place());
  expect(usage.model).toBe(await panel.locator(".place .model").textContent());
  expect(await bench.ready()).toMatch(/^Nexus: /);
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
  await choose("Automatic", "Claude Code: it runs here");
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
  expect(await bench.ready()).toBe("Claude Code: 21,000 of 200,000 tokens, 11 %");
  await choose("Codex", "Codex: you chose it");
  await remark.locator(".link").click();
  await panel.locator(".who.view", { hasText: "Claude Code: you chose it" }).waitFor();
  await remark.waitFor({ state: "detached" });
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

/** Picks a view, or none, and waits until the panel says so. */
async function choose(item: string, says: string): Promise<void> {
  await bench.command("Nexus: Choose the View");
  await bench.choose(item);
  await panel.locator(".who.view", { hasText: says }).waitFor();
}

async function headline(): Promise<string | null> {
  return panel.locator(".who.view").textContent();
}

function place() {
  return { workspaceFolder: uriOf(folder) };
}
