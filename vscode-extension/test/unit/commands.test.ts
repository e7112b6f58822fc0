import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { beforeEach, expect, test, vi } from "vitest";
import * as vscode from "vscode";
import { registerCommands } from "../../src/commands";
import { subjectOf } from "../../src/commands/commandContext";
import { wrongName } from "../../src/commands/sessions";
import { changeText, lossText, receiptText } from "../../src/documents/receipt";
import { makeFocus } from "../../src/focus";
import { type Focus, NEXUS_ALONE, NexusError } from "../../src/nexus";
import type { Receipt } from "../../src/protocol";
import { type FakeNexus, fakeNextTurn, fakeNexus, usageOf } from "./nexus";
import { VIEWS } from "./panel-examples";
import { mock } from "./vscode";

const FOLDER = "file:///w/a";
const NEXT_TURN = { options: { memoryTools: true, skillTools: true } };
const RECEIPT: Receipt = {
  id: "3f2a",
  reason: "explicit",
  summarizer: "extractive",
  replacedMessages: 21,
  tokensBefore: 1_675,
  tokensAfter: 535,
  created: "2026-11-20T12:00:00.000Z",
  lost: {
    paths: ["a`b.py"],
    commands: [],
    identifiers: [],
    errors: [],
    instructions: [],
    decisions: [],
    counts: { paths: 3, errors: 0 },
  },
  failures: ["editor: no model"],
};

let nexus: FakeNexus;
let focus: Focus;
let views = NEXUS_ALONE;
let ranWith: string[][];
let transcripts: unknown[][];
let shown: unknown[];
let show: () => Promise<void>;

beforeEach(() => {
  mock.reset();
  const folder = { uri: vscode.Uri.file("/w/a"), name: "a", index: 0 };
  Object.assign(vscode.workspace, { workspaceFolders: [folder] });
  const kept = new Map<string, unknown>();
  const memory = {
    get: (key: string) => kept.get(key),
    update: async (key: string, value: unknown) => kept.set(key, value),
  };
  views = NEXUS_ALONE;
  const listed = { onDidChange: new vscode.EventEmitter<void>().event, of: () => views };
  focus = makeFocus(memory as unknown as vscode.Memento, listed);
  nexus = fakeNexus({
    "nexus/session/list": {
      sessions: [{ session: "plan", thread: "t", turns: 2, messages: 5, tokens: 79, exact: false, updated: "" }],
    },
  });
  ranWith = [];
  transcripts = [];
  shown = [];
  show = async () => undefined;
  const channels = {
    documents: {
      show: async (about: unknown) => {
        shown.push(about);
        await show();
      },
      compare: async (about: unknown) => void shown.push(about),
    },
    output: { show: () => undefined },
    trace: { show: () => undefined },
    runServer: async (args: readonly string[]) => {
      ranWith.push([...args]);
      return "created";
    },
  };
  const nextTurn = Object.assign(fakeNextTurn(), { given: NEXT_TURN });
  registerCommands({} as vscode.ExtensionContext, nexus, focus, nextTurn, channels, {
    show: async (...what) => {
      transcripts.push(what);
    },
  });
});

const run = (id: string, ...args: unknown[]) => vscode.commands.executeCommand(id, ...args);
const lastAsked = () => nexus.asked.at(-1);
const lastMessage = () => mock.messages.at(-1)?.text;

test("a command is about the menu's conversation, else the focused one", async () => {
  Object.assign(nexus.answers, { "nexus/session/clear": {}, "nexus/session/fork": {} });
  mock.answers.push("Clear", "plan B");
  await run("nexus.clearSession", { id: "session:plan", subject: { folder: FOLDER, session: "plan" } });
  expect(lastAsked()).toEqual(["nexus/session/clear", { workspaceFolder: FOLDER, session: "plan" }]);
  await run("nexus.forkSession");
  expect(lastAsked()).toEqual(["nexus/session/fork", { workspaceFolder: FOLDER, session: "main", to: "plan B" }]);
  expect(focus.session).toBe("plan B");
});

test("what is left or refused by the user asks nothing of the daemon, and says nothing", async () => {
  mock.answers.push(undefined, undefined, undefined);
  await run("nexus.deleteSession", { session: "plan" });
  await run("nexus.newSession");
  await run("nexus.searchSessions");
  expect(nexus.asked.map(([method]) => method)).toEqual(["nexus/session/list"]);
  expect(mock.messages.map((one) => one.level)).toEqual(["warning"]);
});

