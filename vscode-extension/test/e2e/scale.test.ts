/** 5,000 rows: the tree scrolls, an edit shows, and how quickly. Figures are printed; only what is far off fails. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { timeEdits } from "./harness/stopwatch.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample, EXTENSION } from "./harness/world.ts";

const FRAME_MS = 1000 / 60;
const EDITS = 12;
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

test("the panel shows soon after it was asked for", async () => {
  const began = performance.now();
  panel = await bench.openPanel();
  console.log(
    `measured panel: ${Math.round(performance.now() - began)} ms from the palette to its figures, the typing included`,
  );
});

test("5,000 rows scroll", async () => {
  await bench.unfold("What Costs What");
  const rows = bench.view("What Costs What").locator(".monaco-list-row");
  await until(
    () => rows.count(),
    (count) => count > 10,
  );
  await rows.nth(3).hover();
  const frames = bench.page.evaluate(recordFrames, 3_000);
  for (let turn = 0; turn < 60; turn++) {
    await bench.page.mouse.wheel(0, 900);
    await bench.page.waitForTimeout(30);
  }
  const times = (await frames).sort((one, other) => one - other);
  const at = (share: number) => Math.round(times[Math.floor((times.length - 1) * share)] ?? 0);
  const late = times.filter((ms) => ms > 2 * FRAME_MS).length;
  console.log(
    `measured scrolling 5,000 rows: frames ${at(0.5)} ms, 95 of 100 below ${at(0.95)} ms, longest ${at(1)} ms, ${late} of ${times.length} late`,
  );
  const numbers = (await bench.rows("What Costs What")).map((label) => Number(/^Note (\d+),/.exec(label)?.[1] ?? 0));
  expect(Math.max(...numbers)).toBeGreaterThan(80);
  expect(at(0.5)).toBeLessThan(100);
});

test("an edit shows soon", async () => {
  await bench.unfold("Context Window");
  await bench.cursorTo("end");
  const took = await timeEdits(bench, panel, EDITS);
  console.log(`measured an edit of 5,000 rows until the panel shows it: ${took}`);
  expect(took.at(0.5)).toBeLessThan(2_000);
});

/** The times between the frames of some seconds. */
function recordFrames(ms: number): Promise<number[]> {
  return new Promise((resolve) => {
    const times: number[] = [];
    const began = performance.now();
    let before = began;
    const next = () => {
      const now = performance.now();
      times.push(now - before);
      before = now;
      if (now - began < ms) requestAnimationFrame(next);
      else resolve(times);
    };
    requestAnimationFrame(next);
  });
}
