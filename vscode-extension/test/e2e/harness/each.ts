/** What every file of tests starts with: the world of the run, its browser, and pictures of what failed. */
import { existsSync, readFileSync } from "node:fs";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, inject, onTestFailed } from "vitest";
import { connect, type Opening, Workbench } from "./workbench.ts";
import type { World } from "./world.ts";

export { until } from "./until.ts";

declare module "vitest" {
  export interface ProvidedContext {
    /** One for each process that runs tests, by its number. */
    worlds: World[];
  }
}

let browser: Promise<BrowserContext> | undefined;

afterAll(async () => {
  for (const page of await pages()) await page.close();
});

export function world(): World {
  const own = inject("worlds")[Number(process.env.VITEST_POOL_ID) - 1];
  if (!own) throw new Error(`process ${process.env.VITEST_POOL_ID} has no world`);
  return own;
}

/** A window that is closed after the file's last test. */
export async function window(opening: Opening): Promise<Workbench> {
  browser ??= connect(world());
  return await Workbench.open(await browser, world(), opening);
}

async function pages(): Promise<Page[]> {
  const all = (await browser)?.pages() ?? [];
  return all.filter((page) => page.url() !== "about:blank");
}

/** To be called in a test: when it fails, every window is photographed. */
export function photographFailure(): void {
  onTestFailed(({ task }) => photograph(task.name));
}

/** Work before the tests of a file, photographed when it fails. */
export function prepared(work: () => Promise<void>): () => Promise<void> {
  return async () => {
    try {
      await work();
    } catch (error) {
      await photograph("before the tests");
      throw error;
    }
  };
}

async function photograph(name: string): Promise<void> {
  const file = name.replaceAll(/[^\w]+/g, "-");
  for (const [index, page] of (await pages()).entries()) {
    await page.screenshot({ path: `${world().logs}/screenshots/${file}-${index}.png` });
  }
}

export interface Heard {
  readonly event: "request" | "answered" | "cancelled" | "called" | "failed";
  readonly messages?: readonly { role: string; text: string }[];
  readonly tools?: readonly string[];
  /** Model parameters. */
  readonly options?: Record<string, unknown>;
  readonly definitions?: readonly { name: string; description: string; inputSchema: object }[];
}

/** What the test model was sent, since the run began. */
export function heard(): Heard[] {
  const file = world().modelLog;
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trim().split("\n").filter(Boolean);
  return lines.map((line) => JSON.parse(line) as Heard);
}
