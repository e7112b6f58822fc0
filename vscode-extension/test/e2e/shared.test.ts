/** Two Neovims and one VS Code on one folder, with one daemon: a conversation that all see live, and ends of all kinds. */
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { lines } from "./harness/editor.ts";
import { Neovim } from "./harness/neovim.ts";
import { servers, sharedDaemons, signal } from "./harness/processes.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample, leaveModelToEditor } from "./harness/world.ts";

let folder: string;
let bench: Workbench;
let one: Neovim;
let two: Neovim;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "shared"), "backend/auth-service");
    leaveModelToEditor(folder, "none");
    const file = path.join(folder, ".nexus3/NEXUS.md");
    one = await Neovim.open(world(), "one", folder, file);
    two = await Neovim.open(world(), "two", folder, file);
    bench = await window({ workspace: folder, file, size: { width: 1440, height: 2000 } }); // a whole conversation shows
    await bench.ready();
    await bench.openPanel();
    await bench.unfold("Conversations");
  }),
);
afterAll(async () => {
  await one?.close();
  await two?.close();
  await bench?.close();
});
beforeEach(photographFailure);

test("all three use one daemon", async () => {
  expect((await one.state()).connections).toBe(3);
  expect(sharedDaemons(world().runtime)).toHaveLength(1);
});

test("a turn of any of them is in the others at once", async () => {
  await one.append("main", "From the first Neovim.");
  await isTold(two);
  expect(await two.page("NexusContext")).toContain("From the first Neovim.");
  await bench.row("Conversations", "main").click();
  await shows("  From the first Neovim.");

  await two.append("main", "From the second Neovim.");
  await isTold(one);
  expect(await one.page("NexusContext")).toContain("From the second Neovim.");
  await shows("  From the second Neovim.");

  await bench.command("Nexus: Switch Conversation");
  await bench.choose("main");
  await bench.openChat();
  await bench.ask("from VS Code");
  await bench.response("You said: from VS Code").waitFor();
  for (const neovim of [one, two]) {
    await isTold(neovim);
    const page = await until(
      () => neovim.page("NexusContext"),
      (text) => text.includes("You said: from VS Code"),
    );
    expect(page).toMatch(/From the first Neovim\..*From the second Neovim\..*from VS Code/s);
  }
});

test("unsaved text is in the prompt of its own editor alone", async () => {
  await one.type("Typed in the first Neovim.");
  await bench.openFile(".nexus3/NEXUS.md");
  const before = await bench.ready();
  await bench.cursorTo("end");
  await bench.type("\nTyped in VS Code.\n");
  await until(
    () => bench.ready(),
    (label) => label !== before,
  );
  const typed = async (text: Promise<string>) => [...(await text).matchAll(/Typed in .*\./g)].map(([line]) => line);
  expect(await typed(one.page("NexusPreview"))).toEqual(["Typed in the first Neovim."]);
  expect(await typed(two.page("NexusPreview"))).toEqual([]);
  await bench.command("Nexus: Show System Prompt");
  await bench.page.locator(".part.editor .tab.active", { hasText: "system prompt" }).waitFor();
  await bench.cursorTo("end");
  const shown = await until(
    () => lines(bench),
    (all) => all.length > 1,
  );
  expect(await typed(Promise.resolve(shown.join("\n")))).toEqual(["Typed in VS Code."]);
});

