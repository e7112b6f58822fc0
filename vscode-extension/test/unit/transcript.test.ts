import { describe, expect, test } from "vitest";
import * as vscode from "vscode";
import type { Receipt, Requests, TranscriptMessage, TranscriptResult, TranscriptTurn } from "../../src/protocol";
import { aboutOf, uriOf } from "../../src/transcript/about";
import { marks } from "../../src/transcript/decorations";
import { folding, lenses, symbols } from "../../src/transcript/editor";
import { bounded, joined, PAGE, pages } from "../../src/transcript/pages";
import { longMessages, matchOf, placeOf, transcriptText } from "../../src/transcript/text";
import { fakeNexus } from "./nexus";
import { documented } from "./panel-examples";

const NOON = "2026-11-20T12:00:00.000Z";
const SHOWN_NOON = new Date(NOON).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
const RECEIPT = {
  summarizer: "extractive",
  replacedMessages: 3,
  tokensBefore: 1_675,
  tokensAfter: 535,
  lost: { paths: ["a.py"], commands: [], identifiers: [], errors: [], instructions: [], decisions: [], counts: {} },
} as unknown as Receipt;

const user = (position: number, text: string, more: Partial<TranscriptMessage> = {}): TranscriptMessage => ({
  position,
  role: "user",
  text,
  tokens: 10 + position,
  ...more,
});

const turn = (seq: number, messages: TranscriptMessage[], more: Partial<TranscriptTurn> = {}): TranscriptTurn => ({
  turn: `t-${seq}`, // the thread's id and the number: one of this conversation alone
  seq,
  type: "query",
  created: NOON,
  first: messages[0]?.position ?? 0,
  count: messages.length,
  messages,
  ...more,
});

const page = (turns: TranscriptTurn[], more: Partial<TranscriptResult> = {}): TranscriptResult => {
  const positions = turns.flatMap((one) => one.messages.map((message) => message.position));
  const first = positions[0] ?? 0;
  const end = (positions.at(-1) ?? -1) + 1;
  return {
    session: "main",
    thread: "t",
    messages: end,
    first,
    end,
    turns,
    counter: { name: "o200k_base", exact: true },
    sent: [[first, end]],
    ...more,
  };
};

/** Everything that can happen to a message. */
const WHOLE = page(
  [
    turn(1, [user(0, "First."), user(1, "Kept.\n\n# not a heading")]),
    turn(
      2,
      [
        user(2, "", { role: "assistant", calls: [{ name: "read", id: "c1", arguments: '{\n  "path": "a.py"\n}' }] }),
        user(3, "x = 1\r\ny = 2", { role: "tool", name: "read", toolCallId: "c1", exact: false }),
        user(4, "", { attachments: ["image image/png"], time: NOON }),
      ],
      { model: "gpt-4o", beside: ["git state", "EXTRA.md"], leftOut: ["notes.md"] },
    ),
    turn(3, [user(5, "[CONTEXT SUMMARY]")], {
      type: "compaction",
      compaction: "c",
      receipt: RECEIPT,
      kept: [[1, 2]],
      folded: [
        [0, 1],
        [2, 5],
      ],
    }),
    turn(4, [user(6, "Cut.")]),
    turn(5, [user(7, "Long.")]),
    turn(6, [user(8, "[CONTEXT SUMMARY]")], { type: "compaction", compaction: "d", folded: [[5, 8]] }),
    turn(7, [], { type: "undo", compaction: "d", first: 9 }),
  ],
  { sent: [[1, 2], [5, 6], [7, 8]], shortened: [7], summary: 5, kept: [[1, 2]] }, // biome-ignore format: spans
);

const WHOLE_TEXT = `\
main · 9 messages · tokens by o200k_base

Turn 1 · ${SHOWN_NOON} · 2 messages · 21 tokens

User · 10 tokens · #1 · no longer sent, summary: #6
  First.

User · 11 tokens · #2
  Kept.

  # not a heading

Turn 2 · ${SHOWN_NOON} · gpt-4o · 3 messages · ≈ 39 tokens
  Sent with it: git state, EXTRA.md
  Left out, no room: notes.md

Assistant · 12 tokens · #3 · no longer sent, summary: #6
  → read { "path": "a.py" }

Result of read · ≈ 13 tokens · 2 lines · #4 · no longer sent, summary: #6
  x = 1
  y = 2

User · 14 tokens · #5 · ${SHOWN_NOON} · no longer sent, summary: #6
  [image image/png]

Compaction · Turn 3 · ${SHOWN_NOON} · 3 messages → 1 summary · 1,675 → 535 tokens
  The summary replaces #1, #3 to #5.
  Still sent beside it: #2.
  Written by extractive; lost: 1 path.

Summary · 15 tokens · #6
  [CONTEXT SUMMARY]

Turn 4 · ${SHOWN_NOON} · 1 message · 16 tokens

User · 16 tokens · #7 · no longer sent
  Cut.

Turn 5 · ${SHOWN_NOON} · 1 message · 17 tokens

User · 17 tokens · #8 · sent shortened
  Long.

Compaction · Turn 6 · ${SHOWN_NOON}
  The summary replaces #6 to #8.

Summary · 18 tokens · #9 · no longer sent, compaction undone
  [CONTEXT SUMMARY]

Compaction undone · Turn 7 · ${SHOWN_NOON}
  The summary #9 is no longer sent; the messages that it replaced are.
`;

