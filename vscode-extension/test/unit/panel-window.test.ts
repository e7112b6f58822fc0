import { describe, expect, it } from "vitest";
import type { ServerState } from "../../src/nexus";
import { noticeOf } from "../../src/panel/notice";
import { levelOf, type WindowGiven, windowModel } from "../../src/panel/window";
import type { CacheReport, UsageRow } from "../../src/protocol";
import type { Obstacle } from "../../src/server/remedies";
import { example, FOLDER, usageOf } from "./panel-examples";

const folder = { uri: FOLDER, name: "auth-service" };
const row = (category: UsageRow["category"], tokens: number, exact = true): UsageRow => ({
  category,
  label: category,
  tokens,
  exact,
});
const model = (given: Partial<WindowGiven> = {}) =>
  windowModel({ folder, session: "main", usage: example("nexus/context/usage"), ...given });

const cached = (cache: CacheReport) => model({ usage: { ...example("nexus/context/usage"), cache } }).facts;

describe("the window", () => {
  it("of a real answer shows the daemon's figures", () => {
    const shown = model({
      layers: example("nexus/context/layers"),
      config: example("nexus/config/effective"),
    });
    expect(shown).toMatchObject({
      folder: "auth-service",
      session: "main",
      model: "gpt-4.1",
      used: "618",
      of: "1,043,576",
      percent: "0.1 %",
      level: "calm",
      counter: "exact (o200k_base)",
      free: { tokens: "1,042,958", share: "99.9 %" },
      reserved: { tokens: "4,000" },
      scale: "used",
      spoken: "618 tokens of 1,043,576 used, 0.1 %.",
    });
    expect(shown.segments.map(({ title, tokens, share }) => [title, tokens, share])).toEqual([
      ["Your instructions", "403", "< 0.1 %"],
      ["MCP and tools", "52", "< 0.1 %"],
      ["Nexus's own text", "95", "< 0.1 %"],
      ["History", "68", "< 0.1 %"],
    ]);
    expect(shown.remarks).toEqual([
      { tone: "error", text: "1 error in the files of the context.", action: { id: "check", label: "Show" } },
    ]);
    expect(shown.facts).toEqual([{ label: "Cache", text: "No request since the server started", tone: "plain" }]);
    expect(shown.marks.map(({ label }) => label)).toEqual(["The conversation is compacted from 80 % on"]);
    expect(shown.marks[0]?.at).toBeCloseTo((80 * 1_043_576) / 1_047_576);
  });

  it("has the provider's total as soon as it reported a usage", () => {
    const usage = {
      ...example("nexus/context/usage"),
      corrected: { total: 960_000, percent: 92, errorPercent: 5 },
    };
    expect(model({ usage })).toMatchObject({
      used: "≈ 960,000",
      percent: "92 %",
      level: "warning",
      counter: "exact (o200k_base), the total corrected by what the provider counted, lately ±5 %",
      facts: [
        {
          label: "Total",
          text: "The parts are 618 tokens, corrected by what the provider counted, lately ±5 %",
          tone: "plain",
        },
        { label: "Cache" },
      ],
      free: { tokens: "83,576", share: "8 %" },
      spoken: "≈ 960,000 tokens of 1,043,576 used, 92 %. Nearly full.",
    });
  });

  it("is filled exactly: used, free and kept are all of the bar, also when over", () => {
    for (const total of [0, 1, 5_000, 120_000, 183_999, 184_000, 184_001, 400_000]) {
      const usage = usageOf([row("system", Math.floor(total / 3)), row("history", total - Math.floor(total / 3))]);
      const shown = model({ usage });
      const segments = shown.segments.reduce((sum, { widths }) => sum + widths.window, 0);
      expect(segments + shown.free.width + (shown.reserved?.width ?? 0)).toBeCloseTo(100);
      const used = shown.segments.reduce((sum, { widths }) => sum + widths.used, 0);
      expect(used).toBeCloseTo(total ? 100 : 0);
    }
  });

  it("puts parts in their order, and a category that it does not know last", () => {
    const later = { ...row("event", 1), category: "later" as "event" };
    const message = { ...row("event", 5), label: "current message" };
    const usage = usageOf([
      later,
      message,
      row("event", 1),
      row("history", 2, false),
      row("system", 3),
      row("tools", 4),
    ]);
    const shown = model({ usage });
    expect(shown.segments.map(({ part, tokens }) => `${part} ${tokens}`)).toEqual([
      "tools 4",
      "nexus 3",
      "history ≈ 2",
      "memory 1",
      "message 5",
      "later 1",
    ]);
  });

  it("has the daemon's levels", () => {
    const at = (percent: number, over = false) => levelOf({ percent, over });
    expect([at(74.9), at(75), at(90), at(95), at(101, true)]).toEqual(["calm", "notice", "warning", "full", "over"]);
  });

  it("says what is wrong and what to do about it", () => {
    const usage = usageOf([row("history", 231_000)], { limitKnown: false });
    const shown = model({ usage, trouble: "The ledger is busy." });
    expect(shown.remarks.map(({ text, action }) => [text, action?.id])).toEqual([
      ["The ledger is busy.", "retry"],
      ["47,000 tokens more than the model takes.", "compact"],
      ["The window of claude-sonnet-4-5 is not known; 200,000 tokens are a guess.", "config"],
    ]);
    expect(shown.spoken).toMatch(/Over the limit\.$/);
  });

  it("says that its figures are from before, and nothing of what failed before that", () => {
    expect(model().stale).toBeUndefined();
    const shown = model({ stale: "Starting the server 0.1.0" });
    expect([shown.used, shown.stale]).toEqual(["618", "Starting the server 0.1.0. The figures are from before."]);
  });

  it("says what of the conversation is not sent, and why tokens are free all the same", () => {
    const cut = (tokens: number, removedMessages: number) =>
      model({ usage: usageOf([row("history", tokens)], { removedMessages }) }).remarks.map(({ text, action }) => [
        text,
        action?.id,
      ]);
    expect(cut(100_000, 12)).toEqual([
      [
        "12 messages of this conversation will not be sent: together with the others they are more than the model takes. The cut leaves 84,000 tokens for the next turns.",
        "compact",
      ],
    ]);
    expect(cut(184_000, 1)).toEqual([
      [
        "1 message of this conversation will not be sent: together with the others it is more than the model takes.",
        "compact",
      ],
    ]);
  });

  it("offers to begin where the folder says nothing of its own", () => {
    const layers = { ...example("nexus/context/layers"), problems: [] };
    const bare = { ...layers, layers: layers.layers.filter((layer) => layer.name !== "local") };
    expect(model({ layers }).remarks).toEqual([]);
    expect(model({ layers: bare }).remarks.map(({ action }) => action?.id)).toEqual(["init"]);
  });

  it("says what broke the cache, what that costs, and where it is", () => {
    const source = {
      uri: `${FOLDER}/NEXUS.md`,
      range: { start: { line: 1, character: 0 }, end: { line: 1, character: 4 } },
    };
    const broke = {
      category: "system" as const,
      label: "Project Configuration",
      tokens: 52_160,
      costUsd: 0.1799,
      source,
    };
    const [fact] = cached({ reusedTokens: 9_120, prefixTokens: 61_280, broke });
    expect(fact).toMatchObject({
      text: "Broken: Project Configuration",
      detail: "52,160 tokens must be read again, about $0.18. 9,120 of 61,280 tokens can be reused.",
      tone: "warning",
      action: { id: "cacheSource" },
    });
    expect(cached({ reusedTokens: 600, prefixTokens: 648 })).toMatchObject([
      { text: "600 of 648 tokens can be reused", tone: "good" },
    ]);
  });

  it("says what notes tell, and what it costs to apply it now", () => {
    const changes = ["Project Configuration", "NEXUS.md", "Soul", "read"].map((label) => ({
      kind: "changed" as const,
      label,
      tokens: 40,
      told: false,
    }));
    const pending = { changes, tokens: 12_300, costUsd: 0.0461, losesThinking: true };
    const [fact] = model({ usage: { ...example("nexus/context/usage"), pending } }).facts;
    expect(fact).toMatchObject({
      label: "Changes",
      text: "Told by a note: Project Configuration, NEXUS.md, Soul and 1 more",
      detail:
        "Put into the system prompt now, 12,300 tokens must be read again, about $0.05. Earlier thinking would not be sent any more.",
      action: { id: "rebase", label: "Apply Now" },
    });
  });

  it("says whose view it is, and when the conversation was compacted", () => {
    const shown = model({ agent: "reviewer", compaction: { undone: false, time: "12:03" } });
    expect(shown.agent).toBe("reviewer");
    expect(shown.spoken).toMatch(/^Viewing as reviewer\. /);
    expect(shown.facts[1]).toMatchObject({ text: "Compacted at 12:03", action: { id: "undoCompaction" } });
    expect(model({ compaction: { undone: true, time: "12:04" } }).facts[1]?.action).toBeUndefined();
  });
});