test("the chosen hit of a search is opened, and its conversation is looked at", async () => {
  const hit = { session: "plan", thread: "t", position: 7, snippet: "a «word»", role: "user", seq: 2, created: "" };
  const other = { ...hit, position: 8, snippet: "a second «word»" };
  nexus.answers["nexus/conversation/search"] = new NexusError("It is older.", "method-not-found");
  nexus.answers["nexus/session/search"] = { hits: [hit, other] };
  nexus.answers["nexus/session/transcript"] = { cleared: false };
  const second = (item: { label: string }) => item.label === "a second «word»";
  mock.answers.push("word", second);
  await run("nexus.searchSessions");
  expect(focus.session).toBe("plan");
  nexus.answers["nexus/session/transcript"] = { cleared: true };
  mock.answers.push("word", second);
  await run("nexus.searchSessions");
  const target = { position: 8, snippet: "a second «word»" };
  expect(transcripts).toEqual([
    [{ folder: FOLDER, session: "plan" }, target],
    [{ folder: FOLDER, session: "plan", thread: "t" }, target],
  ]);
});

test("a hit in a file, or in another folder, is read there; what is looked at stays", async () => {
  const hit = { position: 7, snippet: "a «word»", role: "user", created: "" };
  const own = { ...hit, session: "plan", thread: "t", seq: 2, workspaceFolder: FOLDER };
  const above = { ...own, snippet: "above: «word»", workspaceFolder: "file:///w" };
  const file = { program: "codex", programTitle: "Codex", id: "r1", title: "codex: Why?", uri: "file:///r1.jsonl" };
  nexus.answers["nexus/conversation/search"] = {
    hits: [own, above],
    fileHits: [{ ...hit, ...file, snippet: "in a file: «word»" }],
  };
  for (const label of ["above: «word»", "in a file: «word»"]) {
    mock.answers.push("word", (item: { label: string }) => item.label === label);
    await run("nexus.searchSessions");
  }
  expect(transcripts).toEqual([
    [
      { folder: FOLDER, session: "plan", source: { program: "nexus", id: "t" } },
      { position: 7, snippet: "above: «word»" },
    ],
    [
      { folder: FOLDER, session: "codex: Why?", source: { program: "codex", id: "r1" } },
      { position: 7, snippet: "in a file: «word»" },
    ],
  ]);
  expect(focus.session).toBe("main");
  nexus.answers["nexus/conversation/search"] = new NexusError("The disk is gone.", "failed");
  mock.answers.push("word");
  await run("nexus.searchSessions");
  expect(lastMessage()).toBe("The disk is gone.");
});

test("a conversation that is not kept is read from its program", async () => {
  await run("nexus.showTranscript", { folder: FOLDER, program: "codex", conversation: "r1", title: "Why?" });
  expect(transcripts).toEqual([[{ folder: FOLDER, session: "Why?", source: { program: "codex", id: "r1" } }]]);
});

test("a conversation is read at its end, a row of its history at its message, and forked from a turn", async () => {
  await run("nexus.showTranscript", { folder: FOLDER, session: "plan" });
  focus.setSession("plan");
  await run("nexus.showTranscript", { folder: FOLDER, message: 3 });
  focus.setAgent("checker");
  nexus.answers["nexus/agent/get"] = { session: "agent:checker" };
  await run("nexus.showTranscript");
  expect(transcripts).toEqual([
    [{ folder: FOLDER, session: "plan" }, {}],
    [{ folder: FOLDER, session: "plan" }, { position: 3 }],
    [{ folder: FOLDER, session: "agent:checker" }, {}],
  ]);
  nexus.answers["nexus/session/fork"] = {};
  mock.answers.push("plan B");
  await run("nexus.forkSession", { folder: FOLDER, session: "main", turn: "t-2" });
  expect(lastAsked()).toEqual([
    "nexus/session/fork",
    { workspaceFolder: FOLDER, session: "main", to: "plan B", turn: "t-2" },
  ]);
});

