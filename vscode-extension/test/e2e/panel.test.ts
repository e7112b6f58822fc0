/** The panel and the editor of one folder: figures, rows, sources, problems, prompt, keyboard, a daemon that dies. */
import { readFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { TokenUsage } from "../../src/protocol.ts";
import { Daemon, NEXT_TURN, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { alive, daemons, signal } from "./harness/processes.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

let folder: string;
let bench: Workbench;
let panel: FrameLocator;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "panel"), "backend/auth-service");
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.ready();
    panel = await bench.openPanel();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("the status bar says what another daemon counts", async () => {
  const usage = await counted();
  expect(await bench.ready()).toBe(spoken(usage));
});

test("the panel shows the daemon's very numbers", async () => {
  const usage = await counted();
  await until(
    () => figures(),
    (shown) => shown.used === whole(usage.total),
  );
  expect(await figures()).toEqual({
    used: whole(usage.total),
    of: `of ${whole(usage.available)} tokens`,
    percent: `${usage.percent} %`,
    model: usage.model,
  });
  const legend = await panel.locator(".legend .entry .tokens").allTextContents();
  expect([...new Set(usage.rows.map((row) => row.category))]).toEqual(["system"]);
  const parts = (usage.parts ?? []).filter(({ tokens }) => tokens > 0).map(({ tokens }) => whole(tokens));
  expect(parts).toHaveLength(4);
  expect(legend).toEqual([...parts, whole(usage.remaining), whole(usage.limit - usage.available)]);
  expect(await panel.locator(".legend .entry .title").allTextContents()).toEqual([
    "Your instructions",
    "Skills",
    "MCP and tools",
    "Nexus's own text",
    "Free",
    "Kept for answers",
  ]);
});

test("every row is in the tree with its tokens", async () => {
  const usage = await counted();
  await bench.unfold("What Costs What");
  const rows = await until(
    () => bench.rows("What Costs What"),
    (shown) => shown.length > usage.rows.length,
  );
  for (const row of usage.rows) {
    const short = row.label.replace("Ancestor Configuration (", "").split(": ").at(-1)?.replace(/\)$/, "") ?? "";
    const one = `${whole(row.tokens)} token${row.tokens === 1 ? "" : "s"}, ${row.exact ? "exact" : "an estimate"}`;
    expect(
      rows.some((label) => label.includes(short) && label.includes(one)),
      `${row.label}: ${one}`,
    ).toBe(true);
  }
});

test("a row leads to the file behind it", async () => {
  await bench
    .row("What Costs What", /threats\.md/)
    .first()
    .click();
  await bench.page.locator(".part.editor .tab.active", { hasText: "threats.md" }).waitFor();
});

test("the keyboard walks through the legend and from there into the tree", async () => {
  await bench.unfold("Context Window", "What Costs What");
  await panel.locator('.legend .entry[tabindex="0"]').focus();
  await bench.page.keyboard.press("End");
  const last = panel.locator(".legend li").last();
  expect(await last.locator(".entry").evaluate((entry) => entry === entry.ownerDocument.activeElement)).toBe(true);
  await bench.page.keyboard.press("Home");
  await bench.page.keyboard.press("Enter");
  await bench.page.locator('.part.sidebar .monaco-list-row.focused[aria-label^="Agent Definition, "]').waitFor();
  await bench.page.keyboard.press("ArrowDown");
  const focused = bench.page.locator(".part.sidebar .monaco-list-row.focused");
  await until(
    () => focused.getAttribute("aria-label"),
    (label) => !label?.startsWith("Agent Definition, "),
  );
});

test("what is typed is counted before it is saved, and what is saved is what another daemon counts", async () => {
  await bench.openFile(".nexus3/NEXUS.md");
  const before = await figures();
  await bench.cursorTo("end");
  await bench.type("\nEvery endpoint answers within one second, or says why it cannot.\n");
  const typed = await until(
    () => figures(),
    (now) => now.used !== before.used,
  );
  await bench.page.keyboard.press("Control+S");
  const usage = await until(counted, (now) => whole(now.total) !== before.used);
  expect(whole(usage.total)).toBe((await until(figures, (now) => now.used === whole(usage.total))).used);
  expect(typed.used).not.toBe(before.used);
});