describe("the text of a conversation", () => {
  test("says of each message its number, role, tokens and whether it is sent", () => {
    expect(transcriptText(WHOLE).text).toBe(WHOLE_TEXT);
  });

  test("of a page says what is before and after, and which turn goes on", () => {
    const part = page([turn(1, [user(3, "a")], { first: 2, count: 4 })], { messages: 1_300 });
    expect(transcriptText({ ...part, counter: { name: "o200k_base × 1.1", exact: false } }).text).toBe(`\
main · 1,300 messages · tokens by o200k_base × 1.1, an estimate
… 3 earlier messages not shown

Turn 1, continued · ${SHOWN_NOON}

User · 13 tokens · #4
  a

… 1,296 later messages not shown
`);
  });

  test("says that the provider compacted it", () => {
    const receipt = { ...RECEIPT, reason: "provider", summarizer: "openai", opaque: true };
    const compaction: Partial<TranscriptTurn> = { type: "compaction", compaction: "c", receipt, folded: [[0, 3]] };
    const lines = transcriptText(page([turn(1, [user(3, "", { role: "assistant" })], compaction)])).lines;
    expect(lines.slice(3, 6)).toEqual([
      `Compaction · Turn 1 · ${SHOWN_NOON} · 3 messages compacted by the provider · 1,675 → 535 tokens`,
      "  The summary replaces #1 to #3.",
      "  Compacted by OpenAI; only the provider can read what became of them.",
    ]);
  });

  test("of one that was cleared, and of none", () => {
    const cleared = page([turn(1, [user(0, "a")])], { cleared: true, sent: [] });
    expect(transcriptText(cleared).lines[0]).toBe(
      "main · 1 message · tokens by o200k_base · cleared: nothing of this is sent any more",
    );
    expect(transcriptText(cleared).lines[4]).toBe("User · 10 tokens · #1");
    expect(transcriptText(page([])).text).toBe("main · 0 messages · tokens by o200k_base\n\nNothing was said yet.\n");
  });
});

test("a call without arguments, or with long ones, and a result whose message does not name its tool", () => {
  const long = `{\n  "text": "${"x".repeat(120)}"\n}`;
  const calls = [
    { name: "list", arguments: "{}" },
    { name: "write", id: "c", arguments: long },
    { name: "run", arguments: "rm a\nrm b" },
  ];
  const text = transcriptText(
    page([turn(1, [user(0, "", { role: "assistant", calls }), user(1, "Done.", { role: "tool", toolCallId: "c" })])]),
  );
  expect(text.lines.slice(4)).toEqual([
    "Assistant · 10 tokens · #1",
    "  → list",
    "  → write",
    ...long.split("\n").map((line) => `    ${line}`),
    "  → run",
    "    rm a",
    "    rm b",
    "",
    "Result of write · 11 tokens · #2",
    "  Done.",
  ]);
  const parts = folding(text).map(({ start, end }) => [start, end]);
  expect(parts.slice(2)).toEqual([[6, 9], [10, 12], [14, 15]]); // biome-ignore format: ranges
});

test.each([
  ["Nexus", "[Session started: 2026-11-20]", 0, {}],
  ["User", "[Session started: 2026-11-20] What now?", 0, {}],
  ["User", "[Session started: 2026-11-20]", 4, {}],
  ["System", "Be brief.", 0, { role: "system" }],
  ["User (ann)", "Hello.", 0, { name: "ann" }],
  ["Result", "Hello.", 0, { role: "tool" }],
] as const)("who speaks: %s", (name, text, position, more) => {
  expect(transcriptText(page([turn(1, [user(position, text, more)])])).turns[0]?.messages[0]?.title).toBe(
    `${name} · ${10 + position} tokens · #${position + 1}`,
  );
});

