/** What the editor offers in the settings and instructions of the assistants in use: each by its own key. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { cursor, cursorAt, hover, lines, suggestions } from "./harness/editor.ts";
import { monorepo } from "./harness/monorepo.ts";
import type { Workbench } from "./harness/workbench.ts";

const SETTINGS = `{
  "model": "opus",
  "permissions": {
    "allow": ["Bash(ls)", "mcp__tickets__search"]
  }
}
`;

let root: string;
let bench: Workbench;

beforeAll(
  prepared(async () => {
    root = monorepo(world(), "features");
    mkdirSync(path.join(root, ".claude"));
    writeFileSync(path.join(root, ".claude/settings.json"), SETTINGS);
    bench = await window({ workspace: root, file: path.join(root, "CLAUDE.md") });
    await bench.ready();
  }),
);
afterAll(async () => {
  await bench?.close();
});
beforeEach(photographFailure);

test("F12 on an import opens its file, and the section's tokens stand behind its heading", async () => {
  await until(
    () => lines(bench),
    (all) => all.some((line) => /^# Claude\s*≈ \d+ tokens/.test(line)),
  );
  await cursorAt(bench, "@docs/style.md");
  await bench.page.keyboard.press("F12");
  await bench.page.locator(".part.editor .tab.active", { hasText: "style.md" }).waitFor();
});

test("a hover on a key says what it does, its value, and which file decides", async () => {
  await bench.openFile(".claude/settings.json");
  await cursorAt(bench, '"model"');
  const text = await until(
    () => hover(bench),
    (shown) => shown.includes("Claude Code"),
  );
  expect(text).toContain('In force from one file: "opus"');
  expect(text).toContain(".claude/settings.json:2");
});

test("a key is completed with its value, once", async () => {
  await cursorAt(bench, '"allow"');
  await bench.type('"defa');
  const offered = await suggestions(bench, "defaultMode");
  expect(offered.filter((label) => label.startsWith("defaultMode"))).toHaveLength(1);
  await bench.page.keyboard.press("Enter");
  await until(
    () => lines(bench),
    (all) => all.some((line) => line.includes('"defaultMode": "",')),
  );
  expect(await suggestions(bench, "acceptEdits")).toContain("acceptEdits");
  await bench.page.keyboard.press("Escape");
  await bench.command("File: Revert File");
});

test("F2 gives a server another name in every file that names it", async () => {
  await bench.openFile(".mcp.json");
  await cursorAt(bench, "tickets");
  await bench.page.keyboard.press("F2");
  const box = bench.page.locator(".rename-box input");
  await box.waitFor();
  await box.fill("issues");
  await bench.page.keyboard.press("Enter");
  await until(
    () => lines(bench),
    (all) => all.some((line) => line.includes('"issues"')),
  );
  await bench.command("File: Save All Files");
  await until(
    async () => readFileSync(path.join(root, ".claude/settings.json"), "utf8"),
    (text) => text.includes("mcp__issues__search"),
  );
  expect(readFileSync(path.join(root, ".mcp.json"), "utf8")).toContain('"issues"');
  expect(await cursor(bench)).toMatch(/Ln 1/);
});
