import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type * as vscode from "vscode";
import type { Focus, Nexus, ServerState } from "../../src/nexus";
import { registerPanel } from "../../src/panel";
import type { FromPage, ToPage } from "../../src/panel/messages";
import type { Node } from "../../src/panel/node";
import { type Element, tree } from "../../src/panel/tree";
import type { ContextDidChange, Requests } from "../../src/protocol";
import { fakeDocuments, fakeNextTurn } from "./nexus";
import { example, FOLDER, usageOf, VIEWS } from "./panel-examples";
import { EventEmitter, mock, Uri, window } from "./vscode";

type Provider = vscode.TreeDataProvider<Element>;

/** A view of the editor, as far as the panel sees it. */
function viewOf(provider: Provider) {
  const fired: (Element | Element[] | undefined)[] = [];
  provider.onDidChangeTreeData?.((what) => fired.push(what as Element | Element[] | undefined));
  const children = (element?: Element) => provider.getChildren(element) as Element[];
  const item = (element: Element) => provider.getTreeItem(element) as vscode.TreeItem;
  return { provider, fired, children, item };
}

const views = new Map<string, ReturnType<typeof viewOf>>();
const trees = new Map<string, { message?: string }>();
let revealed: [view: string, id: string][] = [];
let resolveWindow: ((view: vscode.WebviewView) => void) | undefined;

