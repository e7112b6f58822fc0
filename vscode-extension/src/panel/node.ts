/**
 * A tree as a value: what a view shows, without VS Code.
 *
 * 1. An id is unique in its tree and stays the same while its node means the same thing.
 * 2. `changes` names the fewest nodes to show again: a node stands for all below it.
 * 3. Where many of one parent's children changed, the parent is named instead.
 */
import type { Location } from "../protocol";

/** What a command of a node's menu is about; the first argument that the command gets. */
export interface Subject {
  readonly folder?: string;
  readonly session?: string;
  readonly agent?: string;
  /** Another assistant, such as `codex`. */
  readonly assistant?: string;
  /** A conversation that is not kept, or of another folder: its program, its id there, and its title. */
  readonly program?: string;
  readonly conversation?: string;
  readonly title?: string;
  /** The name of an MCP server. */
  readonly server?: string;
  readonly source?: Location;
  /** Number of a message of the conversation. */
  readonly message?: number;
}

export interface Icon {
  /** A codicon. */
  readonly name: string;
  /** A theme colour such as `charts.blue`. */
  readonly colour?: string;
}

/** A function where there may be thousands: it says nothing that id, label, description and subject do not hold. */
export type Text = string | (() => string);

export interface Node {
  readonly id: string;
  readonly label: string;
  readonly description?: string;
  /** The figure that a narrow view shows first: `≈ 1,234`. */
  readonly figure?: string;
  /** Markdown. */
  readonly tooltip?: Text;
  /** What a screen reader says instead of label and description. */
  readonly spoken?: Text;
  readonly icon?: Icon;
  /** `viewItem` of the menus. */
  readonly context?: string;
  readonly subject?: Subject;
  /** What a click does; the arguments are the subject. */
  readonly command?: string;
  /** Whether the children show at first. */
  readonly open?: boolean;
  readonly children?: readonly Node[];
}

/** The nodes of which the view must be told: ids, "all" for the roots themselves, or none. */
export type Changes = "all" | readonly string[];

/** Beyond this many changed children, their parent is shown again. */
const MOST_CHILDREN = 50;

export function changes(before: readonly Node[], after: readonly Node[]): Changes {
  if (!sameIds(before, after)) return "all";
  const ids = below(before, after);
  return ids.length > MOST_CHILDREN ? "all" : ids;
}

/** Every node with its parent, roots first. */
export function* walk(nodes: readonly Node[], parent?: Node): Generator<[Node, Node | undefined]> {
  for (const node of nodes) {
    yield [node, parent];
    if (node.children) yield* walk(node.children, node);
  }
}

/** The text itself. */
export function textOf(text: Text | undefined): string | undefined {
  return typeof text === "function" ? text() : text;
}

function below(before: readonly Node[], after: readonly Node[]): string[] {
  const ids: string[] = [];
  for (let index = 0; index < after.length; index++) {
    const old = before[index];
    const now = after[index];
    if (!old || !now || old === now) continue;
    const children = sameFace(old, now) ? inside(old, now) : "itself";
    if (children === "itself") ids.push(now.id);
    else ids.push(...children);
  }
  return ids;
}

function inside(old: Node, now: Node): readonly string[] | "itself" {
  const before = old.children ?? [];
  const after = now.children ?? [];
  if (!sameIds(before, after)) return "itself";
  const ids = below(before, after);
  return ids.length > MOST_CHILDREN ? "itself" : ids;
}

function sameIds(before: readonly Node[], after: readonly Node[]): boolean {
  return before.length === after.length && before.every((node, index) => node.id === after[index]?.id);
}

function sameFace(old: Node, now: Node): boolean {
  return (
    old.label === now.label &&
    old.description === now.description &&
    sameText(old.tooltip, now.tooltip) &&
    sameText(old.spoken, now.spoken) &&
    old.context === now.context &&
    old.command === now.command &&
    old.icon?.name === now.icon?.name &&
    old.icon?.colour === now.icon?.colour &&
    sameSubject(old.subject, now.subject)
  );
}

function sameText(old: Text | undefined, now: Text | undefined): boolean {
  return old === now || (typeof old === "function" && typeof now === "function");
}

function sameSubject(old: Subject | undefined, now: Subject | undefined): boolean {
  return (
    old?.folder === now?.folder &&
    old?.session === now?.session &&
    old?.agent === now?.agent &&
    old?.assistant === now?.assistant &&
    old?.program === now?.program &&
    old?.conversation === now?.conversation &&
    old?.title === now?.title &&
    old?.message === now?.message &&
    old?.server === now?.server &&
    sameLocation(old?.source, now?.source)
  );
}

export function sameLocation(old: Location | undefined, now: Location | undefined): boolean {
  const one = old?.range;
  const other = now?.range;
  return (
    old?.uri === now?.uri &&
    one?.start.line === other?.start.line &&
    one?.start.character === other?.start.character &&
    one?.end.line === other?.end.line &&
    one?.end.character === other?.end.character
  );
}
