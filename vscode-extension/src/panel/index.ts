/**
 * The context panel: the window, its rows, the layers, the conversations and the agents of a folder.
 *
 * `feed` knows what is, the models say how it looks (`window`, `rows`, `layers`, `sessions`, `agents`), and
 * `windowView` and `tree` show it. Here they are put together: the window first, the trees in the next turn of the
 * loop, so that what a change costs is on its way before thousands of rows are compared.
 */
import { homedir } from "node:os";
import * as vscode from "vscode";
import { guarded } from "../commands/commandContext";
import { type Documents, rangeOf } from "../documents";
import { placeIn } from "../documents/mappedText";
import { titleOf } from "../focus";
import { type Focus, isOnItsWay, type NextTurn, type Nexus } from "../nexus";
import type { Location } from "../protocol";
import { REMEDIES } from "../server/remedies";
import { agentNodes } from "./agents";
import { type Feed, feed, NEEDS, type View } from "./feed";
import { layerNodes } from "./layers";
import { liveNodes } from "./liveSession";
import type { Node } from "./node";
import { noticeOf, READING, troubleNotice } from "./notice";
import { nodeOfPart, rowTrees } from "./rows";
import { SERVERS } from "./servers";
import { PAGE, sessionNodes } from "./sessions";
import { type Element, staleDecorations, type Tree, tree } from "./tree";
import { type ActionId, type RunningSession, type ViewedAssistant, type WindowModel, windowModel } from "./window";
import { windowView } from "./windowView";
import { pathOf } from "./wording";

type TreeName = Exclude<View, "window">;
const TREES: readonly TreeName[] = ["rows", "layers", "sessions", "agents"];

/** What a button of the page does. */
const COMMANDS: Readonly<Partial<Record<ActionId, readonly [command: string, ...args: unknown[]]>>> = {
  openFolder: ["vscode.openFolder"],
  start: ["nexus.restartServer"],
  help: ["nexus.openWalkthrough"],
  init: ["nexus.init"],
  compact: ["nexus.compact"],
  undoCompaction: ["nexus.undoCompaction"],
  rebase: ["nexus.rebase"],
  check: ["nexus.check"],
  config: ["nexus.showEffectiveConfig"],
  switchSession: ["nexus.switchSession"],
  switchFolder: ["nexus.switchFolder"],
  pickModel: ["nexus.pickModel"],
  stopViewingAs: ["nexus.panel.stopViewingAs"],
  chooseView: ["nexus.chooseView"],
  retry: ["nexus.panel.refresh"],
  approveServer: ["nexus.approveServer"],
  loginServer: ["nexus.loginServer"],
  startServer: ["nexus.startServer"],
  showServerLog: ["nexus.showServerLog"],
  ...remedyCommands(),
};

function remedyCommands(): Partial<Record<ActionId, readonly [command: string, ...args: unknown[]]>> {
  const entries = Object.entries(REMEDIES).map(([id, { command, args = [] }]) => [id, [command, ...args]] as const);
  return Object.fromEntries(entries);
}

/** What the trees remember from one time to the next. */
interface Shape {
  /** How many conversations show. */
  sessions: number;
  /** Whether the side bar has little room. */
  narrow: boolean;
  readonly rows: ReturnType<typeof rowTrees>;
}

