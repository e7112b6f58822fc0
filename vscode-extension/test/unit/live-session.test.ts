// @vitest-environment happy-dom
/** The window of another assistant's session that runs: segments, cache, compaction, cost, and its row in the list. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { liveFacts, liveNodes, liveSegments, lossText } from "../../src/panel/liveSession";
import { page } from "../../src/panel/webview/paint";
import { windowModel } from "../../src/panel/window";
import type { AssistantSessionResult } from "../../src/protocol";
import { documented } from "./panel-examples";

const REPORT = documented("nexus/assistant/session");
const usage = REPORT.session.usage;
const COLD = 1_000 * (REPORT.cache?.coldAt ?? 0);
const FOLDER = { uri: "file:///home/ana/shop", name: "shop" };
const facts = (more: Partial<AssistantSessionResult> = {}, now = COLD - 90_000) =>
  Object.fromEntries(liveFacts({ ...REPORT, ...more }, new Date(now)).map((fact) => [fact.label, fact]));

function model(now: number) {
  if (!usage) throw new Error("the example has no usage");
  const assistant = { name: "claude-code", title: "Claude Code", inUse: new Set<string>() };
  return windowModel({ folder: FOLDER, session: "main", usage, assistant, report: REPORT, now: new Date(now) });
}

describe("the bar", () => {
  test("has the kinds of text in the window, which sum to what the provider counted", () => {
    const parts = (
      ["system", "tools", "user", "thinking", "answers", "results", "calls", "summary", "new"] as const
    ).map((category, index) => ({ category, label: "", tokens: 10 * (index + 1) }));
    const used = parts.reduce((sum, { tokens }) => sum + tokens, 0);
    const report = { ...REPORT, context: { used, size: 1_000, parts } };
    expect(liveSegments(report, 1_000).map(({ title, tokens }) => [title, tokens])).toEqual([
      ["Its own prompt", "≈ 10"],
      ["Tools", "≈ 20"],
      ["Your messages", "≈ 30"],
      ["Answers", "≈ 90"],
      ["Tool results", "≈ 130"],
      ["Summaries", "≈ 170"],
    ]);
    const widths = liveSegments(report, 1_000).map(({ widths: { used: width } }) => width);
    expect(widths.reduce((sum, width) => sum + width, 0)).toBeCloseTo(100);
  });

  test("is that of the session, with the figures of the provider", () => {
    const shown = model(COLD - 1);
    expect([shown.used, shown.of, shown.percent]).toEqual(["19,410", "200,000", "9.7 %"]);
    expect(shown.segments[0]).toMatchObject({ title: "Its own prompt", tokens: "≈ 19,392" });
  });
});

describe("the facts", () => {
  test("of the cache: what was read, what the next turn costs, the last miss with its cause", () => {
    expect(facts().Cache).toMatchObject({
      text: "92.7 % of the last request was cached",
      detail: "The next turn sends 19,435 tokens: $0.0059 with a warm cache, $0.07 with a cold one.",
      tone: "good",
      countdown: { until: COLD },
    });
    expect(facts({}, COLD).Cache).toMatchObject({
      text: "92.7 % of the last request was cached; now cold",
      tone: "warning",
    });
    expect(facts()["Cache miss"]).toMatchObject({
      text: expect.stringMatching(/: a compaction$/),
      detail: "1,410 tokens written again. All misses: 24,310 tokens, $0.08.",
    });
    const idle = REPORT.misses.filter(({ cause }) => cause === "idle");
    expect(facts({ misses: idle })["Cache miss"]?.text).toMatch(/: the cache had gone cold after 11 minutes$/);
    const changed = [{ at: 1, cause: "instructions" as const, tokens: 5, detail: "/home/ana/shop/CLAUDE.md" }];
    expect(facts({ misses: changed })["Cache miss"]?.text).toMatch(/: an instruction file changed \(CLAUDE\.md\)$/);
    expect(facts({ misses: REPORT.misses.slice(0, 1) })["Cache miss"]).toBeUndefined(); // the first request is none
  });

  test("of the last compaction: its size and what it dropped", () => {
    expect(facts().Compaction).toMatchObject({
      text: expect.stringMatching(/ \(manual\): 23,040 → 19,410 tokens$/),
      detail: "Dropped: 2 instructions, 1 path, 3 identifiers, such as “Never change a published price.”.",
    });
    expect(facts({ compactions: [] }).Compaction).toBeUndefined();
    const nothing = { instructions: [], tasks: [], paths: [], identifiers: [], counts: { paths: 0 } };
    expect(lossText(nothing)).toBe("Nothing that matters was dropped.");
    expect(lossText({ ...nothing, instructions: ["x".repeat(200)], counts: { instructions: 1 } })).toMatch(
      /x{80}…”\.$/,
    );
  });

  test("of the cost: whose figure it is, and which tools took it", () => {
    expect(facts().Cost).toMatchObject({
      text: "at least $0.19, by the prices that Nexus knows", // the request for a summary is not recorded
      // the last figure depends on the length of the paths where the examples were recorded
      detail: expect.stringMatching(/^Read \$0\.005\d \(1 call\) · tickets: find_ticket \$0\.002\d \(1 call\)$/),
    });
    const whole = { ...REPORT.session, costAtLeast: false };
    expect(facts({ costOrigin: "program", session: whole }).Cost?.text).toBe("$0.19");
    const { costUsd: _, ...session } = REPORT.session;
    expect(facts({ session, tools: [] }).Cost).toBeUndefined();
  });

  test("of sub-agents, and of what of the file could not be read", () => {
    const tokens = { fresh: 1, cacheRead: 2, cacheWrite: 3, output: 4 };
    const agents = [{ id: "a", title: "Find the gate", requests: 1, tokens, window: 6, updated: 1 }];
    expect(facts({ agents })["Sub-agents"]).toMatchObject({ text: "1, 10 tokens", detail: "Find the gate" });
    expect(facts()["Not read"]).toBeUndefined();
    expect(facts({ unread: { novelty: 2 }, damagedLines: 1 })["Not read"]?.text).toBe(
      "records of unknown kinds: novelty (2); 1 damaged line",
    );
  });
});

describe("the page", () => {
  beforeEach(() => {
    vi.useFakeTimers();
    document.body.innerHTML = "<main></main><div></div>";
  });
  afterEach(() => vi.useRealTimers());

  test("counts down to the cold cache, second by second, and then stops", () => {
    vi.setSystemTime(COLD - 62_000);
    const root = document.body.children[0] as HTMLElement;
    const events = { send: () => undefined, onScale: () => undefined };
    page(root, document.body.children[1] as HTMLElement, events).show(model(COLD - 62_000));
    const cache = () => root.querySelectorAll(".fact-text")[1]?.textContent;
    expect(cache()).toBe("92.7 % of the last request was cached; cold in 1:02");
    vi.advanceTimersByTime(3_000);
    expect(cache()).toBe("92.7 % of the last request was cached; cold in 0:59");
    vi.advanceTimersByTime(60_000);
    expect(cache()).toBe("92.7 % of the last request was cached; now cold");
    expect(vi.getTimerCount()).toBe(0);
  });
});

test("a running session is in the list of conversations, and said in Nexus's own window", () => {
  const session = { ...REPORT.session, live: true };
  const titles = new Map([["claude-code", "Claude Code"]]);
  const given = { titles, viewed: undefined, now: new Date(COLD) };
  const nodes = liveNodes([session, { ...session, id: "sub", parent: session.id }], given);
  expect(nodes).toMatchObject([
    {
      label: "Never change a published price. Where is the total cached?",
      description: expect.stringMatching(/^Claude Code · 19,410 · 9\.7 % · /),
      command: "nexus.chooseView",
      subject: { assistant: "claude-code" },
    },
  ]);
  if (!usage) throw new Error("the example has no usage");
  const running = { session, title: "Claude Code" };
  const { remarks } = windowModel({ folder: FOLDER, session: "main", usage, running });
  expect(remarks).toContainEqual({
    tone: "info",
    text: "Claude Code runs in this folder: 19,410 of 200,000 tokens, 9.7 %.",
    action: { id: "viewRunning", label: "Show" },
  });
});
