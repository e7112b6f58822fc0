/** What was said, to be read: a conversation from the list, a search hit, a row of the history, a long conversation. */
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Message, TranscriptResult } from "../../src/protocol/index.ts";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

const LONG = 1_200;

let folder: string;
let bench: Workbench;
let other: Daemon;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "transcript"), "backend/auth-service");
    other = await Daemon.start(world(), folder);
    await say("plan", "Where is the lantern?", "In the cellar.\nBeside a second lantern, unlit.");
    await say("rotate", "Rotate the key.", "Done.");
    const numbers = Array.from({ length: LONG }, (_, index) => `Note ${index + 1} of many.`);
    numbers[300] = "Only here: a walrus.";
    await say("long", ...numbers);
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.ready();
    await bench.openPanel();
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a row of the list opens what was said, at its end", async () => {
  await bench.unfold("Conversations");
  await bench.row("Conversations", "plan").click();
  const page = await transcript("plan");
  const [created, model] = [page.turns[0]?.created ?? "", page.turns[0]?.model];
  const [opening, question, answer] = page.turns[0]?.messages ?? [];
  const sum = (opening?.tokens ?? 0) + (question?.tokens ?? 0) + (answer?.tokens ?? 0);
  const text = [
    `plan · 3 messages · tokens by ${page.counter.name}`,
    "",
    `Turn 1 · ${time(created)}${model ? ` · ${model}` : ""} · 3 messages · ${sum} tokens`,
    "",
    `Nexus · ${opening?.tokens} tokens · #1`,
    `  ${opening?.text}`,
    "",
    `User · ${question?.tokens} tokens · #2`,
    "  Where is the lantern?",
    "",
    `Assistant · ${answer?.tokens} tokens · #3`,
    "  In the cellar.",
    "  Beside a second lantern, unlit.",
    "",
  ];
  expect(page.counter.exact).toBe(true);
  expect(await until(shown, (lines) => lines.length === text.length)).toEqual(text);
  expect(await cursor()).toBe("Ln 14, Col 1");
  expect(await tab()).toBe("plan (conversation)");
});

test("a turn that comes is there by itself", async () => {
  await say("plan", "And the key?", "On its hook.");
  const page = await transcript("plan");
  const [question, answer] = page.turns[1]?.messages ?? [];
  const lines = await until(shown, (all) => all.includes("  On its hook."));
  expect(lines.slice(-8)).toEqual([
    expect.stringMatching(/^Turn 2 · .* · 2 messages · \d+ tokens$/),
    "",
    `User · ${question?.tokens} tokens · #4`,
    "  And the key?",
    "",
    `Assistant · ${answer?.tokens} tokens · #5`,
    "  On its hook.",
    "",
  ]);
});

test("the hit that is chosen is opened, and what was found is selected", async () => {
  await bench.command("Nexus: Search Conversations");
  await bench.answer("Search Conversations", "lantern");
  await until(
    () => bench.picks().count(),
    (count) => count === 2,
  );
  await bench.choose("In the cellar");
  expect(await until(cursor, (text) => text.includes("selected"))).toBe("Ln 13, Col 26 (7 selected)");
  expect((await shown())[12]).toBe("  Beside a second lantern, unlit.");
  await bench.command("Nexus: Search Conversations");
  await bench.answer("Search Conversations", "rotate");
  await bench.choose("«Rotate» the key");
  expect(await until(tab, (title) => title.startsWith("rotate"))).toBe("rotate (conversation)");
  expect(await until(cursor, (text) => text.includes("selected"))).toBe("Ln 9, Col 9 (6 selected)");
});

test("a row of the history opens at its message", async () => {
  await bench.unfold("What Costs What");
  await until(
    () => bench.rows("What Costs What"),
    (rows) => rows.some((row) => row.startsWith("3 messages")),
  );
  await bench.openFile(".nexus3/NEXUS.md");
  await bench.row("What Costs What", "3 messages").click();
  expect(await until(tab, (title) => title.startsWith("rotate"))).toBe("rotate (conversation)");
  expect(await until(cursor, (text) => text.startsWith("Ln 5,"))).toBe("Ln 5, Col 1");
});

test("of a long conversation the last page opens, and the one before when it is asked for", async () => {
  await bench.unfold("Conversations");
  await bench.row("Conversations", "long").click();
  const page = await transcript("long", { limit: 200 });
  expect(await until(shown, (lines) => lines.includes(`  Note ${LONG} of many.`))).not.toContain("  Note 1 of many.");
  await bench.page.keyboard.press("Control+Home");
  const lines = await until(shown, (all) => all[0]?.startsWith("long · ") ?? false);
  expect(lines.slice(0, 6)).toEqual([
    `long · 1,201 messages · tokens by ${page.counter.name}`,
    "… 1,001 earlier messages not shown",
    "",
    expect.stringMatching(/^Turn 1, continued · /),
    "",
    `User · ${page.turns[0]?.messages[0]?.tokens} tokens · #1,002`,
  ]);
  await bench.page.locator(".codelens-decoration a", { hasText: "Show 200 messages before" }).click();
  expect(await until(cursor, (text) => !text.startsWith("Ln 1,"))).toBe("Ln 606, Col 1");
  await bench.page.keyboard.press("Control+Home");
  expect((await until(shown, (all) => all[1]?.startsWith("… 801 ") ?? false))[1]).toBe(
    "… 801 earlier messages not shown",
  );
});