test("one that is deleted is not looked at any more", async () => {
  nexus.answers["nexus/session/delete"] = { session: "plan" };
  focus.setSession("plan");
  mock.answers.push("Delete");
  await run("nexus.deleteSession", { session: "plan" });
  expect(focus.session).toBe("main");
});

test("the picker offers main too, though nothing was said in it yet; also of an older server", async () => {
  nexus.answers["nexus/conversation/list"] = new NexusError("Unknown.", "method-not-found");
  mock.answers.push((item: { session: string }) => item.session === "plan");
  await run("nexus.switchSession");
  expect(mock.picks[0]).toMatchObject([
    { label: "$(check) main" },
    { label: "plan", description: "2 turns · 5 messages · ≈ 79 tokens" },
  ]);
  expect(focus.session).toBe("plan");
});

test("the picker has conversations of other programs, which are read", async () => {
  const lastTurn = new Date().toISOString();
  const codex = { program: "codex", programTitle: "Codex", id: "c1", title: "Fix it", lastTurn, tokens: 900 };
  const own = { program: "nexus", programTitle: "Nexus", id: "t1", lastTurn, kept: true, thread: "t" };
  nexus.answers["nexus/conversation/list"] = { conversations: [own, codex], total: {}, failures: [] };
  mock.answers.push(({ label }: { label: string }) => label === "Fix it");
  await run("nexus.switchSession");
  const items = mock.picks[0] as { label: string; description: string }[];
  expect(items.map(({ label }) => label)).toEqual(["$(check) main", "plan", "Read only", "Fix it"]);
  expect(items[3]?.description).toMatch(/^Codex · 900 tokens · not kept · /);
  expect(focus.session).toBe("main");
  expect(transcripts).toEqual([[{ folder: FOLDER, session: "Fix it", source: { program: "codex", id: "c1" } }]]);
});

test("a compaction shows its receipt, and its undo takes back that one", async () => {
  nexus.answers["nexus/session/compact"] = { compaction: "3f2a", receipt: RECEIPT, usage: usageOf([]) };
  nexus.answers["nexus/session/undoCompaction"] = { session: "main", usage: usageOf([{ tokens: 2_225 }]) };
  const counter = { name: "estimate", exact: false };
  nexus.answers["nexus/context/usage"] = usageOf([{ tokens: 2_325 }], { counter });
  mock.answers.push("Undo");
  await run("nexus.compact");
  await vi.waitFor(() => expect(mock.messages).toHaveLength(2));
  expect(mock.messages.map((one) => one.text)).toEqual([
    '"main": 21 messages became a summary by extractive, 1,675 → 535 tokens; lost: 3 paths.',
    'The messages of "main" are back: ≈ 2,325 tokens.',
  ]);
  expect(nexus.asked.slice(-2)).toEqual([
    ["nexus/session/undoCompaction", { workspaceFolder: FOLDER, session: "main", compaction: "3f2a" }],
    ["nexus/context/usage", { workspaceFolder: FOLDER, session: "main", nextTurn: NEXT_TURN }],
  ]);
});

test("a receipt is shown of the compaction that is named, else of the conversation's last one", async () => {
  nexus.answers["nexus/session/compact"] = { compaction: "3f2a", receipt: RECEIPT, usage: usageOf([]) };
  nexus.answers["nexus/session/receipt"] = { session: "plan", receipt: { ...RECEIPT, id: "last" }, inForce: true };
  mock.answers.push("Show Receipt");
  await run("nexus.compact");
  await vi.waitFor(() => expect(shown).toHaveLength(1));
  await run("nexus.showReceipt", { folder: FOLDER, session: "plan" });
  expect(shown).toEqual([
    { kind: "receipt", folder: FOLDER, session: "main", compaction: "3f2a" },
    { kind: "receipt", folder: FOLDER, session: "plan", compaction: "last" },
  ]);
});

test("a document that cannot be read is a message, with what to do", async () => {
  show = async () => {
    throw new NexusError("The server ended.", "not-ready");
  };
  mock.answers.push(undefined, { as: "request" }); // no button of the first message, then a kind of request
  for (const id of ["nexus.showPrompt", "nexus.showRequest", "nexus.showEffectiveConfig"]) await run(id);
  expect(shown).toHaveLength(3);
  expect(mock.messages.map(({ level, text }) => [level, text])).toEqual(
    shown.map(() => ["error", "The server ended."]),
  );
});

