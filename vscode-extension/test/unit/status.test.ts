import { afterEach, beforeEach, expect, test, vi } from "vitest";
import * as vscode from "vscode";
import { briefly, percentText } from "../../src/figures";
import { makeFocus } from "../../src/focus";
import type { ServerState } from "../../src/nexus";
import { type Obstacle, REMEDIES } from "../../src/remedies";
import { registerStatus, stateText, usageTable, usageText } from "../../src/status";
import { fakeNexus, usageOf } from "./nexus";
import { mock } from "./vscode";

const THRESHOLDS = { warnAt: 75, errorAt: 90 };
const context = {} as vscode.ExtensionContext;

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

test("the tooltip is a table by category, and says nothing as code that a folder is called", () => {
  const usage = usageOf([
    { category: "system", tokens: 400 },
    { category: "system", tokens: 100 },
    { category: "history", tokens: 1_500, exact: false },
  ]);
  const table = usageTable(usage, { folder: "a[b](command:x)", session: "main", agent: "reviewer" });
  expect(table.split("\n").slice(0, 9)).toEqual([
    "**a\\[b\\]\\(command:x\\) · as reviewer**",
    "",
    "| | Tokens | Share |",
    "|:--|--:|--:|",
    "| System prompt | 500 | 25 % |",
    "| History | ≈ 1,500 | 75 % |",
    "| **Total** | **2,000** | |",
    "",
    "**1 %** of 200,000 available tokens",
  ]);
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
    registerStatus(context, nexus, makeFocus(memento()));
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

test("main's figures come with the change; another conversation is asked for, once", async () => {
  openFolders("a", "b");
  const nexus = fakeNexus({
    "nexus/context/usage": ({ session }: { session: string }) => usageOf([{ tokens: session === "main" ? 100 : 7 }]),
  });
  const focus = makeFocus(memento());
  registerStatus(context, nexus, focus);
  await vi.runAllTimersAsync();
  const item = mock.statusItems[0] as { text: string; visible: boolean; backgroundColor?: { id: string } };
  expect([item.text, item.visible]).toEqual(["$(layers) 100 / 200k 0.1 %", true]);

  nexus.asked.length = 0;
  const change = { workspaceFolder: "file:///w/a", revision: 2, reason: "config" };
  nexus.contexts.fire({ ...change, usage: usageOf([{ tokens: 190_000 }]) });
  expect([item.text, item.backgroundColor?.id]).toEqual([
    "$(layers) 190k / 200k 95 %",
    "statusBarItem.errorBackground",
  ]);
  nexus.contexts.fire({ ...change, workspaceFolder: "file:///w/b", usage: usageOf([{ tokens: 1 }]) });
  expect(nexus.asked).toEqual([]);
  expect(item.text).toContain("190k");

  focus.setSession("plan");
  nexus.contexts.fire({ ...change, usage: usageOf([{ tokens: 3 }]) });
  await vi.runAllTimersAsync();
  expect(item.text).toBe("$(layers) 7 / 200k 0 %");
  expect(nexus.asked).toEqual([["nexus/context/usage", { workspaceFolder: "file:///w/a", session: "plan" }]]);
});

test("it shows the agent that is viewed, whatever becomes of main, and main again afterwards", async () => {
  openFolders("a");
  const nexus = fakeNexus({
    "nexus/context/usage": ({ agent }: { agent?: string }) => usageOf([{ tokens: agent === "reviewer" ? 951 : 100 }]),
  });
  const focus = makeFocus(memento());
  registerStatus(context, nexus, focus);
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
  registerStatus(context, nexus, makeFocus(memento()));
  await vi.advanceTimersByTimeAsync(10);
  const item = mock.statusItems[0] as { text: string; tooltip: string };
  expect([item.text, item.tooltip]).toEqual(["$(warning) Nexus", "The ledger is busy."]);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(item.text).toContain("100 / 200k");
});

test("the tooltip says what the last edit broke of the cache", () => {
  const broke = { category: "system", label: "Project|Configuration", tokens: 1_234 };
  const usage = usageOf([], { cache: { reusedTokens: 1, prefixTokens: 2, broke } });
  expect(usageTable(usage, { folder: "a", session: "main" })).toContain(
    "Cache broken: Project\\|Configuration, 1,234 tokens are read again",
  );
});

test("it hides where there is nothing to say, and says why there is no server", async () => {
  const nexus = fakeNexus();
  registerStatus(context, nexus, makeFocus(memento()));
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
