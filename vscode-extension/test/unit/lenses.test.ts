import { beforeEach, expect, test, vi } from "vitest";
import * as vscode from "vscode";
import { type LensServer, registerLenses, type ServerLens, SHOW_IN_CONTEXT } from "../../src/lenses";
import type { ServerState } from "../../src/nexus";
import type { Location, Range } from "../../src/protocol";
import { fakeDocuments } from "./nexus";
import { events, mock } from "./vscode";

const FOLDER = "file:///w/a";
const URI = vscode.Uri.parse(`${FOLDER}/NEXUS.md`);
const document = { uri: URI } as vscode.TextDocument;
const never = new vscode.CancellationTokenSource().token;

const range = (line: number, character = 0): Range => ({ start: { line, character: 0 }, end: { line, character } });

function lens(line: number, title: string, prompt?: Range): ServerLens {
  const source = { uri: URI.toString(), range: range(line, line === 0 ? 0 : 8) };
  const target = { workspaceFolder: FOLDER, source, ...(prompt ? { prompt } : {}) };
  return { range: source.range, command: { title, command: SHOW_IN_CONTEXT, arguments: [target] } };
}

const LENSES = [lens(0, "12 tokens"), lens(2, "7 tokens", { start: range(40).start, end: range(43, 5).end })];

let provider: vscode.CodeLensProvider;
let server: LensServer & { become(state: ServerState, detail?: string): void; answer: () => Promise<ServerLens[]> };
let refreshed: number;
let revealed: Location[];
let old: vscode.EventEmitter<void>;
let registered: vscode.Disposable;
let documents: ReturnType<typeof fakeDocuments>;

beforeEach(() => {
  mock.reset();
  const states = new vscode.EventEmitter<ServerState>();
  old = new vscode.EventEmitter<void>();
  [refreshed, revealed] = [0, []];
  const made = {
    state: "ready" as ServerState,
    detail: "",
    onDidChangeState: states.event,
    onDidChangeLenses: old.event,
    answer: async () => LENSES,
    lenses: () => made.answer(),
    become(state: ServerState, detail = "") {
      Object.assign(made, { state, detail });
      states.fire(state);
    },
  };
  server = made;
  vi.spyOn(vscode.languages, "registerCodeLensProvider").mockImplementation((_selector, one) => {
    provider = one;
    one.onDidChangeCodeLenses?.(() => refreshed++);
    return new vscode.Disposable(() => undefined);
  });
  documents = fakeDocuments();
  registered = registerLenses(made, documents, async (source) => revealed.push(source));
  return () => registered.dispose();
});

/** What the editor shows: line and words. */
async function shown(): Promise<string[]> {
  const lenses = (await provider.provideCodeLenses(document, never)) ?? [];
  return lenses.map((one) => `${one.range.start.line}: ${one.command?.title}`);
}

test("they are the server's, with a command of our own", async () => {
  expect(await shown()).toEqual(["0: 12 tokens", "2: 7 tokens"]);
  const [, second] = (await provider.provideCodeLenses(document, never)) ?? [];
  expect(second?.command).toMatchObject({ command: "nexus.showInContext", arguments: LENSES[1]?.command.arguments });
});

test("they stay, marked, until the next server answers", async () => {
  await shown();
  for (const state of ["finding", "installing", "starting"] as const) {
    server.become(state);
    expect(await shown()).toEqual(["0: $(sync) 12 tokens", "2: $(sync) 7 tokens"]);
  }
  server.answer = async () => [lens(0, "13 tokens")];
  server.become("ready");
  expect(await shown()).toEqual(["0: 13 tokens"]);
  expect(refreshed).toBe(4);
});

test("one that ended while it was asked leaves the last ones, marked", async () => {
  await shown();
  server.answer = () => Promise.reject(new Error("The Nexus server ended before it answered."));
  expect(await shown()).toEqual(["0: $(sync) 12 tokens", "2: $(sync) 7 tokens"]);
});

test("a server that failed says so in their place; one that was stopped leaves none", async () => {
  await shown();
  server.become("failed", "No Python.");
  expect(await shown()).toEqual(["0: $(error) Nexus is not running: see why"]);
  const [only] = (await provider.provideCodeLenses(document, never)) ?? [];
  expect(only?.command).toMatchObject({ command: "nexus.openPanel", tooltip: "No Python." });
  server.become("stopped");
  expect(await shown()).toEqual([]);
});

test("a file that had none says nothing of a server that failed", async () => {
  server.become("failed", "No Python.");
  expect(await shown()).toEqual([]);
});

test("those of before move with the text, and go with it", async () => {
  server.answer = async () => [lens(0, "12 tokens"), lens(2, "a"), lens(5, "b"), lens(9, "c")];
  await shown();
  server.become("starting");
  const at = (one: number, from: number, other: number, to: number) => new vscode.Range(one, from, other, to);
  const change = (where: vscode.Range, text: string) =>
    events.text.fire({ document, contentChanges: [{ range: where, text }] });
  change(at(0, 0, 0, 0), "One.\nTwo.\n"); // above all but the file's own
  change(at(4, 3, 4, 4), "xy"); // in a heading
  change(at(6, 0, 8, 0), ""); // the second heading and a line
  expect(await shown()).toEqual(["0: $(sync) 12 tokens", "4: $(sync) a", "9: $(sync) c"]);
});

test("the setting switches them off and on, at once", async () => {
  mock.settings.set("nexus.codeLens", false);
  events.configuration.fire({ affectsConfiguration: (section) => section === "nexus.codeLens" });
  expect([await shown(), refreshed]).toEqual([[], 1]);
  mock.settings.set("nexus.codeLens", true);
  events.configuration.fire({ affectsConfiguration: (section) => section === "nexus.codeLens" });
  expect([await shown(), refreshed]).toEqual([["0: 12 tokens", "2: 7 tokens"], 2]);
  events.configuration.fire({ affectsConfiguration: (section) => section === "nexus.statusBar" });
  expect(refreshed).toBe(2);
});

test("the server says when they are old", () => {
  old.fire();
  expect(refreshed).toBe(1);
});

test("a click shows the very place in the prompt; of what is not there, the file in the panel", async () => {
  const run = (at: number) => mock.commands.get(SHOW_IN_CONTEXT)?.(...(LENSES[at]?.command.arguments ?? []));
  await run(1);
  expect(documents.opened).toEqual([[{ kind: "prompt", folder: FOLDER }, "a", new vscode.Range(40, 0, 43, 5)]]);
  expect(revealed).toEqual([]);
  await run(0);
  expect(revealed).toEqual([{ uri: URI.toString(), range: range(0) }]);
  expect(documents.opened).toHaveLength(1);
});
