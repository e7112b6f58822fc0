/** 5,000 rows: the tree scrolls, an edit shows, and how quickly. Figures are printed; only what is far off fails. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample, EXTENSION } from "./harness/world.ts";

const FRAME_MS = 1000 / 60;
const EDITS = 12;
const BY = path.join(EXTENSION, "test/e2e/many-rows.mjs");

let bench: Workbench;
let panel: FrameLocator;

beforeAll(prepared(async () => {
  const folder = path.join(copyExample(world(), "scale"), "backend/auth-service");
  mkdirSync(path.join(folder, ".vscode"));
  writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify({ "nexus.server.path": BY }));
  bench = await window({
    workspace: folder,
    file: path.join(folder, ".nexus3/NEXUS.md"),
    prepare: (page) => page.addInitScript(stopwatch),
  });
  await bench.ready();
}));
afterAll(() => bench?.close());
beforeEach(photographFailure);

test("the panel paints soon after its figures are there", async () => {
  panel = await bench.openPanel();
  const { told, painted } = await panel.locator("body").evaluate(() => (globalThis as Watched).nexusTimes ?? {});
  const ms = Math.round((painted ?? Number.NaN) - (told ?? Number.NaN));
  console.log(`measured panel: ${ms} ms from its figures to its first paint`);
  expect(ms).toBeLessThan(3_000);
});

test("5,000 rows scroll", async () => {
  await bench.unfold("What Costs What");
  const rows = bench.view("What Costs What").locator(".monaco-list-row");
  await until(() => rows.count(), (count) => count > 10);
  await rows.nth(3).hover();
  const frames = bench.page.evaluate(recordFrames, 3_000);
  for (let turn = 0; turn < 60; turn++) {
    await bench.page.mouse.wheel(0, 900);
    await bench.page.waitForTimeout(30);
  }
  const times = (await frames).sort((one, other) => one - other);
  const at = (share: number) => Math.round(times[Math.floor((times.length - 1) * share)] ?? 0);
  const late = times.filter((ms) => ms > 2 * FRAME_MS).length;
  console.log(`measured scrolling 5,000 rows: frames ${at(0.5)} ms, 95 of 100 below ${at(0.95)} ms, longest ${at(1)} ms, ${late} of ${times.length} late`);
  const last = Number(await rows.last().getAttribute("data-index"));
  expect(last).toBeGreaterThan(500);
  expect(at(0.5)).toBeLessThan(100);
});

test("an edit shows soon", async () => {
  await bench.unfold("Context Window");
  await bench.cursorTo("end");
  const took: number[] = [];
  for (let edit = 0; edit < EDITS; edit++) {
    const before = await panel.locator(".window .used").innerText();
    await bench.page.keyboard.type(" w");
    await until(() => panel.locator(".window .used").innerText(), (now) => now !== before);
    const pressed = await bench.page.evaluate(() => (globalThis as Watched).nexusTimes?.pressed ?? Number.NaN);
    const changed = await panel.locator("body").evaluate(() => (globalThis as Watched).nexusTimes?.changed ?? Number.NaN);
    took.push(changed - pressed);
    await bench.page.waitForTimeout(400);
  }
  took.sort((one, other) => one - other);
  const at = (share: number) => Math.round(took[Math.floor((took.length - 1) * share)] ?? 0);
  console.log(`measured an edit until the panel shows it: median ${at(0.5)} ms, longest ${at(1)} ms of ${EDITS}`);
  expect(at(0.5)).toBeLessThan(2_000);
});

interface Times {
  /** When figures came to the page. */
  told?: number;
  /** When they had been painted. */
  painted?: number;
  /** When a key went down. */
  pressed?: number;
  /** When the figure of what is used changed. */
  changed?: number;
}

type Watched = typeof globalThis & { nexusTimes?: Times };

/** Runs in every frame before its own scripts. Times are of one clock for all frames, in milliseconds. */
function stopwatch(): void {
  const times: Times = {};
  Object.assign(globalThis, { nexusTimes: times });
  const now = () => performance.timeOrigin + performance.now();
  addEventListener("keydown", () => Object.assign(times, { pressed: now() }), true);
  addEventListener("message", ({ data }) => {
    if (data?.type === "show" && data.model?.kind === "window" && times.told === undefined) {
      times.told = now();
      requestAnimationFrame(() => requestAnimationFrame(() => Object.assign(times, { painted: now() })));
    }
  }, true);
  let used = "";
  new MutationObserver(() => {
    const text = document.querySelector(".window .used")?.textContent ?? "";
    if (text === used) return;
    used = text;
    times.changed = now();
  }).observe(document, { subtree: true, childList: true, characterData: true });
}

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