test("a receipt says what is lost, listed or not", () => {
  const text = receiptText("main", RECEIPT, true);
  expect(text).toContain("### Paths (3)\n\n- `a'b.py`\n- … 2 more");
  expect(text).toContain("- state: in force\n");
  expect(text).toContain("- failed before: editor: no model");
  expect(text).not.toContain("Errors");
  const whole = { ...RECEIPT, lost: { ...RECEIPT.lost, counts: {}, paths: [] } };
  expect(lossText(whole)).toBe("nothing that matters is lost");
  expect(changeText({ ...whole, summarizer: "editor", model: "gpt-4.1" })).toContain("by gpt-4.1, ");
  expect(receiptText("main", whole, false)).toContain("Nothing that matters.");
});

test("while an agent is viewed, its conversation is meant; who chooses another one views it no more", async () => {
  focus.setAgent("reviewer");
  nexus.answers["nexus/agent/get"] = { agentId: "reviewer", session: "agent:reviewer" };
  nexus.answers["nexus/session/compact"] = { compaction: "3f2a", receipt: RECEIPT, usage: usageOf([]) };
  nexus.answers["nexus/session/undoCompaction"] = { session: "agent:reviewer", usage: usageOf([]) };
  await run("nexus.compact");
  expect(lastAsked()).toEqual(["nexus/session/compact", { workspaceFolder: FOLDER, session: "agent:reviewer" }]);
  await run("nexus.undoCompaction");
  const undone = { workspaceFolder: FOLDER, session: "agent:reviewer" };
  expect(nexus.asked.at(-2)).toEqual(["nexus/session/undoCompaction", undone]);
  await run("nexus.compact", { session: "plan" });
  expect(lastAsked()).toEqual(["nexus/session/compact", { workspaceFolder: FOLDER, session: "plan" }]);
  await run("nexus.switchSession", { folder: FOLDER, session: "plan" });
  expect([focus.session, focus.agent]).toEqual(["plan", undefined]);
});

test("a view is chosen by its reason, or chooses itself; a conversation leads back to Nexus", async () => {
  views = VIEWS;
  nexus.answers["nexus/view/list"] = views;
  const shownLabels = () => (mock.picks.at(-1) as { label: string }[]).map(({ label }) => label);
  const choose = (title: string) => mock.answers.push(({ label }: { label: string }) => label.endsWith(title));
  choose("Codex");
  await run("nexus.chooseView");
  const items = mock.picks.at(-1) as { label: string; description: string }[];
  expect(items.slice(0, 3).map(({ label, description }) => [label, description])).toEqual([
    ["$(check) Automatic", "Claude Code: last used here yesterday"],
    ["Claude Code", "last used here yesterday"],
    ["Nexus", ".nexus3 is here"],
  ]);
  expect(focus.assistant).toBe("codex");
  await run("nexus.showPrompt");
  expect(shown.at(-1)).toEqual({ kind: "prompt", folder: FOLDER, assistant: "codex" });
  choose("Automatic");
  await run("nexus.chooseView");
  expect(shownLabels()).toContain("$(check) Codex");
  expect([focus.view?.name, focus.view?.reason]).toEqual(["claude-code", "last used here yesterday"]);
  await run("nexus.switchSession", { folder: FOLDER, session: "plan" });
  expect([focus.session, focus.assistant]).toEqual(["plan", undefined]);
});

test("an undo that fails is said", async () => {
  nexus.answers["nexus/session/compact"] = { compaction: "3f2a", receipt: RECEIPT, usage: usageOf([]) };
  nexus.answers["nexus/session/undoCompaction"] = new NexusError("The ledger is busy.", "ledger-busy");
  mock.answers.push("Undo");
  await run("nexus.compact");
  await vi.waitFor(() => expect(lastMessage()).toBe("The ledger is busy."));
});

test("what the daemon refuses is said; without a server the way is a restart", async () => {
  nexus.answers["nexus/session/compact"] = new NexusError("All messages are new.", "nothing-to-compact");
  await run("nexus.compact");
  expect(mock.messages).toEqual([{ level: "error", text: "All messages are new.", items: ["Show Output"] }]);
  nexus.answers["nexus/session/compact"] = new NexusError("No Python.", "not-ready");
  mock.answers.push("Restart");
  await run("nexus.compact");
  expect(nexus.restarts).toBe(1);
  nexus.answers["nexus/session/compact"] = new NexusError("Cancelled.", "cancelled");
  await run("nexus.compact");
  expect(mock.messages).toHaveLength(2);
});