export function registerPanel(
  context: vscode.ExtensionContext,
  nexus: Nexus,
  focus: Focus,
  nextTurn: NextTurn,
  documents: Documents,
): vscode.Disposable {
  const trees = Object.fromEntries(TREES.map((name) => [name, tree(`nexus.${name}`)])) as Record<TreeName, Tree>;
  const known = feed(nexus, focus, nextTurn, show);
  const shape: Shape = { sessions: PAGE, narrow: false, rows: rowTrees() };
  const due = new Set<TreeName>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const told = new Map<string, boolean>();
  /** Which row in the layers is to be shown as soon as it is there. */
  let awaited: ((element: Element) => boolean) | undefined;

  const page = windowView(context.extensionUri, {
    onVisible: (visible) => look("window", visible),
    onMessage(message) {
      if (message.type === "act") act(message.id, message.server);
      else if (message.type === "width") {
        shape.narrow = message.narrow;
        show(TREES);
      } else if (message.type === "open") openListed(message);
      else revealPart(message.part);
    },
  });

  /** A file of the table of readers, the line of a problem, or the entry of an MCP server. */
  function openListed({ uri, line }: { readonly uri: string; readonly line: number }): void {
    const files: readonly { readonly uri: string }[] = [
      ...(known.get("readers").value?.files ?? []),
      ...(known.get("layers").value?.problems ?? []),
      ...(known.get("servers").value?.servers ?? []),
    ];
    if (!files.some((file) => file.uri === uri)) return;
    const start = { line, character: 0 };
    void openSource({ source: { uri, range: { start, end: start } } });
  }

  function revealPart(part: string): void {
    showTree(trees.rows, known, "rows", shape); // it may never have been opened
    const usage = known.get("usage").value?.usage;
    if (usage) void trees.rows.reveal(nodeOfPart(part, usage));
  }

  async function revealFile({ uri }: Location): Promise<void> {
    const end = `:${pathOf(uri)}`; // what is left out has a path alone
    await revealLayer((element) => element.source?.uri === uri || element.id.endsWith(end));
  }

  /** A row in the layers: they may never have been opened. */
  async function revealLayer(isIt: (element: Element) => boolean): Promise<void> {
    awaited = isIt;
    await vscode.commands.executeCommand("nexus.layers.focus");
    showTree(trees.layers, known, "layers", shape);
    await revealAwaited();
  }

  async function revealAwaited(): Promise<void> {
    if (awaited === undefined) return;
    const id = trees.layers.find(awaited);
    if (id === undefined) return;
    awaited = undefined;
    await trees.layers.reveal(id);
  }

  /** Where the text of a row or a file stands in the system prompt. */
  async function showInPrompt(element?: Element): Promise<void> {
    const { place } = known;
    if (!place || !element?.source) return;
    const { folder, agent, assistant } = place;
    const who = assistant !== undefined ? { assistant } : agent === undefined ? {} : { agent };
    const preview = await nexus.request("nexus/context/preview", { workspaceFolder: folder.uri, ...who });
    const range = placeIn(preview.fragments, element.source);
    await documents.show({ kind: "prompt", folder: folder.uri, ...who }, folder.name, range && rangeOf(range));
  }

  function act(id: ActionId, server: string | undefined): void {
    const running = runningSession(known);
    if (id === "viewRunning" && running) {
      void vscode.commands.executeCommand("nexus.chooseView", { assistant: running.session.assistant });
    }
    const source = known.get("usage").value?.usage.cache?.broke?.source;
    if (id === "cacheSource" && source) void openSource({ source });
    if (id === "showServers") void revealLayer((element) => element.id === SERVERS);
    const found = Object.hasOwn(COMMANDS, id) ? COMMANDS[id] : undefined;
    const about = server === undefined ? [] : [{ folder: known.place?.folder.uri, server }];
    if (found) void vscode.commands.executeCommand(...found, ...about);
  }

  function look(view: View, visible: boolean): void {
    known.look(view, visible);
    if (visible) show([view]);
  }

  function show(views: readonly View[]): void {
    for (const view of views) {
      if (view === "window") {
        const model = windowNow(known);
        if (model) page.show(model);
      } else due.add(view);
    }
    if (due.size > 0) timer ??= setTimeout(showTrees, 0);
    tellEditor("nexus.viewingAs", focus.agent !== undefined);
    tellEditor("nexus.viewingAssistant", focus.assistant !== undefined);
  }

  /** For the menus. */
  function tellEditor(key: string, value: boolean): void {
    if (told.get(key) !== value) void vscode.commands.executeCommand("setContext", key, value);
    told.set(key, value);
  }

  function showTrees(): void {
    timer = undefined;
    for (const name of due) if (trees[name].view.visible) showTree(trees[name], known, name, shape);
    due.clear();
    void revealAwaited();
  }

  const visibilities = TREES.map((name) => {
    const { view } = trees[name];
    const heard = view.onDidChangeVisibility(({ visible }) => look(name, visible));
    if (view.visible) look(name, true);
    return heard;
  });
  page.show(windowNow(known) ?? READING);

  return vscode.Disposable.from(
    new vscode.Disposable(() => clearTimeout(timer)),
    known,
    page,
    ...Object.values(trees),
    ...visibilities,
    staleDecorations(),
    vscode.commands.registerCommand("nexus.panel.openSource", openSource),
    vscode.commands.registerCommand("nexus.panel.openConversation", openConversation),
    vscode.commands.registerCommand("nexus.panel.revealFile", revealFile),
    vscode.commands.registerCommand(
      "nexus.panel.showInPrompt",
      guarded((element) => showInPrompt(element as Element | undefined)),
    ),
    vscode.commands.registerCommand("nexus.panel.showPart", (about?: { part?: unknown }) => {
      if (typeof about?.part === "string") revealPart(about.part);
    }),
    vscode.commands.registerCommand("nexus.panel.refresh", () => known.refresh()),
    vscode.commands.registerCommand("nexus.panel.stopViewingAs", () => focus.setAgent(undefined)),
    vscode.commands.registerCommand("nexus.panel.moreSessions", () => {
      shape.sessions += PAGE;
      show(["sessions"]);
    }),
  );
}

/** None: what is shown stays until there is something new. */
function windowNow(known: Feed): WindowModel | undefined {
  const { nexus, place } = known;
  const where = place !== undefined ? "here" : vscode.workspace.workspaceFolders?.length ? "elsewhere" : "none";
  const usage = known.get("usage");
  const stale = place !== undefined && usage.value && isOnItsWay(nexus.state) ? nexus.detail : undefined;
  const notice = stale === undefined ? noticeOf(nexus.state, nexus.detail, where, nexus.obstacle) : undefined;
  if (notice) return notice;
  if (usage.stale && stale === undefined) return undefined;
  if (!usage.value) return usage.trouble ? troubleNotice(usage.trouble) : READING;
  return windowModel({
    ...usage.value.scope,
    assistant: viewedAssistant(known, usage.value.scope.assistant),
    reason: known.focus.view?.reason,
    home: homedir(),
    usage: usage.value.usage,
    report: usage.value.report,
    running: runningSession(known),
    now: new Date(),
    layers: fresh(known, "layers"),
    config: fresh(known, "config"),
    servers: fresh(known, "servers"),
    compaction: known.compaction,
    trouble: stale === undefined ? usage.trouble : undefined,
    stale,
  });
}