describe("a fork", () => {
  const shared = turn(1, [user(0, "a")], { turn: "other-1" });
  const own = turn(2, [user(1, "b")]);
  const forkOf = (turns: TranscriptTurn[], more: Partial<TranscriptResult> = {}) => {
    const { fork, lines } = transcriptText(page(turns, more));
    return fork === undefined ? undefined : [fork, lines[fork]];
  };
  test.each([
    ["before its first turn", [shared, own], {}, [7, "Fork of main · the turns above are shared with main"]],
    ["without a turn of its own", [shared], {}, [7, "Fork of main · the turns above are shared with main"]],
    ["whose turns begin on a later page", [shared], { messages: 9 }, undefined],
    ["whose turns begin on an earlier page", [own], {}, undefined],
  ] as const)("%s", (_what, turns, more, expected) => {
    expect(forkOf([...turns], { forkedFrom: "main", ...more })).toEqual(expected);
  });
  test("of a conversation that was deleted", () => {
    expect(forkOf([shared, own])).toEqual([7, "Fork · the turns above are shared with another conversation"]);
  });
});

describe("what a search found", () => {
  const text = transcriptText(
    page([
      turn(1, [
        user(0, "needle one\nand a needle two, Needle three"),
        user(1, "", { role: "assistant", calls: [{ name: "grep", arguments: '{\n  "for": "needle"\n}' }] }),
      ]),
    ]),
  );
  test.each([
    ["its own words before it decide", 0, "one\nand a «needle» two", [6, 8, 14]],
    ["a cut beginning", 0, "…and a «needle» two", [6, 8, 14]],
    ["the first one where the context is not there", 0, "elsewhere «needle»", [5, 2, 8]],
    ["upper and lower case", 0, "«NEEDLE»", [5, 2, 8]],
    ["the arguments of a call", 1, "grep\n«needle»", [9, 19, 25]],
    ["what is not there", 0, "«other»", undefined],
    ["a snippet without a mark", 0, "needle", undefined],
  ] as const)("%s", (_what, position, snippet, expected) => {
    const place = placeOf(text, position);
    const match = place && matchOf(text, place, snippet);
    expect(match && [match.line, match.start, match.end]).toEqual(expected);
  });
  test("a message that is not shown has no place", () => {
    expect([placeOf(text, 2), placeOf(text, -1)]).toEqual([undefined, undefined]);
  });
});

