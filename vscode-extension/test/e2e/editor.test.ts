/** What the editor says of one folder's files: lenses, mistakes and their quick fixes, the prompt and its sources. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Fragment, Position, Preview } from "../../src/protocol/index.ts";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import { cursor, cursorAt, hover, lenses, lines, quickFix } from "./harness/editor.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

const MISTAKE = '{ "context": { "reserve_token": 9000 } }';
const FIX = 'Rename to "reserve_tokens"';
const FIXED = '{ "context": { "reserve_tokens": 9000 } }';
/** Lines of the folder's own instructions and of a file that those import; neither stands anywhere else. */
const PLACES = [
  ["- Times are UTC, in seconds, as integers.", ".nexus3/NEXUS.md"],
  ["3. Timing tells apart a wrong user from a wrong password.", ".nexus3/docs/threats.md"],
] as const;

let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "editor"), "backend/auth-service");
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: inFolder(".nexus3/NEXUS.md") });
    await bench.ready();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("lenses say what the file and each of its parts cost", async () => {
  const { available } = await other.request("nexus/context/usage", here());
  const { layers } = await other.request("nexus/context/layers", { workspaceFolder: uriOf(folder) });
  const own = layers.flatMap((layer) => layer.files).find(({ uri }) => uri === uriOf(inFolder(".nexus3/NEXUS.md")));
  const imported = await tokensOf((one) => isFrom(one, ".nexus3/docs/threats.md"));
  const tokens = (own?.tokens ?? 0) + imported;
  const share = ((100 * tokens) / available).toFixed(1);
  const [file, ...parts] = await until(
    async () => (await lenses(bench)).flatMap((lens) => lens.split(" | ")),
    (all) => all.length === 5,
  );
  const costs = `${tokens} tokens, ${imported} of them imported`;
  expect(file).toBe(
    `Nexus: ${costs} · ${share === "0.0" ? "< 0.1" : share} % of ${briefly(available)} · sent with every request`,
  );
  expect(parts.filter((lens) => lens.includes("imported"))).toEqual([`${imported} tokens imported`]);
  for (const lens of parts) expect(lens).toMatch(/^\d+ tokens( imported)?$/);
});

test("a mistake has a squiggle, a problem, and a quick fix that removes both", async () => {
  await bench.openFile(".nexus3/config.json");
  await bench.cursorTo("start");
  await bench.page.keyboard.press("Control+A");
  await bench.page.keyboard.press("Delete");
  await bench.page.keyboard.insertText(MISTAKE);
  await bench.squiggles().first().waitFor();
  const problem = await bench.problems("reserve_token");
  await problem.first().waitFor();
  expect((await problem.first().innerText()).split("\n")).toEqual([
    'Unknown key "reserve_token" in "context": did you mean "reserve_tokens"?',
    "nexus",
    "config.unknown-key",
    "[Ln 1, Col 16]",
  ]);
  await cursorAt(bench, "reserve_token");
  expect((await quickFix(bench, FIX))[0]).toBe(FIX);
  await until(
    () => lines(bench),
    (all) => all.join("\n") === FIXED,
  );
  await bench.squiggles().first().waitFor({ state: "detached" });
  await problem.first().waitFor({ state: "detached" });
  await bench.page.keyboard.press("Control+S");
  await until(
    () => other.request("nexus/context/usage", here()),
    (usage) => usage.reserved === 9000,
  );
});

test("settings that a program ignores are marked under its name while they are typed, and no longer", async () => {
  const whole = '{ "permissions": { "deny": ["Read(./.env)"] } }';
  const comma = '{ "permissions": { "deny": ["Read(./.env)"] }, }';
  mkdirSync(inFolder(".claude"));
  writeFileSync(inFolder(".claude/settings.json"), whole);
  await bench.openFile(".claude/settings.json");
  await bench.cursorTo("start");
  await bench.page.keyboard.press("Control+A");
  await bench.page.keyboard.press("Delete"); // a bracket that is typed over a selection is closed twice
  await bench.page.keyboard.insertText(comma);
  const problem = (await bench.problems("Claude Code ignores this whole file")).first();
  await problem.waitFor();
  expect((await problem.innerText()).split("\n").slice(1, 3)).toEqual(["Claude Code", "assistant.void"]);
  await bench.cursorTo("start");
  await bench.page.keyboard.press("Control+A");
  await bench.page.keyboard.press("Delete");
  await bench.page.keyboard.insertText(whole);
  await problem.waitFor({ state: "detached" });
  await bench.page.keyboard.press("Control+S");
  rmSync(inFolder(".claude"), { recursive: true });
});

test("the prompt is the very text that another daemon renders", async () => {
  await bench.command("Nexus: Show System Prompt");
  const { text } = await preview();
  await bench.cursorTo("start");
  const visible = await until(
    () => lines(bench),
    (all) => all.length > 5,
  );
  expect(visible).toEqual(text.split("\n").slice(0, visible.length));
});

test("a place of the prompt says its section, its cost and its file", async () => {
  for (const [words, name] of PLACES) {
    const { fragments, text } = await preview();
    const at = { line: lineOf(text, words), character: 0 };
    const index = fragments.findIndex(({ range }) => isBefore(range.start, at) && isBefore(at, range.end));
    const { title, layer } = fragments[index] ?? {};
    const isPart = (one: Fragment | undefined) => one?.title === title && one?.layer === layer;
    let [first, last] = [index, index];
    while (isPart(fragments[first - 1])) first--;
    while (isPart(fragments[last + 1])) last++;
    const tokens = fragments.slice(first, last + 1).reduce((sum, one) => sum + one.tokens, 0);
    const line = lineOf(readFileSync(inFolder(name), "utf8"), words) + 1;
    await cursorAt(bench, words);
    expect((await hover(bench)).split("\n").filter(Boolean)).toEqual([
      `${title} · layer ${layer}`,
      `${tokens} tokens in this section`,
      `${path.basename(folder)}/${name}:${line}`,
    ]);
  }
});

test("F12 leads from a place of the prompt to the same place of its file", async () => {
  for (const [words, name] of PLACES) {
    await bench.command("Nexus: Show System Prompt");
    await cursorAt(bench, words.slice(3));
    await bench.page.keyboard.press("F12");
    await bench.page.locator(".part.editor .tab.active", { hasText: path.basename(name) }).waitFor();
    const line = lineOf(readFileSync(inFolder(name), "utf8"), words);
    await until(
      () => cursor(bench),
      (at) => at === `Ln ${line + 1}, Col 4`,
    );
  }
});

function here() {
  return { workspaceFolder: uriOf(folder), session: "main" };
}

function inFolder(name: string): string {
  return path.join(folder, name);
}

function preview(): Promise<Preview> {
  return other.request("nexus/context/preview", { workspaceFolder: uriOf(folder) });
}

async function tokensOf(isPart: (one: Fragment) => boolean): Promise<number> {
  return (await preview()).fragments.filter(isPart).reduce((sum, one) => sum + one.tokens, 0);
}

function isFrom(fragment: Fragment, name: string): boolean {
  return fragment.source?.uri === uriOf(inFolder(name));
}

function isBefore(one: Position, other: Position): boolean {
  return one.line < other.line || (one.line === other.line && one.character <= other.character);
}

function lineOf(text: string, words: string): number {
  const line = text.split("\n").indexOf(words);
  if (line < 0) throw new Error(`no line is: ${words}`);
  return line;
}

/** `1.05M`: three digits that count. */
function briefly(tokens: number): string {
  return new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(tokens);
}