test("the daemon is killed while all are open: figures and the conversation go on, and nobody is told", async () => {
  await openTranscript();
  await bench.command("Notifications: Clear All Notifications");
  const [daemon] = sharedDaemons(world().runtime);
  const [windows, clients] = [servers(world().pid), [await one.state(), await two.state()]];
  const spoken = await recordStatus();
  if (!daemon) throw new Error("no daemon runs");
  signal(daemon.pid, "SIGKILL");
  await two.append("main", "After the crash.");
  await until(
    () => one.page("NexusContext"),
    (text) => text.includes("After the crash."),
  );
  await shows("  After the crash.");
  await until(spoken, (labels) => labels.length > 0); // the new turn is in the figures
  for (const label of await spoken()) expect(label).toMatch(/^Nexus: [\d,]+ of [\d,]+ tokens, [\d.]+ %$/);
  expect(sharedDaemons(world().runtime).map(({ pid }) => pid)).not.toContain(daemon.pid);
  expect(servers(world().pid)).toEqual(windows);
  expect([await one.state(), await two.state()]).toEqual(clients);
  await bench.command("Notifications: Show Notifications");
  expect(await bench.page.locator(".notifications-center .notification-list-item").count()).toBe(0);
  await bench.page.keyboard.press("Escape");
});

test("one is killed, and the others go on", async () => {
  one.kill();
  await until(
    () => two.state(),
    ({ connections }) => connections === 2,
  );
  await two.append("main", "After a Neovim crashed.");
  await shows("  After a Neovim crashed.");
});

test("a restart in VS Code is one of the daemon, and the others go on with the next one", async () => {
  const [before] = sharedDaemons(world().runtime);
  await two.told();
  await bench.command("Nexus: Restart Server");
  const [after] = await until(
    () => sharedDaemons(world().runtime),
    (all) => all.length === 1 && all[0]?.pid !== before?.pid,
  );
  await bench.ready();
  expect(after?.pid).not.toBe(before?.pid);
  await until(
    () => two.state(),
    ({ connections }) => connections === 2,
  );
  await two.append("main", "After the restart.");
  await shows("  After the restart.");
  expect((await two.state()).messages).toEqual([]);
});

test("a window with a server of its own sees the same conversation, and the setting back brings it to the others", async () => {
  const settings = path.join(folder, ".vscode/settings.json");
  mkdirSync(path.dirname(settings), { recursive: true });
  writeFileSync(settings, JSON.stringify({ "nexus.server.shared": false }));
  await until(
    () => servers(world().pid).map(({ command }) => command.at(-1)),
    (words) => words.length === 1 && words[0] === "serve",
  );
  await bench.ready();
  await until(
    () => two.state(),
    ({ connections }) => connections === 1,
  );
  const [daemon] = sharedDaemons(world().runtime);
  await two.append("main", "To a window of its own.");
  await shows("  To a window of its own.");
  rmSync(settings);
  await until(
    () => two.state(),
    ({ connections }) => connections === 2,
  );
  await bench.ready();
  expect(sharedDaemons(world().runtime)).toEqual([daemon]);
});

/** Waits until a Neovim is told of another's turn. */
async function isTold(neovim: Neovim): Promise<void> {
  await until(
    () => neovim.told(),
    (changes) => changes.some(({ session, reason, by }) => `${session} ${reason} ${by}` === "main appended other"),
  );
}

async function openTranscript(): Promise<void> {
  await bench.row("Conversations", "main").click();
  await bench.page.locator(".part.editor .tab.active", { hasText: "main (conversation)" }).waitFor();
}

/** Waits until the conversation in the editor has this line. */
async function shows(line: string): Promise<void> {
  await until(
    () => lines(bench),
    (all) => all.includes(line),
  );
}

/** What the status bar item says from now on. */
async function recordStatus(): Promise<() => Promise<string[]>> {
  const item = bench.page.locator('.part.statusbar .statusbar-item[id$="nexus.status"]');
  await item.evaluate((node) => {
    const labels: string[] = [];
    Object.assign(globalThis, { nexusLabels: labels });
    new MutationObserver(() => {
      const label = node.querySelector("a")?.getAttribute("aria-label");
      if (label && label !== labels.at(-1)) labels.push(label);
    }).observe(node, { subtree: true, childList: true, attributes: true });
  });
  return () => bench.page.evaluate(() => (globalThis as unknown as { nexusLabels: string[] }).nexusLabels);
}