describe("around the text", () => {
  const text = transcriptText(WHOLE);
  test("every turn, message and call can be folded", () => {
    expect(folding(text).map(({ start, end }) => [start, end])).toEqual([
      ...[[2, 10], [4, 5], [7, 10], [12, 24], [16, 17], [19, 21], [23, 24]],
      ...[[26, 32], [31, 32], [34, 37], [36, 37], [39, 42], [41, 42], [44, 48], [47, 48], [50, 51]],
    ]); // biome-ignore format: ranges
  });

  test("turns, changes, speakers and what is not sent are marked", () => {
    const { turns, changes, names, bodies, notSent } = marks(text);
    const headings = (lines: readonly number[]) => lines.map((line) => text.lines[line]?.split(" · ")[0]);
    expect(headings(turns)).toEqual(["Turn 1", "Turn 2", "Turn 4", "Turn 5"]);
    expect(headings(changes)).toEqual(["Compaction", "Compaction", "Compaction undone"]);
    const named = [...names].map(([speaker, all]) => [
      speaker,
      ...all.map(([line, length]) => text.lines[line]?.slice(0, length)),
    ]);
    expect(named).toEqual([
      ["user", ...Array.from({ length: 5 }, () => "User")],
      ["assistant", "Assistant"],
      ["tool", "Result of read"],
      ["summary", "Summary", "Summary"],
    ]);
    const [first, last] = bodies.get("tool")?.[0] ?? [];
    expect(text.lines.slice(first, (last ?? 0) + 1)).toEqual(["  x = 1", "  y = 2"]);
    expect(notSent.map(([line]) => /#\d+/.exec(text.lines[line] ?? "")?.[0])).toEqual(
      ["#1", "#3", "#4", "#5", "#7", "#9"], // biome-ignore format: numbers
    );
  });

  test("long results and summaries are folded at first, and nothing else", () => {
    const long = Array.from({ length: 9 }, (_, index) => `line ${index}`).join("\n");
    const short = long.slice(0, long.lastIndexOf("\n"));
    const messages = [
      user(0, long),
      user(1, long, { role: "assistant" }),
      user(2, long, { role: "tool" }),
      user(3, short, { role: "tool" }),
    ];
    const summary = turn(2, [user(4, long)], { type: "compaction", compaction: "c" });
    const folded = longMessages(transcriptText(page([turn(1, messages), summary])));
    expect(folded.map(({ message }) => message.position)).toEqual([2, 4]);
  });

  test("the outline has turns and below them their messages", () => {
    const outline = symbols(text).map((one) => [
      `${one.name} | ${one.detail}`,
      ...one.children.map((child) => `${child.name} | ${child.detail}`),
    ]);
    expect(outline[0]).toEqual([
      `Turn 1 | ${SHOWN_NOON} · 2 messages · 21 tokens`,
      "User | First.",
      "User | Kept. # not a heading",
    ]);
    expect(outline.length).toBe(7);
  });

  test("a turn can be forked from, a compaction taken back, and either end shows more", () => {
    const about = { folder: "file:///w", session: "main" };
    const uri = uriOf(about);
    const part = { ...WHOLE, messages: 500 };
    const shown = { ...part, first: 7 };
    const shownPages = { ...pages(fakeNexus(), () => ({ workspaceFolder: "" })), shown };
    const made = lenses({
      uri,
      about,
      pages: shownPages,
      session: "main",
      text: transcriptText(shown),
      folded: new Set(),
    });
    expect(made.map(({ range, command }) => [range.start.line, command?.title])).toEqual([
      [1, "Show 7 messages before"],
      ...[3, 13, 27].map((line, index) => [line, `Fork from Turn ${index + 1}`]),
      [27, "Show Receipt"],
      [27, "Undo Compaction"],
      ...[35, 40, 45, 51].map((line, index) => [line, `Fork from Turn ${index + 4}`]),
      [54, `Show ${PAGE} messages more`],
    ]);
    expect(made[1]?.command).toMatchObject({ command: "nexus.forkSession", arguments: [{ ...about, turn: "t-1" }] });
    expect(made[0]?.command?.arguments).toEqual([uri.toString()]);
    expect(made[5]?.command?.arguments).toEqual([{ ...about, compaction: "c" }]);
  });
});

test("of a conversation that is not kept: where it is read, and nothing of what is not known", async () => {
  const answer = documented("nexus/conversation/transcript");
  const nexus = fakeNexus({ "nexus/conversation/transcript": answer });
  const source = { program: "claude-code", id: answer.thread };
  const about = { folder: "file:///w", session: "s".repeat(100), source };
  const uri = uriOf(about);
  expect(aboutOf(vscode.Uri.parse(uri.toString()))).toEqual(about);
  expect(uri.path).toBe(`/w/${"s".repeat(60)}… (conversation)`);
  const shown = pages(nexus, () => ({ workspaceFolder: "file:///w", ...source }));
  const text = transcriptText(await shown.load());
  expect(nexus.asked).toEqual([
    ["nexus/conversation/transcript", { workspaceFolder: "file:///w", ...source, limit: PAGE }],
  ]);
  expect(text.text).toContain("not kept: read from the file of Claude Code");
  expect(text.text).not.toContain("sent");
  expect(text.turns[0]?.messages[0]?.isSent).toBe(true);
  const made = lenses({ uri, about, pages: shown, session: about.session, text, folded: new Set() });
  expect(made.map(({ command }) => command?.title)).toEqual(["Show 9 messages more"]);
});

test("what a document is about is in its URI, whatever the names", () => {
  const about = { folder: "file:///w/a%20b", session: "50% & #1/x", thread: "t" };
  const uri = uriOf(about);
  expect(uri.path).toBe("/a b/50% & #1∕x, cleared (conversation)");
  expect(aboutOf(vscode.Uri.parse(uri.toString()))).toEqual(about);
  expect([aboutOf(uri.with({ query: "{" })), aboutOf(uri.with({ query: '{"folder":1}' }))]).toEqual([
    undefined,
    undefined,
  ]);
});

// ---------------------------------------------------------------- pages

type Params = Requests["nexus/session/transcript"]["params"];

/** A daemon with one conversation of turns of two messages. */
function daemon(messages: number) {
  const state = { messages, thread: "t", counter: "a" };
  const asked: Partial<Params>[] = [];
  const nexus = fakeNexus({
    "nexus/session/transcript": ({ first, before, limit = PAGE, ...who }: Params) => {
      asked.push({ ...(first === undefined ? {} : { first }), ...(before === undefined ? {} : { before }), limit });
      expect(who).toEqual({ workspaceFolder: "file:///w", session: "main" });
      const all = state.messages;
      const end = first == null ? Math.min(before ?? all, all) : Math.min(all, first + limit);
      const start = first == null ? Math.max(0, end - limit) : Math.min(first, all);
      const turns: TranscriptTurn[] = [];
      for (let at = start; at < end; at++) {
        const seq = (at >> 1) + 1;
        if (turns.at(-1)?.seq !== seq) turns.push(turn(seq, [], { first: at & ~1, count: 2 }));
        turns.at(-1)?.messages.push(user(at, `said ${at}`));
      }
      const counter = { name: state.counter, exact: true };
      return { ...page(turns), first: start, end, messages: all, thread: state.thread, counter };
    },
  });
  return { state, asked, pages: pages(nexus, () => ({ workspaceFolder: "file:///w", session: "main" })) };
}

const range = (shown: TranscriptResult) => {
  const positions = shown.turns.flatMap((one) => one.messages.map((message) => message.position));
  expect(positions).toEqual(Array.from({ length: shown.end - shown.first }, (_, index) => shown.first + index));
  expect(new Set(shown.turns.map((one) => one.seq)).size).toBe(shown.turns.length);
  return [shown.first, shown.end];
};

describe("the pages of 40,000 messages", () => {
  test("begin at the end, and go on in both directions", async () => {
    const { pages: shown, asked } = daemon(40_001);
    expect(range(await shown.load())).toEqual([39_801, 40_001]);
    expect(range(await shown.earlier())).toEqual([39_601, 40_001]);
    expect(range(await shown.later())).toEqual([39_601, 40_001]);
    expect(asked).toEqual([{ limit: PAGE }, { before: 39_801, limit: PAGE }]);
  });

  test("are those around a message that is looked for, once", async () => {
    const { pages: shown, asked } = daemon(40_001);
    await shown.load();
    expect(range(await shown.load(5_000))).toEqual([4_901, 5_101]);
    expect(range(await shown.load(5_100))).toEqual([4_901, 5_101]);
    expect(range(await shown.later())).toEqual([4_901, 5_301]);
    expect(range(await shown.load(3))).toEqual([0, 104]);
    expect(range(await shown.load())).toEqual([39_801, 40_001]);
    expect(asked.length).toBe(7);
  });

  test("follow what is said, where the end is shown", async () => {
    const { pages: shown, asked, state } = daemon(40_001);
    await shown.load();
    state.messages = 40_004;
    expect(range(await shown.refresh())).toEqual([39_801, 40_004]);
    expect(asked.at(-1)).toEqual({ first: 40_001, limit: PAGE });
    await shown.load(10);
    state.messages = 40_006;
    const page = await shown.refresh();
    expect([...range(page), page.messages]).toEqual([0, 111, 40_006]);
    expect(asked.at(-1)).toEqual({ before: 0, limit: 1 });
  });

  test("are asked for anew where it is another conversation or another counter", async () => {
    const { pages: shown, state } = daemon(1_000);
    await shown.load();
    await shown.earlier();
    state.counter = "b";
    const counted = await shown.refresh();
    expect([...range(counted), counted.counter.name]).toEqual([600, 1_000, "b"]);
    [state.thread, state.messages] = ["u", 4];
    expect(range(await shown.refresh())).toEqual([0, 4]);
  });

  test("come one after the other, and a failure of one leaves the others", async () => {
    const { pages: shown } = daemon(1_000);
    const all = await Promise.all([shown.load(), shown.earlier(), shown.earlier()]);
    expect(all.map(range)).toEqual([
      [800, 1_000],
      [600, 1_000],
      [400, 1_000],
    ]);
  });
});

test("what is too much at one side is let go, message by message", () => {
  const undo = turn(3, [], { type: "undo", first: 4 });
  const all = page([turn(1, [user(0, "aa"), user(1, "bb")]), turn(2, [user(2, "cc"), user(3, "dd")]), undo]);
  const cut = (from: "first" | "end", most: number) => {
    const made = bounded(all, from, most);
    return [made.first, made.end, made.turns.map((one) => one.messages.map(({ text }) => text))];
  };
  expect(bounded(all, "first", 8)).toBe(all);
  expect(cut("first", 7)).toEqual([1, 4, [["bb"], ["cc", "dd"], []]]);
  expect(cut("first", 0)).toEqual([3, 4, [["dd"], []]]);
  expect(cut("end", 4)).toEqual([0, 2, [["aa", "bb"]]]);
  expect(cut("end", 0)).toEqual([0, 1, [["aa"]]]);
});

test("an undo that comes alone is added once", () => {
  const one = page([turn(1, [user(0, "a")])]);
  const undo = { ...page([turn(2, [], { type: "undo", first: 1 })]), first: 1, end: 1, messages: 1 };
  const both = joined(joined(one, undo), undo);
  expect([both.first, both.end, both.turns.map(({ seq }) => seq)]).toEqual([0, 1, [1, 2]]);
});
