/** When a key went down and when a web view showed what came of it, by one clock for all frames. */
import type { FrameLocator, Page } from "playwright-core";
import { until } from "../e2e/harness/until.ts";
import type { Workbench } from "../e2e/harness/workbench.ts";

const PAUSE_MS = 400; // between edits: the next one finds the editor at rest

interface Times {
  /** When a key went down. */
  pressed?: number;
  /** When the figure changed. */
  changed?: number;
  /** When the first figure had been painted. */
  painted?: number;
}

type Watched = typeof globalThis & { nexusTimes?: Times };

/** Before a page loads: watches for keys and for the first figure of a web view, wherever its frame will be. */
export async function watch(page: Page): Promise<void> {
  await page.addInitScript(watchFirst);
}

/** How long it took from the last key, which ran the command, until the view's first figure was painted. In ms. */
export async function timeFirst({ page }: Workbench, view: FrameLocator): Promise<number> {
  const painted = await until(
    async () => (await view.locator("body").evaluate(times)).painted,
    (at) => at !== undefined,
  );
  const { pressed = Number.NaN } = await page.evaluate(times);
  return (painted ?? Number.NaN) - pressed;
}

/** Types a word again and again at the cursor: how long each takes until the view shows another figure. In ms. */
export async function timeEdits({ page }: Workbench, view: FrameLocator, edits: number): Promise<number[]> {
  const used = () => view.locator(".window .used").innerText();
  const took: number[] = [];
  await view.locator("body").evaluate(watchFigure);
  for (let edit = 0; edit < edits; edit++) {
    const before = await used();
    await page.keyboard.type(" w");
    await until(used, (now) => now !== before);
    const { pressed = Number.NaN } = await page.evaluate(times);
    const { changed = Number.NaN } = await view.locator("body").evaluate(times);
    took.push(changed - pressed);
    await page.waitForTimeout(PAUSE_MS);
  }
  return took;
}

/** To be run in a frame. */
function times(): Times {
  return (globalThis as Watched).nexusTimes ?? {};
}

/** To be run in the frame of a view. */
function watchFigure(): void {
  const { nexusTimes } = globalThis as Watched;
  const text = () => document.querySelector(".window .used")?.textContent ?? "";
  let used = text();
  new MutationObserver(() => {
    if (text() === used) return;
    used = text();
    Object.assign(nexusTimes ?? {}, { changed: performance.timeOrigin + performance.now() });
  }).observe(document.documentElement, { subtree: true, childList: true, characterData: true });
}

/**
 * To be run in every frame before its own scripts. VS Code writes a web view's document anew, which takes listeners
 * away: the one for messages comes back with the first that the page's own script adds.
 */
function watchFirst(): void {
  const times: Times = {};
  Object.assign(globalThis, { nexusTimes: times });
  const now = () => performance.timeOrigin + performance.now();
  const hear = (event: Event) => {
    const { data } = event as MessageEvent<{ type?: string; model?: { kind?: string } } | undefined>;
    if (data?.type !== "show" || data.model?.kind !== "window" || times.painted !== undefined) return;
    requestAnimationFrame(() => setTimeout(() => Object.assign(times, { painted: times.painted ?? now() })));
  };
  const add = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (this: EventTarget, type, listener, options) {
    const on = this ?? globalThis;
    if (type === "message" && on === globalThis) add.call(on, type, hear, true);
    add.call(on, type, listener, options);
  };
  add.call(globalThis, "keydown", () => Object.assign(times, { pressed: now() }), true);
}
