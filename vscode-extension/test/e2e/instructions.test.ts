/** A workspace with everybody's instruction files: what VS Code attaches by itself is sent once, and kept nowhere. */
import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ledger } from "./harness/daemon.ts";
import { heard, photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

const CLAUDE = "Claude's rule: be brief.";
const PYTHON = "Python's rule: type everything.";
const COPILOT = "Copilot's rule: prefer tabs.";
const REPEATS = 2_000;
const LONG = "Every module has one purpose, and its name says which.\n".repeat(REPEATS);

let folder: string;
let bench: Workbench;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "instructions"), "shop");
    write("AGENTS.md", `# Agents\n\n${LONG}`);
    write("CLAUDE.md", `# Claude\n\n${CLAUDE}\n`);
    write(".github/copilot-instructions.md", COPILOT);
    write(".github/instructions/python.instructions.md", `---\napplyTo: '**'\n---\n${PYTHON}`);
    bench = await window({ workspace: folder, file: path.join(folder, "AGENTS.md") });
    await bench.ready();
    await bench.openChat();
  }),
);
afterAll(() => bench?.close());
beforeEach(photographFailure);

test("what VS Code attaches is not sent twice, and is not what the user said", async () => {
  for (const [turn, prompt] of ["hi", "and again"].entries()) {
    await bench.ask(prompt);
    await bench.response(`You said: ${prompt}`).waitFor();
    const sent = heard().findLast((one) => one.event === "request")?.messages ?? [];
    const text = sent.map((message) => message.text).join("\n");
    expect(count(text, "Every module has one purpose")).toBe(REPEATS);
    // VS Code attaches these two; the prompt has AGENTS.md in place of CLAUDE.md
    expect([count(text, CLAUDE), count(text, PYTHON)]).toEqual([1, 1]);
    // it only lists this one, for a tool that reads files
    expect([count(text, COPILOT), count(text, "<instructions>")]).toEqual([0, 0]);
    const messages = await until(
      () => ledger(world(), folder),
      (all) => all.length > 2 * turn + 1,
    );
    expect(messages.filter((message) => message.role === "user").at(-1)?.content).toBe(prompt);
    expect(count(JSON.stringify(messages), PYTHON)).toBe(0);
  }
});

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}

function write(name: string, text: string): void {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}
