/**
 * A monorepo with everybody's instruction files: what VS Code attaches by itself is sent once, and kept nowhere, and
 * what the panel says before a message is what the model is sent, to the token.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Daemon, ledger } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { asPredicted, still } from "./harness/prediction.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

const CLAUDE = "Claude's rule: be brief.";
const PYTHON = "Python's rule: type everything.";
const COPILOT = "Copilot's rule: prefer tabs.";
const TYPESCRIPT = "TypeScript's rule: no any.";
const ALWAYS = ".github/copilot-instructions.md";
const FOR_SOME = ".github/instructions/*.instructions.md";
const REPEATS = 2_000;
const LONG = "Every module has one purpose, and its name says which.\n".repeat(REPEATS);

let folder: string;
let bench: Workbench;
let panel: FrameLocator;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "instructions"), "shop");
    write(".git/HEAD", "ref: refs/heads/main\n");
    write(".nexus3/config.json", '{ "provider": { "name": "editor" } }\n');
    write("AGENTS.md", `# Agents\n\n${LONG}`);
    write("CLAUDE.md", `# Claude\n\n${CLAUDE}\n`);
    write("web/AGENTS.md", "# Web\n");
    write(".mcp.json", '{ "mcpServers": {} }\n');
    write(ALWAYS, COPILOT);
    write(".github/instructions/python.instructions.md", `---\napplyTo: '**'\n---\n${PYTHON}`);
    write(".github/instructions/deep/web.instructions.md", `---\napplyTo: '**/*.ts'\n---\n${TYPESCRIPT}`);
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.ready();
    panel = await bench.openPanel();
    await panel.locator(".place .model").click();
    await bench.choose("Parrot");
    await panel.locator(".place .model", { hasText: "parrot" }).waitFor();
    await bench.openChat();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("the panel shows what will be attached as rows of their own", async () => {
  await bench.unfold("What Costs What"); // the list holds only rows that there is room for
  const rows = await until(
    () => bench.rows("What Costs What"),
    (all) => all.some((row) => row.startsWith("Attached by the editor, ")),
  );
  const attached = rows.findIndex((row) => row.startsWith("Attached by the editor, "));
  expect(rows.slice(attached + 1, attached + 3).map((row) => row.split(",")[0])).toEqual([
    ".github/instructions/python.instructions.md",
    "CLAUDE.md",
  ]);
  await bench.unfold("Context Window");
});

test("the first and the second message cost what the panel says before, and are sent without what is there twice", async () => {
  for (const [turn, prompt] of ["hi", "and again"].entries()) {
    const { text } = await asPredicted(bench, other, prompt);
    expect(count(text, "Every module has one purpose")).toBe(REPEATS);
    // VS Code attaches these two; the prompt has AGENTS.md in place of CLAUDE.md
    expect([count(text, CLAUDE), count(text, PYTHON)]).toEqual([1, 1]);
    // it only lists this one, for a tool that reads files; the other is for files that nobody attached
    expect([count(text, COPILOT), count(text, TYPESCRIPT), count(text, "<instructions>")]).toEqual([0, 0, 0]);
    const messages = await until(
      () => ledger(world(), folder),
      (all) => all.length > 2 * turn + 1,
    );
    expect(messages.filter((message) => message.role === "user").at(-1)?.content).toBe(prompt);
    expect(messages.filter(({ content }) => count(JSON.stringify(content), PYTHON) > 0)).toEqual([]); // it stands apart
  }
});

test("Copilot's files that are switched on are in the system prompt, once, and predicted", async () => {
  await bench.unfold("Context Window");
  const before = await still(bench);
  const listed = ["NEXUS.md", "AGENTS.md", "CLAUDE.md", ALWAYS, FOR_SOME];
  const settings = { provider: { name: "editor" }, context: { instruction_files: listed } };
  write(".nexus3/config.json", JSON.stringify(settings));
  await until(
    () => panel.locator(".window .used").first().innerText(),
    (now) => Number(now.replaceAll(/\D/g, "")) !== before,
  );
  const changes = panel.locator(".fact", { hasText: "Changes" });
  await changes.getByRole("button", { name: "Apply Now" }).click(); // else a note in the next message has them
  await changes.waitFor({ state: "detached" });
  const { system, text } = await asPredicted(bench, other, "now with Copilot's");
  expect([count(system, COPILOT), count(system, PYTHON), count(system, TYPESCRIPT)]).toEqual([1, 1, 0]);
  // the first message was sent with Python's file as the editor has it, this one with it as the folder has it
  expect([count(text, COPILOT), count(text, PYTHON), count(text, CLAUDE)]).toEqual([1, 2, 1]);
});

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}

function write(name: string, text: string): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}
