/** How quick the panel is with a folder as people have them. Figures are printed; three times what a busy machine measures fails. */
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { photographFailure, prepared, window, world } from "./harness/each.ts";
import { timeEdits, timeFirstFigures, timeFirstPaint, watchFirstFigures } from "./harness/stopwatch.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

const EDITS = 20;
/**
 * Three times what is measured where ten programs share each core: 75 ms until it is painted and 145 ms for an edit. Of
 * the first figures only 116 ms at half that load are known: three times is allowed again for the other half.
 */
const FIGURES_MS = 1_000;
const PAINT_MS = 230;
const EDIT_MS = 440;

let bench: Workbench;
let panel: FrameLocator;

beforeAll(
  prepared(async () => {
    const folder = path.join(copyExample(world(), "speed"), "backend/auth-service");
    const file = path.join(folder, ".nexus3/NEXUS.md");
    bench = await window({ workspace: folder, file, prepare: watchFirstFigures });
    await bench.ready();
  }),
);
afterAll(() => bench?.close());
beforeEach(photographFailure);

test("the panel shows soon after it is asked for", async () => {
  panel = await bench.openPanel();
  const ms = await timeFirstFigures(panel);
  console.log(`measured panel: ${ms} ms from the beginning of its page to its figures`);
  expect(ms).toBeLessThan(FIGURES_MS);
});

test("the panel is painted soon after its figures are there", async () => {
  const ms = await timeFirstPaint(panel);
  console.log(`measured panel: ${ms} ms from its figures to its first paint, wanted: 300`);
  expect(ms).toBeLessThan(PAINT_MS);
});

test("an edit of a folder as people have them shows soon", async () => {
  await bench.cursorTo("end");
  const took = await timeEdits(bench, panel, EDITS);
  console.log(`measured an edit until the panel shows it: ${took}, wanted: 100`);
  expect(took.at(0.5)).toBeLessThan(EDIT_MS);
});
