/** 5,000 rows: the panel shows, the tree scrolls to rows far below, and an edit shows. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, test } from "vitest";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample, EXTENSION } from "./harness/world.ts";

const BY = path.join(EXTENSION, "test/e2e/many-rows.mjs");

let bench: Workbench;
let panel: FrameLocator;

beforeAll(
  prepared(async () => {
    const folder = path.join(copyExample(world(), "scale"), "backend/auth-service");
    mkdirSync(path.join(folder, ".vscode"));
    writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify({ "nexus.server.path": BY }));
    bench = await window({
      workspace: folder,
      file: path.join(folder, ".nexus3/NEXUS.md"),
    });
    await bench.ready();
  }),
);
afterAll(() => bench?.close());
beforeEach(photographFailure);

test("the panel shows", async () => {
  panel = await bench.openPanel();
});

test("5,000 rows scroll", async () => {
  await bench.unfold("What Costs What");
  const numbers = async () =>
    (await bench.rows("What Costs What")).map((label) => Number(/^Note ([\d]+),/.exec(label)?.[1] ?? 0));
  const rows = bench.view("What Costs What").locator(".monaco-list-row");
  await until(
    () => rows.count(),
    (count) => count > 10,
  );
  await rows.nth(3).hover();
  for (let turn = 0; turn < 60; turn++) await bench.page.mouse.wheel(0, 900);
  await until(numbers, (shown) => Math.max(...shown) > 80);
});

test("an edit shows", async () => {
  await bench.unfold("Context Window");
  const used = panel.locator(".window .used");
  const before = await used.innerText();
  await bench.cursorTo("end");
  await bench.type(" w");
  await until(
    () => used.innerText(),
    (text) => text !== before,
  );
});
