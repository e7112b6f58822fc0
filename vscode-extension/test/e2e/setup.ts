/** Before all tests: one VS Code and one browser. After them: neither, and the logs where something failed. */
import { readFileSync } from "node:fs";
import path from "node:path";
import type { BrowserContext } from "playwright-core";
import type { TestProject } from "vitest/node";
import { launch, Workbench } from "./harness/workbench.ts";
import { copyExample, EXTENSION, open, type Tools, type World } from "./harness/world.ts";

const WRITTEN_MS = 2_000; // VS Code keeps the answer a moment later, and does not say when
const CACHE = process.env.NEXUS_E2E_CACHE ?? path.join(EXTENSION, ".e2e");

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const tools = JSON.parse(readFileSync(path.join(CACHE, "tools.json"), "utf8")) as Tools;
  const kept = path.join(CACHE, "failure");
  const { world, close } = await open(tools, kept);
  const browser = await launch(world);
  await trustWorkspaces(browser, world);
  project.provide("world", world);
  return async () => {
    await browser.close();
    const failed = project.vitest.state.getCountOfFailedTests() > 0;
    await close(failed);
    if (failed) console.error(`logs and screenshots: ${kept}`);
  };
}

/** Trusts the folder of all workspaces, as a user does once; the browser keeps VS Code's files on the way. */
async function trustWorkspaces(browser: BrowserContext, world: World): Promise<void> {
  const first = copyExample(world, "first");
  const bench = await Workbench.open(browser, world, { workspace: first, trust: "all beside it" });
  await bench.page.waitForTimeout(WRITTEN_MS);
  await bench.close();
}