test("a hit in the middle of a long conversation opens the messages around it", async () => {
  await bench.command("Nexus: Search Conversations");
  await bench.answer("Search Conversations", "walrus");
  await bench.choose("Only here");
  const at = await until(cursor, (text) => text.includes("selected"));
  expect(at).toBe("Ln 304, Col 22 (6 selected)");
  expect(await until(shown, (lines) => lines.includes("  Only here: a walrus."))).toContain("  Note 300 of many.");
});

test("a long result is folded, a hit in it unfolds it, and each speaker has a colour", async () => {
  const result = Array.from({ length: 40 }, (_, index) => `${index + 1}: ${index === 30 ? "a heron" : "water"}`);
  await append("pond", [
    { role: "user", content: "What is in the pond?" },
    { role: "assistant", content: "I look.", toolCalls: [{ id: "c", name: "look", arguments: { at: "pond" } }] },
    { role: "tool", toolCallId: "c", content: result.join("\n") },
    { role: "assistant", content: "A heron and water." },
  ]);
  const [, , , look, answer] = (await transcript("pond")).turns[0]?.messages ?? [];
  await bench.row("Conversations", "pond").click();
  const folded = [
    '  → look { "at": "pond" }',
    "",
    `Result of look · ${look?.tokens} tokens · 40 lines · #4`,
    "",
    `Assistant · ${answer?.tokens} tokens · #5`,
    "  A heron and water.",
    "",
  ];
  await until(shown, (lines) => lines.slice(-folded.length).join("\n") === folded.join("\n"));
  const colours = await bench.page
    .locator(".part.editor .editor-group-container.active .view-line span", { hasText: /^(User|Assistant|Result)$/ })
    .evaluateAll((all) => all.map((one) => getComputedStyle(one).color));
  expect(new Set(colours).size).toBe(3);
  await bench.command("Nexus: Search Conversations");
  await bench.answer("Search Conversations", "heron");
  await bench.picks("32: water").first().click();
  expect(await until(cursor, (text) => text.includes("selected"))).toMatch(/^Ln 46, /);
  expect(await until(shown, (lines) => lines.includes("  31: a heron"))).toContain("  30: water");
});

test("what a compaction replaced is marked, and a fork begins at its turn", async () => {
  for (let turn = 1; turn <= 8; turn++) {
    await say("folded", `Step ${turn}: what does the module do?`, `In step ${turn} it checks a token. `.repeat(60));
  }
  const { compaction } = await other.request("nexus/session/compact", { ...in_("folded") });
  const page = await transcript("folded");
  expect(page.turns.at(-1)?.compaction).toBe(compaction);
  await bench.row("Conversations", "folded").click();
  await until(tab, (title) => title === "folded (conversation)");
  const mark = `no longer sent, summary: #${(page.summary ?? 0) + 1}`;
  const fromTop = async () => {
    await bench.page.keyboard.press("Control+Home"); // the document may not have the focus yet
    return shown();
  };
  const lines = await until(fromTop, (all) => all[0]?.startsWith("folded · ") ?? false);
  expect(lines[7]).toBe(`User · ${page.turns[0]?.messages[1]?.tokens} tokens · #2 · ${mark}`);
  await bench.page.locator(".codelens-decoration a", { hasText: "Fork from Turn 1" }).click();
  await bench.answer("Fork", "early");
  const { sessions } = await until(
    () => other.request("nexus/session/list", { workspaceFolder: uriOf(folder) }),
    (all) => all.sessions.some((one) => one.session === "early"),
  );
  expect(sessions.find((one) => one.session === "early")).toMatchObject({ turns: 1, messages: 3 });
  await bench.row("Conversations", "early").click();
  await until(shown, (lines) => lines.at(-2) === "Fork of folded · the turns above are shared with folded");
});

test("a reload of the window brings the conversation back, which goes on", async () => {
  await bench.row("Conversations", "plan").click();
  await until(tab, (title) => title === "plan (conversation)");
  const before = await until(shown, (lines) => lines.includes("  On its hook."));
  await bench.reload();
  await bench.ready();
  await until(tab, (title) => title === "plan (conversation)");
  await until(shown, (lines) => lines.join("\n") === before.join("\n"));
  await say("plan", "Is it still there?", "It hangs where it hung.");
  await until(shown, (lines) => lines.includes("  It hangs where it hung."));
});

function in_(session: string): { workspaceFolder: string; session: string } {
  return { workspaceFolder: uriOf(folder), session };
}

/** A turn: the user and the assistant say these in turns. */
async function say(session: string, ...texts: string[]): Promise<void> {
  const messages = texts.map((content, index): Message => ({ role: index % 2 === 0 ? "user" : "assistant", content }));
  await append(session, messages);
}

async function append(session: string, messages: Message[]): Promise<void> {
  await other.request("nexus/session/append", { ...in_(session), messages });
}

function transcript(session: string, page: { limit?: number } = {}): Promise<TranscriptResult> {
  return other.request("nexus/session/transcript", { ...in_(session), ...page });
}

/** The lines that the active editor shows. */
async function shown(): Promise<string[]> {
  const lines = await bench.page
    .locator(".part.editor .editor-group-container.active .view-lines .view-line")
    .evaluateAll((all) =>
      all
        .map((line) => ({ top: Number.parseFloat((line as HTMLElement).style.top), text: line.textContent ?? "" }))
        .sort((one, two) => one.top - two.top)
        .map(({ text }) => text),
    );
  return lines.map((line) => line.replaceAll("\u00a0", " "));
}

async function cursor(): Promise<string> {
  return (await bench.page.locator("#status\\.editor\\.selection").innerText()).trim();
}

async function tab(): Promise<string> {
  return (await bench.page.locator(".part.editor .tab.active .label-name").first().innerText()).trim();
}

function time(iso: string): string {
  return new Date(iso).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
}
