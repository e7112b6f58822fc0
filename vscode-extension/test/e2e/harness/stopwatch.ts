/** When a key went down and when the panel showed it, by one clock for all frames; medians of that. */
import type { FrameLocator, Page } from "playwright-core";
import { until } from "./each.ts";
import type { Workbench } from "./workbench.ts";

interface Times {
  /** When a key went down. */
  pressed?: number;
  /** When the figure of what is used changed. */
  changed?: number;
  /** When the first figures came to the page. */
  told?: number;
  /** When they had been painted. */
  painted?: number;
}

type Watched = typeof globalThis & { nexusTimes?: Times };

/** Milliseconds, sorted; `at(0.5)` is the median. */
export class Durations {
  readonly #sorted: readonly number[];

  constructor(all: readonly number[]) {
    this.#sorted = [...all].sort((one, other) => one - other);
  }

  at(share: number): number {
    return Math.round(this.#sorted[Math.floor((this.#sorted.length - 1) * share)] ?? Number.NaN);
  }

  toString(): string {
    return `median ${this.at(0.5)} ms, longest ${this.at(1)} ms of ${this.#sorted.length}`;
  }
}

/** Types a word again and again at the cursor: how long each takes until the panel shows another figure. */
export async function timeEdits({ page }: Workbench, panel: FrameLocator, edits: number): Promise<Durations> {
  const used = () => panel.locator(".window .used").innerText();
  const took: number[] = [];
  await page.evaluate(watchKeysAndFigure);
  await panel.locator("body").evaluate(watchKeysAndFigure);
  for (let edit = 0; edit < edits; edit++) {
    const before = await used();
    await page.keyboard.type(" w");
    await until(used, (now) => now !== before);
    const { pressed = Number.NaN } = await page.evaluate(times);
    const { changed = Number.NaN } = await panel.locator("body").evaluate(times);
    took.push(changed - pressed);
    await page.waitForTimeout(400);
  }
  return new Durations(took);
}

/** Before a page loads: watches for the panel's first figures, wherever its frame will be. */
export async function watchFirstFigures(page: Page): Promise<void> {
  await page.addInitScript(watchFirst);
}

/** How long it took from the panel's first figures until they were painted. */
export async function timeFirstPaint(panel: FrameLocator): Promise<number> {
  const paint = async () => (await panel.locator("body").evaluate(times)).painted;
  const painted = (await until(paint, (at) => at !== undefined)) ?? Number.NaN;
  const { told = Number.NaN } = await panel.locator("body").evaluate(times);
  return Math.round(painted - told);
}

/** How long it took from the beginning of the panel's page until its first figures came. VS Code's own part is before. */
export async function timeFirstFigures(panel: FrameLocator): Promise<number> {
  await timeFirstPaint(panel);
  const { told = Number.NaN } = await panel.locator("body").evaluate(times);
  return Math.round(told - (await panel.locator("body").evaluate(() => performance.timeOrigin)));
}

/** To be run in a frame. */
function times(): Times {
  return (globalThis as Watched).nexusTimes ?? {};
}

/** To be run in a frame. */
function watchKeysAndFigure(): void {
  const times: Times = {};
  Object.assign(globalThis, { nexusTimes: times });
  const now = () => performance.timeOrigin + performance.now();
  addEventListener("keydown", () => Object.assign(times, { pressed: now() }), true);
  const text = () => document.querySelector(".window .used")?.textContent ?? "";
  let used = text();
  new MutationObserver(() => {
    if (text() === used) return;
    used = text();
    times.changed = now();
  }).observe(document.documentElement, { subtree: true, childList: true, characterData: true });
}

/**
 * To be run in every frame before its own scripts. VS Code writes a web view's document anew, which takes listeners
 * away: this one comes back with the first that the page's own script adds.
 */
function watchFirst(): void {
  const times: Times = {};
  Object.assign(globalThis, { nexusTimes: times });
  const now = () => performance.timeOrigin + performance.now();
  const hear = (event: Event) => {
    const { data } = event as MessageEvent<{ type?: string; model?: { kind?: string } } | undefined>;
    if (data?.type !== "show" || data.model?.kind !== "window" || times.told !== undefined) return;
    times.told = now();
    requestAnimationFrame(() => setTimeout(() => Object.assign(times, { painted: now() })));
  };
  const add = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (this: EventTarget, type, listener, options) {
    const on = this ?? globalThis;
    if (type === "message" && on === globalThis) add.call(on, type, hear, true);
    add.call(on, type, listener, options);
  };
}
