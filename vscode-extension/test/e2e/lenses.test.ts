/** Lenses of one folder: where they lead, the setting that hides them, and what they say while the server restarts. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { LayersResult } from "../../src/protocol/index.ts";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { quickFix } from "./harness/editor.ts";
import { servers, signal } from "./harness/processes.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

const LENSES = ["47 tokens imported", "60 tokens", "30 tokens"]; // of the import and of two headings

let folder: string;
let bench: Workbench;
let panel: FrameLocator;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "lenses"), "backend/auth-service");
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.ready();
    await bench.lens("30 tokens").waitFor(); // while the editor has the focus: VS Code requests none without it
    panel = await bench.openPanel();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a heading's lens selects, in the prompt, what it counts; the import's what it brings", async () => {
  const { text } = await other.request("nexus/context/preview", { workspaceFolder: uriOf(folder) });
  const end = "- Times are UTC, in seconds, as integers.";
  const conventions = text.slice(text.lastIndexOf("## Conventions"), text.indexOf(end) + end.length);
  expect(await selectedBy("30 tokens")).toBe(selection(text, conventions));
  const threats = text.slice(text.indexOf("### Threats"), text.lastIndexOf("## Key files")).trimEnd();
  expect(await selectedBy("47 tokens imported")).toBe(selection(text, threats));
});

test("the setting hides them and shows them again, at once", async () => {
  const settings = path.join(folder, ".vscode/settings.json");
  mkdirSync(path.dirname(settings), { recursive: true });
  writeFileSync(settings, JSON.stringify({ "nexus.codeLens": false }));
  await bench
    .lens(/tokens/)
    .first()
    .waitFor({ state: "detached" });
  rmSync(settings);
  await showsTitles();
});

test("figures and lenses of before stay, greyed, until the next server answers", async () => {
  const figures = () => panel.locator(".window .used, .window .percent, .legend .tokens").allTextContents();
  await bench.unfold("Context Window", "What Costs What");
  const rows = await until(
    () => bench.rows("What Costs What"),
    (all) => all.length > 3,
  );
  const [before, status] = [await figures(), await bench.ready()];
  const [server] = servers(world().pid);
  if (!server) throw new Error("no server runs");
  signal(server.pid, "SIGKILL");
  // The next one waits until all is seen: VS Code asks for lenses when it likes, at times after a quick server answers.
  const next = await until(
    () => servers(world().pid).find(({ pid }) => pid !== server.pid),
    (found) => found !== undefined,
  );
  if (next) signal(next.pid, "SIGSTOP");
  const [, spoken, greyed] = await Promise.all([
    bench.lens("30 tokens").locator(".codicon-sync").waitFor().then(showsTitles),
    bench.nexusItem().and(bench.page.locator('[aria-label*="Before: "]')).getAttribute("aria-label"),
    panel.locator(".window[data-stale]").waitFor().then(figures),
    bench.view("What Costs What").locator(".pane-header .description", { hasText: "from before" }).waitFor(),
  ]);
  if (next) signal(next.pid, "SIGCONT");
  expect(greyed).toEqual(before);
  expect(spoken?.split("Before: ")[1]).toBe(status.replace(/^Nexus: /, "").replace(/, [\d.]+ %$/, ""));
  expect(await bench.rows("What Costs What")).toHaveLength(rows.length);
  await panel.locator(".window:not([data-stale])").waitFor();
  await bench.lens("30 tokens").locator(".codicon-sync").waitFor({ state: "detached" });
  await bench
    .view("What Costs What")
    .locator(".pane-header .description", { hasText: "from before" })
    .waitFor({ state: "hidden" });
  await showsTitles();
  expect([await figures(), await bench.ready()]).toEqual([before, status]);
});

test("a file that is not read says why, and its quick fix has it read; one that is for some files says for which", async () => {
  const [always, some] = [".github/copilot-instructions.md", ".github/instructions/python.instructions.md"];
  mkdirSync(path.join(folder, ".github/instructions"), { recursive: true });
  writeFileSync(path.join(folder, always), "Prefer tabs.\n");
  writeFileSync(path.join(folder, some), "---\napplyTo: '**/*.py'\n---\nType everything.\n");
  const why = "Nexus does not send it: it is an instruction file of GitHub Copilot";
  const advice = (entry: string) =>
    `Nexus does not send it: it is an instruction file of GitHub Copilot. Add "${entry}" to "instruction_files" in "context" to read it, too`;
  const fix = (entry: string) => `Read this file: add "${entry}" to "instruction_files"`;
  for (const [file, entry] of [
    [always, always],
    [some, ".github/instructions/*.instructions.md"],
  ] as const) {
    await bench.openFile(file);
    await bench.lens(/^GitHub Copilot: /).waitFor();
    expect(await bench.lens(why).getAttribute("title")).toBe(advice(entry));
    await bench.cursorTo("start");
    expect((await quickFix(bench, fix(entry)))[0]).toBe(fix(entry));
    await bench.lens(/^Nexus: \d+ tokens · /).waitFor();
  }
  await bench.command("File: Save All Files");
  const files = await until(
    async () =>
      (await other.request("nexus/context/layers", { workspaceFolder: uriOf(folder) })).layers.flatMap(filesOf),
    (all) => [always, some].every((name) => all.some(({ uri }) => uri.endsWith(name))),
  );
  const one = (name: string) => files.find(({ uri }) => uri.endsWith(name));
  expect([one(always)?.status, one(some)?.status]).toEqual(["loaded", "conditional"]);
  const { model } = await other.request("nexus/context/usage", { workspaceFolder: uriOf(folder) });
  const { total } = await other.request("nexus/tokens/count", { texts: ["Type everything."], model });
  await bench.lens(`Nexus: ${total} tokens · sent with turns about files that match **/*.py`).waitFor();
  await bench.openFile(always);
  await bench.lens(new RegExp(`^Nexus: ${one(always)?.tokens} tokens · .* · sent with every request$`)).waitFor();
});

function filesOf(layer: LayersResult["layers"][number]): LayersResult["layers"][number]["files"] {
  return layer.files;
}

/** Waits until all of `LENSES` are there: VS Code draws one after the other. */
async function showsTitles(): Promise<void> {
  await until(titles, (all) => all.join("\n") === LENSES.join("\n"));
}

/** The words of the lenses below the first line. */
async function titles(): Promise<string[]> {
  const all = await bench.lens(/tokens/).allInnerTexts();
  return all
    .map((title) => title.trim())
    .filter((title) => /^\d+ tokens( imported)?$/.test(title))
    .slice(-LENSES.length);
}

/** Where the cursor is after a click on a lens, and how much is selected; the file is active again afterwards. */
async function selectedBy(title: string): Promise<string> {
  await bench.lens(title).first().click();
  await bench.page.locator(".part.editor .tab.active", { hasText: "system prompt" }).waitFor();
  const item = bench.page.locator("#status\\.editor\\.selection");
  const text = await until(
    () => item.innerText(),
    (now) => now.includes("selected"),
  );
  await bench.openFile(".nexus3/NEXUS.md");
  return text.trim();
}

/** What the status bar says when a part of a text is selected. */
function selection(text: string, part: string): string {
  const lines = text.slice(0, text.lastIndexOf(part) + part.length).split("\n");
  return `Ln ${lines.length}, Col ${(lines.at(-1)?.length ?? 0) + 1} (${part.length} selected)`;
}
