/**
 * A tree of nodes as a view of VS Code's own: it is told of what changed and of nothing else.
 *
 * 1. An element is an object that stays the same for an id; it is what commands of the menus get.
 * 2. In a narrow side bar a node's figure comes first: the editor cuts a row off at its end.
 * 3. Nodes of before a restart are greyed: the editor colours rows by their resource alone, so they get one.
 */
import * as vscode from "vscode";
import { changes, type Node, type Subject, textOf, walk } from "./node";

/** What a command of a node's menu gets as its first argument. */
export interface Element extends Subject {
  readonly id: string;
}

/** How the nodes of a tree look. */
export interface Look {
  /** From before a restart. */
  readonly stale: boolean;
  /** Too narrow for a label and its figures. */
  readonly narrow: boolean;
}

export interface Tree extends vscode.Disposable {
  readonly view: vscode.TreeView<Element>;
  show(nodes: readonly Node[], look?: Look): void;
  /** The id of the first node whose element is like that. */
  find(isIt: (element: Element) => boolean): string | undefined;
  /** Select a node, where there is such a one, and move the keyboard to it. */
  reveal(id: string): Promise<void>;
}

interface Known {
  readonly element: Element;
  readonly node: Node;
  readonly parent: string | undefined;
}

const PLAIN: Look = { stale: false, narrow: false };
const STALE = "nexus-stale";

/** Greys the rows of stale nodes. */
export function staleDecorations(): vscode.Disposable {
  const decoration = new vscode.FileDecoration(
    undefined,
    "from before the restart",
    new vscode.ThemeColor("disabledForeground"),
  );
  return vscode.window.registerFileDecorationProvider({
    provideFileDecoration: (uri) => (uri.scheme === STALE ? decoration : undefined),
  });
}

export function tree(viewId: string): Tree {
  const fired = new vscode.EventEmitter<Element[] | undefined>();
  let roots: readonly Node[] = [];
  let look = PLAIN;
  let known = new Map<string, Known>();

  const elementsOf = (nodes: readonly Node[]): Element[] => nodes.flatMap((node) => known.get(node.id)?.element ?? []);
  const provider: vscode.TreeDataProvider<Element> = {
    onDidChangeTreeData: fired.event,
    getChildren: (element) => elementsOf(element ? (known.get(element.id)?.node.children ?? []) : roots),
    getParent(element) {
      const parent = known.get(element.id)?.parent;
      return parent === undefined ? undefined : known.get(parent)?.element;
    },
    getTreeItem(element) {
      const one = known.get(element.id);
      return one ? itemOf(one.node, one.element, look) : new vscode.TreeItem(""); // gone in the meantime
    },
    resolveTreeItem(item, element) {
      const text = textOf(known.get(element.id)?.node.tooltip);
      if (text) item.tooltip = new vscode.MarkdownString(text, true);
      return item;
    },
  };
  const view = vscode.window.createTreeView(viewId, { treeDataProvider: provider, showCollapseAll: true });

  return {
    view,
    show(nodes, next = PLAIN) {
      const same = look.stale === next.stale && look.narrow === next.narrow;
      const what = same ? changes(roots, nodes) : "all";
      [roots, look] = [nodes, next];
      known = knownOf(nodes, known);
      if (what === "all") fired.fire(undefined);
      else if (what.length) fired.fire(what.flatMap((id) => known.get(id)?.element ?? []));
    },
    find: (isIt) => [...known.values()].find(({ element }) => isIt(element))?.element.id,
    async reveal(id) {
      const element = known.get(id)?.element;
      if (!element) return;
      // refused where the tree changed meanwhile: then there is nothing to show
      await view.reveal(element, { select: true, focus: true, expand: true }).then(undefined, () => undefined);
    },
    dispose() {
      view.dispose();
      fired.dispose();
    },
  };
}

function knownOf(nodes: readonly Node[], before: ReadonlyMap<string, Known>): Map<string, Known> {
  const known = new Map<string, Known>();
  for (const [node, parent] of walk(nodes)) {
    const element = (before.get(node.id)?.element ?? { id: node.id }) as { id: string };
    known.set(node.id, { element: renewed(element, node.subject), node, parent: parent?.id });
  }
  return known;
}

const SUBJECTS = [
  "folder",
  "session",
  "agent",
  "assistant",
  "program",
  "conversation",
  "title",
  "source",
  "message",
  "server",
] as const satisfies readonly (keyof Subject)[];

/** The same object, about what the node is about now. */
function renewed(element: { id: string }, subject: Subject | undefined): Element {
  for (const name of SUBJECTS) {
    const value = subject?.[name];
    if (value === undefined) delete (element as Element & Record<string, unknown>)[name];
    else Object.assign(element, { [name]: value });
  }
  return element;
}

function itemOf(node: Node, element: Element, look: Look): vscode.TreeItem {
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const first = look.narrow ? node.figure : undefined;
  const item = new vscode.TreeItem(
    first ?? node.label,
    node.children?.length ? (node.open ? Expanded : Collapsed) : None,
  );
  item.id = node.id;
  const second = first === undefined ? node.description : node.label;
  if (second !== undefined) item.description = second;
  if (look.stale) item.resourceUri = vscode.Uri.from({ scheme: STALE, path: `/${node.id}` });
  if (node.icon) {
    // of a row with a resource, the editor would take "file" for that resource's own icon
    const name = look.stale && node.icon.name === "file" ? "symbol-file" : node.icon.name;
    const colour = look.stale ? "disabledForeground" : node.icon.colour;
    item.iconPath = new vscode.ThemeIcon(name, colour ? new vscode.ThemeColor(colour) : undefined);
  }
  if (node.context) item.contextValue = node.context;
  item.accessibilityInformation = { label: textOf(node.spoken) ?? `${node.label} ${node.description ?? ""}` };
  if (node.command) item.command = { command: node.command, title: node.label, arguments: [element] };
  return item;
}