test.each([
  ["plan", "already exists"],
  ["", "Type a name"],
  ["a\nb", "one line"],
  ["new", undefined],
])("the name %j: %s", (name, wrong) => {
  const said = wrongName(name, new Set(["plan"]));
  if (wrong === undefined) expect(said).toBeUndefined();
  else expect(said).toContain(wrong);
});

test("an agent is spawned where the user says, as a child of the menu's agent", async () => {
  nexus.answers["nexus/agent/list"] = {
    agents: [{ agentId: "api", cwd: "/w/a/api", role: "", depth: 0, session: "s", usage: usageOf([]) }],
  };
  nexus.answers["nexus/agent/spawn"] = { agentId: "api-2", session: "s2", usage: usageOf([{ tokens: 500 }]) };
  nexus.answers["nexus/context/usage"] = usageOf([{ tokens: 600 }]);
  mock.answers.push([vscode.Uri.file("/w/a/api")], "api-2", { label: "manager" }, "", "View as");
  await run("nexus.spawnAgent", { agent: "api" });
  await vi.waitFor(() => expect(focus.agent).toBe("api-2"));
  expect(nexus.asked.slice(-2)).toEqual([
    [
      "nexus/agent/spawn",
      { workspaceFolder: FOLDER, agentId: "api-2", cwd: "file:///w/a/api", role: "manager", parent: "api" },
    ],
    ["nexus/context/usage", { workspaceFolder: FOLDER, agent: "api-2", nextTurn: NEXT_TURN }],
  ]);
  expect(lastMessage()).toBe("api-2 is there: 600 tokens, 0.3 % of its window.");
  nexus.answers["nexus/context/usage"] = new NexusError("It has ended.", "unknown-agent");
  mock.answers.push((item: { label: string }) => item.label === "You");
  await run("nexus.viewAs");
  expect(mock.picks.at(-1)).toMatchObject([{ label: "You" }, { label: "api", description: "0 tokens" }]);
  expect(focus.agent).toBeUndefined();
});

test("an agent that starts while the list is open can be viewed", async () => {
  const usage = usageOf([]);
  nexus.answers["nexus/context/usage"] = usage;
  nexus.answers["nexus/agent/list"] = { agents: [] };
  mock.answers.push((item: { label: string }) => item.label === "late");
  const viewing = run("nexus.viewAs");
  await vi.waitFor(() => expect(mock.picks.at(-1)).toHaveLength(1));
  nexus.answers["nexus/agent/list"] = { agents: [{ agentId: "late", role: "worker", cwd: "/w", usage }] };
  nexus.agents.fire({ workspaceFolder: FOLDER, agentId: "late", reason: "spawned" });
  await viewing;
  expect([mock.picks.at(-1), focus.agent]).toMatchObject([[{ label: "$(check) You" }, { label: "late" }], "late"]);
});

test("an agent that ends is not viewed any more, nor are those that end with it", async () => {
  nexus.answers["nexus/agent/dispose"] = { disposed: ["api-2", "api"] };
  focus.setAgent("api-2");
  mock.answers.push("Dispose");
  await run("nexus.disposeAgent", { agent: "api" });
  expect(lastAsked()).toEqual(["nexus/agent/dispose", { workspaceFolder: FOLDER, agentId: "api" }]);
  expect(focus.agent).toBeUndefined();
});

