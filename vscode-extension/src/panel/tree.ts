/**
 * A tree of nodes as a view of VS Code's own: it is told of what changed and of nothing else.
 *
 * An element is an object that stays the same for an id; it is what commands of the menus get.
 */
import * as vscode from "vscode";
import { changes, type Node, type Subject, textOf, walk } from "./node";

/** What a command of a node's menu gets as its first argument. */
export interface Element extends Subject {
  readonly id: string;
}

export interface Tree extends vscode.Disposable {
  readonly view: vscode.TreeView<Element>;
  show(nodes: readonly Node[]): void;
  /** Select a node, where there is such a one, and move the keyboard to it. */
  reveal(id: string): Promise<void>;
}

interface Known {
  readonly element: Element;
  readonly node: Node;
  readonly parent: string | undefined;
}

export function tree(viewId: string): Tree {
  const fired = new vscode.EventEmitter<Element[] | undefined>();
  let roots: readonly Node[] = [];
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
      return one ? itemOf(one.node, one.element) : new vscode.TreeItem(""); // gone in the meantime
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
    show(nodes) {
      const what = changes(roots, nodes);
      roots = nodes;
      known = knownOf(nodes, known);
      if (what === "all") fired.fire(undefined);
      else if (what.length) fired.fire(what.flatMap((id) => known.get(id)?.element ?? []));
    },
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

/** The same object, about what the node is about now. */
function renewed(element: { id: string }, subject: Subject | undefined): Element {
  for (const name of ["folder", "session", "agent", "source", "message"] as const) {
    const value = subject?.[name];
    if (value === undefined) delete (element as Element & Record<string, unknown>)[name];
    else Object.assign(element, { [name]: value });
  }
  return element;
}

function itemOf(node: Node, element: Element): vscode.TreeItem {
  const { None, Collapsed, Expanded } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(node.label, node.children?.length ? (node.open ? Expanded : Collapsed) : None);
  item.id = node.id;
  if (node.description !== undefined) item.description = node.description;
  if (node.icon) {
    const { name, colour } = node.icon;
    item.iconPath = new vscode.ThemeIcon(name, colour ? new vscode.ThemeColor(colour) : undefined);
  }
  if (node.context) item.contextValue = node.context;
  item.accessibilityInformation = { label: textOf(node.spoken) ?? `${node.label} ${node.description ?? ""}` };
  if (node.command) item.command = { command: node.command, title: node.label, arguments: [element] };
  return item;
}
