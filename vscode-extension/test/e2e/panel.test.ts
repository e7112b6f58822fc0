/** The panel and the editor of one folder: figures, rows, sources, problems, prompt, keyboard, a daemon that dies. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { TokenUsage } from "../../src/protocol/index.ts";
import { Daemon, NEXT_TURN, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { cursor } from "./harness/editor.ts";
import { alive, servers, sharedDaemons, signal } from "./harness/processes.ts";
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
  await until(
    () => bench.ready(),
    (label) => label === spoken(usage),
  );
  const share = usage.percent < 10 ? usage.percent : Math.round(usage.percent);
  expect(await bench.statusText()).toBe(`${briefly(usage.total)} / ${briefly(usage.available)} ${share} %`);
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
  const of = (category: string) =>
    usage.rows.filter((row) => row.category === category).reduce((sum, { tokens }) => sum + tokens, 0);
  expect([...new Set(usage.rows.map((row) => row.category))]).toEqual(["system", "tools", "history", "event"]);
  const [instructions = 0, skills = 0, tools = 0, nexus = 0] = (usage.parts ?? []).map(({ tokens }) => tokens);
  const entries = [instructions, skills, tools + of("tools"), nexus, of("history"), of("event")];
  expect(Math.min(...entries)).toBeGreaterThan(0);
  expect(legend).toEqual([...entries, usage.remaining, usage.limit - usage.available].map(whole));
  expect(await panel.locator(".legend .entry .title").allTextContents()).toEqual([
    "Your instructions",
    "Skills",
    "MCP and tools",
    "Nexus's own text",
    "History",
    "Memory and events",
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
    const owner = usage.rows.find(({ label }) => row.label.startsWith(`${label}: `));
    const short = owner ? row.label.slice(owner.label.length + 2) : row.label;
    const name = short.replace(/^Ancestor Configuration \((.*)\)$/, "Ancestor: $1");
    const start = `${name}, ${whole(row.tokens)} token${row.tokens === 1 ? "" : "s"}, ${row.exact ? "exact" : "an estimate"}, `;
    expect(rows.filter((label) => label.startsWith(start)).length, start).toBe(1);
  }
});

test("a row leads to the very lines behind it", async () => {
  const { rows } = await counted();
  for (const label of ["rotate-key", "Project Configuration: threats.md"]) {
    const source = rows.find((row) => row.label === label)?.source;
    if (!source) throw new Error(`no row is ${label}`);
    await bench.row("What Costs What", label.split(": ").at(-1) ?? "").click();
    await bench.page.locator(".part.editor .tab.active", { hasText: path.basename(source.uri) }).waitFor();
    const { start, end } = source.range;
    const lines = readFileSync(fileURLToPath(source.uri), "utf8").split("\n");
    const selected = [...lines.slice(start.line, end.line), lines[end.line]?.slice(0, end.character)].join("\n");
    const at = `Ln ${end.line + 1}, Col ${end.character + 1} (${selected.length - start.character} selected)`;
    await until(
      () => cursor(bench),
      (place) => place === at,
    );
  }
});

test("the layers are those of the daemon, each with what it costs", async () => {
  await bench.unfold("Layers");
  const { layers } = await other.request("nexus/context/layers", { workspaceFolder: uriOf(folder) });
  const titles = ["Defaults", "Global", "Ancestor: panel", "Ancestor: backend", "This folder"];
  const wanted = layers.map(({ tokens = 0 }, index) => {
    return `layer ${titles[index]}, ${tokens > 0 ? `${whole(tokens)} tokens` : "no tokens"}`;
  });
  expect(wanted).toHaveLength(titles.length);
  const local = layers.at(-1)?.files.filter(({ tokens }) => tokens !== undefined) ?? [];
  const files = local.map(({ uri, kind, tokens }) => {
    const name = path.basename(kind === "skill" ? path.dirname(uri) : uri);
    return `${name}, ${kind}, ${tokens} tokens`;
  });
  expect(files.length).toBeGreaterThan(2);
  const rows = await until(
    () => bench.rows("Layers"),
    (all) => all.length > wanted.length,
  );
  expect(rows.filter((row) => row.startsWith("layer "))).toEqual(wanted);
  // a row may go on with its problems and, where another file has its name, with its directory
  const costs = rows.map((row) => row.replace(/( tokens?), .*$/, "$1"));
  expect(costs.filter((row) => files.includes(row))).toEqual(files);
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

test("a window's server that is killed is back, and the panel goes on", async () => {
  const [before] = servers(world().pid);
  if (!before) throw new Error("no server runs");
  const shared = sharedDaemons(world().runtime);
  signal(before.pid, "SIGKILL");
  const after = await until(
    () => servers(world().pid),
    (all) => all.length > 0 && !all.some(({ pid }) => pid === before.pid),
  );
  expect(alive(before.pid)).toBe(false);
  expect(after).toHaveLength(1);
  expect(shared).toHaveLength(1);
  expect(sharedDaemons(world().runtime)).toEqual(shared);
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

/** `618`, `12.3k`, `1.04M`: three digits that count. */
function briefly(tokens: number): string {
  const [value, unit] =
    tokens < 1_000 ? [tokens, ""] : tokens < 1_000_000 ? [tokens / 1_000, "k"] : [tokens / 1e6, "M"];
  return `${Number(value.toPrecision(3))}${unit}`;
}

function whole(value: number): string {
  return new Intl.NumberFormat("en").format(value);
}
