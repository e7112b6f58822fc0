/** The view of a folder: it chooses itself, the user's pick overrides it, and panel and status bar follow. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import * as vscode from "vscode";
import { makeFocus } from "../../src/focus";
import { NexusError } from "../../src/nexus";
import type { ViewInfo } from "../../src/protocol";
import { registerStatus } from "../../src/usage/statusBar";
import { makeViews } from "../../src/views";
import { fakeNextTurn, fakeNexus, usageOf } from "./nexus";
import { VIEWS } from "./panel-examples";
import { events, mock } from "./vscode";

const FOLDER = "file:///w/a";
const memory = { get: () => undefined, update: async () => undefined, keys: () => [] } as unknown as vscode.Memento;

beforeEach(() => {
  mock.reset();
  vi.useFakeTimers();
  Object.assign(vscode.workspace, { workspaceFolders: [{ uri: vscode.Uri.file("/w/a"), name: "a", index: 0 }] });
});
afterEach(() => vi.useRealTimers());

/** A server with these views, and the focus of a window. */
function open(list: unknown) {
  const nexus = fakeNexus({
    "nexus/view/list": list,
    "nexus/assistant/sessions": { sessions: [], failures: [] },
    "nexus/context/usage": ({ assistant }: { assistant?: string }) => usageOf([{ tokens: assistant ? 12_345 : 618 }]),
  });
  const picks = new Map<string, unknown>();
  const kept = {
    ...memory,
    get: (key: string) => picks.get(key),
    update: async (...pick: [string, unknown]) => picks.set(...pick),
  };
  const views = makeViews(nexus);
  const focus = makeFocus(kept as unknown as vscode.Memento, views);
  const parts = [registerStatus(nexus, focus, fakeNextTurn()), focus, views];
  onTestFinished(() => vscode.Disposable.from(...parts).dispose());
  const item = mock.statusItems[0] as {
    text: string;
    tooltip: { value: string };
    accessibilityInformation: { label: string };
  };
  return { nexus, focus, item, asked: () => nexus.asked.map(([method]) => method) };
}

const listed = (views: Partial<ViewInfo>[]) => ({
  views: views.map((view) => ({ title: view.name, reason: "it runs here", inUse: true, ...view })),
  chosen: views[0]?.name,
});

test("the status bar waits for the view, names it, and says why", async () => {
  const { focus, item, asked } = open(VIEWS);
  await vi.runAllTimersAsync();
  expect(asked()).toEqual(["nexus/view/list", "nexus/assistant/sessions", "nexus/context/usage"]);
  expect(item.text).toBe("Claude Code: 12,345 of 200k tokens, 6.2 %");
  expect(item.accessibilityInformation.label).toBe("Claude Code: 12,345 of 200,000 tokens, 6.2 %");
  expect(item.tooltip.value).toContain("**a · Claude Code**: last used here yesterday");
  expect(item.tooltip.value).not.toContain("nexus.compact");
  focus.pickView("nexus");
  await vi.runAllTimersAsync();
  expect(item.text).toBe("$(layers) 618 / 200k 0.3 %");
  expect(item.tooltip.value).toContain("**a · main**: you chose it");
  focus.pickView("cursor");
  expect(focus.view?.reason).toBe("you chose it; nothing of it is here");
  focus.pickView(undefined);
  await vi.runAllTimersAsync();
  expect(item.text).toMatch(/^Claude Code: /);
});

test.each([
  ["has no views", new NexusError("No such method.", "method-not-found")],
  ["cannot list them", new Error("Nothing can be read.")],
])("a server that %s shows Nexus", async (_, failure) => {
  const { focus, item } = open(failure);
  expect(focus.view).toBeUndefined();
  await vi.advanceTimersByTimeAsync(10);
  expect(item.text).toBe("$(layers) 618 / 200k 0.3 %");
  expect([focus.view?.name, focus.assistant]).toEqual(["nexus", undefined]);
});

test("the view follows what begins here, and stays while two programs run", async () => {
  const used = { name: "claude-code", reason: "last used here yesterday" };
  const { focus, nexus } = open(listed([used, { name: "codex", reason: "AGENTS.md is here" }]));
  await vi.runAllTimersAsync();
  expect(focus.view?.name).toBe("claude-code");
  const become = async (assistant: string, ...views: Partial<ViewInfo>[]) => {
    nexus.answers["nexus/view/list"] = listed(views);
    nexus.assistants.fire({ workspaceFolder: FOLDER, assistant, id: "1", reason: "changed" });
    await vi.runAllTimersAsync();
    return focus.view?.name;
  };
  expect(await become("codex", { name: "codex" }, used)).toBe("codex");
  expect(await become("claude-code", { name: "claude-code" }, { name: "codex" })).toBe("codex");
  expect(await become("claude-code", { name: "claude-code" }, { name: "codex", reason: "AGENTS.md is here" })).toBe(
    "claude-code",
  );
});

test("views are listed again when they may be others, and not for a turn of Nexus", async () => {
  const { nexus, focus, asked } = open(VIEWS);
  await vi.runAllTimersAsync();
  const times = async (change: () => void) => {
    nexus.asked.length = 0;
    change();
    await vi.runAllTimersAsync();
    return asked().filter((method) => method === "nexus/view/list").length;
  };
  const context = (reason: "session" | "instructions", workspaceFolder = FOLDER) =>
    nexus.contexts.fire({ workspaceFolder, revision: 2, reason, usage: usageOf([]) });
  expect(await times(() => context("instructions"))).toBe(1);
  expect(await times(() => context("session"))).toBe(0);
  expect(await times(() => context("instructions", "file:///w/other"))).toBe(0);
  expect(await times(() => events.windowState.fire({ focused: true }))).toBe(1);
  expect(await times(() => events.windowState.fire({ focused: false }))).toBe(0);
  expect(await times(() => nexus.become("starting"))).toBe(0);
  expect(focus.view?.name).toBe("claude-code");
  expect(await times(() => nexus.become("ready"))).toBe(1);
  Object.assign(vscode.workspace, { workspaceFolders: [] });
  events.folders.fire({ added: [], removed: [{ uri: vscode.Uri.file("/w/a"), name: "a", index: 0 }] });
  expect(await times(() => context("instructions"))).toBe(0);
});