test("the selection is counted as the folder's model counts", async () => {
  nexus.answers["nexus/context/usage"] = usageOf([]);
  nexus.answers["nexus/tokens/count"] = { encoding: "o200k_base", exact: true, counts: [14], total: 14 };
  const document = { uri: vscode.Uri.file("/w/a/x.md"), getText: (range?: unknown) => (range ? "selected" : "all") };
  const selection = { isEmpty: false };
  Object.assign(vscode.window, { activeTextEditor: { document, selection } });
  await run("nexus.countSelection");
  expect(lastAsked()).toEqual(["nexus/tokens/count", { texts: ["selected"], model: "gpt-4.1" }]);
  expect(lastMessage()).toBe("The selection: 14 tokens (gpt-4.1, o200k_base).");
  await run("nexus.countSelection", vscode.Uri.file("/w/a/y.md"));
  expect(lastAsked()).toEqual(["nexus/tokens/count", { uris: ["file:///w/a/y.md"], model: "gpt-4.1" }]);
  vi.spyOn(vscode.workspace, "openTextDocument").mockResolvedValueOnce({ getText: () => "from the web" } as never);
  await run("nexus.countSelection", vscode.Uri.parse("vscode-vfs://github/a/b/y.md"));
  expect(lastAsked()).toEqual(["nexus/tokens/count", { texts: ["from the web"], model: "gpt-4.1" }]);
});

test("templates are written by the daemon; what is there is left alone", async () => {
  nexus.answers["nexus/workspace/init"] = {
    created: [`${FOLDER}/.nexus3/config.json`],
    existing: [`${FOLDER}/.nexus3/NEXUS.md`],
  };
  await run("nexus.init");
  expect(String(mock.opened[0])).toBe(`${FOLDER}/.nexus3/NEXUS.md`);
  expect(lastMessage()).toBe("1 file written into .nexus3; 1 file there already, left alone.");
  await run("nexus.initGlobal");
  expect(ranWith).toEqual([["init", "--global"]]);
});

test.each([
  [undefined, {}],
  ["x", {}],
  [{ subject: { session: "a", folder: 3 } }, { session: "a" }],
  [{ agent: "a" }, { agent: "a" }],
])("the subject of %j is %j", (argument, subject) => {
  expect(subjectOf(argument)).toEqual(subject);
});

interface Step {
  readonly id: string;
  readonly description: string;
  readonly media: { readonly markdown?: string; readonly image?: Record<string, string>; readonly altText?: string };
}

interface Manifest {
  contributes: {
    commands: { command: string; enablement?: string; icon?: string | { light: string; dark: string } }[];
    menus: Record<string, { command: string; when: string; group?: string }[]>;
    keybindings: { command: string }[];
    configuration: { properties: Record<string, unknown> };
    walkthroughs: { steps: Step[] }[];
  };
  capabilities: { untrustedWorkspaces: { supported: string; restrictedConfigurations: string[] } };
}

const file = (path: string) => readFileSync(resolve(__dirname, "../..", path), "utf8");
const manifest = JSON.parse(file("package.json")) as Manifest;

test("only what needs nothing is offered where no folder is open; a server that is stopped is started by a command", () => {
  const free = manifest.contributes.commands.filter(({ enablement }) => enablement === undefined);
  expect(free.map(({ command }) => command).sort()).toEqual([
    "nexus.check",
    "nexus.countSelection",
    "nexus.initGlobal",
    "nexus.openGlobalConfig",
    "nexus.openPanel",
    "nexus.openWalkthrough",
    "nexus.restartServer",
    "nexus.showOutput",
    "nexus.showTrace",
  ]);
  const ready = manifest.contributes.commands.filter(({ enablement }) => enablement?.includes("nexus.state"));
  expect(ready.map(({ command }) => command)).toEqual(["nexus.panel.refresh"]);
});

test("every command of the palette is there, and every one that menus name is declared", () => {
  const declared = manifest.contributes.commands.map((one) => one.command);
  const own = [...mock.commands.keys()];
  expect(own.filter((id) => !declared.includes(id))).toEqual([]);
  const others = declared.filter((id) => !own.includes(id));
  expect(others.filter((id) => !/^nexus\.(panel|chat|transcript)\./.test(id))).toEqual([]);
  const named = [...Object.values(manifest.contributes.menus).flat(), ...manifest.contributes.keybindings];
  expect(named.map((one) => one.command).filter((id) => !declared.includes(id))).toEqual([]);
});

test("no command has the name of a request of the protocol", () => {
  const table = /export interface Requests \{(.*?)\n\}/s.exec(file("src/protocol/index.ts"))?.[1] ?? "";
  const requests = [...table.matchAll(/"(nexus\/[\w/]+)":/g)].map((match) => match[1]?.replaceAll("/", "."));
  expect(requests.length).toBeGreaterThan(20);
  expect([...mock.commands.keys()].filter((id) => requests.includes(id))).toEqual([]);
});