test("a mistake has a squiggle, a problem and a mend", async () => {
  await bench.openFile(".nexus3/config.json");
  await bench.cursorTo("start");
  await bench.page.keyboard.press("Control+A");
  await bench.page.keyboard.press("Delete");
  await bench.page.keyboard.insertText('{ "context": { "reserve_tokens": "many" } }');
  await bench.squiggles().first().waitFor();
  await (await bench.problems("reserve_tokens")).first().waitFor();
  await panel.locator(".remark.error").waitFor();
  await bench.page.locator(".part.editor .editor-group-container.active .view-lines").first().click();
  await bench.page.keyboard.press("Control+A");
  await bench.page.keyboard.press("Delete");
  await bench.page.keyboard.insertText('{ "context": { "reserve_tokens": 9000 } }');
  await bench.squiggles().first().waitFor({ state: "detached" });
  await panel.locator(".remark.error").waitFor({ state: "detached" });
  await bench.page.keyboard.press("Control+S");
  const usage = await until(counted, (now) => now.reserved === 9000);
  await until(
    () => figures(),
    (now) => now.of === `of ${whole(usage.available)} tokens`,
  );
});

test("the prompt is shown as the model sees it, and leads to its sources", async () => {
  await bench.command("Nexus: Show System Prompt");
  const lines = bench.page.locator(".part.editor .editor-group-container.active .view-lines");
  const prompt = await other.request("nexus/context/preview", { workspaceFolder: uriOf(folder) });
  const first = prompt.text.split("\n").find((line) => line.length > 20) ?? "";
  await until(
    async () => plain(await lines.innerText()),
    (text) => text.includes(plain(first).slice(0, 60)),
  );
  const words =
    readFileSync(path.join(folder, ".nexus3/NEXUS.md"), "utf8")
      .split("\n")
      .filter((line) => line.length > 20)[0] ?? "";
  await bench.page.keyboard.press("Control+Home");
  await bench.page.keyboard.press("Control+F");
  await bench.type(words.slice(0, 40));
  await bench.page.keyboard.press("Enter");
  await bench.page.keyboard.press("Escape");
  await bench.page.keyboard.press("F12");
  await bench.page.locator(".part.editor .tab.active", { hasText: "NEXUS.md" }).waitFor();
});

test("a daemon that is killed is back, and the panel goes on", async () => {
  const [before] = daemons(world().pid);
  if (!before) throw new Error("no daemon runs");
  signal(before.pid, "SIGKILL");
  const after = await until(
    () => daemons(world().pid),
    (all) => all.length > 0 && !all.some(({ pid }) => pid === before.pid),
  );
  expect(alive(before.pid)).toBe(false);
  expect(after).toHaveLength(1);
  await bench.openFile(".nexus3/NEXUS.md");
  const shown = await figures();
  await bench.cursorTo("end");
  await bench.type("\nA line after the daemon came back.\n");
  await until(
    () => figures(),
    (now) => now.used !== shown.used,
  );
  await bench.page.keyboard.press("Control+S");
  const usage = await until(counted, (now) => whole(now.total) !== shown.used);
  await until(
    () => figures(),
    (now) => now.used === whole(usage.total),
  );
});

function counted(): Promise<TokenUsage> {
  return other.request("nexus/context/usage", { workspaceFolder: uriOf(folder), session: "main", nextTurn: NEXT_TURN });
}

async function figures(): Promise<{ used: string; of: string; percent: string; model: string }> {
  const text = (name: string) => panel.locator(`.window .${name}`).first().innerText();
  return { used: await text("used"), of: await text("of"), percent: await text("percent"), model: await text("model") };
}

function spoken(usage: TokenUsage): string {
  return `Nexus: ${usage.counter.exact ? "" : "about "}${whole(usage.total)} of ${whole(usage.available)} tokens, ${usage.percent} %`;
}

function whole(value: number): string {
  return new Intl.NumberFormat("en").format(value);
}

/** The editor shows spaces as other characters. */
function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ");
}
