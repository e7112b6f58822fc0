import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as vscode from "vscode";
import { makeFocus } from "../../src/focus";
import type { ServerState } from "../../src/nexus";
import { type Obstacle, REMEDIES } from "../../src/server/remedies";
import { briefly, percentText } from "../../src/usage/figures";
import { registerStatus, stateText, usageTable, usageText } from "../../src/usage/statusBar";
import { fakeNextTurn, fakeNexus, usageOf } from "./nexus";
import { VIEWS } from "./panel-examples";
import { mock } from "./vscode";

const THRESHOLDS = { warnAt: 75, errorAt: 90 };

const at = (uri: string) => ({ uri, range: { start: { line: 0, character: 0 }, end: { line: 1, character: 0 } } });

const memento = () => {
  const kept = new Map<string, unknown>();
  return {
    get: (key: string) => kept.get(key),
    update: async (key: string, value: unknown) => void kept.set(key, value),
    keys: () => [...kept.keys()],
  } as unknown as vscode.Memento;
};

function openFolders(...names: string[]): void {
  const folders = names.map((name, index) => ({ uri: vscode.Uri.file(`/w/${name}`), name, index }));
  Object.assign(vscode.workspace, { workspaceFolders: folders });
}

beforeEach(() => {
  mock.reset();
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

test.each([
  [0, "0"],
  [950, "950"],
  [1_234, "1.23k"],
  [12_345, "12.3k"],
  [200_000, "200k"],
  [999_499, "999k"],
  [999_500, "1M"],
  [1_047_576, "1.05M"],
])("%d tokens in brief: %s", (tokens, text) => {
  expect(briefly(tokens)).toBe(text);
});

test.each([
  [0.1, "0.1 %"],
  [9.9, "9.9 %"],
  [74.6, "75 %"],
  [120, "120 %"],
])("%d percent: %s", (percent, text) => {
  expect(percentText(percent)).toBe(text);
});

test("the figures are the daemon's, marked where they are estimates", () => {
  expect(usageText(usageOf([{ tokens: 12_345 }]), THRESHOLDS)).toEqual({
    text: "$(layers) 12.3k / 200k 6.2 %",
    spoken: "Nexus: 12,345 of 200,000 tokens, 6.2 %",
    colour: undefined,
    command: "nexus.openPanel",
  });
  const guessed = usageOf([{ tokens: 300 }], { limitKnown: false, counter: { name: "claude", exact: false } });
  expect(usageText(guessed, THRESHOLDS)).toMatchObject({
    text: "$(layers) ≈ 300 / 200k? 0.2 %",
    spoken: "Nexus: about 300 of 200,000 tokens, 0.2 %",
  });
});

test.each([
  [74.9, undefined],
  [75, "statusBarItem.warningBackground"],
  [89.9, "statusBarItem.warningBackground"],
  [90, "statusBarItem.errorBackground"],
  [110, "statusBarItem.errorBackground"],
])("at %d percent the colour is %s", (percent, colour) => {
  expect(usageText(usageOf([], { percent }), THRESHOLDS).colour).toBe(colour);
});

test("the tooltip is a table by part, and says nothing as code that a folder is called", () => {
  const usage = usageOf([
    { category: "system", tokens: 400, source: at("file:///w/NEXUS.md") },
    { category: "system", tokens: 100, source: at("file:///w/docs/style.md") },
    { category: "system", tokens: 50 },
    { category: "history", tokens: 1_500, exact: false },
  ]);
  const table = usageTable(usage, { folder: "a[b](command:x)", session: "main", agent: "reviewer" });
  expect(table.split("\n").slice(0, 10)).toEqual([
    "**a\\[b\\]\\(command:x\\) · as reviewer**",
    "",
    "| | Tokens | Share |",
    "|:--|--:|--:|",
    "| Your instructions | 500 | 24 % |",
    "| Nexus's own text | 50 | 2 % |",
    "| History | ≈ 1,500 | 73 % |",
    "| **Total** | **2,050** | |",
    "",
    "**1 %** of 200,000 available tokens",
  ]);
});

test("the tooltip of an assistant has its own prompt, why its view is shown, and no command of Nexus's", () => {
  const usage = usageOf([{ category: "system", tokens: 18_844, exact: false }], { percent: 120, over: true });
  const table = usageTable(usage, { folder: "a", session: "main", assistant: "Claude Code", reason: "it runs here" });
  expect(table).toContain("**a · Claude Code**: it runs here");
  expect(table).toContain("| Prompt and tools | ≈ 18,844 | 100 % |");
  expect(table).not.toMatch(/Nexus's|nexus\.(?:compact|switchSession|pickModel)|compact the/);
});

test("figures with an estimated part are an estimate", () => {
  const parts = [{ part: "program" as const, tokens: 10_500, exact: false }];
  const { text } = usageText(usageOf([{ tokens: 10_528 }], { parts }), THRESHOLDS, { assistant: "Codex $(x)" });
  expect(text).toBe("Codex $ (x): ≈ 10,528 of 200k tokens, 5.3 %");
});

test.each([
  ["finding", "$(loading~spin) Nexus"],
  ["installing", "$(loading~spin) Nexus: installing"],
  ["failed", "$(error) Nexus"],
  ["ready", undefined],
  ["stopped", undefined],
] as const)("the state %s says %s", (state, text) => {
  expect(stateText(state, "why")?.text).toBe(text);
});

test.each<[ServerState, Obstacle, string, string]>([
  [
    "failed",
    { kind: "no-python", remedies: ["getPython", "pythonSetting"] },
    "$(error) Nexus: no Python",
    "[Get Python](command:nexus.getPython) · [Choose a Python](command:workbench.action.openSettings?%5B%22nexus.python%22%5D)",
  ],
  [
    "stopped",
    { kind: "not-trusted", remedies: ["manageTrust"] },
    "$(shield) Nexus: not trusted",
    "[Manage Trust](command:workbench.trust.manage)",
  ],
])(
  "a server that is %s because of %j: the item says it, and its tooltip has the ways out",
  async (state, obstacle, text, links) => {
    openFolders("a");
    const nexus = fakeNexus({});
    registerStatus(nexus, makeFocus(memento()), fakeNextTurn());
    nexus.become(state, "why", obstacle);
    const item = mock.statusItems[0] as {
      text: string;
      visible: boolean;
      command: string;
      tooltip: vscode.MarkdownString;
    };
    expect([item.text, item.visible, item.command]).toEqual([text, true, "nexus.openPanel"]);
    expect(item.tooltip.value.split("\n\n").slice(1)).toEqual(["why", links]);
    expect(item.tooltip.isTrusted).toEqual({ enabledCommands: obstacle.remedies.map((id) => REMEDIES[id].command) });
  },
);

test("figures are asked for with the next turn, once a change; those of other folders are not", async () => {
  openFolders("a", "b");
  let tokens = 100;
  const nexus = fakeNexus({
    "nexus/context/usage": ({ session }: { session: string }) => usageOf([{ tokens: session === "main" ? tokens : 7 }]),
  });
  const [focus, nextTurn] = [makeFocus(memento()), fakeNextTurn()];
  nextTurn.given = { attachments: [{ uri: "file:///w/a/AGENTS.md" }] };
  registerStatus(nexus, focus, nextTurn);
  await vi.runAllTimersAsync();
  const item = mock.statusItems[0] as { text: string; visible: boolean; backgroundColor?: { id: string } };
  expect([item.text, item.visible]).toEqual(["$(layers) 100 / 200k 0.1 %", true]);

  const asked = (session: string) => [
    "nexus/context/usage",
    { workspaceFolder: "file:///w/a", session, nextTurn: nextTurn.given },
  ];
  expect(nexus.asked).toEqual([asked("main")]);
  const change = { workspaceFolder: "file:///w/a", revision: 2, reason: "config" };
  tokens = 190_000;
  nexus.contexts.fire({ ...change, usage: usageOf([{ tokens: 1 }]) });
  await vi.runAllTimersAsync();
  expect([item.text, item.backgroundColor?.id]).toEqual([
    "$(layers) 190k / 200k 95 %",
    "statusBarItem.errorBackground",
  ]);
  nexus.asked.length = 0;
  nexus.contexts.fire({ ...change, workspaceFolder: "file:///w/b", usage: usageOf([{ tokens: 1 }]) });
  await vi.runAllTimersAsync();
  expect(nexus.asked).toEqual([]);
  expect(item.text).toContain("190k");

  focus.setSession("plan");
  nexus.contexts.fire({ ...change, usage: usageOf([{ tokens: 3 }]) });
  await vi.runAllTimersAsync();
  expect(item.text).toBe("$(layers) 7 / 200k 0 %");
  expect(nexus.asked).toEqual([asked("plan")]);

  nextTurn.given = {};
  nextTurn.changes.fire();
  await vi.runAllTimersAsync();
  expect(nexus.asked.slice(1)).toEqual([asked("plan")]);
});

test("it shows the agent that is viewed, whatever becomes of main, and main again afterwards", async () => {
  openFolders("a");
  const nexus = fakeNexus({
    "nexus/context/usage": ({ agent }: { agent?: string }) => usageOf([{ tokens: agent === "reviewer" ? 951 : 100 }]),
  });
  const focus = makeFocus(memento());
  registerStatus(nexus, focus, fakeNextTurn());
  await vi.runAllTimersAsync();
  const item = mock.statusItems[0] as { text: string; accessibilityInformation: { label: string } };
  focus.setAgent("reviewer");
  nexus.contexts.fire({
    workspaceFolder: "file:///w/a",
    revision: 2,
    reason: "config",
    usage: usageOf([{ tokens: 3 }]),
  });
  await vi.runAllTimersAsync();
  expect(item.text).toBe("$(eye) reviewer: 951 / 200k 0.5 %");
  expect(item.accessibilityInformation.label).toBe("Nexus, as reviewer: 951 of 200,000 tokens, 0.5 %");
  nexus.answers["nexus/context/usage"] = usageOf([{ tokens: 960 }]);
  nexus.agents.fire({ workspaceFolder: "file:///w/a", agentId: "reviewer", reason: "changed" });
  await vi.runAllTimersAsync();
  expect(item.text).toContain("reviewer: 960 ");
  focus.setAgent(undefined);
  await vi.runAllTimersAsync();
  expect(item.text).toBe("$(layers) 960 / 200k 0.5 %");
});

test("a failure is said, and tried again by itself", async () => {
  openFolders("a");
  let tries = 0;
  const nexus = fakeNexus({
    "nexus/context/usage": () => (++tries === 1 ? new Error("The ledger is busy.") : usageOf([{ tokens: 100 }])),
  });
  registerStatus(nexus, makeFocus(memento()), fakeNextTurn());
  await vi.advanceTimersByTimeAsync(10);
  const item = mock.statusItems[0] as { text: string; tooltip: string };
  expect([item.text, item.tooltip]).toEqual(["$(warning) Nexus", "The ledger is busy."]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(item.text).toContain("100 / 200k");
});

test("the tooltip says what the last edit broke of the cache", () => {
  const broke = { category: "system" as const, label: "Project|Configuration", tokens: 1_234 };
  const usage = usageOf([], { cache: { reusedTokens: 1, prefixTokens: 2, broke } });
  expect(usageTable(usage, { folder: "a", session: "main" })).toContain(
    "Cache broken: Project\\|Configuration, 1,234 tokens are read again",
  );
});

test("the figures stay, greyed, while a server is on its way, and go when it fails", async () => {
  openFolders("a");
  const nexus = fakeNexus({ "nexus/context/usage": usageOf([{ tokens: 100 }]) });
  registerStatus(nexus, makeFocus(memento()), fakeNextTurn());
  await vi.runAllTimersAsync();
  const item = mock.statusItems[0] as { text: string; color?: { id: string }; tooltip: { value: string } };
  expect([item.text, item.color]).toEqual(["$(layers) 100 / 200k 0.1 %", undefined]);
  nexus.become("finding", "Restarting the server");
  expect(item).toMatchObject({
    text: "$(sync~spin) 100 / 200k 0.1 %",
    color: { id: "disabledForeground" },
    accessibilityInformation: { label: "Nexus: Restarting the server. Before: 100 of 200,000 tokens" },
  });
  expect(item.tooltip.value.split("\n")[0]).toBe("$(sync~spin) Restarting the server. The figures are from before.");
  nexus.answers["nexus/context/usage"] = usageOf([{ tokens: 200 }]);
  nexus.become("ready");
  await vi.runAllTimersAsync();
  expect([item.text, item.color]).toEqual(["$(layers) 200 / 200k 0.1 %", undefined]);
  nexus.become("starting", "Starting the server");
  nexus.become("failed", "No Python.");
  expect([item.text, item.color, item.tooltip]).toEqual(["$(error) Nexus", undefined, "No Python."]);
});

test("it hides where there is nothing to say, and says why there is no server", async () => {
  const nexus = fakeNexus();
  registerStatus(nexus, makeFocus(memento()), fakeNextTurn());
  const item = mock.statusItems[0] as { visible: boolean; text: string };
  expect(item.visible).toBe(false);
  nexus.become("failed", "No Python.");
  expect(item).toMatchObject({
    visible: true,
    text: "$(error) Nexus",
    accessibilityInformation: { label: "Nexus: No Python." },
  });
  mock.settings.set("nexus.statusBar.enabled", false);
  nexus.become("failed", "No Python.");
  expect(item.visible).toBe(false);
});

test("folders that are not on the disk are not looked at", () => {
  const web = { uri: vscode.Uri.parse("vscode-vfs://github/a/b"), name: "b", index: 0 };
  const disk = { uri: vscode.Uri.file("/w/a"), name: "a", index: 1 };
  Object.assign(vscode.workspace, { workspaceFolders: [web, disk] });
  const focus = makeFocus(memento());
  expect(focus.folder?.path).toBe("/w/a");
  const editor = { document: { uri: vscode.Uri.parse("vscode-vfs://github/a/b/x.md") } };
  Object.assign(vscode.window, { activeTextEditor: editor });
  events.activeEditor.fire(editor);
  expect(focus.folder?.path).toBe("/w/a");
  Object.assign(vscode.workspace, { workspaceFolders: [web] });
  expect(makeFocus(memento()).folder).toBeUndefined();
});

test("an agent or an assistant is looked at, never both; the assistant outlives the window", () => {
  openFolders("a", "b");
  const memory = memento();
  const views = { onDidChange: new vscode.EventEmitter<void>().event, of: () => ({ ...VIEWS, chosen: "nexus" }) };
  const focus = makeFocus(memory, views);
  focus.setAgent("reviewer");
  focus.pickView("codex");
  expect([focus.agent, focus.assistant]).toEqual([undefined, "codex"]);
  focus.setFolder(vscode.Uri.file("/w/b"));
  expect(focus.assistant).toBeUndefined();
  focus.setFolder(vscode.Uri.file("/w/a"));
  expect(makeFocus(memory, views).assistant).toBe("codex");
  focus.setAgent("reviewer");
  expect([focus.agent, focus.assistant]).toEqual(["reviewer", undefined]);
  focus.setAgent(undefined);
  expect(focus.assistant).toBe("codex");
});

test("the focus follows the editor, stays where no folder is, and keeps a conversation per folder", () => {
  openFolders("a", "b");
  const memory = memento();
  const focus = makeFocus(memory);
  let changes = 0;
  focus.onDidChange(() => changes++);
  const edit = (path: string | undefined) => {
    const editor = path && { document: { uri: vscode.Uri.file(path) } };
    Object.assign(vscode.window, { activeTextEditor: editor });
    events.activeEditor.fire(editor);
  };
  expect(focus.folder?.path).toBe("/w/a");
  edit("/w/b/x.md");
  edit("/w/b/y.md");
  edit(undefined);
  edit("/elsewhere/z.md");
  expect([focus.folder?.path, changes]).toEqual(["/w/b", 1]);
  focus.setSession("plan");
  focus.setAgent("reviewer");
  focus.setFolder(vscode.Uri.file("/w/a"));
  expect([focus.session, focus.agent]).toEqual(["main", undefined]);
  focus.setFolder(vscode.Uri.file("/w/b"));
  expect([focus.session, focus.agent]).toEqual(["plan", "reviewer"]);
  expect(makeFocus(memory).session).toBe("main");
  openFolders("a");
  events.folders.fire(undefined);
  expect(focus.folder?.path).toBe("/w/a");
});

import { events } from "./vscode";

test("the total is the provider's as soon as it reported a usage, and says how wrong it was lately", () => {
  const usage = {
    ...usageOf([{ tokens: 12_345 }]),
    corrected: { total: 160_000, percent: 80, errorPercent: 6.2 },
  };
  expect(usageText(usage, THRESHOLDS)).toEqual({
    text: "$(layers) ≈ 160k / 200k 80 %",
    spoken: "Nexus: about 160,000 of 200,000 tokens, 80 %",
    colour: "statusBarItem.warningBackground",
    command: "nexus.openPanel",
  });
  const table = usageTable(usage, { folder: "a", session: "main" }).split("\n");
  expect(table.filter((line) => /Total|Corrected|available/u.test(line))).toEqual([
    "| **Total** | **12,345** | |",
    "| **Corrected** | **≈ 160,000** | ±6.2 % |",
    "**80 %** of 200,000 available tokens, corrected by what the provider counted, lately ±6.2 %",
  ]);
  const early = usageTable({ ...usage, corrected: { total: 13_000, percent: 6.5 } }, { folder: "a", session: "main" });
  expect(early.split("\n").filter((line) => /Corrected|available/u.test(line))).toEqual([
    "| **Corrected** | **≈ 13,000** |  |",
    "**6.5 %** of 200,000 available tokens, corrected by what the provider counted",
  ]);
});