test("what names a program may not come from a folder that is not trusted", () => {
  const { untrustedWorkspaces } = manifest.capabilities;
  expect(untrustedWorkspaces).toMatchObject({
    supported: "limited",
    restrictedConfigurations: ["nexus.server.path", "nexus.server.shared", "nexus.python"],
  });
  for (const key of untrustedWorkspaces.restrictedConfigurations) {
    expect(manifest.contributes.configuration.properties).toHaveProperty([key]);
  }
});

test("what the walkthrough shows is there", () => {
  for (const { markdown, image, altText } of steps.map(({ media }) => media)) {
    if (markdown !== undefined) expect(file(markdown)).toMatch(/^# /);
    for (const path of Object.values(image ?? {})) expect(size(path)).toBeLessThan(100_000);
    if (image)
      expect([Object.keys(image), altText?.length]).toEqual([["dark", "light", "hc", "hcLight"], expect.any(Number)]);
  }
  const [first] = steps;
  expect([first?.id, first?.media.image?.dark]).toEqual(["panel", "walkthrough/panel-dark.png"]);
});

const steps = manifest.contributes.walkthroughs.flatMap((one) => one.steps);
const size = (path: string) => statSync(resolve(__dirname, "../..", path)).size;

test("every command that the walkthrough names is there", () => {
  const links = steps.flatMap(({ description }) =>
    [...description.matchAll(/\(command:([\w.]+)/g)].map(([, id]) => id),
  );
  const declared = manifest.contributes.commands.map(({ command }) => command);
  expect(links.filter((id) => !declared.includes(id ?? ""))).toEqual(["workbench.action.chat.open"]);
  const taught = file("walkthrough/chat.md").matchAll(/^- `\/(\w+)/gm);
  expect([...taught].map(([, name]) => name)).toEqual(chatCommands.map(({ name }) => name));
});

const chatCommands = (
  JSON.parse(file("package.json")) as { contributes: { chatParticipants: { commands: { name: string }[] }[] } }
).contributes.chatParticipants.flatMap(({ commands }) => commands);

test("an icon of our own has one colour for each kind of theme, as the editor's icons have", () => {
  const icon = manifest.contributes.commands.find(({ command }) => command === "nexus.showPrompt")?.icon;
  expect(icon).toEqual({ light: "media/prompt-light.svg", dark: "media/prompt-dark.svg" });
  const colours = (path: string) => [...new Set(file(path).match(/#[\dA-F]{6}/gi))];
  expect([colours("media/prompt-light.svg"), colours("media/prompt-dark.svg")]).toEqual([["#424242"], ["#C5C5C5"]]);
  expect(file("media/prompt-dark.svg")).toContain('width="16" height="16" viewBox="0 0 16 16"');
});

test("what stands beside a row stands in its menu, too: the keyboard reaches no other place", () => {
  const items = manifest.contributes.menus["view/item/context"] ?? [];
  const inline = items.filter(({ group }) => group?.startsWith("inline"));
  const inMenu = items.filter(({ group }) => !group?.startsWith("inline"));
  expect(inline.length).toBeGreaterThan(3);
  const missing = inline.filter(
    (one) => !inMenu.some(({ command, when }) => command === one.command && when === one.when),
  );
  expect(missing).toEqual([]);
});

test("the lock file is of the dependencies that the server declares, and names no host", () => {
  const project = file("../pyproject.toml");
  const lists = [/^dependencies = \[\n([^\]]*)\]/m, /^mcp = \[([^\]]*)\]/m];
  const list = lists.map((pattern) => pattern.exec(project)?.[1] ?? "").join();
  const wanted = [...list.matchAll(/"([^"]+)"/g)].map((found) => found[1]).join(", ");
  const lock = file("server/requirements.txt");
  expect(lock.split("\n")[1]).toBe(`# ${wanted}`);
  expect(lock).not.toMatch(/https?:|--index|--find-links/);
  const pinned = lock.split(/\n(?=[a-z])/i).slice(1);
  expect(pinned.length).toBeGreaterThan(20);
  expect(pinned.filter((one) => !/^[\w.-]+==\S+[\s\S]*--hash=sha256:[0-9a-f]{64}/.test(one))).toEqual([]);
});