beforeEach(() => {
  mock.reset();
  views.clear();
  revealed = [];
  vi.spyOn(window, "createTreeView").mockImplementation(((id: string, options: { treeDataProvider: Provider }) => {
    views.set(id, viewOf(options.treeDataProvider));
    const never = new EventEmitter<unknown>().event;
    const reveal = async (element: Element) => void revealed.push([id, element.id]);
    const made = { dispose() {}, visible: true, message: "", onDidChangeVisibility: never, reveal };
    trees.set(id, made);
    return made;
  }) as unknown as typeof window.createTreeView);
  vi.spyOn(window, "registerWebviewViewProvider").mockImplementation(((
    _id: string,
    provider: { resolveWebviewView(view: vscode.WebviewView): void },
  ) => {
    resolveWindow = (view) => provider.resolveWebviewView(view);
    return { dispose() {} };
  }) as unknown as typeof window.registerWebviewViewProvider);
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const view = (id: string) => views.get(id) ?? expect.fail(`there is no view ${id}`);

describe("a tree", () => {
  const leaf = (id: string, description: string): Node => ({
    id,
    label: id,
    description,
    tooltip: () => `about ${id}`,
    command: "nexus.switchSession",
    subject: { session: id },
  });

  it("tells the editor of what changed alone, by elements that stay the same", () => {
    const shown = tree("nexus.test");
    const { fired, children, item } = view("nexus.test");
    shown.show([leaf("a", "1"), leaf("b", "1")]);
    expect(fired).toEqual([undefined]);
    const [a, b] = children();
    shown.show([leaf("a", "1"), leaf("b", "2")]);
    expect(fired.slice(1)).toEqual([[b]]);
    expect(children()).toEqual([a, b]);
    expect(children()[1]).toBe(b);
    expect(b && item(b).description).toBe("2");
    shown.show([leaf("a", "1"), leaf("b", "2")]);
    expect(fired.length).toBe(2);
  });

  it("shows figures first where there is little room, and greys what is from before", () => {
    const shown = tree("nexus.test");
    const { fired, children, item } = view("nexus.test");
    const nodes: Node[] = [
      { ...leaf("a", "1,234 · 0.1 %"), figure: "1,234", icon: { name: "file", colour: "nexus.tools" } },
    ];
    const face = () => {
      const [one] = children();
      if (!one) return expect.fail("there is no element");
      const { label, description, resourceUri, iconPath } = item(one);
      return [label, description, resourceUri?.scheme, (iconPath as vscode.ThemeIcon | undefined)?.color?.id];
    };
    shown.show(nodes);
    expect(face()).toEqual(["a", "1,234 · 0.1 %", undefined, "nexus.tools"]);
    shown.show(nodes, { stale: false, narrow: true });
    expect(face()).toEqual(["1,234", "a", undefined, "nexus.tools"]);
    shown.show(nodes, { stale: true, narrow: false });
    expect(face()).toEqual(["a", "1,234 · 0.1 %", "nexus-stale", "disabledForeground"]);
    shown.show(nodes);
    expect(face()).toEqual(["a", "1,234 · 0.1 %", undefined, "nexus.tools"]);
    expect(fired).toEqual([undefined, undefined, undefined, undefined]);
  });

  it("gives commands what its nodes are about, and tooltips when they are asked for", () => {
    const shown = tree("nexus.test");
    const { children, item, provider } = view("nexus.test");
    shown.show([{ ...leaf("a", "1"), children: [leaf("b", "1")] }]);
    const [a] = children();
    const [b] = children(a);
    if (!a || !b) return expect.fail("there are two elements");
    expect(item(b).command?.arguments?.[0]).toBe(b);
    expect(b).toMatchObject({ id: "b", session: "b" });
    expect(provider.getParent?.(b)).toBe(a);
    expect(item(b).tooltip).toBeUndefined();
    const resolved = provider.resolveTreeItem?.(item(b), b, {} as vscode.CancellationToken) as vscode.TreeItem;
    expect((resolved.tooltip as vscode.MarkdownString).value).toBe("about b");
  });
});

/** The panel with a daemon that answers with the recorded examples, and a page. */
function panel() {
  const context = new EventEmitter<ContextDidChange>();
  const focused = new EventEmitter<void>();
  const states = new EventEmitter<ServerState>();
  const never = new EventEmitter<never>().event;
  const answers = new Map<string, unknown>([["nexus/agent/list", { agents: [] }]]);
  const nexus = {
    state: "ready" as ServerState,
    detail: "",
    onDidChangeState: states.event,
    become(state: ServerState, detail = "") {
      Object.assign(nexus, { state, detail });
      states.fire(state);
    },
    onDidChangeContext: context.event,
    onDidChangeSession: never,
    onDidChangeAgent: never,
    onDidChangeAssistant: never,
    onDidChangeServer: never,
    request: async <M extends keyof Requests>(method: M) => answers.get(method) ?? example(method),
  };
  const focus = {
    folder: Uri.parse(FOLDER),
    session: "main",
    agent: undefined as string | undefined,
    assistant: undefined as string | undefined,
    views: VIEWS.views,
    get view() {
      return VIEWS.views.find(({ name }) => name === (focus.assistant ?? "nexus")) ?? VIEWS.views[0];
    },
    onDidChange: focused.event,
    setAgent(agent: string | undefined) {
      focus.agent = agent;
      focused.fire();
    },
    pickView(assistant: string | undefined) {
      focus.assistant = assistant;
      focused.fire();
    },
  };
  const extension = { extensionUri: Uri.parse("file:///extension") } as unknown as vscode.ExtensionContext;
  const documents = fakeDocuments();
  const [asNexus, asFocus] = [nexus as unknown as Nexus, focus as unknown as Focus];
  const registered = registerPanel(extension, asNexus, asFocus, fakeNextTurn(), documents);
  return { context, focus, nexus, registered, answers, documents };
}

function openPage() {
  const received = new EventEmitter<FromPage>();
  const visibility = new EventEmitter<void>();
  const posted: ToPage[] = [];
  const made = {
    visible: true,
    onDidChangeVisibility: visibility.event,
    onDidDispose: new EventEmitter<void>().event,
    webview: {
      options: {},
      html: "",
      cspSource: "https://page",
      asWebviewUri: (uri: unknown) => uri,
      onDidReceiveMessage: received.event,
      postMessage: async (message: ToPage) => posted.push(message),
    },
  };
  resolveWindow?.(made as unknown as vscode.WebviewView);
  const hide = (visible: boolean) => {
    made.visible = visible;
    visibility.fire();
  };
  return { posted, html: () => made.webview.html, say: (message: FromPage) => received.fire(message), hide };
}

/** How the first row of a tree looks: words, and whether it is greyed. */
function firstRow(id: string): [label: unknown, stale: boolean] | undefined {
  const [first] = view(id).children();
  const item = first && view(id).item(first);
  return item && [item.label, item.resourceUri?.scheme === "nexus-stale"];
}

const kinds = (posted: readonly ToPage[]) =>
  posted.map(({ model }) => (model.kind === "notice" ? model.title : model.used));

describe("the panel", () => {
  it("shows the figures on the page once it is ready, and every change at once", async () => {
    const { context, registered, answers } = panel();
    const { posted, html, say } = openPage();
    expect(html()).toContain("file:///extension/dist/panel.js");
    await vi.advanceTimersByTimeAsync(20);
    expect(posted).toEqual([]);
    say({ type: "ready" });
    expect(kinds(posted)).toEqual(["618"]);
    const usage = usageOf([{ category: "system", label: "x", tokens: 777, exact: true }]);
    answers.set("nexus/context/usage", usage);
    context.fire({ workspaceFolder: FOLDER, revision: 2, reason: "instructions", usage });
    await vi.advanceTimersByTimeAsync(5);
    expect(kinds(posted)).toEqual(["618", "777"]);
    await vi.advanceTimersByTimeAsync(1_000);
    registered.dispose();
  });

  it("says why it lists no conversation of a program", async () => {
    const { context, registered, answers } = panel();
    await vi.advanceTimersByTimeAsync(1_000);
    expect(trees.get("nexus.sessions")?.message).toBe("");
    const notice = "The setting views.conversations is off.";
    answers.set("nexus/assistant/sessions", { sessions: [], failures: [], notice });
    context.fire({ workspaceFolder: FOLDER, revision: 2, reason: "config", usage: usageOf([]) });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(trees.get("nexus.sessions")?.message).toBe(notice);
    registered.dispose();
  });

  it("posts nothing to a page that is hidden, and what is new when it comes back", async () => {
    const { context, registered, answers } = panel();
    const { posted, say, hide } = openPage();
    say({ type: "ready" });
    await vi.advanceTimersByTimeAsync(1_000);
    const before = posted.length;
    hide(false);
    const usage = usageOf([{ category: "system", label: "x", tokens: 777, exact: true }]);
    answers.set("nexus/context/usage", usage);
    context.fire({ workspaceFolder: FOLDER, revision: 2, reason: "instructions", usage });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(posted.length).toBe(before);
    hide(true);
    say({ type: "ready" });
    await vi.advanceTimersByTimeAsync(1_000);
    expect(kinds(posted.slice(before)).at(-1)).toBe("777");
    registered.dispose();
  });

  it("keeps the figures, greyed, while a server is on its way, until the next one answers", async () => {
    const { nexus, registered } = panel();
    const { posted, say } = openPage();
    say({ type: "ready" });
    await vi.advanceTimersByTimeAsync(1_000);
    const stale = () => {
      const last = posted.at(-1)?.model;
      return last?.kind === "window" ? [last.used, last.stale] : [last?.title];
    };
    expect([stale(), firstRow("nexus.rows")]).toEqual([
      ["618", undefined],
      ["System prompt", false],
    ]);
    nexus.become("finding", "Restarting the server");
    await vi.advanceTimersByTimeAsync(20);
    expect([stale(), firstRow("nexus.rows"), firstRow("nexus.sessions")]).toEqual([
      ["618", "Restarting the server. The figures are from before."],
      ["System prompt", true],
      ["plan B", true],
    ]);
    nexus.become("ready");
    expect(stale()).toEqual(["618", "Restarting the server. The figures are from before."]); // nothing was answered yet
    await vi.advanceTimersByTimeAsync(1_000);
    expect([stale(), firstRow("nexus.rows"), firstRow("nexus.sessions")]).toEqual([
      ["618", undefined],
      ["System prompt", false],
      ["plan B", false],
    ]);
    registered.dispose();
  });

  it("says so when the next server fails, or does not answer", async () => {
    const { nexus, registered } = panel();
    const { posted, say } = openPage();
    say({ type: "ready" });
    await vi.advanceTimersByTimeAsync(1_000);
    nexus.become("starting", "Starting the server");
    nexus.become("failed", "No Python.");
    await vi.advanceTimersByTimeAsync(20);
    expect([kinds(posted).at(-1), firstRow("nexus.rows")]).toEqual(["Nexus could not start", undefined]);
    const { request } = nexus;
    nexus.request = () => Promise.reject(new Error("The ledger is broken."));
    nexus.become("ready");
    await vi.advanceTimersByTimeAsync(20);
    expect([kinds(posted).at(-1), firstRow("nexus.rows")]).toEqual(["The context could not be read", undefined]);
    nexus.request = request;
    registered.dispose();
  });

  it("leads from the legend to the first row of a part, and from a menu, too", async () => {
    const { registered } = panel();
    const { say } = openPage();
    await vi.advanceTimersByTimeAsync(20);
    say({ type: "reveal", part: "instructions" });
    say({ type: "reveal", part: "tools" });
    mock.commands.get("nexus.panel.showPart")?.({ webview: "nexus.window", part: "history" });
    await vi.advanceTimersByTimeAsync(20);
    expect(revealed).toEqual([
      ["nexus.rows", "row:system/Global Configuration"],
      ["nexus.rows", "row:system/MCP Servers"],
      ["nexus.rows", "category:history"],
    ]);
    registered.dispose();
  });

  it("shows a file in the layers, and a row in the prompt where it stands", async () => {
    const { registered, documents } = panel();
    await vi.advanceTimersByTimeAsync(20);
    const source = (uri: string) => ({
      uri,
      range: { start: { line: 0, character: 0 }, end: { line: 0, character: 0 } },
    });
    await mock.commands.get("nexus.panel.revealFile")?.(source(`${FOLDER}/.nexus3/NEXUS.md`));
    expect(revealed).toEqual([["nexus.layers", `file:local:instructions:${FOLDER}/.nexus3/NEXUS.md`]]);
    await mock.commands.get("nexus.panel.showInPrompt")?.({ source: source(`${FOLDER}/.nexus3/docs/threats.md`) });
    const [about, , selection] = documents.opened[0] ?? [];
    expect(about).toEqual({ kind: "prompt", folder: FOLDER });
    const [fragment] = example("nexus/context/preview").fragments.filter((one) =>
      one.source?.uri.endsWith("threats.md"),
    );
    expect(selection?.start).toEqual(fragment?.range.start);
    registered.dispose();
  });

  it("acts on the MCP server that a button of the page is about, and leads to the rows and the line of servers", async () => {
    const { answers, registered } = panel();
    const [entry] = example("nexus/config/effective").mcpServers;
    const failed = { ...entry, transport: "stdio", state: "failed", hash: "h", error: "It ended.", log: "file:///log" };
    answers.set("nexus/mcp/servers", { servers: [failed], tokens: 0 });
    const { posted, say } = openPage();
    say({ type: "ready" });
    await vi.advanceTimersByTimeAsync(20);
    const { model } = posted.at(-1) ?? expect.fail("nothing was posted");
    expect(model.kind === "window" && model.remarks[0]?.action).toMatchObject({
      id: "showServerLog",
      server: "tickets",
    });
    mock.executed.length = 0;
    say({ type: "act", id: "showServerLog", server: "tickets" });
    expect(mock.executed).toEqual([["nexus.showServerLog", { folder: FOLDER, server: "tickets" }]]);
    say({ type: "act", id: "showServers" });
    await vi.advanceTimersByTimeAsync(20);
    expect(revealed).toEqual([["nexus.layers", "servers"]]);
    const [row] = view("nexus.layers")
      .children()
      .flatMap((one) => (one.id === "servers" ? view("nexus.layers").children(one) : []));
    expect(row && view("nexus.layers").item(row).contextValue).toBe("server.on.start.log.revoke");
    say({ type: "open", uri: failed.uri ?? "", line: 2 });
    say({ type: "open", uri: "file:///etc/passwd", line: 0 });
    expect(mock.opened.map(String)).toEqual([failed.uri]);
    registered.dispose();
  });

  it("shows figures first where the page says that it is narrow", async () => {
    const { registered } = panel();
    const { say } = openPage();
    await vi.advanceTimersByTimeAsync(20);
    say({ type: "width", narrow: true });
    await vi.advanceTimersByTimeAsync(20);
    expect(firstRow("nexus.rows")?.[0]).toBe("550");
    say({ type: "width", narrow: false });
    await vi.advanceTimersByTimeAsync(20);
    expect(firstRow("nexus.rows")?.[0]).toBe("System prompt");
    registered.dispose();
  });

  it("fills the trees, and runs what the page's buttons stand for, nothing else", async () => {
    const { focus, registered } = panel();
    const { say } = openPage();
    await vi.advanceTimersByTimeAsync(20);
    const labels = (id: string) =>
      view(id)
        .children()
        .map((one) => view(id).item(one).label);
    expect(labels("nexus.rows")).toEqual(["System prompt", "History"]);
    expect(labels("nexus.layers")).toContain("This folder");
    expect(labels("nexus.sessions")).toEqual(["plan B", "plan", "main"]);
    expect(labels("nexus.agents")).toEqual([]);
    mock.executed.length = 0;
    say({ type: "act", id: "compact" });
    say({ type: "act", id: "workbench.action.quit" as "compact" });
    say({ type: "act", id: "constructor" as "compact" });
    expect(mock.executed).toEqual([["nexus.compact"]]);
    focus.setAgent("reviewer");
    expect(mock.context.get("nexus.viewingAs")).toBe(true);
    say({ type: "act", id: "stopViewingAs" });
    expect(focus.agent).toBeUndefined();
    registered.dispose();
    expect([...mock.commands.keys()]).toEqual([]);
  });
});