function viewedAssistant(known: Feed, name: string | undefined): ViewedAssistant | undefined {
  if (name === undefined) return undefined;
  const info = known.get("assistants").value?.find((one) => one.name === name);
  const inUse = new Set(known.focus.views.filter((view) => view.inUse).map((view) => view.name));
  return { name, title: titleOf(known.focus, name), info, readers: fresh(known, "readers"), inUse };
}

/** The session that went on last of those of the programs that are not looked at. */
function runningSession(known: Feed): RunningSession | undefined {
  const viewed = known.place?.assistant;
  const session = fresh(known, "live")?.sessions.find(
    ({ parent, assistant }) => parent === undefined && assistant !== viewed,
  );
  return session && { session, title: titleOf(known.focus, session.assistant) };
}

function fresh<P extends Parameters<Feed["get"]>[0]>(known: Feed, part: P) {
  const one = known.get(part);
  return one.stale ? undefined : one.value;
}

function showTree(shown: Tree, known: Feed, name: TreeName, shape: Shape): void {
  const { view } = shown;
  const main = known.get(NEEDS[name][0] ?? "usage");
  const { place } = known;
  const ready = known.nexus.state === "ready" && place !== undefined;
  const stale = place !== undefined && main.value !== undefined && isOnItsWay(known.nexus.state);
  if ((ready || stale) && main.stale) return;
  const nodes = ready || stale ? nodesOf(known, name, shape) : undefined;
  view.description = stale ? "from before" : viewText(known, name);
  const notice = name === "sessions" && ready ? fresh(known, "live")?.notice : undefined;
  view.message = (ready && main.trouble) || (notice ?? "");
  if (nodes) shown.show(nodes, { stale, narrow: shape.narrow });
  else if (!ready || main.trouble) shown.show([]);
}

/** Whose view a tree is, where it is an agent's or another assistant's. */
function viewText(known: Feed, name: TreeName): string {
  const { nexus, place } = known;
  if (!place || nexus.state !== "ready" || name === "sessions") return "";
  if (place.assistant !== undefined) {
    return name === "agents" ? "" : titleOf(known.focus, place.assistant);
  }
  return place.agent === undefined ? "" : `as ${place.agent}`;
}

/** The nodes of a tree; none while nothing is known. */
function nodesOf(known: Feed, name: TreeName, shape: Shape): Node[] | undefined {
  const { place } = known;
  if (!place) return undefined;
  const folder = place.folder.uri;
  const home = homedir();
  const servers = place.assistant === undefined ? fresh(known, "config")?.mcpServers : undefined;
  switch (name) {
    case "rows": {
      const usage = known.get("usage").value?.usage;
      return usage && shape.rows({ usage, folder, home, servers: servers?.map((server) => server.name) ?? [] });
    }
    case "layers": {
      const layers = known.get("layers").value;
      const fragments = fresh(known, "preview")?.fragments;
      return (
        layers &&
        layerNodes({
          layers,
          folder,
          home,
          ...(fragments ? { fragments } : {}),
          ...(servers ? { servers } : {}),
          serverStates: fresh(known, "servers"),
        })
      );
    }
    case "sessions": {
      const all = known.get("sessions").value;
      if (!all) return undefined;
      const now = new Date();
      const titles = new Map(known.focus.views.map((view) => [view.name as string, view.title]));
      const running = fresh(known, "live")?.sessions;
      const live = liveNodes(running ?? [], { titles, viewed: place.assistant, now });
      const isKnown = running !== undefined || known.get("live").trouble !== undefined; // what runs has a row already
      const rows = sessionNodes({
        sessions: all,
        conversations: isKnown ? fresh(known, "conversations") : undefined,
        running: running ?? [],
        folder,
        home,
        current: place.session,
        shown: shape.sessions,
        now,
      });
      return [...live, ...rows];
    }
    case "agents": {
      const agents = known.get("agents").value;
      return agents && agentNodes({ agents, folder, viewed: place.agent });
    }
  }
}

/** The conversation of a row is looked at from now on, and can be read. */
async function openConversation(about?: Element): Promise<void> {
  await vscode.commands.executeCommand("nexus.switchSession", about);
  await vscode.commands.executeCommand("nexus.showTranscript", about);
}

/** Open a file and select what a row comes from. */
async function openSource(about?: Pick<Element, "source">): Promise<void> {
  const source = about?.source;
  if (!source) return;
  try {
    await vscode.window.showTextDocument(vscode.Uri.parse(source.uri, true), {
      selection: rangeOf(source.range),
      preview: true,
    });
  } catch (error) {
    void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
  }
}
