/**
 * The context panel: the window, its rows, the layers, the conversations and the agents of a folder.
 *
 * `feed` knows what is, the models say how it looks (`window`, `rows`, `layers`, `sessions`, `agents`), and
 * `windowView` and `tree` show it. Here they are put together: the window first, the trees in the next turn of the
 * loop, so that what a change costs is on its way before thousands of rows are compared.
 */
import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Focus, Nexus } from "../nexus";
import { rangeOf } from "../prompt";
import { REMEDIES } from "../remedies";
import { agentNodes } from "./agents";
import { type Feed, feed, NEEDS, type View } from "./feed";
import { layerNodes } from "./layers";
import type { Node } from "./node";
import { noticeOf, READING, troubleNotice } from "./notice";
import { categoryId, rowTrees } from "./rows";
import { PAGE, sessionNodes } from "./sessions";
import { type Element, type Tree, tree } from "./tree";
import { type ActionId, type WindowModel, windowModel } from "./window";
import { windowView } from "./windowView";

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
  check: ["nexus.check"],
  config: ["nexus.showEffectiveConfig"],
  switchSession: ["nexus.switchSession"],
  switchFolder: ["nexus.switchFolder"],
  stopViewingAs: ["nexus.panel.stopViewingAs"],
  retry: ["nexus.panel.refresh"],
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
  readonly rows: ReturnType<typeof rowTrees>;
}

export function registerPanel(context: vscode.ExtensionContext, nexus: Nexus, focus: Focus): vscode.Disposable {
  const trees = Object.fromEntries(TREES.map((name) => [name, tree(`nexus.${name}`)])) as Record<TreeName, Tree>;
  const known = feed(nexus, focus, show);
  const shape: Shape = { sessions: PAGE, rows: rowTrees() };
  const due = new Set<TreeName>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let told: boolean | undefined;

  const page = windowView(context.extensionUri, {
    onVisible: (visible) => look("window", visible),
    onMessage(message) {
      if (message.type === "act") act(message.id);
      else {
        showTree(trees.rows, known, "rows", shape); // it may never have been opened
        void trees.rows.reveal(categoryId(message.category));
      }
    },
  });

  function act(id: ActionId): void {
    const source = known.get("usage").value?.usage.cache?.broke?.source;
    if (id === "cacheSource" && source) void openSource({ source });
    const found = Object.hasOwn(COMMANDS, id) ? COMMANDS[id] : undefined;
    if (found) void vscode.commands.executeCommand(...found);
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
    const viewing = focus.agent !== undefined;
    if (told !== viewing) void vscode.commands.executeCommand("setContext", "nexus.viewingAs", viewing);
    told = viewing;
  }

  function showTrees(): void {
    timer = undefined;
    for (const name of due) if (trees[name].view.visible) showTree(trees[name], known, name, shape);
    due.clear();
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
    vscode.commands.registerCommand("nexus.panel.openSource", openSource),
    vscode.commands.registerCommand("nexus.panel.openConversation", openConversation),
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
  const notice = noticeOf(nexus.state, nexus.detail, where, nexus.obstacle);
  if (notice) return notice;
  const usage = known.get("usage");
  if (usage.stale) return undefined;
  if (!usage.value) return usage.trouble ? troubleNotice(usage.trouble) : READING;
  return windowModel({
    ...usage.value.place,
    usage: usage.value.usage,
    layers: fresh(known, "layers"),
    config: fresh(known, "config"),
    compaction: known.compaction,
    trouble: usage.trouble,
  });
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
  if (ready && main.stale) return;
  const nodes = ready ? nodesOf(known, name, shape) : undefined;
  view.description = place?.agent !== undefined && name !== "sessions" && ready ? `as ${place.agent}` : "";
  view.message = ready && main.trouble ? main.trouble : "";
  if (nodes) shown.show(nodes);
  else if (!ready) shown.show([]);
}

/** The nodes of a tree; none while nothing is known. */
function nodesOf(known: Feed, name: TreeName, shape: Shape): Node[] | undefined {
  const { place } = known;
  if (!place) return undefined;
  const folder = place.folder.uri;
  const home = homedir();
  const servers = fresh(known, "config")?.mcpServers;
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
        layerNodes({ layers, folder, home, ...(fragments ? { fragments } : {}), ...(servers ? { servers } : {}) })
      );
    }
    case "sessions": {
      const all = known.get("sessions").value;
      return (
        all && sessionNodes({ sessions: all, folder, current: place.session, shown: shape.sessions, now: new Date() })
      );
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
