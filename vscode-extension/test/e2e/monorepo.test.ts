/**
 * A package of a monorepo with everybody's instruction files, one of which has 300 KB: what the panel says before each
 * message is what the model is sent, to the token; what is not read is named with its reason; a broken neighbour breaks
 * nothing here.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Daemon, ledger, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { monorepo } from "./harness/monorepo.ts";
import { asPredicted } from "./harness/prediction.ts";
import type { Workbench } from "./harness/workbench.ts";

let root: string;
let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    root = monorepo(world(), "packages");
    folder = path.join(root, "packages/web");
    mkdirSync(path.join(folder, ".nexus3"));
    writeFileSync(path.join(folder, ".nexus3/config.json"), '{ "provider": { "name": "editor" } }\n');
    other = await Daemon.start(world(), folder, path.join(root, "packages/api"), path.join(root, "packages/broken"));
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.ready();
    await bench.openPanel();
    await bench.webview().locator(".place .model").click();
    await bench.choose("Parrot");
    await bench.webview().locator(".place .model", { hasText: "parrot" }).waitFor();
    await bench.openChat();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("three messages beside 300 KB of instructions cost what is predicted, and nothing is compacted", async () => {
  for (const prompt of ["hi", "and again", "a third time"]) {
    const { text } = await asPredicted(bench, other, prompt);
    expect([text.split("# Web\n").length - 1, text.split("A shop in three packages.").length - 1]).toEqual([1, 1]);
  }
  const messages = await until(
    () => ledger(world(), folder),
    (all) => all.length === 7,
  );
  const users = messages.filter(({ role }) => role === "user").map(({ content }) => content);
  expect(users.slice(1)).toEqual(["hi", "and again", "a third time"]);
  const { turns } = await other.request("nexus/session/transcript", { ...place(), session: "main" });
  expect(turns.map(({ type }) => type)).toEqual(["query", "query", "query"]);
});

test("every file that is not read is named, with its reason", async () => {
  const { skipped } = await other.request("nexus/context/layers", place("packages/api"));
  const named = Object.fromEntries(skipped.map(({ path: file, reason }) => [path.relative(root, file), reason]));
  const beside =
    "of NEXUS.md, AGENTS.md, CLAUDE.md the first that exists is read. Write @CLAUDE.md in AGENTS.md to read it, too";
  const copilot = (entry: string) =>
    `is an instruction file of GitHub Copilot. Add "${entry}" to "instruction_files" in "context" to read it, too`;
  const some = ".github/instructions/*.instructions.md";
  expect(named).toEqual({
    "packages/api/CLAUDE.md": `has no effect beside AGENTS.md: ${beside}`,
    "CLAUDE.md": `has no effect beside AGENTS.md: ${beside}`,
    ".github/copilot-instructions.md": copilot(".github/copilot-instructions.md"),
    ".github/instructions/all.instructions.md": copilot(some),
    ".github/instructions/python.instructions.md": copilot(some),
    ".cursor/rules/base.mdc":
      "is an instruction file of Cursor. Write @.cursor/rules/base.mdc in AGENTS.md to read it, too",
  });
});

test("the root's files and servers count in a package, though its neighbour's settings are broken", async () => {
  const layers = await other.request("nexus/context/layers", place("packages/broken"));
  const read = layers.layers.flatMap(({ files }) => files.filter(({ status }) => status === "loaded"));
  const own = read.map(({ uri }) => path.relative(root, decodeURIComponent(uri.replace("file://", ""))));
  expect(own.filter((file) => !file.startsWith(".."))).toEqual(["AGENTS.md", ".mcp.json", "packages/broken/AGENTS.md"]);
  const broken = layers.problems.filter(({ uri }) => uri.endsWith("packages/broken/.nexus3/config.json"));
  expect(broken.map(({ severity }) => severity)).toContain(1);
  const api = await other.request("nexus/context/layers", place("packages/api"));
  expect(api.problems.filter(({ severity }) => severity === 1)).toEqual([]);
});

function place(name = "packages/web"): { workspaceFolder: string } {
  return { workspaceFolder: uriOf(path.join(root, name)) };
}