describe("a notice", () => {
  it("says what is missing and what to do", () => {
    const ids = (notice: ReturnType<typeof noticeOf>) => notice?.actions.map(({ id }) => id);
    expect(noticeOf("ready", "", "here")).toBeUndefined();
    expect(ids(noticeOf("ready", "", "none"))).toEqual(["openFolder", "help"]);
    expect(noticeOf("stopped", "", "elsewhere")?.title).toBe("No folder on the disk is open");
    expect(noticeOf("installing", "2 of 14", "here")).toMatchObject({ busy: true, text: "2 of 14" });
    const failed = noticeOf("failed", "Python 3.11 was not found.", "here");
    expect(failed).toMatchObject({ tone: "error", text: "Python 3.11 was not found.", busy: false });
    expect(ids(failed)).toEqual(["restart", "output", "help"]);
  });

  it.each<[ServerState, Obstacle, string, string[]]>([
    [
      "failed",
      { kind: "no-python", remedies: ["getPython", "pythonSetting", "tryAgain"] },
      "Python 3.11 or later is missing",
      ["Get Python", "Choose a Python", "Try Again", "Show Output", "Get Started"],
    ],
    [
      "failed",
      { kind: "install-failed", remedies: ["tryAgain", "output", "serverSetting"] },
      "The server could not be installed",
      ["Try Again", "Show Output", "Open Setting", "Get Started"],
    ],
    [
      "stopped",
      { kind: "not-trusted", remedies: ["manageTrust"] },
      "This folder is not trusted",
      ["Manage Trust", "Get Started"],
    ],
  ])("of a server that is %s because of %j has a button for each way out", (state, obstacle, title, labels) => {
    const notice = noticeOf(state, "why", "here", obstacle);
    expect(notice).toMatchObject({ title, text: "why", tone: state === "failed" ? "error" : "info" });
    expect(notice?.actions.map(({ label }) => label)).toEqual(labels);
  });
});
