/** Before all tests: a VS Code and a browser for each process of tests. After them: none, and the logs where one failed. */
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import type { BrowserContext } from "playwright-core";
import type { TestProject } from "vitest/node";
import { launch, Workbench } from "./harness/workbench.ts";
import { copyExample, EXTENSION, open, type Tools, type World } from "./harness/world.ts";

const CACHE = process.env.NEXUS_E2E_CACHE ?? path.join(EXTENSION, ".e2e");

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const tools = JSON.parse(readFileSync(path.join(CACHE, "tools.json"), "utf8")) as Tools;
  const kept = path.join(CACHE, "failure");
  rmSync(kept, { recursive: true, force: true });
  const { filenamePattern } = project.vitest as { filenamePattern?: string[] }; // the command line's; not in Vitest's types
  const { testFiles } = await project.globTestFiles(filenamePattern);
  const processes = Math.min(project.config.maxWorkers, testFiles.length);
  const folders = Array.from({ length: processes }, (_, index) => path.join(kept, String(index + 1)));
  const started = await Promise.allSettled(folders.map((folder) => start(tools, folder)));
  const all = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const closeAll = async (keep: boolean) => {
    await Promise.all(all.map(({ close }) => close(keep)));
    if (keep) console.error(`logs and screenshots: ${kept}`);
  };
  for (const result of started) {
    if (result.status === "fulfilled") continue;
    await closeAll(true);
    throw result.reason;
  }
  project.provide(
    "worlds",
    all.map(({ world }) => world),
  );
  return () => closeAll(project.vitest.state.getCountOfFailedTests() > 0);
}

/** A VS Code and its browser, in which the folder of all workspaces is trusted. */
export async function start(
  tools: Tools,
  kept: string,
): Promise<{ world: World; close(keep: boolean): Promise<void> }> {
  const { world, close } = await open(tools, kept);
  try {
    const browser = await launch(world);
    await trustWorkspaces(browser, world);
    const closeBoth = async (keep: boolean) => {
      await browser.close();
      await close(keep);
    };
    return { world, close: closeBoth };
  } catch (error) {
    await close(true);
    throw error;
  }
}

/** Trusts the folder of all workspaces, as a user does once; the browser keeps VS Code's files on the way. */
async function trustWorkspaces(browser: BrowserContext, world: World): Promise<void> {
  const bench = await Workbench.open(browser, world, {
    workspace: copyExample(world, "first"),
    trust: "all beside it",
  });
  await bench.close();
}
